/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms as stages: each sums over a fresh axis a literal matrix times what it transforms,
 * one correlated pair after the other. Unrolled, they fold to additions. */
#include "ir/derive/winograd.h"

#include "ir/derive/extract.h"
#include "ir/derive/rewrite.h"

#include <stdio.h>

/* Axis names by pair: a point, a place in the window that is read, one in the tile that is made. */
static const char *const point_name[WPK_WINOGRAD_PAIRS_MAX] = {"a", "b"};
static const char *const window_name[WPK_WINOGRAD_PAIRS_MAX] = {"i", "j"};
static const char *const output_name[WPK_WINOGRAD_PAIRS_MAX] = {"u", "v"};

/* ---- drafts */

static void add_draft(struct wpk_winograd_draft *draft, const char *name, int64_t extent)
{
    WPK_ASSERT(draft->rank < WPK_RANK_MAX);
    snprintf(draft->name[draft->rank], WPK_NAME_MAX, "%s", name);
    draft->extent[draft->rank++] = extent;
}

void wpk_winograd_draft_add_points(const struct wpk_winograd *w, struct wpk_winograd_draft *draft,
                                   int count)
{
    for (int q = 0; q < count; q++) {
        add_draft(draft, point_name[q], w->pair[q].n);
    }
}

void wpk_winograd_draft_add_axis(const struct wpk_winograd *w, struct wpk_winograd_draft *draft,
                                 int axis)
{
    int pair = wpk_winograd_pair_of_output(w, axis);
    char name[WPK_NAME_MAX];
    snprintf(name, sizeof(name), "%s%.40s", pair >= 0 ? "t" : "", w->old.axes[axis].name);
    add_draft(draft, name, pair >= 0 ? w->pair[pair].tiles : w->old.axes[axis].extent);
}

int wpk_winograd_draft_finish(struct wpk_winograd *w, const struct wpk_winograd_draft *draft,
                              const char *suffix)
{
    const char *axes[WPK_RANK_MAX];
    for (int d = 0; d < draft->rank; d++) {
        axes[d] = draft->name[d];
    }
    return wpk_rewrite_add_stage(w->program, w->stem, suffix, draft->dtype, draft->rank,
                                 draft->extent, axes);
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
            add_draft(&draft, w->old.axes[axis].name, w->old.axes[axis].extent);
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

/* The window of a tile. Tiles may reach past the last output: what is read there is thrown away,
 * but it has to be readable. */
static int load_window(struct wpk_winograd *w, const int *axis_of, const int *offset)
{
    const struct wpk_tensor *tensor = &w->program->tensors[w->data.tensor];
    int index[WPK_RANK_MAX] = {0};
    for (int d = 0; d < tensor->rank; d++) {
        /* Index of the data in dimension d: output axes of pairs become the tile's origin, their
         * reduction axes the place in the window, offset[pair]. */
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
        index[d] = sum;
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
        add_draft(&draft, window_name[q], w->pair[q].n);
    }
    /* The axes of V behind its points: output axes that the data depends on (tiles for those in
     * a pair), then its reduction axes that are in no pair. */
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        axis_of[a] = -1;
    }
    for (int a = 0; a < w->old.axis_count; a++) {
        if (w->in_data[a] && wpk_winograd_pair_of_reduction(w, a) < 0) {
            axis_of[a] = draft.rank;
            wpk_winograd_draft_add_axis(w, &draft, a);
        }
    }
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
            add_draft(&draft, output_name[p], w->pair[p].m);
        } else {
            add_draft(&draft, before->axes[d].name, before->axes[d].extent);
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

/* Find the axes of a contraction that meet only as y + s + constant. It need not be a
 * convolution. */

static bool mark_axes(const struct wpk_winograd *w, const struct wpk_node *load, bool *used)
{
    for (int d = 0; d < w->program->tensors[load->tensor].rank; d++) {
        struct wpk_affine affine;
        if (!wpk_index_affine(w->program, load->index[d], &affine)) {
            return false;
        }
        for (int a = 0; a < w->old.axis_count; a++) {
            used[a] = used[a] || affine.coefficient[a] != 0;
        }
    }
    return true;
}

/* Fills the axes and r; false when they do not meet, or meet more than that. */
static bool match_pair(const struct wpk_winograd *w, int y, int s, struct wpk_winograd_pair *pair)
{
    int data_dim = wpk_contraction_only_dim(w->program, &w->data, y);
    int weight_dim = wpk_contraction_only_dim(w->program, &w->weight, s);
    struct wpk_affine affine;
    if (data_dim < 0 || data_dim != wpk_contraction_only_dim(w->program, &w->data, s) ||
        weight_dim < 0 || w->in_weight[y] ||
        wpk_index_axis(w->program, w->weight.index[weight_dim]) != s) {
        return false;
    }
    (void)wpk_index_affine(w->program, w->data.index[data_dim], &affine);
    for (int a = 0; a < w->old.axis_count; a++) {
        if (affine.coefficient[a] != (a == y || a == s)) {
            return false;
        }
    }
    *pair = (struct wpk_winograd_pair){
        .output_axis = y, .reduction_axis = s, .r = w->old.axes[s].extent};
    return true;
}

static bool find_pairs(struct wpk_winograd *w, const int64_t *m)
{
    for (int y = 0; y < w->old.rank; y++) {
        for (int s = w->old.rank; s < w->old.axis_count; s++) {
            struct wpk_winograd_pair pair = {0};
            if (w->old.axes[s].extent < 2 || !match_pair(w, y, s, &pair)) {
                continue;
            }
            if (w->pair_count == WPK_WINOGRAD_PAIRS_MAX) {
                return false;
            }
            pair.m = m[w->pair_count];
            pair.n = pair.m + pair.r - 1;
            pair.tiles = (w->old.axes[y].extent + pair.m - 1) / pair.m;
            w->pair[w->pair_count++] = pair;
        }
    }
    return w->pair_count > (m[0] == m[1] ? 0 : 1);
}

bool wpk_winograd_recognise(struct wpk_winograd *w, const int64_t *m)
{
    if (!wpk_contraction_is(w->program, w->stage)) {
        return false;
    }
    w->old = w->program->stages[w->stage];
    wpk_contraction_operands(w->program, w->stage, &w->data, &w->weight);
    if (!mark_axes(w, &w->data, w->in_data) || !mark_axes(w, &w->weight, w->in_weight)) {
        return false;
    }
    for (int d = 0; d < w->program->tensors[w->weight.tensor].rank; d++) {
        int axis = wpk_index_axis(w->program, w->weight.index[d]);
        if (axis < 0 || wpk_contraction_only_dim(w->program, &w->weight, axis) != d ||
            w->old.axes[axis].extent > w->program->tensors[w->weight.tensor].extent[d]) {
            return false; /* not each by an axis of its own, or read from outside */
        }
    }
    const struct wpk_tensor *weight = &w->program->tensors[w->weight.tensor];
    w->dtype = w->program->tensors[w->data.tensor].dtype;
    w->weight_dtype = weight->role == WPK_ROLE_CONSTANT ? WPK_F64 : w->dtype;
    bool narrows = wpk_dtype_size(weight->dtype) > wpk_dtype_size(w->dtype);
    return (w->dtype == WPK_F32 || w->dtype == WPK_F64) && !narrows && find_pairs(w, m);
}

int wpk_winograd_pair_of_output(const struct wpk_winograd *w, int axis)
{
    int p = w->pair_count - 1;
    while (p >= 0 && w->pair[p].output_axis != axis) {
        p--;
    }
    return p;
}

int wpk_winograd_pair_of_reduction(const struct wpk_winograd *w, int axis)
{
    int p = w->pair_count - 1;
    while (p >= 0 && w->pair[p].reduction_axis != axis) {
        p--;
    }
    return p;
}
