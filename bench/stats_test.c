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

/* Sums of ranks and their probabilities as scipy.stats.wilcoxon(method="approx",
 * correction=True) gives them. */
static void test_wilcoxon_of_pairs(void **state)
{
    (void)state;
    static const double a[] = {125, 115, 130, 140, 140, 115, 140, 125, 140, 135};
    static const double b[] = {110, 122, 125, 120, 140, 124, 123, 137, 135, 145};
    int above = 0, below = 0;
    double p = bench_stats_wilcoxon(a, b, 10, &above, &below);
    assert_int_equal(above, 5);
    assert_int_equal(below, 4);
    assert_true(p > 0.6350 && p < 0.6360);
    assert_true(bench_stats_wilcoxon(a, a, 10, &above, &below) == 1);
    double shifted[10];
    for (int i = 0; i < 10; i++) {
        shifted[i] = b[i] - 50;
    }
    assert_true(bench_stats_wilcoxon(a, shifted, 10, &above, &below) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median_of_odd_and_even),
        cmocka_unit_test(test_interval_takes_the_sign_tests_ranks),
        cmocka_unit_test(test_wilcoxon_of_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
