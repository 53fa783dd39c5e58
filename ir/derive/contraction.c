/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/derive/extract.h"

static int strip_casts(const struct wpk_program *program, int node)
{
    while (program->nodes[node].kind == WPK_NODE_CAST) {
        node = program->nodes[node].arg[0];
    }
    return node;
}

static bool is_product_of_loads(const struct wpk_program *program, const struct wpk_stage *stage,
                                int *left, int *right)
{
    int top = strip_casts(program, stage->expr);
    const struct wpk_node *node = &program->nodes[top];
    if (stage->reduction != WPK_REDUCE_SUM || node->kind != WPK_NODE_BINARY ||
        node->op != WPK_BINARY_MUL) {
        return false;
    }
    *left = strip_casts(program, node->arg[0]);
    *right = strip_casts(program, node->arg[1]);
    return program->nodes[*left].kind == WPK_NODE_LOAD &&
           program->nodes[*right].kind == WPK_NODE_LOAD &&
           program->tensors[program->nodes[*left].tensor].role != WPK_ROLE_LITERAL &&
           program->tensors[program->nodes[*right].tensor].role != WPK_ROLE_LITERAL;
}

bool wpk_contraction_is(const struct wpk_program *program, int stage)
{
    int left = -1, right = -1;
    return stage >= 0 && is_product_of_loads(program, &program->stages[stage], &left, &right);
}

int wpk_contraction_find(const struct wpk_program *program)
{
    int best = -1;
    double best_size = 0;
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        double size = wpk_stage_points(stage);
        if (wpk_contraction_is(program, s) && size > best_size) {
            best = s;
            best_size = size;
        }
    }
    return best;
}

/* A constant, or an intermediate that only constants go into. */
static bool is_constant(const struct wpk_program *program, int tensor)
{
    enum wpk_role role = program->tensors[tensor].role;
    int writer = wpk_program_writer(program, tensor);
    if (writer < 0) {
        return role == WPK_ROLE_CONSTANT || role == WPK_ROLE_LITERAL;
    }
    for (struct wpk_loads load = wpk_loads_of(program, &program->stages[writer]);
         wpk_loads_next(&load);) {
        if (!is_constant(program, load.node->tensor)) {
            return false;
        }
    }
    return true;
}

void wpk_contraction_operands(const struct wpk_program *program, int stage, struct wpk_node *data,
                              struct wpk_node *weight)
{
    int left = -1, right = -1;
    bool product = is_product_of_loads(program, &program->stages[stage], &left, &right);
    WPK_ASSERT(product);
    bool swap = is_constant(program, program->nodes[left].tensor);
    *data = program->nodes[swap ? right : left];
    *weight = program->nodes[swap ? left : right];
}

int wpk_contraction_only_dim(const struct wpk_program *program, const struct wpk_node *load,
                             int axis)
{
    int found = -1;
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        struct wpk_affine affine;
        if (wpk_index_affine(program, load->index[d], &affine) && affine.coefficient[axis] != 0) {
            if (found >= 0) {
                return -1;
            }
            found = d;
        }
    }
    return found;
}

bool wpk_contraction_uses_axis(const struct wpk_program *program, const struct wpk_node *load,
                               int axis)
{
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        struct wpk_affine affine;
        if (!wpk_index_affine(program, load->index[d], &affine) || affine.coefficient[axis] != 0) {
            return true;
        }
    }
    return false;
}
