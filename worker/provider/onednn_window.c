/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and pooling: each dimension of the data is classified by the axes that index it.
 *
 *      one output axis, alone                     free: batch, or a spatial one with kernel 1
 *      one output axis and one reduction axis     spatial: stride * y + dilation * r - pad
 *      axes that index the weights                channel, or channel within a group */
#include "worker/provider/onednn_pattern.h"

#define GROUP_CHECKS_MAX (1 << 22) /* index evaluations: more channels are no real operator's */

/* How one dimension of a tensor is indexed. */
struct use {
    int dim;
    int output_axis;    /* -1: none that is not of the weights */
    int reduction_axis; /* -1: none */
    int64_t stride;
    int64_t dilation;
    int64_t offset;
};

struct uses {
    struct use free[WPK_RANK_MAX];
    int free_count;
    struct use spatial[WPK_RANK_MAX];
    int spatial_count;
    int channel_dim; /* -1: none */
};

static int64_t axis_extent(const struct wpk_stage *stage, int axis)
{
    return axis < 0 ? 1 : stage->axes[axis].extent;
}

/* ---- indices */

static unsigned index_axes(const struct wpk_program *program, int node)
{
    const struct wpk_node *n = &program->nodes[node];

    switch (n->kind) {
    case WPK_NODE_AXIS:
        return 1U << n->axis;
    case WPK_NODE_BINARY:
        return index_axes(program, n->arg[0]) | index_axes(program, n->arg[1]);
    case WPK_NODE_UNARY:
    case WPK_NODE_CAST:
        return index_axes(program, n->arg[0]);
    case WPK_NODE_LITERAL:
    case WPK_NODE_LOAD:
    case WPK_NODE_SELECT:
        break;
    }
    return 0;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* The index's value with each axis at the given one; only what an index may hold occurs. */
static int64_t index_value(const struct wpk_program *program, int node, const int64_t *axis)
{
    const struct wpk_node *n = &program->nodes[node];

    if (n->kind == WPK_NODE_AXIS) {
        return axis[n->axis];
    }
    if (n->kind != WPK_NODE_BINARY) {
        return n->kind == WPK_NODE_LITERAL ? n->integer : -1;
    }
    int64_t a = index_value(program, n->arg[0], axis);
    int64_t b = index_value(program, n->arg[1], axis);
    switch (n->op) {
    case WPK_BINARY_ADD:
        return a + b;
    case WPK_BINARY_SUB:
        return a - b;
    case WPK_BINARY_MUL:
        return a * b;
    case WPK_BINARY_DIV:
        return b > 0 ? floor_div(a, b) : -1;
    case WPK_BINARY_MOD:
        return b > 0 ? a - floor_div(a, b) * b : -1;
    default:
        return -1;
    }
}

/* Only reads 0 outside, or -1 for "stays inside". */
static bool reads_zero_outside(const struct wpk_program *program, const struct wpk_node *load)
{
    const struct wpk_node *outside = load->outside < 0 ? NULL : &program->nodes[load->outside];

    return outside == NULL || (outside->kind == WPK_NODE_LITERAL && outside->integer == 0 &&
                               !(outside->value < 0) && !(outside->value > 0));
}

/* ---- dimensions of the data */

static int single_axis(unsigned mask)
{
    return mask == 0 ? -1 : (mask & (mask - 1)) == 0 ? __builtin_ctz(mask) : -2;
}

/* One dimension. weight_axes: those that index the weights. */
static bool classify_dim(const struct wpk_program *program, const struct wpk_stage *stage,
                         const struct wpk_node *load, int d, unsigned weight_axes,
                         struct uses *uses)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    unsigned axes = index_axes(program, load->index[d]);
    unsigned outputs = (1U << stage->rank) - 1;
    struct use use = {.dim = d,
                      .output_axis = single_axis(axes & outputs & ~weight_axes),
                      .reduction_axis = single_axis(axes & ~outputs)};
    struct wpk_affine affine;

    if (axes == 0) {
        return tensor->extent[d] == 1;
    }
    if (use.output_axis == -1 && weight_axes != 0) {
        if (uses->channel_dim >= 0) {
            return false;
        }
        uses->channel_dim = d;
        return true;
    }
    if (use.output_axis == -2 || use.reduction_axis == -2 || (axes & outputs & weight_axes) != 0 ||
        !wpk_index_affine(program, load->index[d], &affine)) {
        return false;
    }
    use.stride = use.output_axis >= 0 ? affine.coefficient[use.output_axis] : 1;
    use.dilation = use.reduction_axis >= 0 ? affine.coefficient[use.reduction_axis] : 1;
    use.offset = affine.constant;
    if (use.stride < 1 || use.dilation < 1) {
        return false;
    }
    if (use.reduction_axis == -1 && use.stride == 1 && use.offset == 0 &&
        tensor->extent[d] == axis_extent(stage, use.output_axis)) {
        uses->free[uses->free_count++] = use;
    } else {
        uses->spatial[uses->spatial_count++] = use;
    }
    return true;
}

static bool classify(const struct wpk_program *program, const struct wpk_stage *stage,
                     const struct wpk_node *load, unsigned weight_axes, struct uses *uses)
{
    *uses = (struct uses){.channel_dim = -1};
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        if (!classify_dim(program, stage, load, d, weight_axes, uses)) {
            return false;
        }
    }
    return true;
}

/* Free dimensions past `keep` are spatial ones with a kernel of 1; order is that of the tensor. */
static bool free_to_spatial(struct uses *uses, int keep)
{
    while (uses->free_count > keep) {
        struct use use = uses->free[--uses->free_count];
        int i = uses->spatial_count++;
        for (; i > 0 && uses->spatial[i - 1].dim > use.dim; i--) {
            uses->spatial[i] = uses->spatial[i - 1];
        }
        uses->spatial[i] = use;
    }
    return uses->spatial_count >= 1 && uses->spatial_count <= WPK_ONEDNN_SPATIAL_MAX;
}

/* The spatial dimensions of src and dst, and how the window moves over them. */
static void fill_window(const struct wpk_program *program, const struct wpk_stage *stage,
                        const struct uses *uses, struct wpk_recipe *op)
{
    const struct wpk_tensor *src = &program->tensors[op->operand[WPK_RECIPE_SRC].tensor];

    op->spatial = uses->spatial_count;
    for (int i = 0; i < uses->spatial_count; i++) {
        const struct use *use = &uses->spatial[i];
        int64_t size = axis_extent(stage, use->output_axis);
        wpk_onednn_operand_add(program, &op->operand[WPK_RECIPE_SRC], use->dim);
        wpk_onednn_operand_add(program, &op->operand[WPK_RECIPE_DST], use->output_axis);
        op->kernel[i] = axis_extent(stage, use->reduction_axis);
        op->stride[i] = use->stride;
        op->dilation[i] = use->dilation;
        op->pad_before[i] = -use->offset;
        int64_t reach = (size - 1) * use->stride + (op->kernel[i] - 1) * use->dilation + 1;
        int64_t after = reach - src->extent[use->dim] - op->pad_before[i];
        /* Elements that the last step does not reach are no padding. */
        op->pad_after[i] = after < 0 && -after < use->stride ? 0 : after;
    }
}

/* All axes of the stage are used: those in the mask and those of the dimensions. */
static bool all_axes_used(const struct wpk_stage *stage, const struct uses *uses, unsigned mask)
{
    for (int i = 0; i < uses->free_count; i++) {
        mask |= 1U << uses->free[i].output_axis;
    }
    for (int i = 0; i < uses->spatial_count; i++) {
        const struct use *use = &uses->spatial[i];
        mask |= use->output_axis >= 0 ? 1U << use->output_axis : 0;
        mask |= use->reduction_axis >= 0 ? 1U << use->reduction_axis : 0;
    }
    return mask == (1U << stage->axis_count) - 1;
}

/* ---- convolution */

/* The parts that axes and dimensions play. */
struct convolution {
    struct uses uses;         /* of the data */
    int dim_of[WPK_AXES_MAX]; /* of the weights, by axis */
    int k;                    /* filter axis */
    int c;                    /* the channel's reduction axis, -1: none */
    int64_t groups;
};

/* Number of groups, 0 when the channel index is nothing of the kind: channel(k, c) must be
 * (k / filters of a group) * channels of a group + c. However it is written, its values tell. */
static int64_t count_groups(const struct wpk_program *program, const struct wpk_stage *stage,
                            int index, int64_t channels, int k, int c)
{
    int64_t filters = axis_extent(stage, k);
    int64_t in_group = axis_extent(stage, c);
    int64_t axis[WPK_AXES_MAX] = {0};

    if (channels % in_group != 0 || filters % (channels / in_group) != 0 ||
        filters * in_group > GROUP_CHECKS_MAX) {
        return 0;
    }
    int64_t groups = channels / in_group;
    for (int64_t i = 0; i < filters; i++) {
        for (int64_t j = 0; j < in_group; j++) {
            axis[k] = i;
            if (c >= 0) {
                axis[c] = j;
            }
            if (index_value(program, index, axis) != i / (filters / groups) * in_group + j) {
                return 0;
            }
        }
    }
    return groups;
}

static bool recognise(const struct wpk_program *program, const struct wpk_stage *stage,
                      const struct wpk_node *x, const struct wpk_node *w, struct convolution *conv)
{
    struct uses *uses = &conv->uses;
    unsigned weight_axes = 0;

    if (!wpk_onednn_plain_dims(program, stage, w, conv->dim_of) ||
        !reads_zero_outside(program, x)) {
        return false;
    }
    for (int a = 0; a < stage->axis_count; a++) {
        weight_axes |= conv->dim_of[a] >= 0 ? 1U << a : 0;
    }
    if (!classify(program, stage, x, weight_axes, uses) || uses->channel_dim < 0 ||
        !free_to_spatial(uses, 1)) {
        return false;
    }
    /* The filter axis and the channel's reduction axis among those of the weights; -1 where
     * there is none, -2 where there are several. */
    unsigned outputs = (1U << stage->rank) - 1;
    unsigned left = weight_axes & ~outputs;
    for (int i = 0; i < uses->spatial_count; i++) {
        if (uses->spatial[i].reduction_axis >= 0) {
            left &= ~(1U << uses->spatial[i].reduction_axis);
        }
    }
    conv->k = single_axis(weight_axes & outputs);
    conv->c = single_axis(left);
    if (conv->k < 0 || conv->c == -2 || !all_axes_used(stage, uses, weight_axes)) {
        return false;
    }
    for (int i = 0; i < uses->spatial_count; i++) {
        int r = uses->spatial[i].reduction_axis;
        if (uses->spatial[i].output_axis < 0 || (r >= 0 && conv->dim_of[r] < 0)) {
            return false;
        }
    }
    conv->groups =
        count_groups(program, stage, x->index[uses->channel_dim],
                     program->tensors[x->tensor].extent[uses->channel_dim], conv->k, conv->c);
    return conv->groups > 0;
}

static bool convolve(const struct wpk_program *program, const struct wpk_stage *stage,
                     const struct wpk_node *x, const struct wpk_node *w,
                     const struct wpk_onednn_terms *terms, struct wpk_recipe *op)
{
    struct convolution conv;

    if (!recognise(program, stage, x, w, &conv) ||
        !wpk_onednn_vector(program, stage, terms->bias, conv.k, &op->operand[WPK_RECIPE_BIAS]) ||
        !wpk_onednn_vector(program, stage, terms->scale, conv.k, &op->operand[WPK_RECIPE_SCALE])) {
        return false;
    }
    const struct use *batch = conv.uses.free_count > 0 ? &conv.uses.free[0] : NULL;
    op->kind = WPK_RECIPE_CONVOLUTION;
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_SRC], x->tensor);
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_WEIGHTS], w->tensor);
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_DST], wpk_program_output(program));
    wpk_onednn_operand_add(program, &op->operand[WPK_RECIPE_SRC], batch == NULL ? -1 : batch->dim);
    wpk_onednn_operand_add(program, &op->operand[WPK_RECIPE_SRC], conv.uses.channel_dim);
    wpk_onednn_operand_add(program, &op->operand[WPK_RECIPE_DST],
                           batch == NULL ? -1 : batch->output_axis);
    wpk_onednn_operand_add(program, &op->operand[WPK_RECIPE_DST], conv.k);
    struct wpk_recipe_operand *weights = &op->operand[WPK_RECIPE_WEIGHTS];
    wpk_onednn_operand_add(program, weights, conv.dim_of[conv.k]);
    if (conv.groups > 1) {
        int64_t filters = axis_extent(stage, conv.k) / conv.groups;
        wpk_onednn_operand_add(program, weights, conv.dim_of[conv.k]);
        weights->extent[0] = conv.groups;
        weights->extent[1] = filters;
        weights->stride[0] = weights->stride[1] * filters;
    }
    wpk_onednn_operand_add(program, weights, conv.c < 0 ? -1 : conv.dim_of[conv.c]);
    for (int i = 0; i < conv.uses.spatial_count; i++) {
        int r = conv.uses.spatial[i].reduction_axis;
        wpk_onednn_operand_add(program, weights, r < 0 ? -1 : conv.dim_of[r]);
    }
    fill_window(program, stage, &conv.uses, op);
    return true;
}

bool wpk_onednn_match_convolution(const struct wpk_program *program, const struct wpk_stage *stage,
                                  const struct wpk_onednn_terms *terms, struct wpk_recipe *op)
{
    const struct wpk_node *a = NULL;
    const struct wpk_node *b = NULL;

    return wpk_onednn_factors(program, stage, &a, &b) &&
           (convolve(program, stage, a, b, terms, op) || convolve(program, stage, b, a, terms, op));
}

/* ---- pooling */

bool wpk_onednn_match_pooling(const struct wpk_program *program, const struct wpk_stage *stage,
                              struct wpk_recipe *op)
{
    const struct wpk_node *load = wpk_onednn_bare_node(program, stage->expr);
    bool is_max = stage->reduction == WPK_REDUCE_MAX;
    struct uses uses;

    if ((!is_max && stage->reduction != WPK_REDUCE_SUM) || load->kind != WPK_NODE_LOAD ||
        wpk_onednn_is_written(program, load) || !classify(program, stage, load, 0, &uses) ||
        !free_to_spatial(&uses, 2) || !all_axes_used(stage, &uses, 0) ||
        /* Max pooling ignores padding, which is what -inf outside means. */
        !(is_max ? load->outside < 0 || program->nodes[load->outside].value < -1e30
                 : reads_zero_outside(program, load))) {
        return false;
    }
    op->kind = is_max ? WPK_RECIPE_POOL_MAX : WPK_RECIPE_POOL_AVERAGE;
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_SRC], load->tensor);
    wpk_onednn_operand_begin(&op->operand[WPK_RECIPE_DST], wpk_program_output(program));
    for (int i = uses.free_count; i < 2; i++) {
        wpk_onednn_operand_add(program, &op->operand[WPK_RECIPE_SRC], -1);
        wpk_onednn_operand_add(program, &op->operand[WPK_RECIPE_DST], -1);
    }
    for (int i = 0; i < uses.free_count; i++) {
        wpk_onednn_operand_add(program, &op->operand[WPK_RECIPE_SRC], uses.free[i].dim);
        wpk_onednn_operand_add(program, &op->operand[WPK_RECIPE_DST], uses.free[i].output_axis);
    }
    fill_window(program, stage, &uses, op);
    return true;
}
