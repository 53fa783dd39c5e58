/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on nodes, loads and operands that all patterns use. */
#include "worker/provider/onednn_pattern.h"

#include "ir/node.h"

/* ---- nodes */

/* Floats, which the library rounds as it likes, bytes as wider numbers, and sums of integers. */
static bool keeps_values(enum wpk_dtype from, enum wpk_dtype to)
{
    bool bytes = wpk_dtype_size(from) == 1 && from != WPK_BOOL;
    return (bytes && to == WPK_I32) ||
           ((bytes || from == WPK_I32 || wpk_dtype_is_float(from)) && wpk_dtype_is_float(to));
}

int wpk_onednn_bare(const struct wpk_program *program, int node)
{
    const struct wpk_node *n = &program->nodes[node];

    while (n->kind == WPK_NODE_CAST && keeps_values(program->nodes[n->arg[0]].dtype, n->dtype)) {
        node = n->arg[0];
        n = &program->nodes[node];
    }
    return node;
}

const struct wpk_node *wpk_onednn_bare_node(const struct wpk_program *program, int node)
{
    return &program->nodes[wpk_onednn_bare(program, node)];
}

bool wpk_onednn_literal(const struct wpk_program *program, int node, double *out)
{
    const struct wpk_node *n = wpk_onednn_bare_node(program, node);

    if (n->kind != WPK_NODE_LITERAL) {
        return false;
    }
    *out = wpk_node_number(n);
    return true;
}

bool wpk_onednn_loads_same_point(const struct wpk_program *program, const struct wpk_stage *stage,
                                 const struct wpk_node *load)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];

    if (tensor->rank > stage->rank) {
        return false;
    }
    for (int d = 0; d < stage->rank; d++) {
        if (d >= tensor->rank ? stage->axes[d].extent != 1
                              : wpk_index_axis(program, load->index[d]) != d ||
                                    tensor->extent[d] != stage->axes[d].extent) {
            return false;
        }
    }
    return true;
}

bool wpk_onednn_is_written(const struct wpk_program *program, const struct wpk_node *node)
{
    return node->kind == WPK_NODE_LOAD && wpk_program_writer(program, node->tensor) >= 0;
}

const struct wpk_stage *wpk_onednn_follow(const struct wpk_program *program,
                                          const struct wpk_stage *stage,
                                          const struct wpk_node *node)
{
    if (!wpk_onednn_is_written(program, node) ||
        !wpk_onednn_loads_same_point(program, stage, node)) {
        return NULL;
    }
    return &program->stages[wpk_program_writer(program, node->tensor)];
}

/* ---- loads */

bool wpk_onednn_plain_dims(const struct wpk_program *program, const struct wpk_stage *stage,
                           const struct wpk_node *load, int *dim_of)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];

    for (int a = 0; a < WPK_AXES_MAX; a++) {
        dim_of[a] = -1;
    }
    for (int d = 0; d < tensor->rank; d++) {
        int axis = wpk_index_axis(program, load->index[d]);
        const struct wpk_node *index = &program->nodes[load->index[d]];
        if (axis < 0) {
            if (index->kind != WPK_NODE_LITERAL || index->integer != 0 || tensor->extent[d] != 1) {
                return false;
            }
        } else if (dim_of[axis] >= 0 || tensor->extent[d] != stage->axes[axis].extent) {
            return false;
        } else {
            dim_of[axis] = d;
        }
    }
    return true;
}

bool wpk_onednn_factors(const struct wpk_program *program, const struct wpk_stage *stage,
                        const struct wpk_node **a, const struct wpk_node **b)
{
    const struct wpk_node *product = wpk_onednn_bare_node(program, stage->expr);

    if (stage->reduction != WPK_REDUCE_SUM || product->kind != WPK_NODE_BINARY ||
        product->op != WPK_BINARY_MUL) {
        return false;
    }
    *a = wpk_onednn_bare_node(program, product->arg[0]);
    *b = wpk_onednn_bare_node(program, product->arg[1]);
    return (*a)->kind == WPK_NODE_LOAD && (*b)->kind == WPK_NODE_LOAD &&
           !wpk_onednn_is_written(program, *a) && !wpk_onednn_is_written(program, *b);
}

/* ---- operands */

void wpk_onednn_operand_begin(struct wpk_recipe_operand *operand, int tensor)
{
    *operand = (struct wpk_recipe_operand){.tensor = tensor};
}

void wpk_onednn_operand_add(const struct wpk_program *program, struct wpk_recipe_operand *operand,
                            int dim)
{
    const struct wpk_tensor *tensor = &program->tensors[operand->tensor];

    WPK_ASSERT(operand->rank < WPK_RECIPE_RANK_MAX);
    operand->extent[operand->rank] = dim < 0 ? 1 : tensor->extent[dim];
    operand->stride[operand->rank] =
        dim < 0 ? 1 : wpk_extents_product(tensor->extent + dim + 1, tensor->rank - dim - 1);
    operand->rank++;
}

bool wpk_onednn_vector(const struct wpk_program *program, const struct wpk_stage *stage, int node,
                       int axis, struct wpk_recipe_operand *operand)
{
    int dim_of[WPK_AXES_MAX];

    wpk_onednn_operand_begin(operand, -1);
    if (node < 0) {
        return true;
    }
    const struct wpk_node *load = &program->nodes[node];
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    if (!wpk_onednn_plain_dims(program, stage, load, dim_of) ||
        wpk_tensor_elements(tensor) != (dim_of[axis] < 0 ? 1 : tensor->extent[dim_of[axis]])) {
        return false;
    }
    wpk_onednn_operand_begin(operand, load->tensor);
    wpk_onednn_operand_add(program, operand, dim_of[axis]);
    return true;
}

void wpk_onednn_operand_whole(const struct wpk_program *program, int tensor,
                              struct wpk_recipe_operand *operand)
{
    wpk_onednn_operand_begin(operand, tensor);
    for (int d = 0; d < program->tensors[tensor].rank; d++) {
        wpk_onednn_operand_add(program, operand, d);
    }
    if (operand->rank == 0) {
        wpk_onednn_operand_add(program, operand, -1);
    }
}
