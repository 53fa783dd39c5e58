/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/measure.h"
#include "common/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIME_NS_MIN_DEFAULT (20 * WPK_NS_PER_MS)
#define SAMPLE_COUNT_DEFAULT 10
#define SAMPLE_NS_MIN WPK_NS_PER_MS /* 20 ns of clock and 10 us of interrupt are 1 % of it */
#define WARM_UP_NS (2 * WPK_NS_PER_MS)
#define WARM_UP_CALLS_MAX 64
#define REPEAT_COUNT_MAX 1000000
#define RACE_SAMPLES_MIN 3
/* A candidate whose fastest call, warm-up included, is so many times slower than the limit of the
 * race loses after one sample. With the ratio of a search, 1.3, that is more than the factor of 1.9
 * between two states of a machine, of which the candidate may have met the slow one and the anchor
 * the fast one. */
#define RACE_FAR 1.5
/* Times time_ns_min under cold conditions: most of it is spent evicting. */
#define COLD_TIME_FACTOR 2.5
/* Times time_ns_min, after which a slow kernel is sampled no more, and samples count although the
 * process was preempted in them. */
#define TIME_FACTOR_MAX 10
#define WAITED_SHARE_MAX 0.01 /* of a pair's time; threads that wake each other wait for less */
/* A GPU that is too hot cools within seconds, or does not as long as it has work. */
#define THROTTLED_RETRIES_MAX 10
#define THROTTLED_PAUSE_NS (50 * WPK_NS_PER_MS)

struct wpk_policy wpk_measure_policy(const struct wpk_policy *policy)
{
    struct wpk_policy full = *policy;
    if (full.threads <= 0) {
        full.threads = 1;
    }
    if (full.time_ns_min == 0) {
        full.time_ns_min = TIME_NS_MIN_DEFAULT;
    }
    if (full.sample_count <= 0) {
        full.sample_count = SAMPLE_COUNT_DEFAULT;
    }
    if (full.sample_count > WPK_SAMPLES_MAX) {
        full.sample_count = WPK_SAMPLES_MAX;
    }
    return full;
}

/* Time `count` calls together. */
static wpk_err time_calls(const struct wpk_measure_subject *subject, int count, uint64_t *ns)
{
    if (subject->time != NULL) {
        return subject->time(subject->user, count, ns);
    }
    uint64_t start = wpk_clock_now_ns(subject->clock);
    for (int i = 0; i < count; i++) {
        wpk_err err = subject->run(subject->user);
        if (err != WPK_OK) {
            return err;
        }
    }
    *ns = wpk_clock_now_ns(subject->clock) - start;
    return WPK_OK;
}

/* Run until caches, page tables and the clock's frequency have settled; gives the fastest call. */
static wpk_err warm_up(const struct wpk_measure_subject *subject, uint64_t *call_ns)
{
    uint64_t total = 0;
    *call_ns = UINT64_MAX;
    for (int i = 0; i < WARM_UP_CALLS_MAX && total < WARM_UP_NS; i++) {
        uint64_t ns = 0;
        wpk_err err = time_calls(subject, 1, &ns);
        if (err != WPK_OK) {
            return err;
        }
        total += ns;
        *call_ns = ns < *call_ns ? ns : *call_ns;
    }
    return WPK_OK;
}

/* Something is evicted before each call. */
static bool evicts(const struct wpk_measure_subject *subject, const struct wpk_policy *policy)
{
    return policy->conditions != WPK_CONDITIONS_WARM && !subject->rotates;
}

static int calibrate(const struct wpk_measure_subject *subject, const struct wpk_policy *policy,
                     uint64_t call_ns)
{
    if (evicts(subject, policy)) {
        return 1;
    }
    /* Long enough that time_ns_min fits into the samples we can keep. */
    uint64_t wanted = policy->time_ns_min / (WPK_SAMPLES_MAX * 3 / 4);
    wanted = wanted < SAMPLE_NS_MIN ? SAMPLE_NS_MIN : wanted;
    uint64_t repeat = (wanted + call_ns) / (call_ns > 0 ? call_ns : 1);
    repeat = call_ns >= wanted ? 1 : repeat;
    return (int)(repeat > REPEAT_COUNT_MAX ? REPEAT_COUNT_MAX : repeat);
}

/* `unit_ns`: what the incumbent is multiples of; `call_ns`: fastest call of the warm-up. */
static bool is_raced_out(const struct wpk_policy *policy, double incumbent, uint64_t unit_ns,
                         uint64_t call_ns, const struct wpk_timing *timing)
{
    double limit = incumbent * (double)unit_ns * policy->race_ratio;
    uint64_t fastest = timing->min_ns < call_ns ? timing->min_ns : call_ns;
    if (limit <= 0) {
        return false;
    }
    return (double)fastest > limit * RACE_FAR ||
           (timing->sample_count >= RACE_SAMPLES_MIN && (double)timing->min_ns > limit);
}

/* The time that a policy asks for, evictions included. */
static double wanted_ns(const struct wpk_measure_subject *subject, const struct wpk_policy *policy)
{
    return (double)policy->time_ns_min * (evicts(subject, policy) ? COLD_TIME_FACTOR : 1);
}

static bool is_enough(const struct wpk_measure_subject *subject, const struct wpk_policy *policy,
                      const struct wpk_timing *timing, uint64_t total_ns)
{
    double time_ns = wanted_ns(subject, policy);
    if (timing->sample_count == WPK_SAMPLES_MAX) {
        return true;
    }
    if (timing->sample_count >= RACE_SAMPLES_MIN && (double)total_ns >= time_ns * TIME_FACTOR_MAX) {
        return true;
    }
    return timing->sample_count >= policy->sample_count && (double)total_ns >= time_ns;
}

/* Warm up and calibrate; gives the fastest call. */
static wpk_err begin(const struct wpk_measure_subject *subject, const struct wpk_policy *policy,
                     struct wpk_timing *timing, uint64_t *call_ns)
{
    WPK_ASSERT(policy->conditions == WPK_CONDITIONS_WARM || subject->cool != NULL);
    bool rotates = policy->conditions != WPK_CONDITIONS_WARM && subject->rotates;
    wpk_err err = rotates ? subject->cool(subject->user, policy->conditions) : WPK_OK;
    err = err == WPK_OK ? warm_up(subject, call_ns) : err;
    *timing = (struct wpk_timing){.repeat_count = calibrate(subject, policy, *call_ns),
                                  .min_ns = UINT64_MAX};
    return err;
}

/* `settle`: another kernel has just run. */
static wpk_err take_sample(const struct wpk_measure_subject *subject,
                           const struct wpk_policy *policy, bool settle, struct wpk_timing *timing)
{
    uint64_t ns = 0;
    wpk_err err = WPK_OK;
    if (evicts(subject, policy)) {
        err = subject->cool(subject->user, policy->conditions);
    } else if (settle) {
        err = time_calls(subject, 1, &ns);
    }
    err = err == WPK_OK ? time_calls(subject, timing->repeat_count, &ns) : err;
    if (err != WPK_OK) {
        return err;
    }
    uint64_t repeat = (uint64_t)timing->repeat_count;
    uint64_t each = (ns + repeat / 2) / repeat;
    timing->sample_ns[timing->sample_count++] = each;
    timing->min_ns = each < timing->min_ns ? each : timing->min_ns;
    return WPK_OK;
}

/* One sample of each. The kernel that ran last finds its own data in the caches: the two take the
 * first place in turns. */
static wpk_err take_pair(const struct wpk_measure_subject *subject,
                         const struct wpk_measure_subject *anchor, const struct wpk_policy *policy,
                         bool anchor_first, struct wpk_timing *timing, struct wpk_timing *beside)
{
    if (anchor == NULL) {
        return take_sample(subject, policy, false, timing);
    }
    wpk_err err = anchor_first ? take_sample(anchor, policy, false, beside)
                               : take_sample(subject, policy, false, timing);
    if (err != WPK_OK) {
        return err;
    }
    return anchor_first ? take_sample(subject, policy, true, timing)
                        : take_sample(anchor, policy, true, beside);
}

/* The values that a sample changes, kept so that it can be dropped. */
struct mark {
    int sample_count;
    uint64_t min_ns;
};

static struct mark mark_of(const struct wpk_timing *timing)
{
    return (struct mark){timing->sample_count, timing->min_ns};
}

static void drop_sample(struct wpk_timing *timing, struct mark mark)
{
    timing->sample_count = mark.sample_count;
    timing->min_ns = mark.min_ns;
}

/* The scheduler's interruptions of the process so far. */
struct unrest {
    uint64_t preemptions;
    uint64_t waited_ns;
};

static struct unrest unrest_of(const struct wpk_measure_subject *subject)
{
    return (struct unrest){
        .preemptions = subject->preemptions != NULL ? subject->preemptions(subject->user) : 0,
        .waited_ns = subject->waited_ns != NULL ? subject->waited_ns(subject->user) : 0};
}

static bool is_disturbed(const struct wpk_measure_subject *subject, struct unrest before,
                         uint64_t pair_ns)
{
    struct unrest now = unrest_of(subject);
    return now.preemptions != before.preemptions ||
           (double)(now.waited_ns - before.waited_ns) > (double)pair_ns * WAITED_SHARE_MAX;
}

static double median_of_real(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), wpk_real_compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void summarize_pairs(const struct wpk_timing *anchor, struct wpk_pair *pair)
{
    double ratios[WPK_SAMPLES_MAX];
    int count = pair->timing.sample_count;
    WPK_ASSERT(count == anchor->sample_count);
    for (int i = 0; i < count; i++) {
        uint64_t anchor_ns = anchor->sample_ns[i] > 0 ? anchor->sample_ns[i] : 1;
        ratios[i] = (double)pair->timing.sample_ns[i] / (double)anchor_ns;
    }
    pair->anchor_ns = anchor->median_ns;
    pair->ratio = median_of_real(ratios, count);
    for (int i = 0; i < count; i++) {
        ratios[i] = fabs(ratios[i] - pair->ratio);
    }
    pair->ratio_mad = median_of_real(ratios, count);
}

wpk_err wpk_measure_pair(const struct wpk_measure_subject *subject,
                         const struct wpk_measure_subject *anchor, const struct wpk_policy *policy,
                         double incumbent, struct wpk_pair *out)
{
    WPK_ASSERT(policy->time_ns_min > 0);
    WPK_ASSERT(policy->sample_count > 0 && policy->sample_count <= WPK_SAMPLES_MAX);
    struct wpk_pair pair = {0};
    struct wpk_timing beside = {.min_ns = 1};
    uint64_t call_ns = 0;
    wpk_err err = anchor != NULL ? begin(anchor, policy, &beside, &call_ns) : WPK_OK;
    err = err == WPK_OK ? begin(subject, policy, &pair.timing, &call_ns) : err;
    uint64_t begun = wpk_clock_now_ns(subject->clock);
    uint64_t total = 0;
    int retries = 0;
    bool anchor_first = false, disturbed = false;
    while (err == WPK_OK && !pair.timing.censored &&
           !is_enough(subject, policy, &pair.timing, total)) {
        bool settles = (double)total < wanted_ns(subject, policy) * TIME_FACTOR_MAX;
        if (disturbed && settles && !evicts(subject, policy)) {
            /* Other processes ran during the disturbance, and the caches are cold. */
            uint64_t fastest_ns;
            err = warm_up(anchor_first && anchor != NULL ? anchor : subject, &fastest_ns);
            if (err != WPK_OK) {
                break;
            }
        }
        const struct mark own = mark_of(&pair.timing), other = mark_of(&beside);
        const struct unrest before = unrest_of(subject);
        uint64_t spent = wpk_clock_now_ns(subject->clock) - begun;
        err = take_pair(subject, anchor, policy, anchor_first, &pair.timing, &beside);
        anchor_first = !anchor_first;
        total = wpk_clock_now_ns(subject->clock) - begun;
        disturbed = is_disturbed(subject, before, total - spent);
        pair.timing.disturbed_count += disturbed;
        if (disturbed && (double)total < wanted_ns(subject, policy) * TIME_FACTOR_MAX) {
            drop_sample(&pair.timing, own);
            drop_sample(&beside, other);
            continue;
        }
        bool throttled =
            err == WPK_OK && subject->throttled != NULL && subject->throttled(subject->user);
        if (throttled && retries < THROTTLED_RETRIES_MAX) {
            drop_sample(&pair.timing, own);
            drop_sample(&beside, other);
            subject->pause(subject->user, THROTTLED_PAUSE_NS);
            begun = wpk_clock_now_ns(subject->clock) - spent;
            total = spent;
            retries++;
            continue;
        }
        pair.timing.throttled_count += throttled;
        pair.timing.censored =
            is_raced_out(policy, incumbent, beside.min_ns, call_ns, &pair.timing);
    }
    if (err != WPK_OK) {
        return err;
    }
    wpk_measure_summarize(&pair.timing);
    if (anchor != NULL) {
        wpk_measure_summarize(&beside);
        summarize_pairs(&beside, &pair);
    }
    *out = pair;
    return WPK_OK;
}

wpk_err wpk_measure(const struct wpk_measure_subject *subject, const struct wpk_policy *policy,
                    uint64_t incumbent_ns, struct wpk_timing *out)
{
    struct wpk_pair alone;
    wpk_err err = wpk_measure_pair(subject, NULL, policy, (double)incumbent_ns, &alone);
    if (err == WPK_OK) {
        *out = alone.timing;
    }
    return err;
}

bool wpk_measure_beats(const struct wpk_record *record, uint64_t incumbent_ns,
                       double incumbent_ratio)
{
    if (record->anchor_ratio > 0 && incumbent_ratio > 0) {
        return record->anchor_ratio < incumbent_ratio;
    }
    return incumbent_ns == 0 || record->timing.median_ns < incumbent_ns;
}

/* Of an even number, the mean of the middle two. */
static uint64_t median_of(uint64_t *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), wpk_u64_compare);
    uint64_t low = values[(count - 1) / 2];
    uint64_t high = values[count / 2];
    return low + (high - low) / 2;
}

void wpk_measure_summarize(struct wpk_timing *timing)
{
    WPK_ASSERT(timing->sample_count > 0 && timing->sample_count <= WPK_SAMPLES_MAX);
    uint64_t sorted[WPK_SAMPLES_MAX];
    int count = timing->sample_count;
    memcpy(sorted, timing->sample_ns, (size_t)count * sizeof(sorted[0]));
    timing->median_ns = median_of(sorted, count);
    timing->min_ns = sorted[0];
    for (int i = 0; i < count; i++) {
        uint64_t value = timing->sample_ns[i];
        sorted[i] =
            value > timing->median_ns ? value - timing->median_ns : timing->median_ns - value;
    }
    timing->mad_ns = median_of(sorted, count);
}
