/* SPDX-License-Identifier: Apache-2.0 */
/* Indices that are data: from the notation to reference values. */
#include "ir/data_index.h"

#include "ir/cost.h"
#include "ir/notation/notation.h"
#include "ir/reference/reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* X f32[5,2], I of 3 elements, Y f32[3,2] */
static wpk_err parse(const char *text, const char *type, struct wpk_program *out,
                     struct wpk_diag *diag)
{
    struct wpk_declaration tensors[] = {{.name = "X"}, {.name = "I"}, {.name = "Y"}};
    const char *types[] = {"f32[5,2]", type, "f32[3,2]"};

    for (int i = 0; i < 3; i++) {
        assert_int_equal(wpk_notation_parse_type(types[i], &tensors[i], diag), WPK_OK);
    }
    return wpk_notation_parse(text, tensors, 3, out, diag);
}

static void expect(const char *text, const char *type, const double *index, const double *wanted)
{
    struct wpk_program program = {0};
    struct wpk_diag diag = {0};
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    double y[6], magnitude[6];

    assert_int_equal(parse(text, type, &program, &diag), WPK_OK);
    const struct wpk_reference_args args = {.tensor = {x, index}};
    wpk_err err = wpk_reference_run(&program, &args, y, magnitude, &diag);
    if (err != (wanted == NULL ? WPK_ERANGE : WPK_OK)) {
        fail_msg("%s: %s", text, diag.text);
    }
    for (int i = 0; wanted != NULL && i < 6; i++) {
        assert_float_equal(y[i], wanted[i], 0);
        assert_float_equal(magnitude[i], wanted[i], 0);
    }
    wpk_program_fini(&program);
}

static void test_values(void **state)
{
    static const double rows[] = {7, 8, 1, 2, 9, 10};
    static const double moved[] = {9, 10, 3, 4, 1, 2};
    static const double columns[] = {8, 7, 2, 1, 10, 9};
    static const double zeros[] = {7, 8, 1, 2, 0, 0};

    (void)state;
    expect("Y[i,j] = X[I[i], j]", "i64[3]", (const double[]){3, 0, -1}, rows);
    expect("Y[i,j] = X[I[i], j]", "i32[3]", (const double[]){3, -5, 4}, rows);
    expect("Y[i,j] = X[I[i], 1-j]", "i8[3]", (const double[]){3, -5, 4}, columns);
    expect("Y[i,j] = X[I[i]+1, j]", "i64[3]", (const double[]){3, 0, -1}, moved);
    expect("Y[i,j] = X[I[i], j | 0]", "i64[3]", (const double[]){3, 0, -1}, zeros);
    expect("Y[i,j] = X[I[i], j | 0]", "i64[3]", (const double[]){3, 0, 0x1p62}, zeros);
    expect("Y[i,j] = sum(k:1) X[I[i+k], j]", "i64[3]", (const double[]){3, 0, -1}, rows);
    expect("Y[i,j] = X[I[i,j], j]", "i64[3,2]", (const double[]){3, 3, 0, 0, -1, -1}, rows);
    expect("Y[i,j] = X[I[i], j]", "i64[3]", (const double[]){3, 0, 5}, NULL);
    expect("Y[i,j] = X[I[i], j]", "i64[3]", (const double[]){3, -6, 0}, NULL);
    expect("Y[i,j] = X[I[i]+1, j]", "i64[3]", (const double[]){3, 0, 4}, NULL);
}

/* Rows of X by the first column of I, columns of X by the second. */
static void test_columns(void **state)
{
    static const double picked[] = {9, 9, 2, 2, 7, 7};

    (void)state;
    expect("Y[i,j] = X[I[i,0], I[i,1]+0*j]", "i64[3,2]", (const double[]){4, 0, 0, 1, -2, -2},
           picked);
    expect("Y[i,j] = X[I[i,0], I[i,1]+0*j]", "i64[3,2]", (const double[]){4, 0, 0, 2, 3, -2}, NULL);
    expect("Y[i,j] = X[I[i+0], j] * X[0, I[3]]", "i64[4]", (const double[]){4, 0, 3, 2}, NULL);
}

static void test_refused(void **state)
{
    static const char *const texts[] = {
        "Y[i,j] = X[T[i], j]; T[i] = I[i] + 1", /* computed */
        "Y[i,j] = X[X[i,j], j] + I[i]",         /* no integer */
        "Y[i,j] = X[min(I[i], 2), j]",          "Y[i,j] = X[I[i] / I[i], j]",
        "Y[i,j] = X[I[i] * I[i], j]",
    };
    struct wpk_program program;
    struct wpk_diag diag = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_not_equal(parse(texts[i], "i64[3]", &program, &diag), WPK_OK);
    }
}

/* The whole form says the remainder, and reads back. */
static void test_printed(void **state)
{
    struct wpk_program program = {0}, again = {0};
    struct wpk_buf text = {0}, second = {0};
    struct wpk_diag diag = {0};

    (void)state;
    assert_int_equal(parse("Y[i,j] = X[I[i]+j, j] + X[I[i], 0 | 3]", "i32[3]", &program, &diag),
                     WPK_OK);
    assert_int_equal(wpk_program_print(&program, &text), WPK_OK);
    assert_non_null(strstr(wpk_buf_text(&text), "X[(I[i]+j)%5,j] + X[I[i],0 | 3]"));
    assert_int_equal(wpk_program_parse(wpk_buf_text(&text), &again, &diag), WPK_OK);
    assert_int_equal(wpk_program_print(&again, &second), WPK_OK);
    assert_string_equal(wpk_buf_text(&text), wpk_buf_text(&second));
    wpk_buf_fini(&text);
    wpk_buf_fini(&second);
    wpk_program_fini(&program);
    wpk_program_fini(&again);
}

static void test_facts(void **state)
{
    struct wpk_program program = {0};
    struct wpk_domain domains[WPK_TENSORS_MAX];
    struct wpk_diag diag = {0};
    struct wpk_cost cost;
    int64_t low = 0, high = 0;

    (void)state;
    assert_int_equal(parse("Y[i,j] = X[I[i], j] * X[I[i]-1, 0]", "i32[3]", &program, &diag),
                     WPK_OK);
    int x = wpk_program_find_tensor(&program, "X"), i = wpk_program_find_tensor(&program, "I");
    assert_true(wpk_index_bound(&program, i, &low, &high));
    assert_true(low == -4 && high == 4);
    assert_false(wpk_index_bound(&program, x, &low, &high));
    assert_true(wpk_stage_gathers(&program, &program.stages[0]));
    assert_true(wpk_tensor_gathers(&program, x) && wpk_tensor_gathers(&program, i));
    for (int t = 0; t < program.tensor_count; t++) {
        domains[t] = wpk_domain_all();
    }
    wpk_domain_find(&program, domains);
    assert_true(domains[i].low == -4 && domains[i].high == 4);
    wpk_cost(&program, &cost);
    assert_true(cost.bytes_min == 4 * (9 + 3 + 6)); /* 9 of the 10 elements of X */
    wpk_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_columns),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_printed),
        cmocka_unit_test(test_facts),
    };

    return cmocka_run_group_tests_name("data_index", tests, NULL, NULL);
}
