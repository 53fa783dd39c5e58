/* SPDX-License-Identifier: Apache-2.0 */
/* The maximum or minimum of a window, in two steps
 *
 *     Y[.., y, x] = max(r:R, s:S) X[.., a*y+r+c, b*x+s+d]
 *
 * becomes, with the terms of each step written out,
 *
 *     T[.., y, i] = max(X[.., a*y+c, i], X[.., a*y+1+c, i], ..)
 *     Y[.., y, x] = max(T[.., y, b*x+d], T[.., y, b*x+1+d], ..)
 *
 * with R + S reads for each result instead of R * S. Where the second index leaves X it leaves T,
 * and the value outside is the same: the maximum of equal values is one of them. */
#include "ir/derive/derive.h"

#include "ir/derive/extract.h"
#include "ir/derive/rewrite.h"

#define TERMS_MAX 8 /* that are written out */

struct window {
    struct wpk_stage old;
    struct wpk_node load;
    int output_axis, reduction_axis; /* x and s */
    int dim;                         /* of X, indexed by them alone */
};

/* Only `y` and `r` occur in the index, with a factor of at least 1, and make it as long. */
static bool match_dim(const struct wpk_program *program, const struct wpk_stage *stage,
                      const struct wpk_node *load, int dim, struct window *out)
{
    struct wpk_affine affine;
    int outputs = 0, reductions = 0;
    if (!wpk_index_affine(program, load->index[dim], &affine)) {
        return false;
    }
    for (int a = 0; a < stage->axis_count; a++) {
        if (affine.coefficient[a] != 0) {
            outputs += a < stage->rank;
            reductions += a >= stage->rank && stage->axes[a].extent > 1;
            *(a < stage->rank ? &out->output_axis : &out->reduction_axis) = a;
        }
    }
    return outputs == 1 && reductions == 1 && affine.coefficient[out->output_axis] > 0 &&
           affine.coefficient[out->output_axis] <= stage->axes[out->reduction_axis].extent &&
           wpk_contraction_only_dim(program, load, out->output_axis) == dim &&
           wpk_contraction_only_dim(program, load, out->reduction_axis) == dim;
}

static bool recognise(const struct wpk_program *program, int id, struct window *out)
{
    const struct wpk_stage *stage = &program->stages[id];
    const struct wpk_node *load = &program->nodes[stage->expr];
    int windows = 0;
    if ((stage->reduction != WPK_REDUCE_MAX && stage->reduction != WPK_REDUCE_MIN) ||
        load->kind != WPK_NODE_LOAD || stage->accumulator != load->dtype ||
        program->tensors[stage->output].dtype != load->dtype) {
        return false;
    }
    out->old = *stage;
    out->load = *load;
    int64_t terms = (int64_t)wpk_stage_terms(stage);
    for (int dim = 0; dim < program->tensors[load->tensor].rank; dim++) {
        struct window one = *out;
        if (match_dim(program, stage, load, dim, &one)) {
            windows++;
            *out = one;
            out->dim = dim; /* the last one, which is contiguous as written */
        }
    }
    int64_t row = windows > 1 ? stage->axes[out->reduction_axis].extent : 1;
    return windows > 1 && row <= TERMS_MAX && terms / row <= TERMS_MAX;
}

/* The maximum or minimum of a load with the given indices over `rows` (s), or over all other
 * reduction axes, from `axis` on.
 *   shape   map [WPK_AXES_MAX] of the old axes, in which they are replaced in turn */
static int write_terms(struct wpk_program *program, const struct window *w, bool rows, int axis,
                       int *map, int tensor, const int *index)
{
    enum wpk_binary op = w->old.reduction == WPK_REDUCE_MAX ? WPK_BINARY_MAX : WPK_BINARY_MIN;
    int terms = -1;
    while (axis < w->old.axis_count && (axis == w->reduction_axis) != rows) {
        axis++;
    }
    if (axis == w->old.axis_count) {
        int moved[WPK_RANK_MAX] = {0};
        for (int d = 0; d < program->tensors[tensor].rank; d++) {
            moved[d] = wpk_rewrite_expr(program, index[d], map, -1, NULL, NULL);
        }
        return wpk_node_load(program, tensor, moved, w->load.outside);
    }
    for (int64_t i = 0; i < w->old.axes[axis].extent; i++) {
        map[axis] = wpk_node_int(program, i);
        int term = write_terms(program, w, rows, axis + 1, map, tensor, index);
        terms = i == 0 ? term : wpk_node_binary(program, op, terms, term);
    }
    return terms;
}

/* Add T, and return its tensor, or -1. */
static int add_first(struct wpk_program *program, const struct window *w, int *map)
{
    const struct wpk_tensor target = program->tensors[w->old.output];
    const struct wpk_tensor source = program->tensors[w->load.tensor];
    int64_t extent[WPK_RANK_MAX];
    int index[WPK_RANK_MAX];
    for (int a = 0; a < w->old.rank; a++) {
        extent[a] = target.extent[a];
    }
    extent[w->output_axis] = source.extent[w->dim];
    int id =
        wpk_rewrite_add_stage(program, target.name, "w", source.dtype, w->old.rank, extent, NULL);
    if (id < 0) {
        return -1;
    }
    for (int d = 0; d < source.rank; d++) {
        index[d] = d == w->dim ? wpk_node_axis(program, w->output_axis) : w->load.index[d];
    }
    int expr = write_terms(program, w, false, w->old.rank, map, w->load.tensor, index);
    program->stages[id].expr = expr;
    return expr < 0 ? -1 : program->stages[id].output;
}

wpk_err wpk_derive_separated(struct wpk_program *program, int id)
{
    struct window w;
    int map[WPK_AXES_MAX], index[WPK_RANK_MAX];
    if (!recognise(program, id, &w)) {
        return WPK_EUNSUPPORTED;
    }
    for (int a = 0; a < w.old.axis_count; a++) {
        map[a] = a < w.old.rank ? wpk_node_axis(program, a) : -1;
    }
    int first = add_first(program, &w, map);
    if (first < 0) {
        return WPK_ENOSPC;
    }
    for (int a = 0; a < w.old.rank; a++) {
        index[a] = map[a];
    }
    index[w.output_axis] = w.load.index[w.dim];
    int expr = write_terms(program, &w, true, w.old.rank, map, first, index);
    struct wpk_stage *stage = &program->stages[id];
    stage->axis_count = stage->rank;
    stage->reduction = WPK_REDUCE_NONE;
    stage->expr = expr;
    return expr < 0 ? WPK_ENOSPC : wpk_program_tidy(program);
}
