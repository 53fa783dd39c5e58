/* SPDX-License-Identifier: Apache-2.0 */
#include "op/sign.h"

#include <string.h>

static bool is_same_index(const struct wpk_program *program, int a, int b)
{
    struct wpk_affine of_a, of_b;
    return wpk_index_affine(program, a, &of_a) && wpk_index_affine(program, b, &of_b) &&
           of_a.constant == of_b.constant &&
           memcmp(of_a.coefficient, of_b.coefficient, sizeof(of_a.coefficient)) == 0;
}

static const struct wpk_node *find_load(const struct wpk_program *program, int id)
{
    const struct wpk_node *node = &program->nodes[id];
    return node->kind == WPK_NODE_LOAD && node->outside < 0 ? node : NULL;
}

/* The maximum is taken along some dimensions of the element's tensor, whole ones; in the others it
 * is where the element is. */
static bool is_among(const struct wpk_program *program, const struct wpk_node *element,
                     const struct wpk_node *maximum)
{
    int writer = wpk_program_writer(program, maximum->tensor);
    if (writer < 0 || program->stages[writer].reduction != WPK_REDUCE_MAX) {
        return false;
    }
    const struct wpk_stage *stage = &program->stages[writer];
    const struct wpk_tensor *tensor = &program->tensors[element->tensor];
    const struct wpk_node *term = find_load(program, stage->expr);
    bool reduced[WPK_AXES_MAX] = {false};
    bool among = term != NULL && term->tensor == element->tensor &&
                 program->tensors[maximum->tensor].dtype == tensor->dtype;
    for (int d = 0; among && d < tensor->rank; d++) {
        int axis = wpk_index_axis(program, term->index[d]);
        if (axis >= stage->rank) {
            among = stage->axes[axis].extent == tensor->extent[d] && !reduced[axis];
            reduced[axis] = true;
        } else {
            among = axis >= 0 && is_same_index(program, element->index[d], maximum->index[axis]);
        }
    }
    return among;
}

bool wpk_is_nonpositive(const struct wpk_program *program, int id)
{
    const struct wpk_node *node = &program->nodes[id];
    if (node->kind == WPK_NODE_LITERAL && wpk_dtype_is_float(node->dtype)) {
        return node->value <= 0;
    }
    if (node->kind != WPK_NODE_BINARY) {
        return false;
    }
    const struct wpk_node *a = find_load(program, node->arg[0]);
    const struct wpk_node *b = find_load(program, node->arg[1]);
    if (node->op == WPK_BINARY_SUB) {
        return a != NULL && b != NULL && is_among(program, a, b);
    }
    for (int i = 0; node->op == WPK_BINARY_MUL && i < 2; i++) {
        const struct wpk_node *factor = &program->nodes[node->arg[1 - i]];
        if (factor->kind == WPK_NODE_LITERAL && wpk_dtype_is_float(factor->dtype) &&
            factor->value > 0) {
            return wpk_is_nonpositive(program, node->arg[i]);
        }
    }
    return false;
}
