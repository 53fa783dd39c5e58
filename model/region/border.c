/* SPDX-License-Identifier: Apache-2.0 */
/* Values with something around them in memory: zeros that windows read, or the rest of a Concat. */
#include "model/region/region.h"

#include "ir/cost.h"
#include "schema/model_plan.h"

#include <stdlib.h>
#include <string.h>

/* Operations for each byte that a step touches. Beside more operations than these, a copy with a
 * border costs little, and rows that lie apart may cost more. */
#define INTENSITY_MAX 8.0
#define GROWTH_MAX 2.0 /* of a value by its border */

struct reach {
    int64_t before[WPK_RANK_MAX];
    int64_t after[WPK_RANK_MAX];
    bool is_cheap;  /* a step with little work reads beyond the ends */
    bool is_closed; /* no border is possible */
};

struct borders {
    struct wpk_graph *graph;
    const struct wpk_graph_regions *regions;
    struct reach *reach; /* owned; [value_count] */
};

/* Note how far a load leaves its tensor, which is a value. */
static void note_load(struct reach *reach, const struct wpk_program *p,
                      const struct wpk_stage *stage, int id, bool is_cheap)
{
    const struct wpk_node *load = &p->nodes[id];
    const struct wpk_tensor *tensor = &p->tensors[load->tensor];

    if (!wpk_load_may_leave(p, stage, id)) {
        return;
    }
    reach->is_closed = reach->is_closed || !wpk_load_is_zero_outside(p, load);
    reach->is_cheap = reach->is_cheap || is_cheap;
    for (int d = 0; d < tensor->rank; d++) {
        int64_t low = 0;
        int64_t high = 0;
        wpk_index_range(p, stage, load->index[d], &low, &high);
        int64_t before = -low;
        int64_t after = high - tensor->extent[d] + 1;
        reach->before[d] = before > reach->before[d] ? before : reach->before[d];
        reach->after[d] = after > reach->after[d] ? after : reach->after[d];
    }
}

static wpk_err note_step(struct borders *b, const struct wpk_graph_region_use *use,
                         struct wpk_diag *diag)
{
    struct wpk_lowered lowered;
    const struct wpk_program *p = &lowered.program;
    struct wpk_cost cost;

    wpk_err err = wpk_graph_fuse(b->graph, use->nodes, use->node_count, &lowered, diag);
    bool fits = err == WPK_OK && wpk_program_loads_fit(p);
    if (fits) {
        wpk_cost(p, &cost);
    }
    for (struct wpk_loads load = wpk_loads_in(p); fits && wpk_loads_next(&load);) {
        if (load.node->tensor < lowered.operand_count) {
            note_load(&b->reach[lowered.operand[load.node->tensor]], p, load.stage, load.id,
                      cost.flops < INTENSITY_MAX * cost.bytes_min);
        }
    }
    for (int i = 0; err == WPK_OK && !fits && i < lowered.operand_count; i++) {
        b->reach[lowered.operand[i]].is_closed = true;
    }
    wpk_lowered_fini(&lowered);
    return err;
}

/* How many times as large a value is with its border. */
static double growth(const struct wpk_graph_value *value, const struct reach *reach)
{
    double times = 1;

    for (int d = 0; d < value->rank; d++) {
        times *= 1 + (double)(reach->before[d] + reach->after[d]) / (double)value->extent[d];
    }
    return times;
}

/* Rows of whole cache lines: else vectors read past the end of each, and a copy is better. */
static bool has_whole_rows(const struct wpk_graph_value *value)
{
    return value->rank > 0 && value->extent[value->rank - 1] *
                                      (int64_t)wpk_dtype_size(value->dtype) %
                                      WPK_MODEL_PLAN_ALIGNMENT ==
                                  0;
}

/* Close values that no step writes, or that others than steps read. */
static void close_ends(struct borders *b)
{
    const struct wpk_graph *graph = b->graph;
    const struct wpk_graph_views *views = &b->regions->views;

    for (int v = 0; v < graph->value_count; v++) {
        const struct wpk_graph_value *value = &graph->values[v];
        bool is_step = value->writer >= 0 && b->regions->uses[value->writer].region >= 0;
        b->reach[v].is_closed =
            b->reach[v].is_closed || !is_step || value->is_output || !has_whole_rows(value);
        if (views->of[v] >= 0) {
            b->reach[v].is_closed = true;
            b->reach[views->of[v]].is_closed = true;
        }
    }
    for (int n = 0; n < graph->node_count; n++) {
        for (int i = 0; b->regions->uses[n].is_host && i < graph->nodes[n].input_count; i++) {
            if (graph->nodes[n].inputs[i] >= 0) {
                b->reach[graph->nodes[n].inputs[i]].is_closed = true;
            }
        }
    }
}

wpk_err wpk_graph_add_borders(struct wpk_graph *graph, const struct wpk_graph_regions *regions,
                              bool *any, struct wpk_diag *diag)
{
    struct borders b = {.graph = graph, .regions = regions};
    wpk_err err = WPK_OK;

    *any = false;
    b.reach = WPK_DEMAND(calloc((size_t)graph->value_count + 1, sizeof(*b.reach)));
    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        if (regions->uses[n].region >= 0) {
            err = note_step(&b, &regions->uses[n], diag);
        }
    }
    close_ends(&b);
    for (int v = 0; err == WPK_OK && v < graph->value_count; v++) {
        if (b.reach[v].is_cheap && !b.reach[v].is_closed &&
            growth(&graph->values[v], &b.reach[v]) <= GROWTH_MAX) {
            memcpy(graph->values[v].pad_before, b.reach[v].before, sizeof(b.reach[v].before));
            memcpy(graph->values[v].pad_after, b.reach[v].after, sizeof(b.reach[v].after));
            *any = true;
        }
    }
    free(b.reach);
    return err;
}

/* ---- parts of a Concat */

struct parts {
    struct wpk_graph *graph;
    const struct wpk_graph_regions *regions;
    bool *has_parts; /* owned; [value_count] others lie in its memory, or a host step reads it */
};

/* The axis of a Concat; -1: the node is none. */
static int concat_axis(const struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    const struct wpk_operator *op = wpk_operator_find(node->op, node->domain);
    int axis = -1;

    if (op->kind == WPK_KIND_CONCAT &&
        wpk_operator_axis_of(node, 0, graph->values[node->outputs[0]].rank, &axis, NULL) !=
            WPK_OK) {
        axis = -1;
    }
    return axis;
}

static bool are_parts(const struct parts *p, const struct wpk_graph_node *node, int axis)
{
    int64_t before = wpk_extents_product(p->graph->values[node->outputs[0]].extent, axis);

    for (int i = 0; i < node->input_count; i++) {
        /* A value that a step writes, and of which nothing else is known; kernels alone read it. */
        int value = node->inputs[i];
        const struct wpk_graph_value *v = &p->graph->values[value];
        bool has_pads = false;
        for (int d = 0; d < v->rank; d++) {
            has_pads = has_pads || v->pad_before[d] != 0 || v->pad_after[d] != 0;
        }
        if (!(v->writer >= 0 && v->data == NULL && !v->is_output && !has_pads &&
              p->regions->uses[v->writer].region >= 0 && p->regions->views.of[value] < 0 &&
              !p->has_parts[value])) {
            return false;
        }
        for (int k = 0; k < i; k++) {
            if (node->inputs[k] == node->inputs[i]) {
                return false;
            }
        }
    }
    return before > 1 && p->graph->values[node->outputs[0]].data == NULL;
}

wpk_err wpk_graph_add_places(struct wpk_graph *graph, const struct wpk_graph_regions *regions,
                             bool *any)
{
    struct parts p = {.graph = graph, .regions = regions};

    *any = false;
    p.has_parts = WPK_DEMAND(calloc((size_t)graph->value_count + 1, sizeof(*p.has_parts)));
    for (int v = 0; v < graph->value_count; v++) {
        if (regions->views.of[v] >= 0) {
            p.has_parts[regions->views.of[v]] = true;
        }
    }
    for (int n = 0; n < graph->node_count; n++) {
        for (int i = 0; regions->uses[n].is_host && i < graph->nodes[n].input_count; i++) {
            if (graph->nodes[n].inputs[i] >= 0) {
                p.has_parts[graph->nodes[n].inputs[i]] = true;
            }
        }
    }
    for (int n = 0; n < graph->node_count; n++) {
        const struct wpk_graph_node *node = &graph->nodes[n];
        int axis = concat_axis(graph, node);
        int64_t begin = 0;
        if (axis < 0 || regions->uses[n].is_view || !are_parts(&p, node, axis)) {
            continue;
        }
        for (int i = 0; i < node->input_count; i++) {
            struct wpk_graph_value *part = &graph->values[node->inputs[i]];
            int64_t end = begin + part->extent[axis];
            part->pad_before[axis] = begin;
            part->pad_after[axis] = graph->values[node->outputs[0]].extent[axis] - end;
            part->is_part = true;
            begin = end;
        }
        p.has_parts[node->outputs[0]] = true;
        *any = true;
    }
    free(p.has_parts);
    return WPK_OK;
}
