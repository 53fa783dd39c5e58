/* SPDX-License-Identifier: Apache-2.0 */
/* Measurement by a clock that is turned by hand: a call advances it by what the kernel "takes". */
#include "tests/clock_fake.h"
#include "worker/measure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct fake {
    struct wpk_clock_fake clock;
    uint64_t first_ns; /* of the first call, which is cold */
    uint64_t call_ns;
    uint64_t jitter_ns; /* added to every fourth call */
    int call_count;
    uint64_t cool_ns; /* what evicting takes */
    int cool_count;
    enum wpk_conditions conditions; /* last asked for */
    bool cool_fails;
    int fail_at;         /* call that fails; 0: none */
    int preempted_every; /* a call of so many loses its CPU for a while; 0: none does */
    uint64_t preemption_count;
    int cold_calls; /* so many after that find cold caches, and take half as long again */
    int cold_left;
    int waits_every;    /* a call of so many waits before it begins; 0: none does */
    uint64_t wait_ns;   /* so long */
    uint64_t waited_ns; /* so far */
    int throttled;      /* questions for it that are answered with yes */
    uint64_t paused_ns;
};

static wpk_err run(void *user)
{
    struct fake *fake = user;
    fake->call_count++;
    if (fake->call_count == fake->fail_at) {
        return WPK_ENOMEM;
    }
    uint64_t ns = fake->call_count == 1 ? fake->first_ns : fake->call_ns;
    if (fake->call_count % 4 == 0) {
        ns += fake->jitter_ns;
    }
    if (fake->cold_left > 0) {
        ns += ns / 2;
        fake->cold_left--;
    }
    if (fake->preempted_every > 0 && fake->call_count % fake->preempted_every == 0) {
        ns += 4 * WPK_NS_PER_MS;
        fake->cold_left = fake->cold_calls;
        fake->preemption_count++;
    }
    if (fake->waits_every > 0 && fake->call_count % fake->waits_every == 0) {
        ns += fake->wait_ns;
        fake->waited_ns += fake->wait_ns;
    }
    wpk_clock_fake_advance(&fake->clock, ns);
    return WPK_OK;
}

static uint64_t waited(void *user)
{
    const struct fake *fake = user;
    return fake->waited_ns;
}

static uint64_t preemptions(void *user)
{
    const struct fake *fake = user;
    return fake->preemption_count;
}

static wpk_err cool(void *user, enum wpk_conditions conditions)
{
    struct fake *fake = user;
    fake->cool_count++;
    fake->conditions = conditions;
    wpk_clock_fake_advance(&fake->clock, fake->cool_ns);
    return fake->cool_fails ? WPK_ESYSTEM : WPK_OK;
}

static wpk_err measure(struct fake *fake, struct wpk_policy policy, uint64_t incumbent_ns,
                       struct wpk_timing *timing)
{
    wpk_clock_fake_init(&fake->clock, 1000, 0);
    const struct wpk_measure_subject subject = {.run = run,
                                                .cool = cool,
                                                .preemptions = preemptions,
                                                .waited_ns = waited,
                                                .user = fake,
                                                .clock = &fake->clock.clock};
    policy = wpk_measure_policy(&policy);
    return wpk_measure(&subject, &policy, incumbent_ns, timing);
}

static void test_short_kernel_is_repeated(void **state)
{
    (void)state;
    struct fake fake = {.first_ns = 500000, .call_ns = 10000};
    struct wpk_timing timing = {0};
    assert_int_equal(measure(&fake, (struct wpk_policy){0}, 0, &timing), WPK_OK);
    assert_true((uint64_t)timing.repeat_count * 10000 >= WPK_NS_PER_MS);
    assert_true((uint64_t)timing.repeat_count * 10000 < 2 * WPK_NS_PER_MS);
    assert_int_equal(timing.median_ns, 10000);
    assert_int_equal(timing.min_ns, 10000);
    assert_int_equal(timing.mad_ns, 0);
    assert_false(timing.censored);
    uint64_t total = (uint64_t)timing.sample_count * (uint64_t)timing.repeat_count * 10000;
    assert_true(total >= 20 * WPK_NS_PER_MS && total < 25 * WPK_NS_PER_MS);
}

static void test_slow_kernel_gets_fewer_samples(void **state)
{
    (void)state;
    struct fake fake = {.first_ns = 100 * WPK_NS_PER_MS, .call_ns = 90 * WPK_NS_PER_MS};
    struct wpk_timing timing = {0};
    assert_int_equal(measure(&fake, (struct wpk_policy){0}, 0, &timing), WPK_OK);
    assert_int_equal(timing.repeat_count, 1);
    assert_int_equal(timing.sample_count, 3);
}

static void test_race(void **state)
{
    (void)state;
    struct fake fake = {.first_ns = 200000, .call_ns = 200000};
    struct wpk_timing timing = {0};
    struct wpk_policy policy = {.race_ratio = 1.5};
    assert_int_equal(measure(&fake, policy, 100000, &timing), WPK_OK);
    assert_true(timing.censored);
    assert_int_equal(timing.sample_count, 3);
    fake = (struct fake){.first_ns = 400000, .call_ns = 400000};
    assert_int_equal(measure(&fake, policy, 100000, &timing), WPK_OK);
    assert_true(timing.censored);
    assert_int_equal(timing.sample_count, 1); /* slower by far */
    fake = (struct fake){.first_ns = 200000, .call_ns = 149000};
    assert_int_equal(measure(&fake, policy, 100000, &timing), WPK_OK);
    assert_false(timing.censored);
    fake = (struct fake){.first_ns = 200000, .call_ns = 200000};
    assert_int_equal(measure(&fake, (struct wpk_policy){0}, 100000, &timing), WPK_OK);
    assert_false(timing.censored);
}

/* A busy machine: two samples of four lose their CPU. */
static void test_preempted_samples_do_not_count(void **state)
{
    (void)state;
    struct fake fake = {.first_ns = 900000, .call_ns = 900000, .preempted_every = 4};
    struct wpk_timing timing = {0};
    assert_int_equal(measure(&fake, (struct wpk_policy){0}, 0, &timing), WPK_OK);
    assert_true(timing.sample_count >= 10);
    assert_int_equal(timing.median_ns, 900000);
    assert_int_equal(timing.mad_ns, 0);
}

/* Others used the caches while the process was stopped: a container under a quota. */
static void test_samples_after_a_pause_are_warm(void **state)
{
    (void)state;
    struct fake fake = {
        .first_ns = 900000, .call_ns = 900000, .preempted_every = 12, .cold_calls = 3};
    struct wpk_timing timing = {0};
    assert_int_equal(measure(&fake, (struct wpk_policy){0}, 0, &timing), WPK_OK);
    assert_true(timing.disturbed_count > 0);
    for (int i = 0; i < timing.sample_count; i++) {
        assert_int_equal(timing.sample_ns[i], 900000);
    }
}

/* A thread that waits for a CPU although nobody took it away: it was woken late. */
static void test_samples_that_waited_do_not_count(void **state)
{
    (void)state;
    struct fake fake = {.first_ns = 900000, .call_ns = 900000, .waits_every = 4, .wait_ns = 40000};
    struct wpk_timing timing = {0};
    assert_int_equal(measure(&fake, (struct wpk_policy){0}, 0, &timing), WPK_OK);
    assert_int_equal(timing.median_ns, 900000);
    assert_int_equal(timing.mad_ns, 0);
    assert_true(timing.disturbed_count > 3);
    /* Threads that wake each other wait a little. */
    fake = (struct fake){.first_ns = 900000, .call_ns = 900000, .waits_every = 1, .wait_ns = 5000};
    assert_int_equal(measure(&fake, (struct wpk_policy){0}, 0, &timing), WPK_OK);
    assert_int_equal(timing.disturbed_count, 0);
    /* If every sample waited, the samples count in the end, and the record has their number. */
    fake = (struct fake){.first_ns = 900000, .call_ns = 900000, .waits_every = 1, .wait_ns = 90000};
    assert_int_equal(measure(&fake, (struct wpk_policy){0}, 0, &timing), WPK_OK);
    assert_int_equal(timing.median_ns, 990000);
    assert_true(timing.disturbed_count > timing.sample_count);
}

static void test_preemption_prolongs_within_limits(void **state)
{
    (void)state;
    struct fake fake = {.first_ns = 900000, .call_ns = 900000, .preempted_every = 1};
    struct wpk_timing timing = {0};
    assert_int_equal(measure(&fake, (struct wpk_policy){0}, 0, &timing), WPK_OK);
    assert_true(timing.sample_count >= 3);
    assert_true(timing.median_ns > 2 * WPK_NS_PER_MS);
    assert_true(fake.clock.now_ns < 500 * WPK_NS_PER_MS);
}

static void test_cold_conditions_evict_before_each_sample(void **state)
{
    (void)state;
    for (int i = WPK_CONDITIONS_WARM + 1; i < WPK_CONDITIONS_COUNT; i++) {
        struct fake fake = {.first_ns = 10000, .call_ns = 10000};
        struct wpk_timing timing = {0};
        struct wpk_policy policy = {.conditions = (enum wpk_conditions)i, .time_ns_min = 100000};
        assert_int_equal(measure(&fake, policy, 0, &timing), WPK_OK);
        assert_int_equal(timing.repeat_count, 1);
        assert_int_equal(fake.cool_count, timing.sample_count);
        assert_int_equal(fake.conditions, i);
    }
}

static wpk_err time_calls(void *user, int count, uint64_t *ns)
{
    struct fake *fake = user;
    fake->call_count += count;
    *ns = (uint64_t)count * fake->call_ns;
    wpk_clock_fake_advance(&fake->clock, *ns);
    return WPK_OK;
}

/* Calls that rotate are told of the conditions once, and samples have as many as warm ones. */
static void test_calls_that_rotate(void **state)
{
    (void)state;
    struct fake fake = {.call_ns = 10000};
    struct wpk_policy cold = {.conditions = WPK_CONDITIONS_COLD},
                      policy = wpk_measure_policy(&cold);
    struct wpk_timing timing = {0};
    struct wpk_measure_subject subject = {.cool = cool, .rotates = true, .time = time_calls};
    wpk_clock_fake_init(&fake.clock, 1000, 0);
    subject.user = &fake;
    subject.clock = &fake.clock.clock;
    assert_int_equal(wpk_measure(&subject, &policy, 0, &timing), WPK_OK);
    assert_int_equal(fake.cool_count, 1);
    assert_int_equal(fake.conditions, WPK_CONDITIONS_COLD);
    assert_true(timing.repeat_count >= 100);
    assert_int_equal(timing.median_ns, 10000);
}

static bool throttled(void *user)
{
    struct fake *fake = user;
    return fake->throttled-- > 0;
}

static void wait_for(void *user, uint64_t ns)
{
    struct fake *fake = user;
    fake->paused_ns += ns;
    wpk_clock_fake_advance(&fake->clock, ns);
}

/* Samples of a throttled GPU are taken again, ten times at most, and pauses are no time spent. */
static void test_throttled_samples(void **state)
{
    (void)state;
    const struct {
        int throttled, retries, counted;
    } cases[] = {{0, 0, 0}, {4, 4, 0}, {10, 10, 0}, {12, 10, 2}, {1000, 10, 20}};
    struct wpk_policy unset = {0}, policy = wpk_measure_policy(&unset);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake fake = {.call_ns = 10000, .throttled = cases[i].throttled};
        struct wpk_measure_subject subject = {
            .time = time_calls, .throttled = throttled, .pause = wait_for};
        struct wpk_pair pair = {0};
        wpk_clock_fake_init(&fake.clock, 1000, 0);
        subject.user = &fake;
        subject.clock = &fake.clock.clock;
        assert_int_equal(wpk_measure_pair(&subject, NULL, &policy, 0, &pair), WPK_OK);
        assert_int_equal(fake.paused_ns / WPK_NS_PER_MS, 50 * cases[i].retries);
        assert_int_equal(pair.timing.throttled_count, cases[i].counted);
        assert_int_equal(pair.timing.sample_count, 20);
    }
}

static void test_warm_conditions_evict_nothing(void **state)
{
    (void)state;
    struct fake fake = {.first_ns = 10000, .call_ns = 10000};
    struct wpk_timing timing = {0};
    assert_int_equal(measure(&fake, (struct wpk_policy){0}, 0, &timing), WPK_OK);
    assert_int_equal(fake.cool_count, 0);
}

/* Evicting counts as time spent, not as time of the kernel. */
static void test_evicting_bounds_the_samples(void **state)
{
    (void)state;
    struct wpk_timing timing = {0};
    struct wpk_policy policy = {.conditions = WPK_CONDITIONS_COLD_CONSTANTS};
    struct fake fake = {.first_ns = 100000, .call_ns = 100000, .cool_ns = 3 * WPK_NS_PER_MS};
    assert_int_equal(measure(&fake, policy, 0, &timing), WPK_OK);
    assert_int_equal(timing.sample_count, 17); /* of 3.1 ms, until 50 ms are over */
    assert_int_equal(timing.median_ns, 100000);
    fake = (struct fake){.first_ns = 100000, .call_ns = 100000, .cool_ns = 20 * WPK_NS_PER_MS};
    assert_int_equal(measure(&fake, policy, 0, &timing), WPK_OK);
    assert_int_equal(timing.sample_count, 10);
}

static void test_failed_eviction_is_no_time(void **state)
{
    (void)state;
    struct fake fake = {.first_ns = 10000, .call_ns = 10000, .cool_fails = true};
    struct wpk_timing timing = {.sample_count = 77};
    struct wpk_policy policy = {.conditions = WPK_CONDITIONS_COLD};
    assert_int_equal(measure(&fake, policy, 0, &timing), WPK_ESYSTEM);
    assert_int_equal(timing.sample_count, 77);
}

static void test_samples_never_exceed_their_place(void **state)
{
    (void)state;
    struct fake fake = {.first_ns = 1000, .call_ns = 1000};
    struct wpk_timing timing = {0};
    struct wpk_policy policy = {.time_ns_min = 10 * WPK_NS_PER_S, .sample_count = 1000};
    assert_int_equal(measure(&fake, policy, 0, &timing), WPK_OK);
    assert_true(timing.sample_count <= WPK_SAMPLES_MAX);
    uint64_t total = (uint64_t)timing.sample_count * (uint64_t)timing.repeat_count * 1000;
    assert_true(total >= 10 * WPK_NS_PER_S);
}

/* Two kernels, each of which evicts what the other has in the caches. */
struct evicting {
    struct wpk_clock_fake *clock;
    const struct evicting **last; /* that ran */
    uint64_t call_ns;
    int call_count;
    struct busy *busy; /* of both; NULL: nothing disturbs them */
};

/* A machine on which another process comes between after every seventh call. */
struct busy {
    int call_count;
    uint64_t preemption_count;
};

static uint64_t preemptions_of_both(void *user)
{
    const struct evicting *self = user;
    return self->busy->preemption_count;
}

static wpk_err run_evicting(void *user)
{
    struct evicting *self = user;
    bool cold = *self->last != self;
    *self->last = self;
    self->call_count++;
    wpk_clock_fake_advance(self->clock, cold ? 3 * self->call_ns : self->call_ns);
    if (self->busy != NULL && ++self->busy->call_count % 7 == 0) {
        wpk_clock_fake_advance(self->clock, 4 * WPK_NS_PER_MS);
        self->busy->preemption_count++;
        *self->last = NULL; /* whoever ran meanwhile has evicted both */
    }
    return WPK_OK;
}

/* No cold call is in a sample, and no more calls are left out than there are changes. */
static void test_both_of_a_pair_are_warm(void **state)
{
    (void)state;
    struct wpk_clock_fake clock;
    const struct evicting *last = NULL;
    struct evicting slow = {.clock = &clock, .last = &last, .call_ns = 3 * WPK_NS_PER_MS};
    struct evicting fast = {.clock = &clock, .last = &last, .call_ns = 2 * WPK_NS_PER_MS};
    const struct wpk_measure_subject subject = {
        .run = run_evicting, .user = &fast, .clock = &clock.clock};
    const struct wpk_measure_subject anchor = {
        .run = run_evicting, .user = &slow, .clock = &clock.clock};
    const struct wpk_policy unset = {0};
    const struct wpk_policy policy = wpk_measure_policy(&unset);
    struct wpk_pair pair;
    wpk_clock_fake_init(&clock, 1000, 0);
    assert_int_equal(wpk_measure_pair(&subject, &anchor, &policy, 0, &pair), WPK_OK);
    assert_int_equal(pair.timing.sample_count, 10);
    assert_int_equal(pair.timing.median_ns, fast.call_ns);
    assert_int_equal(pair.timing.mad_ns, 0);
    assert_int_equal(pair.anchor_ns, slow.call_ns);
    assert_int_equal(fast.call_count + slow.call_count, 2 + 20 + 10);
}

/* A disturbed pair is taken again, and whichever of the two comes first then is warm. */
static void test_both_are_warm_after_a_pause(void **state)
{
    (void)state;
    struct wpk_clock_fake clock;
    struct busy busy = {.call_count = 0};
    const struct evicting *last = NULL;
    struct evicting one = {&clock, &last, 1200000, .busy = &busy};
    struct evicting other = one;
    const struct wpk_measure_subject subject = {.run = run_evicting,
                                                .preemptions = preemptions_of_both,
                                                .user = &one,
                                                .clock = &clock.clock};
    struct wpk_measure_subject anchor = subject;
    anchor.user = &other;
    const struct wpk_policy unset = {0};
    const struct wpk_policy policy = wpk_measure_policy(&unset);
    struct wpk_pair pair;
    wpk_clock_fake_init(&clock, 1000, 0);
    assert_int_equal(wpk_measure_pair(&subject, &anchor, &policy, 0, &pair), WPK_OK);
    assert_true(pair.timing.disturbed_count > 0);
    assert_int_equal(pair.timing.median_ns, 1200000);
    assert_int_equal(pair.anchor_ns, 1200000);
}

static void test_failure_leaves_result_alone(void **state)
{
    (void)state;
    for (int at = 1; at < 200; at += 33) {
        struct fake fake = {.first_ns = 100000, .call_ns = 100000, .fail_at = at};
        struct wpk_timing timing = {.sample_count = 77};
        assert_int_equal(measure(&fake, (struct wpk_policy){0}, 0, &timing), WPK_ENOMEM);
        assert_int_equal(timing.sample_count, 77);
    }
}

static void test_summary(void **state)
{
    (void)state;
    struct wpk_timing odd = {.sample_count = 5, .sample_ns = {9, 1, 5, 100, 6}};
    wpk_measure_summarize(&odd);
    assert_int_equal(odd.median_ns, 6);
    assert_int_equal(odd.min_ns, 1);
    assert_int_equal(odd.mad_ns, 3); /* of 3 5 1 94 0 */
    assert_int_equal(odd.sample_ns[3], 100);
    struct wpk_timing even = {.sample_count = 4, .sample_ns = {4, 2, 8, 6}};
    wpk_measure_summarize(&even);
    assert_int_equal(even.median_ns, 5);
    struct wpk_timing one = {.sample_count = 1, .sample_ns = {7}};
    wpk_measure_summarize(&one);
    assert_int_equal(one.median_ns, 7);
    assert_int_equal(one.mad_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_kernel_is_repeated),
        cmocka_unit_test(test_slow_kernel_gets_fewer_samples),
        cmocka_unit_test(test_race),
        cmocka_unit_test(test_preempted_samples_do_not_count),
        cmocka_unit_test(test_samples_after_a_pause_are_warm),
        cmocka_unit_test(test_samples_that_waited_do_not_count),
        cmocka_unit_test(test_preemption_prolongs_within_limits),
        cmocka_unit_test(test_cold_conditions_evict_before_each_sample),
        cmocka_unit_test(test_calls_that_rotate),
        cmocka_unit_test(test_throttled_samples),
        cmocka_unit_test(test_warm_conditions_evict_nothing),
        cmocka_unit_test(test_evicting_bounds_the_samples),
        cmocka_unit_test(test_failed_eviction_is_no_time),
        cmocka_unit_test(test_samples_never_exceed_their_place),
        cmocka_unit_test(test_both_of_a_pair_are_warm),
        cmocka_unit_test(test_both_are_warm_after_a_pause),
        cmocka_unit_test(test_failure_leaves_result_alone),
        cmocka_unit_test(test_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
