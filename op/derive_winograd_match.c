/* SPDX-License-Identifier: Apache-2.0 */
/* Which stage is the contraction, and which of its axes meet only as y + s + constant. Nothing here
 * knows convolutions. */
#include "op/derive_winograd.h"

static int strip_casts(const struct wpk_program *program, int node)
{
    while (program->nodes[node].kind == WPK_NODE_CAST) {
        node = program->nodes[node].arg[0];
    }
    return node;
}

static bool is_product_of_loads(const struct wpk_program *program, const struct wpk_stage *stage,
                                int *left, int *right)
{
    int top = strip_casts(program, stage->expr);
    const struct wpk_node *node = &program->nodes[top];
    if (stage->reduction != WPK_REDUCE_SUM || node->kind != WPK_NODE_BINARY ||
        node->op != WPK_BINARY_MUL) {
        return false;
    }
    *left = strip_casts(program, node->arg[0]);
    *right = strip_casts(program, node->arg[1]);
    return program->nodes[*left].kind == WPK_NODE_LOAD &&
           program->nodes[*right].kind == WPK_NODE_LOAD &&
           program->tensors[program->nodes[*left].tensor].role != WPK_ROLE_LITERAL &&
           program->tensors[program->nodes[*right].tensor].role != WPK_ROLE_LITERAL;
}

int wpk_derive_contraction(const struct wpk_program *program)
{
    int best = -1;
    double best_size = 0;
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        int left = -1, right = -1;
        double size = 1;
        for (int a = 0; a < stage->axis_count; a++) {
            size *= (double)stage->axes[a].extent;
        }
        if (is_product_of_loads(program, stage, &left, &right) && size > best_size) {
            best = s;
            best_size = size;
        }
    }
    return best;
}

static bool depends_on_constants(const struct wpk_program *program, const struct wpk_node *load)
{
    return program->tensors[load->tensor].role == WPK_ROLE_CONSTANT;
}

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

/* In which dimensions of the load does the axis occur? Returns the only one, or -1. */
static int only_dim(const struct wpk_winograd *w, const struct wpk_node *load, int axis)
{
    int found = -1;
    for (int d = 0; d < w->program->tensors[load->tensor].rank; d++) {
        struct wpk_affine affine;
        if (wpk_index_affine(w->program, load->index[d], &affine) &&
            affine.coefficient[axis] != 0) {
            if (found >= 0) {
                return -1;
            }
            found = d;
        }
    }
    return found;
}

/* Fills the axes and r; false when they do not meet, or meet more than that. */
static bool match_pair(const struct wpk_winograd *w, int y, int s, struct wpk_winograd_pair *pair)
{
    int data_dim = only_dim(w, &w->data, y);
    int weight_dim = only_dim(w, &w->weight, s);
    struct wpk_affine affine;
    if (data_dim < 0 || data_dim != only_dim(w, &w->data, s) || weight_dim < 0 || w->in_weight[y] ||
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

static bool find_pairs(struct wpk_winograd *w, int64_t m)
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
            pair.m = m;
            pair.n = m + pair.r - 1;
            pair.tiles = (w->old.axes[y].extent + m - 1) / m;
            w->pair[w->pair_count++] = pair;
        }
    }
    return w->pair_count > 0;
}

bool wpk_winograd_recognise(struct wpk_winograd *w, int64_t m)
{
    int left = -1, right = -1;
    w->stage = wpk_derive_contraction(w->program);
    if (w->stage < 0) {
        return false;
    }
    w->old = w->program->stages[w->stage];
    (void)is_product_of_loads(w->program, &w->old, &left, &right);
    w->data = w->program->nodes[left];
    w->weight = w->program->nodes[right];
    if (depends_on_constants(w->program, &w->data)) {
        struct wpk_node other = w->data;
        w->data = w->weight;
        w->weight = other;
    }
    if (!mark_axes(w, &w->data, w->in_data) || !mark_axes(w, &w->weight, w->in_weight)) {
        return false;
    }
    for (int d = 0; d < w->program->tensors[w->weight.tensor].rank; d++) {
        if (wpk_index_axis(w->program, w->weight.index[d]) < 0) {
            return false;
        }
    }
    enum wpk_dtype dtype = w->program->tensors[w->data.tensor].dtype;
    return (dtype == WPK_F32 || dtype == WPK_F64) && find_pairs(w, m);
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
