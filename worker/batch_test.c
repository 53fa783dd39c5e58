/* SPDX-License-Identifier: Apache-2.0 */
/* Batches on a machine that drifts and scatters as the test says, by a clock turned by hand. */
#include "worker/batch.h"

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

/* What the sentinel says, run after run; the last value stays. */
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
                       struct wpk_batch *batch)
{
    const struct wpk_policy unset = {.race_ratio = 1.5};
    struct wpk_policy policy = wpk_measure_policy(&unset);
    wpk_clock_fake_init(&fake->clock, 1000, 0);
    const struct wpk_measure_subject subject = {
        .run = run, .user = fake, .clock = &fake->clock.clock};
    sentinel_times = sentinel;
    sentinel_count = 0;
    return wpk_batch_measure(&subject, &policy, incumbent_ns, run_sentinel, batch);
}

static void expect_text(const struct wpk_batch *batch, const char *part)
{
    char text[256] = "unset";
    wpk_batch_describe(batch, text, sizeof(text));
    assert_int_equal(text[0] == '\0', wpk_batch_is_steady(batch));
    assert_non_null(strstr(text, part));
}

static void test_steady_machine_is_measured_once(void **state)
{
    (void)state;
    struct fake fake = {0};
    struct wpk_batch batch;
    assert_int_equal(measure(&fake, 0, (const uint64_t[]){1000, 1050, 0}, &batch), WPK_OK);
    assert_int_equal(sentinel_count, 2);
    assert_true(wpk_batch_is_steady(&batch));
    assert_int_equal(batch.reference_ns, 1000);
    assert_int_equal(batch.timing.median_ns, CALL_NS);
    expect_text(&batch, "");
}

static void test_drift_that_ends(void **state)
{
    (void)state;
    struct fake fake = {0};
    struct wpk_batch batch;
    assert_int_equal(measure(&fake, 0, (const uint64_t[]){1000, 1500, 1500, 1480, 0}, &batch),
                     WPK_OK);
    assert_int_equal(sentinel_count, 4);
    assert_true(wpk_batch_is_steady(&batch));
    assert_int_equal(batch.reference_ns, 1480);
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
        struct wpk_batch batch;
        assert_int_equal(measure(&fake, 0, cases[i], &batch), WPK_OK);
        assert_int_equal(sentinel_count, 4);
        assert_true(batch.drift > 0.19 && batch.drift < 0.21);
        assert_false(wpk_batch_is_steady(&batch));
        expect_text(&batch, "drifted by 20 %");
    }
}

static void test_scattered_samples(void **state)
{
    (void)state;
    static const uint64_t still[] = {1000, 0};
    struct fake fake = {.extra_ns = CALL_NS};
    struct wpk_batch batch;
    assert_int_equal(measure(&fake, 0, still, &batch), WPK_OK);
    assert_int_equal(sentinel_count, 4);
    assert_false(wpk_batch_is_steady(&batch));
    expect_text(&batch, "scattered by 33 %");
    fake = (struct fake){.extra_ns = CALL_NS, .noisy_until = 11};
    assert_int_equal(measure(&fake, 0, still, &batch), WPK_OK);
    assert_true(wpk_batch_is_steady(&batch));
    assert_int_equal(batch.timing.mad_ns, 0);
}

/* Nobody wants its exact time, and three samples say little about noise. */
static void test_raced_out_is_not_repeated(void **state)
{
    (void)state;
    struct fake fake = {0};
    struct wpk_batch batch;
    assert_int_equal(measure(&fake, CALL_NS / 2, (const uint64_t[]){1000, 1500, 0}, &batch),
                     WPK_OK);
    assert_int_equal(sentinel_count, 2);
    assert_true(batch.timing.censored && wpk_batch_is_steady(&batch));
}

static void test_failure_leaves_result_alone(void **state)
{
    (void)state;
    for (int at = 1; at < 20; at++) {
        struct fake fake = {.fail_at = at};
        struct wpk_batch batch = {.reference_ns = 77};
        assert_int_equal(measure(&fake, 0, (const uint64_t[]){1000, 1500, 0}, &batch), WPK_ENOMEM);
        assert_int_equal(batch.reference_ns, 77);
    }
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
