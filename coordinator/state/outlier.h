/* SPDX-License-Identifier: Apache-2.0 */
/* Workers whose times are not those of their class: one that claims a device that it is not, is
 * throttled, or shares its cores. Each is consistent with itself, and nothing in its own results
 * says so; but what one worker timed another one times again, without any work given out for that:
 * a final times what the search did, and a winner is verified by somebody else.
 *
 * A worker is an outlier when its times differ from those of more than two thirds of the workers
 * that it was compared with lately, two at least, in the same direction by WPK_OUTLIER_FACTOR, for
 * WPK_OUTLIER_PROBLEMS operators at least. Honest repetitions of a time were 0.9 to 1.6 of it. It
 * is said, and nothing else follows: of two workers alone nobody can tell who is right, and workers
 * who conspire are believed by it. */
#ifndef WPK_COORDINATOR_STATE_OUTLIER_H
#define WPK_COORDINATOR_STATE_OUTLIER_H

#include "coordinator/state/state.h"

#define WPK_OUTLIER_FACTOR 3.0
#define WPK_OUTLIER_OTHERS 2
#define WPK_OUTLIER_PROBLEMS 3
#define WPK_COMPARISONS_MAX 16 /* that are remembered of a worker, the latest ones */

/* One operator on two devices; of several times the ones that were nearest. */
struct wpk_comparison {
    uint64_t device; /* hash of the other's */
    uint64_t problem;
    double ratio; /* own time by the other's */
};

struct wpk_comparisons {
    struct wpk_comparison items[WPK_COMPARISONS_MAX]; /* a ring */
    uint32_t count;                                   /* so far */
};

struct wpk_coordinator;

/* The worker needed `ns` for what another one, whose name has this hash, needed `before_ns` for. 0,
 * or the name of nobody who is there: it does not count. */
void wpk_outlier_compare(struct wpk_coordinator *c, const struct wpk_search *search,
                         uint64_t before_by, uint64_t before_ns, const struct wpk_worker *worker,
                         uint64_t ns);
/* Why it is one, in words; false: it is not, and `out` is "". */
bool wpk_outlier_reason(const struct wpk_worker *worker, char out[WPK_REASON_MAX]);

#endif
