/* SPDX-License-Identifier: Apache-2.0 */
/* How long does one call take?
 *
 *     warm up ──▶ calibrate ──▶ sample, sample, … ──▶ median, MAD, minimum
 *                                  └─▶ raced out: clearly slower than the incumbent
 *
 * A sample is the mean of `repeat_count` calls, enough of them to last a millisecond, because the
 * clock and an interrupt cost the same for short and long kernels.
 *
 * Under cold conditions every call is a sample of its own, and what they name is evicted before
 * each. That takes longer than most calls: the time that the policy asks for is then the calls' and
 * the evictions' together, 2.5 times as much (50 ms for 20), so that a candidate costs about as
 * much as a warm one whose batch is taken twice. */
#ifndef WPK_WORKER_MEASURE_H
#define WPK_WORKER_MEASURE_H

#include "common/clock.h"
#include "schema/record.h"

/* What is timed, and by which clock: a test turns the clock by hand. */
struct wpk_measure_subject {
    wpk_err (*run)(void *user); /* one call */
    /* Evict from the caches; required but for WARM, which it is never asked for. */
    wpk_err (*cool)(void *user, enum wpk_conditions conditions);
    void *user;
    const struct wpk_clock *clock;
};

/* Fill unset fields of a policy (0) with the defaults of schema/record.h. */
struct wpk_policy wpk_measure_policy(const struct wpk_policy *policy);

/*   errors  what run or cool returned; `out` is then unchanged */
wpk_err wpk_measure(const struct wpk_measure_subject *subject, const struct wpk_policy *policy,
                    uint64_t incumbent_ns, struct wpk_timing *out);

/* Median, minimum and MAD of the samples that are there. */
void wpk_measure_summarize(struct wpk_timing *timing);

#endif
