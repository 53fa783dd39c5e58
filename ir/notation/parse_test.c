/* SPDX-License-Identifier: Apache-2.0 */
/* The message for each mistake in a text; no text makes the parser fail otherwise. */
#include "tests/notation_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct mistake {
    const char *text; /* NULL: the first tensor's type is at fault */
    const char *tensors[WPK_GIVEN_MAX];
    wpk_err err;
    int line, column; /* 0: none, the mistake is nowhere in the text */
    const char *says;
};

static void assert_rejected(const char *what, const struct mistake *m, wpk_err err,
                            const struct wpk_diag *diag)
{
    if (err != m->err || diag->line != m->line || diag->column != m->column ||
        strstr(diag->text, m->says) == NULL) {
        fail_msg("%s\n%s %d:%d: %s\nnot %s %d:%d: %s", what, wpk_err_name(err), diag->line,
                 diag->column, diag->text, wpk_err_name(m->err), m->line, m->column, m->says);
    }
}

static void test_malformed_text(void **state)
{
#define XY                                                                                         \
    {                                                                                              \
        "X f32[4]", "Y f32[4]"                                                                     \
    }
    static const struct mistake mistakes[] = {
        {"", XY, WPK_EPARSE, 1, 1, "expected an equation before the end"},
        {"  # nothing\n", XY, WPK_EPARSE, 2, 1, "expected an equation"},
        {"7", XY, WPK_EPARSE, 1, 1, "expected an equation before '7'"},
        {"Y[i]", XY, WPK_EPARSE, 1, 5, "expected '=' before the end"},
        {"Y[i = X[i]", XY, WPK_EPARSE, 1, 5, "expected ']' before '='"},
        {"Y[i] =", XY, WPK_EPARSE, 1, 7, "expected an expression before the end"},
        {"Y[i] =\n  X[i] +\n", XY, WPK_EPARSE, 3, 1, "expected an expression"},
        {"Y[i] = X[i] )", XY, WPK_EPARSE, 1, 13, "another equation before ')'"},
        {"Y[i] = X[i] = 2", XY, WPK_EPARSE, 1, 13, "another equation before '='"},
        {"Y[i] = (X[i] + 1", XY, WPK_EPARSE, 1, 17, "expected ')' before the end"},
        {"Y[i] = X[i] ** 2", XY, WPK_EPARSE, 1, 14, "expected an expression before '*'"},
        {"Y[i] = X[i] & 1", XY, WPK_EPARSE, 1, 13, "before '&'"},
        {"Y[i] = X[i] \x01", XY, WPK_EPARSE, 1, 13, "before byte 0x01"},
        {"Y[i] = X[i", XY, WPK_EPARSE, 1, 11, "expected ']'"},
        {"Y[i] = X[i,", XY, WPK_EPARSE, 1, 12, "expected an expression"},
        {"Y[i,i] = X[i]", XY, WPK_EPARSE, 1, 5, "axis i is named twice"},
        {"Y[i] = foo(X[i])", XY, WPK_EPARSE, 1, 8, "unknown function foo"},
        {"Y[i] = exp(X[i], 2)", XY, WPK_EPARSE, 1, 19, "more than 1 arguments for exp"},
        {"Y[i] = pow(X[i])", XY, WPK_EPARSE, 1, 17, "1 of 2 arguments for pow"},
        {"Y[i] = select(X[i] < 1, 2)", XY, WPK_EPARSE, 1, 27, "2 of 3 arguments for select"},
        {"Y[i] = sum(2*k) X[k]", XY, WPK_EPARSE, 1, 12, "expected a name before '2'"},
        {"Y[i] = sum(k)", XY, WPK_EPARSE, 1, 14, "expected an expression"},
        {"Y[i] = sum.f31(k) X[k]", XY, WPK_EPARSE, 1, 8, "accumulator type f31"},
        {"Y[i] = 1.5x * X[i]", XY, WPK_EPARSE, 1, 8, "malformed number"},
        {"Y[i] = nan", XY, WPK_EPARSE, 1, 8, "NaN"},
        {"Y[i] = X[i] * 1e999", XY, WPK_ERANGE, 1, 15, "number out of range"},
        {"Y[i] = X[i] * 9223372036854775809", XY, WPK_ERANGE, 1, 15, "number out of range"},
        {"Y[i] =\n\xc3\xa9[i]", XY, WPK_EPARSE, 2, 1, "byte 0xc3"},
        {"Y[i] = X[i] # \xff", XY, WPK_EPARSE, 1, 15, "byte 0xff"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct wpk_program program;
        struct wpk_diag diag = {0};
        struct wpk_given given = {.text = mistakes[i].text};
        memcpy(given.tensors, mistakes[i].tensors, sizeof given.tensors);
        wpk_err err = wpk_given_parse(&given, &program, &diag);
        assert_rejected(given.text, &mistakes[i], err, &diag);
        assert_int_equal(program.node_count, 0);
    }
}

static void test_wrong_meaning(void **state)
{
    static const struct mistake mistakes[] = {
        {"Z[i] = X[i]", XY, WPK_EPARSE, 1, 1, "type of Z is not declared"},
        {"Y[i] =\n  X[i] * V[i]", XY, WPK_EPARSE, 2, 10, "tensor V is not declared"},
        {"Y[i] = X[j]", XY, WPK_EPARSE, 1, 10, "j is no axis"},
        {"Y[i] = X[i] + j", XY, WPK_EPARSE, 1, 15, "j is no axis"},
        {"Y[i] = X[i,i]", XY, WPK_EPARSE, 1, 8, "X has 1 dimensions and is given 2"},
        {"Y[i,j] = X[i]", XY, WPK_EPARSE, 1, 1, "Y has 1 dimensions and is given 2"},
        {"Y[i] = sum(k) X[i]", XY, WPK_EPARSE, 1, 12, "extent of axis k cannot be inferred"},
        {"Y[i:5] = X[i]", XY, WPK_ERANGE, 1, 3, "axis i has extent 4 here and 5 before"},
        {"Y[i] = sum(k:3) X[k]", XY, WPK_ERANGE, 1, 19, "axis k has extent 4 here and 3 before"},
        {"Y[i] = X[i] * V[i]",
         {"X f32[4]", "V f32[5]", "Y f32[4]"},
         WPK_ERANGE,
         1,
         17,
         "axis i has extent 5 here and 4 before"},
        {"Y[i:0] = X[i]", XY, WPK_ERANGE, 1, 5, "from 1 to"},
        {"Y[i:-4] = X[i]", XY, WPK_ERANGE, 1, 5, "from 1 to 8589934592"},
        {"Y[i:2.5] = X[i]", XY, WPK_ERANGE, 1, 5, "a whole number from 1 to"},
        {"Y[i] = sum(k:8589934593) X[i]", XY, WPK_ERANGE, 1, 14, "from 1 to 8589934592"},
        {"Y[i] = sum(i) X[i]", XY, WPK_EPARSE, 1, 12, "axis i is named twice"},
        {"Y[i] = sum(k,k) X[k]", XY, WPK_EPARSE, 1, 14, "axis k is named twice"},
        {"Y[i] = (sum(k) X[k]) + sum(k,k) X[k]", XY, WPK_EPARSE, 1, 28, "axis k is named twice"},
        {"Y[i] = sum(k) X[k] * sum(k) X[k]", XY, WPK_EPARSE, 1, 26, "axis k is named twice"},
        {"Y[i] = X[k] + sum(k) X[k]", XY, WPK_EPARSE, 1, 10, "axis k is named outside of its"},
        {"Y[i] = (sum(k) X[k]) * sum(m:4) X[k]", XY, WPK_EPARSE, 1, 24,
         "axis k is named outside of"},
        {"Y[i] = X[i*i]", XY, WPK_EPARSE, 1, 11, "multiplied by a number"},
        {"Y[i] = X[i/0]", XY, WPK_EPARSE, 1, 11, "divided by a number"},
        {"Y[i] = X[i%i]", XY, WPK_EPARSE, 1, 11, "divided by a number"},
        {"Y[i] = X[X[i]]", XY, WPK_EPARSE, 1, 10, "X is an index, but no input"},
        {"Y[i] = X[i+0.5]", XY, WPK_EPARSE, 1, 12, "a whole number is needed for i64"},
        {"Y[i] = X[i-1 | i]", XY, WPK_EPARSE, 1, 8, "value outside of X must be a number"},
        {"Y[i] = V[i-1 | 300] + X[i]",
         {"X f32[4]", "V i8[4]", "Y f32[4]"},
         WPK_ERANGE,
         1,
         16,
         "out of the range of i8"},
        {"Y[i] = V[i-1 | -1] + X[i]",
         {"X f32[4]", "V u8[4]", "Y f32[4]"},
         WPK_ERANGE,
         1,
         17,
         "out of the range of u8"},
        {"Y[i] = V[i] + 3000000000",
         {"V i32[4]", "Y i32[4]"},
         WPK_ERANGE,
         1,
         15,
         "out of the range of i32"},
        {"Y[i] = 1", XY, WPK_EPARSE, 1, 1, "tensor X is not used"},
        {"Y[i] = X[i] where T[i:4] = 1", XY, WPK_EPARSE, 1, 1, "tensor T is not used"},
        {"Y[i] = X[i]; Y[i] = 2", XY, WPK_EPARSE, 1, 14, "Y is defined twice"},
        {"Y[i] = T[i] where T[i] = T[i] + X[i]", XY, WPK_EPARSE, 1, 19, "T is defined by itself"},
        {"Y[i] = X[i] + Y[i]", XY, WPK_EPARSE, 1, 1, "Y is defined by itself"},
        {"Y[i] = X[i]",
         {"X f32[4]", "X f32[4]", "Y f32[4]"},
         WPK_EPARSE,
         0,
         0,
         "X is declared twice"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct wpk_program program;
        struct wpk_diag diag = {0};
        struct wpk_given given = {.text = mistakes[i].text};
        memcpy(given.tensors, mistakes[i].tensors, sizeof given.tensors);
        wpk_err err = wpk_given_parse(&given, &program, &diag);
        assert_rejected(given.text, &mistakes[i], err, &diag);
    }
}

/* A declared tensor that an equation assigns is an output, whichever the equation, and has its own
 * line when printed. */
static void test_several_outputs(void **state)
{
    (void)state;
    static const struct wpk_declaration declared[] = {{.name = "A", .rank = 2, .extent = {4, 5}},
                                                      {.name = "B", .rank = 2, .extent = {5, 6}},
                                                      {.name = "Y", .rank = 2, .extent = {4, 6}},
                                                      {.name = "S", .rank = 2, .extent = {4, 6}}};
    static const struct wpk_declaration constant[] = {
        {.name = "X", .rank = 1, .extent = {4}},
        {.name = "Y", .rank = 1, .extent = {4}},
        {.name = "Z", .rank = 1, .extent = {4}, .constant = true}};
    struct wpk_program program;
    struct wpk_diag diag = {0};
    struct wpk_buf text = {0};
    int outputs = 0;
    assert_int_equal(wpk_notation_parse("Y[i,j] = relu(S[i,j]); S[i,j] = sum(k) A[i,k] * B[k,j]",
                                        declared, 4, &program, &diag),
                     WPK_OK);
    for (int t = 0; t < program.tensor_count; t++) {
        outputs += program.tensors[t].role == WPK_ROLE_OUTPUT;
    }
    assert_int_equal(outputs, 2);
    assert_int_equal(wpk_notation_print(&program, &text), WPK_OK);
    assert_string_equal(wpk_buf_text(&text),
                        "Y[i,j] = relu(S[i,j]) where S[i,j] = sum(k:5) A[i,k] * B[k,j]");
    wpk_buf_fini(&text);
    wpk_program_fini(&program);
    assert_int_equal(wpk_notation_parse("Y[i] = X[i]; Z[i] = 2", constant, 3, &program, &diag),
                     WPK_EPARSE);
    assert_non_null(strstr(diag.text, "Z is an output, which is no constant"));
}

static void test_types(void **state)
{
    static const struct mistake mistakes[] = {
        {"", {NULL}, WPK_EPARSE, 1, 1, "expected a name"},
        {"f33[4]", {NULL}, WPK_EPARSE, 1, 4, "unknown element type f33"},
        {"f32[4", {NULL}, WPK_EPARSE, 1, 6, "expected ',' or ']'"},
        {"f32[4,]", {NULL}, WPK_EPARSE, 1, 7, "whole number"},
        {"f32[4] x", {NULL}, WPK_EPARSE, 1, 9, "expected pad instead of x"},
        {"f32[4] pad 1:1 x", {NULL}, WPK_EPARSE, 1, 16, "text behind the type"},
        {"f32[0]", {NULL}, WPK_ERANGE, 1, 5, "from 1 to 8589934592"},
        {"f32[4,-1]", {NULL}, WPK_ERANGE, 1, 7, "from 1 to 8589934592"},
        {"f32[99999999999999999999]", {NULL}, WPK_ERANGE, 1, 5, "from 1 to 8589934592"},
        {"f32[65536,65536,65536]", {NULL}, WPK_ERANGE, 1, 22, "more than 8589934592 elements"},
        {"f32[1,1,1,1,1,1,1,1,1,1,1]", {NULL}, WPK_ERANGE, 1, 25, "more than 10 dimensions"},
        {"f32[4.5]", {NULL}, WPK_EPARSE, 1, 6, "expected ',' or ']'"},
    };
    struct wpk_declaration type = {.name = "X", .constant = true};
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct wpk_diag diag = {0};
        wpk_err err = wpk_notation_parse_type(mistakes[i].text, &type, &diag);
        assert_rejected(mistakes[i].text, &mistakes[i], err, &diag);
    }
    assert_int_equal(wpk_notation_parse_type(" bf16 [ 2, 3 ] ", &type, NULL), WPK_OK);
    assert_int_equal(type.dtype, WPK_BF16);
    assert_int_equal(type.rank, 2);
    assert_int_equal(type.extent[1], 3);
    assert_true(type.constant);
}

static void test_wrong_whole_form(void **state)
{
#define LINES "input X f32[4]\noutput Y f32[4]\n"
    static const struct mistake mistakes[] = {
        {"input X f31[4]\n", {NULL}, WPK_EPARSE, 1, 12, "unknown element type f31"},
        {"output Y f32[4]\n  input X f32[0]\n", {NULL}, WPK_ERANGE, 2, 15, "from 1 to"},
        {"input X f32[4] pda 1:1\n", {NULL}, WPK_EPARSE, 1, 19, "expected pad instead of pda"},
        {"input X f32[4] pad 1\n", {NULL}, WPK_EPARSE, 1, 21, "expected ':'"},
        {"input X f32[4] pad -1:1\n", {NULL}, WPK_ERANGE, 1, 20, "from 0 to"},
        {"input X f32[4,4] pad 1:1\n", {NULL}, WPK_EPARSE, 1, 25, "expected ','"},
        {"literal G f32[4] = 1,2,3\n", {NULL}, WPK_EPARSE, 1, 25, "G needs 4 values"},
        {"literal G f32[2] = 1,nan\n", {NULL}, WPK_EPARSE, 1, 22, "expected a number"},
        {"literal G f32[65,64] = 1\n", {NULL}, WPK_ERANGE, 1, 21, "more than 4096 elements"},
        {"literal G f32[2] = 1,2,3\n", {NULL}, WPK_EPARSE, 1, 23, "text behind the declaration"},
        {LINES "input X f32[4]\n", {NULL}, WPK_EPARSE, 3, 15, "X is declared twice"},
        {LINES, {NULL}, WPK_EPARSE, 3, 1, "expected an equation"},
        {LINES "Y[i] = X[i] +\n", {NULL}, WPK_EPARSE, 4, 1, "expected an expression"},
        {LINES "Y[i] = X[j]\n", {NULL}, WPK_EPARSE, 3, 10, "j is no axis"},
        {LINES "T[i] = X[i]\n", {NULL}, WPK_EPARSE, 3, 1, "type of T is not declared"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct wpk_program program;
        struct wpk_diag diag = {0};
        wpk_err err = wpk_program_parse(mistakes[i].text, &program, &diag);
        assert_rejected(mistakes[i].text, &mistakes[i], err, &diag);
        assert_int_equal(program.tensor_count, 0);
    }
}

/* ---- more than anybody means */

/* "Y[i] = " and then `before` `count` times, `middle`, and `after` as often. */
static wpk_err parse_repeated(const char *before, const char *middle, const char *after, int count,
                              struct wpk_program *out, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_buf_append_text(&text, "Y[i] = ");
    for (int i = 0; i < count; i++) {
        wpk_buf_append_text(&text, before);
    }
    wpk_buf_append_text(&text, middle);
    for (int i = 0; i < count; i++) {
        wpk_buf_append_text(&text, after);
    }
    assert_int_equal(wpk_buf_status(&text), WPK_OK);
    memset(diag, 0, sizeof *diag);
    wpk_err err = wpk_given_parse(&(struct wpk_given){wpk_buf_text(&text), XY}, out, diag);
    wpk_buf_fini(&text);
    return err;
}

static void test_nesting(void **state)
{
    static const struct {
        const char *before, *middle, *after;
    } cases[] = {
        {"(", "X[i]", ")"},        {"-", "X[i]", ""},
        {"exp(", "X[i]", ")"},     {"sum(k:2) ", "X[i]", ""},
        {"X[", "i", "]"},          {"!", "X[i]", ""},
        {"X[i] * (", "X[i]", ")"}, {"X[i | ", "0", "]"},
        {"max(0, ", "X[i]", ")"},  {"select(", "X[i]", ", 1, 2)"},
        {"f32(", "X[i]", ")"},     {"sum(a:2) -(", "X[i]", ")"},
    };
    struct wpk_program program;
    struct wpk_diag diag;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int count = 100; count <= 10000; count *= 100) {
            size_t size = (strlen(cases[i].before) + strlen(cases[i].after)) * (size_t)count;
            if (size > WPK_NOTATION_SIZE_MAX - 100) {
                continue;
            }
            wpk_err err = parse_repeated(cases[i].before, cases[i].middle, cases[i].after, count,
                                         &program, &diag);
            assert_int_equal(err, WPK_ERANGE);
            assert_non_null(strstr(diag.text, "nested deeper than 64"));
            assert_int_equal(diag.line, 1);
            assert_true(diag.column > 64);
        }
    }
    assert_int_equal(parse_repeated("(", "X[i]", ")", 62, &program, &diag), WPK_OK);
    wpk_program_fini(&program);
}

static void test_length(void **state)
{
    struct wpk_program program;
    struct wpk_diag diag;
    (void)state;
    assert_int_equal(parse_repeated("     ", "X[i]", "     ", 10000, &program, &diag), WPK_ERANGE);
    assert_non_null(strstr(diag.text, "longer than 65536 bytes"));
    /* a chain is not nested, but as deep in the program as it is long */
    assert_int_equal(parse_repeated("X[i]-", "X[i]", "", 1500, &program, &diag), WPK_OK);
    free(wpk_print_again(&program));
    wpk_program_fini(&program);
    assert_int_equal(parse_repeated("X[i]-", "X[i]", "", 5000, &program, &diag), WPK_ERANGE);
    assert_non_null(strstr(diag.text, "more than 8192 parts"));
    assert_int_equal(parse_repeated("X[i]-", "X[i]", "", 12000, &program, &diag), WPK_ERANGE);
    assert_non_null(strstr(diag.text, "names, numbers and operators"));
    /* small as a graph of shared nodes, endless as a text */
    assert_int_equal(parse_repeated("gelu(", "X[i]", ")", 7, &program, &diag), WPK_OK);
    free(wpk_print_again(&program));
    wpk_program_fini(&program);
    assert_int_equal(parse_repeated("gelu(", "X[i]", ")", 60, &program, &diag), WPK_ERANGE);
    /* a name of 63 characters is one, of 64 none */
    struct wpk_buf name = {0};
    while (name.size < WPK_NAME_MAX) {
        wpk_buf_append_byte(&name, 'n');
    }
    assert_int_equal(parse_repeated("", wpk_buf_text(&name), "", 1, &program, &diag), WPK_EPARSE);
    assert_non_null(strstr(diag.text, "a name longer than"));
    assert_int_equal(parse_repeated("", wpk_buf_text(&name) + 1, "", 1, &program, &diag),
                     WPK_EPARSE);
    assert_non_null(strstr(diag.text, "is no axis"));
    wpk_buf_fini(&name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_malformed_text),   cmocka_unit_test(test_wrong_meaning),
        cmocka_unit_test(test_several_outputs),  cmocka_unit_test(test_types),
        cmocka_unit_test(test_wrong_whole_form), cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
