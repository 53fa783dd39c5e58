/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with several reductions: softmax and layernorm. They are found by the way in which their
 * reductions are used, through any pointwise stages in between. */
#include "worker/provider/onednn_pattern.h"

#define EPSILON_MAX 0.1 /* larger ones are not there to keep a division from failing */

/* Through pointwise stages computed at the same point, to the node that says something. */
static const struct wpk_node *resolve(const struct wpk_program *program,
                                      const struct wpk_stage **stage, int node)
{
    const struct wpk_node *n = wpk_onednn_bare_node(program, node);

    for (;;) {
        const struct wpk_stage *next = wpk_onednn_follow(program, *stage, n);
        if (next == NULL || next->reduction != WPK_REDUCE_NONE) {
            return n;
        }
        *stage = next;
        n = wpk_onednn_bare_node(program, next->expr);
    }
}

/* The stage with that reduction whose result is loaded, at any point; NULL when it is not one. */
static const struct wpk_stage *reduced_by(const struct wpk_program *program,
                                          const struct wpk_node *node, enum wpk_reduction reduction)
{
    if (!wpk_onednn_is_written(program, node)) {
        return NULL;
    }
    const struct wpk_stage *stage = &program->stages[wpk_program_writer(program, node->tensor)];
    return stage->reduction == reduction && stage->axis_count == stage->rank + 1 ? stage : NULL;
}

/* exp(X - max X): returns the stage of the maximum, and the load of X in it. */
static const struct wpk_stage *match_shifted_exp(const struct wpk_program *program,
                                                 const struct wpk_stage *stage, int node,
                                                 const struct wpk_node **x)
{
    const struct wpk_node *exponent = resolve(program, &stage, node);

    if (exponent->kind != WPK_NODE_UNARY || exponent->op != WPK_UNARY_EXP) {
        return NULL;
    }
    const struct wpk_node *shifted = resolve(program, &stage, exponent->arg[0]);
    if (shifted->kind != WPK_NODE_BINARY || shifted->op != WPK_BINARY_SUB) {
        return NULL;
    }
    const struct wpk_node *value = wpk_onednn_bare_node(program, shifted->arg[0]);
    const struct wpk_stage *max =
        reduced_by(program, wpk_onednn_bare_node(program, shifted->arg[1]), WPK_REDUCE_MAX);
    if (max == NULL || value->kind != WPK_NODE_LOAD || wpk_onednn_is_written(program, value)) {
        return NULL;
    }
    *x = wpk_onednn_bare_node(program, max->expr);
    return (*x)->kind == WPK_NODE_LOAD && (*x)->tensor == value->tensor ? max : NULL;
}

bool wpk_onednn_match_softmax(const struct wpk_program *program, const struct wpk_stage *last,
                              int output, struct wpk_recipe *op)
{
    const struct wpk_stage *stage = last;
    const struct wpk_node *quotient = resolve(program, &stage, last->expr);
    const struct wpk_node *x = NULL;

    if (quotient->kind != WPK_NODE_BINARY || quotient->op != WPK_BINARY_DIV) {
        return false;
    }
    const struct wpk_stage *sum =
        reduced_by(program, wpk_onednn_bare_node(program, quotient->arg[1]), WPK_REDUCE_SUM);
    const struct wpk_stage *max = match_shifted_exp(program, stage, quotient->arg[0], &x);
    if (sum == NULL || max == NULL) {
        return false;
    }
    wpk_onednn_operand_whole(program, x->tensor, &op->operand[WPK_RECIPE_SRC]);
    wpk_onednn_operand_whole(program, output, &op->operand[WPK_RECIPE_DST]);
    op->kind = WPK_RECIPE_SOFTMAX;
    op->axis = -1;
    for (int d = 0; d < program->tensors[x->tensor].rank; d++) {
        if (wpk_index_axis(program, x->index[d]) == max->rank) {
            op->axis = d;
        }
    }
    return op->axis >= 0;
}

/* A load of a tensor that the last axis alone indexes: a scale or shift. */
static bool is_per_column(const struct wpk_program *program, const struct wpk_stage *stage,
                          int node)
{
    const struct wpk_node *load = wpk_onednn_bare_node(program, node);

    return load->kind == WPK_NODE_LOAD && !wpk_onednn_is_written(program, load) &&
           program->tensors[load->tensor].rank == 1 &&
           wpk_index_axis(program, load->index[0]) == stage->rank - 1;
}

/* Take a scale or shift off: op is what joins it to the rest. */
static void take_per_column(const struct wpk_program *program, const struct wpk_stage **stage,
                            int *node, enum wpk_binary op, struct wpk_recipe_operand *operand)
{
    const struct wpk_node *n = resolve(program, stage, *node);

    wpk_onednn_operand_begin(operand, -1);
    *node = (int)(n - program->nodes);
    for (int side = 0; side < 2; side++) {
        if (n->kind == WPK_NODE_BINARY && n->op == (int)op &&
            is_per_column(program, *stage, n->arg[side])) {
            wpk_onednn_operand_whole(program, wpk_onednn_bare_node(program, n->arg[side])->tensor,
                                     operand);
            *node = n->arg[1 - side];
            return;
        }
    }
}

struct norm_parts {
    const struct wpk_program *program;
    bool has_root;
    double epsilon;
};

static void look_at_part(const struct wpk_program *program, int node, void *user)
{
    struct norm_parts *parts = user;
    const struct wpk_node *n = &program->nodes[node];
    double value = 0;

    if (n->kind == WPK_NODE_UNARY && (n->op == WPK_UNARY_SQRT || n->op == WPK_UNARY_RSQRT)) {
        parts->has_root = true;
    }
    for (int side = 0; side < 2 && n->kind == WPK_NODE_BINARY && n->op == WPK_BINARY_ADD; side++) {
        if (wpk_onednn_literal(program, n->arg[side], &value) && value > 0 && value < EPSILON_MAX) {
            parts->epsilon = value;
        }
    }
}

/* x - mean: returns the tensor x, -1 when it is not that. */
static int match_centred(const struct wpk_program *program, const struct wpk_stage *stage, int node)
{
    const struct wpk_node *n = resolve(program, &stage, node);

    if (n->kind != WPK_NODE_BINARY || n->op != WPK_BINARY_SUB) {
        return -1;
    }
    const struct wpk_node *x = wpk_onednn_bare_node(program, n->arg[0]);
    if (x->kind != WPK_NODE_LOAD || wpk_onednn_is_written(program, x) ||
        !wpk_onednn_loads_same_point(program, stage, x) || n->arg[1] < 0) {
        return -1;
    }
    return x->tensor;
}

/* The variance may be a stage or two away: stages it reads are looked into as well. */
static void look_for_root(const struct wpk_program *program, int node, struct norm_parts *parts)
{
    wpk_node_walk(program, node, false, look_at_part, parts);
    for (int depth = 0; depth < 3 && !parts->has_root; depth++) {
        const struct wpk_node *n = wpk_onednn_bare_node(program, node);
        if (!wpk_onednn_is_written(program, n)) {
            return;
        }
        node = program->stages[wpk_program_writer(program, n->tensor)].expr;
        wpk_node_walk(program, node, false, look_at_part, parts);
    }
}

bool wpk_onednn_match_layernorm(const struct wpk_program *program, const struct wpk_stage *last,
                                int output, struct wpk_recipe *op)
{
    const struct wpk_stage *stage = last;
    int node = last->expr;
    int sums = 0;

    for (int i = 0; i < program->stage_count; i++) {
        const struct wpk_stage *s = &program->stages[i];
        sums += s->reduction == WPK_REDUCE_SUM && s->rank == last->rank - 1 &&
                s->axis_count == last->rank;
    }
    take_per_column(program, &stage, &node, WPK_BINARY_ADD, &op->operand[WPK_RECIPE_BIAS]);
    take_per_column(program, &stage, &node, WPK_BINARY_MUL, &op->operand[WPK_RECIPE_WEIGHTS]);
    const struct wpk_node *n = resolve(program, &stage, node);
    if (sums != 2 || n->kind != WPK_NODE_BINARY ||
        (n->op != WPK_BINARY_MUL && n->op != WPK_BINARY_DIV)) {
        return false;
    }
    for (int side = 0; side < (n->op == WPK_BINARY_MUL ? 2 : 1); side++) {
        struct norm_parts parts = {0};
        int x = match_centred(program, stage, n->arg[side]);
        look_for_root(program, n->arg[1 - side], &parts);
        if (x >= 0 && parts.has_root) {
            wpk_onednn_operand_whole(program, x, &op->operand[WPK_RECIPE_SRC]);
            wpk_onednn_operand_whole(program, output, &op->operand[WPK_RECIPE_DST]);
            op->kind = WPK_RECIPE_LAYERNORM;
            op->epsilon = parts.epsilon;
            return op->operand[WPK_RECIPE_SRC].rank >= 2;
        }
    }
    return false;
}
