/* SPDX-License-Identifier: Apache-2.0 */
#include "nest/expand.h"

#include "ir/infinite.h"
#include "ir/node.h"

#include <math.h>
#include <stdlib.h>

#define ABSENT (-2)

struct expansion {
    const struct wpk_program *from;
    struct wpk_program *to;
    struct wpk_infinite infinite;  /* of `from` */
    const struct wpk_stage *stage; /* of `to` */
    int axis[WPK_AXES_MAX];        /* of the stage: nodes of `to` */
    int *done;                     /* [from->node_count] node of `to`; ABSENT: not expanded yet */
};

static int expand(struct expansion *x, int id);

/* ---- loads */

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

/* A new operation becomes strict; the node may also be an operand that stays as it is, or a number.
 */
static int make_strict(struct wpk_program *program, int before, int id)
{
    if (id >= before && !wpk_node_is_literal(program, id)) {
        program->nodes[id].strict = true;
    }
    return id;
}

/* A strict node: op(a, b) of two nodes of one type. */
static int strict_binary(struct wpk_program *program, enum wpk_binary op, int a, int b)
{
    int before = program->node_count;
    return make_strict(program, before, wpk_node_binary(program, op, a, b));
}

static int binary(const struct arithmetic *m, enum wpk_binary op, int a, int b)
{
    return m->strict ? strict_binary(m->program, op, a, b) : wpk_node_binary(m->program, op, a, b);
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
    return m->strict ? make_strict(m->program, before, id) : id;
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

/* A function of any value, as C's.   unit  strict: a negation is */
static int expand_function(struct wpk_program *program, enum wpk_unary op, int a, bool strict)
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
    case WPK_UNARY_SIGMOID: {
        int e = unary(&m, WPK_UNARY_EXP, unary(&m, WPK_UNARY_NEG, a));
        return binary(&m, WPK_BINARY_DIV, real(&m, 1), add(&m, real(&m, 1), e));
    }
    case WPK_UNARY_RSQRT: /* a strict quotient: machines estimate a fast one to 12 bits */
        return binary(&m, WPK_BINARY_DIV, real(&m, 1), unary(&m, WPK_UNARY_SQRT, a));
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

/* ---- casts */

static int keep_infinity(struct wpk_program *program, int a, int value, double infinity)
{
    const enum wpk_dtype from = program->nodes[a].dtype, to = program->nodes[value].dtype;
    int is_infinite =
        strict_binary(program, WPK_BINARY_EQ, a, wpk_node_real(program, from, infinity));
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

/* A cast, which keeps infinities and NaN.   shape  may_be: of `a`, bits of enum wpk_may_be */
static int cast_to(struct wpk_program *program, enum wpk_dtype dtype, int a, int may_be)
{
    if (a < 0) {
        return -1;
    }
    enum wpk_dtype from = program->nodes[a].dtype;
    if (from != dtype && dtype == WPK_BOOL) {
        int zero = wpk_node_real(program, from, 0);
        return may_be != 0 ? strict_binary(program, WPK_BINARY_NE, a, zero)
                           : wpk_node_binary(program, WPK_BINARY_NE, a, zero);
    }
    if (from == dtype || !wpk_dtype_is_float(from)) {
        return wpk_node_cast(program, dtype, a);
    }
    if (wpk_dtype_is_float(dtype)) {
        /* Special values are selected apart from the cast of a number. */
        int value = wpk_node_cast(program, dtype, a);
        if ((may_be & WPK_MAY_BE_NAN) != 0) {
            int number = strict_binary(program, WPK_BINARY_EQ, a, a);
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
    a = wpk_node_cast(program, wpk_dtype_wide(from),
                      a); /* 16 bits cannot hold an integer's limits */
    const struct wpk_node *node = &program->nodes[a];
    bool whole = node->kind == WPK_NODE_UNARY && wpk_unary_makes_whole(node->op);
    return wpk_node_cast(program, dtype, whole ? a : wpk_node_unary(program, WPK_UNARY_ROUND, a));
}

/* The element of a literal whose indices are numbers; ABSENT for other loads. */
static int element_of(const struct expansion *x, const struct wpk_tensor *tensor, const int *index)
{
    int64_t at = 0;
    if (tensor->role != WPK_ROLE_LITERAL) {
        return ABSENT;
    }
    for (int d = 0; d < tensor->rank; d++) {
        const struct wpk_node *node = &x->to->nodes[index[d]];
        if (node->kind != WPK_NODE_LITERAL || node->integer < 0 ||
            node->integer >= tensor->extent[d]) {
            return ABSENT;
        }
        at = at * tensor->extent[d] + node->integer;
    }
    return wpk_node_real(x->to, tensor->dtype, tensor->values[at]);
}

/* True if no index leaves the tensor. */
static int inside_of(struct expansion *x, const struct wpk_tensor *tensor, const int *index)
{
    int inside = -1;
    for (int d = 0; d < tensor->rank; d++) {
        int first = wpk_node_int(x->to, -tensor->pad_before[d]);
        int last = wpk_node_int(x->to, tensor->extent[d] + tensor->pad_after[d] - 1);
        int within = wpk_node_binary(x->to, WPK_BINARY_AND,
                                     wpk_node_binary(x->to, WPK_BINARY_LE, first, index[d]),
                                     wpk_node_binary(x->to, WPK_BINARY_LE, index[d], last));
        inside = inside < 0 ? within : wpk_node_binary(x->to, WPK_BINARY_AND, inside, within);
    }
    return inside;
}

/* Expand a load; the value has the type that the tensor has in the expanded program. */
static int expand_load(struct expansion *x, int id)
{
    const struct wpk_node node = x->from->nodes[id];
    const struct wpk_tensor *tensor = &x->to->tensors[node.tensor];
    int index[WPK_RANK_MAX], may_be = x->infinite.may_be[id];
    for (int d = 0; d < tensor->rank; d++) {
        index[d] = expand(x, node.index[d]);
        if (index[d] < 0) {
            return -1;
        }
    }
    int element = element_of(x, tensor, index);
    if (element != ABSENT) {
        return element;
    }
    double beyond = node.outside >= 0 ? wpk_node_number(&x->from->nodes[node.outside]) : 0;
    bool apart = node.outside >= 0 && wpk_dtype_round(tensor->dtype, beyond) != beyond;
    int outside = node.outside >= 0 && !apart ? expand(x, node.outside)
                                              : wpk_node_real(x->to, tensor->dtype, 0);
    int load = outside < 0 ? -1 : wpk_node_load(x->to, node.tensor, index, outside);
    if (load < 0) {
        return -1;
    }
    bool leaves = wpk_load_may_leave(x->to, x->stage, load);
    x->to->nodes[load].outside = leaves ? x->to->nodes[load].outside : -1;
    load = cast_to(x->to, node.dtype, load, may_be);
    return leaves && apart
               ? wpk_node_select(x->to, inside_of(x, tensor, index), load, expand(x, node.outside))
               : load;
}

/* ---- other nodes */

/* A quotient or remainder of an index that stays within one multiple of the divisor, without the
 * division: Halide knows of a remainder only that it is below the divisor, and computes or reads
 * elements that nobody needs. ABSENT: it is none. */
static int expand_quotient(struct expansion *x, enum wpk_binary op, int a, int b)
{
    int64_t low, high;
    bool divides = op == WPK_BINARY_DIV || op == WPK_BINARY_MOD;
    if (!divides || a < 0 || b < 0 || x->to->nodes[a].dtype != WPK_I64 ||
        x->to->nodes[b].kind != WPK_NODE_LITERAL || x->to->nodes[b].integer < 1) {
        return ABSENT;
    }
    int64_t divisor = x->to->nodes[b].integer;
    wpk_index_range(x->to, x->stage, a, &low, &high);
    int64_t multiple = (low - ((low % divisor) + divisor) % divisor) / divisor;
    if (high >= (multiple + 1) * divisor) {
        return ABSENT;
    }
    return op == WPK_BINARY_DIV
               ? wpk_node_int(x->to, multiple)
               : wpk_node_binary(x->to, WPK_BINARY_SUB, a, wpk_node_int(x->to, multiple * divisor));
}

static int expand_binary(struct expansion *x, int id)
{
    const struct wpk_node node = x->from->nodes[id];
    enum wpk_binary op = (enum wpk_binary)node.op;
    int a = expand(x, node.arg[0]), b = expand(x, node.arg[1]);
    int quotient = expand_quotient(x, op, a, b);
    if (quotient != ABSENT) {
        return quotient;
    }
    if (a >= 0 && b >= 0 && (op == WPK_BINARY_MAX || op == WPK_BINARY_MIN) &&
        wpk_dtype_is_float(node.dtype)) {
        /* A strict maximum keeps a NaN in its right operand. */
        struct wpk_program *program = x->to;
        const struct arithmetic m = arithmetic_of(program, a, true);
        bool literal = wpk_node_is_literal(program, a);
        if (literal || wpk_node_is_literal(program, b)) {
            return binary(&m, op, literal ? a : b, literal ? b : a);
        }
        int number = binary(&m, WPK_BINARY_EQ, a, a);
        return wpk_node_select(program, number, binary(&m, op, a, b), a);
    }
    if (op == WPK_BINARY_LE && x->infinite.strict[id]) { /* Halide's is !(b < a), true of a NaN */
        return wpk_node_binary(x->to, WPK_BINARY_OR, strict_binary(x->to, WPK_BINARY_LT, a, b),
                               strict_binary(x->to, WPK_BINARY_EQ, a, b));
    }
    return x->infinite.strict[id] ? strict_binary(x->to, op, a, b)
                                  : wpk_node_binary(x->to, op, a, b);
}

static int expand_new(struct expansion *x, int id)
{
    const struct wpk_node node = x->from->nodes[id];
    switch (node.kind) {
    case WPK_NODE_LITERAL:
        return wpk_node_append(x->to, &node);
    case WPK_NODE_AXIS:
        return x->axis[node.axis];
    case WPK_NODE_LOAD:
        return expand_load(x, id);
    case WPK_NODE_UNARY:
        return expand_function(x->to, (enum wpk_unary)node.op, expand(x, node.arg[0]),
                               x->infinite.strict[id]);
    case WPK_NODE_BINARY:
        return expand_binary(x, id);
    case WPK_NODE_SELECT: {
        int condition = expand(x, node.arg[0]);
        int a = expand(x, node.arg[1]), b = expand(x, node.arg[2]);
        return wpk_node_select(x->to, condition, a, b);
    }
    case WPK_NODE_CAST: {
        int a = expand(x, node.arg[0]);
        return cast_to(x->to, node.dtype, a, x->infinite.may_be[node.arg[0]]);
    }
    }
    return -1;
}

static int expand(struct expansion *x, int id)
{
    if (x->done[id] == ABSENT) {
        x->done[id] = expand_new(x, id);
    }
    return x->done[id];
}

/* ---- stages */

/* The stage's value or term, as a `dtype`. */
static int expand_value(struct expansion *x, int expr, enum wpk_dtype dtype)
{
    for (int i = 0; i < x->from->node_count; i++) {
        x->done[i] = ABSENT;
    }
    return cast_to(x->to, dtype, expand(x, expr), x->infinite.may_be[expr]);
}

/* A maximum or minimum of floats is strict, so that its identity may be infinite. */
static int identity_of(struct wpk_program *program, const struct wpk_stage *stage)
{
    enum wpk_dtype dtype = stage->accumulator;
    switch (stage->reduction) {
    case WPK_REDUCE_MAX:
        /* of an integer type the least number; a bool is whether it is not 0 */
        return wpk_node_real(program, dtype, dtype == WPK_BOOL ? 0 : -(double)INFINITY);
    case WPK_REDUCE_MIN:
        return wpk_node_real(program, dtype, (double)INFINITY);
    default:
        return wpk_node_real(program, dtype, stage->reduction == WPK_REDUCE_PROD);
    }
}

/* The terms after `sum`, added to it in their order; axes before `a` have their numbers. */
static int add_terms(struct expansion *x, const struct wpk_stage *of, int a, int sum)
{
    if (a == of->axis_count) {
        int term = expand_value(x, of->expr, of->accumulator);
        return x->stage->strict ? strict_binary(x->to, WPK_BINARY_ADD, sum, term)
                                : wpk_node_binary(x->to, WPK_BINARY_ADD, sum, term);
    }
    for (int64_t i = 0; i < of->axes[a].extent && sum >= 0; i++) {
        x->axis[a] = wpk_node_int(x->to, i);
        sum = x->axis[a] < 0 ? -1 : add_terms(x, of, a + 1, sum);
    }
    return sum;
}

static wpk_err expand_stage(struct expansion *x, int s, bool sums)
{
    const struct wpk_stage *of = &x->from->stages[s];
    struct wpk_stage *stage = &x->to->stages[s];
    enum wpk_dtype dtype = x->to->tensors[stage->output].dtype;
    bool reduces = stage->reduction != WPK_REDUCE_NONE;
    x->stage = stage;
    stage->strict = reduces && x->infinite.reduction[s];
    for (int a = 0; a < stage->axis_count; a++) {
        x->axis[a] = wpk_node_axis(x->to, a);
    }
    if (sums) {
        WPK_ASSERT(of->reduction == WPK_REDUCE_SUM);
        stage->axis_count = stage->rank;
        stage->reduction = WPK_REDUCE_NONE;
        int sum = add_terms(x, of, of->rank, wpk_node_real(x->to, of->accumulator, 0));
        stage->expr = cast_to(x->to, dtype, sum, x->infinite.may_be[of->expr]);
        stage->strict = false;
    } else {
        stage->expr = expand_value(x, of->expr, dtype);
    }
    stage->accumulator = dtype;
    stage->identity = reduces && !sums ? identity_of(x->to, stage) : -1;
    return stage->expr >= 0 && !x->to->full ? WPK_OK : wpk_program_full_error(x->to);
}

wpk_err wpk_program_expand(const struct wpk_program *program, const bool *sums,
                           struct wpk_program *out)
{
    struct wpk_program expanded;
    struct expansion x = {.from = program, .to = &expanded};
    wpk_err err = wpk_program_copy(program, &expanded);
    if (err != WPK_OK) {
        return err;
    }
    expanded.expanded = true;
    expanded.node_count = 0;
    /* A sum is stored in the type in which it is computed, an output's in the output's type. */
    for (int s = 0; s < expanded.stage_count; s++) {
        const struct wpk_stage *stage = &expanded.stages[s];
        struct wpk_tensor *tensor = &expanded.tensors[stage->output];
        if (stage->reduction != WPK_REDUCE_NONE && tensor->role == WPK_ROLE_INTERMEDIATE) {
            tensor->dtype = stage->accumulator;
        }
    }
    for (int t = 0; t < expanded.tensor_count; t++) {
        struct wpk_tensor *tensor = &expanded.tensors[t];
        bool inside = tensor->role == WPK_ROLE_INTERMEDIATE || tensor->role == WPK_ROLE_LITERAL;
        tensor->dtype = tensor->dtype == WPK_BOOL && !inside ? WPK_U8 : tensor->dtype;
    }
    wpk_infinite_find(program, &x.infinite);
    x.done = malloc(((size_t)program->node_count + 1) * sizeof(*x.done));
    err = x.done == NULL ? WPK_ENOMEM : WPK_OK;
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        err = expand_stage(&x, s, sums[s]);
    }
    free(x.done);
    if (err != WPK_OK) {
        wpk_program_fini(&expanded);
        return err;
    }
    *out = expanded;
    return WPK_OK;
}

bool wpk_program_is_strict(const struct wpk_program *program)
{
    bool strict = false;
    for (int i = 0; i < program->node_count; i++) {
        strict = strict || program->nodes[i].strict;
    }
    for (int s = 0; s < program->stage_count; s++) {
        strict = strict || program->stages[s].strict;
    }
    return strict;
}
