/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_median_of_odd_and_even(void **state)
{
    (void)state;
    double odd[] = {3, 1, 2};
    double even[] = {4, 1, 3, 2};
    bench_stats_sort(odd, 3);
    bench_stats_sort(even, 4);
    assert_true(bench_stats_median(odd, 3) == 2);
    assert_true(bench_stats_median(even, 4) == 2.5);
}

/* Ranks (from 1) by the binomial distribution, as printed in tables of the sign test. */
static void test_interval_takes_the_sign_tests_ranks(void **state)
{
    (void)state;
    static const struct {
        int count;
        int low;
        int high;
    } known[] = {{1, 1, 1}, {4, 1, 4}, {5, 1, 5}, {7, 1, 7}, {8, 2, 7}, {11, 3, 9}, {20, 6, 15}};
    double ranks[20];
    for (int i = 0; i < 20; i++) {
        ranks[i] = i + 1;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        double low = 0;
        double high = 0;
        bench_stats_interval(ranks, known[i].count, 0.9, &low, &high);
        assert_int_equal((int)low, known[i].low);
        assert_int_equal((int)high, known[i].high);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median_of_odd_and_even),
        cmocka_unit_test(test_interval_takes_the_sign_tests_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
