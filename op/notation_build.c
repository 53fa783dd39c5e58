/* SPDX-License-Identifier: Apache-2.0 */
/* From a syntax tree to stages. Extents are inferred equation by equation, in the order in which
 * the equations depend on each other; a reduction inside an expression becomes a stage of its own
 * over just the axes that its body uses. */
#include "op/notation_ast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The axes of the stage being built: output axes, then reductions. */
struct scope {
    struct wpk_axis axis[WPK_AXES_MAX];
    int at[WPK_AXES_MAX]; /* where it was named, for errors */
    int count;
};

struct builder {
    const struct wpk_ast *ast;
    struct wpk_program *program;
    bool closed;
    int state[WPK_AST_EQUATIONS_MAX]; /* 0 not built, 1 being built, 2 built */
    bool used[WPK_TENSORS_MAX];
    const char *current; /* the equation's tensor, stem of made-up names */
    wpk_err err;
};

static int fail(struct builder *b, int at, wpk_err err, const char *what, const char *name)
{
    if (b->err == WPK_OK) {
        b->err = wpk_ast_fail(b->ast, at, err, what, name);
    }
    return -1;
}

static int find_axis(const struct scope *scope, const char *name)
{
    for (int i = 0; i < scope->count; i++) {
        if (strcmp(scope->axis[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static int find_equation(const struct wpk_ast *ast, const char *name)
{
    for (int i = 0; i < ast->equation_count; i++) {
        if (strcmp(ast->equation[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* ---- extents */

static void add_axis(struct builder *b, struct scope *scope, const struct wpk_ast_axis *axis)
{
    if (find_axis(scope, axis->name) >= 0) {
        fail(b, axis->at, WPK_EPARSE, "axis %s is named twice", axis->name);
        return;
    }
    if (scope->count == WPK_AXES_MAX) {
        fail(b, axis->at, WPK_ERANGE, "too many axes at %s", axis->name);
        return;
    }
    struct wpk_axis *to = &scope->axis[scope->count];
    snprintf(to->name, sizeof(to->name), "%s", axis->name);
    to->extent = axis->extent;
    scope->at[scope->count++] = axis->at;
}

static void add_reduction_axes(struct builder *b, struct scope *scope, int node)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    for (int i = 0; i < n->axis_count; i++) {
        add_axis(b, scope, &n->axis[i]);
    }
    for (int i = 0; i < n->child_count; i++) {
        add_reduction_axes(b, scope, n->child[i]);
    }
}

static void learn_extent(struct builder *b, struct scope *scope, int axis, int64_t extent, int at)
{
    struct wpk_axis *a = &scope->axis[axis];
    if (a->extent == 0) {
        a->extent = extent;
    } else if (a->extent != extent && b->err == WPK_OK) {
        b->err =
            wpk_ast_fail(b->ast, at, WPK_ERANGE, "axis %s has extent %lld here and %lld before",
                         a->name, (long long)extent, (long long)a->extent);
    }
}

static int build_equation(struct builder *b, int id);

/* The tensor a load names; intermediates that are defined further down are built on the way. */
static int resolve(struct builder *b, const struct wpk_ast_node *load)
{
    int equation = find_equation(b->ast, load->name);
    if (equation >= 0 && b->state[equation] != 2 && build_equation(b, equation) < 0) {
        return -1;
    }
    int tensor = wpk_program_find_tensor(b->program, load->name);
    if (tensor < 0) {
        return fail(b, load->at, WPK_EPARSE, "tensor %s is not declared", load->name);
    }
    if (b->program->tensors[tensor].rank != load->child_count) {
        return fail(b, load->at, WPK_EPARSE, "wrong number of indices for %s", load->name);
    }
    b->used[tensor] = true;
    return tensor;
}

static void infer_extents(struct builder *b, struct scope *scope, int node)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    for (int i = 0; i < n->child_count && b->err == WPK_OK; i++) {
        infer_extents(b, scope, n->child[i]);
    }
    if (n->kind != WPK_AST_LOAD || b->err != WPK_OK) {
        return;
    }
    int tensor = resolve(b, n);
    for (int d = 0; d < n->child_count && tensor >= 0; d++) {
        const struct wpk_ast_node *index = &b->ast->nodes[n->child[d]];
        int axis = index->kind == WPK_AST_NAME ? find_axis(scope, index->name) : -1;
        /* the whole form states every extent, and reads a tensor with a border in part */
        if (axis >= 0 && (!b->closed || scope->axis[axis].extent == 0)) {
            learn_extent(b, scope, axis, b->program->tensors[tensor].extent[d], index->at);
        }
    }
}

static bool check_extents(struct builder *b, const struct scope *scope)
{
    for (int i = 0; i < scope->count && b->err == WPK_OK; i++) {
        if (scope->axis[i].extent == 0) {
            fail(b, scope->at[i], WPK_EPARSE, "the extent of axis %s cannot be inferred",
                 scope->axis[i].name);
        }
    }
    return b->err == WPK_OK;
}

/* ---- types */

static enum wpk_dtype wide(enum wpk_dtype dtype)
{
    switch (dtype) {
    case WPK_F16:
    case WPK_BF16:
        return WPK_F32;
    case WPK_I8:
    case WPK_U8:
    case WPK_BOOL:
        return WPK_I32;
    default:
        return dtype;
    }
}

static int weight(enum wpk_dtype dtype)
{
    return dtype == WPK_F64 ? 4 : dtype == WPK_F32 ? 3 : dtype == WPK_I64 ? 1 : 2;
}

/* The type two operands meet in: narrow types are widened, axis values (i64) give way. */
static enum wpk_dtype meet(enum wpk_dtype a, enum wpk_dtype b)
{
    a = wide(a);
    b = wide(b);
    return weight(a) >= weight(b) ? a : b;
}

static enum wpk_dtype dtype_of(const struct builder *b, int node)
{
    return b->program->nodes[node].dtype;
}

static int number_node(struct builder *b, const struct wpk_ast_node *n, double sign,
                       enum wpk_dtype dtype)
{
    if (wpk_dtype_is_float(dtype)) {
        return wpk_node_real(b->program, dtype, sign * n->value);
    }
    if (!n->is_integer) {
        return fail(b, n->at, WPK_EPARSE, "a whole number is needed here%s", "");
    }
    int node = wpk_node_int(b->program, sign < 0 ? -n->integer : n->integer);
    if (node >= 0) {
        b->program->nodes[node].dtype = dtype;
        b->program->nodes[node].value = 0;
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

/* ---- expressions; `wanted` is the type a bare number takes */

static int build_expr(struct builder *b, const struct scope *scope, int node,
                      enum wpk_dtype wanted);

static int build_index(struct builder *b, const struct scope *scope, int node)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    if (n->kind == WPK_AST_NUMBER) {
        return number_node(b, n, 1, WPK_I64);
    }
    if (n->kind == WPK_AST_NAME) {
        int axis = find_axis(scope, n->name);
        return axis < 0 ? fail(b, n->at, WPK_EPARSE, "%s is no axis of this equation", n->name)
                        : wpk_node_axis(b->program, axis);
    }
    if (n->kind == WPK_AST_UNARY && n->op == WPK_UNARY_NEG) {
        int operand = build_index(b, scope, n->child[0]);
        return operand < 0 ? -1
                           : wpk_node_binary(b->program, WPK_BINARY_MUL,
                                             wpk_node_int(b->program, -1), operand);
    }
    if (n->kind != WPK_AST_BINARY || n->op > WPK_BINARY_MOD) {
        return fail(b, n->at, WPK_EPARSE, "indices are made of axes, numbers and + - * / %%%s", "");
    }
    int left = build_index(b, scope, n->child[0]);
    int right = left < 0 ? -1 : build_index(b, scope, n->child[1]);
    if (right < 0) {
        return -1;
    }
    const struct wpk_node *x = &b->program->nodes[left], *y = &b->program->nodes[right];
    bool divides = n->op == WPK_BINARY_DIV || n->op == WPK_BINARY_MOD;
    if (divides && (y->kind != WPK_NODE_LITERAL || y->integer < 1)) {
        return fail(b, n->at, WPK_EPARSE, "an index is divided by a number of at least 1%s", "");
    }
    if (n->op == WPK_BINARY_MUL && x->kind != WPK_NODE_LITERAL && y->kind != WPK_NODE_LITERAL) {
        return fail(b, n->at, WPK_EPARSE, "an index is multiplied by a number only%s", "");
    }
    return wpk_node_binary(b->program, (enum wpk_binary)n->op, left, right);
}

static bool leaves(const struct builder *b, const struct scope *scope,
                   const struct wpk_tensor *tensor, const int *index)
{
    int64_t low[WPK_AXES_MAX] = {0}, extent[WPK_AXES_MAX];
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        extent[a] = a < scope->count ? scope->axis[a].extent : 1;
    }
    for (int d = 0; d < tensor->rank; d++) {
        int64_t first = 0, last = 0;
        wpk_index_range_in(b->program, index[d], low, extent, &first, &last);
        if (first < -tensor->pad_before[d] || last >= tensor->extent[d] + tensor->pad_after[d]) {
            return true;
        }
    }
    return false;
}

static int build_load(struct builder *b, const struct scope *scope, const struct wpk_ast_node *n)
{
    int tensor = resolve(b, n), index[WPK_RANK_MAX] = {0}, outside = -1;
    for (int d = 0; d < n->child_count && tensor >= 0; d++) {
        index[d] = build_index(b, scope, n->child[d]);
        if (index[d] < 0) {
            return -1;
        }
    }
    if (tensor < 0) {
        return -1;
    }
    const struct wpk_tensor *source = &b->program->tensors[tensor];
    if (leaves(b, scope, source, index)) {
        double sign = 1;
        int number = -1;
        if (n->outside >= 0 && !is_number(b->ast, n->outside, &sign, &number)) {
            return fail(b, n->at, WPK_EPARSE, "the value outside of %s must be a number", n->name);
        }
        outside = n->outside < 0 ? wpk_node_real(b->program, source->dtype, 0)
                                 : number_node(b, &b->ast->nodes[number], sign, source->dtype);
        if (outside < 0) {
            return -1;
        }
    }
    return wpk_node_load(b->program, tensor, index, outside);
}

static int build_binary(struct builder *b, const struct scope *scope, const struct wpk_ast_node *n,
                        enum wpk_dtype wanted)
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
    operand[first] = build_expr(b, scope, n->child[first], first_wanted);
    if (operand[first] < 0) {
        return -1;
    }
    enum wpk_dtype dtype = logical ? WPK_BOOL : wide(dtype_of(b, operand[first]));
    /* an axis beside a fraction becomes a float */
    if (dtype == WPK_I64 && bare[1 - first] && !b->ast->nodes[number[1 - first]].is_integer) {
        dtype = wpk_dtype_is_float(first_wanted) ? first_wanted : WPK_F32;
    }
    operand[1 - first] =
        bare[1 - first] ? number_node(b, &b->ast->nodes[number[1 - first]], sign[1 - first], dtype)
                        : build_expr(b, scope, n->child[1 - first], dtype);
    if (operand[1 - first] < 0) {
        return -1;
    }
    if (!logical) {
        dtype = bare[1 - first] ? dtype : meet(dtype_of(b, operand[0]), dtype_of(b, operand[1]));
        operand[0] = wpk_node_cast(b->program, dtype, operand[0]);
        operand[1] = wpk_node_cast(b->program, dtype, operand[1]);
    }
    return wpk_node_binary(b->program, (enum wpk_binary)n->op, operand[0], operand[1]);
}

static int build_unary(struct builder *b, const struct scope *scope, int node,
                       enum wpk_dtype wanted)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    double sign = 1;
    int number = -1;
    if (is_number(b->ast, node, &sign, &number)) {
        return number_node(b, &b->ast->nodes[number], sign, wanted);
    }
    int operand = build_expr(b, scope, n->child[0], wanted);
    if (operand < 0 || n->op == WPK_UNARY_NOT) {
        return operand < 0 ? -1 : wpk_node_unary(b->program, WPK_UNARY_NOT, operand);
    }
    enum wpk_dtype dtype = wide(dtype_of(b, operand));
    bool keeps = n->op == WPK_UNARY_NEG || n->op == WPK_UNARY_ABS;
    if (!keeps && !wpk_dtype_is_float(dtype)) {
        dtype = WPK_F32;
    }
    operand = wpk_node_cast(b->program, dtype, operand);
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
static int build_call(struct builder *b, const struct scope *scope, const struct wpk_ast_node *n,
                      enum wpk_dtype wanted)
{
    struct wpk_program *p = b->program;
    int x = build_expr(b, scope, n->child[0], wanted);
    if (x < 0) {
        return -1;
    }
    enum wpk_dtype dtype = wide(dtype_of(b, x));
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

static void mark_axes(const struct wpk_ast *ast, const struct scope *scope, int node, bool *used)
{
    const struct wpk_ast_node *n = &ast->nodes[node];
    int axis = n->kind == WPK_AST_NAME ? find_axis(scope, n->name) : -1;
    if (axis >= 0) {
        used[axis] = true;
    }
    for (int i = 0; i < n->child_count; i++) {
        mark_axes(ast, scope, n->child[i], used);
    }
}

static enum wpk_dtype accumulator_of(const struct wpk_ast_node *n, enum wpk_dtype body)
{
    return n->typed ? n->dtype : wide(body);
}

static enum wpk_dtype index_is_no_value(enum wpk_dtype dtype)
{
    return dtype == WPK_I64 ? WPK_I64 : dtype;
}

/* Complete a stage that reduces: its reduction axes, body and accumulator. */
static bool finish_reduction(struct builder *b, struct scope *scope, int stage,
                             const struct wpk_ast_node *n, enum wpk_dtype wanted, int *tensor_dtype)
{
    struct wpk_stage *s = &b->program->stages[stage];
    for (int i = 0; i < n->axis_count; i++) {
        int at = find_axis(scope, n->axis[i].name);
        if (at < 0 ||
            wpk_stage_add_reduction_axis(s, n->axis[i].name, scope->axis[at].extent) < 0) {
            fail(b, n->at, WPK_ERANGE, "too many axes%s", "");
            return false;
        }
    }
    /* the stage's own numbering of axes */
    struct scope own = {.count = s->axis_count};
    memcpy(own.axis, s->axes, sizeof(own.axis));
    int body = build_expr(b, &own, n->child[0], wide(wanted));
    if (body < 0) {
        return false;
    }
    s->reduction = (enum wpk_reduction)n->op;
    s->accumulator = accumulator_of(n, index_is_no_value(dtype_of(b, body)));
    s->expr = wpk_node_cast(b->program, s->accumulator, body);
    *tensor_dtype = (int)s->accumulator;
    return s->expr >= 0;
}

/* A reduction inside an expression: a stage of its own and a load of what it writes. */
static int build_nested(struct builder *b, const struct scope *scope, int node,
                        enum wpk_dtype wanted)
{
    const struct wpk_ast_node *n = &b->ast->nodes[node];
    bool used[WPK_AXES_MAX] = {false};
    int64_t extent[WPK_RANK_MAX];
    const char *names[WPK_RANK_MAX];
    int index[WPK_RANK_MAX] = {0}, rank = 0;
    char stem[WPK_NAME_MAX], name[WPK_NAME_MAX];
    mark_axes(b->ast, scope, n->child[0], used);
    for (int i = 0; i < n->axis_count; i++) {
        int axis = find_axis(scope, n->axis[i].name);
        if (axis >= 0) {
            used[axis] = false;
        }
    }
    for (int a = 0; a < scope->count; a++) {
        if (!used[a]) {
            continue;
        }
        if (rank == WPK_RANK_MAX) {
            return fail(b, n->at, WPK_ERANGE, "too many axes%s", "");
        }
        extent[rank] = scope->axis[a].extent;
        names[rank] = scope->axis[a].name;
        index[rank++] = wpk_node_axis(b->program, a);
    }
    snprintf(stem, sizeof(stem), "%.36s_acc", b->current);
    snprintf(name, sizeof(name), "%s", stem);
    for (int i = 2;
         wpk_program_find_tensor(b->program, name) >= 0 || find_equation(b->ast, name) >= 0; i++) {
        snprintf(name, sizeof(name), "%.40s%d", stem, i);
    }
    int tensor =
        wpk_program_add_tensor(b->program, name, WPK_ROLE_INTERMEDIATE, WPK_F32, rank, extent);
    if (tensor < 0) {
        return fail(b, n->at, WPK_ERANGE, "too many tensors%s", "");
    }
    b->used[tensor] = true;
    /* the body may hold reductions of its own, whose stages must come first: build it aside */
    struct scope inner = *scope;
    int stage = wpk_program_add_stage(b->program, tensor, names), dtype = WPK_F32;
    if (stage < 0 || !finish_reduction(b, &inner, stage, n, wanted, &dtype)) {
        return b->err == WPK_OK ? fail(b, n->at, WPK_ERANGE, "program too large%s", "") : -1;
    }
    b->program->tensors[tensor].dtype = (enum wpk_dtype)dtype;
    return wpk_node_load(b->program, tensor, index, -1);
}

static int build_expr(struct builder *b, const struct scope *scope, int node, enum wpk_dtype wanted)
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
        int axis = find_axis(scope, n->name);
        made = axis < 0 ? fail(b, n->at, WPK_EPARSE, "%s is no axis of this equation", n->name)
                        : wpk_node_axis(b->program, axis);
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
        int condition = build_expr(b, scope, n->child[0], WPK_BOOL);
        int yes = build_expr(b, scope, n->child[1], wanted);
        int no = yes < 0 ? -1 : build_expr(b, scope, n->child[2], dtype_of(b, yes));
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
            made = number_node(b, &b->ast->nodes[number], sign, n->dtype);
            break;
        }
        int operand = build_expr(b, scope, n->child[0], n->dtype);
        made = operand < 0 ? -1 : wpk_node_cast(b->program, n->dtype, operand);
        break;
    }
    case WPK_AST_REDUCTION:
        made = build_nested(b, scope, node, wanted);
        break;
    case WPK_AST_CALL:
        made = build_call(b, scope, n, wanted);
        break;
    }
    return made < 0 ? fail(b, n->at, WPK_ERANGE, "expression too large%s", "") : made;
}

/* ---- equations */

static bool infer_scope(struct builder *b, const struct wpk_ast_equation *e, int tensor,
                        struct scope *scope)
{
    memset(scope, 0, sizeof(*scope));
    for (int i = 0; i < e->axis_count; i++) {
        add_axis(b, scope, &e->axis[i]);
    }
    if (tensor >= 0 && b->program->tensors[tensor].rank != e->axis_count) {
        fail(b, e->at, WPK_EPARSE, "wrong number of axes for %s", e->name);
    }
    for (int i = 0; i < e->axis_count && tensor >= 0 && b->err == WPK_OK; i++) {
        learn_extent(b, scope, i, b->program->tensors[tensor].extent[i], e->axis[i].at);
    }
    if (b->err == WPK_OK) {
        add_reduction_axes(b, scope, e->root);
        infer_extents(b, scope, e->root);
    }
    return b->err == WPK_OK && check_extents(b, scope);
}

static int add_intermediate(struct builder *b, const struct wpk_ast_equation *e,
                            const struct scope *scope)
{
    int64_t extent[WPK_RANK_MAX];
    for (int i = 0; i < e->axis_count; i++) {
        extent[i] = scope->axis[i].extent;
    }
    int tensor = wpk_program_add_tensor(b->program, e->name, WPK_ROLE_INTERMEDIATE, WPK_F32,
                                        e->axis_count, extent);
    return tensor < 0 ? fail(b, e->at, WPK_ERANGE, "too many tensors at %s", e->name) : tensor;
}

static int build_stage(struct builder *b, const struct wpk_ast_equation *e, int tensor,
                       struct scope *scope, bool inferred)
{
    const char *names[WPK_RANK_MAX];
    const struct wpk_ast_node *root = &b->ast->nodes[e->root];
    for (int i = 0; i < e->axis_count; i++) {
        names[i] = e->axis[i].name;
    }
    int stage = wpk_program_add_stage(b->program, tensor, names), dtype = WPK_F32;
    if (stage < 0) {
        return fail(b, e->at, WPK_ERANGE, "too many stages at %s", e->name);
    }
    enum wpk_dtype wanted = inferred ? WPK_F32 : b->program->tensors[tensor].dtype;
    if (root->kind == WPK_AST_REDUCTION) {
        if (!finish_reduction(b, scope, stage, root, wanted, &dtype)) {
            return -1;
        }
    } else {
        struct scope own = {.count = e->axis_count};
        memcpy(own.axis, scope->axis, sizeof(own.axis));
        /* reductions inside see the axes that they bring along */
        own.count = scope->count;
        int expr = build_expr(b, &own, e->root, wide(wanted));
        if (expr < 0) {
            return -1;
        }
        dtype = (int)dtype_of(b, expr);
        b->program->stages[stage].expr = inferred ? expr : wpk_node_cast(b->program, wanted, expr);
    }
    if (inferred) {
        b->program->tensors[tensor].dtype = (enum wpk_dtype)dtype;
    }
    return b->program->stages[stage].expr < 0 ? -1 : stage;
}

static int build_equation(struct builder *b, int id)
{
    const struct wpk_ast_equation *e = &b->ast->equation[id];
    struct scope scope;
    if (b->state[id] == 1) {
        return fail(b, e->at, WPK_EPARSE, "%s is defined by itself", e->name);
    }
    b->state[id] = 1;
    int tensor = wpk_program_find_tensor(b->program, e->name);
    if (tensor >= 0 && wpk_program_writer(b->program, tensor) >= 0) {
        return fail(b, e->at, WPK_EPARSE, "%s is defined twice", e->name);
    }
    if (tensor >= 0 && b->program->tensors[tensor].role != WPK_ROLE_OUTPUT &&
        b->program->tensors[tensor].role != WPK_ROLE_INTERMEDIATE) {
        return fail(b, e->at, WPK_EPARSE, "%s is an input and cannot be assigned", e->name);
    }
    if (tensor < 0 && (b->closed || id == 0)) {
        return fail(b, e->at, WPK_EPARSE, "the type of %s is not declared", e->name);
    }
    const char *outer = b->current;
    b->current = e->name;
    bool inferred = tensor < 0;
    if (!infer_scope(b, e, tensor, &scope)) {
        return -1;
    }
    if (inferred) {
        tensor = add_intermediate(b, e, &scope);
    }
    int stage = tensor < 0 ? -1 : build_stage(b, e, tensor, &scope, inferred);
    b->current = outer;
    b->state[id] = 2;
    return stage;
}

static void check_duplicates(struct builder *b)
{
    for (int i = 0; i < b->ast->equation_count; i++) {
        if (find_equation(b->ast, b->ast->equation[i].name) != i) {
            fail(b, b->ast->equation[i].at, WPK_EPARSE, "%s is defined twice",
                 b->ast->equation[i].name);
        }
    }
}

/* Stages were added outermost first where one holds another: put writers before readers. */
static bool reads(const struct wpk_program *program, const struct wpk_stage *stage, int tensor)
{
    int loads[128];
    int count = wpk_stage_loads(program, stage, loads, 128);
    for (int i = 0; i < count && i < 128; i++) {
        if (program->nodes[loads[i]].tensor == tensor) {
            return true;
        }
    }
    return false;
}

static void sort_stages(struct wpk_program *program)
{
    for (int s = 0; s < program->stage_count; s++) {
        for (int t = s + 1; t < program->stage_count; t++) {
            if (reads(program, &program->stages[s], program->stages[t].output)) {
                struct wpk_stage later = program->stages[t];
                memmove(&program->stages[s + 1], &program->stages[s],
                        (size_t)(t - s) * sizeof(later));
                program->stages[s] = later;
                s--;
                break;
            }
        }
    }
}

wpk_err wpk_ast_build(const struct wpk_ast *ast, bool closed, struct wpk_program *program)
{
    struct builder *b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return WPK_ENOMEM;
    }
    b->ast = ast;
    b->program = program;
    b->closed = closed;
    b->current = ast->equation[0].name;
    check_duplicates(b);
    for (int i = 0; i < ast->equation_count && b->err == WPK_OK; i++) {
        if (b->state[i] != 2) {
            (void)build_equation(b, i);
        }
    }
    for (int t = 0; t < program->tensor_count && b->err == WPK_OK; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        if (!b->used[t] && tensor->role != WPK_ROLE_OUTPUT) {
            fail(b, 0, WPK_EPARSE, "tensor %s is not used", tensor->name);
        } else if (tensor->role == WPK_ROLE_OUTPUT && wpk_program_writer(program, t) < 0) {
            fail(b, 0, WPK_EPARSE, "tensor %s is not computed", tensor->name);
        }
    }
    if (b->err == WPK_OK) {
        sort_stages(program);
    }
    wpk_err err = b->err;
    free(b);
    return err;
}
