/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/shorthand_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A [2,3,4] with B [3,1]: B has one element for each of A's middle indices. */
static void test_broadcast(void **state)
{
    struct wpk_expanded e;
    (void)state;
    wpk_expanded_init(&e, "{'type':'elementwise','expr':'relu(A * S + T) / C','inputs':"
                          "{'A':[2,3,4],'S':[3,1],'T':[1,1,4],'C':[]},'constants':['S','C']}");
    const double *a = wpk_expanded_values(&e, "A"), *s = wpk_expanded_values(&e, "S");
    const double *t = wpk_expanded_values(&e, "T"), *c = wpk_expanded_values(&e, "C");
    assert_int_equal(wpk_expanded_tensor(&e, "Y")->rank, 3);
    assert_int_equal(wpk_expanded_tensor(&e, "S")->role, WPK_ROLE_CONSTANT);
    assert_int_equal(wpk_expanded_tensor(&e, "T")->role, WPK_ROLE_INPUT);
    for (int at = 0; at < 24; at++) {
        wpk_expanded_expect(&e, at, fmax(a[at] * s[at / 4 % 3] + t[at % 4], 0) / c[0]);
    }
    wpk_expanded_fini(&e);
    /* the output is larger than either input */
    wpk_expanded_init(&e, "{'type':'sub','a':[3,1],'b':[4],'activation':'relu'}");
    a = wpk_expanded_values(&e, "A");
    const double *b = wpk_expanded_values(&e, "B");
    assert_int_equal(wpk_tensor_elements(wpk_expanded_tensor(&e, "Y")), 12);
    for (int at = 0; at < 12; at++) {
        wpk_expanded_expect(&e, at, fmax(a[at / 4] - b[at % 4], 0));
    }
    wpk_expanded_fini(&e);
}

/* A name is replaced as a whole word only; comparisons are no equations. */
static void test_expressions(void **state)
{
    struct wpk_expanded e;
    (void)state;
    wpk_expanded_init(&e, "{'type':'elementwise','expr':'select(e >= ex || ex == 0, exp(e), ex)',"
                          "'inputs':{'e':[5],'ex':[5]}}");
    const double *x = wpk_expanded_values(&e, "e"), *y = wpk_expanded_values(&e, "ex");
    for (int at = 0; at < 5; at++) {
        wpk_expanded_expect(&e, at, x[at] >= y[at] || y[at] == 0 ? exp(x[at]) : y[at]);
    }
    wpk_expanded_fini(&e);
}

static double binary(const char *name, double a, double b)
{
    return strcmp(name, "add") == 0   ? a + b
           : strcmp(name, "sub") == 0 ? a - b
           : strcmp(name, "mul") == 0 ? a * b
           : strcmp(name, "div") == 0 ? a / b
           : strcmp(name, "min") == 0 ? fmin(a, b)
                                      : fmax(a, b);
}

static void test_binary(void **state)
{
    static const char *const names[] = {"add", "sub", "mul", "div", "min", "max"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct wpk_expanded e;
        char json[100];
        (void)snprintf(json, sizeof json, "{'type':'%s','a':[7,3],'b':[7,3]}", names[i]);
        wpk_expanded_init(&e, json);
        const double *a = wpk_expanded_values(&e, "A"), *b = wpk_expanded_values(&e, "B");
        for (int at = 0; at < 21; at++) {
            if (strcmp(names[i], "div") != 0 || b[at] != 0) {
                wpk_expanded_expect(&e, at, binary(names[i], a[at], b[at]));
            }
        }
        wpk_expanded_fini(&e);
    }
}

static double relu6(double x)
{
    return fmin(fmax(x, 0), 6);
}

static double leaky_relu(double x)
{
    return x < 0 ? 0.01 * x : x;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double relu(double x)
{
    return fmax(x, 0);
}

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static double silu(double x)
{
    return x * sigmoid(x);
}

static double hardswish(double x)
{
    return x * relu6(x + 3) / 6;
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static const struct function {
    const char *name;
    double (*of)(double x);
    bool positive; /* its argument must be */
} functions[] = {
    {"relu", relu, false},       {"relu6", relu6, false}, {"leaky_relu", leaky_relu, false},
    {"sigmoid", sigmoid, false}, {"tanh", tanh, false},   {"gelu", gelu, false},
    {"silu", silu, false},       {"exp", exp, false},     {"hardswish", hardswish, false},
    {"log", log, true},          {"sqrt", sqrt, true},    {"rsqrt", rsqrt, true},
    {"erf", erf, false},         {"abs", fabs, false},
};

static void check_function(const struct function *f, const char *json)
{
    struct wpk_expanded e;
    wpk_expanded_init(&e, json);
    const double *x = wpk_expanded_values(&e, "X");
    for (int at = 0; at < 40; at++) {
        if (!f->positive || x[at] > 0) {
            wpk_expanded_expect(&e, at, f->of(x[at]));
        }
    }
    wpk_expanded_fini(&e);
}

static void test_unary(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        char json[100];
        (void)snprintf(json, sizeof json, "{'type':'%s','shape':[40]}", functions[i].name);
        check_function(&functions[i], json);
        (void)snprintf(json, sizeof json,
                       "{'type':'elementwise','expr':'%s(X)','inputs':{'X':[40]}}",
                       functions[i].name);
        check_function(&functions[i], json);
    }
}

/* Y[i,j,k] = X[j,k,i]: dimension d of Y is dimension perm[d] of X. */
static void test_transpose(void **state)
{
    struct wpk_expanded e;
    (void)state;
    wpk_expanded_init(&e, "{'type':'transpose','shape':[2,3,4],'perm':[2,0,1]}");
    const double *x = wpk_expanded_values(&e, "X");
    const struct wpk_tensor *y = wpk_expanded_tensor(&e, "Y");
    assert_int_equal(y->extent[0], 4);
    assert_int_equal(y->extent[1], 2);
    assert_int_equal(y->extent[2], 3);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 2; j++) {
            for (int k = 0; k < 3; k++) {
                wpk_expanded_expect(&e, (i * 2 + j) * 3 + k, x[(j * 3 + k) * 4 + i]);
            }
        }
    }
    wpk_expanded_fini(&e);
}

static void test_mistakes(void **state)
{
    static const struct wpk_shorthand_mistake mistakes[] = {
        {"{'type':'elementwise','inputs':{'A':[2]}}", WPK_EINVAL, "expr", "is missing"},
        {"{'type':'elementwise','expr':'A +','inputs':{'A':[2]}}", WPK_EPARSE, "expr",
         "expected an expression"},
        {"{'type':'elementwise','expr':'A + B','inputs':{'A':[2]}}", WPK_EPARSE, "expr",
         "B is no axis"},
        {"{'type':'elementwise','expr':'1','inputs':{'A':[2]}}", WPK_EPARSE, "expr",
         "A is not used"},
        {"{'type':'elementwise','expr':'A[a0]','inputs':{'A':[2]}}", WPK_EINVAL, "expr",
         "names of inputs"},
        {"{'type':'elementwise','expr':'A; Z = A == A','inputs':{'A':[2]}}", WPK_EINVAL, "expr",
         "names of inputs"},
        {"{'type':'elementwise','expr':'A where Z = A','inputs':{'A':[2]}}", WPK_EINVAL, "expr",
         "names of inputs"},
        {"{'type':'elementwise','expr':'A','inputs':{}}", WPK_EPARSE, "expr", ""},
        {"{'type':'elementwise','expr':'Y','inputs':{'Y':[2]}}", WPK_EINVAL, "inputs.Y",
         "'Y' cannot be the name of an input"},
        {"{'type':'elementwise','expr':'a1','inputs':{'a1':[2]}}", WPK_EINVAL, "inputs.a1",
         "cannot be"},
        {"{'type':'elementwise','expr':'x','inputs':{'2x':[2]}}", WPK_EINVAL, "inputs.2x",
         "cannot be"},
        {"{'type':'elementwise','expr':'A+B','inputs':{'A':[2,3],'B':[2]}}", WPK_EINVAL, "inputs.B",
         "extents 2 and 3 do not match"},
        {"{'type':'elementwise','expr':'A','inputs':{'A':[-2]}}", WPK_ERANGE, "inputs.A[0]", ""},
        {"{'type':'add','a':[2,3],'b':[2]}", WPK_EINVAL, "b", "extents 2 and 3 do not match"},
        {"{'type':'add','a':[2,3]}", WPK_EINVAL, "b", "is missing"},
        {"{'type':'add','a':[2],'b':[2],'constants':['C']}", WPK_EINVAL, "constants[0]",
         "no input is called 'C'"},
        {"{'type':'gelu','shape':[2],'dtype':'i8'}", WPK_EINVAL, "dtype", "floating"},
        {"{'type':'gelu','a':[2]}", WPK_EINVAL, "a", "unknown field"},
        {"{'type':'transpose','shape':[2,3],'perm':[0]}", WPK_EINVAL, "perm",
         "each of the 2 axes once"},
        {"{'type':'transpose','shape':[2,3],'perm':[1,1]}", WPK_EINVAL, "perm", "once"},
        {"{'type':'transpose','shape':[2,3],'perm':[0,2]}", WPK_ERANGE, "perm[1]", ""},
        {"{'type':'transpose','shape':[2,3]}", WPK_EINVAL, "perm", "is missing"},
    };
    (void)state;
    wpk_expect_mistakes(mistakes, sizeof mistakes / sizeof *mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast), cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_binary),    cmocka_unit_test(test_unary),
        cmocka_unit_test(test_transpose), cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
