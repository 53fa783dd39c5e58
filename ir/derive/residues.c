/* SPDX-License-Identifier: Apache-2.0 */
/* A window with a stride along the data's contiguous dimension
 *
 *     T[.., x, ..] = sum(c, s:S) X[c, g*x+s+o] * W[s, c]
 *
 * reads a copy of the data split by the residues of its columns, whose vectors along x are
 * contiguous:
 *
 *     D[c, p, j]   = X[c, g*j+p+o]
 *     T[.., x, ..] = sum(c, s:S) D[c, s%g, x+s/g] * W[s, c]
 *
 * With the loop over s written out, its quotients and remainders are constants. D has the border
 * that the loads need. */
#include "ir/derive/derive.h"

#include "ir/derive/extract.h"
#include "ir/derive/rewrite.h"

struct residues {
    struct wpk_node data;
    int output_axis, reduction_axis;
    int64_t stride, offset;
    int64_t low[WPK_RANK_MAX],
        high[WPK_RANK_MAX]; /* of the indices of the data, in its dimensions */
    int tensor;             /* D */
};

static bool recognise(const struct wpk_program *program, int id, struct residues *out)
{
    const struct wpk_stage *stage = &program->stages[id];
    struct wpk_affine affine;
    struct wpk_node weight;
    if (!wpk_contraction_is(program, id)) {
        return false;
    }
    wpk_contraction_operands(program, id, &out->data, &weight);
    int rank = program->tensors[out->data.tensor].rank, last = rank - 1, axes = 0;
    if (out->data.tensor == weight.tensor || rank == 0 || rank == WPK_RANK_MAX ||
        !wpk_index_affine(program, out->data.index[last], &affine)) {
        return false;
    }
    out->output_axis = out->reduction_axis = -1;
    for (int a = 0; a < stage->axis_count; a++) {
        if (affine.coefficient[a] != 0 && stage->axes[a].extent > 1) {
            *(a < stage->rank ? &out->output_axis : &out->reduction_axis) = a;
            axes++;
        }
    }
    if (axes != 2 || out->output_axis < 0 || out->reduction_axis < 0 ||
        affine.coefficient[out->reduction_axis] != 1 || affine.coefficient[out->output_axis] < 2 ||
        wpk_contraction_uses_axis(program, &weight, out->output_axis)) {
        return false;
    }
    out->stride = affine.coefficient[out->output_axis];
    out->offset = affine.constant;
    for (int d = 0; d < rank; d++) {
        wpk_index_range(program, stage, out->data.index[d], &out->low[d], &out->high[d]);
    }
    return true;
}

/* Add D, and return its tensor, or -1. */
static int add_data(struct wpk_program *program, const struct wpk_stage *old,
                    const struct residues *r)
{
    const struct wpk_tensor source = program->tensors[r->data.tensor];
    int last = source.rank - 1, index[WPK_RANK_MAX];
    int64_t extent[WPK_RANK_MAX];
    for (int d = 0; d < last; d++) {
        extent[d] = r->high[d] - r->low[d] + 1;
        index[d] = wpk_index_add_constant(program, wpk_node_axis(program, d), r->low[d]);
    }
    extent[last] = r->stride;
    extent[last + 1] =
        old->axes[r->output_axis].extent + (old->axes[r->reduction_axis].extent - 1) / r->stride;
    int column = wpk_index_scale(program, wpk_node_axis(program, last + 1), r->stride);
    index[last] = wpk_index_add_constant(
        program, wpk_index_add(program, column, wpk_node_axis(program, last)), r->offset);
    int stage = wpk_rewrite_add_stage(program, source.name, "x", source.dtype, source.rank + 1,
                                      extent, NULL);
    if (stage < 0) {
        return -1;
    }
    int outside = r->data.outside >= 0 ? r->data.outside : wpk_node_real(program, source.dtype, 0);
    program->stages[stage].expr = wpk_node_load(program, r->data.tensor, index, outside);
    return program->stages[stage].expr < 0 ? -1 : program->stages[stage].output;
}

static int load_residue(struct wpk_program *program, const struct wpk_node *load, const int *index,
                        void *user)
{
    const struct residues *r = user;
    int moved[WPK_RANK_MAX] = {0};
    int last = program->tensors[load->tensor].rank - 1;
    for (int d = 0; d < last; d++) {
        moved[d] = wpk_index_add_constant(program, index[d], -r->low[d]);
    }
    int s = wpk_node_axis(program, r->reduction_axis);
    moved[last] = wpk_index_mod(program, s, r->stride);
    moved[last + 1] = wpk_index_add(program, wpk_node_axis(program, r->output_axis),
                                    wpk_index_div(program, s, r->stride));
    return wpk_node_load(program, r->tensor, moved, -1);
}

wpk_err wpk_derive_residues(struct wpk_program *program, int id)
{
    struct residues r;
    if (!recognise(program, id, &r)) {
        return WPK_EUNSUPPORTED;
    }
    const struct wpk_stage old = program->stages[id];
    r.tensor = add_data(program, &old, &r);
    if (r.tensor < 0) {
        return WPK_ENOSPC;
    }
    struct wpk_stage *stage = &program->stages[id];
    stage->expr = wpk_rewrite_expr(program, old.expr, NULL, r.data.tensor, load_residue, &r);
    return stage->expr < 0 ? WPK_ENOSPC : wpk_program_tidy(program);
}
