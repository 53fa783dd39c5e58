/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/run_batch.h"

#include <math.h>
#include <stdio.h>

#define DRIFT_MAX 0.10
/* More would wait for a neighbour to end, and a slow candidate for its deadline. */
#define BATCHES_MAX 2

static wpk_err measure_once(const struct wpk_measure_subject *subject,
                            const struct wpk_measure_subject *anchor,
                            const struct wpk_policy *policy, double incumbent,
                            uint64_t (*sentinel_ns)(void), struct wpk_run_batch *out)
{
    struct wpk_run_batch batch = {0};
    uint64_t before = sentinel_ns();
    wpk_err err = wpk_measure_pair(subject, anchor, policy, incumbent, &batch.pair);
    if (err != WPK_OK) {
        return err;
    }
    uint64_t after = sentinel_ns();
    const struct wpk_timing *timing = &batch.pair.timing;
    batch.drift =
        (double)(before > after ? before : after) / (double)(before < after ? before : after) - 1;
    batch.noise = anchor != NULL ? batch.pair.ratio_mad / batch.pair.ratio
                                 : (double)timing->mad_ns / (double)timing->median_ns;
    *out = batch;
    return WPK_OK;
}

/* How far what counts is from steady: at most 1 where it is. A drift is no part of a ratio. */
static double unrest(const struct wpk_run_batch *batch)
{
    double noise = batch->noise / WPK_MEASURE_NOISE_MAX;
    return batch->pair.ratio > 0 ? noise : fmax(batch->drift / DRIFT_MAX, noise);
}

bool wpk_run_batch_is_steady(const struct wpk_run_batch *batch)
{
    return batch->pair.timing.censored ||
           (batch->pair.timing.throttled_count == 0 && batch->drift <= DRIFT_MAX &&
            batch->noise <= WPK_MEASURE_NOISE_MAX);
}

wpk_err wpk_run_batch_measure(const struct wpk_measure_subject *subject,
                              const struct wpk_measure_subject *anchor,
                              const struct wpk_policy *policy, double incumbent,
                              uint64_t (*sentinel_ns)(void), struct wpk_run_batch *out)
{
    struct wpk_run_batch best = {0};
    wpk_err err = measure_once(subject, anchor, policy, incumbent, sentinel_ns, &best);
    for (int i = 1; i < BATCHES_MAX && err == WPK_OK; i++) {
        struct wpk_run_batch again;
        if (best.pair.timing.censored || unrest(&best) <= 1) {
            break;
        }
        err = measure_once(subject, anchor, policy, incumbent, sentinel_ns, &again);
        if (err == WPK_OK && (again.pair.timing.censored || unrest(&again) < unrest(&best))) {
            best = again;
        }
    }
    if (err == WPK_OK) {
        *out = best;
    }
    return err;
}

void wpk_run_batch_describe(const struct wpk_run_batch *batch, char *out, size_t size)
{
    if (wpk_run_batch_is_steady(batch)) {
        snprintf(out, size, "%s", "");
        return;
    }
    if (batch->pair.timing.throttled_count > 0) {
        snprintf(out, size, "its time is uncertain: the GPU was throttled in %d of %d samples",
                 batch->pair.timing.throttled_count, batch->pair.timing.sample_count);
        return;
    }
    snprintf(out, size,
             "its time is uncertain: the machine was not steady; the sentinel drifted by %.0f %% "
             "and %s scattered by %.0f %%",
             100 * batch->drift, batch->pair.ratio > 0 ? "ratios to the anchor" : "samples",
             100 * batch->noise);
}
