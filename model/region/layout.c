/* SPDX-License-Identifier: Apache-2.0 */
/* Values that pointwise nodes read and compute at the same element form a class, and have one
 * order. A class is stored with channels last if a window touches it, and nothing needs it as it
 * is written: it is no input or output of the model, and no part of another value's memory. Steps
 * whose operands have two orders are slower, so a class stays as it is written, too, if more of
 * what its steps touch does. */
#include "model/region/region.h"

#include "model/operator/mapping.h"

#include <stdlib.h>
#include <string.h>

#define CHANNELS 1 /* the dimension that goes last */
#define RANK_MIN 3

struct layouts {
    struct wpk_graph *graph;
    int *parent;     /* owned; [value_count] union-find */
    bool *is_kept;   /* owned; [value_count] of a class's root: stays as it is written */
    bool *is_window; /* owned; [value_count] of a class's root: a window touches it */
    bool *is_stored; /* owned; [value_count] lies in memory between steps */
    int *last; /* owned; [value_count] the value with channels last that is stored; -1: none */
    int value_count; /* of the graph as it was */
};

static void layouts_init(struct layouts *l, struct wpk_graph *graph)
{
    size_t count = (size_t)graph->value_count + 1;

    *l = (struct layouts){.graph = graph, .value_count = graph->value_count};
    l->parent = WPK_DEMAND(calloc(count, sizeof(*l->parent)));
    l->is_kept = WPK_DEMAND(calloc(count, sizeof(*l->is_kept)));
    l->is_window = WPK_DEMAND(calloc(count, sizeof(*l->is_window)));
    l->is_stored = WPK_DEMAND(calloc(count, sizeof(*l->is_stored)));
    l->last = WPK_DEMAND(calloc(count, sizeof(*l->last)));
    for (int v = 0; v < graph->value_count; v++) {
        l->parent[v] = v;
        l->last[v] = -1;
    }
}

/* ---- classes */

static int find(const struct layouts *l, int value)
{
    while (l->parent[value] != value) {
        value = l->parent[value];
    }
    return value;
}

static void unite(struct layouts *l, int a, int b)
{
    a = find(l, a);
    b = find(l, b);
    if (a != b) {
        l->is_kept[a] = l->is_kept[a] || l->is_kept[b];
        l->is_window[a] = l->is_window[a] || l->is_window[b];
        l->parent[b] = a;
    }
}

/* True if a load of the node's program adds up axes in an index, or is reduced over channels. */
static bool is_window(const struct wpk_graph *graph, int node)
{
    const struct wpk_lowered *lowered = wpk_graph_lowered(graph, node);
    const struct wpk_program *p = lowered != NULL ? &lowered->program : NULL;
    if (p == NULL || !wpk_program_loads_fit(p)) {
        return false;
    }
    for (struct wpk_loads load = wpk_loads_in(p); wpk_loads_next(&load);) {
        int rank = p->tensors[load.node->tensor].rank;
        for (int d = 0; d < rank; d++) {
            struct wpk_affine affine;
            int axes = 0;
            bool is_affine = wpk_index_affine(p, load.node->index[d], &affine);
            for (int a = 0; is_affine && a < load.stage->axis_count; a++) {
                axes += affine.coefficient[a] != 0;
            }
            if (axes > 1) {
                return true;
            }
        }
        if (rank >= RANK_MIN && wpk_index_axis(p, load.node->index[CHANNELS]) >= load.stage->rank) {
            return true;
        }
    }
    return false;
}

/* A Concat of channels: its inputs can be parts of its output in both orders. */
static bool joins_channels(const struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    const struct wpk_operator *op = wpk_operator_find(node->op, node->domain);
    int rank = graph->values[node->outputs[0]].rank;
    int axis = -1;

    return op->kind == WPK_KIND_CONCAT && rank >= RANK_MIN &&
           wpk_operator_axis_of(node, 0, rank, &axis, NULL) == WPK_OK && axis == CHANNELS;
}

static void class_node(struct layouts *l, const struct wpk_graph_regions *regions, int node)
{
    const struct wpk_graph_node *n = &l->graph->nodes[node];
    int output = n->outputs[0];
    bool window = is_window(l->graph, node);
    bool joins = joins_channels(l->graph, n);
    bool is_view = (regions->uses[node].is_view && !joins) || regions->uses[node].is_host;

    for (int i = 0; i < n->input_count; i++) {
        int input = n->inputs[i];
        if (input < 0 || l->graph->values[input].data != NULL) {
            continue;
        }
        if (l->graph->values[input].rank == l->graph->values[output].rank &&
            (joins || wpk_graph_read_mapping(l->graph, node, input) == WPK_MAPPING_ONE_TO_ONE)) {
            unite(l, input, output);
        }
        l->is_window[find(l, input)] |= window;
        l->is_kept[find(l, input)] |= is_view;
    }
    l->is_window[find(l, output)] |= window;
    l->is_kept[find(l, output)] |= is_view;
}

static bool class_goes_last(const struct layouts *l, int root)
{
    return l->is_window[root] && !l->is_kept[root];
}

static bool goes_last(const struct layouts *l, int value)
{
    return l->is_stored[value] && class_goes_last(l, find(l, value));
}

/* ---- where orders meet */

/* True if the value has an order that could be another, or had to. */
static bool has_order(const struct wpk_graph_value *value)
{
    return !value->is_input && !value->is_output && value->data == NULL &&
           value->rank >= RANK_MIN && value->extent[CHANNELS] > 1;
}

/* Add to each class that goes last the elements that its steps read or write as they are written,
 * less those in its own order. */
static void weigh_step(const struct layouts *l, const struct wpk_graph_region_use *use,
                       int64_t *written)
{
    for (int i = 0; i < use->argument_count; i++) {
        int value = use->arguments[i].value;
        int root = find(l, value);
        for (int k = 0; class_goes_last(l, root) && k < use->argument_count; k++) {
            int other = use->arguments[k].value;
            const struct wpk_graph_value *v = &l->graph->values[other];
            if (has_order(v)) {
                int64_t elements = wpk_graph_elements(v);
                written[root] += class_goes_last(l, find(l, other)) ? -elements : elements;
            }
        }
    }
}

/* Keep classes as they are written where more around them is. */
static void settle(struct layouts *l, const struct wpk_graph_regions *regions)
{
    int64_t *written = WPK_DEMAND(calloc((size_t)l->value_count + 1, sizeof(*written)));
    bool changed = true;

    while (changed) {
        changed = false;
        memset(written, 0, (size_t)l->value_count * sizeof(*written));
        for (int n = 0; n < regions->use_count; n++) {
            weigh_step(l, &regions->uses[n], written);
        }
        for (int v = 0; v < l->value_count; v++) {
            if (class_goes_last(l, v) && written[v] > 0) {
                l->is_kept[v] = true;
                changed = true;
            }
        }
    }
    free(written);
}

/* ---- the graph with other orders */

/* Dimension d of the output of a Transpose is dimension order[d] of its input. */
static void find_order(int rank, bool to_last, int64_t *order)
{
    int count = 0;

    for (int d = 0; d < rank; d++) {
        order[d] = d;
    }
    if (to_last) {
        for (int d = 0; d < rank; d++) {
            if (d != CHANNELS) {
                order[count++] = d;
            }
        }
        order[count] = CHANNELS;
    } else {
        order[CHANNELS] = rank - 1;
        for (int d = CHANNELS + 1; d < rank; d++) {
            order[d] = d - 1;
        }
    }
}

/* Append a Transpose of `input`, without a name, and its output. */
static wpk_err add_transpose(struct layouts *l, int input, bool to_last, int *out)
{
    struct wpk_graph *graph = l->graph;
    struct wpk_arena *arena = &graph->arena;
    struct wpk_graph_node node = {.name = "",
                                  .op = "Transpose",
                                  .domain = "",
                                  .input_count = 1,
                                  .output_count = 1,
                                  .part_count = 1};
    struct wpk_graph_attribute *perm = WPK_ARENA_DEMAND(arena, struct wpk_graph_attribute, 1);
    int64_t *order = WPK_ARENA_DEMAND(arena, int64_t, WPK_RANK_MAX);
    int *ends = WPK_ARENA_DEMAND(arena, int, 2);

    wpk_err err = wpk_graph_add_value(graph, "", out);
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_graph_value *from = &graph->values[input];
    struct wpk_graph_value *to = &graph->values[*out];
    find_order(from->rank, to_last, order);
    *to = *from;
    to->name = "";
    to->writer = graph->node_count;
    to->is_read = true;
    to->is_stored = to_last;
    for (int d = 0; d < from->rank; d++) {
        to->extent[d] = from->extent[order[d]];
    }
    *perm = (struct wpk_graph_attribute){
        .name = "perm", .kind = WPK_ATTRIBUTE_INTS, .integers = order, .count = from->rank};
    ends[0] = input;
    ends[1] = *out;
    node.inputs = ends;
    node.outputs = ends + 1;
    node.attributes = perm;
    node.attribute_count = 1;
    return wpk_graph_add_node(graph, &node);
}

/* True if the node is a Concat of channels, and all its values are stored with them last. */
static bool joins_last(const struct layouts *l, const struct wpk_graph_node *node)
{
    bool joins = joins_channels(l->graph, node) && goes_last(l, node->outputs[0]);

    for (int i = 0; joins && i < node->input_count; i++) {
        int value = node->inputs[i];
        joins = value >= 0 && value < l->value_count && l->last[value] >= 0;
    }
    return joins;
}

/* Append the Concat of the values as they are stored. */
static wpk_err add_concat(struct layouts *l, const struct wpk_graph_node *node)
{
    struct wpk_graph *graph = l->graph;
    struct wpk_graph_node copy = *node;
    int output = node->outputs[0];
    int *ends = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)node->input_count + 1);
    struct wpk_graph_attribute *axis =
        WPK_ARENA_DEMAND(&graph->arena, struct wpk_graph_attribute, 1);
    int64_t order[WPK_RANK_MAX];

    for (int i = 0; i < node->input_count; i++) {
        ends[i] = l->last[node->inputs[i]];
    }
    wpk_err err = wpk_graph_add_value(graph, "", &l->last[output]);
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_graph_value from = graph->values[output];
    struct wpk_graph_value *to = &graph->values[l->last[output]];
    find_order(from.rank, true, order);
    *to = from;
    to->name = "";
    to->writer = graph->node_count;
    to->is_read = true;
    to->is_stored = true;
    for (int d = 0; d < from.rank; d++) {
        to->extent[d] = from.extent[order[d]];
    }
    graph->values[output].writer = -1;
    *axis = (struct wpk_graph_attribute){
        .name = "axis", .kind = WPK_ATTRIBUTE_INT, .integer = from.rank - 1, .tensor = -1};
    ends[node->input_count] = l->last[output];
    copy.inputs = ends;
    copy.outputs = ends + node->input_count;
    copy.attributes = axis;
    copy.attribute_count = 1;
    return wpk_graph_add_node(graph, &copy);
}

/* Append the node, with a Transpose before it for each input that is stored otherwise, and one
 * behind it. */
static wpk_err add_node(struct layouts *l, const struct wpk_graph_node *node)
{
    struct wpk_graph_node copy = *node;
    int *inputs = WPK_ARENA_DEMAND(&l->graph->arena, int, (size_t)node->input_count + 1);
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < node->input_count; i++) {
        int value = node->inputs[i];
        inputs[i] = value;
        for (int k = 0; k < i; k++) {
            inputs[i] = node->inputs[k] == value ? inputs[k] : inputs[i];
        }
        if (value >= 0 && value < l->value_count && l->last[value] >= 0 && inputs[i] == value) {
            err = add_transpose(l, l->last[value], false, &inputs[i]);
        }
    }
    if (err != WPK_OK) {
        return err;
    }
    copy.inputs = inputs;
    int output = node->outputs[0];
    l->graph->values[output].writer = l->graph->node_count;
    err = wpk_graph_add_node(l->graph, &copy);
    if (err == WPK_OK && goes_last(l, output)) {
        err = add_transpose(l, output, true, &l->last[output]);
    }
    return err;
}

static wpk_err transpose(struct layouts *l)
{
    struct wpk_graph *graph = l->graph;
    int count = 0;
    struct wpk_graph_node *nodes = wpk_graph_take_nodes(graph, &count);
    wpk_err err = WPK_OK;

    for (int n = 0; err == WPK_OK && n < count; n++) {
        err = joins_last(l, &nodes[n]) ? add_concat(l, &nodes[n]) : add_node(l, &nodes[n]);
    }
    free(nodes);
    return err;
}

wpk_err wpk_graph_layout(struct wpk_graph *graph, struct wpk_graph_regions *out,
                         struct wpk_diag *diag)
{
    struct layouts l;
    bool any = false;

    wpk_err err = wpk_graph_regions_find(graph, out, diag);
    if (err != WPK_OK) {
        return err;
    }
    layouts_init(&l, graph);
    for (int n = 0; n < l.graph->node_count; n++) {
        class_node(&l, out, n);
        for (int i = 0; i < out->uses[n].argument_count; i++) {
            l.is_stored[out->uses[n].arguments[i].value] = true;
        }
    }
    for (int v = 0; v < l.value_count; v++) {
        l.is_kept[find(&l, v)] |= !has_order(&l.graph->values[v]);
    }
    settle(&l, out);
    for (int v = 0; v < l.value_count; v++) {
        any = any || goes_last(&l, v);
    }
    if (any) {
        err = transpose(&l);
        if (err == WPK_OK) {
            wpk_graph_regions_fini(out);
            err = wpk_graph_regions_find(graph, out, diag);
        }
    }
    free(l.parent);
    free(l.is_kept);
    free(l.is_window);
    free(l.is_stored);
    free(l.last);
    for (int pass = 0; err == WPK_OK && pass < 2; pass++) {
        err = pass == 0 ? wpk_graph_add_places(graph, out, &any)
                        : wpk_graph_add_borders(graph, out, &any, diag);
        if (err == WPK_OK && any) {
            wpk_graph_regions_fini(out);
            err = wpk_graph_regions_find(graph, out, diag);
        }
    }
    return err;
}
