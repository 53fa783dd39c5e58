/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms as stages: each sums over a fresh axis a literal matrix times what it transforms,
 * one correlated pair after the other. Unrolled, they fold to additions. */
#include "ir/derive/winograd.h"

#include "ir/derive/rewrite.h"

#include <stdio.h>

/* Axis names by pair: a point, a place in the window that is read, one in the tile that is made. */
static const char *const point_name[WPK_WINOGRAD_PAIRS_MAX] = {"a", "b"};
static const char *const window_name[WPK_WINOGRAD_PAIRS_MAX] = {"i", "j"};
static const char *const output_name[WPK_WINOGRAD_PAIRS_MAX] = {"u", "v"};

/* ---- drafts */

void wpk_winograd_draft_add(struct wpk_winograd_draft *draft, const char *name, int64_t extent)
{
    WPK_ASSERT(draft->rank < WPK_RANK_MAX);
    snprintf(draft->name[draft->rank], WPK_NAME_MAX, "%s", name);
    draft->extent[draft->rank++] = extent;
}

void wpk_winograd_draft_add_points(const struct wpk_winograd *w, struct wpk_winograd_draft *draft,
                                   int count)
{
    for (int q = 0; q < count; q++) {
        wpk_winograd_draft_add(draft, point_name[q], w->pair[q].n);
    }
}

void wpk_winograd_draft_add_axis(const struct wpk_winograd *w, struct wpk_winograd_draft *draft,
                                 int axis)
{
    int pair = wpk_winograd_pair_of_output(w, axis);
    char name[WPK_NAME_MAX];
    snprintf(name, sizeof(name), "%s%.40s", pair >= 0 ? "t" : "", w->old.axes[axis].name);
    wpk_winograd_draft_add(draft, name, pair >= 0 ? w->pair[pair].tiles : w->old.axes[axis].extent);
}

int wpk_winograd_draft_finish(struct wpk_winograd *w, const struct wpk_winograd_draft *draft,
                              const char *suffix)
{
    char stem[WPK_NAME_MAX], name[WPK_NAME_MAX];
    const char *axes[WPK_RANK_MAX];
    snprintf(stem, sizeof(stem), "%.40s_%s", w->stem, suffix);
    wpk_program_free_name(w->program, stem, name);
    int tensor = wpk_program_add_tensor(w->program, name, WPK_ROLE_INTERMEDIATE, draft->dtype,
                                        draft->rank, draft->extent);
    for (int d = 0; d < draft->rank; d++) {
        axes[d] = draft->name[d];
    }
    return tensor < 0 ? -1 : wpk_program_add_stage(w->program, tensor, axes);
}

/* The summand of a transform's stage: matrix[row axis, i] * load, where i is a new reduction
 * axis. */
struct transform {
    int matrix;
    int row_axis;
    const char *axis_name;
    int64_t extent;
    int load;
    enum wpk_dtype dtype; /* of the matrix and the sum */
};

/* Returns the stage's tensor, or -1. */
static int finish_transform(struct wpk_winograd *w, int stage, const struct transform *t)
{
    struct wpk_program *program = w->program;
    struct wpk_stage *s = &program->stages[stage];
    int axis = wpk_stage_add_reduction_axis(s, t->axis_name, t->extent);
    int index[WPK_RANK_MAX] = {wpk_node_axis(program, t->row_axis), wpk_node_axis(program, axis)};
    int literal = wpk_node_load(program, t->matrix, index, -1);
    s->reduction = WPK_REDUCE_SUM;
    s->accumulator = t->dtype;
    int load = wpk_node_cast(program, t->dtype, t->load);
    s->expr =
        wpk_node_cast(program, t->dtype, wpk_node_binary(program, WPK_BINARY_MUL, literal, load));
    return axis < 0 || s->expr < 0 ? -1 : s->output;
}

/* ---- U */

/* The weight on its way to U: points of the pairs transformed so far, then what is left of its own
 * dimensions, in their order. */
struct partial_weight {
    int tensor;
    int rank;               /* dimensions left */
    int axis[WPK_RANK_MAX]; /* [rank] axis of the old stage */
};

static bool transform_weight_along(struct wpk_winograd *w, int p, struct partial_weight *weight)
{
    struct wpk_program *program = w->program;
    const struct wpk_winograd_pair *pair = &w->pair[p];
    bool last = p + 1 == w->pair_count;
    struct partial_weight next = {0};
    struct wpk_winograd_draft draft = {.dtype = last ? w->dtype : w->weight_dtype};
    int index[WPK_RANK_MAX] = {0};
    wpk_winograd_draft_add_points(w, &draft, p + 1);
    for (int d = 0; d < weight->rank; d++) {
        int axis = weight->axis[d];
        if (axis != pair->reduction_axis) {
            next.axis[next.rank++] = axis;
            wpk_winograd_draft_add(&draft, w->old.axes[axis].name, w->old.axes[axis].extent);
        }
    }
    int stage = wpk_winograd_draft_finish(w, &draft, p == 0 ? "u1" : "u");
    if (stage < 0) {
        return false;
    }
    for (int q = 0; q < p; q++) {
        index[q] = wpk_node_axis(program, q);
    }
    for (int d = 0, kept = 0; d < weight->rank; d++) {
        bool reduced = weight->axis[d] == pair->reduction_axis;
        index[p + d] = wpk_node_axis(program, reduced ? draft.rank : p + 1 + kept++);
    }
    struct transform g = {.matrix = pair->g,
                          .row_axis = p,
                          .axis_name = w->old.axes[pair->reduction_axis].name,
                          .extent = pair->r,
                          .dtype = w->weight_dtype,
                          .load = wpk_node_load(program, weight->tensor, index, -1)};
    next.tensor = finish_transform(w, stage, &g);
    *weight = next;
    return weight->tensor >= 0;
}

int wpk_winograd_transform_weight(struct wpk_winograd *w, int *axis_of)
{
    struct partial_weight weight = {.tensor = w->weight.tensor,
                                    .rank = w->program->tensors[w->weight.tensor].rank};
    for (int d = 0; d < weight.rank; d++) {
        weight.axis[d] = wpk_index_axis(w->program, w->weight.index[d]);
    }
    for (int p = 0; p < w->pair_count; p++) {
        if (!transform_weight_along(w, p, &weight)) {
            return -1;
        }
    }
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        axis_of[a] = -1;
    }
    for (int d = 0; d < weight.rank; d++) {
        axis_of[weight.axis[d]] = w->pair_count + d;
    }
    return weight.tensor;
}

/* ---- V */

/* The axes of V behind its points: output axes that the data depends on (tiles for those in a
 * pair), then its reduction axes that are in no pair. */
static void add_data_axes(const struct wpk_winograd *w, struct wpk_winograd_draft *draft,
                          int *axis_of)
{
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        axis_of[a] = -1;
    }
    for (int a = 0; a < w->old.axis_count; a++) {
        if (w->in_data[a] && wpk_winograd_pair_of_reduction(w, a) < 0) {
            axis_of[a] = draft->rank;
            wpk_winograd_draft_add_axis(w, draft, a);
        }
    }
}

/* Index of the data in dimension d: output axes of pairs become the tile's origin, their reduction
 * axes the place in the window, offset[pair]. */
static int data_index(struct wpk_winograd *w, int d, const int *axis_of, const int *offset)
{
    struct wpk_program *program = w->program;
    struct wpk_affine affine;
    (void)wpk_index_affine(program, w->data.index[d], &affine);
    int sum = wpk_node_int(program, affine.constant);
    for (int a = 0; a < w->old.axis_count; a++) {
        if (affine.coefficient[a] == 0) {
            continue;
        }
        int pair = wpk_winograd_pair_of_output(w, a);
        int reduction = wpk_winograd_pair_of_reduction(w, a);
        int term = reduction >= 0 ? offset[reduction] : wpk_node_axis(program, axis_of[a]);
        int64_t scale = affine.coefficient[a] * (pair >= 0 ? w->pair[pair].m : 1);
        sum = wpk_index_add(program, wpk_index_scale(program, term, scale), sum);
    }
    return sum;
}

/* The window of a tile. Tiles may reach past the last output: what is read there is thrown away,
 * but it has to be readable. */
static int load_window(struct wpk_winograd *w, const int *axis_of, const int *offset)
{
    const struct wpk_tensor *tensor = &w->program->tensors[w->data.tensor];
    int index[WPK_RANK_MAX] = {0};
    for (int d = 0; d < tensor->rank; d++) {
        index[d] = data_index(w, d, axis_of, offset);
    }
    int outside =
        w->data.outside >= 0 ? w->data.outside : wpk_node_real(w->program, tensor->dtype, 0);
    return wpk_node_load(w->program, w->data.tensor, index, outside);
}

/* Step p has points for pairs <= p and plain windows for the pairs after it. */
static int transform_data_along(struct wpk_winograd *w, int p, int source, int *axis_of)
{
    struct wpk_program *program = w->program;
    struct wpk_winograd_draft draft = {.dtype = w->dtype};
    int index[WPK_RANK_MAX] = {0};
    wpk_winograd_draft_add_points(w, &draft, p + 1);
    for (int q = p + 1; q < w->pair_count; q++) {
        wpk_winograd_draft_add(&draft, window_name[q], w->pair[q].n);
    }
    add_data_axes(w, &draft, axis_of);
    int stage = wpk_winograd_draft_finish(w, &draft, p + 1 < w->pair_count ? "v1" : "v");
    if (stage < 0) {
        return -1;
    }
    for (int d = 0; d < draft.rank; d++) {
        index[d] = wpk_node_axis(program, d == p ? draft.rank : d);
    }
    struct transform bt = {.matrix = w->pair[p].bt,
                           .row_axis = p,
                           .axis_name = window_name[p],
                           .extent = w->pair[p].n,
                           .dtype = w->dtype,
                           .load = p == 0 ? load_window(w, axis_of, index)
                                          : wpk_node_load(program, source, index, -1)};
    return finish_transform(w, stage, &bt);
}

int wpk_winograd_transform_data(struct wpk_winograd *w, int *axis_of)
{
    int source = w->data.tensor;
    for (int p = 0; p < w->pair_count && source >= 0; p++) {
        source = transform_data_along(w, p, source, axis_of);
    }
    return source;
}

/* ---- S */

static int transform_products_along(struct wpk_winograd *w, int p, int source)
{
    struct wpk_program *program = w->program;
    const struct wpk_stage *before = &program->stages[wpk_program_writer(program, source)];
    struct wpk_winograd_draft draft = {.dtype = w->dtype};
    int index[WPK_RANK_MAX] = {0};
    for (int d = 0; d < before->rank; d++) {
        if (d == p) {
            wpk_winograd_draft_add(&draft, output_name[p], w->pair[p].m);
        } else {
            wpk_winograd_draft_add(&draft, before->axes[d].name, before->axes[d].extent);
        }
    }
    int stage = wpk_winograd_draft_finish(w, &draft, p + 1 < w->pair_count ? "s1" : "s");
    if (stage < 0) {
        return -1;
    }
    for (int d = 0; d < draft.rank; d++) {
        index[d] = wpk_node_axis(program, d == p ? draft.rank : d);
    }
    struct transform at = {.matrix = w->pair[p].at,
                           .row_axis = p,
                           .axis_name = point_name[p],
                           .extent = w->pair[p].n,
                           .dtype = w->dtype,
                           .load = wpk_node_load(program, source, index, -1)};
    return finish_transform(w, stage, &at);
}

int wpk_winograd_transform_products(struct wpk_winograd *w, int products)
{
    int source = products;
    for (int p = 0; p < w->pair_count && source >= 0; p++) {
        source = transform_products_along(w, p, source);
    }
    return source;
}
