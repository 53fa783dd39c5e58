/* SPDX-License-Identifier: Apache-2.0 */
#include "op/expand_function.h"

#include "op/infinite.h"
#include "op/node.h"

#include <math.h>

/* Numbers whose exp is 0. */
#define EXP_LEAST_F32 (-128.0)
#define EXP_LEAST_F64 (-1100.0)

/* Operations of one expansion: all of them strict, or none, on one type. */
struct arithmetic {
    struct wpk_program *program;
    enum wpk_dtype dtype;
    bool strict;
};

static struct arithmetic arithmetic_of(struct wpk_program *program, int a, bool strict)
{
    return (struct arithmetic){
        .program = program, .dtype = program->nodes[a].dtype, .strict = strict};
}

static int real(const struct arithmetic *m, double value)
{
    return wpk_node_real(m->program, m->dtype, value);
}

static int binary(const struct arithmetic *m, enum wpk_binary op, int a, int b)
{
    return m->strict ? wpk_expand_strict(m->program, op, a, b)
                     : wpk_node_binary(m->program, op, a, b);
}

static int add(const struct arithmetic *m, int a, int b)
{
    return binary(m, WPK_BINARY_ADD, a, b);
}

static int multiply(const struct arithmetic *m, int a, int b)
{
    return binary(m, WPK_BINARY_MUL, a, b);
}

static int unary(const struct arithmetic *m, enum wpk_unary op, int a)
{
    int before = m->program->node_count;
    int id = wpk_node_unary(m->program, op, a);
    if (id >= before) {
        m->program->nodes[id].strict = m->strict;
    }
    return id;
}

int wpk_expand_strict(struct wpk_program *program, enum wpk_binary op, int a, int b)
{
    int before = program->node_count;
    int id = wpk_node_binary(program, op, a, b);
    if (id >= before) { /* no operand that the operation leaves as it is */
        program->nodes[id].strict = true;
    }
    return id;
}

/* ---- of numbers */

/* Over exp. Near zero 1 - e cancels: two or five terms of the series are exact to a rounding there.
 */
static int tanh_of(const struct arithmetic *m, int a)
{
    static const double series[] = {-1382.0 / 155925, 62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3};
    int one = real(m, 1), size = unary(m, WPK_UNARY_ABS, a);
    int e = unary(m, WPK_UNARY_EXP, multiply(m, size, real(m, -2)));
    int large = binary(m, WPK_BINARY_DIV, binary(m, WPK_BINARY_SUB, one, e), add(m, one, e));
    int square = multiply(m, a, a), rest = real(m, 0);
    for (int i = m->dtype == WPK_F64 ? 0 : 3; i < 5; i++) {
        rest = multiply(m, square, add(m, real(m, series[i]), rest));
    }
    int small = multiply(m, a, add(m, one, rest));
    int is_negative = binary(m, WPK_BINARY_LT, a, real(m, 0));
    int is_small = binary(m, WPK_BINARY_LT, size, real(m, 0.05));
    int sign = wpk_node_select(m->program, is_negative, unary(m, WPK_UNARY_NEG, large), large);
    return wpk_node_select(m->program, is_small, small, sign);
}

/* Polynomials close to minimax (tests/erf_fit.py), the highest power first: of x^2 for
 * erf(x) / x - 1, and of |x| for log(1 - erf(|x|)). */
static const double erf_small_f32[] = {
    7.853853653937013e-05, -0.000801019127376742, 0.005188327415888669, -0.026853811792313602,
    0.11283585145184145,   -0.37612625823929446,  0.1283791657266568};
static const double erf_large_f32[] = {
    0.00018638955210553603, -0.0029477669788916714, 0.021838523112931576,  -0.10310775449625514,
    -0.6381436474579842,    -1.127089916201609,     -0.0003413432337388168};
static const double erf_small_f64[] = {
    -7.779463981700198e-10, 1.371097785838091e-08,   -1.6206313137016297e-07,
    1.6447131484465949e-06, -1.4924712294368477e-05, 0.00012055293576458628,
    -0.0008548325929297424, 0.005223977606118037,    -0.026866170643111396,
    0.11283791670944184,    -0.3761263890318352,     0.12837916709551256};
static const double erf_large_f64[] = {
    1.0465891749622233e-12,  -4.7838127937256694e-11, 1.023407087341582e-09,
    -1.3600090838046128e-08, 1.2549101557284057e-07,  -8.493090650487341e-07,
    4.321338888289901e-06,   -1.6493902459527263e-05, 4.498174773151312e-05,
    -7.024361431781514e-05,  -4.503978053923161e-05,  0.0006414786854648779,
    -0.001769341518056978,   0.00028078498406149404,  0.01907795896761988,
    -0.10274715617564115,    -0.6366285215395108,     -1.1283773223884022,
    -1.8029656200719686e-07};

static int polynomial(const struct arithmetic *m, const double *coefficient, int count, int x)
{
    int value = real(m, coefficient[0]);
    for (int i = 1; i < count; i++) {
        value = add(m, multiply(m, value, x), real(m, coefficient[i]));
    }
    return value;
}

#define POLYNOMIAL(m, table, x) polynomial(m, table, sizeof(table) / sizeof(table[0]), x)

/* x + x P(x^2) below 1, then 1 - exp(P(|x|)), whose argument may be less accurate as exp gets
 * smaller. Above 4, in f64 above 6, erf is 1 to the last place.
 *   source  error in units in the last place: at most 1.8 in f32, 2.0 in f64, where exp's is 2;
 *           measured by op/expand_test.c */
static int erf_of(const struct arithmetic *m, int a)
{
    bool wide = m->dtype == WPK_F64;
    int one = real(m, 1), size = unary(m, WPK_UNARY_ABS, a), square = multiply(m, a, a);
    int rest = wide ? POLYNOMIAL(m, erf_small_f64, square) : POLYNOMIAL(m, erf_small_f32, square);
    int small = add(m, multiply(m, a, rest), a);
    int bounded = binary(m, WPK_BINARY_MIN, size, real(m, wide ? 6 : 4));
    int log = wide ? POLYNOMIAL(m, erf_large_f64, bounded) : POLYNOMIAL(m, erf_large_f32, bounded);
    int large = binary(m, WPK_BINARY_SUB, one, unary(m, WPK_UNARY_EXP, log));
    int is_negative = binary(m, WPK_BINARY_LT, a, real(m, 0));
    int sign = wpk_node_select(m->program, is_negative, unary(m, WPK_UNARY_NEG, large), large);
    return wpk_node_select(m->program, binary(m, WPK_BINARY_LT, size, one), small, sign);
}

static int sigmoid_of(const struct arithmetic *m, int a)
{
    int e = unary(m, WPK_UNARY_EXP, unary(m, WPK_UNARY_NEG, a));
    return binary(m, WPK_BINARY_DIV, real(m, 1), add(m, real(m, 1), e));
}

/* Machines estimate 1 / sqrt to 12 bits: one step of Newton's doubles them. */
static int rsqrt_of(const struct arithmetic *m, int a)
{
    int e = binary(m, WPK_BINARY_DIV, real(m, 1), unary(m, WPK_UNARY_SQRT, a));
    int half = multiply(m, multiply(m, multiply(m, real(m, 0.5), a), e), e);
    return multiply(m, e, binary(m, WPK_BINARY_SUB, real(m, 1.5), half));
}

static int function_of(const struct arithmetic *m, enum wpk_unary op, int a)
{
    switch (op) {
    case WPK_UNARY_TANH:
        return tanh_of(m, a);
    case WPK_UNARY_ERF:
        return erf_of(m, a);
    case WPK_UNARY_SIGMOID:
        return sigmoid_of(m, a);
    case WPK_UNARY_RSQRT:
        return rsqrt_of(m, a);
    default:
        return unary(m, op, a);
    }
}

int wpk_expand_function(struct wpk_program *program, enum wpk_unary op, int a)
{
    if (a < 0) {
        return -1;
    }
    struct arithmetic m = arithmetic_of(program, a, false);
    return function_of(&m, op, a);
}

/* ---- of what may be infinite or NaN */

/* A strict max takes `least` for NaN, too. */
static int exp_of_special(const struct arithmetic *m, int a, int may_be)
{
    int least = real(m, m->dtype == WPK_F64 ? EXP_LEAST_F64 : EXP_LEAST_F32);
    int clamped = binary(m, WPK_BINARY_MAX, a, least);
    int value = wpk_node_unary(m->program, WPK_UNARY_EXP, clamped);
    if ((may_be & WPK_MAY_BE_PLUS) == 0) {
        return value;
    }
    int plus = real(m, INFINITY);
    return wpk_node_select(m->program, binary(m, WPK_BINARY_EQ, a, plus), plus, value);
}

/* The function of a number is computed, and the rest is set: a function that saturates has `low`
 * and `high` of the infinities. The others are NaN, but log(inf) is infinite. */
static int select_special(const struct arithmetic *m, enum wpk_unary op, int a)
{
    bool saturates = op == WPK_UNARY_TANH || op == WPK_UNARY_ERF || op == WPK_UNARY_SIGMOID;
    int one = real(m, 1), zero = real(m, 0);
    int finite =
        binary(m, WPK_BINARY_LT, wpk_node_unary(m->program, WPK_UNARY_ABS, a), real(m, INFINITY));
    int number = wpk_expand_function(m->program, op, wpk_node_select(m->program, finite, a, one));
    int nan = binary(m, WPK_BINARY_SUB, a, a); /* of an infinity, too */
    int below = binary(m, WPK_BINARY_LT, a, zero);
    int above = binary(m, WPK_BINARY_LT, zero, a);
    int low = !saturates ? nan : op == WPK_UNARY_SIGMOID ? zero : real(m, -1);
    int high = saturates ? one : op == WPK_UNARY_LOG ? a : nan;
    int rest = wpk_node_select(m->program, above, high, nan);
    rest = wpk_node_select(m->program, below, low, rest);
    return wpk_node_select(m->program, finite, number, rest);
}

int wpk_expand_special(struct wpk_program *program, enum wpk_unary op, int a, int may_be)
{
    if (a < 0) {
        return -1;
    }
    struct arithmetic m = arithmetic_of(program, a, true);
    switch (op) {
    case WPK_UNARY_EXP:
        return exp_of_special(&m, a, may_be);
    case WPK_UNARY_TANH:
    case WPK_UNARY_ERF:
    case WPK_UNARY_SIGMOID:
    case WPK_UNARY_LOG:
    case WPK_UNARY_SIN:
    case WPK_UNARY_COS:
        return select_special(&m, op, a);
    default:
        return function_of(&m, op, a);
    }
}

/* ---- casts */

static int keep_infinity(struct wpk_program *program, int a, int value, double infinity)
{
    const enum wpk_dtype from = program->nodes[a].dtype, to = program->nodes[value].dtype;
    int is_infinite =
        wpk_expand_strict(program, WPK_BINARY_EQ, a, wpk_node_real(program, from, infinity));
    return wpk_node_select(program, is_infinite, wpk_node_real(program, to, infinity), value);
}

/* A NaN: inf - inf, in a narrow type, too. */
static int nan_of(struct wpk_program *program, enum wpk_dtype dtype)
{
    int infinity = wpk_node_real(program, dtype, INFINITY);
    const struct wpk_node node = {.kind = WPK_NODE_BINARY,
                                  .dtype = dtype,
                                  .op = WPK_BINARY_SUB,
                                  .arg = {infinity, infinity, -1},
                                  .axis = -1,
                                  .tensor = -1,
                                  .outside = -1,
                                  .strict = true};
    return infinity < 0 ? -1 : wpk_node_append(program, &node);
}

/* Special values are selected apart from the cast of a number. */
static int cast_special(struct wpk_program *program, enum wpk_dtype dtype, int a, int may_be)
{
    int value = wpk_node_cast(program, dtype, a);
    if ((may_be & WPK_MAY_BE_NAN) != 0) {
        int number = wpk_expand_strict(program, WPK_BINARY_EQ, a, a);
        value = wpk_node_select(program, number, value, nan_of(program, dtype));
    }
    if (value >= 0 && (may_be & WPK_MAY_BE_MINUS) != 0) {
        value = keep_infinity(program, a, value, -INFINITY);
    }
    if (value >= 0 && (may_be & WPK_MAY_BE_PLUS) != 0) {
        value = keep_infinity(program, a, value, INFINITY);
    }
    return value;
}

int wpk_expand_cast(struct wpk_program *program, enum wpk_dtype dtype, int a, int may_be)
{
    if (a < 0) {
        return -1;
    }
    enum wpk_dtype from = program->nodes[a].dtype;
    if (from == dtype || !wpk_dtype_is_float(from) || dtype == WPK_BOOL) {
        return wpk_node_cast(program, dtype, a);
    }
    return wpk_dtype_is_float(dtype)
               ? cast_special(program, dtype, a, may_be)
               : wpk_node_cast(program, dtype, wpk_node_unary(program, WPK_UNARY_ROUND, a));
}
