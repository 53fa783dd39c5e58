/* SPDX-License-Identifier: Apache-2.0 */
/* From the output backwards: pointwise functions and a bias are peeled off until a reduction or an
 * input is met; what that is decides on the primitive.
 *
 *      Y = relu(T + B)        post: relu, bias: B
 *      T = sum(c,r,s) X * W   convolution or matrix product */
#include "worker/onednn_pattern.h"

#include <float.h>
#include <string.h>

#define EPSILON_MAX 0.1 /* larger ones are not there to keep a division from failing */

/* What was peeled, and where it ended. */
struct chain {
    const struct wpk_stage *stage; /* that `node` belongs to */
    int node;                      /* its expression, as far as it is left */
    bool reduced;                  /* node is the whole expression of a stage with a reduction */
    int bias;                      /* load node, -1: none */
    bool counted;                  /* divided by what depends on the position alone */
    struct wpk_onednn_post post[WPK_ONEDNN_POSTS_MAX]; /* outermost first */
    int post_count;
    int post_count_at_bias;
};

static const struct wpk_node *bare_node(const struct wpk_program *program, int node)
{
    return &program->nodes[wpk_onednn_bare(program, node)];
}

static bool literal_value(const struct wpk_program *program, int node, double *out)
{
    const struct wpk_node *n = bare_node(program, node);

    if (n->kind != WPK_NODE_LITERAL) {
        return false;
    }
    *out = wpk_dtype_is_float(n->dtype) ? n->value : (double)n->integer;
    return true;
}

/* Index d is axis d, for all axes of the output but trailing ones of extent 1. */
static bool loads_same_point(const struct wpk_program *program, const struct wpk_stage *stage,
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

static bool is_written(const struct wpk_program *program, const struct wpk_node *node)
{
    return node->kind == WPK_NODE_LOAD && wpk_program_writer(program, node->tensor) >= 0;
}

/* The stage that writes what the node loads at the same point; NULL when it is anything else. */
static const struct wpk_stage *follow(const struct wpk_program *program,
                                      const struct wpk_stage *stage, const struct wpk_node *node)
{
    if (!is_written(program, node) || !loads_same_point(program, stage, node)) {
        return NULL;
    }
    return &program->stages[wpk_program_writer(program, node->tensor)];
}

/* ---- peeling */

static bool push(struct chain *chain, enum wpk_onednn_function function, double alpha, double beta)
{
    if (chain->post_count == WPK_ONEDNN_POSTS_MAX) {
        return false;
    }
    chain->post[chain->post_count++] = (struct wpk_onednn_post){function, alpha, beta};
    return true;
}

static bool peel_unary(struct chain *chain, const struct wpk_node *node)
{
    static const struct {
        enum wpk_unary op;
        enum wpk_onednn_function function;
        double alpha;
    } table[] = {
        {WPK_UNARY_NEG, WPK_ONEDNN_LINEAR, -1}, {WPK_UNARY_EXP, WPK_ONEDNN_EXP, 0},
        {WPK_UNARY_LOG, WPK_ONEDNN_LOG, 0},     {WPK_UNARY_SQRT, WPK_ONEDNN_SQRT, 0},
        {WPK_UNARY_TANH, WPK_ONEDNN_TANH, 0},   {WPK_UNARY_SIGMOID, WPK_ONEDNN_LOGISTIC, 0},
        {WPK_UNARY_ABS, WPK_ONEDNN_ABS, 0},
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
        return push(chain, WPK_ONEDNN_LINEAR, 1, value);
    case WPK_BINARY_SUB:
        return push(chain, WPK_ONEDNN_LINEAR, left ? -1 : 1, left ? value : -value);
    case WPK_BINARY_MUL:
        return push(chain, WPK_ONEDNN_LINEAR, value, 0);
    case WPK_BINARY_DIV:
        return !left && push(chain, WPK_ONEDNN_LINEAR, 1 / value, 0);
    case WPK_BINARY_MIN:
        return push(chain, WPK_ONEDNN_CLIP, -FLT_MAX, value);
    case WPK_BINARY_MAX:
        return value < 0 || value > 0 ? push(chain, WPK_ONEDNN_CLIP, value, FLT_MAX)
                                      : push(chain, WPK_ONEDNN_RELU, 0, 0);
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
        !literal_value(program, node->arg[1], &value) && is_count(program, node->arg[1])) {
        chain->counted = true;
        chain->node = node->arg[0];
        return true;
    }
    for (int side = 0; side < 2; side++) {
        const struct wpk_node *mine = bare_node(program, node->arg[side]);
        const struct wpk_node *other = bare_node(program, node->arg[1 - side]);
        if (literal_value(program, node->arg[side], &value)) {
            chain->node = node->arg[1 - side];
            return peel_literal(chain, node->op, value, side == 0);
        }
        /* Something given, added to something computed. */
        if (node->op == WPK_BINARY_ADD && chain->bias < 0 && mine->kind == WPK_NODE_LOAD &&
            !is_written(program, mine) &&
            (other->kind != WPK_NODE_LOAD || is_written(program, other))) {
            chain->bias = wpk_onednn_bare(program, node->arg[side]);
            chain->post_count_at_bias = chain->post_count;
            chain->node = node->arg[1 - side];
            return true;
        }
    }
    return false;
}

/* One step inwards; false where it ends. */
static bool peel_step(const struct wpk_program *program, struct chain *chain)
{
    const struct wpk_node *node = bare_node(program, chain->node);
    const struct wpk_stage *next = follow(program, chain->stage, node);

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

static void peel(const struct wpk_program *program, const struct wpk_stage *last,
                 struct chain *chain)
{
    *chain = (struct chain){.stage = last,
                            .node = last->expr,
                            .bias = -1,
                            .reduced = last->reduction != WPK_REDUCE_NONE};
    if (chain->reduced) {
        return;
    }
    /* Every step leaves a node or a stage behind. */
    for (int i = 0; i < WPK_NODES_MAX && peel_step(program, chain); i++) {
    }
}

static void take_posts(const struct chain *chain, struct wpk_onednn_op *op)
{
    op->post_count = chain->post_count;
    for (int i = 0; i < chain->post_count; i++) {
        op->post[i] = chain->post[chain->post_count - 1 - i];
    }
}

/* ---- a reduction was met */

static bool match_reduction(const struct wpk_program *program, const struct chain *chain,
                            struct wpk_onednn_op *op)
{
    if (!chain->reduced) {
        return false;
    }
    /* What is applied before the bias is added has no place in the primitive. */
    bool product =
        (chain->bias < 0 || chain->post_count == chain->post_count_at_bias) && !chain->counted;
    if (product && (wpk_onednn_match_matmul(program, chain->stage, chain->bias, op) ||
                    wpk_onednn_match_convolution(program, chain->stage, chain->bias, op))) {
        take_posts(chain, op);
        return true;
    }
    if (chain->bias >= 0 || !wpk_onednn_match_pooling(program, chain->stage, op)) {
        return false;
    }
    take_posts(chain, op);
    if (chain->counted) {
        op->kind = WPK_ONEDNN_POOL_AVERAGE_INSIDE;
        return chain->stage->reduction == WPK_REDUCE_SUM;
    }
    if (op->kind == WPK_ONEDNN_POOL_AVERAGE) {
        /* The division that makes a sum an average is part of the primitive: undo it. */
        double count = 1;
        for (int i = 0; i < op->spatial; i++) {
            count *= (double)op->kernel[i];
        }
        if (op->post_count > 0 && op->post[0].function == WPK_ONEDNN_LINEAR) {
            op->post[0].alpha *= count;
        } else if (op->post_count < WPK_ONEDNN_POSTS_MAX) {
            memmove(&op->post[1], &op->post[0], sizeof(op->post[0]) * (size_t)op->post_count);
            op->post[0] = (struct wpk_onednn_post){WPK_ONEDNN_LINEAR, count, 0};
            op->post_count++;
        } else {
            return false;
        }
        double off = op->post[0].alpha - 1;
        if (off < 1e-6 && off > -1e-6 && !(op->post[0].beta < 0) && !(op->post[0].beta > 0)) {
            op->post_count--;
            memmove(&op->post[0], &op->post[1], sizeof(op->post[0]) * (size_t)op->post_count);
        }
    }
    return true;
}

/* ---- an input was met */

static void whole_operand(const struct wpk_program *program, int tensor,
                          struct wpk_onednn_operand *operand)
{
    wpk_onednn_operand_begin(operand, tensor);
    for (int d = 0; d < program->tensors[tensor].rank; d++) {
        wpk_onednn_operand_add(program, operand, d);
    }
    if (operand->rank == 0) {
        wpk_onednn_operand_add(program, operand, -1);
    }
}

static bool match_eltwise(const struct wpk_program *program, const struct chain *chain, int output,
                          struct wpk_onednn_op *op)
{
    const struct wpk_node *load = bare_node(program, chain->node);

    if (chain->reduced || chain->counted || chain->bias >= 0 || chain->post_count == 0 ||
        load->kind != WPK_NODE_LOAD || !loads_same_point(program, chain->stage, load)) {
        return false;
    }
    op->kind = WPK_ONEDNN_ELTWISE;
    whole_operand(program, load->tensor, &op->src);
    whole_operand(program, output, &op->dst);
    take_posts(chain, op);
    return true;
}

/* An operand of a binary function: each dimension is an axis of the output, or is not there. */
static bool broadcast_operand(const struct wpk_program *program, const struct wpk_stage *stage,
                              const struct wpk_node *load, struct wpk_onednn_operand *operand)
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
                         struct wpk_onednn_op *op)
{
    static const enum wpk_binary known[] = {WPK_BINARY_ADD, WPK_BINARY_SUB, WPK_BINARY_MUL,
                                            WPK_BINARY_DIV, WPK_BINARY_MIN, WPK_BINARY_MAX};
    const struct wpk_node *node = bare_node(program, chain->node);
    bool found = false;

    if (chain->reduced || chain->counted || chain->bias >= 0 || node->kind != WPK_NODE_BINARY) {
        return false;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        found = found || (int)known[i] == node->op;
    }
    const struct wpk_node *a = bare_node(program, node->arg[0]);
    const struct wpk_node *b = bare_node(program, node->arg[1]);
    if (!found || a->kind != WPK_NODE_LOAD || b->kind != WPK_NODE_LOAD || is_written(program, a) ||
        is_written(program, b) || a->tensor == b->tensor) {
        return false;
    }
    op->kind = WPK_ONEDNN_BINARY;
    op->binary = (enum wpk_binary)node->op;
    whole_operand(program, output, &op->dst);
    take_posts(chain, op);
    return broadcast_operand(program, chain->stage, a, &op->src) &&
           broadcast_operand(program, chain->stage, b, &op->weights);
}

/* ---- several reductions */

/* Through pointwise stages computed at the same point, to the node that says something. */
static const struct wpk_node *resolve(const struct wpk_program *program,
                                      const struct wpk_stage **stage, int node)
{
    const struct wpk_node *n = bare_node(program, node);

    for (;;) {
        const struct wpk_stage *next = follow(program, *stage, n);
        if (next == NULL || next->reduction != WPK_REDUCE_NONE) {
            return n;
        }
        *stage = next;
        n = bare_node(program, next->expr);
    }
}

/* The stage with that reduction whose result is loaded, at any point; NULL when it is not one. */
static const struct wpk_stage *reduced_by(const struct wpk_program *program,
                                          const struct wpk_node *node, enum wpk_reduction reduction)
{
    if (!is_written(program, node)) {
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
    const struct wpk_node *value = bare_node(program, shifted->arg[0]);
    const struct wpk_stage *max =
        reduced_by(program, bare_node(program, shifted->arg[1]), WPK_REDUCE_MAX);
    if (max == NULL || value->kind != WPK_NODE_LOAD || is_written(program, value)) {
        return NULL;
    }
    *x = bare_node(program, max->expr);
    return (*x)->kind == WPK_NODE_LOAD && (*x)->tensor == value->tensor ? max : NULL;
}

static bool match_softmax(const struct wpk_program *program, const struct wpk_stage *last,
                          int output, struct wpk_onednn_op *op)
{
    const struct wpk_stage *stage = last;
    const struct wpk_node *quotient = resolve(program, &stage, last->expr);
    const struct wpk_node *x = NULL;

    if (quotient->kind != WPK_NODE_BINARY || quotient->op != WPK_BINARY_DIV) {
        return false;
    }
    const struct wpk_stage *sum =
        reduced_by(program, bare_node(program, quotient->arg[1]), WPK_REDUCE_SUM);
    const struct wpk_stage *max = match_shifted_exp(program, stage, quotient->arg[0], &x);
    if (sum == NULL || max == NULL) {
        return false;
    }
    whole_operand(program, x->tensor, &op->src);
    whole_operand(program, output, &op->dst);
    op->kind = WPK_ONEDNN_SOFTMAX;
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
    const struct wpk_node *load = bare_node(program, node);

    return load->kind == WPK_NODE_LOAD && !is_written(program, load) &&
           program->tensors[load->tensor].rank == 1 &&
           wpk_index_axis(program, load->index[0]) == stage->rank - 1;
}

/* Take a scale or shift off: op is what joins it to the rest. */
static void take_per_column(const struct wpk_program *program, const struct wpk_stage **stage,
                            int *node, enum wpk_binary op, struct wpk_onednn_operand *operand)
{
    const struct wpk_node *n = resolve(program, stage, *node);

    wpk_onednn_operand_begin(operand, -1);
    *node = (int)(n - program->nodes);
    for (int side = 0; side < 2; side++) {
        if (n->kind == WPK_NODE_BINARY && n->op == (int)op &&
            is_per_column(program, *stage, n->arg[side])) {
            whole_operand(program, bare_node(program, n->arg[side])->tensor, operand);
            *node = n->arg[1 - side];
            return;
        }
    }
}

struct norm_parts {
    const struct wpk_program *program;
    bool has_root;
    int sum_tensor; /* of a reduction met on the way; -1: none */
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
        if (literal_value(program, n->arg[side], &value) && value > 0 && value < EPSILON_MAX) {
            parts->epsilon = value;
        }
    }
    if (reduced_by(program, n, WPK_REDUCE_SUM) != NULL) {
        parts->sum_tensor = n->tensor;
    }
}

/* x - mean: returns the tensor x, -1 when it is not that. */
static int match_centred(const struct wpk_program *program, const struct wpk_stage *stage, int node)
{
    const struct wpk_node *n = resolve(program, &stage, node);

    if (n->kind != WPK_NODE_BINARY || n->op != WPK_BINARY_SUB) {
        return -1;
    }
    const struct wpk_node *x = bare_node(program, n->arg[0]);
    if (x->kind != WPK_NODE_LOAD || is_written(program, x) ||
        !loads_same_point(program, stage, x) || n->arg[1] < 0) {
        return -1;
    }
    return x->tensor;
}

/* The variance may be a stage or two away: stages it reads are looked into as well. */
static void look_for_root(const struct wpk_program *program, int node, struct norm_parts *parts)
{
    wpk_node_walk(program, node, false, look_at_part, parts);
    for (int depth = 0; depth < 3 && !parts->has_root; depth++) {
        const struct wpk_node *n = bare_node(program, node);
        if (!is_written(program, n)) {
            return;
        }
        node = program->stages[wpk_program_writer(program, n->tensor)].expr;
        wpk_node_walk(program, node, false, look_at_part, parts);
    }
}

static bool match_layernorm(const struct wpk_program *program, const struct wpk_stage *last,
                            int output, struct wpk_onednn_op *op)
{
    const struct wpk_stage *stage = last;
    int node = last->expr;
    int sums = 0;

    for (int i = 0; i < program->stage_count; i++) {
        const struct wpk_stage *s = &program->stages[i];
        sums += s->reduction == WPK_REDUCE_SUM && s->rank == last->rank - 1 &&
                s->axis_count == last->rank;
    }
    take_per_column(program, &stage, &node, WPK_BINARY_ADD, &op->bias);
    take_per_column(program, &stage, &node, WPK_BINARY_MUL, &op->weights);
    const struct wpk_node *n = resolve(program, &stage, node);
    if (sums != 2 || n->kind != WPK_NODE_BINARY ||
        (n->op != WPK_BINARY_MUL && n->op != WPK_BINARY_DIV)) {
        return false;
    }
    for (int side = 0; side < (n->op == WPK_BINARY_MUL ? 2 : 1); side++) {
        struct norm_parts parts = {.sum_tensor = -1};
        int x = match_centred(program, stage, n->arg[side]);
        look_for_root(program, n->arg[1 - side], &parts);
        if (x >= 0 && parts.has_root) {
            whole_operand(program, x, &op->src);
            whole_operand(program, output, &op->dst);
            op->kind = WPK_ONEDNN_LAYERNORM;
            op->epsilon = parts.epsilon;
            return op->src.rank >= 2;
        }
    }
    return false;
}

/* ---- */

/* The one output and its stage; every tensor must be of a kind that the library computes with. */
static const struct wpk_stage *last_stage(const struct wpk_program *program, int *output)
{
    *output = -1;
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        bool plain =
            tensor->dtype == WPK_F32 || tensor->dtype == WPK_BF16 || tensor->dtype == WPK_F16;
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

wpk_err wpk_onednn_match(const struct wpk_program *program, struct wpk_onednn_op *out)
{
    static const struct wpk_onednn_op none = {
        .src.tensor = -1, .weights.tensor = -1, .bias.tensor = -1, .dst.tensor = -1};
    struct chain chain;
    int output = -1;
    const struct wpk_stage *last = last_stage(program, &output);

    if (last == NULL) {
        return WPK_EUNSUPPORTED;
    }
    *out = none;
    if (match_softmax(program, last, output, out)) {
        return WPK_OK;
    }
    *out = none;
    if (match_layernorm(program, last, output, out)) {
        return WPK_OK;
    }
    *out = none;
    peel(program, last, &chain);
    if (match_reduction(program, &chain, out)) {
        return WPK_OK;
    }
    *out = none;
    if (match_eltwise(program, &chain, output, out)) {
        return WPK_OK;
    }
    *out = none;
    return match_binary(program, &chain, output, out) ? WPK_OK : WPK_EUNSUPPORTED;
}
