/* SPDX-License-Identifier: Apache-2.0 */
/* A candidate's samples, in turns with its anchor's if it has one, between two runs of the
 * sentinel. Where the samples scatter (of a pair: their ratios), something else ran on the core:
 * the batch is taken once more, and the steadier of the two counts. Without an anchor it is also
 * taken once more where the sentinel drifts from one run to the other. The sentinel only raises an
 * alarm: no time is divided by its own. */
#ifndef WPK_WORKER_BATCH_H
#define WPK_WORKER_BATCH_H

#include "worker/measure.h"

struct wpk_batch {
    struct wpk_pair pair;
    double drift; /* of the sentinel: slower over faster, less 1 */
    double noise; /* median absolute deviation over median: of the ratios, or of the samples */
};

/* `anchor` and `incumbent` as in wpk_measure_pair; `sentinel_ns` gives the time of one run of the
 * sentinel.
 *   errors  what run returned; `out` is then unchanged */
wpk_err wpk_batch_measure(const struct wpk_measure_subject *subject,
                          const struct wpk_measure_subject *anchor, const struct wpk_policy *policy,
                          double incumbent, uint64_t (*sentinel_ns)(void), struct wpk_batch *out);

/* Who is raced out needs no exact time: such a batch counts as steady. */
bool wpk_batch_is_steady(const struct wpk_batch *batch);

/* For the log: what disturbed the batch; "" for a steady one. */
void wpk_batch_describe(const struct wpk_batch *batch, char *out, size_t size);

#endif
