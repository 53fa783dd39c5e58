/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's minimal filtering as a rewriting of a contraction
 *
 *     T[.., y, x, ..] = sum(.., r, s) D[.., y+r+p, x+s+q, ..] * W[.., r, s, ..]
 *
 * into (for two correlated pairs; for one, the second transform of each kind is missing)
 *
 *     U[a,b,..]  = G  W G'     from constants: part of the prepare program
 *     V[a,b,..]  = BT D B      for each tile of m x m outputs
 *     M[a,b,..]  = sum(..) U * V
 *     T[y,x]     = (AT M A)[y % m, x % m, y / m, x / m]
 *
 * The rewriting is not limited to convolutions: any pair of axes that meet only as y + s + constant
 * will do. */
#include "ir/derive/winograd.h"

#include "ir/derive/rewrite.h"

#include <stdio.h>

static int build_products(struct wpk_winograd *w, const int tensor[2], const int *const axis_of[2],
                          int *m_axis_of);
static wpk_err use_tiles(struct wpk_winograd *w, int tiles, const int *m_axis_of);

/* The stages of the algorithm; returns S, or -1. */
static int build_stages(struct wpk_winograd *w, int *m_axis_of)
{
    int u_axis_of[WPK_AXES_MAX], v_axis_of[WPK_AXES_MAX];
    int u = wpk_winograd_transform_weight(w, u_axis_of);
    int v = u < 0 ? -1 : wpk_winograd_transform_data(w, v_axis_of);
    if (v < 0) {
        return -1;
    }
    int products = build_products(w, (const int[2]){u, v},
                                  (const int *const[2]){u_axis_of, v_axis_of}, m_axis_of);
    return products < 0 ? -1 : wpk_winograd_transform_products(w, products);
}

/* True if some load may leave the tensor. Whole tiles enlarge it, so that such a load would read a
 * tile's surplus instead of the value for outside. */
static bool is_left(const struct wpk_program *program, int tensor)
{
    for (struct wpk_loads it = wpk_loads_in(program); wpk_loads_next(&it);) {
        if (it.node->tensor == tensor && wpk_load_may_leave(program, it.stage, it.id)) {
            return true;
        }
    }
    return false;
}

wpk_err wpk_derive_winograd(struct wpk_program *program, int stage, const int64_t *m)
{
    struct wpk_winograd w = {.program = program, .stage = stage};
    int m_axis_of[WPK_AXES_MAX] = {0};
    if (m[0] < 2 || m[1] < 2 || !wpk_winograd_recognise(&w, m) ||
        w.pair_count + w.old.rank > WPK_RANK_MAX - 1) {
        return WPK_EUNSUPPORTED;
    }
    const struct wpk_tensor *output = &program->tensors[w.old.output];
    if (output->role == WPK_ROLE_OUTPUT || is_left(program, w.old.output)) {
        char name[WPK_NAME_MAX];
        wpk_err err = wpk_derive_copy_after(program, w.stage, name);
        int inner = err == WPK_OK ? wpk_program_find_tensor(program, name) : -1;
        return err == WPK_OK ? wpk_derive_winograd(program, wpk_program_writer(program, inner), m)
                             : err;
    }
    snprintf(w.stem, sizeof(w.stem), "%.30s", output->name);
    wpk_err err = wpk_winograd_add_matrices(&w);
    if (err != WPK_OK) {
        return err;
    }
    int tiles = build_stages(&w, m_axis_of);
    if (tiles < 0) {
        return WPK_ENOSPC;
    }
    err = use_tiles(&w, tiles, m_axis_of);
    return err == WPK_OK ? wpk_program_tidy(program) : err;
}

/* ---- M */

/* U or V at the point and at the axes of the old stage, given as nodes. */
static int load_factor(struct wpk_winograd *w, int tensor, const int *axis_of, const int *axis_node)
{
    int index[WPK_RANK_MAX] = {0};
    for (int q = 0; q < w->pair_count; q++) {
        index[q] = wpk_node_axis(w->program, q);
    }
    for (int a = 0; a < w->old.axis_count; a++) {
        if (axis_of[a] >= 0) {
            index[axis_of[a]] = axis_node[a];
        }
    }
    return wpk_node_load(w->program, tensor, index, -1);
}

/* The products of U and V, summed over the rest of the reduction; m_axis_of says which dimension of
 * M stands for which of the old output axes. */
static int build_products(struct wpk_winograd *w, const int tensor[2], const int *const axis_of[2],
                          int *m_axis_of)
{
    struct wpk_program *program = w->program;
    struct wpk_winograd_draft draft = {.dtype = w->dtype};
    int axis_node[WPK_AXES_MAX] = {0};
    wpk_winograd_draft_add_points(w, &draft, w->pair_count);
    for (int a = 0; a < w->old.rank; a++) {
        m_axis_of[a] = draft.rank;
        axis_node[a] = wpk_node_axis(program, draft.rank);
        wpk_winograd_draft_add_axis(w, &draft, a);
    }
    int id = wpk_winograd_draft_finish(w, &draft, "m");
    if (id < 0) {
        return -1;
    }
    struct wpk_stage *stage = &program->stages[id];
    for (int a = w->old.rank; a < w->old.axis_count; a++) {
        if (wpk_winograd_pair_of_reduction(w, a) < 0) {
            const struct wpk_axis *axis = &w->old.axes[a];
            int added = wpk_stage_add_reduction_axis(stage, axis->name, axis->extent);
            axis_node[a] = wpk_node_axis(program, added);
        }
    }
    int left = load_factor(w, tensor[0], axis_of[0], axis_node);
    int right = load_factor(w, tensor[1], axis_of[1], axis_node);
    stage->reduction = stage->axis_count > stage->rank ? WPK_REDUCE_SUM : WPK_REDUCE_NONE;
    stage->accumulator = w->old.accumulator;
    enum wpk_dtype dtype = stage->reduction == WPK_REDUCE_SUM
                               ? stage->accumulator
                               : program->tensors[stage->output].dtype;
    stage->expr =
        wpk_node_cast(program, dtype, wpk_node_binary(program, WPK_BINARY_MUL, left, right));
    return stage->expr < 0 ? -1 : stage->output;
}

/* ---- T */

struct tile_use {
    const struct wpk_winograd *w;
    int tiles; /* S */
    const int *m_axis_of;
};

/* T[..y..] becomes S[y % m, .., y / m, ..] */
static int load_from_tiles(struct wpk_program *program, const struct wpk_node *load,
                           const int *index, void *user)
{
    const struct tile_use *use = user;
    const struct wpk_winograd *w = use->w;
    int moved[WPK_RANK_MAX] = {0};
    for (int a = 0; a < w->old.rank; a++) {
        int pair = wpk_winograd_pair_of_output(w, a);
        if (pair >= 0) {
            moved[pair] = wpk_index_mod(program, index[a], w->pair[pair].m);
        }
        moved[use->m_axis_of[a]] =
            pair >= 0 ? wpk_index_div(program, index[a], w->pair[pair].m) : index[a];
    }
    int tile = wpk_node_load(program, use->tiles, moved, -1); /* whatever leaves reads a copy */
    return wpk_node_cast(program, load->dtype, tile);
}

static wpk_err use_tiles(struct wpk_winograd *w, int tiles, const int *m_axis_of)
{
    struct tile_use use = {.w = w, .tiles = tiles, .m_axis_of = m_axis_of};
    return wpk_rewrite_all(w->program, w->stage, w->old.output, load_from_tiles, &use);
}
