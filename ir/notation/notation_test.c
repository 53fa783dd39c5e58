/* SPDX-License-Identifier: Apache-2.0 */
/* Both text forms: what is accepted, and what comes back when it is printed. */
#include "tests/notation_check.h"
#include "tests/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The equation of Y in whole form, without its declarations and other stages. */
static void assert_stage(const struct wpk_given *given, const char *expected)
{
    struct wpk_program program;
    wpk_given_parse_good(given, &program);
    char *text = wpk_print_again(&program);
    char *last = strstr(text, "\nY[");
    assert_non_null(last);
    last[strlen(last) - 1] = '\0';
    if (strcmp(last + 1, expected) != 0) {
        fail_msg("%s\n became  %s\n, not    %s", given->text, last + 1, expected);
    }
    free(text);
    wpk_program_fini(&program);
}

static void test_expressions(void **state)
{
    (void)state;
    static const struct {
        const char *text, *whole;
    } cases[] = {
        {"Y[i] = A[i]", "Y[i] = A[i]"},
        {"Y[i:4] = A[i];", "Y[i] = A[i]"},
        {"# a comment\nY[i] = # and another\n A[i]", "Y[i] = A[i]"},
        {"Y[i] = A[i] - B[i] - 1", "Y[i] = A[i] - B[i] + -1"},
        {"Y[i] = A[i] - (B[i] - A[i])", "Y[i] = A[i] - (B[i] - A[i])"},
        {"Y[i] = A[i] * (B[i] + 2.5)", "Y[i] = A[i] * (B[i] + 2.5)"},
        {"Y[i] = A[i] / B[i] * A[i]", "Y[i] = A[i] / B[i] * A[i]"},
        {"Y[i] = -A[i]", "Y[i] = -A[i]"},
        {"Y[i] = --A[i]", "Y[i] = -(-A[i])"},
        {"Y[i] = 2 - 5 + A[i]", "Y[i] = -3 + A[i]"},
        {"Y[i] = relu(A[i])", "Y[i] = max(A[i], 0)"},
        {"Y[i] = relu6(A[i])", "Y[i] = min(max(A[i], 0), 6)"},
        {"Y[i] = leaky_relu(A[i])", "Y[i] = max(A[i], A[i] * 0.009999999776482582)"},
        {"Y[i] = silu(A[i])", "Y[i] = A[i] * sigmoid(A[i])"},
        {"Y[i] = pow(A[i], 2)", "Y[i] = pow(A[i], 2)"},
        {"Y[i] = f32(i8(A[i]))", "Y[i] = f32(i8(A[i]))"},
        {"Y[i] = i", "Y[i] = f32(i)"},
        {"Y[i] = i + 0.5", "Y[i] = f32(i) + 0.5"},
        {"Y[i] = max(i, 2)", "Y[i] = f32(max(i, 2))"},
        {"Y[i] = A[3-i]", "Y[i] = A[3-i]"},
        {"Y[i] = A[i/2*2+i%2]", "Y[i] = A[2*(i/2)+i%2]"},
        {"Y[i] = A[--i]", "Y[i] = A[i]"},
        {"Y[i] = A[i-1]", "Y[i] = A[i-1]"},
        {"Y[i] = A[i-1 | -inf]", "Y[i] = A[i-1 | -inf]"},
        {"Y[i] = A[2*i | 1e3]", "Y[i] = A[2*i | 1e+03]"},
        {"Y[i] = A[i | 7]", "Y[i] = A[i]"}, /* it cannot leave */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool one = strstr(cases[i].text, "B[") == NULL, none = strstr(cases[i].text, "A[") == NULL;
        const struct wpk_given given = {
            cases[i].text, {"Y f32[4]", none ? NULL : "A f32[4]", one ? NULL : "B f32[4]"}};
        assert_stage(&given, cases[i].whole);
    }
}

/* The IR knows < and <= only: the others are these with their operands exchanged. */
static void test_comparisons(void **state)
{
    (void)state;
    static const struct {
        const char *text, *whole;
    } cases[] = {
        {"Y[i] = A[i] < B[i]", "Y[i] = A[i] < B[i]"},
        {"Y[i] = A[i] <= B[i]", "Y[i] = A[i] <= B[i]"},
        {"Y[i] = A[i] > B[i]", "Y[i] = B[i] < A[i]"},
        {"Y[i] = A[i] >= B[i]", "Y[i] = B[i] <= A[i]"},
        {"Y[i] = A[i] > 0 && 1 >= B[i]", "Y[i] = 0 < A[i] && B[i] <= 1"},
        {"Y[i] = A[i] + 1 > 2 * B[i]", "Y[i] = 2 * B[i] < A[i] + 1"},
        {"Y[i] = A[i] == B[i] || A[i] != 1", "Y[i] = A[i] == B[i] || A[i] != 1"},
        {"Y[i] = !(A[i] > B[i])", "Y[i] = !(B[i] < A[i])"},
        {"Y[i] = i >= 2 && A[i] > B[i]", "Y[i] = 2 <= i && B[i] < A[i]"},
        {"Y[i] = bool(select(A[i] > B[i], A[i], B[i]))",
         "Y[i] = bool(select(B[i] < A[i], A[i], B[i]))"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct wpk_given given = {cases[i].text, {"A f32[4]", "B f32[4]", "Y bool[4]"}};
        assert_stage(&given, cases[i].whole);
    }
}

/* The text as a whole, once for everything that declarations can say. */
static void assert_whole(const struct wpk_given *given, const char *expected)
{
    struct wpk_program program;
    wpk_given_parse_good(given, &program);
    char *text = wpk_print_again(&program);
    assert_string_equal(text, expected);
    free(text);
    wpk_program_fini(&program);
}

static void test_reductions(void **state)
{
    (void)state;
    assert_whole(&(struct wpk_given){"Y[i] = max(r:3) X[2*i+r-1 | -inf]", {"X f16[8]", "Y f16[4]"}},
                 "input X f16[8]\noutput Y f16[4]\n"
                 "Y[i] = max.f32(r:3) f32(X[2*i+r-1 | -inf])\n");
    /* inside an expression: a stage of its own, over the axes that it uses */
    assert_whole(&(struct wpk_given){"Y[i,j] = relu(sum(k) A[i,k] * B[k] + 1)",
                                     {"A f32[2,3]", "B f32[3]", "Y f32[2,4]"}},
                 "input A f32[2,3]\ninput B f32[3]\noutput Y f32[2,4]\n"
                 "intermediate Y_acc f32[2]\n"
                 "Y_acc[i] = sum.f32(k:3) A[i,k] * B[k]\n"
                 "Y[i,j] = max(Y_acc[i] + 1, 0)\n");
    /* users' narrow values are wide before they meet, those of the whole form need not be */
    assert_whole(&(struct wpk_given){"Y[i] = max(A[i], 300)", {"A i8[2]", "Y i32[2]"}},
                 "input A i8[2]\noutput Y i32[2]\nY[i] = max(i32(A[i]), 300)\n");
    /* the accumulators of narrow types, and one that is asked for */
    assert_whole(&(struct wpk_given){"Y[i] = sum(k) A[i,k] * B[i,k]",
                                     {"A u8[2,3]", "B i8[2,3]", "Y i32[2]"}},
                 "input A u8[2,3]\ninput B i8[2,3]\noutput Y i32[2]\n"
                 "Y[i] = sum.i32(k:3) i32(A[i,k]) * i32(B[i,k])\n");
    assert_whole(&(struct wpk_given){"Y[] = sum.f64(k) A[k]", {"A f32[3]", "Y f32[]"}},
                 "input A f32[3]\noutput Y f32[]\nY[] = sum.f64(k:3) f64(A[k])\n");
    /* side by side, reductions may use one name, for axes of different extents too */
    assert_whole(
        &(struct wpk_given){"Y[i,j] = (sum(k) A[i,k] * B[j,k]) * rsqrt((sum(k) A[i,k] * A[i,k]) * "
                            "(sum(k,k2) C[k,k2] * B[j,k2]))",
                            {"A f32[2,3]", "B f32[4,3]", "C f32[5,3]", "Y f32[2,4]"}},
        "input A f32[2,3]\ninput B f32[4,3]\ninput C f32[5,3]\noutput Y f32[2,4]\n"
        "intermediate Y_acc f32[2,4]\nintermediate Y_acc2 f32[2]\nintermediate Y_acc3 f32[4]\n"
        "Y_acc[i,j] = sum.f32(k:3) A[i,k] * B[j,k]\n"
        "Y_acc2[i] = sum.f32(k3:3) A[i,k3] * A[i,k3]\n"
        "Y_acc3[j] = sum.f32(k4:5,k2:3) C[k4,k2] * B[j,k2]\n"
        "Y[i,j] = Y_acc[i,j] * rsqrt(Y_acc2[i] * Y_acc3[j])\n");
    /* a reduction inside another one, over the axes that it uses of those around it */
    assert_whole(
        &(struct wpk_given){"Y[i,j] = exp(X[i,j]) / sum(m) exp(X[i,m] - max(q) X[i,q])",
                            {"X f32[2,3]", "Y f32[2,3]"}},
        "input X f32[2,3]\noutput Y f32[2,3]\nintermediate Y_acc f32[2]\n"
        "intermediate Y_acc2 f32[2]\nY_acc2[i] = max.f32(q:3) X[i,q]\n"
        "Y_acc[i] = sum.f32(m:3) exp(X[i,m] - Y_acc2[i])\nY[i,j] = exp(X[i,j]) / Y_acc[i]\n");
    assert_whole(
        &(struct wpk_given){"Y[i] = sum(m) X[m] * (sum(q) X[q] * X[m])", {"X f32[3]", "Y f32[2]"}},
        "input X f32[3]\noutput Y f32[2]\nintermediate Y_acc f32[3]\n"
        "Y_acc[m] = sum.f32(q:3) X[q] * X[m]\nY[i] = sum.f32(m:3) X[m] * Y_acc[m]\n");
    /* equations in any order; their types are inferred */
    assert_whole(&(struct wpk_given){"Y[i] = T[i] / D[] where D[] = sum(j) T[j]; T[i] = exp(X[i])",
                                     {"X f32[3]", "Y f32[3]"}},
                 "input X f32[3]\noutput Y f32[3]\nintermediate T f32[3]\nintermediate D f32[]\n"
                 "T[i] = exp(X[i])\nD[] = sum.f32(j:3) T[j]\nY[i] = T[i] / D[]\n");
    /* names alone in the parentheses, and behind them a name that is no operand */
    assert_whole(
        &(struct wpk_given){"Y[i,j] = T[i,j] + U[] where T[i:2,j:3] = max(i, j) where U[] = 1",
                            {"Y f32[2,3]"}},
        "output Y f32[2,3]\nintermediate T i64[2,3]\nintermediate U f32[]\n"
        "T[i,j] = (max(i, j))\nU[] = f32(1)\nY[i,j] = f32(T[i,j]) + U[]\n");
}

/* The user's form of an equation whose tensors are X f32[4,8] and Y of the given type. */
static void assert_printed(const char *text, const char *x, const char *y, const char *expected)
{
    const struct wpk_given given = {text, {x, y}}, again = {expected, {x, y}};
    struct wpk_program program;
    struct wpk_buf out = {0};

    wpk_given_parse_good(&given, &program);
    assert_int_equal(wpk_notation_print(&program, &out), WPK_OK);
    assert_string_equal(wpk_buf_text(&out), expected);
    wpk_program_fini(&program);
    wpk_given_parse_good(&again, &program);
    wpk_buf_fini(&out);
    wpk_program_fini(&program);
}

/* An axis that no load is indexed by alone keeps its extent in the user's form. */
static void test_extents_are_kept(void **state)
{
    static const char text[] = "Y[i] = T[i,0] + T[i,1] where T[i:4,j:2] = X[i+1] + X[i+2*j]";
    /* +0, for X is longer than the axis: it tells no extent either */
    static const char part[] = "Y[i,j] = T[i,j] / (sum(k:4) T[i,k]) where T[i,j:4] = exp(X[i,j+0])";

    (void)state;
    assert_printed(text, "X f32[8]", "Y f32[4]", text);
    assert_printed(part, "X f32[4,8]", "Y f32[4,4]", part);
}

/* A reduction stays apart where a name around it is that of its axis: also around its reader. */
static void test_reductions_in_reductions(void **state)
{
    static const char apart[] = "Y[i,j] = select(min(k:8) select(M[i] <= X[i,k], k, i64(8)) == j, "
                                "f32(1), f32(0)) where M[i] = max(k:8) X[i,k]";

    (void)state;
    assert_printed("Y[i,j] = select(A[i] == j, f32(1), f32(0)) where M[i] = max(k:8) X[i,k]; "
                   "A[i] = min(k) select(X[i,k] >= M[i], k, 8)",
                   "X f32[4,8]", "Y f32[4,8]", apart);
    assert_printed("Y[i] = sum(k) X[i,k] * B[i] where B[i] = A[i] + 1; A[i] = max(j) X[i,j]",
                   "X f32[4,8]", "Y f32[4]",
                   "Y[i] = sum(k:8) X[i,k] * B[i] where B[i] = max(j:8) X[i,j] + 1");
}

/* The tensors that a text declares. */
static int declare_all(const struct wpk_program *program, struct wpk_declaration *declared)
{
    int count = 0;

    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        if (tensor->role != WPK_ROLE_INTERMEDIATE) {
            declared[count] = (struct wpk_declaration){
                .name = tensor->name, .dtype = tensor->dtype, .rank = tensor->rank};
            memcpy(declared[count++].extent, tensor->extent, sizeof(tensor->extent));
        }
    }
    return count;
}

/* The parser reads each printed program again, unless the program has an unused tensor. The
 * programs are of floats: other intermediates need not have the type of their equation. */
static void test_random_equations(void **state)
{
    static const struct wpk_random_options options = {.smooth = true};
    struct wpk_rng rng;
    int read = 0;

    (void)state;
    wpk_rng_seed(&rng, 12);
    for (int i = 0; i < 1500; i++) {
        struct wpk_program program, again = {0};
        struct wpk_declaration declared[WPK_TENSORS_MAX];
        struct wpk_buf text = {0};
        struct wpk_diag diag = {0};
        wpk_random_program(&rng, &options, &program);
        int count = declare_all(&program, declared);
        assert_int_equal(wpk_notation_print(&program, &text), WPK_OK);
        wpk_err err = wpk_notation_parse(wpk_buf_text(&text), declared, count, &again, &diag);
        if (err != WPK_OK && strstr(diag.text, "is not used") == NULL) {
            fail_msg("%s\n%d:%d: %s", wpk_buf_text(&text), diag.line, diag.column, diag.text);
        }
        read += err == WPK_OK;
        wpk_program_fini(&again);
        wpk_buf_fini(&text);
        wpk_program_fini(&program);
    }
    assert_true(read > 1000);
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *type, *text, *whole;
    } cases[] = {
        {"i64", "9223372036854775807", "i64(9223372036854775807)"},
        {"i64", "-9223372036854775808", "i64(-9223372036854775808)"},
        {"f32", "16777217", "f32(16777216)"},
        {"f64", "0.1", "f64(0.1)"},
        {"f64", "1e300", "f64(1e+300)"},
        {"f64", "72057594037927936", "f64(7.205759403792794e+16)"},
        {"f16", "1e5", "f16(inf)"},
        /* a cast converts as it would any value: integers wrap, what has a fraction saturates */
        {"i8", "i8(300)", "i8(44)"},
        {"u8", "u8(-1)", "u8(255)"},
        {"i32", "i32(4294967297)", "i32(1)"},
        {"i8", "i8(300.0)", "i8(127)"},
        {"u8", "u8(-0.7)", "u8(0)"},
        {"i8", "i8(2.5)", "i8(2)"},
        {"bool", "bool(2)", "bool(1)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[80], type[20], whole[80];
        (void)snprintf(text, sizeof text, "Y[i] = %s", cases[i].text);
        (void)snprintf(type, sizeof type, "Y %s[4]", cases[i].type);
        (void)snprintf(whole, sizeof whole, "Y[i] = %s", cases[i].whole);
        assert_stage(&(struct wpk_given){text, {type}}, whole);
    }
}

/* Every program that the IR can hold survives printing and parsing. */
static void test_random_programs(void **state)
{
    struct wpk_rng rng;
    (void)state;
    wpk_rng_seed(&rng, 11);
    for (int i = 0; i < 1500; i++) {
        struct wpk_program program;
        wpk_random_program(&rng, &(struct wpk_random_options){.data = i % 2 == 0}, &program);
        free(wpk_print_again(&program));
        wpk_program_fini(&program);
    }
}

/* Borders, literals and every role. */
static void test_whole_form(void **state)
{
    static const char text[] = "input X f32[1,28] pad 0:0,1:2\n"
                               "constant W f32[28,3]\n"
                               "literal G f64[2,2] = 1,-0.5,0.1,1e-30\n"
                               "intermediate T f32[1,28]\n"
                               "output Y f32[1,28]\n"
                               "T[n,x] = sum.f32(s:3) X[n,x+s-1] * W[x,s]\n"
                               "Y[n,x] = max(T[n,x], f32(sum_of[])) + f32(G[0,n] * G[1,1])\n";
    struct wpk_program program;
    struct wpk_diag diag = {0};
    struct wpk_buf changed = {0};
    (void)state;
    const char *hole = strstr(text, "f32(sum_of[])");
    wpk_buf_append(&changed, text, (size_t)(hole - text));
    wpk_buf_printf(&changed, "0%s", hole + strlen("f32(sum_of[])"));
    assert_int_equal(wpk_program_parse(wpk_buf_text(&changed), &program, &diag), WPK_OK);
    char *printed = wpk_print_again(&program);
    assert_string_equal(printed, wpk_buf_text(&changed));
    free(printed);
    wpk_program_fini(&program);
    wpk_buf_fini(&changed);
    assert_int_equal(wpk_program_parse(text, &program, &diag), WPK_EPARSE);
    assert_int_equal(diag.line, 7);
    assert_non_null(strstr(diag.text, "sum_of"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expressions),      cmocka_unit_test(test_comparisons),
        cmocka_unit_test(test_reductions),       cmocka_unit_test(test_extents_are_kept),
        cmocka_unit_test(test_numbers),          cmocka_unit_test(test_reductions_in_reductions),
        cmocka_unit_test(test_random_equations), cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_whole_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
