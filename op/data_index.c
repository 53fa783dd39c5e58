/* SPDX-License-Identifier: Apache-2.0 */
#include "op/data_index.h"

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

/* What a walk looks for. */
struct search {
    int tensor; /* -1: any */
    const struct wpk_stage *stage;
    bool found;
    int64_t low, high;
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

/* Let the value that an element of the tensor makes of the index be in [low, high]. */
static void limit(const struct wpk_program *program, struct search *search, int index, int64_t low,
                  int64_t high)
{
    const struct wpk_node *at = &program->nodes[index];
    int64_t first = 0, last = 0;

    if (at->kind == WPK_NODE_CAST) {
        limit(program, search, at->arg[0], low, high);
    } else if (at->kind == WPK_NODE_BINARY && at->op == WPK_BINARY_ADD) {
        int data = wpk_index_is_data(program, at->arg[0]) ? 0 : 1;
        wpk_index_range(program, search->stage, at->arg[1 - data], &first, &last);
        limit(program, search, at->arg[data], low - first, high - last);
    } else if (at->kind == WPK_NODE_LOAD && at->tensor == search->tensor) {
        search->found = true;
        search->low = low > search->low ? low : search->low;
        search->high = high < search->high ? high : search->high;
    }
}

static void find_remainders(const struct wpk_program *program, struct search *search, int index)
{
    const struct wpk_node *at = &program->nodes[index];

    if (at->kind != WPK_NODE_BINARY) {
        return;
    }
    if (at->op == WPK_BINARY_MOD) {
        int64_t divisor = program->nodes[at->arg[1]].integer;
        limit(program, search, at->arg[0], -divisor, divisor - 1);
    }
    find_remainders(program, search, at->arg[0]);
    find_remainders(program, search, at->arg[1]);
}

static void find_bound(const struct wpk_program *program, int node, void *user)
{
    const struct wpk_node *at = &program->nodes[node];
    int rank = at->kind == WPK_NODE_LOAD ? program->tensors[at->tensor].rank : 0;

    for (int d = 0; d < rank; d++) {
        find_remainders(program, user, at->index[d]);
    }
}

bool wpk_index_bound(const struct wpk_program *program, int tensor, int64_t *low, int64_t *high)
{
    struct search search = {.tensor = tensor, .low = INT64_MIN, .high = INT64_MAX};

    for (int s = 0; s < program->stage_count && !wpk_dtype_is_float(program->tensors[tensor].dtype);
         s++) {
        search.stage = &program->stages[s];
        wpk_node_walk(program, search.stage->expr, false, find_bound, &search);
    }
    *low = search.low;
    *high = search.high;
    return search.found;
}
