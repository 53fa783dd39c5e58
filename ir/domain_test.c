/* SPDX-License-Identifier: Apache-2.0 */
/* The values of X for which an equation is of use. */
#include "ir/data_index.h"

#include "ir/notation/notation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NONE WPK_DOMAIN_MOST

static void find(const char *text, const char *x_type, const char *y_type, struct wpk_domain of_y,
                 struct wpk_domain *of_x)
{
    static struct wpk_program program;
    struct wpk_declaration tensors[] = {
        {.name = "X"},
        {.name = "Y"},
        {.name = "C", .constant = true},
    };
    const char *types[] = {x_type, y_type, "i64[8]"};
    struct wpk_domain domains[WPK_TENSORS_MAX];
    struct wpk_diag diag = {0};

    for (int i = 0; i < 3; i++) {
        assert_int_equal(wpk_notation_parse_type(types[i], &tensors[i], &diag), WPK_OK);
    }
    int count = strstr(text, "C[") != NULL ? 3 : 2;
    assert_int_equal(wpk_notation_parse(text, tensors, count, &program, &diag), WPK_OK);
    for (int t = 0; t < program.tensor_count; t++) {
        domains[t] = wpk_domain_all();
    }
    int c = wpk_program_find_tensor(&program, "C");
    if (c >= 0) {
        domains[c] = (struct wpk_domain){2, 5};
    }
    domains[wpk_program_find_tensor(&program, "Y")] = of_y;
    wpk_domain_find(&program, domains);
    *of_x = domains[wpk_program_find_tensor(&program, "X")];
    wpk_program_fini(&program);
}

static void test_domains(void **state)
{
    static const struct {
        const char *text, *x, *y;
        struct wpk_domain of_y, of_x;
    } rows[] = {
        /* an index of 10 rows, moved, cast, chosen */
        {"Y[i] = X[i]", "i64[8]", "i64[8]", {0, 9}, {0, 9}},
        {"Y[i] = X[i] + 2", "i64[8]", "i64[8]", {0, 9}, {-2, 7}},
        {"Y[i] = X[i] + C[i]", "i64[8]", "i64[8]", {0, 9}, {-2, 4}},
        {"Y[i] = 3 - X[i]", "i64[8]", "i64[8]", {0, 9}, {-6, 3}},
        {"Y[i] = -X[i]", "i64[8]", "i64[8]", {0, 9}, {-9, 0}},
        {"Y[i] = i64(X[i] * 2)", "f32[8]", "i64[8]", {0, 9}, {0, 4.5}},
        {"Y[i] = X[i] / 2", "f32[8]", "f32[8]", {0, 9}, {0, 18}},
        {"Y[i] = select(X[i] < 0, X[i] + 10, X[i])", "i64[8]", "i64[8]", {0, 9}, {0, 9}},
        {"Y[i] = X[i] + X[7-i]", "i64[8]", "i64[8]", {0, 8}, {0, 4}},
        {"Y[i] = max(j:8) X[j]", "i64[8]", "i64[8]", {0, 9}, {0, 9}},
        {"Y[i] = sum(j:8) X[j]", "i64[8]", "i64[8]", {0, 9}, {0, NONE}},
        {"Y[i] = sum(j:8) X[j]", "i64[8]", "i64[8]", {-1, 9}, {-NONE, NONE}},
        {"Y[i] = M[i] + 1 where M[i] = X[i] - 2", "i64[8]", "i64[8]", {0, 9}, {1, 10}},
        {"Y[i] = sum(j:12) select(X[i] == j, 1, 0)", "i64[8]", "i64[8]", {-NONE, NONE}, {0, 11}},
        {"Y[i] = sum(j:12) select(X[i] == j && j != 2, 1, 0)",
         "i64[8]",
         "i64[8]",
         {-NONE, NONE},
         {0, 11}},
        /* masks */
        {"Y[i] = X[i] != 0", "i64[8]", "bool[8]", {-NONE, NONE}, {0, 1}},
        {"Y[i] = bool(X[i])", "i64[8]", "bool[8]", {-NONE, NONE}, {0, 1}},
        {"Y[i] = (1 - f32(X[i])) * -10000", "i64[8]", "f32[8]", {-NONE, NONE}, {0, 1}},
        /* functions */
        {"Y[i] = log(X[i])", "f32[8]", "f32[8]", {-NONE, NONE}, {0.125, NONE}},
        {"Y[i] = log(sum(j:8) X[j])", "f32[8]", "f32[8]", {-NONE, NONE}, {0.125, NONE}},
        {"Y[i] = sqrt(X[i]) + 1", "f32[8]", "f32[8]", {-NONE, NONE}, {0, NONE}},
        {"Y[i] = log(X[i] + sqrt(X[i] * X[i] - 1))", "f32[8]", "f32[8]", {-NONE, NONE}, {1, NONE}},
        {"Y[i] = log((1 + X[i]) / (1 - X[i]))", "f32[8]", "f32[8]", {-NONE, NONE}, {0, 1}},
        {"Y[i] = pow(X[i], 2)", "f32[8]", "f32[8]", {-NONE, NONE}, {-NONE, NONE}},
        {"Y[i] = pow(X[i], 0.3)", "f32[8]", "f32[8]", {-NONE, NONE}, {0, NONE}},
        {"Y[i] = exp(X[i])", "f32[8]", "f32[8]", {0, 1}, {-NONE, NONE}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wpk_domain found;
        find(rows[i].text, rows[i].x, rows[i].y, rows[i].of_y, &found);
        if (found.low != rows[i].of_x.low || found.high != rows[i].of_x.high) {
            fail_msg("%s: [%g, %g]", rows[i].text, found.low, found.high);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_domains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
