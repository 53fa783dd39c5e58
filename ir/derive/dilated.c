/* SPDX-License-Identifier: Apache-2.0 */
/* A dilated window as plain ones, one for each phase of the outputs
 *
 *     T[.., y, ..] = sum(c, s:r) D[.., y+g*s+p, c] * W[.., s, c]
 *
 * with y = g*u + e becomes
 *
 *     D'[e, .., j, c]  = D[.., g*j+e+p, c]
 *     T'[e, .., u, ..] = sum(c, s:r) D'[e, .., u+s, c] * W[.., s, c]
 *     T[.., y, ..]     = T'[y % g, .., y / g, ..]
 *
 * for every pair of axes that meet in this way. Minimal filtering applies to T'.
 *
 *   source  Yu & Koltun, Multi-scale context aggregation by dilated convolutions, 2016, of which
 *           this is the polyphase form */
#include "ir/derive/derive.h"

#include "ir/derive/extract.h"
#include "ir/derive/rewrite.h"

#include <stdio.h>

struct pair {
    int output_axis, reduction_axis;
    int data_dim;
    int64_t dilation, offset; /* of the data's index: y + dilation * s + offset */
};

struct dilated {
    struct wpk_program *program;
    struct wpk_stage old;
    struct wpk_node data;
    struct pair pair[WPK_WINOGRAD_PAIRS_MAX];
    int pair_count;
    int tensor; /* D' */
};

static bool match_pair(const struct dilated *d, const struct wpk_node *weight, int y, int s,
                       struct pair *out)
{
    const struct wpk_program *program = d->program;
    int dim = wpk_contraction_only_dim(program, &d->data, y);
    struct wpk_affine affine;
    if (dim < 0 || dim != wpk_contraction_only_dim(program, &d->data, s) ||
        wpk_contraction_uses_axis(program, weight, y) ||
        !wpk_index_affine(program, d->data.index[dim], &affine)) {
        return false;
    }
    for (int a = 0; a < d->old.axis_count; a++) {
        if (a != s && affine.coefficient[a] != (a == y)) {
            return false;
        }
    }
    *out = (struct pair){y, s, dim, affine.coefficient[s], affine.constant};
    return out->dilation > 1;
}

static bool recognise(struct dilated *d, int stage)
{
    struct wpk_node weight;
    if (!wpk_contraction_is(d->program, stage)) {
        return false;
    }
    d->old = d->program->stages[stage];
    wpk_contraction_operands(d->program, stage, &d->data, &weight);
    if (d->data.tensor == weight.tensor ||
        wpk_tensor_has_border(&d->program->tensors[d->data.tensor])) {
        return false;
    }
    for (int y = 0; y < d->old.rank; y++) {
        for (int s = d->old.rank; s < d->old.axis_count; s++) {
            struct pair pair;
            if (!match_pair(d, &weight, y, s, &pair)) {
                continue;
            }
            if (d->pair_count == WPK_WINOGRAD_PAIRS_MAX) {
                return false;
            }
            d->pair[d->pair_count++] = pair;
        }
    }
    int rank = d->program->tensors[d->data.tensor].rank;
    return d->pair_count > 0 && d->old.rank + d->pair_count <= WPK_RANK_MAX &&
           rank + d->pair_count <= WPK_RANK_MAX &&
           d->old.axis_count + d->pair_count <= WPK_AXES_MAX;
}

/* Outputs of one phase of a pair. */
static int64_t phase_outputs(const struct dilated *d, int p)
{
    int64_t dilation = d->pair[p].dilation;
    return (d->old.axes[d->pair[p].output_axis].extent + dilation - 1) / dilation;
}

/* Add D', which ends with whole tiles of outputs. The phases are the outer dimensions of D'. */
static int add_data(const struct dilated *d, const int64_t *tile)
{
    struct wpk_program *program = d->program;
    struct wpk_tensor source = program->tensors[d->data.tensor];
    int count = d->pair_count, index[WPK_RANK_MAX];
    int64_t extent[WPK_RANK_MAX];
    for (int i = 0; i < source.rank; i++) {
        extent[count + i] = source.extent[i];
        index[i] = wpk_node_axis(program, count + i);
    }
    for (int p = 0; p < count; p++) {
        const struct pair *pair = &d->pair[p];
        int64_t tiles = (phase_outputs(d, p) + tile[p] - 1) / tile[p];
        int scaled = wpk_index_scale(program, index[pair->data_dim], pair->dilation);
        extent[p] = pair->dilation;
        extent[count + pair->data_dim] =
            tiles * tile[p] + d->old.axes[pair->reduction_axis].extent - 1;
        index[pair->data_dim] = wpk_index_add_constant(
            program, wpk_index_add(program, scaled, wpk_node_axis(program, p)), pair->offset);
    }
    int stage = wpk_rewrite_add_stage(program, source.name, "e", source.dtype, source.rank + count,
                                      extent, NULL);
    if (stage < 0) {
        return -1;
    }
    int outside = d->data.outside >= 0 ? d->data.outside : wpk_node_real(program, source.dtype, 0);
    program->stages[stage].expr = wpk_node_load(program, d->data.tensor, index, outside);
    return program->stages[stage].expr < 0 ? -1 : program->stages[stage].output;
}

struct use {
    const struct dilated *d;
    const int *map; /* from the old axes to nodes of T' */
};

static int load_phase(struct wpk_program *program, const struct wpk_node *load, const int *index,
                      void *user)
{
    const struct use *use = user;
    const struct dilated *d = use->d;
    int moved[WPK_RANK_MAX] = {0};
    for (int i = 0; i < program->tensors[load->tensor].rank; i++) {
        moved[d->pair_count + i] = index[i];
    }
    for (int p = 0; p < d->pair_count; p++) {
        const struct pair *pair = &d->pair[p];
        moved[p] = wpk_node_axis(program, p);
        moved[d->pair_count + pair->data_dim] =
            wpk_index_add(program, use->map[pair->output_axis], use->map[pair->reduction_axis]);
    }
    return wpk_node_load(program, d->tensor, moved, -1);
}

/* Add T', and return its tensor, or -1.   shape  name [WPK_NAME_MAX] of the tensor */
static int add_windows(const struct dilated *d, char *name)
{
    struct wpk_program *program = d->program;
    const struct wpk_tensor target = program->tensors[d->old.output];
    int count = d->pair_count, map[WPK_AXES_MAX];
    int64_t extent[WPK_RANK_MAX];
    for (int a = 0; a < d->old.rank; a++) {
        extent[count + a] = target.extent[a];
        map[a] = wpk_node_axis(program, count + a);
    }
    for (int p = 0; p < count; p++) {
        extent[p] = d->pair[p].dilation;
        extent[count + d->pair[p].output_axis] = phase_outputs(d, p);
    }
    int id = wpk_rewrite_add_stage(program, target.name, "w", d->old.accumulator,
                                   d->old.rank + count, extent, NULL);
    if (id < 0) {
        return -1;
    }
    struct wpk_stage *stage = &program->stages[id];
    snprintf(name, WPK_NAME_MAX, "%s", program->tensors[stage->output].name);
    for (int a = d->old.rank; a < d->old.axis_count; a++) {
        int added = wpk_stage_add_reduction_axis(stage, d->old.axes[a].name, d->old.axes[a].extent);
        map[a] = added < 0 ? -1 : wpk_node_axis(program, added);
    }
    struct use use = {.d = d, .map = map};
    stage->reduction = d->old.reduction;
    stage->accumulator = d->old.accumulator;
    stage->expr = wpk_rewrite_expr(program, d->old.expr, map, d->data.tensor, load_phase, &use);
    return stage->expr < 0 ? -1 : stage->output;
}

wpk_err wpk_derive_dilated(struct wpk_program *program, int id, const int64_t *tile, char *name)
{
    struct dilated d = {.program = program};
    if (tile[0] < 1 || tile[1] < 1 || !recognise(&d, id)) {
        return WPK_EUNSUPPORTED;
    }
    d.tensor = add_data(&d, tile);
    int windows = d.tensor < 0 ? -1 : add_windows(&d, name);
    if (windows < 0) {
        return WPK_ENOSPC;
    }
    int index[WPK_RANK_MAX];
    for (int a = 0; a < d.old.rank; a++) {
        index[d.pair_count + a] = wpk_node_axis(program, a);
    }
    for (int p = 0; p < d.pair_count; p++) {
        const struct pair *pair = &d.pair[p];
        int axis = wpk_node_axis(program, pair->output_axis);
        index[p] = wpk_index_mod(program, axis, pair->dilation);
        index[d.pair_count + pair->output_axis] = wpk_index_div(program, axis, pair->dilation);
    }
    int load = wpk_node_load(program, windows, index, -1);
    enum wpk_dtype dtype = program->tensors[d.old.output].dtype;
    struct wpk_stage *stage = &program->stages[id];
    stage->axis_count = stage->rank;
    stage->reduction = WPK_REDUCE_NONE;
    stage->expr =
        load < 0 || dtype == d.old.accumulator ? load : wpk_node_cast(program, dtype, load);
    return stage->expr < 0 ? WPK_ENOSPC : wpk_program_tidy(program);
}
