/* SPDX-License-Identifier: Apache-2.0 */
#include "op/selftest.h"

#include "op/notation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void parse(const char *text, struct wpk_program *program)
{
    struct wpk_diag diag = {0};

    if (wpk_program_parse(text, program, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
}

static void a_seed_gives_one_test(void **state)
{
    static struct wpk_program program;
    struct wpk_choice_test a, b, c;

    (void)state;
    parse("input t0 f32[4,6]\nconstant t1 f32[6,5]\noutput t2 f32[4,5]\n"
          "t2[i,j] = sum(k) t0[i,k] * t1[k,j]\n",
          &program);
    assert_int_equal(wpk_selftest_make(&program, 7, &a, NULL), WPK_OK);
    assert_int_equal(wpk_selftest_make(&program, 7, &b, NULL), WPK_OK);
    assert_int_equal(wpk_selftest_make(&program, 8, &c, NULL), WPK_OK);
    assert_true(a.count > 2);
    assert_int_equal(a.point[0], 0);
    assert_int_equal(a.point[1], 19);
    assert_memory_equal(a.value, b.value, sizeof(double) * (size_t)a.count);
    assert_true(a.value[0] != c.value[0]);
    assert_true(a.tolerance > 1e-6 && a.tolerance < 1e-3);
    assert_false(a.positive);
    wpk_program_fini(&program);
}

static void logarithms_get_positive_values(void **state)
{
    static struct wpk_program program;
    struct wpk_choice_test test;

    (void)state;
    parse("input t0 f32[40]\noutput t1 f32[40]\nt1[i] = log(t0[i])\n", &program);
    assert_int_equal(wpk_selftest_make(&program, 7, &test, NULL), WPK_OK);
    assert_true(test.positive);
    for (int i = 0; i < test.count; i++) {
        assert_true(isfinite(test.value[i]));
    }
    wpk_program_fini(&program);
}

static void integers_are_exact(void **state)
{
    static struct wpk_program program;
    struct wpk_choice_test test;

    (void)state;
    parse("input t0 i32[40]\noutput t1 i32[40]\nt1[i] = t0[i] + 1\n", &program);
    assert_int_equal(wpk_selftest_make(&program, 7, &test, NULL), WPK_OK);
    assert_true(test.tolerance == 0);
    wpk_program_fini(&program);
}

static void points_are_finite(void **state)
{
    static struct wpk_program program;
    struct wpk_choice_test test;

    (void)state;
    parse("input t0 f32[40]\noutput t1 f32[40]\nt1[i] = select(i < 20, t0[i], -inf)\n", &program);
    assert_int_equal(wpk_selftest_make(&program, 7, &test, NULL), WPK_OK);
    assert_false(test.positive);
    assert_true(test.count > 4 && test.count < 32);
    for (int i = 0; i < test.count; i++) {
        assert_true(isfinite(test.value[i]) && test.point[i] < 20);
    }
    wpk_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_one_test),
        cmocka_unit_test(logarithms_get_positive_values),
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(points_are_finite),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
