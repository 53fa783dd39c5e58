/* SPDX-License-Identifier: Apache-2.0 */
#include "common/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Limits that any x86-64 since 2003 passes and that no unit mixed up by 1000 does. */
static void test_rates_are_plausible(void **state)
{
    (void)state;
    struct wpk_peak peak = {0};
    assert_int_equal(wpk_peak_measure(&peak), WPK_OK);
    assert_true(peak.flops_per_s > 0.5e9);
    assert_true(peak.flops_per_s < 2e12);
    assert_true(peak.bytes_per_s > 0.2e9);
    assert_true(peak.bytes_per_s < 2e12);
}

static void test_vectors_are_the_widest(void **state)
{
    (void)state;
    struct wpk_peak peak = {0};
    assert_int_equal(wpk_peak_measure(&peak), WPK_OK);
    const int lanes = __builtin_cpu_supports("avx512f") ? 16
                      : __builtin_cpu_supports("avx2")  ? 8
                                                        : 4;
    assert_int_equal(peak.lanes, lanes);
    assert_true(peak.name != NULL && strlen(peak.name) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_are_plausible),
        cmocka_unit_test(test_vectors_are_the_widest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
