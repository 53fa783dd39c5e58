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
    /* How often the scheduler has taken a CPU away from the process so far; NULL: not known.
     * Samples in which it did are taken again, for at most ten times as long as the policy asks
     * for. */
    uint64_t (*preemptions)(void *user);
    void *user;
    const struct wpk_clock *clock;
};

/* Fill unset fields of a policy (0) with the defaults of schema/record.h. */
struct wpk_policy wpk_measure_policy(const struct wpk_policy *policy);

/*   errors  what run or cool returned; `out` is then unchanged */
wpk_err wpk_measure(const struct wpk_measure_subject *subject, const struct wpk_policy *policy,
                    uint64_t incumbent_ns, struct wpk_timing *out);

/* A candidate's samples, in turns with those of its search's anchor: what changes between two
 * moments of the machine changes both, and is no part of their ratio. */
struct wpk_pair {
    struct wpk_timing timing; /* the candidate's */
    uint64_t anchor_ns;       /* median of the anchor's samples; 0: there is none */
    double ratio;             /* median over pairs of candidate's over anchor's; 0: none */
    double ratio_mad;         /* its median absolute deviation */
};

/* `anchor` NULL: the candidate alone. Both together have the policy's time. The one that ended a
 * pair begins the next, so that each is warm for two samples after one call that does not count,
 * which it makes for what the other left in the caches.
 *   unit    incumbent: multiples of the anchor's time; without one ns; 0: none
 *   errors  what run returned; `out` is then unchanged */
wpk_err wpk_measure_pair(const struct wpk_measure_subject *subject,
                         const struct wpk_measure_subject *anchor, const struct wpk_policy *policy,
                         double incumbent, struct wpk_pair *out);

/* Is the record's time, or its ratio where it has one and so has the incumbent, below that of the
 * incumbent (0: there is none)? */
bool wpk_measure_beats(const struct wpk_record *record, uint64_t incumbent_ns,
                       double incumbent_ratio);

#define WPK_MEASURE_NOISE_MAX 0.1 /* MAD over median of a time that can be believed */

/* Median, minimum and MAD of the samples that are there. */
void wpk_measure_summarize(struct wpk_timing *timing);

#endif
