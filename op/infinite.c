/* SPDX-License-Identifier: Apache-2.0 */
#include "op/infinite.h"

#include <math.h>
#include <string.h>

/* ---- backwards: what reaches an exp */

/* Mark the tensors whose elements reach this node unscaled. */
static void reach(const struct wpk_program *program, int id, bool *reaches)
{
    const struct wpk_node *node = &program->nodes[id];
    switch (node->kind) {
    case WPK_NODE_LOAD:
        reaches[node->tensor] = true;
        break;
    case WPK_NODE_BINARY:
        if (node->op == WPK_BINARY_ADD || node->op == WPK_BINARY_MAX) {
            reach(program, node->arg[0], reaches);
            reach(program, node->arg[1], reaches);
        } else if (node->op == WPK_BINARY_SUB) {
            reach(program, node->arg[0], reaches);
        }
        break;
    case WPK_NODE_SELECT:
        reach(program, node->arg[1], reaches);
        reach(program, node->arg[2], reaches);
        break;
    case WPK_NODE_CAST:
        if (wpk_dtype_is_float(node->dtype)) {
            reach(program, node->arg[0], reaches);
        }
        break;
    default:
        break;
    }
}

static void visit_exp(const struct wpk_program *program, int id, void *user)
{
    const struct wpk_node *node = &program->nodes[id];
    if (node->kind == WPK_NODE_UNARY && node->op == WPK_UNARY_EXP) {
        reach(program, node->arg[0], user);
    }
}

static void find_reaching(const struct wpk_program *program, bool *reaches)
{
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        bool passes = stage->reduction == WPK_REDUCE_NONE || stage->reduction == WPK_REDUCE_MAX ||
                      stage->reduction == WPK_REDUCE_SUM;
        wpk_node_walk(program, stage->expr, false, visit_exp, reaches);
        if (reaches[stage->output] && passes) {
            reach(program, stage->expr, reaches);
        }
    }
}

/* ---- forwards: what is computed from it */

/* What a value may be besides a finite number. */
enum {
    MAY_BE_INFINITE = 1,
    MAY_BE_NAN = 2,
};

struct forwards {
    struct wpk_infinite *found;
    bool nan[WPK_TENSORS_MAX];         /* by tensor id: its elements may be NaN */
    unsigned char node[WPK_NODES_MAX]; /* by node id: what its value may be */
};

static int of_load(const struct wpk_program *program, const struct wpk_node *node,
                   const struct forwards *f)
{
    bool outside = node->outside >= 0 && isinf(program->nodes[node->outside].value);
    bool infinite = f->found->tensor[node->tensor] || outside;
    return (infinite ? MAY_BE_INFINITE : 0) | (f->nan[node->tensor] ? MAY_BE_NAN : 0);
}

/* Most functions are finite at -inf or are not defined there. */
static int of_unary(const struct wpk_node *node, int id, struct forwards *f)
{
    int arg = f->node[node->arg[0]];
    bool nan = (arg & MAY_BE_NAN) != 0;
    switch (node->op) {
    case WPK_UNARY_NEG:
    case WPK_UNARY_ABS:
    case WPK_UNARY_FLOOR:
    case WPK_UNARY_CEIL:
    case WPK_UNARY_ROUND:
        return arg;
    case WPK_UNARY_EXP:
    case WPK_UNARY_SIGMOID:
    case WPK_UNARY_TANH:
    case WPK_UNARY_ERF:
        f->found->drops[id] = nan;
        return arg & MAY_BE_NAN;
    case WPK_UNARY_LOG:
    case WPK_UNARY_SIN:
    case WPK_UNARY_COS:
        f->found->drops[id] = nan;
        return arg != 0 ? MAY_BE_NAN : 0;
    default:
        return arg != 0 ? MAY_BE_NAN : 0; /* roots */
    }
}

static int of_binary(const struct wpk_node *node, struct forwards *f)
{
    int a = f->node[node->arg[0]], b = f->node[node->arg[1]];
    int either = a | b;
    bool infinite = (either & MAY_BE_INFINITE) != 0;
    switch (node->op) {
    case WPK_BINARY_ADD:
        return either;
    case WPK_BINARY_SUB:
        return either | ((a & b & MAY_BE_INFINITE) != 0 ? MAY_BE_NAN : 0);
    case WPK_BINARY_MUL:
    case WPK_BINARY_DIV:
        return either | (infinite ? MAY_BE_NAN : 0);
    default: /* min, max, comparisons, pow, % */
        f->found->rows = f->found->rows && (either & MAY_BE_NAN) == 0;
        return either & MAY_BE_INFINITE;
    }
}

static void visit(const struct wpk_program *program, int id, void *user)
{
    struct forwards *f = user;
    const struct wpk_node *node = &program->nodes[id];
    int may_be = 0;
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        may_be = wpk_dtype_is_float(node->dtype) && isinf(node->value) ? MAY_BE_INFINITE : 0;
        break;
    case WPK_NODE_LOAD:
        may_be = of_load(program, node, f);
        break;
    case WPK_NODE_UNARY:
        may_be = of_unary(node, id, f);
        break;
    case WPK_NODE_BINARY:
        may_be = of_binary(node, f);
        break;
    case WPK_NODE_SELECT:
        may_be = f->node[node->arg[1]] | f->node[node->arg[2]];
        break;
    case WPK_NODE_CAST:
        may_be = f->node[node->arg[0]];
        break;
    case WPK_NODE_AXIS:
        break;
    }
    if (!wpk_dtype_is_float(node->dtype)) {
        f->found->rows = f->found->rows && (may_be & MAY_BE_NAN) == 0;
        may_be = 0;
    }
    f->node[id] = (unsigned char)may_be;
}

static void follow(const struct wpk_program *program, const struct wpk_stage *stage,
                   struct forwards *f)
{
    wpk_node_walk(program, stage->expr, false, visit, f);
    int may_be = f->node[stage->expr];
    bool nan = (may_be & MAY_BE_NAN) != 0;
    bool chooses = stage->reduction == WPK_REDUCE_MAX || stage->reduction == WPK_REDUCE_MIN;
    f->found->rows = f->found->rows && !(chooses && nan);
    f->found->tensor[stage->output] = (may_be & MAY_BE_INFINITE) != 0;
    f->nan[stage->output] = nan || (stage->reduction == WPK_REDUCE_PROD && may_be != 0);
}

void wpk_infinite_find(const struct wpk_program *program, struct wpk_infinite *out)
{
    bool reaches[WPK_TENSORS_MAX] = {false};
    struct forwards forwards = {.found = out};
    memset(out, 0, sizeof(*out));
    find_reaching(program, reaches);
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        out->tensor[t] = reaches[t] && wpk_dtype_is_float(tensor->dtype) &&
                         (tensor->role == WPK_ROLE_INPUT || tensor->role == WPK_ROLE_CONSTANT);
        out->rows = out->rows || out->tensor[t];
    }
    for (int s = 0; s < program->stage_count; s++) {
        follow(program, &program->stages[s], &forwards);
    }
}

/* ---- what kernels make of it */

static int drop(struct wpk_program *program, const struct wpk_infinite *infinite, int id)
{
    const struct wpk_node node = program->nodes[id];
    int arg[3] = {-1, -1, -1};
    int count = node.kind == WPK_NODE_SELECT   ? 3
                : node.kind == WPK_NODE_BINARY ? 2
                : node.kind == WPK_NODE_UNARY  ? 1
                                               : node.kind == WPK_NODE_CAST;
    for (int i = 0; i < count; i++) {
        arg[i] = drop(program, infinite, node.arg[i]);
        if (arg[i] < 0) {
            return -1;
        }
    }
    switch (node.kind) {
    case WPK_NODE_UNARY: {
        int value = wpk_node_unary(program, (enum wpk_unary)node.op, arg[0]);
        int number = wpk_node_binary(program, WPK_BINARY_EQ, arg[0], arg[0]);
        return !infinite->drops[id]
                   ? value
                   : wpk_node_select(program, number, value, wpk_node_real(program, node.dtype, 0));
    }
    case WPK_NODE_BINARY:
        return wpk_node_binary(program, (enum wpk_binary)node.op, arg[0], arg[1]);
    case WPK_NODE_SELECT:
        return wpk_node_select(program, arg[0], arg[1], arg[2]);
    case WPK_NODE_CAST:
        return wpk_node_cast(program, node.dtype, arg[0]);
    default:
        return id;
    }
}

wpk_err wpk_infinite_drop(const struct wpk_program *program, const struct wpk_infinite *infinite,
                          struct wpk_program *out)
{
    struct wpk_program dropping;
    wpk_err err = wpk_program_copy(program, &dropping);
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        int expr = drop(&dropping, infinite, dropping.stages[s].expr);
        dropping.stages[s].expr = expr;
        err = expr < 0 ? WPK_ENOSPC : WPK_OK;
    }
    if (err != WPK_OK) {
        wpk_program_fini(&dropping);
        return err;
    }
    *out = dropping;
    return WPK_OK;
}

bool wpk_infinite_literal(const struct wpk_program *program)
{
    for (int i = 0; i < program->node_count; i++) {
        const struct wpk_node *node = &program->nodes[i];
        if (node->kind == WPK_NODE_LITERAL && wpk_dtype_is_float(node->dtype) &&
            isinf(node->value)) {
            return true;
        }
    }
    return false;
}
