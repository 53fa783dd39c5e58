/* SPDX-License-Identifier: Apache-2.0 */
/* Sums in which a quotient and a remainder make up what they are of. */
#include "target/c/form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* width * (a / n) + step * (a % n) */
static struct wpk_form rows(struct wpk_forms *forms, const struct wpk_form *a, int64_t n,
                            int64_t width, int64_t step)
{
    struct wpk_form quotient = wpk_form_divide(forms, a, n), rest = wpk_form_modulo(forms, a, n);
    quotient = wpk_form_scale(&quotient, width, 0);
    return wpk_form_add(forms, &quotient, &rest, step);
}

static void expect(struct wpk_forms *forms, const struct wpk_form *form, const char *text)
{
    struct wpk_buf out = {0};
    wpk_form_print(forms, form, &out);
    assert_string_equal(wpk_buf_text(&out), text);
    wpk_buf_fini(&out);
}

static void test_rows_are_joined(void **state)
{
    (void)state;
    struct wpk_forms forms = {.width = 16};
    struct wpk_form q = wpk_form_atom(wpk_form_variable(&forms, "q", 0, 999), 64);
    struct wpk_form joined = rows(&forms, &q, 56, 56, 1);
    expect(&forms, &joined, "(64 * q)");
    joined = rows(&forms, &q, 56, 16 * 56, 16);
    expect(&forms, &joined, "(1024 * q)");
    q.lane = 1;
    q.constant = 5;
    joined = rows(&forms, &q, 56, 56, 1);
    assert_int_equal(joined.lane, 1);
    assert_int_equal(joined.constant, 5);
    assert_int_equal(joined.term_count, 1);
    assert_true(wpk_form_is_even(&forms, &joined));
    wpk_forms_fini(&forms);
}

/* Rows with something between them, or of another length, are not. */
static void test_other_rows_stay(void **state)
{
    (void)state;
    struct wpk_forms forms = {.width = 16};
    struct wpk_form q = wpk_form_atom(wpk_form_variable(&forms, "q", 0, 999), 1);
    q.lane = 1;
    struct wpk_form apart = rows(&forms, &q, 56, 58, 1);
    assert_false(wpk_form_is_even(&forms, &apart));
    apart = rows(&forms, &q, 56, 56, 2);
    assert_false(wpk_form_is_even(&forms, &apart));
    struct wpk_form quotient = wpk_form_divide(&forms, &q, 56);
    struct wpk_form rest = wpk_form_modulo(&forms, &q, 28);
    quotient = wpk_form_scale(&quotient, 56, 0);
    apart = wpk_form_add(&forms, &quotient, &rest, 1);
    assert_false(wpk_form_is_even(&forms, &apart));
    wpk_forms_fini(&forms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_joined),
        cmocka_unit_test(test_other_rows_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
