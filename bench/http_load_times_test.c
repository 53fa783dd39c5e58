/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/http_load_times.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void expect_near(double found, double wanted)
{
    if (found < wanted || found > wanted * 1.017) {
        fail_msg("%f, not %f", found, wanted);
    }
}

static void quantiles(void **state)
{
    static struct bench_times times;
    (void)state;
    assert_true(bench_times_quantile_us(&times, 0.5) == 0);
    for (uint64_t i = 1; i <= 100000; i++) {
        bench_times_add(&times, i * 1000);
    }
    expect_near(bench_times_quantile_us(&times, 0.5), 50000);
    expect_near(bench_times_quantile_us(&times, 0.99), 99000);
    expect_near(bench_times_quantile_us(&times, 0.00001), 1);
    assert_true(bench_times_quantile_us(&times, 1) == 100000);
}

static void smallest_and_largest(void **state)
{
    static struct bench_times times;
    (void)state;
    for (uint64_t ns = 0; ns < 200; ns++) {
        bench_times_add(&times, ns);
    }
    expect_near(bench_times_quantile_us(&times, 0.5), 0.099);
    bench_times_add(&times, UINT64_MAX);
    assert_true(bench_times_quantile_us(&times, 1) > 1e15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles),
        cmocka_unit_test(smallest_and_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
