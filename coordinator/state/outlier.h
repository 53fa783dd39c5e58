/* SPDX-License-Identifier: Apache-2.0 */
/* Outliers: workers whose times are not those of their timing class. Such a worker names a device
 * that it does not have, is throttled, or shares its cores. The worker's own results do not show
 * it, because they are consistent. But finals and verifications time again what another worker has
 * timed, so times of workers can be compared without extra work.
 *
 * A worker is an outlier if its times differ from those of more than two thirds of the devices that
 * it was compared with lately, WPK_OUTLIER_OTHERS at least, in the same direction, by
 * WPK_OUTLIER_FACTOR, for WPK_OUTLIER_PROBLEMS problems at least. Honest repetitions of a time were
 * 0.9 to 1.6 of it. An outlier is only reported: between two workers it cannot be decided which one
 * is wrong, and workers that conspire could accuse another one. */
#ifndef WPK_COORDINATOR_STATE_OUTLIER_H
#define WPK_COORDINATOR_STATE_OUTLIER_H

#include "coordinator/state/state.h"

#define WPK_OUTLIER_FACTOR 3.0
#define WPK_OUTLIER_OTHERS 2
#define WPK_OUTLIER_PROBLEMS 3
#define WPK_COMPARISONS_MAX 16 /* of a worker; the latest are remembered */

/* Times of one problem on two devices; of several comparisons, the one with the ratio nearest 1. */
struct wpk_comparison {
    uint64_t device; /* device_hash of the other worker */
    uint64_t problem;
    double ratio; /* own time over the other's */
};

struct wpk_comparisons {
    struct wpk_comparison items[WPK_COMPARISONS_MAX]; /* a ring */
    uint32_t count;                                   /* comparisons so far */
};

struct wpk_coordinator;

/* Compare: the worker needed `ns` for what the worker with the name hash `before_by` needed
 * `before_ns` for. Does nothing if a time is 0, or that worker is not there or not comparable. */
void wpk_outlier_compare(struct wpk_coordinator *c, const struct wpk_search *search,
                         uint64_t before_by, uint64_t before_ns, const struct wpk_worker *worker,
                         uint64_t ns);
/* True if the worker is an outlier, and `out` says why; else `out` is "". */
bool wpk_outlier_reason(const struct wpk_worker *worker, char out[WPK_REASON_MAX]);

#endif
