/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/batch.h"

#include <math.h>
#include <stdio.h>

#define DRIFT_MAX 0.10
#define NOISE_MAX 0.10
/* More would wait for a neighbour to end, and a slow candidate for its deadline. */
#define BATCHES_MAX 2

static wpk_err measure_once(const struct wpk_measure_subject *subject,
                            const struct wpk_policy *policy, uint64_t incumbent_ns,
                            uint64_t (*sentinel_ns)(void), struct wpk_batch *out)
{
    struct wpk_batch batch = {.reference_ns = sentinel_ns()};
    wpk_err err = wpk_measure(subject, policy, incumbent_ns, &batch.timing);
    if (err != WPK_OK) {
        return err;
    }
    uint64_t before = batch.reference_ns;
    uint64_t after = sentinel_ns();
    uint64_t slower = before > after ? before : after;
    batch.reference_ns = before < after ? before : after;
    batch.drift = (double)slower / (double)batch.reference_ns - 1;
    batch.noise = (double)batch.timing.mad_ns / (double)batch.timing.median_ns;
    *out = batch;
    return WPK_OK;
}

/* How far it is from steady: at most 1 where it is. */
static double unrest(const struct wpk_batch *batch)
{
    return fmax(batch->drift / DRIFT_MAX, batch->noise / NOISE_MAX);
}

bool wpk_batch_is_steady(const struct wpk_batch *batch)
{
    return batch->timing.censored || unrest(batch) <= 1;
}

wpk_err wpk_batch_measure(const struct wpk_measure_subject *subject,
                          const struct wpk_policy *policy, uint64_t incumbent_ns,
                          uint64_t (*sentinel_ns)(void), struct wpk_batch *out)
{
    struct wpk_batch best = {0};
    wpk_err err = measure_once(subject, policy, incumbent_ns, sentinel_ns, &best);
    for (int i = 1; i < BATCHES_MAX && err == WPK_OK && !wpk_batch_is_steady(&best); i++) {
        struct wpk_batch again;
        err = measure_once(subject, policy, incumbent_ns, sentinel_ns, &again);
        if (err == WPK_OK && (again.timing.censored || unrest(&again) < unrest(&best))) {
            best = again;
        }
    }
    if (err == WPK_OK) {
        *out = best;
    }
    return err;
}

void wpk_batch_describe(const struct wpk_batch *batch, char *out, size_t size)
{
    if (wpk_batch_is_steady(batch)) {
        snprintf(out, size, "%s", "");
        return;
    }
    snprintf(out, size,
             "its time is uncertain: in %d batches the machine was not steady; in the better one "
             "the sentinel drifted by %.0f %% and samples scattered by %.0f %%",
             BATCHES_MAX, 100 * batch->drift, 100 * batch->noise);
}
