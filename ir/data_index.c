/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/data_index.h"

bool wpk_index_is_data(const struct wpk_program *program, int index)
{
    const struct wpk_node *node = &program->nodes[index];

    switch (node->kind) {
    case WPK_NODE_LOAD:
        return true;
    case WPK_NODE_CAST:
        return wpk_index_is_data(program, node->arg[0]);
    case WPK_NODE_BINARY:
        return wpk_index_is_data(program, node->arg[0]) || wpk_index_is_data(program, node->arg[1]);
    default:
        return false;
    }
}

bool wpk_load_gathers(const struct wpk_program *program, const struct wpk_node *load)
{
    bool gathers = false;

    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        gathers = gathers || wpk_index_is_data(program, load->index[d]);
    }
    return gathers;
}

/* A search for loads that are indexed by data and read `tensor`, itself or in their indices. */
struct search {
    int tensor; /* -1: any */
    bool found;
};

static bool reads(const struct wpk_program *program, int node, int tensor)
{
    const struct wpk_node *at = &program->nodes[node];

    return at->kind == WPK_NODE_LOAD   ? at->tensor == tensor
           : at->kind == WPK_NODE_CAST ? reads(program, at->arg[0], tensor)
           : at->kind == WPK_NODE_BINARY
               ? reads(program, at->arg[0], tensor) || reads(program, at->arg[1], tensor)
               : false;
}

static void look(const struct wpk_program *program, int node, void *user)
{
    const struct wpk_node *at = &program->nodes[node];
    struct search *search = user;

    if (at->kind != WPK_NODE_LOAD || !wpk_load_gathers(program, at)) {
        return;
    }
    search->found = search->found || search->tensor < 0 || at->tensor == search->tensor;
    for (int d = 0; d < program->tensors[at->tensor].rank; d++) {
        search->found = search->found || reads(program, at->index[d], search->tensor);
    }
}

bool wpk_stage_gathers(const struct wpk_program *program, const struct wpk_stage *stage)
{
    struct search search = {.tensor = -1};

    wpk_node_walk(program, stage->expr, false, look, &search);
    return search.found;
}

bool wpk_program_gathers(const struct wpk_program *program)
{
    bool gathers = false;

    for (int s = 0; s < program->stage_count; s++) {
        gathers = gathers || wpk_stage_gathers(program, &program->stages[s]);
    }
    return gathers;
}

bool wpk_tensor_gathers(const struct wpk_program *program, int tensor)
{
    struct search search = {.tensor = tensor};

    for (int s = 0; s < program->stage_count; s++) {
        wpk_node_walk(program, program->stages[s].expr, false, look, &search);
    }
    return search.found;
}

/* ---- bounds */

/* The bounds of one tensor's elements. */
struct finding {
    int tensor;
    const struct wpk_stage *stage;
    struct wpk_index_bound *out;
    int count;
};

/* The elements that a load reads: of one that is not affine, or may leave its tensor, all. */
static void find_elements(const struct wpk_program *program, const struct wpk_stage *stage,
                          int load, struct wpk_index_bound *out)
{
    const struct wpk_node *at = &program->nodes[load];
    const struct wpk_tensor *tensor = &program->tensors[at->tensor];
    int64_t dense = 1, coefficient[WPK_AXES_MAX] = {0};
    bool known = !wpk_load_may_leave(program, stage, load);
    struct wpk_affine affine;

    *out = (struct wpk_index_bound){.axis_count = 0};
    for (int d = tensor->rank - 1; d >= 0; d--) {
        known = known && wpk_index_affine(program, at->index[d], &affine);
        for (int a = 0; known && a < stage->axis_count; a++) {
            coefficient[a] += affine.coefficient[a] * dense;
        }
        out->first += known ? affine.constant * dense : 0;
        dense *= tensor->extent[d];
    }
    for (int a = 0; known && a < stage->axis_count; a++) {
        if (coefficient[a] != 0 && stage->axes[a].extent > 1) {
            out->stride[out->axis_count] = coefficient[a];
            out->extent[out->axis_count++] = stage->axes[a].extent;
        }
    }
    if (!known || !wpk_index_bound_fits(out, dense)) {
        *out = (struct wpk_index_bound){.axis_count = 1, .stride = {1}, .extent = {dense}};
    }
}

static bool is_same(const struct wpk_index_bound *a, const struct wpk_index_bound *b)
{
    bool same = a->first == b->first && a->axis_count == b->axis_count;

    for (int i = 0; same && i < a->axis_count; i++) {
        same = a->stride[i] == b->stride[i] && a->extent[i] == b->extent[i];
    }
    return same;
}

/* Let the value that an element of the tensor makes of the index be in [low, high]. */
static void limit(const struct wpk_program *program, struct finding *f, int index, int64_t low,
                  int64_t high)
{
    const struct wpk_node *at = &program->nodes[index];
    struct wpk_index_bound bound;
    int64_t first = 0, last = 0;

    if (at->kind == WPK_NODE_CAST) {
        limit(program, f, at->arg[0], low, high);
    } else if (at->kind == WPK_NODE_BINARY && at->op == WPK_BINARY_ADD) {
        int data = wpk_index_is_data(program, at->arg[0]) ? 0 : 1;
        wpk_index_range(program, f->stage, at->arg[1 - data], &first, &last);
        limit(program, f, at->arg[data], low - first, high - last);
    } else if (at->kind == WPK_NODE_LOAD && at->tensor == f->tensor) {
        find_elements(program, f->stage, index, &bound);
        bound.low = low;
        bound.high = high;
        /* Elements that are read twice have the narrower bound. */
        int i = 0;
        while (i < f->count && !is_same(&f->out[i], &bound)) {
            i++;
        }
        if (i == f->count && f->count < WPK_INDEX_BOUNDS_MAX) {
            f->out[f->count++] = bound;
        } else if (i < f->count) {
            f->out[i].low = bound.low > f->out[i].low ? bound.low : f->out[i].low;
            f->out[i].high = bound.high < f->out[i].high ? bound.high : f->out[i].high;
        }
    }
}

static void find_remainders(const struct wpk_program *program, struct finding *f, int index)
{
    const struct wpk_node *at = &program->nodes[index];

    if (at->kind != WPK_NODE_BINARY) {
        return;
    }
    if (at->op == WPK_BINARY_MOD) {
        int64_t divisor = program->nodes[at->arg[1]].integer;
        limit(program, f, at->arg[0], -divisor, divisor - 1);
    }
    find_remainders(program, f, at->arg[0]);
    find_remainders(program, f, at->arg[1]);
}

static void find_bounds(const struct wpk_program *program, int node, void *user)
{
    const struct wpk_node *at = &program->nodes[node];
    int rank = at->kind == WPK_NODE_LOAD ? program->tensors[at->tensor].rank : 0;

    for (int d = 0; d < rank; d++) {
        find_remainders(program, user, at->index[d]);
    }
}

int wpk_index_bounds(const struct wpk_program *program, int tensor, struct wpk_index_bound *out)
{
    struct finding f = {.tensor = tensor, .out = out};

    for (int s = 0; s < program->stage_count && !wpk_dtype_is_float(program->tensors[tensor].dtype);
         s++) {
        f.stage = &program->stages[s];
        wpk_node_walk(program, f.stage->expr, false, find_bounds, &f);
    }
    return f.count;
}

bool wpk_index_bound(const struct wpk_program *program, int tensor, int64_t *low, int64_t *high)
{
    struct wpk_index_bound bounds[WPK_INDEX_BOUNDS_MAX];
    int count = wpk_index_bounds(program, tensor, bounds);

    *low = INT64_MIN;
    *high = INT64_MAX;
    for (int i = 0; i < count; i++) {
        *low = bounds[i].low > *low ? bounds[i].low : *low;
        *high = bounds[i].high < *high ? bounds[i].high : *high;
    }
    return count > 0;
}
