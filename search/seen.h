/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates that a strategy has asked for, so that none is asked for twice, and a walk over
 * the whole space for when luck finds nothing new any more.
 *
 * Only 48-bit hashes are kept: 16 bytes for each candidate, 8 in a snapshot, and a chance of 10^-7
 * that one of ten thousand is taken for another and left out, of 10^-3 that one of a million is. */
#ifndef WPK_SEARCH_SEEN_H
#define WPK_SEARCH_SEEN_H

#include "search/snapshot.h"

#define WPK_SEEN_DRAWS_MAX 256   /* random draws before the walk */
#define WPK_SEEN_STEPS_MAX 65536 /* of the walk, for one candidate */

/* `= {0}` is empty. */
struct wpk_seen {
    uint64_t *slots; /* owned; [capacity], a power of two; 48 bits, 0: free */
    size_t capacity;
    size_t count;
    struct wpk_candidate cursor; /* the next point of the walk */
    bool walking;
    bool walked; /* the walk came to the end of the space */
};

void wpk_seen_fini(struct wpk_seen *seen);
bool wpk_seen_has(const struct wpk_seen *seen, const struct wpk_candidate *candidate);
/*   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_seen_put(struct wpk_seen *seen, const struct wpk_candidate *candidate);

/* A legal candidate that was not seen: drawn at random, or else the next of the walk.
 *   errors  WPK_EEXHAUSTED no such candidate was found within the two limits */
WPK_MUST_CHECK wpk_err wpk_seen_draw(struct wpk_seen *seen, const struct wpk_space *space,
                                     struct wpk_rng *rng, struct wpk_candidate *out);

/* Append all of it to a snapshot, in ascending order whatever the order of the asks; and back.
 *   owns    load fills `seen`, which is empty: caller calls wpk_seen_fini, after a failure too
 *   errors  WPK_ENOMEM; what is wrong with the text sticks in `reader` */
WPK_MUST_CHECK wpk_err wpk_seen_save(const struct wpk_seen *seen, struct wpk_buf *out);
WPK_MUST_CHECK wpk_err wpk_seen_load(struct wpk_seen *seen, struct wpk_snapshot_reader *reader);

#endif
