/* SPDX-License-Identifier: Apache-2.0 */
/* Integers are exact, as cells go in and come out: beyond 2^53, where they wrap, and between
 * floats. */
#include "ir/notation/notation.h"
#include "ir/reference/direct.h"
#include "schema/convert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 5
#define MIN INT64_MIN
#define MAX INT64_MAX
#define BIG (INT64_C(1) << 53)

/* Y of each element, of A and B that have the types of the case. */
struct sum_case {
    const char *text, *type, *output;
    int64_t a[COUNT], b[COUNT], y[COUNT];
};

static const struct sum_case cases[] = {
    {"Y[i] = 0 * A[i] * B[i]", "i64", "i64", {1, MAX, MIN, 4, 5}, {1, 2, 3, 4, MAX}, {0}},
    {"Y[i] = A[i] * 0 + B[i] % 1", "i32", "i32", {1, 2, 3, 4, 5}, {1, 2, 3, -4, 5}, {0}},
    {"Y[i] = A[i] + B[i]",
     "i64",
     "i64",
     {BIG + 1, MAX, MIN, 1, -1},
     {2, 1, -1, 2, 1},
     {BIG + 3, MIN, MAX, 3, 0}},
    {"Y[i] = A[i] - B[i]",
     "i64",
     "i64",
     {BIG + 1, MIN, 0, 5, MAX},
     {-2, 1, MIN, 7, -1},
     {BIG + 3, MAX, MIN, -2, MIN}},
    {"Y[i] = A[i] * B[i]",
     "i64",
     "i64",
     {INT64_C(1) << 62, 3037000500, BIG + 1, -7, MIN},
     {4, 3037000500, 3, 6, -1},
     {0, -9223372036709301616, 3 * BIG + 3, -42, MIN}},
    {"Y[i] = A[i] / B[i]",
     "i64",
     "i64",
     {MAX, MIN, -7, 7, 5},
     {2, -1, 2, -2, 0},
     {MAX / 2, MIN, -4, -4, 0}},
    {"Y[i] = A[i] % B[i]",
     "i64",
     "i64",
     {MAX, MIN, -7, 7, 5},
     {10, -1, 2, -2, 0},
     {7, 0, 1, -1, 0}},
    {"Y[i] = max(A[i], B[i])",
     "i64",
     "i64",
     {BIG + 1, MIN, BIG, MAX, -1},
     {BIG, MAX, BIG + 1, 0, 1},
     {BIG + 1, MAX, BIG + 1, MAX, 1}},
    {"Y[i] = min(A[i], B[i])",
     "i64",
     "i64",
     {BIG + 1, MIN, BIG, MAX, -1},
     {BIG, MAX, BIG + 1, 0, 1},
     {BIG, MIN, BIG, 0, -1}},
    {"Y[i] = A[i] < B[i]",
     "i64",
     "bool",
     {BIG, BIG + 1, MIN, MAX, 3},
     {BIG + 1, BIG, MAX, MIN, 3},
     {1, 0, 1, 0, 0}},
    {"Y[i] = A[i] <= B[i]",
     "i64",
     "bool",
     {BIG, BIG + 1, MIN, MAX, 3},
     {BIG + 1, BIG, MAX, MIN, 3},
     {1, 0, 1, 0, 1}},
    {"Y[i] = A[i] == B[i]",
     "i64",
     "bool",
     {BIG, MIN, 0, MAX, -1},
     {BIG + 1, 0, 0, MAX, 1},
     {0, 0, 1, 1, 0}},
    {"Y[i] = A[i] != B[i]",
     "i64",
     "bool",
     {BIG, MIN, 0, MAX, -1},
     {BIG + 1, 0, 0, MAX, 1},
     {1, 1, 0, 0, 1}},
    {"Y[i] = abs(A[i])", "i64", "i64", {MIN, -BIG - 1, 5, MAX, -1}, {0}, {MIN, BIG + 1, 5, MAX, 1}},
    {"Y[i] = -A[i]", "i64", "i64", {MIN, -BIG - 1, 5, MAX, -1}, {0}, {MIN, BIG + 1, -5, -MAX, 1}},
    {"Y[i] = sum(k:3) A[i+k-k] + B[i]",
     "i64",
     "i64",
     {MAX, BIG, 1, -1, MIN},
     {1, 1, 1, 1, 1},
     {MAX - 1, 3 * BIG + 1, 4, -2, MIN + 1}},
    {"Y[i] = prod(k:2) A[i+k-k]",
     "i64",
     "i64",
     {3037000500, 94906267, -3, MIN, 0},
     {0},
     {-9223372036709301616, 9007199515875289, 9, 0, 0}},
    {"Y[i] = max(k:5) select(k <= i, A[k], B[k])",
     "i64",
     "i64",
     {BIG, BIG + 1, MIN, MAX, 0},
     {MIN, MIN, MIN, MIN, MIN},
     {BIG, BIG + 1, BIG + 1, MAX, MAX}},
    {"Y[i] = min(k:5) select(k <= i, A[k], B[k])",
     "i64",
     "i64",
     {BIG + 1, BIG, MAX, MIN, 0},
     {MAX, MAX, MAX, MAX, MAX},
     {BIG + 1, BIG, BIG, MIN, MIN}},
    {"Y[i] = A[i] * B[i]",
     "i32",
     "i32",
     {INT32_MAX, INT32_MIN, 65537, -1, 3},
     {INT32_MAX, -1, 65537, 1, 5},
     {1, INT32_MIN, 131073, -1, 15}},
    {"Y[i] = prod(k:3) A[i+k-k]",
     "i32",
     "i32",
     {INT32_MAX, 65537, -3, 46341, 0},
     {0},
     {INT32_MAX, 196609, -27, -1932785795, 0}},
    {"Y[i] = i32(A[i])",
     "i64",
     "i32",
     {MIN + 5, BIG + 7, -1, INT64_C(1) << 31, MAX},
     {0},
     {5, 7, -1, INT32_MIN, -1}},
    {"Y[i] = u8(A[i])", "i64", "u8", {MIN + 5, BIG + 7, -1, 256, MAX}, {0}, {5, 7, 255, 0, 255}},
    {"Y[i] = bool(A[i])", "i64", "bool", {MIN, BIG, 0, 256, -1}, {0}, {1, 1, 0, 1, 1}},
    {"Y[i] = i64(f64(A[i]))", "i64", "i64", {MIN, BIG, 0, 256, MAX}, {0}, {MIN, BIG, 0, 256, MAX}},
    {"Y[i] = i64(f64(A[i]) * 4)",
     "i64",
     "i64",
     {MIN, BIG, 0, 256, MAX},
     {0},
     {MIN, 4 * BIG, 0, 1024, MAX}},
    {"Y[i] = i64(A[i]) + 9007199254740993",
     "bool",
     "i64",
     {0, 1, 0, 1, 0},
     {0},
     {BIG + 1, BIG + 2, BIG + 1, BIG + 2, BIG + 1}},
    {"Y[i] = A[i] + i * 9007199254740993",
     "i64",
     "i64",
     {0, 0, 1, 0, 0},
     {0},
     {0, BIG + 1, 2 * BIG + 3, 3 * BIG + 3, 4 * BIG + 4}},
    {"Y[i] = A[i-1 | 9007199254740993]",
     "i64",
     "i64",
     {MIN, 1, 2, 3, 4},
     {0},
     {BIG + 1, MIN, 1, 2, 3}},
};

static void parse(const struct sum_case *c, struct wpk_program *program)
{
    char types[3][16];
    struct wpk_declaration given[3];
    memset(given, 0, sizeof(given));
    struct wpk_diag diag = {0};
    int count = strstr(c->text, "B[") != NULL ? 3 : 2;
    for (int i = 0; i < count; i++) {
        snprintf(types[i], sizeof(types[i]), "%s[%d]", i == 0 ? c->output : c->type, COUNT);
        assert_int_equal(wpk_notation_parse_type(types[i], &given[i], NULL), WPK_OK);
        given[i].name = i == 0 ? "Y" : i == 1 ? "A" : "B";
    }
    if (wpk_notation_parse(c->text, given, count, program, &diag) != WPK_OK) {
        fail_msg("%s: %s", c->text, diag.text);
    }
}

static double cell(enum wpk_dtype dtype, int64_t value)
{
    return dtype == WPK_I64 ? wpk_cell_of(value) : (double)value;
}

static void expect(const struct sum_case *c, const char *by, const struct wpk_program *program,
                   const double *value)
{
    enum wpk_dtype dtype = program->tensors[wpk_program_output(program)].dtype;
    for (int i = 0; i < COUNT; i++) {
        double wanted = cell(dtype, c->y[i]);
        if (memcmp(&value[i], &wanted, sizeof(wanted)) != 0) {
            fail_msg("%s of %s, element %d: %lld, expected %lld", by, c->text, i,
                     (long long)(dtype == WPK_I64 ? wpk_cell_integer(value[i]) : (int64_t)value[i]),
                     (long long)c->y[i]);
        }
    }
}

static void test_cells(void **state)
{
    (void)state;
    static struct wpk_program program; /* large */
    for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
        const struct sum_case *c = &cases[n];
        struct wpk_reference_args args = {.cells = true};
        const int64_t points[COUNT] = {0, 1, 2, 3, 4};
        double a[COUNT], b[COUNT], value[COUNT], magnitude[COUNT];
        parse(c, &program);
        for (int t = 0; t < program.tensor_count; t++) {
            const struct wpk_tensor *tensor = &program.tensors[t];
            bool first = strcmp(tensor->name, "A") == 0;
            for (int i = 0; i < COUNT && tensor->role == WPK_ROLE_INPUT; i++) {
                (first ? a : b)[i] = cell(tensor->dtype, (first ? c->a : c->b)[i]);
            }
            args.tensor[t] = tensor->role != WPK_ROLE_INPUT ? NULL : first ? a : b;
        }
        assert_int_equal(wpk_reference_run(&program, &args, value, magnitude, NULL), WPK_OK);
        expect(c, "the reference", &program, value);
        for (int i = 0; i < COUNT; i++) {
            assert_true(magnitude[i] < WPK_REFERENCE_STEP || strstr(c->text, "f64") != NULL);
        }
        assert_int_equal(
            wpk_reference_run_at(&program, &args, points, COUNT, value, magnitude, NULL), WPK_OK);
        expect(c, "the reference at points", &program, value);
        assert_int_equal(wpk_direct_run(&program, &args, 1, value, NULL), WPK_OK);
        expect(c, "direct evaluation", &program, value);
        wpk_program_fini(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
