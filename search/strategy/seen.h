/* SPDX-License-Identifier: Apache-2.0 */
/* The set of candidates that a strategy has asked for, so that it asks for no schedule twice, and a
 * walk over the whole space, which finds new candidates where random draws find none.
 *
 * The set keeps 48-bit hashes only: 16 bytes for each candidate, 8 in a snapshot. A new candidate
 * is taken for a known one, and left out, with a chance of 10^-7 among ten thousand candidates and
 * of 10^-3 among a million. */
#ifndef WPK_SEARCH_STRATEGY_SEEN_H
#define WPK_SEARCH_STRATEGY_SEEN_H

#include "search/snapshot.h"
#include "search/strategy/strategy.h"

#define WPK_SEEN_DRAWS_MAX 256   /* random draws before the walk */
#define WPK_SEEN_STEPS_MAX 65536 /* steps of the walk for one candidate */

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
bool wpk_seen_has(const struct wpk_seen *seen, const struct wpk_space *space,
                  const struct wpk_candidate *candidate);
/*   errors  WPK_ENOMEM; the set is as before */
wpk_err wpk_seen_put(struct wpk_seen *seen, const struct wpk_space *space,
                     const struct wpk_candidate *candidate);

/* Find a legal candidate that is not in the set: draw at random, then take the next of the walk.
 * The candidate is not put into the set: a copy of the struct from before takes the draw back.
 *   errors  WPK_EEXHAUSTED no such candidate was found within the two limits; WPK_ENOMEM */
wpk_err wpk_seen_draw(struct wpk_seen *seen, const struct wpk_space *space, struct wpk_rng *rng,
                      struct wpk_candidate *out);

/* Append the set and the walk to a snapshot, and read them back. The text depends on the set, not
 * on the order of the asks.
 *   owns    load fills `seen`, which is empty: caller calls wpk_seen_fini, after a failure too
 *   errors  WPK_ENOMEM; a damaged text is the reader's failure, which wpk_snapshot_close returns */
wpk_err wpk_seen_save(const struct wpk_seen *seen, struct wpk_buf *out);
wpk_err wpk_seen_load(struct wpk_seen *seen, struct wpk_snapshot_reader *reader);

/* Hints: candidates with times that were measured elsewhere. A search asks for the fastest of them
 * after its constructed candidates. By how much their times here differ from those elsewhere says
 * what the times of the others come to here: these are learnt, and not asked for again. */

#define WPK_HINTS_ASKED 8

/* `= {0}` has none. */
struct wpk_hints {
    const struct wpk_hint *hint; /* borrowed; [count], fastest first */
    int count;
    int next;        /* the first one that may be asked for */
    int asked, told; /* hints asked for, and told */
    double shift;    /* sum of the logs of times here over those elsewhere */
    int timed;       /* hints in that sum */
    bool learnt;     /* the others */
};

/* True if there is a hint that may be asked for. */
bool wpk_hints_wait(const struct wpk_hints *hints);
/* Take the next hint that was not seen.   shape  returns its number; -1: none is left */
int wpk_hints_take(struct wpk_hints *hints, const struct wpk_seen *seen,
                   const struct wpk_space *space);
/* A hint was timed here, or failed.   shape  time: log; +inf if it failed */
void wpk_hints_tell(struct wpk_hints *hints, int number, double time);
/* The next hint that is to be learnt, after all those that were asked for are told; NULL: none.
 *   shape   *next: 0 at first; *time: what it comes to here, a log as in wpk_hints_tell() */
const struct wpk_hint *wpk_hints_learn(struct wpk_hints *hints, int *next, double *time);

void wpk_hints_save(const struct wpk_hints *hints, struct wpk_buf *out);
void wpk_hints_load(struct wpk_hints *hints, struct wpk_snapshot_reader *reader);

#endif
