/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/worker.h"

#include "tests/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* "device:problem:ratio ..." */
static bool judge(const char *text, char reason[WPK_REASON_MAX])
{
    struct wpk_comparisons comparisons = {0};
    struct wpk_worker worker = {.comparisons = &comparisons};
    int size = 0;
    unsigned device;
    unsigned problem;
    double ratio;
    for (; sscanf(text, " %u:%u:%lf%n", &device, &problem, &ratio, &size) == 3; text += size) {
        comparisons.items[comparisons.count++] = (struct wpk_comparison){device, problem, ratio};
    }
    return wpk_outlier_reason(&worker, reason);
}

static void who_departs_is_named(void **state)
{
    (void)state;
    char reason[WPK_REASON_MAX];
    assert_true(judge("1:1:10 1:2:12 2:3:9.5", reason));
    assert_string_equal(reason, "its times are 9.5 of those of 2 other workers of its class, for 3"
                                " operators");
    assert_true(judge("1:1:0.1 1:2:0.12 2:3:0.2 2:1:0.1", reason));
    assert_string_equal(reason, "its times are 0.2 of those of 2 other workers of its class, for 3"
                                " operators");
    assert_true(judge("1:1:10 1:2:12 2:3:9.5 3:1:3 4:1:1", reason)); /* 3 of 4 */
}

static void who_may_be_right_is_not(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "1:1:10 1:2:10 1:3:10",          /* one against one */
        "1:1:10 2:2:10 1:2:10",          /* two operators */
        "1:1:10 1:2:10 2:3:10 3:1:1",    /* two against one, and itself */
        "1:1:2.9 1:2:2.9 2:3:2.9",       /* noise */
        "1:1:10 1:2:10 2:3:0.1 2:4:0.1", /* of opposite kinds */
        "1:1:10 1:2:10 2:3:10 2:4:1",    /* it has agreed with the second */
        "1:1:10 1:2:10 2:4:1 2:3:10",
        "1:1:10 1:2:10 2:3:10 3:1:0.1 4:1:1",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char reason[WPK_REASON_MAX];
        if (judge(cases[i], reason)) {
            fail_msg("%s: %s", cases[i], reason);
        }
        assert_string_equal(reason, "");
    }
    char reason[WPK_REASON_MAX];
    assert_false(wpk_outlier_reason(&(struct wpk_worker){0}, reason));
}

static int join(struct wpk_fixture *s, const char *name)
{
    int worker = wpk_fixture_worker(s, name);
    struct wpk_hello *hello = &s->workers[worker].hello;
    snprintf(hello->providers[1].name, sizeof hello->providers[1].name, "vendor");
    hello->providers[1].vendor = true;
    hello->provider_count = 2;
    wpk_fixture_hello(s, worker);
    return worker;
}

/* The ratio that is remembered of two workers' times; 0: none. */
static double ratio_of(const struct wpk_fixture *s, const char *name, const char *other)
{
    const struct wpk_worker *worker = wpk_fixture_find_worker(s, name);
    const struct wpk_comparisons *all = worker->comparisons;
    for (uint32_t i = 0; all != NULL && i < all->count; i++) {
        if (all->items[i].device == wpk_fixture_find_worker(s, other)->device_hash) {
            return all->items[i].ratio;
        }
    }
    return 0;
}

static bool is_near(double a, double b)
{
    return a > 0.99 * b && a < 1.01 * b;
}

/* One times the vendor's, one the candidates, one them all, and the first the winner. */
static void what_is_timed_twice_is_compared(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int vendor = join(s, "vendor");
    int trials = join(s, "trials");
    int final = join(s, "final");
    wpk_fixture_submit_one(s, 1, 3);
    assert_int_equal(wpk_fixture_poll(s, vendor, 1), 1);
    assert_int_equal(wpk_fixture_poll(s, trials, 3), 3);
    wpk_fixture_result(s, vendor, WPK_OUTCOME_OK, 13000);
    for (uint64_t i = 0; i < 3; i++) {
        wpk_fixture_result(s, trials, WPK_OUTCOME_OK, 500 + i);
    }
    assert_int_equal(wpk_fixture_poll(s, final, 1), 1);
    assert_true(ratio_of(s, "final", "trials") == 0);
    wpk_fixture_final(s, final); /* 1000, 1100, 1200, and the vendor's 1300 */
    assert_true(is_near(ratio_of(s, "final", "trials"), 2));
    assert_true(is_near(ratio_of(s, "trials", "final"), 0.5));
    assert_true(is_near(ratio_of(s, "final", "vendor"), 0.1));
    assert_true(is_near(ratio_of(s, "vendor", "final"), 10));
    assert_int_equal(wpk_fixture_poll(s, vendor, 1), 1);
    const struct wpk_worker *slow = wpk_fixture_find_worker(s, "vendor");
    for (uint32_t problem = 2; problem <= 3; problem++) { /* as another one has found, too */
        slow->comparisons->items[slow->comparisons->count++] =
            (struct wpk_comparison){.device = 1, .problem = problem, .ratio = 10};
    }
    assert_false(slow->is_outlier);
    assert_int_equal(wpk_fixture_result(s, vendor, WPK_OUTCOME_OK, 4000), WPK_ACK_RECORDED);
    assert_true(slow->is_outlier);
    assert_true(wpk_fixture_logged(" warn fixture worker_outlier worker=vendor device="));
    assert_true(is_near(ratio_of(s, "vendor", "final"), 4)); /* nearer than before */
    assert_true(is_near(ratio_of(s, "final", "vendor"), 0.25));
    assert_true(ratio_of(s, "vendor", "trials") == 0);
    wpk_fixture_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_departs_is_named),
        cmocka_unit_test(who_may_be_right_is_not),
        cmocka_unit_test(what_is_timed_twice_is_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
