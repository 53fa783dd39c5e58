/* SPDX-License-Identifier: Apache-2.0 */
/* A strided window as one without stride, over the phases of the data ("space to depth")
 *
 *     T[.., y, ..] = sum(c, s:r) D[.., g*y+s+p, c] * W[.., s, c]
 *
 * with s = g*s' + phase becomes
 *
 *     D'[.., j, e]  = D[.., g*j + phase + p, c]       e = phase*C + c
 *     W'[.., s', e] = W[.., g*s' + phase, c | 0]
 *     T[.., y, ..]  = sum(e, s') D'[.., y+s', e] * W'[.., s', e]
 *
 * for every pair of axes that meet in this way. By itself the derivation only adds taps of zero,
 * but minimal filtering can be applied to its result.
 *
 *   source  the polyphase decomposition of multirate filter banks (Vaidyanathan 1990) */
#include "ir/derive/derive.h"

#include "ir/derive/extract.h"
#include "ir/derive/rewrite.h"

struct pair {
    int output_axis, reduction_axis;
    int data_dim, weight_dim;
    int64_t stride, offset; /* of the data's index: stride * y + s + offset */
    int64_t taps;           /* of one phase */
};

struct phases {
    struct wpk_program *program;
    int stage;
    struct wpk_stage old;
    struct wpk_node data, weight;
    struct pair pair[WPK_WINOGRAD_PAIRS_MAX];
    int pair_count;
    int64_t count;                    /* phases: the product of the strides */
    int channel;                      /* the reduction axis that takes them up */
    int data_channel, weight_channel; /* its dimensions */
};

/* ---- what it applies to */

/* The dimension of the load that the axis alone is the index of, if it occurs nowhere else; -1. */
static int plain_dim(const struct phases *ph, const struct wpk_node *load, int axis)
{
    int dim = wpk_contraction_only_dim(ph->program, load, axis);
    return dim >= 0 && wpk_index_axis(ph->program, load->index[dim]) == axis ? dim : -1;
}

static bool match_pair(const struct phases *ph, int y, int s, struct pair *pair)
{
    const struct wpk_stage *old = &ph->old;
    int dim = wpk_contraction_only_dim(ph->program, &ph->data, y);
    struct wpk_affine affine;
    *pair = (struct pair){.output_axis = y, .reduction_axis = s, .data_dim = dim};
    pair->weight_dim = plain_dim(ph, &ph->weight, s);
    if (dim < 0 || dim != wpk_contraction_only_dim(ph->program, &ph->data, s) ||
        pair->weight_dim < 0 || wpk_contraction_uses_axis(ph->program, &ph->weight, y) ||
        !wpk_index_affine(ph->program, ph->data.index[dim], &affine)) {
        return false;
    }
    for (int a = 0; a < old->axis_count; a++) {
        if (a != y && affine.coefficient[a] != (a == s)) {
            return false;
        }
    }
    pair->stride = affine.coefficient[y];
    pair->offset = affine.constant;
    pair->taps = (old->axes[s].extent + pair->stride - 1) / pair->stride;
    /* behind the last tap the weight has to end */
    return pair->stride >= 1 &&
           ph->program->tensors[ph->weight.tensor].extent[pair->weight_dim] <= old->axes[s].extent;
}

static bool find_pairs(struct phases *ph)
{
    ph->count = 1;
    for (int y = 0; y < ph->old.rank; y++) {
        for (int s = ph->old.rank; s < ph->old.axis_count; s++) {
            struct pair pair;
            if (ph->old.axes[s].extent < 2 || !match_pair(ph, y, s, &pair)) {
                continue;
            }
            if (ph->pair_count == WPK_WINOGRAD_PAIRS_MAX) {
                return false;
            }
            ph->pair[ph->pair_count++] = pair;
            ph->count *= pair.stride;
        }
    }
    return ph->count > 1;
}

static bool find_channel(struct phases *ph)
{
    for (int a = ph->old.rank; a < ph->old.axis_count; a++) {
        ph->channel = a;
        ph->data_channel = plain_dim(ph, &ph->data, a);
        ph->weight_channel = plain_dim(ph, &ph->weight, a);
        if (ph->data_channel >= 0 && ph->weight_channel >= 0) {
            return true;
        }
    }
    return false;
}

/* Taps of zero meet data that was not read before: it must not be made up of anything but zeros. */
static bool reads_zero_outside(const struct phases *ph, const struct wpk_node *load)
{
    const struct wpk_node *outside = load->outside < 0 ? NULL : &ph->program->nodes[load->outside];
    return outside == NULL || (outside->value == 0 && outside->integer == 0);
}

static bool recognise(struct phases *ph)
{
    if (!wpk_contraction_is(ph->program, ph->stage)) {
        return false;
    }
    ph->old = ph->program->stages[ph->stage];
    wpk_contraction_operands(ph->program, ph->stage, &ph->data, &ph->weight);
    return ph->data.tensor != ph->weight.tensor &&
           !wpk_tensor_has_border(&ph->program->tensors[ph->data.tensor]) &&
           reads_zero_outside(ph, &ph->data) && reads_zero_outside(ph, &ph->weight) &&
           find_pairs(ph) && find_channel(ph);
}

/* ---- what it becomes */

/* The phase of pair p, from the axis of channels and phases. */
static int phase_of(const struct phases *ph, int axis, int p)
{
    int64_t inner = ph->old.axes[ph->channel].extent;
    for (int q = p + 1; q < ph->pair_count; q++) {
        inner *= ph->pair[q].stride;
    }
    int quotient = wpk_index_div(ph->program, axis, inner);
    return p == 0 ? quotient : wpk_index_mod(ph->program, quotient, ph->pair[p].stride);
}

/* D' or W': dimension d is read as stride * axis + phase + offset of the pair pair_of[d], or, where
 * that is -1, as it stands.
 *   shape   pair_of, extent [source's rank]; channel: the dimension that holds the phases */
static int add_copy(struct phases *ph, const struct wpk_node *load, int channel, const int *pair_of,
                    const int64_t *extent, bool with_offset)
{
    struct wpk_program *program = ph->program;
    struct wpk_tensor source = program->tensors[load->tensor];
    int index[WPK_RANK_MAX];
    int stage =
        wpk_rewrite_add_stage(program, source.name, "p", source.dtype, source.rank, extent, NULL);
    if (stage < 0) {
        return -1;
    }
    int phases = wpk_node_axis(program, channel);
    for (int d = 0; d < source.rank; d++) {
        index[d] = wpk_node_axis(program, d);
        if (pair_of[d] >= 0) {
            const struct pair *pair = &ph->pair[pair_of[d]];
            index[d] = wpk_index_scale(program, index[d], pair->stride);
            if (pair->stride > 1) {
                index[d] = wpk_index_add(program, index[d], phase_of(ph, phases, pair_of[d]));
            }
            index[d] = wpk_index_add_constant(program, index[d], with_offset ? pair->offset : 0);
        }
    }
    index[channel] = wpk_index_mod(program, phases, ph->old.axes[ph->channel].extent);
    int zero = wpk_node_real(program, source.dtype, 0);
    program->stages[stage].expr = wpk_node_load(program, load->tensor, index, zero);
    return program->stages[stage].expr < 0 ? -1 : program->stages[stage].output;
}

/* D', which ends with whole tiles of outputs, or W' (tile: NULL). */
static int copy_operand(struct phases *ph, const struct wpk_node *load, const int64_t *tile)
{
    const struct wpk_tensor *tensor = &ph->program->tensors[load->tensor];
    int64_t channels = ph->old.axes[ph->channel].extent * ph->count;
    int channel = tile != NULL ? ph->data_channel : ph->weight_channel;
    int pair_of[WPK_RANK_MAX];
    int64_t extent[WPK_RANK_MAX];
    for (int d = 0; d < tensor->rank; d++) {
        pair_of[d] = -1;
        extent[d] = d == channel ? channels : tensor->extent[d];
    }
    for (int p = 0; p < ph->pair_count; p++) {
        const struct pair *pair = &ph->pair[p];
        int d = tile != NULL ? pair->data_dim : pair->weight_dim;
        pair_of[d] = p;
        extent[d] = pair->taps;
        if (tile != NULL) {
            int64_t outputs = ph->old.axes[pair->output_axis].extent;
            int64_t tiles = (outputs + tile[p] - 1) / tile[p];
            extent[d] += tiles * tile[p] - 1;
        }
    }
    return add_copy(ph, load, channel, pair_of, extent, tile != NULL);
}

struct use {
    const struct phases *ph;
    int data, weight; /* D' and W' */
};

static int load_phases(struct wpk_program *program, const struct wpk_node *load, const int *index,
                       void *user)
{
    const struct use *use = user;
    const struct phases *ph = use->ph;
    int moved[WPK_RANK_MAX] = {0};
    if (load->tensor == ph->weight.tensor) {
        return wpk_node_load(program, use->weight, index, load->outside);
    }
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        moved[d] = index[d];
    }
    for (int p = 0; p < ph->pair_count; p++) {
        moved[ph->pair[p].data_dim] =
            wpk_index_add(program, wpk_node_axis(program, ph->pair[p].output_axis),
                          wpk_node_axis(program, ph->pair[p].reduction_axis));
    }
    return wpk_node_load(program, use->data, moved, load->outside);
}

wpk_err wpk_derive_phases(struct wpk_program *program, int id, const int64_t *tile)
{
    struct phases ph = {.program = program, .stage = id};
    if (tile[0] < 1 || tile[1] < 1 || !recognise(&ph)) {
        return WPK_EUNSUPPORTED;
    }
    struct use use = {.ph = &ph, .data = copy_operand(&ph, &ph.data, tile), .weight = -1};
    use.weight = use.data < 0 ? -1 : copy_operand(&ph, &ph.weight, NULL);
    if (use.weight < 0) {
        return WPK_ENOSPC;
    }
    struct wpk_stage *stage = &program->stages[ph.stage];
    stage->axes[ph.channel].extent *= ph.count;
    for (int p = 0; p < ph.pair_count; p++) {
        stage->axes[ph.pair[p].reduction_axis].extent = ph.pair[p].taps;
    }
    stage->expr = wpk_rewrite_expr(program, ph.old.expr, NULL, -1, load_phases, &use);
    return stage->expr < 0 ? WPK_ENOSPC : wpk_program_tidy(program);
}
