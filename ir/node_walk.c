/* SPDX-License-Identifier: Apache-2.0 */
/* Going through expressions: visiting, collecting loads, copying between programs. */
#include "ir/node.h"

#include <stdlib.h>
#include <string.h>

/* True if the node has operand number `i`. */
static bool has_arg(const struct wpk_node *node, int i)
{
    return i < 3 && node->arg[i] >= 0;
}

/* Walk the loads that an index is made of. */
static void walk_data(const struct wpk_program *program, int index, wpk_node_visit visit,
                      void *user)
{
    const struct wpk_node *at = &program->nodes[index];
    for (int i = 0; has_arg(at, i); i++) {
        walk_data(program, at->arg[i], visit, user);
    }
    if (at->kind == WPK_NODE_LOAD) {
        wpk_node_walk(program, index, false, visit, user);
    }
}

void wpk_node_walk(const struct wpk_program *program, int node, bool into_indices,
                   wpk_node_visit visit, void *user)
{
    WPK_ASSERT(node >= 0 && node < program->node_count);
    const struct wpk_node *at = &program->nodes[node];
    for (int i = 0; has_arg(at, i); i++) {
        wpk_node_walk(program, at->arg[i], into_indices, visit, user);
    }
    for (int d = 0; at->kind == WPK_NODE_LOAD && d < program->tensors[at->tensor].rank; d++) {
        if (into_indices) {
            wpk_node_walk(program, at->index[d], into_indices, visit, user);
        } else {
            walk_data(program, at->index[d], visit, user);
        }
    }
    if (at->kind == WPK_NODE_LOAD && into_indices && at->outside >= 0) {
        wpk_node_walk(program, at->outside, into_indices, visit, user);
    }
    visit(program, node, user);
}

void wpk_node_mark_axis(const struct wpk_program *program, int node, void *user)
{
    bool *used = user;
    if (program->nodes[node].kind == WPK_NODE_AXIS) {
        used[program->nodes[node].axis] = true;
    }
}

/* Of nodes that are not marked in `seen` yet. */
static bool find_axis(const struct wpk_program *program, int node, unsigned char *seen)
{
    const struct wpk_node *at = &program->nodes[node];
    unsigned char bit = (unsigned char)(1U << (node % 8));
    bool found = at->kind == WPK_NODE_AXIS ||
                 (at->kind == WPK_NODE_LOAD && wpk_program_writer(program, at->tensor) >= 0 &&
                  !wpk_dtype_is_float(program->tensors[at->tensor].dtype));
    if ((seen[node / 8] & bit) != 0) {
        return false;
    }
    seen[node / 8] |= bit;
    for (int i = 0; has_arg(at, i) && !found; i++) {
        found = find_axis(program, at->arg[i], seen);
    }
    return found;
}

bool wpk_node_has_axis(const struct wpk_program *program, int node)
{
    unsigned char seen[WPK_EXPANDED_NODES_MAX / 8 + 1];
    memset(seen, 0, (size_t)node / 8 + 1);
    return find_axis(program, node, seen);
}

struct collection {
    int *loads;
    int max;
    int count;
    unsigned char seen[WPK_EXPANDED_NODES_MAX / 8 + 1];
};

static void collect(const struct wpk_program *program, int node, struct collection *collection)
{
    const struct wpk_node *at = &program->nodes[node];
    unsigned char bit = (unsigned char)(1U << (node % 8));
    if ((collection->seen[node / 8] & bit) != 0) {
        return;
    }
    collection->seen[node / 8] |= bit;
    for (int i = 0; has_arg(at, i); i++) {
        collect(program, at->arg[i], collection);
    }
    for (int d = 0; at->kind == WPK_NODE_LOAD && d < program->tensors[at->tensor].rank; d++) {
        collect(program, at->index[d], collection);
    }
    if (at->kind == WPK_NODE_LOAD) {
        if (collection->count < collection->max) {
            collection->loads[collection->count] = node;
        }
        collection->count++;
    }
}

int wpk_stage_loads(const struct wpk_program *program, const struct wpk_stage *stage, int *loads,
                    int max)
{
    struct collection collection;
    collection.loads = loads;
    collection.max = max;
    collection.count = 0;
    memset(collection.seen, 0, (size_t)stage->expr / 8 + 1);
    collect(program, stage->expr, &collection);
    return collection.count < max ? collection.count : max;
}

double wpk_stage_points_of(const struct wpk_stage *stage, int first, int end)
{
    double points = 1;
    for (int a = first; a < end; a++) {
        points *= (double)stage->axes[a].extent;
    }
    return points;
}

double wpk_stage_points(const struct wpk_stage *stage)
{
    return wpk_stage_points_of(stage, 0, stage->axis_count);
}

double wpk_stage_terms(const struct wpk_stage *stage)
{
    return wpk_stage_points_of(stage, stage->rank, stage->axis_count);
}

struct wpk_loads wpk_loads_of(const struct wpk_program *program, const struct wpk_stage *stage)
{
    struct wpk_loads loads;
    loads.program = program;
    loads.stage = stage;
    loads.reader = loads.last = -1;
    loads.at = -1;
    loads.count = wpk_stage_loads(program, stage, loads.ids, WPK_LOADS_MAX);
    return loads;
}

struct wpk_loads wpk_loads_in(const struct wpk_program *program)
{
    struct wpk_loads loads;
    loads.program = program;
    loads.reader = -1;
    loads.last = program->stage_count - 1;
    loads.at = -1;
    loads.count = 0;
    return loads;
}

bool wpk_loads_next(struct wpk_loads *loads)
{
    const struct wpk_program *program = loads->program;
    while (++loads->at >= loads->count) {
        if (loads->reader >= loads->last) {
            return false;
        }
        loads->stage = &program->stages[++loads->reader];
        loads->count = wpk_stage_loads(program, loads->stage, loads->ids, WPK_LOADS_MAX);
        loads->at = -1;
    }
    loads->id = loads->ids[loads->at];
    loads->node = &program->nodes[loads->id];
    return true;
}

int wpk_program_only_load(const struct wpk_program *program, int tensor, int *load)
{
    int reader = -1;
    for (struct wpk_loads it = wpk_loads_in(program); wpk_loads_next(&it);) {
        if (it.node->tensor == tensor) {
            if (reader >= 0) {
                return -1;
            }
            reader = it.reader;
            *load = it.id;
        }
    }
    return reader;
}

bool wpk_program_loads_fit(const struct wpk_program *program)
{
    for (int s = 0; s < program->stage_count; s++) {
        int loads[WPK_LOADS_MAX + 1];
        if (wpk_stage_loads(program, &program->stages[s], loads, WPK_LOADS_MAX + 1) >
            WPK_LOADS_MAX) {
            return false;
        }
    }
    return true;
}

/* ---- copying */

struct copying {
    struct wpk_program *to;
    const struct wpk_program *from;
    const int *tensor_map;
    const int *axis_map;
    int *done; /* [nodes below the root] id in `to`, or -2: keeps sharing, bounds the work */
};

static int copy_node(const struct copying *copying, int node);

static int copy_load(const struct copying *copying, const struct wpk_node *load)
{
    int index[WPK_RANK_MAX];
    int outside = -1;
    for (int d = 0; d < copying->from->tensors[load->tensor].rank; d++) {
        index[d] = copy_node(copying, load->index[d]);
        if (index[d] < 0) {
            return -1;
        }
    }
    if (load->outside >= 0) {
        outside = copy_node(copying, load->outside);
        if (outside < 0) {
            return -1;
        }
    }
    int tensor = copying->tensor_map == NULL ? load->tensor : copying->tensor_map[load->tensor];
    return wpk_node_load(copying->to, tensor, index, outside);
}

static int copy_inner(const struct copying *copying, const struct wpk_node *old)
{
    int arg[3] = {-1, -1, -1};
    for (int i = 0; has_arg(old, i); i++) {
        arg[i] = copy_node(copying, old->arg[i]);
    }
    switch (old->kind) {
    case WPK_NODE_LITERAL:
        return wpk_node_append(copying->to, old);
    case WPK_NODE_AXIS:
        return copying->axis_map == NULL ? wpk_node_axis(copying->to, old->axis)
                                         : copying->axis_map[old->axis];
    case WPK_NODE_LOAD:
        return copy_load(copying, old);
    default:
        return wpk_node_remake(copying->to, old, arg);
    }
}

static int copy_node(const struct copying *copying, int node)
{
    if (copying->done[node] == -2) {
        /* by value: the array moves when both programs are the same one */
        struct wpk_node old = copying->from->nodes[node];
        copying->done[node] = copy_inner(copying, &old);
    }
    return copying->done[node];
}

int wpk_node_copy(struct wpk_program *to, const struct wpk_program *from, int node,
                  const int *tensor_map, const int *axis_map)
{
    if (node < 0) {
        return -1;
    }
    WPK_ASSERT(node < from->node_count);
    int *done = malloc(((size_t)node + 1) * sizeof *done); /* children have smaller ids */
    if (done == NULL) {
        to->full = to->starved = true;
        return -1;
    }
    for (int i = 0; i <= node; i++) {
        done[i] = -2;
    }
    struct copying copying = {to, from, tensor_map, axis_map, done};
    int copy = copy_node(&copying, node);
    free(done);
    return copy;
}
