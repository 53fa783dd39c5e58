/* SPDX-License-Identifier: Apache-2.0 */
/* A candidate's samples between two runs of the sentinel. Where the sentinel drifts from one to the
 * other, or the samples scatter, something else ran on the core or its clock changed: the batch is
 * taken once more. Where that helps nothing, the steadier of the two counts, and says so. */
#ifndef WPK_WORKER_BATCH_H
#define WPK_WORKER_BATCH_H

#include "worker/measure.h"

struct wpk_batch {
    struct wpk_timing timing;
    uint64_t reference_ns; /* the sentinel, the faster of before and after */
    double drift;          /* of the sentinel: slower over faster, less 1 */
    double noise;          /* median absolute deviation over median */
};

/* `sentinel_ns` gives the time of one run of the sentinel.
 *   errors  what run returned; `out` is then unchanged */
wpk_err wpk_batch_measure(const struct wpk_measure_subject *subject,
                          const struct wpk_policy *policy, uint64_t incumbent_ns,
                          uint64_t (*sentinel_ns)(void), struct wpk_batch *out);

/* Who is raced out needs no exact time: such a batch counts as steady. */
bool wpk_batch_is_steady(const struct wpk_batch *batch);

/* For the log: what disturbed the batch; "" for a steady one. */
void wpk_batch_describe(const struct wpk_batch *batch, char *out, size_t size);

#endif
