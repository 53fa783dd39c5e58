/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/reference/reference.h"

#include "ir/notation/notation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void parse(const char *text, struct wpk_program *program)
{
    struct wpk_diag diag = {0};

    if (wpk_program_parse(text, program, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
}

/* A self-test of the output `name`. */
static struct wpk_choice_expected make(const struct wpk_program *program, uint64_t seed,
                                       const char *name, bool positive)
{
    static struct wpk_choice_test test;
    struct wpk_choice_list outputs = {.count = 1};

    snprintf(outputs.tensor[0].canonical, WPK_NAME_MAX, "%s", name);
    assert_int_equal(wpk_selftest_make(program, seed, &outputs, &test, NULL), WPK_OK);
    assert_int_equal(test.domain, positive ? WPK_DRAW_POSITIVE : WPK_DRAW_ANY);
    return test.output[0];
}

static void a_seed_gives_one_test(void **state)
{
    static struct wpk_program program;

    (void)state;
    parse("input t0 f32[4,6]\nconstant t1 f32[6,5]\noutput t2 f32[4,5]\n"
          "t2[i,j] = sum(k) t0[i,k] * t1[k,j]\n",
          &program);
    const struct wpk_choice_expected a = make(&program, 7, "t2", false);
    const struct wpk_choice_expected b = make(&program, 7, "t2", false);
    const struct wpk_choice_expected c = make(&program, 8, "t2", false);
    assert_true(a.count > 2);
    assert_int_equal(a.point[0], 0);
    assert_int_equal(a.point[1], 19);
    assert_memory_equal(a.value, b.value, sizeof(double) * (size_t)a.count);
    assert_true(a.value[0] != c.value[0]);
    assert_true(a.tolerance > 1e-6 && a.tolerance < 1e-3);
    wpk_program_fini(&program);
}

static void logarithms_get_positive_values(void **state)
{
    static struct wpk_program program;

    (void)state;
    parse("input t0 f32[40]\noutput t1 f32[40]\nt1[i] = log(t0[i])\n", &program);
    const struct wpk_choice_expected test = make(&program, 7, "t1", true);
    for (int i = 0; i < test.count; i++) {
        assert_true(isfinite(test.value[i]));
    }
    wpk_program_fini(&program);
}

static void integers_are_exact(void **state)
{
    static struct wpk_program program;

    (void)state;
    parse("input t0 i32[40]\noutput t1 i32[40]\nt1[i] = t0[i] + 1\n", &program);
    const struct wpk_choice_expected test = make(&program, 7, "t1", false);
    assert_true(test.tolerance == 0);
    wpk_program_fini(&program);
}

static void points_are_finite(void **state)
{
    static struct wpk_program program;

    (void)state;
    parse("input t0 f32[40]\noutput t1 f32[40]\nt1[i] = select(i < 20, t0[i], -inf)\n", &program);
    const struct wpk_choice_expected test = make(&program, 7, "t1", false);
    assert_true(test.count > 4 && test.count < 32);
    for (int i = 0; i < test.count; i++) {
        assert_true(isfinite(test.value[i]) && test.point[i] < 20);
    }
    wpk_program_fini(&program);
}

/* Every output has points of its own, in the order of the list; one that is undefined on negative
 * values makes the inputs of all positive. */
static void each_output_has_points(void **state)
{
    static struct wpk_program program;
    static struct wpk_choice_test test;
    struct wpk_choice_list outputs = {.count = 2};

    (void)state;
    parse("input t0 f32[40]\noutput t1 f32[40]\noutput t2 f32[40]\nt1[i] = t0[i] * 2\n"
          "t2[i] = log(t1[i])\n",
          &program);
    snprintf(outputs.tensor[0].canonical, WPK_NAME_MAX, "t2");
    snprintf(outputs.tensor[1].canonical, WPK_NAME_MAX, "t1");
    assert_int_equal(wpk_selftest_make(&program, 7, &outputs, &test, NULL), WPK_OK);
    assert_int_equal(test.domain, WPK_DRAW_POSITIVE);
    assert_int_equal(test.output[0].count, 32);
    assert_int_equal(test.output[1].count, 32);
    for (int i = 0; i < 32; i++) {
        assert_true(fabs(test.output[0].value[i] - log(test.output[1].value[i])) < 1e-12);
    }
    wpk_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_one_test),  cmocka_unit_test(logarithms_get_positive_values),
        cmocka_unit_test(integers_are_exact),     cmocka_unit_test(points_are_finite),
        cmocka_unit_test(each_output_has_points),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
