/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's minimal filtering as a rewriting of the contraction stage
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
 * Each transform is a reduction over a literal matrix: unrolled, it folds to additions. Nothing
 * here knows convolutions: any pair of axes that meet only as y + s + constant will do. */
#include "op/derive.h"

#include "op/rewrite.h"

#include <stdio.h>
#include <string.h>

#define PAIRS_MAX 2
#define LOADS_MAX 256
#define MATRIX_MAX (WPK_WINOGRAD_POINTS_MAX * WPK_WINOGRAD_POINTS_MAX)

/* The finite points in the order of use; infinity is always the last one. Small magnitudes first:
 * the error grows with the spread of the points. */
static const double points[WPK_WINOGRAD_POINTS_MAX - 1] = {0, 1, -1, 2, -2, 0.5, -0.5, 4, -4};

/* coefficient[i] of x^i in the product of (x - points[j]) over j < count, j != skip */
static void expand_roots(int64_t count, int64_t skip, double *coefficient)
{
    int64_t degree = 0;
    memset(coefficient, 0, WPK_WINOGRAD_POINTS_MAX * sizeof(double));
    coefficient[0] = 1;
    for (int64_t j = 0; j < count; j++) {
        if (j == skip) {
            continue;
        }
        degree++;
        for (int64_t i = degree; i >= 0; i--) {
            coefficient[i] = (i > 0 ? coefficient[i - 1] : 0) - points[j] * coefficient[i];
        }
    }
}

static double power(double base, int64_t exponent)
{
    double result = 1;
    for (int64_t i = 0; i < exponent; i++) {
        result *= base;
    }
    return result;
}

wpk_err wpk_winograd_matrices(int64_t m, int64_t r, double *at, double *g, double *bt)
{
    int64_t n = m + r - 1;
    if (m < 1 || r < 1 || n < 2 || n > WPK_WINOGRAD_POINTS_MAX) {
        return WPK_ERANGE;
    }
    for (int64_t j = 0; j < n; j++) {
        bool infinity = j == n - 1;
        double scale = 1, row[WPK_WINOGRAD_POINTS_MAX];
        for (int64_t l = 0; l < n - 1 && !infinity; l++) {
            scale *= l == j ? 1 : points[j] - points[l];
        }
        /* the sign goes to G, so that the additions of the transforms have positive heads */
        double sign = scale < 0 ? -1 : 1;
        expand_roots(n - 1, infinity ? -1 : j, row);
        for (int64_t i = 0; i < n; i++) {
            bt[j * n + i] = sign * row[i];
        }
        for (int64_t i = 0; i < r; i++) {
            g[j * r + i] = infinity ? (double)(i == r - 1) : power(points[j], i) / (sign * scale);
        }
        for (int64_t i = 0; i < m; i++) {
            at[i * n + j] = infinity ? (double)(i == m - 1) : power(points[j], i);
        }
    }
    return WPK_OK;
}

/* One correlated pair: output axis y, reduction axis s, where they meet, where s stands alone. */
struct pair {
    int output_axis;
    int reduction_axis;
    int data_dim;
    int weight_dim;
    int64_t constant; /* of the index y + s + constant */
    int64_t m, r, n;
    int64_t tiles;
    int at, g, bt; /* literals */
};

struct winograd {
    struct wpk_program *program;
    int stage;
    struct wpk_stage old; /* a copy: stages are appended */
    struct wpk_node data, weight;
    struct pair pair[PAIRS_MAX];
    int pair_count;
    bool in_data[WPK_AXES_MAX], in_weight[WPK_AXES_MAX];
    char stem[WPK_NAME_MAX];
};

/* ---- recognising */

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

static bool mark_axes(const struct winograd *w, const struct wpk_node *load, bool *used)
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
static int only_dim(const struct winograd *w, const struct wpk_node *load, int axis)
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

static bool match_pair(struct winograd *w, int y, int s, struct pair *pair)
{
    pair->output_axis = y;
    pair->reduction_axis = s;
    pair->data_dim = only_dim(w, &w->data, y);
    pair->weight_dim = only_dim(w, &w->weight, s);
    pair->r = w->old.axes[s].extent;
    if (pair->data_dim < 0 || pair->data_dim != only_dim(w, &w->data, s) || pair->weight_dim < 0 ||
        w->in_weight[y] || wpk_index_axis(w->program, w->weight.index[pair->weight_dim]) != s) {
        return false;
    }
    struct wpk_affine affine;
    (void)wpk_index_affine(w->program, w->data.index[pair->data_dim], &affine);
    for (int a = 0; a < w->old.axis_count; a++) {
        if (affine.coefficient[a] != (a == y || a == s)) {
            return false;
        }
    }
    pair->constant = affine.constant;
    return true;
}

static bool find_pairs(struct winograd *w, int64_t m)
{
    for (int y = 0; y < w->old.rank; y++) {
        for (int s = w->old.rank; s < w->old.axis_count; s++) {
            struct pair pair = {0};
            if (w->old.axes[s].extent < 2 || !match_pair(w, y, s, &pair)) {
                continue;
            }
            if (w->pair_count == PAIRS_MAX) {
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

static bool recognise(struct winograd *w, int64_t m)
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

static int pair_of_output(const struct winograd *w, int axis)
{
    for (int p = 0; p < w->pair_count; p++) {
        if (w->pair[p].output_axis == axis) {
            return p;
        }
    }
    return -1;
}

static int pair_of_reduction(const struct winograd *w, int axis)
{
    for (int p = 0; p < w->pair_count; p++) {
        if (w->pair[p].reduction_axis == axis) {
            return p;
        }
    }
    return -1;
}

/* ---- building */

/* A tensor under construction: its dimensions with names, and how its stage uses them. */
struct draft {
    int rank;
    int64_t extent[WPK_RANK_MAX];
    char name[WPK_RANK_MAX][WPK_NAME_MAX];
};

static void draft_add(struct draft *draft, const char *name, int64_t extent)
{
    WPK_ASSERT(draft->rank < WPK_RANK_MAX);
    snprintf(draft->name[draft->rank], WPK_NAME_MAX, "%s", name);
    draft->extent[draft->rank++] = extent;
}

/* Adds the tensor and its stage; returns the stage, or -1. */
static int draft_finish(struct winograd *w, const struct draft *draft, const char *suffix)
{
    char stem[WPK_NAME_MAX], name[WPK_NAME_MAX];
    const char *axes[WPK_RANK_MAX];
    snprintf(stem, sizeof(stem), "%.40s_%s", w->stem, suffix);
    wpk_program_free_name(w->program, stem, name);
    enum wpk_dtype dtype = w->program->tensors[w->data.tensor].dtype;
    int tensor = wpk_program_add_tensor(w->program, name, WPK_ROLE_INTERMEDIATE, dtype, draft->rank,
                                        draft->extent);
    for (int d = 0; d < draft->rank; d++) {
        axes[d] = draft->name[d];
    }
    return tensor < 0 ? -1 : wpk_program_add_stage(w->program, tensor, axes);
}

static int load_axes(struct wpk_program *program, int tensor, const int *index)
{
    return wpk_node_load(program, tensor, index, -1);
}

/* stage: sum over a fresh axis of length `extent` of matrix[row axis, it] * source */
static wpk_err finish_transform(struct winograd *w, int stage, int matrix, int row_axis,
                                const char *axis_name, int64_t extent, int source_load)
{
    struct wpk_program *program = w->program;
    struct wpk_stage *s = &program->stages[stage];
    int axis = wpk_stage_add_reduction_axis(s, axis_name, extent);
    int index[WPK_RANK_MAX] = {wpk_node_axis(program, row_axis), wpk_node_axis(program, axis)};
    int literal = load_axes(program, matrix, index);
    s->reduction = WPK_REDUCE_SUM;
    s->accumulator = program->tensors[s->output].dtype;
    s->expr = wpk_node_binary(program, WPK_BINARY_MUL, literal, source_load);
    return axis < 0 || s->expr < 0 ? WPK_ENOSPC : WPK_OK;
}

static wpk_err add_matrices(struct winograd *w)
{
    double at[MATRIX_MAX], g[MATRIX_MAX], bt[MATRIX_MAX];
    enum wpk_dtype dtype = w->program->tensors[w->data.tensor].dtype;
    for (int p = 0; p < w->pair_count; p++) {
        struct pair *pair = &w->pair[p];
        char name[WPK_NAME_MAX], stem[WPK_NAME_MAX];
        if (p == 1 && pair->r == w->pair[0].r) {
            pair->at = w->pair[0].at;
            pair->g = w->pair[0].g;
            pair->bt = w->pair[0].bt;
            continue;
        }
        wpk_err err = wpk_winograd_matrices(pair->m, pair->r, at, g, bt);
        if (err != WPK_OK) {
            return WPK_EUNSUPPORTED;
        }
        const struct {
            const char *suffix;
            int64_t rows, columns;
            const double *values;
            int *out;
        } matrices[] = {{"at", pair->m, pair->n, at, &pair->at},
                        {"g", pair->n, pair->r, g, &pair->g},
                        {"bt", pair->n, pair->n, bt, &pair->bt}};
        for (int i = 0; i < 3; i++) {
            int64_t extent[2] = {matrices[i].rows, matrices[i].columns};
            snprintf(stem, sizeof(stem), "%.40s_%s", w->stem, matrices[i].suffix);
            wpk_program_free_name(w->program, stem, name);
            *matrices[i].out =
                wpk_program_add_literal(w->program, name, dtype, 2, extent, matrices[i].values);
            if (*matrices[i].out < 0) {
                return WPK_ENOSPC;
            }
        }
    }
    return WPK_OK;
}

static const char *const point_name[PAIRS_MAX] = {"a", "b"};

/* U: after step p the first p+1 pairs are transformed. Dimensions: points so far, then the
 * weight's own dimensions in order, without those that were transformed. Returns U, or -1. */
static int build_weight_transform(struct winograd *w, int *u_axis_of)
{
    struct wpk_program *program = w->program;
    int source = w->weight.tensor;
    int source_dim_axis[WPK_RANK_MAX]; /* stage axis of each remaining dimension, old numbering */
    int source_rank = program->tensors[source].rank, points_before = 0;
    for (int d = 0; d < source_rank; d++) {
        source_dim_axis[d] = wpk_index_axis(program, w->weight.index[d]);
    }
    for (int p = 0; p < w->pair_count; p++) {
        struct draft draft = {0};
        int next_axis[WPK_RANK_MAX], index[WPK_RANK_MAX] = {0}, kept = 0;
        for (int q = 0; q <= p; q++) {
            draft_add(&draft, point_name[q], w->pair[q].n);
        }
        for (int d = 0; d < source_rank; d++) {
            int axis = source_dim_axis[d];
            if (axis != w->pair[p].reduction_axis) {
                next_axis[kept++] = axis;
                draft_add(&draft, w->old.axes[axis].name, w->old.axes[axis].extent);
            }
        }
        int stage = draft_finish(w, &draft, p == 0 ? "u1" : "u");
        if (stage < 0) {
            return -1;
        }
        for (int q = 0; q < points_before; q++) {
            index[q] = wpk_node_axis(program, q);
        }
        for (int d = 0, k = 0; d < source_rank; d++) {
            bool reduced = source_dim_axis[d] == w->pair[p].reduction_axis;
            index[points_before + d] =
                reduced ? wpk_node_axis(program, draft.rank) : wpk_node_axis(program, p + 1 + k++);
        }
        int load = load_axes(program, source, index);
        if (finish_transform(w, stage, w->pair[p].g, p, w->old.axes[w->pair[p].reduction_axis].name,
                             w->pair[p].r, load) != WPK_OK) {
            return -1;
        }
        source = program->stages[stage].output;
        source_rank = kept;
        memcpy(source_dim_axis, next_axis, sizeof(next_axis));
        points_before = p + 1;
    }
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        u_axis_of[a] = -1;
    }
    for (int d = 0; d < source_rank; d++) {
        u_axis_of[source_dim_axis[d]] = w->pair_count + d;
    }
    return source;
}

/* The axes of V behind its points: output axes that the data depends on (tiles for those in a
 * pair), then its reduction axes that are in no pair. */
static void add_data_axes(const struct winograd *w, struct draft *draft, int *axis_of)
{
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        axis_of[a] = -1;
    }
    for (int a = 0; a < w->old.axis_count; a++) {
        int pair = pair_of_output(w, a);
        if (!w->in_data[a] || pair_of_reduction(w, a) >= 0) {
            continue;
        }
        char name[WPK_NAME_MAX];
        snprintf(name, sizeof(name), "%s%.40s", pair >= 0 ? "t" : "", w->old.axes[a].name);
        axis_of[a] = draft->rank;
        draft_add(draft, name, pair >= 0 ? w->pair[pair].tiles : w->old.axes[a].extent);
    }
}

/* Index of the data in dimension d, with tile origins for output axes of pairs and `offset` for
 * their reduction axes. */
static int data_index(struct winograd *w, int d, const int *axis_of, const int *offset)
{
    struct wpk_program *program = w->program;
    struct wpk_affine affine;
    (void)wpk_index_affine(program, w->data.index[d], &affine);
    int sum = wpk_node_int(program, affine.constant);
    for (int a = 0; a < w->old.axis_count; a++) {
        if (affine.coefficient[a] == 0) {
            continue;
        }
        int pair = pair_of_output(w, a), reduction = pair_of_reduction(w, a);
        int term = reduction >= 0 ? offset[reduction] : wpk_node_axis(program, axis_of[a]);
        int64_t scale = affine.coefficient[a] * (pair >= 0 ? w->pair[pair].m : 1);
        sum = wpk_index_add(program, wpk_index_scale(program, term, scale), sum);
    }
    return sum;
}

static const char *const window_name[PAIRS_MAX] = {"i", "j"};

/* V; data_axis_of tells which axis of V stands for which of the old ones. Returns V, or -1. */
static int build_data_transform(struct winograd *w, int *data_axis_of)
{
    struct wpk_program *program = w->program;
    int source = -1;
    for (int p = 0; p < w->pair_count; p++) {
        /* step p has points for pairs <= p and plain windows for the pairs after it */
        struct draft draft = {0};
        int index[WPK_RANK_MAX] = {0}, offset[PAIRS_MAX];
        for (int q = 0; q < w->pair_count; q++) {
            draft_add(&draft, q <= p ? point_name[q] : window_name[q], w->pair[q].n);
        }
        add_data_axes(w, &draft, data_axis_of);
        int stage = draft_finish(w, &draft, p + 1 < w->pair_count ? "v1" : "v");
        if (stage < 0) {
            return -1;
        }
        int reduced = wpk_node_axis(program, draft.rank), load = -1;
        for (int q = 0; q < w->pair_count; q++) {
            offset[q] = q == p ? reduced : wpk_node_axis(program, q);
        }
        if (p == 0) {
            for (int d = 0; d < program->tensors[w->data.tensor].rank; d++) {
                index[d] = data_index(w, d, data_axis_of, offset);
            }
            /* tiles may reach past the last output: what is read there is thrown away, but it
             * has to be readable */
            int outside = w->data.outside >= 0
                              ? w->data.outside
                              : wpk_node_real(program, program->tensors[w->data.tensor].dtype, 0);
            load = wpk_node_load(program, w->data.tensor, index, outside);
        } else {
            for (int d = 0; d < draft.rank; d++) {
                index[d] = d < w->pair_count ? offset[d] : wpk_node_axis(program, d);
            }
            load = load_axes(program, source, index);
        }
        if (finish_transform(w, stage, w->pair[p].bt, p, window_name[p], w->pair[p].n, load) !=
            WPK_OK) {
            return -1;
        }
        source = program->stages[stage].output;
    }
    return source;
}

/* M: the products, summed over the rest of the reduction. m_axis_of as above for output axes. */
static int build_products(struct winograd *w, int u, const int *u_axis_of, int v,
                          const int *v_axis_of, int *m_axis_of)
{
    struct wpk_program *program = w->program;
    struct draft draft = {0};
    int axis_node[WPK_AXES_MAX], index[WPK_RANK_MAX];
    for (int q = 0; q < w->pair_count; q++) {
        draft_add(&draft, point_name[q], w->pair[q].n);
    }
    for (int a = 0; a < w->old.rank; a++) {
        int pair = pair_of_output(w, a);
        char name[WPK_NAME_MAX];
        snprintf(name, sizeof(name), "%s%.40s", pair >= 0 ? "t" : "", w->old.axes[a].name);
        m_axis_of[a] = draft.rank;
        axis_node[a] = wpk_node_axis(program, draft.rank);
        draft_add(&draft, name, pair >= 0 ? w->pair[pair].tiles : w->old.axes[a].extent);
    }
    int id = draft_finish(w, &draft, "m");
    if (id < 0) {
        return -1;
    }
    struct wpk_stage *stage = &program->stages[id];
    for (int a = w->old.rank; a < w->old.axis_count; a++) {
        if (pair_of_reduction(w, a) < 0) {
            int axis =
                wpk_stage_add_reduction_axis(stage, w->old.axes[a].name, w->old.axes[a].extent);
            axis_node[a] = wpk_node_axis(program, axis);
        }
    }
    const int *const axis_of[2] = {u_axis_of, v_axis_of};
    const int tensor[2] = {u, v};
    int load[2];
    for (int side = 0; side < 2; side++) {
        memset(index, 0, sizeof(index));
        for (int q = 0; q < w->pair_count; q++) {
            index[q] = wpk_node_axis(program, q);
        }
        for (int a = 0; a < w->old.axis_count; a++) {
            if (axis_of[side][a] >= 0) {
                index[axis_of[side][a]] = axis_node[a];
            }
        }
        load[side] = load_axes(program, tensor[side], index);
    }
    stage->expr = wpk_node_binary(program, WPK_BINARY_MUL, load[0], load[1]);
    stage->reduction = stage->axis_count > stage->rank ? WPK_REDUCE_SUM : WPK_REDUCE_NONE;
    stage->accumulator = w->old.accumulator;
    return stage->expr < 0 ? -1 : stage->output;
}

static const char *const output_name[PAIRS_MAX] = {"u", "v"};

/* S: dimensions are the position in the tile (one per pair), then M's axes behind its points. */
static int build_output_transform(struct winograd *w, int m_tensor)
{
    struct wpk_program *program = w->program;
    int source = m_tensor;
    for (int p = 0; p < w->pair_count; p++) {
        struct draft draft = {0};
        int index[WPK_RANK_MAX] = {0};
        const struct wpk_tensor *m = &program->tensors[m_tensor];
        for (int q = 0; q < w->pair_count; q++) {
            draft_add(&draft, q <= p ? output_name[q] : point_name[q],
                      q <= p ? w->pair[q].m : w->pair[q].n);
        }
        const struct wpk_stage *products = &program->stages[wpk_program_writer(program, m_tensor)];
        for (int d = w->pair_count; d < m->rank; d++) {
            draft_add(&draft, products->axes[d].name, m->extent[d]);
        }
        int stage = draft_finish(w, &draft, p + 1 < w->pair_count ? "s1" : "s");
        if (stage < 0) {
            return -1;
        }
        for (int d = 0; d < draft.rank; d++) {
            index[d] = wpk_node_axis(program, d == p ? draft.rank : d);
        }
        int load = load_axes(program, source, index);
        if (finish_transform(w, stage, w->pair[p].at, p, point_name[p], w->pair[p].n, load) !=
            WPK_OK) {
            return -1;
        }
        source = program->stages[stage].output;
    }
    return source;
}

struct use_tiles {
    const struct winograd *w;
    int tiles; /* S */
    const int *m_axis_of;
};

/* T[..y..] becomes S[y % m, .., y / m, ..] */
static int load_from_tiles(struct wpk_program *program, const struct wpk_node *load,
                           const int *index, void *user)
{
    const struct use_tiles *use = user;
    const struct winograd *w = use->w;
    int moved[WPK_RANK_MAX] = {0};
    if (load->tensor != w->old.output) {
        return wpk_rewrite_keep(program, load, index);
    }
    for (int a = 0; a < w->old.rank; a++) {
        int pair = pair_of_output(w, a);
        if (pair >= 0) {
            moved[pair] = wpk_index_mod(program, index[a], w->pair[pair].m);
        }
        moved[use->m_axis_of[a]] =
            pair >= 0 ? wpk_index_div(program, index[a], w->pair[pair].m) : index[a];
    }
    return wpk_node_load(program, use->tiles, moved, load->outside);
}

wpk_err wpk_derive_winograd(struct wpk_program *program, int64_t m)
{
    struct winograd w = {.program = program};
    int u_axis_of[WPK_AXES_MAX], v_axis_of[WPK_AXES_MAX], m_axis_of[WPK_AXES_MAX] = {0};
    if (m < 2 || !recognise(&w, m) || w.pair_count + w.old.rank > WPK_RANK_MAX - 1) {
        return WPK_EUNSUPPORTED;
    }
    snprintf(w.stem, sizeof(w.stem), "%.30s", program->tensors[w.old.output].name);
    if (program->tensors[w.old.output].role == WPK_ROLE_OUTPUT) {
        wpk_err err = wpk_derive_copy_after(program, w.stage);
        return err == WPK_OK ? wpk_derive_winograd(program, m) : err;
    }
    wpk_err err = add_matrices(&w);
    if (err != WPK_OK) {
        return err;
    }
    int u = build_weight_transform(&w, u_axis_of);
    int v = u < 0 ? -1 : build_data_transform(&w, v_axis_of);
    int products = v < 0 ? -1 : build_products(&w, u, u_axis_of, v, v_axis_of, m_axis_of);
    int tiles = products < 0 ? -1 : build_output_transform(&w, products);
    if (tiles < 0) {
        return WPK_ENOSPC;
    }
    struct use_tiles use = {.w = &w, .tiles = tiles, .m_axis_of = m_axis_of};
    err = wpk_rewrite_all(program, w.stage, load_from_tiles, &use);
    return err == WPK_OK ? wpk_program_tidy(program) : err;
}
