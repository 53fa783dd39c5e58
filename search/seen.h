/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates that a strategy has asked for, so that none is asked for twice, and a walk over
 * the whole space for when luck finds nothing new any more.
 *
 * Only 64-bit hashes are kept: 16 bytes for each candidate, and a chance of 10^-8 that one of a
 * million is taken for another and left out. */
#ifndef WPK_SEARCH_SEEN_H
#define WPK_SEARCH_SEEN_H

#include "search/space.h"

#define WPK_SEEN_DRAWS_MAX 256   /* random draws before the walk */
#define WPK_SEEN_STEPS_MAX 65536 /* of the walk, for one candidate */

/* `= {0}` is empty. */
struct wpk_seen {
    uint64_t *slots; /* owned; [capacity], a power of two; 0: free */
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

#endif
