/* SPDX-License-Identifier: Apache-2.0 */
/* Building nodes: typing, folding, and the normal form of index arithmetic.
 *
 * Parsing the printed form of a node builds the same node again, so the result of a simplification
 * must not be simplified any further. */
#include "ir/node.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int wpk_node_append(struct wpk_program *program, const struct wpk_node *node)
{
    if (program->node_count == (program->expanded ? WPK_EXPANDED_NODES_MAX : WPK_NODES_MAX)) {
        program->full = true;
        return -1;
    }
    if (program->node_count == program->node_capacity) {
        int capacity = program->node_capacity == 0 ? 64 : program->node_capacity * 2;
        struct wpk_node *nodes = realloc(program->nodes, (size_t)capacity * sizeof *nodes);
        if (nodes == NULL) {
            program->full = program->starved = true;
            return -1;
        }
        program->nodes = nodes;
        program->node_capacity = capacity;
    }
    program->nodes[program->node_count] = *node;
    return program->node_count++;
}

static const struct wpk_node *node_at(const struct wpk_program *program, int id)
{
    WPK_ASSERT(id >= 0 && id < program->node_count);
    return &program->nodes[id];
}

bool wpk_node_is_literal(const struct wpk_program *program, int node)
{
    return node_at(program, node)->kind == WPK_NODE_LITERAL;
}

/* ---- leaves */

static struct wpk_node blank(enum wpk_node_kind kind, enum wpk_dtype dtype)
{
    return (struct wpk_node){
        .kind = kind, .dtype = dtype, .arg = {-1, -1, -1}, .axis = -1, .tensor = -1, .outside = -1};
}

static int append_operation(struct wpk_program *program, enum wpk_node_kind kind, int op,
                            enum wpk_dtype dtype, const int arg[3])
{
    struct wpk_node node = blank(kind, dtype);
    node.op = op;
    memcpy(node.arg, arg, sizeof(node.arg));
    return wpk_node_append(program, &node);
}

static int literal_integer(struct wpk_program *program, enum wpk_dtype dtype, int64_t value)
{
    struct wpk_node node = blank(WPK_NODE_LITERAL, dtype);
    node.integer = value;
    return wpk_node_append(program, &node);
}

int wpk_node_int(struct wpk_program *program, int64_t value)
{
    return literal_integer(program, WPK_I64, value);
}

int wpk_node_real(struct wpk_program *program, enum wpk_dtype dtype, double value)
{
    WPK_ASSERT(!isnan(value));
    double rounded = wpk_dtype_round(dtype, value);
    if (!wpk_dtype_is_float(dtype)) {
        int64_t low, high;
        wpk_dtype_integer_range(dtype, &low, &high);
        /* 2^63 is a double but not an int64_t */
        return literal_integer(program, dtype, rounded >= 0x1p63 ? high : (int64_t)rounded);
    }
    struct wpk_node node = blank(WPK_NODE_LITERAL, dtype);
    node.value = rounded;
    return wpk_node_append(program, &node);
}

int wpk_node_axis(struct wpk_program *program, int axis)
{
    if (axis < 0) {
        return -1;
    }
    struct wpk_node node = blank(WPK_NODE_AXIS, WPK_I64);
    node.axis = axis;
    return wpk_node_append(program, &node);
}

int wpk_node_load(struct wpk_program *program, int tensor, const int *index, int outside)
{
    if (tensor < 0) {
        return -1;
    }
    WPK_ASSERT(tensor < program->tensor_count);
    struct wpk_node node = blank(WPK_NODE_LOAD, program->tensors[tensor].dtype);
    node.tensor = tensor;
    for (int d = 0; d < program->tensors[tensor].rank; d++) {
        if (index[d] < 0) {
            return -1;
        }
        node.index[d] = index[d];
    }
    if (outside >= 0) {
        WPK_ASSERT(wpk_node_is_literal(program, outside));
        node.outside = wpk_node_cast(program, node.dtype, outside);
        if (node.outside < 0) {
            return -1;
        }
    }
    return wpk_node_append(program, &node);
}

/* ---- folding */

double wpk_node_number(const struct wpk_node *literal)
{
    return wpk_dtype_is_float(literal->dtype) ? literal->value : (double)literal->integer;
}

static bool is_value(const struct wpk_program *program, int id, double value)
{
    const struct wpk_node *node = node_at(program, id);
    return node->kind == WPK_NODE_LITERAL && wpk_node_number(node) == value;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

/* Not a - floor_div(a, b) * b: the product may lie outside of the type. */
static int64_t floor_mod(int64_t a, int64_t b)
{
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* False when it overflows, divides by zero or is no arithmetic. */
static bool fold_integers(enum wpk_binary op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case WPK_BINARY_ADD:
        return !__builtin_add_overflow(a, b, out);
    case WPK_BINARY_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case WPK_BINARY_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case WPK_BINARY_DIV:
    case WPK_BINARY_MOD:
        if (b == 0 || (a == INT64_MIN && b == -1)) {
            return false;
        }
        *out = op == WPK_BINARY_DIV ? floor_div(a, b) : floor_mod(a, b);
        return true;
    case WPK_BINARY_MIN:
        *out = a < b ? a : b;
        return true;
    case WPK_BINARY_MAX:
        *out = a > b ? a : b;
        return true;
    default:
        return false;
    }
}

/* Only operations that every libm rounds alike. */
static bool fold_reals(enum wpk_binary op, double a, double b, double *out)
{
    const double value[] = {[WPK_BINARY_ADD] = a + b,         [WPK_BINARY_SUB] = a - b,
                            [WPK_BINARY_MUL] = a * b,         [WPK_BINARY_DIV] = a / b,
                            [WPK_BINARY_MIN] = a < b ? a : b, [WPK_BINARY_MAX] = a > b ? a : b};
    if (op >= WPK_BINARY_LT || op == WPK_BINARY_MOD || op == WPK_BINARY_POW) {
        return false;
    }
    *out = value[op];
    return !isnan(*out) && (isfinite(*out) || !isfinite(a) || !isfinite(b));
}

static bool fold_comparison(enum wpk_binary op, double a, double b, bool *out)
{
    const bool truth[] = {[WPK_BINARY_LT] = a < b,
                          [WPK_BINARY_LE] = a <= b,
                          [WPK_BINARY_EQ] = a == b,
                          [WPK_BINARY_NE] = a != b,
                          [WPK_BINARY_AND] = a != 0 && b != 0,
                          [WPK_BINARY_OR] = a != 0 || b != 0};
    *out = truth[op];
    return op >= WPK_BINARY_LT;
}

/* Two literals of one dtype: the literal they make, or -2 when they are better left alone. */
static int fold_binary(struct wpk_program *program, enum wpk_binary op, int a, int b)
{
    struct wpk_node x = *node_at(program, a);
    struct wpk_node y = *node_at(program, b);
    if (x.kind != WPK_NODE_LITERAL || y.kind != WPK_NODE_LITERAL) {
        return -2;
    }
    /* i64 literals beyond 2^53 do not compare as doubles */
    bool exact = fabs(wpk_node_number(&x)) < 0x1p53 && fabs(wpk_node_number(&y)) < 0x1p53;
    bool truth;
    if ((wpk_dtype_is_float(x.dtype) || exact) &&
        fold_comparison(op, wpk_node_number(&x), wpk_node_number(&y), &truth)) {
        return literal_integer(program, WPK_BOOL, truth);
    }
    if (wpk_dtype_is_float(x.dtype)) {
        double value;
        return fold_reals(op, x.value, y.value, &value) ? wpk_node_real(program, x.dtype, value)
                                                        : -2;
    }
    int64_t value, low, high;
    wpk_dtype_integer_range(x.dtype, &low, &high);
    if (!fold_integers(op, x.integer, y.integer, &value) || value < low || value > high) {
        return -2;
    }
    return literal_integer(program, x.dtype, value);
}

/* ---- the normal form of i64 arithmetic: sums end in their constant, products begin with it */

struct term {
    int base; /* node, or -1: a constant alone */
    int64_t constant;
};

static struct term split_sum(const struct wpk_program *program, int id)
{
    const struct wpk_node *node = node_at(program, id);
    if (node->kind == WPK_NODE_LITERAL) {
        return (struct term){-1, node->integer};
    }
    if (node->kind == WPK_NODE_BINARY && node->op == WPK_BINARY_ADD &&
        wpk_node_is_literal(program, node->arg[1])) {
        return (struct term){node->arg[0], node_at(program, node->arg[1])->integer};
    }
    return (struct term){id, 0};
}

static int raw_binary(struct wpk_program *program, enum wpk_binary op, enum wpk_dtype dtype, int a,
                      int b)
{
    if (a < 0 || b < 0) {
        return -1;
    }
    return append_operation(program, WPK_NODE_BINARY, (int)op, dtype, (int[]){a, b, -1});
}

static int index_sum(struct wpk_program *program, enum wpk_binary op, int a, int b)
{
    struct term x = split_sum(program, a);
    struct term y = split_sum(program, b);
    int64_t constant;
    if (!fold_integers(op, x.constant, y.constant, &constant)) {
        return raw_binary(program, op, WPK_I64, a, b);
    }
    if (op == WPK_BINARY_SUB && x.base < 0) {
        return raw_binary(program, op, WPK_I64, wpk_node_int(program, constant), y.base);
    }
    int base = x.base;
    if (x.base < 0) {
        base = y.base;
    } else if (y.base >= 0) {
        base = raw_binary(program, op, WPK_I64, x.base, y.base);
    }
    return constant == 0 ? base
                         : raw_binary(program, WPK_BINARY_ADD, WPK_I64, base,
                                      wpk_node_int(program, constant));
}

/* True if the expression reads a tensor: it may not vanish, for a program uses what it declares. */
static bool has_load(const struct wpk_program *program, int id)
{
    const struct wpk_node *node = node_at(program, id);
    bool found = node->kind == WPK_NODE_LOAD;
    for (int i = 0; i < 3 && !found; i++) {
        found = node->arg[i] >= 0 && has_load(program, node->arg[i]);
    }
    return found;
}

static int index_product(struct wpk_program *program, int a, int b)
{
    if (!wpk_node_is_literal(program, a) && wpk_node_is_literal(program, b)) {
        int swap = a;
        a = b;
        b = swap;
    }
    const struct wpk_node *inner = node_at(program, b);
    if (wpk_node_is_literal(program, a) && inner->kind == WPK_NODE_BINARY &&
        inner->op == WPK_BINARY_MUL && wpk_node_is_literal(program, inner->arg[0])) {
        int rest = inner->arg[1];
        int factor = fold_binary(program, WPK_BINARY_MUL, a, inner->arg[0]);
        if (factor >= 0) {
            a = factor;
            b = rest;
        }
    }
    if (is_value(program, a, 1) || (is_value(program, a, 0) && !has_load(program, b))) {
        return is_value(program, a, 1) ? b : a; /* 1: of -1 * (-1 * y) */
    }
    return raw_binary(program, WPK_BINARY_MUL, WPK_I64, a, b);
}

/* ---- binary */

/* An operand that the operation leaves as it is or swallows; -2 when there is none. */
static int simplify(struct wpk_program *program, enum wpk_binary op, int a, int b)
{
    bool integer = !wpk_dtype_is_float(node_at(program, a)->dtype);
    switch (op) {
    case WPK_BINARY_ADD:
        return is_value(program, b, 0) ? a : is_value(program, a, 0) ? b : -2;
    case WPK_BINARY_SUB:
        return is_value(program, b, 0) ? a : -2;
    case WPK_BINARY_MUL:
        if (integer && is_value(program, a, 0) && !has_load(program, b)) {
            return a;
        }
        if (integer && is_value(program, b, 0) && !has_load(program, a)) {
            return b;
        }
        return is_value(program, b, 1) ? a : is_value(program, a, 1) ? b : -2;
    case WPK_BINARY_DIV:
        return is_value(program, b, 1) ? a : -2;
    case WPK_BINARY_MOD:
        return integer && is_value(program, b, 1) && !has_load(program, a)
                   ? literal_integer(program, node_at(program, a)->dtype, 0)
                   : -2;
    default:
        return -2;
    }
}

/* x - c is x + -c: one form of a shift, whoever wrote it. */
static int subtract_literal(struct wpk_program *program, int a, int b)
{
    struct wpk_node literal = *node_at(program, b);
    int64_t low, high;
    if (wpk_dtype_is_float(literal.dtype)) {
        return wpk_node_binary(program, WPK_BINARY_ADD, a,
                               wpk_node_real(program, literal.dtype, -literal.value));
    }
    wpk_dtype_integer_range(literal.dtype, &low, &high);
    if (literal.integer == low) {
        return raw_binary(program, WPK_BINARY_SUB, literal.dtype, a, b);
    }
    return wpk_node_binary(program, WPK_BINARY_ADD, a,
                           literal_integer(program, literal.dtype, -literal.integer));
}

/* The type that a literal takes from its neighbour, widened until the value fits. */
static enum wpk_dtype adopt(const struct wpk_node *literal, enum wpk_dtype dtype)
{
    int64_t low, high;
    if (wpk_dtype_is_float(dtype) || dtype == WPK_I64) {
        return dtype;
    }
    wpk_dtype_integer_range(dtype, &low, &high);
    if (literal->integer >= low && literal->integer <= high) {
        return dtype;
    }
    return literal->integer >= INT32_MIN && literal->integer <= INT32_MAX ? WPK_I32 : WPK_I64;
}

/* The common type of the nodes `a` and `b` as operands of `op`. */
static enum wpk_dtype common_dtype(const struct wpk_program *program, enum wpk_binary op, int a,
                                   int b)
{
    const struct wpk_node *x = node_at(program, a);
    const struct wpk_node *y = node_at(program, b);
    bool x_real = wpk_dtype_is_float(x->dtype);
    bool y_real = wpk_dtype_is_float(y->dtype);
    bool x_literal = x->kind == WPK_NODE_LITERAL;
    bool y_literal = y->kind == WPK_NODE_LITERAL;
    enum wpk_dtype dtype;
    if (op == WPK_BINARY_AND || op == WPK_BINARY_OR) {
        return WPK_BOOL;
    }
    if (x_literal != y_literal && (x_literal ? y_real || !x_real : x_real || !y_real)) {
        dtype = x_literal ? adopt(x, y->dtype) : adopt(y, x->dtype);
    } else if (x->dtype == y->dtype) {
        dtype = x->dtype;
    } else if (x_literal != y_literal && x_real != y_real) {
        dtype = WPK_F32; /* a real literal beside an integer */
    } else if (x_real != y_real) {
        dtype = x_real ? x->dtype : y->dtype;
    } else if (x->dtype == WPK_BOOL || y->dtype == WPK_BOOL) {
        dtype = x->dtype == WPK_BOOL ? y->dtype : x->dtype;
    } else {
        enum wpk_dtype p = wpk_dtype_wide(x->dtype);
        enum wpk_dtype q = wpk_dtype_wide(y->dtype);
        dtype = wpk_dtype_size(p) >= wpk_dtype_size(q) ? p : q;
    }
    if (op == WPK_BINARY_POW && !wpk_dtype_is_float(dtype)) {
        return WPK_F32;
    }
    bool arithmetic = op <= WPK_BINARY_MOD || op == WPK_BINARY_POW;
    return arithmetic ? wpk_dtype_wide(dtype) : dtype;
}

int wpk_node_binary(struct wpk_program *program, enum wpk_binary op, int a, int b)
{
    if (a < 0 || b < 0) {
        return -1;
    }
    enum wpk_dtype common = common_dtype(program, op, a, b);
    a = wpk_node_cast(program, common, a);
    b = wpk_node_cast(program, common, b);
    if (a < 0 || b < 0) {
        return -1;
    }
    int folded = fold_binary(program, op, a, b);
    if (folded == -2) {
        folded = simplify(program, op, a, b);
    }
    if (folded != -2) {
        return folded;
    }
    bool sum = op == WPK_BINARY_ADD || op == WPK_BINARY_SUB;
    bool both = wpk_node_is_literal(program, a) && wpk_node_is_literal(program, b);
    if (common == WPK_I64 && sum && !both) {
        return index_sum(program, op, a, b);
    }
    if (common == WPK_I64 && op == WPK_BINARY_MUL && !both) {
        return index_product(program, a, b);
    }
    if (op == WPK_BINARY_SUB && !both && wpk_node_is_literal(program, b)) {
        return subtract_literal(program, a, b);
    }
    return raw_binary(program, op, op >= WPK_BINARY_LT ? WPK_BOOL : common, a, b);
}

/* ---- unary, select, cast */

/* Functions that every libm rounds alike, of a floating literal; -2 when not folded. */
static int fold_unary(struct wpk_program *program, enum wpk_unary op, int a)
{
    struct wpk_node x = *node_at(program, a);
    if (x.kind != WPK_NODE_LITERAL) {
        return -2;
    }
    if (op == WPK_UNARY_NOT) {
        return literal_integer(program, WPK_BOOL, !x.integer);
    }
    if (wpk_unary_asks(op)) { /* no literal is NaN */
        return literal_integer(program, WPK_BOOL,
                               op == WPK_UNARY_ISINF && isinf(wpk_node_number(&x)));
    }
    if (!wpk_dtype_is_float(x.dtype)) {
        int64_t low, high;
        wpk_dtype_integer_range(x.dtype, &low, &high);
        bool fits = x.integer != INT64_MIN && -x.integer >= low && -x.integer <= high;
        if (fits && op == WPK_UNARY_NEG) {
            return literal_integer(program, x.dtype, -x.integer);
        }
        return fits && op == WPK_UNARY_ABS ? literal_integer(program, x.dtype, llabs(x.integer))
                                           : -2;
    }
    switch (op) {
    case WPK_UNARY_NEG:
        return wpk_node_real(program, x.dtype, -x.value);
    case WPK_UNARY_ABS:
        return wpk_node_real(program, x.dtype, fabs(x.value));
    case WPK_UNARY_SQRT:
        return x.value >= 0 ? wpk_node_real(program, x.dtype, sqrt(x.value)) : -2;
    case WPK_UNARY_FLOOR:
        return wpk_node_real(program, x.dtype, floor(x.value));
    case WPK_UNARY_CEIL:
        return wpk_node_real(program, x.dtype, ceil(x.value));
    case WPK_UNARY_ROUND:
        return wpk_node_real(program, x.dtype, rint(x.value));
    case WPK_UNARY_TRUNC:
        return wpk_node_real(program, x.dtype, trunc(x.value));
    default:
        return -2;
    }
}

bool wpk_unary_makes_whole(int op)
{
    return op == WPK_UNARY_FLOOR || op == WPK_UNARY_CEIL || op == WPK_UNARY_ROUND ||
           op == WPK_UNARY_TRUNC;
}

bool wpk_unary_asks(enum wpk_unary op)
{
    return op == WPK_UNARY_ISNAN || op == WPK_UNARY_ISINF;
}

int wpk_node_unary(struct wpk_program *program, enum wpk_unary op, int a)
{
    if (a < 0) {
        return -1;
    }
    enum wpk_dtype dtype = node_at(program, a)->dtype;
    bool integer = !wpk_dtype_is_float(dtype);
    if (op == WPK_UNARY_NOT) {
        dtype = WPK_BOOL;
    } else if (op == WPK_UNARY_NEG || op == WPK_UNARY_ABS) {
        dtype = wpk_dtype_wide(dtype);
    } else if (wpk_unary_makes_whole((int)op)) {
        if (integer) {
            return a;
        }
    } else {
        dtype = integer ? WPK_F32 : wpk_dtype_wide(dtype);
    }
    a = wpk_node_cast(program, dtype, a);
    if (a < 0) {
        return -1;
    }
    int folded = fold_unary(program, op, a);
    if (folded != -2) {
        return folded;
    }
    dtype = wpk_unary_asks(op) ? WPK_BOOL : dtype;
    if (op == WPK_UNARY_NEG && dtype == WPK_I64) {
        return wpk_node_binary(program, WPK_BINARY_MUL, wpk_node_int(program, -1), a);
    }
    return append_operation(program, WPK_NODE_UNARY, (int)op, dtype, (int[]){a, -1, -1});
}

int wpk_node_select(struct wpk_program *program, int condition, int a, int b)
{
    if (condition < 0 || a < 0 || b < 0) {
        return -1;
    }
    /* MIN: the arms meet like operands that keep their type */
    enum wpk_dtype dtype = common_dtype(program, WPK_BINARY_MIN, a, b);
    condition = wpk_node_cast(program, WPK_BOOL, condition);
    a = wpk_node_cast(program, dtype, a);
    b = wpk_node_cast(program, dtype, b);
    if (condition < 0 || a < 0 || b < 0) {
        return -1;
    }
    if (wpk_node_is_literal(program, condition)) {
        return node_at(program, condition)->integer ? a : b;
    }
    return append_operation(program, WPK_NODE_SELECT, 0, dtype, (int[]){condition, a, b});
}

/* Integers are cast to integers by their low bits. */
static int64_t wrap_integer(enum wpk_dtype dtype, int64_t value)
{
    switch (dtype) {
    case WPK_I8:
        return (int8_t)(uint8_t)value;
    case WPK_U8:
        return (uint8_t)value;
    case WPK_I16:
        return (int16_t)(uint16_t)value;
    case WPK_I32:
        return (int32_t)(uint32_t)value;
    default:
        return value;
    }
}

int wpk_node_cast(struct wpk_program *program, enum wpk_dtype dtype, int a)
{
    if (a < 0) {
        return -1;
    }
    struct wpk_node x = *node_at(program, a);
    if (x.dtype == dtype) {
        return a;
    }
    if (x.kind == WPK_NODE_CAST && x.dtype == WPK_F32 && (dtype == WPK_F16 || dtype == WPK_BF16) &&
        wpk_dtype_size(node_at(program, x.arg[0])->dtype) >= 4) { /* else it rounds twice */
        return wpk_node_cast(program, dtype, x.arg[0]);
    }
    if (x.kind == WPK_NODE_LITERAL) {
        if (dtype == WPK_BOOL) {
            return literal_integer(program, dtype, wpk_node_number(&x) != 0);
        }
        if (wpk_dtype_is_float(dtype) || wpk_dtype_is_float(x.dtype)) {
            return wpk_node_real(program, dtype, wpk_node_number(&x));
        }
        return literal_integer(program, dtype, wrap_integer(dtype, x.integer));
    }
    return append_operation(program, WPK_NODE_CAST, 0, dtype, (int[]){a, -1, -1});
}

int wpk_node_remake(struct wpk_program *program, const struct wpk_node *old, const int *arg)
{
    switch (old->kind) {
    case WPK_NODE_UNARY:
        return wpk_node_unary(program, (enum wpk_unary)old->op, arg[0]);
    case WPK_NODE_BINARY:
        return wpk_node_binary(program, (enum wpk_binary)old->op, arg[0], arg[1]);
    case WPK_NODE_SELECT:
        return wpk_node_select(program, arg[0], arg[1], arg[2]);
    default:
        WPK_ASSERT(old->kind == WPK_NODE_CAST);
        return wpk_node_cast(program, old->dtype, arg[0]);
    }
}
