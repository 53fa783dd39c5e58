/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/expand_function.h"

#include "ir/infinite.h"
#include "ir/node.h"

#include <math.h>

/* Operations of one expansion: all of them strict, or none, on one type. Only polynomials are not:
 * what they give is a factor of a strict product, from which no compiler concludes anything. */
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

/* A new operation becomes strict; the node may also be an operand that stays as it is, or a number.
 */
static int make_strict(struct wpk_program *program, int before, int id)
{
    if (id >= before && !wpk_node_is_literal(program, id)) {
        program->nodes[id].strict = true;
    }
    return id;
}

static int unary(const struct arithmetic *m, enum wpk_unary op, int a)
{
    int before = m->program->node_count;
    int id = wpk_node_unary(m->program, op, a);
    return m->strict ? make_strict(m->program, before, id) : id;
}

int wpk_expand_strict(struct wpk_program *program, enum wpk_binary op, int a, int b)
{
    int before = program->node_count;
    return make_strict(program, before, wpk_node_binary(program, op, a, b));
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
    const struct arithmetic fast = arithmetic_of(m->program, a, false);
    int square = multiply(&fast, a, a), rest = real(m, 0);
    for (int i = m->dtype == WPK_F64 ? 0 : 3; i < 5; i++) {
        rest = multiply(&fast, square, add(&fast, real(m, series[i]), rest));
    }
    int small = multiply(m, a, add(m, one, rest));
    int is_negative = binary(m, WPK_BINARY_LT, a, real(m, 0));
    int is_small = binary(m, WPK_BINARY_LT, size, real(m, 0.05));
    int sign = wpk_node_select(m->program, is_negative, unary(m, WPK_UNARY_NEG, large), large);
    return wpk_node_select(m->program, is_small, small, sign);
}

/* P and Q of erf (tests/function_fit.py), the highest power first; all terms are positive. */
static const double erf_p_f32[] = {2.049845167000717e-06, 0.0002848019867246693,
                                   0.003763820084532647,  0.05274306364711461,
                                   0.1903703175270601,    1.1283791468030224};
static const double erf_q_f32[] = {3.808496084694728e-05, 0.0011620239841903695,
                                   0.01496565640879811,   0.11409337417350304,
                                   0.5020440538338767,    1.0};
static const double erf_p_f64[] = {
    1.5805701266193507e-17, 2.235032583762847e-14,  3.3387349477972284e-12, 1.7167849894906844e-10,
    6.750059624762466e-09,  1.6912076836114174e-07, 3.8948780179388386e-06, 5.683867447876802e-05,
    0.0008548227249139628,  0.0068801462810746585,  0.06609113568557437,    0.2199985602126771,
    1.1283791670955126};
static const double erf_q_f64[] = {8.893893601795784e-16,
                                   3.3267398432779453e-13,
                                   2.547093663449012e-11,
                                   1.122763462148426e-09,
                                   3.509169057234824e-08,
                                   8.335421963383649e-07,
                                   1.547357948529556e-05,
                                   0.00022577949436365847,
                                   0.002561814794442088,
                                   0.021967498031423695,
                                   0.1346724042965534,
                                   0.5283019809546453,
                                   1.0};

static int polynomial(const struct arithmetic *m, const double *coefficient, int count, int x)
{
    int value = real(m, coefficient[0]);
    for (int i = 1; i < count; i++) {
        value = add(m, multiply(m, value, x), real(m, coefficient[i]));
    }
    return value;
}

#define POLYNOMIAL(m, table, x) polynomial(m, table, sizeof(table) / sizeof(table[0]), x)

static int limit(const struct arithmetic *m, int a, double most)
{
    return binary(m, WPK_BINARY_MIN, real(m, most), binary(m, WPK_BINARY_MAX, real(m, -most), a));
}

/* x P(x^2) / Q(x^2). From 3.92 on, in f64 from 5.92 on, erf rounds to 1.
 *   source  error in units in the last place: at most 6.3 in f32, 11 in f64; measured by
 *           nest/expand_test.c */
static int erf_of(const struct arithmetic *m, int a)
{
    bool wide = m->dtype == WPK_F64;
    const struct arithmetic fast = arithmetic_of(m->program, a, false);
    int x = limit(m, a, wide ? 5.92 : 3.92), square = multiply(&fast, x, x);
    int p = wide ? POLYNOMIAL(&fast, erf_p_f64, square) : POLYNOMIAL(&fast, erf_p_f32, square);
    int q = wide ? POLYNOMIAL(&fast, erf_q_f64, square) : POLYNOMIAL(&fast, erf_q_f32, square);
    return limit(m, binary(m, WPK_BINARY_DIV, multiply(m, x, p), q), 1);
}

static int sigmoid_of(const struct arithmetic *m, int a)
{
    int e = unary(m, WPK_UNARY_EXP, unary(m, WPK_UNARY_NEG, a));
    return binary(m, WPK_BINARY_DIV, real(m, 1), add(m, real(m, 1), e));
}

/* A strict quotient: machines estimate a fast one to 12 bits. */
static int rsqrt_of(const struct arithmetic *m, int a)
{
    return binary(m, WPK_BINARY_DIV, real(m, 1), unary(m, WPK_UNARY_SQRT, a));
}

int wpk_expand_function(struct wpk_program *program, enum wpk_unary op, int a, bool strict)
{
    if (a < 0) {
        return -1;
    }
    const struct arithmetic m = arithmetic_of(program, a, true);
    switch (op) {
    case WPK_UNARY_TANH:
        return tanh_of(&m, a);
    case WPK_UNARY_ERF:
        return erf_of(&m, a);
    case WPK_UNARY_SIGMOID:
        return sigmoid_of(&m, a);
    case WPK_UNARY_RSQRT:
        return rsqrt_of(&m, a);
    case WPK_UNARY_ISNAN:
        return binary(&m, WPK_BINARY_NE, a, a);
    case WPK_UNARY_ISINF:
        return binary(&m, WPK_BINARY_OR, binary(&m, WPK_BINARY_EQ, a, real(&m, INFINITY)),
                      binary(&m, WPK_BINARY_EQ, a, real(&m, -INFINITY)));
    case WPK_UNARY_NEG: {
        const struct arithmetic own = arithmetic_of(program, a, strict);
        return unary(&own, op, a);
    }
    default:
        return wpk_node_unary(program, op, a);
    }
}

/* A strict maximum keeps a NaN in its right operand. */
int wpk_expand_choice(struct wpk_program *program, enum wpk_binary op, int a, int b)
{
    const struct arithmetic m = arithmetic_of(program, a, true);
    bool literal = wpk_node_is_literal(program, a);
    if (literal || wpk_node_is_literal(program, b)) {
        return binary(&m, op, literal ? a : b, literal ? b : a);
    }
    int number = binary(&m, WPK_BINARY_EQ, a, a);
    return wpk_node_select(program, number, binary(&m, op, a, b), a);
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
    if (from != dtype && dtype == WPK_BOOL) {
        int zero = wpk_node_real(program, from, 0);
        return may_be != 0 ? wpk_expand_strict(program, WPK_BINARY_NE, a, zero)
                           : wpk_node_binary(program, WPK_BINARY_NE, a, zero);
    }
    if (from == dtype || !wpk_dtype_is_float(from)) {
        return wpk_node_cast(program, dtype, a);
    }
    if (wpk_dtype_is_float(dtype)) {
        return cast_special(program, dtype, a, may_be);
    }
    a = wpk_node_cast(program, wpk_dtype_wide(from),
                      a); /* 16 bits cannot hold an integer's limits */
    const struct wpk_node *node = &program->nodes[a];
    bool whole = node->kind == WPK_NODE_UNARY && wpk_unary_makes_whole(node->op);
    return wpk_node_cast(program, dtype, whole ? a : wpk_node_unary(program, WPK_UNARY_ROUND, a));
}
