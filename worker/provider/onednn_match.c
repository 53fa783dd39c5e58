/* SPDX-License-Identifier: Apache-2.0 */
/* Matching starts at the output: pointwise functions and a bias are taken off until a reduction or
 * an input is left, which decides on the primitive.
 *
 *      Y = relu(T + B)        post: relu, bias: B
 *      T = sum(c,r,s) X * W   convolution or matrix product */
#include "ir/data_index.h"
#include "worker/provider/onednn_pattern.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The operations that were peeled off an expression, and the node at which peeling ended. */
struct chain {
    const struct wpk_stage *stage; /* that `node` belongs to */
    int node;                      /* its expression, as far as it is left */
    bool reduced;                  /* node is the whole expression of a stage with a reduction */
    struct wpk_onednn_terms terms;
    bool counted; /* divided by what depends on the position alone */
    struct wpk_recipe_post post[WPK_RECIPE_POSTS_MAX]; /* outermost first */
    int post_count;
    int post_count_at_term; /* when the last term was found */
    bool is_rounded;        /* to the integers of the output */
};

/* ---- peeling */

/* Matrix products, in batches or not: each axis belongs to both factors and the output (batch), to
 * one of the factors and the output, or to both factors alone. */

/* The axes of the stage by their part in the product; -1: none. */
struct product_axes {
    int batch[WPK_AXES_MAX];
    int batch_count;
    int m, n, k;
};

static bool sort_axes(const struct wpk_stage *stage, const int *in_a, const int *in_b,
                      struct product_axes *out)
{
    *out = (struct product_axes){.m = -1, .n = -1, .k = -1};
    for (int i = 0; i < stage->axis_count; i++) {
        bool reduced = i >= stage->rank;
        int *place = reduced ? &out->k : in_b[i] < 0 ? &out->m : &out->n;
        if (in_a[i] < 0 && in_b[i] < 0) {
            return false;
        }
        if (reduced && (in_a[i] < 0 || in_b[i] < 0)) {
            return false;
        }
        if (!reduced && in_a[i] >= 0 && in_b[i] >= 0) {
            out->batch[out->batch_count++] = i;
            continue;
        }
        if (*place >= 0) {
            return false;
        }
        *place = i;
    }
    /* More would not fit the library's rank. */
    return out->k >= 0 && out->batch_count <= WPK_RECIPE_RANK_MAX - 2;
}

static void fill_factor(const struct wpk_program *program, const struct product_axes *axes,
                        const int *dim_of, int row, int column, struct wpk_recipe_operand *out)
{
    for (int i = 0; i < axes->batch_count; i++) {
        wpk_onednn_operand_add(program, out, dim_of[axes->batch[i]]);
    }
    wpk_onednn_operand_add(program, out, row < 0 ? -1 : dim_of[row]);
    wpk_onednn_operand_add(program, out, column < 0 ? -1 : dim_of[column]);
}

static bool multiply(const struct wpk_program *program, const struct wpk_stage *stage,
                     const struct wpk_node *a, const struct wpk_node *b,
                     const struct wpk_onednn_terms *terms, struct wpk_recipe *op)
{
    int in_a[WPK_AXES_MAX];
    int in_b[WPK_AXES_MAX];
    int in_bias[WPK_AXES_MAX];
    int in_dst[WPK_AXES_MAX];
    struct product_axes axes;

    if (!wpk_onednn_plain_dims(program, stage, a, in_a) ||
        !wpk_onednn_plain_dims(program, stage, b, in_b) || !sort_axes(stage, in_a, in_b, &axes)) {
        return false;
    }
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_BIAS], -1);
    if (axes.n < 0 ? terms->scale >= 0
                   : !wpk_onednn_vector(program, stage, terms->scale, axes.n,
                                        &op->operand[WPK_RECIPE_SCALE])) {
        return false;
    }
    if (terms->bias >= 0) {
        const struct wpk_node *load = &program->nodes[terms->bias];
        if (!wpk_onednn_plain_dims(program, stage, load, in_bias)) {
            return false;
        }
        wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_BIAS], load->tensor);
        fill_factor(program, &axes, in_bias, axes.m, axes.n, &op->operand[WPK_RECIPE_BIAS]);
    }
    for (int i = 0; i < WPK_AXES_MAX; i++) {
        in_dst[i] = i < stage->rank ? i : -1;
    }
    op->kind = WPK_RECIPE_MATMUL;
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_SRC], a->tensor);
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_WEIGHTS], b->tensor);
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_DST], wpk_program_output(program));
    fill_factor(program, &axes, in_a, axes.m, axes.k, &op->operand[WPK_RECIPE_SRC]);
    fill_factor(program, &axes, in_b, axes.k, axes.n, &op->operand[WPK_RECIPE_WEIGHTS]);
    fill_factor(program, &axes, in_dst, axes.m, axes.n, &op->operand[WPK_RECIPE_DST]);
    return true;
}

/* The left factor is the one whose own axis comes first in the output: then a row-major output is
 * row-major to the library too. */
static bool match_matmul(const struct wpk_program *program, const struct wpk_stage *stage,
                         const struct wpk_onednn_terms *terms, struct wpk_recipe *op)
{
    const struct wpk_node *a = NULL;
    const struct wpk_node *b = NULL;
    int in_a[WPK_AXES_MAX];

    if (!wpk_onednn_factors(program, stage, &a, &b) || stage->rank == 0 ||
        !wpk_onednn_plain_dims(program, stage, a, in_a)) {
        return false;
    }
    bool swap = in_a[stage->rank - 1] >= 0;
    return multiply(program, stage, swap ? b : a, swap ? a : b, terms, op) ||
           multiply(program, stage, swap ? a : b, swap ? b : a, terms, op);
}

static bool push(struct chain *chain, enum wpk_recipe_function function, double alpha, double beta)
{
    if (chain->post_count == WPK_RECIPE_POSTS_MAX || !isfinite(alpha) || !isfinite(beta)) {
        return false;
    }
    chain->post[chain->post_count++] = (struct wpk_recipe_post){function, alpha, beta};
    return true;
}

static bool peel_unary(struct chain *chain, const struct wpk_node *node)
{
    static const struct {
        enum wpk_unary op;
        enum wpk_recipe_function function;
        double alpha;
    } table[] = {
        {WPK_UNARY_NEG, WPK_RECIPE_LINEAR, -1}, {WPK_UNARY_EXP, WPK_RECIPE_EXP, 0},
        {WPK_UNARY_LOG, WPK_RECIPE_LOG, 0},     {WPK_UNARY_SQRT, WPK_RECIPE_SQRT, 0},
        {WPK_UNARY_TANH, WPK_RECIPE_TANH, 0},   {WPK_UNARY_SIGMOID, WPK_RECIPE_LOGISTIC, 0},
        {WPK_UNARY_ABS, WPK_RECIPE_ABS, 0},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if ((int)table[i].op == node->op) {
            chain->node = node->arg[0];
            return push(chain, table[i].function, table[i].alpha, 0);
        }
    }
    return false;
}

/* A function of one operand and a literal. `left`: the literal is the left one. */
static bool peel_literal(struct chain *chain, int op, double value, bool left)
{
    switch (op) {
    case WPK_BINARY_ADD:
        return push(chain, WPK_RECIPE_LINEAR, 1, value);
    case WPK_BINARY_SUB:
        return push(chain, WPK_RECIPE_LINEAR, left ? -1 : 1, left ? value : -value);
    case WPK_BINARY_MUL:
        return push(chain, WPK_RECIPE_LINEAR, value, 0);
    case WPK_BINARY_DIV:
        return !left && push(chain, WPK_RECIPE_LINEAR, 1 / value, 0);
    case WPK_BINARY_MIN:
        return push(chain, WPK_RECIPE_CLIP, -FLT_MAX, value);
    case WPK_BINARY_MAX:
        return value < 0 || value > 0 ? push(chain, WPK_RECIPE_CLIP, value, FLT_MAX)
                                      : push(chain, WPK_RECIPE_RELU, 0, 0);
    default:
        return false;
    }
}

static void note_load(const struct wpk_program *program, int node, void *user)
{
    *(bool *)user |= program->nodes[node].kind == WPK_NODE_LOAD;
}

/* A divisor computed from the axes: how many elements of a window are inside. */
static bool is_count(const struct wpk_program *program, int node)
{
    bool loads = false;

    wpk_node_walk(program, node, false, note_load, &loads);
    return !loads;
}

static bool peel_binary(const struct wpk_program *program, struct chain *chain,
                        const struct wpk_node *node)
{
    double value = 0;

    if (node->op == WPK_BINARY_DIV && !chain->counted &&
        !wpk_onednn_literal(program, node->arg[1], &value) && is_count(program, node->arg[1])) {
        chain->counted = true;
        chain->node = node->arg[0];
        return true;
    }
    for (int side = 0; side < 2; side++) {
        const struct wpk_node *mine = wpk_onednn_bare_node(program, node->arg[side]);
        const struct wpk_node *other = wpk_onednn_bare_node(program, node->arg[1 - side]);
        if (wpk_onednn_literal(program, node->arg[side], &value)) {
            chain->node = node->arg[1 - side];
            return peel_literal(chain, node->op, value, side == 0);
        }
        /* Something given, added to something computed, or multiplied by it before that. */
        int *term = node->op == WPK_BINARY_MUL   ? &chain->terms.scale
                    : node->op == WPK_BINARY_ADD ? &chain->terms.bias
                                                 : NULL;
        bool is_next = chain->terms.bias < 0 || chain->post_count == chain->post_count_at_term;
        if (term != NULL && *term < 0 && chain->terms.scale < 0 && is_next &&
            mine->kind == WPK_NODE_LOAD && !wpk_onednn_is_written(program, mine) &&
            (other->kind != WPK_NODE_LOAD || wpk_onednn_is_written(program, other))) {
            *term = wpk_onednn_bare(program, node->arg[side]);
            chain->post_count_at_term = chain->post_count;
            chain->node = node->arg[1 - side];
            return true;
        }
    }
    return false;
}

/* One step inwards; false where it ends. */
static bool peel_step(const struct wpk_program *program, struct chain *chain)
{
    const struct wpk_node *node = wpk_onednn_bare_node(program, chain->node);
    const struct wpk_stage *next = wpk_onednn_follow(program, chain->stage, node);

    if (next != NULL) {
        chain->stage = next;
        chain->node = next->expr;
        chain->reduced = next->reduction != WPK_REDUCE_NONE;
        return !chain->reduced;
    }
    if (node->kind == WPK_NODE_UNARY) {
        return peel_unary(chain, node);
    }
    return node->kind == WPK_NODE_BINARY && peel_binary(program, chain, node);
}

/* The last step of a quantized operator, which is part of the primitive: a zero point added to what
 * was rounded, as a byte. */
static void peel_rounding(const struct wpk_program *program, struct chain *chain)
{
    const struct wpk_node *cast = &program->nodes[chain->node];

    if (cast->kind != WPK_NODE_CAST || wpk_dtype_size(cast->dtype) != 1 ||
        !wpk_dtype_is_float(program->nodes[cast->arg[0]].dtype)) {
        return;
    }
    const struct wpk_node *node = &program->nodes[cast->arg[0]];
    for (int side = 0; node->kind == WPK_NODE_BINARY && side < 2; side++) {
        const struct wpk_node *zero = wpk_onednn_bare_node(program, node->arg[side]);
        if (node->op == WPK_BINARY_ADD && zero->kind == WPK_NODE_LOAD &&
            wpk_tensor_elements(&program->tensors[zero->tensor]) == 1) {
            chain->terms.zero = wpk_onednn_bare(program, node->arg[side]);
            node = &program->nodes[node->arg[1 - side]];
            break;
        }
    }
    if (node->kind == WPK_NODE_UNARY && node->op == WPK_UNARY_ROUND) {
        chain->node = node->arg[0];
        chain->is_rounded = true;
    }
}

static void peel(const struct wpk_program *program, const struct wpk_stage *last,
                 struct chain *chain)
{
    *chain = (struct chain){.stage = last,
                            .node = last->expr,
                            .terms = {-1, -1, -1},
                            .reduced = last->reduction != WPK_REDUCE_NONE};
    if (chain->reduced) {
        return;
    }
    peel_rounding(program, chain);
    /* Every step leaves a node or a stage behind. */
    for (int i = 0; i < WPK_NODES_MAX && peel_step(program, chain); i++) {
    }
}

static void take_posts(const struct chain *chain, struct wpk_recipe *op)
{
    op->post_count = chain->post_count;
    for (int i = 0; i < chain->post_count; i++) {
        op->post[i] = chain->post[chain->post_count - 1 - i];
    }
}

static bool has_terms(const struct chain *chain)
{
    return chain->terms.bias >= 0 || chain->terms.scale >= 0 || chain->is_rounded;
}

/* ---- a reduction was met */

/* True if the primitive can compute the chain: nothing is applied before a term is, and sums of
 * integers alone are scaled and rounded. */
static bool fits_product(const struct wpk_program *program, const struct chain *chain)
{
    const struct wpk_onednn_terms *terms = &chain->terms;
    bool has_term = terms->bias >= 0 || terms->scale >= 0;
    return !chain->counted && (!has_term || chain->post_count == chain->post_count_at_term) &&
           ((terms->scale < 0 && !chain->is_rounded) ||
            (program->tensors[chain->stage->output].dtype == WPK_I32 &&
             (terms->scale < 0 ||
              program->tensors[program->nodes[terms->scale].tensor].dtype == WPK_F32)));
}

/* The division that makes a sum an average is part of the primitive: undo it. */
static bool multiply_average(struct wpk_recipe *op)
{
    double count = 1;

    for (int i = 0; i < op->spatial; i++) {
        count *= (double)op->kernel[i];
    }
    if (op->post_count > 0 && op->post[0].function == WPK_RECIPE_LINEAR) {
        op->post[0].alpha *= count;
    } else if (op->post_count < WPK_RECIPE_POSTS_MAX) {
        memmove(&op->post[1], &op->post[0], sizeof(op->post[0]) * (size_t)op->post_count);
        op->post[0] = (struct wpk_recipe_post){WPK_RECIPE_LINEAR, count, 0};
        op->post_count++;
    } else {
        return false;
    }
    double off = op->post[0].alpha - 1;
    if (off < 1e-6 && off > -1e-6 && !(op->post[0].beta < 0) && !(op->post[0].beta > 0)) {
        op->post_count--;
        memmove(&op->post[0], &op->post[1], sizeof(op->post[0]) * (size_t)op->post_count);
    }
    return true;
}

static bool match_reduction(const struct wpk_program *program, const struct chain *chain,
                            struct wpk_recipe *op)
{
    if (!chain->reduced) {
        return false;
    }
    if (fits_product(program, chain) &&
        (match_matmul(program, chain->stage, &chain->terms, op) ||
         wpk_onednn_match_convolution(program, chain->stage, &chain->terms, op))) {
        if (chain->terms.zero >= 0) {
            wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_ZERO],
                                     program->nodes[chain->terms.zero].tensor);
            wpk_onednn_operand_add(program, &op->operand[WPK_RECIPE_ZERO], -1);
        }
        take_posts(chain, op);
        return true;
    }
    if (has_terms(chain) || !wpk_onednn_match_pooling(program, chain->stage, op)) {
        return false;
    }
    take_posts(chain, op);
    if (chain->counted) {
        op->kind = WPK_RECIPE_POOL_AVERAGE_INSIDE;
        return chain->stage->reduction == WPK_REDUCE_SUM;
    }
    return op->kind != WPK_RECIPE_POOL_AVERAGE || multiply_average(op);
}

/* ---- an input was met */

static bool match_eltwise(const struct wpk_program *program, const struct chain *chain, int output,
                          struct wpk_recipe *op)
{
    const struct wpk_node *load = wpk_onednn_bare_node(program, chain->node);

    if (chain->reduced || chain->counted || has_terms(chain) || chain->post_count == 0 ||
        load->kind != WPK_NODE_LOAD || !wpk_onednn_loads_same_point(program, chain->stage, load)) {
        return false;
    }
    op->kind = WPK_RECIPE_ELTWISE;
    wpk_onednn_operand_whole(program, load->tensor, &op->operand[WPK_RECIPE_SRC]);
    wpk_onednn_operand_whole(program, output, &op->operand[WPK_RECIPE_DST]);
    take_posts(chain, op);
    return true;
}

/* An operand of a binary function: each dimension is an axis of the output, or is not there. */
static bool broadcast_operand(const struct wpk_program *program, const struct wpk_stage *stage,
                              const struct wpk_node *load, struct wpk_recipe_operand *operand)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];

    wpk_onednn_operand_begin(operand, load->tensor);
    int used = 0;
    for (int axis = 0; axis < stage->rank; axis++) {
        int dim = -1;
        for (int d = 0; d < tensor->rank; d++) {
            if (wpk_index_axis(program, load->index[d]) == axis &&
                tensor->extent[d] == stage->axes[axis].extent) {
                dim = dim < 0 ? d : dim;
            }
        }
        wpk_onednn_operand_add(program, operand, dim);
        used += dim >= 0;
    }
    for (int d = 0; d < tensor->rank; d++) {
        used += wpk_index_axis(program, load->index[d]) < 0 && tensor->extent[d] == 1;
    }
    return used == tensor->rank && stage->rank > 0;
}

static bool match_binary(const struct wpk_program *program, const struct chain *chain, int output,
                         struct wpk_recipe *op)
{
    static const enum wpk_binary known[] = {
        [WPK_RECIPE_ADD] = WPK_BINARY_ADD, [WPK_RECIPE_SUB] = WPK_BINARY_SUB,
        [WPK_RECIPE_MUL] = WPK_BINARY_MUL, [WPK_RECIPE_DIV] = WPK_BINARY_DIV,
        [WPK_RECIPE_MIN] = WPK_BINARY_MIN, [WPK_RECIPE_MAX] = WPK_BINARY_MAX};
    const struct wpk_node *node = wpk_onednn_bare_node(program, chain->node);
    bool found = false;

    if (chain->reduced || chain->counted || has_terms(chain) || node->kind != WPK_NODE_BINARY) {
        return false;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if ((int)known[i] == node->op) {
            op->binary = (enum wpk_recipe_binary)i;
            found = true;
        }
    }
    const struct wpk_node *a = wpk_onednn_bare_node(program, node->arg[0]);
    const struct wpk_node *b = wpk_onednn_bare_node(program, node->arg[1]);
    if (!found || a->kind != WPK_NODE_LOAD || b->kind != WPK_NODE_LOAD ||
        wpk_onednn_is_written(program, a) || wpk_onednn_is_written(program, b) ||
        a->tensor == b->tensor) {
        return false;
    }
    op->kind = WPK_RECIPE_BINARY;
    wpk_onednn_operand_whole(program, output, &op->operand[WPK_RECIPE_DST]);
    take_posts(chain, op);
    return broadcast_operand(program, chain->stage, a, &op->operand[WPK_RECIPE_SRC]) &&
           broadcast_operand(program, chain->stage, b, &op->operand[WPK_RECIPE_WEIGHTS]);
}

/* ---- all of it */

/* The one output and its stage; every tensor must be of a kind that the library computes with. */
static const struct wpk_stage *last_stage(const struct wpk_program *program, int *output)
{
    *output = -1;
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        bool plain =
            tensor->dtype != WPK_F64 && tensor->dtype != WPK_I64 && tensor->dtype != WPK_BOOL;
        if (tensor->role != WPK_ROLE_INTERMEDIATE && !plain) {
            return NULL;
        }
        if (tensor->role == WPK_ROLE_OUTPUT) {
            if (*output >= 0) {
                return NULL;
            }
            *output = t;
        }
    }
    if (*output < 0) {
        return NULL;
    }
    int writer = wpk_program_writer(program, *output);
    return writer < 0 ? NULL : &program->stages[writer];
}

static bool match(const struct wpk_program *program, const struct wpk_stage *last, int output,
                  struct wpk_recipe *out)
{
    struct wpk_recipe none = {0};
    struct chain chain;

    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        none.operand[role].tensor = -1;
    }
    *out = none;
    if (wpk_onednn_match_softmax(program, last, output, out)) {
        return true;
    }
    *out = none;
    if (wpk_onednn_match_layernorm(program, last, output, out)) {
        return true;
    }
    *out = none;
    peel(program, last, &chain);
    if (match_reduction(program, &chain, out)) {
        return true;
    }
    *out = none;
    if (match_eltwise(program, &chain, output, out)) {
        return true;
    }
    *out = none;
    return match_binary(program, &chain, output, out);
}

/* Operands name tensors of the program so far; let them name the recipe's. */
static bool take_tensors(const struct wpk_program *program, struct wpk_recipe *recipe)
{
    int place[WPK_TENSORS_MAX];

    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        int i = recipe->tensor_count;
        bool argument = wpk_tensor_is_given(tensor) || tensor->role == WPK_ROLE_OUTPUT;
        if (!argument) {
            continue;
        }
        if (i == WPK_RECIPE_TENSORS_MAX) {
            return false;
        }
        recipe->use[i] = tensor->role == WPK_ROLE_INPUT      ? WPK_RECIPE_INPUT
                         : tensor->role == WPK_ROLE_CONSTANT ? WPK_RECIPE_CONSTANT
                                                             : WPK_RECIPE_OUTPUT;
        struct wpk_named_tensor *named = &recipe->tensor[i];
        snprintf(named->name, sizeof(named->name), "%s", tensor->name);
        named->type.dtype = tensor->dtype;
        named->type.rank = tensor->rank;
        memcpy(named->type.extent, tensor->extent, sizeof(int64_t) * (size_t)tensor->rank);
        named->type.layout = wpk_layout_row_major(tensor->rank);
        place[t] = recipe->tensor_count++;
    }
    for (int role = 0; role < WPK_RECIPE_ROLE_COUNT; role++) {
        struct wpk_recipe_operand *operand = &recipe->operand[role];
        operand->tensor = operand->tensor >= 0 ? place[operand->tensor] : -1;
    }
    return true;
}

wpk_err wpk_onednn_match(const struct wpk_program *program, struct wpk_recipe *out)
{
    struct wpk_recipe recipe;
    int output = -1;
    const struct wpk_stage *last = last_stage(program, &output);

    if (last == NULL || wpk_program_gathers(program) || !match(program, last, output, &recipe) ||
        !take_tensors(program, &recipe)) {
        return WPK_EUNSUPPORTED;
    }
    *out = recipe;
    return WPK_OK;
}
