/* SPDX-License-Identifier: Apache-2.0 */
#include "op/infinite.h"

#include <math.h>
#include <string.h>

/* ---- backwards: what reaches an exp or a maximum */

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
        if ((reaches[stage->output] && passes) || stage->reduction == WPK_REDUCE_MAX) {
            reach(program, stage->expr, reaches);
        }
    }
}

/* ---- forwards: what is computed from it */

struct forwards {
    struct wpk_infinite *found;
    unsigned char tensor[WPK_TENSORS_MAX]; /* by tensor id: what its elements may be */
    bool adds;                             /* the stage being followed adds up its terms */
};

static int of_infinity(double value)
{
    return !isinf(value) ? 0 : value < 0 ? WPK_MAY_BE_MINUS : WPK_MAY_BE_PLUS;
}

static int of_load(const struct wpk_program *program, const struct wpk_node *node,
                   const struct forwards *f)
{
    int outside = node->outside < 0 ? 0 : of_infinity(program->nodes[node->outside].value);
    return f->tensor[node->tensor] | outside;
}

static int negated(int may_be)
{
    int rest = may_be & ~(WPK_MAY_BE_INFINITE | WPK_IS_MAXIMUM);
    return rest | ((may_be & WPK_MAY_BE_MINUS) != 0 ? WPK_MAY_BE_PLUS : 0) |
           ((may_be & WPK_MAY_BE_PLUS) != 0 ? WPK_MAY_BE_MINUS : 0);
}

static int of_unary(const struct wpk_node *node, const struct forwards *f)
{
    int arg = f->found->may_be[node->arg[0]] & ~WPK_IS_MAXIMUM;
    int nan = (arg & WPK_MAY_BE_SPECIAL) != 0 ? WPK_MAY_BE_NAN : 0;
    switch (node->op) {
    case WPK_UNARY_NEG:
        return negated(arg);
    case WPK_UNARY_ABS:
        return arg | negated(arg);
    case WPK_UNARY_FLOOR:
    case WPK_UNARY_CEIL:
    case WPK_UNARY_ROUND:
    case WPK_UNARY_TRUNC:
        return arg;
    case WPK_UNARY_EXP:
        return (arg & WPK_MAY_BE_PLUS) |
               ((arg & (WPK_MAY_BE_NAN | WPK_MAY_BE_DROPPED)) != 0 ? WPK_MAY_BE_DROPPED : 0);
    case WPK_UNARY_SIGMOID:
    case WPK_UNARY_TANH:
    case WPK_UNARY_ERF:
        return arg & (WPK_MAY_BE_NAN | WPK_MAY_BE_DROPPED);
    case WPK_UNARY_LOG:
    case WPK_UNARY_RSQRT: /* of 0: infinite */
        return arg | nan | ((arg & WPK_MAY_BE_DROPPED) != 0 ? WPK_MAY_BE_SPECIAL : 0);
    default: /* sqrt, sin, cos */
        return arg | nan;
    }
}

/* Of opposite signs, or of equal ones where b is subtracted? */
static bool may_cancel(int a, int b)
{
    return ((a & WPK_MAY_BE_MINUS) != 0 && (b & WPK_MAY_BE_PLUS) != 0) ||
           ((a & WPK_MAY_BE_PLUS) != 0 && (b & WPK_MAY_BE_MINUS) != 0);
}

/* In a masked row 0 is divided by 0; something else by 0 is infinite. */
static bool divides_by_masked(int a, int b)
{
    return (b & WPK_MAY_BE_DROPPED) != 0 && (a & WPK_MAY_BE_DROPPED) == 0;
}

static int of_binary(const struct wpk_node *node, struct forwards *f)
{
    int a = f->found->may_be[node->arg[0]], b = f->found->may_be[node->arg[1]];
    int either = (a | b) & ~WPK_IS_MAXIMUM;
    int both = a & b & WPK_IS_MAXIMUM;
    bool infinite = (either & WPK_MAY_BE_INFINITE) != 0;
    switch (node->op) {
    case WPK_BINARY_ADD:
        return either | (may_cancel(a, b) ? WPK_MAY_BE_NAN : 0);
    case WPK_BINARY_SUB: {
        /* what is less than its maximum is subtracted from */
        int difference =
            (a & ~WPK_IS_MAXIMUM) | negated((b & WPK_IS_MAXIMUM) != 0 ? b & ~WPK_MAY_BE_MINUS : b);
        return difference | (may_cancel(a, negated(b)) ? WPK_MAY_BE_NAN : 0);
    }
    case WPK_BINARY_MUL:
        return either | (infinite ? WPK_MAY_BE_SPECIAL : 0);
    case WPK_BINARY_DIV:
        infinite = infinite || divides_by_masked(a, b);
        return either | (infinite ? WPK_MAY_BE_SPECIAL : 0) |
               ((b & WPK_MAY_BE_DROPPED) != 0 ? WPK_MAY_BE_NAN : 0);
    case WPK_BINARY_MAX:
    case WPK_BINARY_MIN:
        f->found->rows = f->found->rows && (either & (WPK_MAY_BE_NAN | WPK_MAY_BE_DROPPED)) == 0;
        return (either & ~WPK_MAY_BE_NAN) | both;
    default: /* comparisons, pow, % */
        f->found->rows = f->found->rows && (either & (WPK_MAY_BE_NAN | WPK_MAY_BE_DROPPED)) == 0;
        return either & ~WPK_MAY_BE_NAN;
    }
}

/* A term that is NaN already may be added up with fast arithmetic: a sum of products is to stay one
 * of fused multiply-adds. */
static bool is_strict(const struct wpk_node *node, int value, const struct forwards *f)
{
    bool binary = node->kind == WPK_NODE_BINARY;
    bool term = f->adds && binary && (node->op == WPK_BINARY_MUL || node->op == WPK_BINARY_ADD);
    bool unary = node->kind == WPK_NODE_UNARY || node->kind == WPK_NODE_CAST;
    int either = value;
    either |= binary || unary ? f->found->may_be[node->arg[0]] : 0;
    either |= binary ? f->found->may_be[node->arg[1]] : 0;
    return (either & WPK_MAY_BE_INFINITE) != 0 || ((either & WPK_MAY_BE_NAN) != 0 && !term);
}

static void visit(const struct wpk_program *program, int id, void *user)
{
    struct forwards *f = user;
    const struct wpk_node *node = &program->nodes[id];
    int may_be = 0;
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        may_be = wpk_dtype_is_float(node->dtype) ? of_infinity(node->value) : 0;
        break;
    case WPK_NODE_LOAD:
        may_be = of_load(program, node, f);
        break;
    case WPK_NODE_UNARY:
        may_be = of_unary(node, f);
        break;
    case WPK_NODE_BINARY:
        may_be = of_binary(node, f);
        break;
    case WPK_NODE_SELECT:
        may_be =
            (f->found->may_be[node->arg[1]] | f->found->may_be[node->arg[2]]) & ~WPK_IS_MAXIMUM;
        break;
    case WPK_NODE_CAST:
        may_be = f->found->may_be[node->arg[0]];
        break;
    case WPK_NODE_AXIS:
        break;
    }
    f->found->strict[id] = f->found->strict[id] || is_strict(node, may_be, f);
    f->found->any = f->found->any || f->found->strict[id];
    if (!wpk_dtype_is_float(node->dtype)) {
        f->found->rows = f->found->rows && (may_be & (WPK_MAY_BE_NAN | WPK_MAY_BE_DROPPED)) == 0;
        may_be = 0;
    }
    f->found->may_be[id] = (unsigned char)may_be;
}

static void follow(const struct wpk_program *program, int s, struct forwards *f)
{
    const struct wpk_stage *stage = &program->stages[s];
    f->adds = stage->reduction == WPK_REDUCE_SUM;
    wpk_node_walk(program, stage->expr, false, visit, f);
    int may_be = f->found->may_be[stage->expr];
    bool nan = (may_be & (WPK_MAY_BE_NAN | WPK_MAY_BE_DROPPED)) != 0;
    bool chooses = stage->reduction == WPK_REDUCE_MAX || stage->reduction == WPK_REDUCE_MIN;
    f->found->rows = f->found->rows && !(chooses && nan);
    bool floating = wpk_dtype_is_float(stage->accumulator) ||
                    wpk_dtype_is_float(program->tensors[stage->output].dtype);
    /* the identity of a maximum or minimum is infinite, even if its terms are not */
    f->found->reduction[s] = stage->reduction != WPK_REDUCE_NONE &&
                             ((may_be & WPK_MAY_BE_INFINITE) != 0 || (chooses && floating));
    if (stage->reduction == WPK_REDUCE_SUM &&
        (may_be & WPK_MAY_BE_INFINITE) == WPK_MAY_BE_INFINITE) {
        may_be |= WPK_MAY_BE_NAN;
    } else if (stage->reduction == WPK_REDUCE_PROD && (may_be & WPK_MAY_BE_INFINITE) != 0) {
        may_be |= WPK_MAY_BE_SPECIAL;
    }
    bool maximum = stage->reduction == WPK_REDUCE_MAX ||
                   (stage->reduction == WPK_REDUCE_NONE && (may_be & WPK_IS_MAXIMUM) != 0);
    may_be = (may_be & ~WPK_IS_MAXIMUM) | (maximum ? WPK_IS_MAXIMUM : 0);
    f->found->tensor[stage->output] = (may_be & WPK_MAY_BE_INFINITE) != 0;
    f->found->any = f->found->any || f->found->reduction[s];
    f->tensor[stage->output] = (unsigned char)may_be;
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
        forwards.tensor[t] = out->tensor[t] ? WPK_MAY_BE_MINUS : 0;
        out->rows = out->rows || out->tensor[t];
    }
    for (int s = 0; s < program->stage_count; s++) {
        follow(program, s, &forwards);
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
        return !wpk_infinite_drops(program, infinite, id)
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
        err = expr < 0 ? wpk_program_full_error(&dropping) : WPK_OK;
    }
    if (err != WPK_OK) {
        wpk_program_fini(&dropping);
        return err;
    }
    *out = dropping;
    return WPK_OK;
}

bool wpk_infinite_drops(const struct wpk_program *program, const struct wpk_infinite *infinite,
                        int node)
{
    const struct wpk_node *n = &program->nodes[node];
    return n->kind == WPK_NODE_UNARY && n->op == WPK_UNARY_EXP &&
           (infinite->may_be[n->arg[0]] & WPK_MAY_BE_NAN) != 0;
}
