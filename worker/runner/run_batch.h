/* SPDX-License-Identifier: Apache-2.0 */
/* A batch: a candidate's samples, in turns with its anchor's if there is one, between two runs of
 * the sentinel. Where the samples (with an anchor, the ratios) scatter, something else ran on the
 * core: the batch is taken once more, and the steadier one counts. Without an anchor, the batch is
 * also taken once more where the sentinel's two times differ. No time is divided by the
 * sentinel's. */
#ifndef WPK_WORKER_RUNNER_RUN_BATCH_H
#define WPK_WORKER_RUNNER_RUN_BATCH_H

#include "worker/measure.h"

struct wpk_run_batch {
    struct wpk_pair pair;
    double drift; /* of the sentinel: slower time / faster time - 1 */
    double noise; /* median absolute deviation / median: of the ratios, or of the samples */
};

/* Measure a candidate. `anchor` and `incumbent` are as in wpk_measure_pair; `sentinel_ns` returns
 * the time of one run of the sentinel.
 *   errors  the error that run or cool returned; `out` is then unchanged */
wpk_err wpk_run_batch_measure(const struct wpk_measure_subject *subject,
                              const struct wpk_measure_subject *anchor,
                              const struct wpk_policy *policy, double incumbent,
                              uint64_t (*sentinel_ns)(void), struct wpk_run_batch *out);

/* True if neither drift nor noise is too large, and no sample was taken of a throttled GPU. A
 * candidate that was raced out needs no exact time: its batch counts as steady. */
bool wpk_run_batch_is_steady(const struct wpk_run_batch *batch);

/* Describe for the log what disturbed the batch; "" for a steady one. */
void wpk_run_batch_describe(const struct wpk_run_batch *batch, char *out, size_t size);

#endif
