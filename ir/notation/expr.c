/* SPDX-License-Identifier: Apache-2.0 */
/* From expressions in a syntax tree to nodes: which type each takes, what functions expand to. */
#include "ir/notation/builder.h"

#include "ir/data_index.h"
#include "ir/node.h"

#include <stdio.h>
#include <string.h>

/* ---- types */

static int weight(enum wpk_dtype dtype)
{
    return dtype == WPK_F64 ? 4 : dtype == WPK_F32 ? 3 : dtype == WPK_I64 ? 1 : 2;
}

/* The type two operands meet in: narrow types are widened, axis values (i64) give way. */
static enum wpk_dtype meet(enum wpk_dtype a, enum wpk_dtype b)
{
    a = wpk_dtype_wide(a);
    b = wpk_dtype_wide(b);
    return weight(a) >= weight(b) ? a : b;
}

static enum wpk_dtype dtype_of(const struct wpk_builder *b, int node)
{
    return b->program->nodes[node].dtype;
}

static bool signed_integer(uint64_t magnitude, double sign, int64_t *out)
{
    if (sign < 0) {
        *out = magnitude > 0 ? -(int64_t)(magnitude - 1) - 1 : 0;
        return true;
    }
    *out = magnitude <= INT64_MAX ? (int64_t)magnitude : INT64_MAX;
    return magnitude <= INT64_MAX;
}

static int number_node(struct wpk_builder *b, const struct wpk_ast_node *n, double sign,
                       enum wpk_dtype dtype)
{
    if (wpk_dtype_is_float(dtype)) {
        return wpk_node_real(b->program, dtype, sign * n->value);
    }
    int64_t value, low, high;
    if (!n->is_integer) {
        return wpk_builder_fail(b, n->at, WPK_EPARSE, "a whole number is needed for %s",
                                wpk_dtype_name(dtype));
    }
    wpk_dtype_integer_range(dtype, &low, &high);
    if (!signed_integer(n->magnitude, sign, &value) || value < low || value > high) {
        return wpk_builder_fail(b, n->at, WPK_ERANGE, "the number is out of the range of %s",
                                wpk_dtype_name(dtype));
    }
    int node = wpk_node_int(b->program, value);
    if (node >= 0) {
        b->program->nodes[node].dtype = dtype;
    }
    return node;
}

/* A number, perhaps negated: it takes the type of what it meets. */
static bool is_number(const struct wpk_ast *ast, int node, double *sign, int *number)
{
    const struct wpk_ast_node *n = &ast->nodes[node];
    *sign = 1;
    while (n->kind == WPK_AST_UNARY && n->op == WPK_UNARY_NEG) {
        *sign = -*sign;
        node = n->child[0];
        n = &ast->nodes[node];
    }
    *number = node;
    return n->kind == WPK_AST_NUMBER;
}

/* ---- indices and loads */

static int build_load(struct wpk_builder *b, const struct wpk_notation_scope *scope,
                      const struct wpk_ast_node *n);

/* An element of a tensor as an index. */
static int build_data(struct wpk_builder *b, const struct wpk_notation_scope *scope,
                      const struct wpk_ast_node *n)
{
    int tensor = wpk_builder_resolve(b, n);
    enum wpk_dtype dtype = tensor < 0 ? WPK_I64 : b->program->tensors[tensor].dtype;
    if (tensor >= 0 && (wpk_dtype_is_float(dtype) || dtype == WPK_BOOL ||
                        wpk_ast_find_equation(b->ast, n->name) >= 0)) {
        return wpk_builder_fail(b, n->at, WPK_EPARSE,
                                "%s is an index, but no input or constant of integers", n->name);
    }
    int load = tensor < 0 ? -1 : build_load(b, scope, n);
    return load < 0 ? -1 : wpk_node_cast(b->program, WPK_I64, load);
}

static int build_index(struct wpk_builder *b, const struct wpk_notation_scope *scope, int node)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    if (n->kind == WPK_AST_LOAD) {
        return build_data(b, scope, n);
    }
    if (n->kind == WPK_AST_NUMBER) {
        return number_node(b, n, 1, WPK_I64);
    }
    if (n->kind == WPK_AST_NAME) {
        int axis = wpk_builder_axis(b, scope, n);
        return axis < 0 ? -1 : wpk_node_axis(b->program, axis);
    }
    if (n->kind == WPK_AST_UNARY && n->op == WPK_UNARY_NEG) {
        int operand = build_index(b, scope, n->child[0]);
        return operand < 0 ? -1
                           : wpk_node_binary(b->program, WPK_BINARY_MUL,
                                             wpk_node_int(b->program, -1), operand);
    }
    if (n->kind != WPK_AST_BINARY || n->op > WPK_BINARY_MOD) {
        return wpk_builder_fail(b, n->at, WPK_EPARSE,
                                "indices are made of axes, numbers, tensors and + - * / %%%s", "");
    }
    int left = build_index(b, scope, n->child[0]);
    int right = left < 0 ? -1 : build_index(b, scope, n->child[1]);
    if (right < 0) {
        return -1;
    }
    const struct wpk_node *x = &b->program->nodes[left], *y = &b->program->nodes[right];
    bool divides = n->op == WPK_BINARY_DIV || n->op == WPK_BINARY_MOD;
    if (divides && (y->kind != WPK_NODE_LITERAL || y->integer < 1)) {
        return wpk_builder_fail(b, n->at, WPK_EPARSE,
                                "an index is divided by a number of at least 1%s", "");
    }
    if (n->op == WPK_BINARY_MUL && x->kind != WPK_NODE_LITERAL && y->kind != WPK_NODE_LITERAL) {
        return wpk_builder_fail(b, n->at, WPK_EPARSE, "an index is multiplied by a number only%s",
                                "");
    }
    return wpk_node_binary(b->program, (enum wpk_binary)n->op, left, right);
}

static bool leaves(const struct wpk_builder *b, const struct wpk_notation_scope *scope,
                   const struct wpk_tensor *tensor, int d, int index)
{
    int64_t low[WPK_AXES_MAX] = {0}, extent[WPK_AXES_MAX], first = 0, last = 0;
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        extent[a] = a < scope->count ? scope->axis[a].extent : 1;
    }
    wpk_index_range_in(b->program, index, low, extent, &first, &last);
    return first < -tensor->pad_before[d] || last >= tensor->extent[d] + tensor->pad_after[d];
}

static int build_load(struct wpk_builder *b, const struct wpk_notation_scope *scope,
                      const struct wpk_ast_node *n)
{
    int tensor = wpk_builder_resolve(b, n), index[WPK_RANK_MAX] = {0}, outside = -1;
    bool may_leave = false;
    if (tensor < 0) {
        return -1;
    }
    const struct wpk_tensor *source = &b->program->tensors[tensor];
    for (int d = 0; d < n->child_count; d++) {
        index[d] = build_index(b, scope, n->child[d]);
        if (index[d] < 0) {
            return -1;
        }
        bool leaves_here = leaves(b, scope, source, d, index[d]);
        if (leaves_here && n->outside < 0 && wpk_index_is_data(b->program, index[d])) {
            index[d] = wpk_node_binary(b->program, WPK_BINARY_MOD, index[d],
                                       wpk_node_int(b->program, source->extent[d]));
            leaves_here = false;
        }
        may_leave = may_leave || leaves_here;
    }
    if (may_leave) {
        double sign = 1;
        int number = -1;
        if (n->outside >= 0 && !is_number(b->ast, n->outside, &sign, &number)) {
            return wpk_builder_fail(b, n->at, WPK_EPARSE,
                                    "the value outside of %s must be a number", n->name);
        }
        outside = n->outside < 0 ? wpk_node_real(b->program, source->dtype, 0)
                                 : number_node(b, &b->ast->nodes[number], sign, source->dtype);
        if (outside < 0) {
            return -1;
        }
    }
    return wpk_node_load(b->program, tensor, index, outside);
}

/* The type in which `op` computes with an operand of `dtype`. Users' narrow values are widened
 * always; the whole form says what it means, and what need not be wide stays narrow. */
static enum wpk_dtype operand_dtype(const struct wpk_builder *b, int op, enum wpk_dtype dtype)
{
    bool keeps = op == WPK_BINARY_MIN || op == WPK_BINARY_MAX || op >= WPK_BINARY_LT;
    return b->closed && keeps ? dtype : wpk_dtype_wide(dtype);
}

static int build_binary(struct wpk_builder *b, const struct wpk_notation_scope *scope,
                        const struct wpk_ast_node *n, enum wpk_dtype wanted)
{
    double sign[2];
    int number[2], operand[2];
    bool bare[2];
    bool compares = n->op >= WPK_BINARY_LT;
    bool logical = n->op == WPK_BINARY_AND || n->op == WPK_BINARY_OR;
    enum wpk_dtype first_wanted = compares ? WPK_F32 : wanted;
    for (int i = 0; i < 2; i++) {
        bare[i] = is_number(b->ast, n->child[i], &sign[i], &number[i]);
    }
    int first = bare[0] && !bare[1] ? 1 : 0;
    operand[first] = wpk_builder_expr(b, scope, n->child[first], first_wanted);
    if (operand[first] < 0) {
        return -1;
    }
    enum wpk_dtype dtype =
        logical ? WPK_BOOL : operand_dtype(b, n->op, dtype_of(b, operand[first]));
    /* an axis beside a fraction becomes a float */
    if (dtype == WPK_I64 && bare[1 - first] && !b->ast->nodes[number[1 - first]].is_integer) {
        dtype = wpk_dtype_is_float(first_wanted) ? first_wanted : WPK_F32;
    }
    operand[1 - first] =
        bare[1 - first] ? number_node(b, &b->ast->nodes[number[1 - first]], sign[1 - first], dtype)
                        : wpk_builder_expr(b, scope, n->child[1 - first], dtype);
    if (operand[1 - first] < 0) {
        return -1;
    }
    if (!logical) {
        enum wpk_dtype other = operand_dtype(b, n->op, dtype_of(b, operand[1 - first]));
        dtype = bare[1 - first] || other == dtype ? dtype : meet(dtype, other);
        operand[0] = wpk_node_cast(b->program, dtype, operand[0]);
        operand[1] = wpk_node_cast(b->program, dtype, operand[1]);
    }
    return wpk_node_binary(b->program, (enum wpk_binary)n->op, operand[0], operand[1]);
}

static int build_unary(struct wpk_builder *b, const struct wpk_notation_scope *scope, int node,
                       enum wpk_dtype wanted)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    double sign = 1;
    int number = -1;
    if (is_number(b->ast, node, &sign, &number)) {
        return number_node(b, &b->ast->nodes[number], sign, wanted);
    }
    int operand = wpk_builder_expr(b, scope, n->child[0], wanted);
    if (operand < 0 || n->op == WPK_UNARY_NOT) {
        return operand < 0 ? -1 : wpk_node_unary(b->program, WPK_UNARY_NOT, operand);
    }
    enum wpk_dtype dtype = wpk_dtype_wide(dtype_of(b, operand));
    bool keeps = n->op == WPK_UNARY_NEG || n->op == WPK_UNARY_ABS;
    if (!keeps && !wpk_dtype_is_float(dtype)) {
        dtype = WPK_F32;
    }
    if (!b->closed) {
        operand = wpk_node_cast(b->program, dtype, operand);
    }
    return operand < 0 ? -1 : wpk_node_unary(b->program, (enum wpk_unary)n->op, operand);
}

static int times(struct wpk_program *p, int a, int b)
{
    return wpk_node_binary(p, WPK_BINARY_MUL, a, b);
}

/* max(x, 0), and no more than 6 */
static int relu6_node(struct wpk_program *p, enum wpk_dtype dtype, int x)
{
    int low = wpk_node_binary(p, WPK_BINARY_MAX, x, wpk_node_real(p, dtype, 0));
    return wpk_node_binary(p, WPK_BINARY_MIN, low, wpk_node_real(p, dtype, 6));
}

static int gelu_node(struct wpk_program *p, enum wpk_dtype dtype, int x)
{
    int scaled = times(p, x, wpk_node_real(p, dtype, 0.70710678118654752));
    int one = wpk_node_binary(p, WPK_BINARY_ADD, wpk_node_real(p, dtype, 1),
                              wpk_node_unary(p, WPK_UNARY_ERF, scaled));
    return times(p, times(p, x, wpk_node_real(p, dtype, 0.5)), one);
}

/* Activations in terms of the operations that there are. */
static int build_call(struct wpk_builder *b, const struct wpk_notation_scope *scope,
                      const struct wpk_ast_node *n, enum wpk_dtype wanted)
{
    struct wpk_program *p = b->program;
    int x = wpk_builder_expr(b, scope, n->child[0], wanted);
    if (x < 0) {
        return -1;
    }
    enum wpk_dtype dtype = wpk_dtype_wide(dtype_of(b, x));
    bool keeps = n->op == WPK_CALL_RELU || n->op == WPK_CALL_RELU6;
    if (!keeps && !wpk_dtype_is_float(dtype)) {
        dtype = WPK_F32;
    }
    x = wpk_node_cast(p, dtype, x);
    if (x < 0) {
        return -1;
    }
    switch ((enum wpk_ast_call)n->op) {
    case WPK_CALL_RELU:
        return wpk_node_binary(p, WPK_BINARY_MAX, x, wpk_node_real(p, dtype, 0));
    case WPK_CALL_RELU6:
        return relu6_node(p, dtype, x);
    case WPK_CALL_LEAKY_RELU:
        return wpk_node_binary(p, WPK_BINARY_MAX, x, times(p, x, wpk_node_real(p, dtype, 0.01)));
    case WPK_CALL_SILU:
        return times(p, x, wpk_node_unary(p, WPK_UNARY_SIGMOID, x));
    case WPK_CALL_GELU:
        return gelu_node(p, dtype, x);
    default: {
        int shifted = wpk_node_binary(p, WPK_BINARY_ADD, x, wpk_node_real(p, dtype, 3));
        int gate = relu6_node(p, dtype, shifted);
        return times(p, times(p, x, gate), wpk_node_real(p, dtype, 1.0 / 6));
    }
    }
}

/* ---- reductions */

/* The axes that a node needs from around it: a reduction brings its own along. */
static void mark_axes(const struct wpk_ast *ast, const struct wpk_notation_scope *scope, int node,
                      bool *used)
{
    const struct wpk_ast_node *n = &ast->nodes[node];
    bool inside[WPK_AXES_MAX] = {false};
    int axis = n->kind == WPK_AST_NAME ? wpk_notation_scope_find(scope, n->name) : -1;
    if (axis >= 0) {
        inside[axis] = true;
    }
    for (int i = 0; i < n->child_count; i++) {
        mark_axes(ast, scope, n->child[i], inside);
    }
    for (int i = 0; i < n->axis_count && n->kind == WPK_AST_REDUCTION; i++) {
        axis = wpk_notation_scope_find(scope, n->axis[i].name);
        if (axis >= 0) {
            inside[axis] = false;
        }
    }
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        used[a] = used[a] || inside[a];
    }
}

bool wpk_builder_reduction(struct wpk_builder *b, struct wpk_notation_scope *scope, int stage,
                           const struct wpk_ast_node *n, enum wpk_dtype wanted, int *tensor_dtype)
{
    struct wpk_stage *s = &b->program->stages[stage];
    for (int i = 0; i < n->axis_count; i++) {
        int at = wpk_notation_scope_find(scope, n->axis[i].name);
        if (at < 0 ||
            wpk_stage_add_reduction_axis(s, n->axis[i].name, scope->axis[at].extent) < 0) {
            wpk_builder_fail(b, n->at, WPK_ERANGE, "too many axes%s", "");
            return false;
        }
    }
    /* The stage's own numbering of axes, and behind it those of reductions further in. */
    struct wpk_notation_scope own = {.count = s->axis_count, .bound = s->axis_count};
    memcpy(own.axis, s->axes, sizeof(own.axis));
    for (int a = 0; a < scope->count && own.count < WPK_AXES_MAX; a++) {
        if (wpk_notation_scope_find(&own, scope->axis[a].name) < 0) {
            own.axis[own.count++] = scope->axis[a];
        }
    }
    int body = wpk_builder_expr(b, &own, n->child[0], wpk_dtype_wide(wanted));
    if (body < 0) {
        return false;
    }
    s->reduction = (enum wpk_reduction)n->op;
    s->accumulator = n->typed ? n->dtype : wpk_dtype_wide(b->program->nodes[body].dtype);
    s->expr = wpk_node_cast(b->program, s->accumulator, body);
    *tensor_dtype = (int)s->accumulator;
    return s->expr >= 0;
}

/* A reduction inside an expression: a stage of its own and a load of what it writes. */
static int build_nested(struct wpk_builder *b, const struct wpk_notation_scope *scope, int node,
                        enum wpk_dtype wanted)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    bool used[WPK_AXES_MAX] = {false};
    int64_t extent[WPK_RANK_MAX];
    const char *names[WPK_RANK_MAX];
    int index[WPK_RANK_MAX] = {0}, rank = 0;
    char stem[WPK_NAME_MAX], name[WPK_NAME_MAX];
    mark_axes(b->ast, scope, node, used);
    for (int a = 0; a < scope->count; a++) {
        if (!used[a]) {
            continue;
        }
        if (a >= scope->bound) {
            return wpk_builder_fail(b, n->at, WPK_EPARSE,
                                    "axis %s is named outside of its reduction",
                                    scope->axis[a].name);
        }
        if (rank == WPK_RANK_MAX) {
            return wpk_builder_fail(b, n->at, WPK_ERANGE, "too many axes%s", "");
        }
        extent[rank] = scope->axis[a].extent;
        names[rank] = scope->axis[a].name;
        index[rank++] = wpk_node_axis(b->program, a);
    }
    snprintf(stem, sizeof(stem), "%.36s_acc", b->current);
    snprintf(name, sizeof(name), "%s", stem);
    for (int i = 2;
         wpk_program_find_tensor(b->program, name) >= 0 || wpk_ast_find_equation(b->ast, name) >= 0;
         i++) {
        snprintf(name, sizeof(name), "%.40s%d", stem, i);
    }
    int tensor =
        wpk_program_add_tensor(b->program, name, WPK_ROLE_INTERMEDIATE, WPK_F32, rank, extent);
    if (tensor < 0) {
        return wpk_builder_fail(b, n->at, WPK_ERANGE, "too many tensors%s", "");
    }
    b->used[tensor] = true;
    /* the body may hold reductions of its own, whose stages must come first: build it aside */
    struct wpk_notation_scope inner = *scope;
    int stage = wpk_program_add_stage(b->program, tensor, names), dtype = WPK_F32;
    if (stage < 0 || !wpk_builder_reduction(b, &inner, stage, n, wanted, &dtype)) {
        return b->err == WPK_OK ? wpk_builder_fail(b, n->at, WPK_ERANGE, "program too large%s", "")
                                : -1;
    }
    b->program->tensors[tensor].dtype = (enum wpk_dtype)dtype;
    return wpk_node_load(b->program, tensor, index, -1);
}

/* ---- expressions */

int wpk_builder_expr(struct wpk_builder *b, const struct wpk_notation_scope *scope, int node,
                     enum wpk_dtype wanted)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    if (b->err != WPK_OK) {
        return -1;
    }
    int made = -1;
    switch (n->kind) {
    case WPK_AST_NUMBER:
        made = number_node(b, n, 1, wanted);
        break;
    case WPK_AST_NAME: {
        int axis = wpk_builder_axis(b, scope, n);
        made = axis < 0 ? -1 : wpk_node_axis(b->program, axis);
        break;
    }
    case WPK_AST_LOAD:
        made = build_load(b, scope, n);
        break;
    case WPK_AST_UNARY:
        made = build_unary(b, scope, node, wanted);
        break;
    case WPK_AST_BINARY:
        made = build_binary(b, scope, n, wanted);
        break;
    case WPK_AST_SELECT: {
        int condition = wpk_builder_expr(b, scope, n->child[0], WPK_BOOL);
        int yes = wpk_builder_expr(b, scope, n->child[1], wanted);
        int no = yes < 0 ? -1 : wpk_builder_expr(b, scope, n->child[2], dtype_of(b, yes));
        if (no >= 0 && dtype_of(b, no) != dtype_of(b, yes)) {
            enum wpk_dtype dtype = meet(dtype_of(b, yes), dtype_of(b, no));
            yes = wpk_node_cast(b->program, dtype, yes);
            no = wpk_node_cast(b->program, dtype, no);
        }
        made = condition < 0 || no < 0 ? -1 : wpk_node_select(b->program, condition, yes, no);
        break;
    }
    case WPK_AST_CAST: {
        double sign = 1;
        int number = -1;
        if (is_number(b->ast, n->child[0], &sign, &number)) {
            /* an i64 or, with a fraction, an f64, and converted as any value would be */
            const struct wpk_ast_node *literal = &b->ast->nodes[number];
            bool whole = literal->is_integer && !wpk_dtype_is_float(n->dtype);
            number = number_node(b, literal, sign, whole ? WPK_I64 : WPK_F64);
        } else {
            number = wpk_builder_expr(b, scope, n->child[0], n->dtype);
        }
        made = number < 0 ? -1 : wpk_node_cast(b->program, n->dtype, number);
        break;
    }
    case WPK_AST_REDUCTION:
        made = build_nested(b, scope, node, wanted);
        break;
    case WPK_AST_CALL:
        made = build_call(b, scope, n, wanted);
        break;
    }
    return made < 0 ? wpk_builder_fail(b, n->at, WPK_ERANGE, "expression too large%s", "") : made;
}
