/* SPDX-License-Identifier: Apache-2.0 */
/* Find the axes of a contraction that meet only as y + s + constant. It need not be a
 * convolution. */
#include "ir/derive/winograd.h"

#include "ir/derive/contraction.h"

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
    for (int p = 0; p < w->pair_count; p++) {
        if (w->pair[p].output_axis == axis) {
            return p;
        }
    }
    return -1;
}

int wpk_winograd_pair_of_reduction(const struct wpk_winograd *w, int axis)
{
    for (int p = 0; p < w->pair_count; p++) {
        if (w->pair[p].reduction_axis == axis) {
            return p;
        }
    }
    return -1;
}
