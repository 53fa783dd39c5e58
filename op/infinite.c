/* SPDX-License-Identifier: Apache-2.0 */
#include "op/infinite.h"

#include <math.h>

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

static bool may_hold(const struct wpk_program *program, const struct wpk_infinite *infinite, int id)
{
    const struct wpk_node *node = &program->nodes[id];
    if (!wpk_dtype_is_float(node->dtype)) {
        return false;
    }
    switch (node->kind) {
    case WPK_NODE_LITERAL:
        return isinf(node->value);
    case WPK_NODE_LOAD:
        return infinite->tensor[node->tensor] ||
               (node->outside >= 0 && may_hold(program, infinite, node->outside));
    case WPK_NODE_UNARY:
        return node->op != WPK_UNARY_EXP && node->op != WPK_UNARY_SIGMOID &&
               node->op != WPK_UNARY_TANH && node->op != WPK_UNARY_ERF &&
               may_hold(program, infinite, node->arg[0]);
    case WPK_NODE_BINARY:
        return may_hold(program, infinite, node->arg[0]) ||
               may_hold(program, infinite, node->arg[1]);
    case WPK_NODE_SELECT:
        return may_hold(program, infinite, node->arg[1]) ||
               may_hold(program, infinite, node->arg[2]);
    case WPK_NODE_CAST:
        return may_hold(program, infinite, node->arg[0]);
    default:
        return false;
    }
}

void wpk_infinite_find(const struct wpk_program *program, struct wpk_infinite *out)
{
    bool reaches[WPK_TENSORS_MAX] = {false};
    *out = (struct wpk_infinite){{false}};
    find_reaching(program, reaches);
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        out->tensor[t] = reaches[t] && wpk_dtype_is_float(tensor->dtype) &&
                         (tensor->role == WPK_ROLE_INPUT || tensor->role == WPK_ROLE_CONSTANT);
    }
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        out->tensor[stage->output] = may_hold(program, out, stage->expr);
    }
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
