/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring how long one call takes.
 *
 *     warm up ──▶ calibrate ──▶ sample, sample, … ──▶ median, MAD, minimum
 *                                  └─▶ raced out: clearly slower than the incumbent
 *
 * A sample is the mean of `repeat_count` calls, enough of them to last a millisecond, because the
 * clock and an interrupt cost the same for short and long kernels.
 *
 * Under cold conditions every call is a sample of its own, and the data that the conditions name
 * are evicted before each. Evicting takes longer than most calls: calls and evictions together then
 * get 2.5 times the time that the policy asks for (50 ms for 20), so that a candidate takes about
 * as long as a warm one whose batch is taken twice. Calls that rotate need no eviction: each finds
 * its data in memory, and samples are as warm ones are.
 */
#ifndef WPK_WORKER_MEASURE_H
#define WPK_WORKER_MEASURE_H

#include "common/clock.h"
#include "schema/record.h"

/* The function to be timed, and the clock; a test sets a fake clock. */
struct wpk_measure_subject {
    wpk_err (*run)(void *user); /* one call */
    /* Evict from the caches; called for cold conditions only, and required for them. */
    wpk_err (*cool)(void *user, enum wpk_conditions conditions);
    /* How often the scheduler has taken a CPU away from the process so far; NULL: not known.
     * Samples with such an event are taken again, for at most ten times the policy's time. */
    uint64_t (*preemptions)(void *user);
    /* How long the thread has waited for a CPU so far; NULL: not known. A pair of samples that
     * waited for more than a hundredth of its time is taken again likewise. */
    uint64_t (*waited_ns)(void *user);
    /* True if the device's clocks are lowered, because it is hot; NULL: not known. A pair of
     * samples behind which they are is taken again, after a pause, at most ten times in all. */
    bool (*throttled)(void *user);
    void (*pause)(void *user, uint64_t ns); /* required where `throttled` is */
    /* Calls take their arguments in turns once `cool` was called, so that samples may have many. */
    bool rotates;
    /* Measure `count` calls together on the device's own clock; NULL: `clock` measures them. */
    wpk_err (*time)(void *user, int count, uint64_t *ns);
    void *user;
    const struct wpk_clock *clock;
};

/* The policy with unset members (0) replaced by the defaults of schema/record.h. */
struct wpk_policy wpk_measure_policy(const struct wpk_policy *policy);

/* Time a subject alone. incumbent_ns 0: there is no race.
 *   errors  the error that run or cool returned; `out` is then unchanged */
wpk_err wpk_measure(const struct wpk_measure_subject *subject, const struct wpk_policy *policy,
                    uint64_t incumbent_ns, struct wpk_timing *out);

/* A candidate's samples, in turns with those of its search's anchor. A change of the machine's
 * speed changes both, so that their ratio stays. */
struct wpk_pair {
    struct wpk_timing timing; /* the candidate's */
    uint64_t anchor_ns;       /* median of the anchor's samples; 0: there is none */
    double ratio;             /* median over pairs of candidate's over anchor's; 0: none */
    double ratio_mad;         /* its median absolute deviation */
};

/* Time a candidate in turns with its anchor, or alone (`anchor` NULL). Both share the policy's
 * time. The subject that ended a pair begins the next one, so that each takes two samples in a row,
 * after one uncounted call that brings its data back into the caches.
 *   unit    incumbent: multiples of the anchor's time, ns without an anchor; 0: there is none
 *   errors  the error that run or cool returned; `out` is then unchanged */
wpk_err wpk_measure_pair(const struct wpk_measure_subject *subject,
                         const struct wpk_measure_subject *anchor, const struct wpk_policy *policy,
                         double incumbent, struct wpk_pair *out);

/* True if the record is faster than the incumbent: by the ratios to the anchor where both have one,
 * else by their times. incumbent_ns 0: there is no time to beat. */
bool wpk_measure_beats(const struct wpk_record *record, uint64_t incumbent_ns,
                       double incumbent_ratio);

#define WPK_MEASURE_NOISE_MAX 0.1 /* MAD / median of a steady time */

/* Set median, minimum and MAD from the samples, of which there is at least one. */
void wpk_measure_summarize(struct wpk_timing *timing);

#endif
