/* SPDX-License-Identifier: Apache-2.0 */
/* Batches on a machine that drifts and scatters as the test says, by a clock turned by hand. */
#include "common/rng.h"
#include "tests/clock_fake.h"
#include "worker/runner/run_batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CALL_NS (2 * WPK_NS_PER_MS) /* long enough for a sample of its own */

struct fake {
    struct wpk_clock_fake clock;
    uint64_t extra_ns; /* of every second call */
    int noisy_until;   /* call at which that ends; 0: never */
    int call_count;
    int fail_at; /* call that fails; 0: none */
};

/* Times that the sentinel returns, run after run; the last value repeats. */
static const uint64_t *sentinel_times;
static int sentinel_count;

static uint64_t run_sentinel(void)
{
    uint64_t now = *sentinel_times;
    sentinel_count++;
    sentinel_times += sentinel_times[1] != 0;
    return now;
}

static wpk_err run(void *user)
{
    struct fake *fake = user;
    fake->call_count++;
    if (fake->call_count == fake->fail_at) {
        return WPK_ENOMEM;
    }
    bool noisy = fake->noisy_until == 0 || fake->call_count < fake->noisy_until;
    uint64_t extra = noisy && fake->call_count % 2 == 0 ? fake->extra_ns : 0;
    wpk_clock_fake_advance(&fake->clock, CALL_NS + extra);
    return WPK_OK;
}

static wpk_err measure(struct fake *fake, uint64_t incumbent_ns, const uint64_t *sentinel,
                       struct wpk_run_batch *batch)
{
    const struct wpk_policy unset = {.race_ratio = 1.5};
    struct wpk_policy policy = wpk_measure_policy(&unset);
    wpk_clock_fake_init(&fake->clock, 1000, 0);
    const struct wpk_measure_subject subject = {
        .run = run, .user = fake, .clock = &fake->clock.clock};
    sentinel_times = sentinel;
    sentinel_count = 0;
    return wpk_run_batch_measure(&subject, NULL, &policy, (double)incumbent_ns, run_sentinel,
                                 batch);
}

static void expect_text(const struct wpk_run_batch *batch, const char *part)
{
    char text[256] = "unset";
    wpk_run_batch_describe(batch, text, sizeof(text));
    assert_int_equal(text[0] == '\0', wpk_run_batch_is_steady(batch));
    assert_non_null(strstr(text, part));
}

static void test_steady_machine_is_measured_once(void **state)
{
    (void)state;
    struct fake fake = {0};
    struct wpk_run_batch batch;
    assert_int_equal(measure(&fake, 0, (const uint64_t[]){1000, 1050, 0}, &batch), WPK_OK);
    assert_int_equal(sentinel_count, 2);
    assert_true(wpk_run_batch_is_steady(&batch));
    assert_int_equal(batch.pair.timing.median_ns, CALL_NS);
    expect_text(&batch, "");
}

static void test_drift_that_ends(void **state)
{
    (void)state;
    struct fake fake = {0};
    struct wpk_run_batch batch;
    assert_int_equal(measure(&fake, 0, (const uint64_t[]){1000, 1500, 1500, 1480, 0}, &batch),
                     WPK_OK);
    assert_int_equal(sentinel_count, 4);
    assert_true(wpk_run_batch_is_steady(&batch));
    assert_true(batch.drift < 0.02);
}

/* It stays bounded, keeps the better one whichever it was, and does not pass for steady. */
static void test_drift_that_stays(void **state)
{
    (void)state;
    static const uint64_t first_better[] = {1000, 1200, 1000, 1500, 0};
    static const uint64_t second_better[] = {1500, 1000, 1200, 1000, 0};
    const uint64_t *const cases[] = {first_better, second_better};
    for (int i = 0; i < 2; i++) {
        struct fake fake = {0};
        struct wpk_run_batch batch;
        assert_int_equal(measure(&fake, 0, cases[i], &batch), WPK_OK);
        assert_int_equal(sentinel_count, 4);
        assert_true(batch.drift > 0.19 && batch.drift < 0.21);
        assert_false(wpk_run_batch_is_steady(&batch));
        expect_text(&batch, "drifted by 20 %");
    }
}

static void test_scattered_samples(void **state)
{
    (void)state;
    static const uint64_t still[] = {1000, 0};
    struct fake fake = {.extra_ns = CALL_NS};
    struct wpk_run_batch batch;
    assert_int_equal(measure(&fake, 0, still, &batch), WPK_OK);
    assert_int_equal(sentinel_count, 4);
    assert_false(wpk_run_batch_is_steady(&batch));
    expect_text(&batch, "scattered by 33 %");
    fake = (struct fake){.extra_ns = CALL_NS, .noisy_until = 11};
    assert_int_equal(measure(&fake, 0, still, &batch), WPK_OK);
    assert_true(wpk_run_batch_is_steady(&batch));
    assert_int_equal(batch.pair.timing.mad_ns, 0);
}

/* A raced-out candidate needs no exact time, and three samples say little about noise. */
static void test_raced_out_is_not_repeated(void **state)
{
    (void)state;
    struct fake fake = {0};
    struct wpk_run_batch batch;
    assert_int_equal(measure(&fake, CALL_NS / 2, (const uint64_t[]){1000, 1500, 0}, &batch),
                     WPK_OK);
    assert_int_equal(sentinel_count, 2);
    assert_true(batch.pair.timing.censored && wpk_run_batch_is_steady(&batch));
}

static void test_failure_leaves_result_alone(void **state)
{
    (void)state;
    for (int at = 1; at < 20; at++) {
        struct fake fake = {.fail_at = at};
        struct wpk_run_batch batch = {.drift = 77};
        assert_int_equal(measure(&fake, 0, (const uint64_t[]){1000, 1500, 0}, &batch), WPK_ENOMEM);
        assert_true(batch.drift == 77);
    }
}

/* ---- a machine with two states */

#define KERNELS 40
#define SLOW_PERCENT 190

/* Of all that runs: for a while each call takes 1.9 times as long. */
struct machine {
    struct wpk_clock_fake clock;
    struct wpk_rng rng;
    bool slow;
    uint64_t until_ns;
};

static struct machine machine;

static uint64_t take_time(uint64_t ns)
{
    if (machine.clock.now_ns >= machine.until_ns) {
        machine.slow = wpk_rng_chance(&machine.rng, 0.5);
        machine.until_ns =
            machine.clock.now_ns + WPK_NS_PER_MS * (1 + wpk_rng_below(&machine.rng, 60));
    }
    ns = machine.slow ? ns * SLOW_PERCENT / 100 : ns;
    wpk_clock_fake_advance(&machine.clock, ns);
    return ns;
}

static uint64_t run_its_sentinel(void)
{
    return take_time(50000);
}

static wpk_err run_kernel(void *user)
{
    take_time(*(const uint64_t *)user);
    return WPK_OK;
}

/* How many of the five fastest, which come first, are not among the first five of `fitness`. */
static int count_missed(const double fitness[KERNELS])
{
    int missed = 0;
    for (int i = 0; i < 5; i++) {
        int rank = 0;
        for (int k = 0; k < KERNELS; k++) {
            rank += fitness[k] < fitness[i];
        }
        missed += rank >= 5;
    }
    return missed;
}

/* Each kernel is 3 % slower than the one before. Their ratios to an anchor say so; their times do
 * not, divided by a sentinel's of before or after as they may be. */
static void test_two_states(void **state)
{
    (void)state;
    const struct wpk_policy unset = {0};
    struct wpk_policy policy = wpk_measure_policy(&unset);
    uint64_t anchor_ns = 170000;
    uint64_t kernel_ns[KERNELS] = {100000};
    double by_sentinel[KERNELS];
    double by_anchor[KERNELS];
    wpk_clock_fake_init(&machine.clock, 1000, 0);
    wpk_rng_seed(&machine.rng, 11);
    const struct wpk_measure_subject anchor = {
        .run = run_kernel, .user = &anchor_ns, .clock = &machine.clock.clock};
    for (int k = 0; k < KERNELS; k++) {
        struct wpk_run_batch batch;
        struct wpk_measure_subject subject = anchor;
        kernel_ns[k] = k > 0 ? kernel_ns[k - 1] * 103 / 100 : kernel_ns[k];
        subject.user = &kernel_ns[k];
        double before = (double)run_its_sentinel();
        assert_int_equal(
            wpk_run_batch_measure(&subject, &anchor, &policy, 0, run_its_sentinel, &batch), WPK_OK);
        by_sentinel[k] = (double)batch.pair.timing.median_ns / before;
        by_anchor[k] = batch.pair.ratio;
        double truth = (double)kernel_ns[k] / (double)anchor_ns;
        assert_true(by_anchor[k] > truth * 0.99 && by_anchor[k] < truth * 1.01);
    }
    assert_true(count_missed(by_sentinel) > 0);
    assert_int_equal(count_missed(by_anchor), 0);
}

/* Raced by its ratio: however slow the machine is, and though no time in ns was given. */
static void test_race_with_an_anchor(void **state)
{
    (void)state;
    const struct wpk_policy unset = {.race_ratio = 1.3};
    struct wpk_policy policy = wpk_measure_policy(&unset);
    uint64_t anchor_ns = 100000;
    uint64_t kernel_ns = 150000;
    struct wpk_pair pair;
    wpk_clock_fake_init(&machine.clock, 1000, 0);
    wpk_rng_seed(&machine.rng, 12);
    const struct wpk_measure_subject anchor = {
        .run = run_kernel, .user = &anchor_ns, .clock = &machine.clock.clock};
    struct wpk_measure_subject subject = anchor;
    subject.user = &kernel_ns;
    machine = (struct machine){.clock = machine.clock, .slow = true, .until_ns = UINT64_MAX};
    assert_int_equal(wpk_measure_pair(&subject, &anchor, &policy, 1, &pair), WPK_OK);
    assert_true(pair.timing.censored);
    assert_int_equal(pair.timing.sample_count, 3);
    assert_int_equal(wpk_measure_pair(&subject, &anchor, &policy, 1.4, &pair), WPK_OK);
    assert_false(pair.timing.censored);
    assert_int_equal(pair.anchor_ns, anchor_ns * SLOW_PERCENT / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady_machine_is_measured_once),
        cmocka_unit_test(test_drift_that_ends),
        cmocka_unit_test(test_drift_that_stays),
        cmocka_unit_test(test_scattered_samples),
        cmocka_unit_test(test_raced_out_is_not_repeated),
        cmocka_unit_test(test_failure_leaves_result_alone),
        cmocka_unit_test(test_two_states),
        cmocka_unit_test(test_race_with_an_anchor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
