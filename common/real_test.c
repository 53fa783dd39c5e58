/* SPDX-License-Identifier: Apache-2.0 */
#include "common/format.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect_near(double got, double wanted)
{
    assert_true(fabs(got - wanted) <= 2e-15 * fmax(fabs(wanted), 1e-300));
}

static void test_against_the_library(void **state)
{
    (void)state;
    for (double x = -700; x < 700; x += 0.37) {
        expect_near(wpk_real_exp(x), exp(x));
        assert_true(fabs(wpk_real_tanh(x / 100) - tanh(x / 100)) < 1e-15);
    }
    for (double x = 1e-300; x < 1e300; x *= 1.37) {
        assert_true(fabs(wpk_real_log(x) - log(x)) <= 1e-15 * fmax(fabs(log(x)), 1));
    }
}

static void test_edges(void **state)
{
    (void)state;
    assert_true(wpk_real_exp(0) == 1 && wpk_real_log(1) == 0 && wpk_real_tanh(0) == 0);
    assert_true(wpk_real_exp(-800) == 0 && isinf(wpk_real_exp(800)) && isnan(wpk_real_exp(NAN)));
    assert_true(wpk_real_log(0) == -HUGE_VAL && isnan(wpk_real_log(-1)));
    assert_true(isinf(wpk_real_log(HUGE_VAL)) && isnan(wpk_real_log(NAN)));
    assert_true(wpk_real_tanh(1000) == 1 && wpk_real_tanh(-1000) == -1);
}

/* Bit for bit: these are what the formulas give wherever they are computed. */
static void test_bits(void **state)
{
    (void)state;
    assert_true(wpk_real_exp(1) == 0x1.5bf0a8b14576ap+1);
    assert_true(wpk_real_log(10) == 0x1.26bb1bbb55516p+1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_library),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
