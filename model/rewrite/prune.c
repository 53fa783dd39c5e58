/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rewrite/rewrite.h"

#include "model/operator/lower.h"
#include "model/operator/mapping.h"
#include "model/operator/shape.h"

#include <stdlib.h>
#include <string.h>

/* Elements [begin, end) of dimension `dim`. */
struct range {
    int dim;
    int64_t begin;
    int64_t end;
};

struct pruning {
    struct wpk_graph *graph;
    int *uses; /* owned; [value_count] */
};

/* ---- dead nodes */

static wpk_err remove_dead(struct wpk_graph *graph)
{
    bool *needed = WPK_DEMAND(calloc((size_t)graph->value_count + 1, sizeof(*needed)));
    bool *alive = WPK_DEMAND(calloc((size_t)graph->node_count + 1, sizeof(*alive)));
    int count = 0;
    wpk_err err = WPK_OK;

    for (int i = 0; i < graph->output_count; i++) {
        needed[graph->outputs[i]] = true;
    }
    for (int n = graph->node_count - 1; n >= 0; n--) {
        const struct wpk_graph_node *node = &graph->nodes[n];
        alive[n] = needed[node->outputs[0]];
        for (int i = 0; alive[n] && i < node->input_count; i++) {
            if (node->inputs[i] >= 0) {
                needed[node->inputs[i]] = true;
            }
        }
    }
    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        if (alive[n]) {
            graph->values[graph->nodes[n].outputs[0]].writer = count;
            graph->nodes[count++] = graph->nodes[n];
        } else if (graph->values[graph->nodes[n].outputs[0]].data == NULL) {
            err = wpk_graph_add_note(graph, graph->nodes[n].name, "no output depends on it");
        }
    }
    if (err == WPK_OK) {
        graph->node_count = count;
    }
    free(needed);
    free(alive);
    return err;
}

/* ---- who takes a part */

static bool find_gathered(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                          struct range *out)
{
    const struct wpk_graph_value *x = wpk_graph_input(graph, node, 0);
    const struct wpk_graph_value *index = wpk_graph_input(graph, node, 1);

    if (index == NULL || index->data == NULL || wpk_graph_elements(index) != 1 ||
        wpk_dtype_is_float(index->dtype) ||
        wpk_operator_axis_of(node, 0, x->rank, &out->dim, NULL) != WPK_OK) {
        return false;
    }
    out->begin = wpk_graph_integer(index, 0);
    out->begin += out->begin < 0 ? x->extent[out->dim] : 0;
    out->end = out->begin + 1;
    return out->begin >= 0 && out->end <= x->extent[out->dim];
}

static bool find_sliced(const struct wpk_graph *graph, const struct wpk_graph_node *node,
                        struct range *out)
{
    const struct wpk_graph_value *x = wpk_graph_input(graph, node, 0);
    struct wpk_operator_slice slice;

    if (wpk_operator_slice(graph, node, &slice, NULL) != WPK_OK) {
        return false;
    }
    out->dim = -1;
    for (int d = 0; d < x->rank; d++) {
        bool is_whole = slice.start[d] == 0 && slice.count[d] == x->extent[d];
        if (slice.step[d] != 1 || (!is_whole && out->dim >= 0)) {
            return false;
        }
        if (!is_whole) {
            *out = (struct range){d, slice.start[d], slice.start[d] + slice.count[d]};
        }
    }
    return out->dim >= 0;
}

/* Find the range of input 0 that a node takes. False: the node does something else. */
static bool find_range(const struct wpk_graph *graph, int node, struct range *out)
{
    const struct wpk_graph_node *n = &graph->nodes[node];
    const struct wpk_operator *op = wpk_operator_find(n->op, n->domain);

    return n->inputs[0] >= 0 && graph->values[n->outputs[0]].data == NULL &&
           (op->kind == WPK_KIND_GATHER  ? find_gathered(graph, n, out)
            : op->kind == WPK_KIND_SLICE ? find_sliced(graph, n, out)
                                         : false);
}

/* The part of a value that its readers take together; false: one reads it otherwise, or all of it
 * is taken. */
static bool find_union(const struct pruning *p, int value, struct range *out)
{
    const struct wpk_graph *graph = p->graph;
    int seen = 0;

    for (int n = graph->values[value].writer + 1; n < graph->node_count && seen < p->uses[value];
         n++) {
        for (int i = 0; i < graph->nodes[n].input_count; i++) {
            struct range range;
            if (graph->nodes[n].inputs[i] != value) {
                continue;
            }
            if (i > 0 || !find_range(graph, n, &range) || (seen > 0 && range.dim != out->dim)) {
                return false;
            }
            *out = seen == 0 ? range : *out;
            out->begin = range.begin < out->begin ? range.begin : out->begin;
            out->end = range.end > out->end ? range.end : out->end;
            seen++;
        }
    }
    return seen > 0 && seen == p->uses[value] &&
           out->end - out->begin < graph->values[value].extent[out->dim];
}

/* ---- what is computed instead */

/* The bytes of a range of a constant.   owns  by the graph */
static wpk_err cut_constant(struct wpk_graph *graph, int value, const struct range *range, int *out)
{
    const struct wpk_graph_value from = graph->values[value];

    wpk_err err = wpk_graph_add_value(graph, "", out);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_graph_value *cut = &graph->values[*out];
    *cut = from;
    cut->name = "";
    cut->extent[range->dim] = range->end - range->begin;
    cut->size = (size_t)wpk_graph_elements(cut) * wpk_dtype_size(cut->dtype);
    size_t rows = (size_t)wpk_extents_product(cut->extent, range->dim);
    char *data = wpk_arena_demand(&graph->arena, cut->size, 1);
    cut->data = data;
    size_t each = from.size / rows / (size_t)from.extent[range->dim];
    for (size_t r = 0; r < rows; r++) {
        memcpy(data + r * (cut->size / rows),
               (const char *)from.data + r * (from.size / rows) + (size_t)range->begin * each,
               cut->size / rows);
    }
    return WPK_OK;
}

/* A Slice of an operand, to be put before the node.   shape  *out is its value */
static wpk_err slice_operand(struct wpk_graph *graph, int node, int value,
                             const struct range *range, struct wpk_graph_node *slice, int *out)
{
    int *outputs = WPK_ARENA_DEMAND(&graph->arena, int, 1);

    wpk_err err = wpk_graph_add_value(graph, "", out);
    if (err != WPK_OK) {
        return err;
    }
    graph->values[*out] = graph->values[value];
    graph->values[*out].name = "";
    graph->values[*out].is_input = false;
    graph->values[*out].is_output = false;
    graph->values[*out].extent[range->dim] = range->end - range->begin;
    outputs[0] = *out;
    struct wpk_graph_node of = graph->nodes[node];
    of.outputs = outputs;
    return wpk_graph_make_slice(graph, &of, value, range->dim, range->begin, range->end, slice);
}

/* A node that computes a range of its output alone, and the Slices before it. */
struct narrowed {
    struct wpk_graph_node node;
    struct wpk_graph_node slices[WPK_OPERATOR_INPUTS_MAX];
    int slice_count;
};

/* Replace the operands of which a range is read.
 *   shape   dims [operand_count] along which they are read
 *   errors  WPK_ENOENT  the node cannot */
static wpk_err narrow_operands(struct wpk_graph *graph, int node, const struct wpk_lowered *lowered,
                               const int *dims, const struct range *range, struct narrowed *out)
{
    int *inputs = WPK_ARENA_DEMAND(&graph->arena, int, (size_t)out->node.input_count);
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < out->node.input_count; i++) {
        struct range part = *range;
        int value = out->node.inputs[i];
        part.dim = -1;
        inputs[i] = value;
        for (int t = 0; t < lowered->operand_count; t++) {
            part.dim = lowered->operand[t] == value ? dims[t] : part.dim;
        }
        if (part.dim < 0) {
            continue;
        }
        if (graph->values[value].extent[part.dim] !=
            graph->values[out->node.outputs[0]].extent[range->dim]) {
            err = WPK_ENOENT;
        } else if (graph->values[value].data != NULL) {
            err = cut_constant(graph, value, &part, &inputs[i]);
        } else {
            err = slice_operand(graph, node, value, &part, &out->slices[out->slice_count],
                                &inputs[i]);
            out->slice_count++;
        }
    }
    out->node.inputs = inputs;
    return err;
}

/* The shape that a Reshape or Expand is given.   errors  WPK_ENOENT  it has none */
static wpk_err narrow_shape(struct wpk_graph *graph, const struct range *range,
                            struct narrowed *out)
{
    const struct wpk_operator *op = wpk_operator_find(out->node.op, out->node.domain);
    const struct wpk_graph_value *value = &graph->values[out->node.outputs[0]];
    int64_t extent[WPK_RANK_MAX];

    if (op->kind != WPK_KIND_RESHAPE && op->kind != WPK_KIND_EXPAND) {
        return WPK_OK;
    }
    if (out->node.input_count < 2) {
        return WPK_ENOENT;
    }
    memcpy(extent, value->extent, sizeof(extent));
    extent[range->dim] = range->end - range->begin;
    return wpk_graph_add_integers(graph, extent, value->rank, &((int *)out->node.inputs)[1]);
}

/* Make the node of a range.   errors  WPK_ENOENT  there is none, or it is not worth while */
static wpk_err narrow(struct wpk_graph *graph, int node, const struct range *range,
                      struct narrowed *out)
{
    int64_t whole = graph->values[graph->nodes[node].outputs[0]].extent[range->dim];
    int dims[WPK_TENSORS_MAX];
    const struct wpk_lowered *lowered = NULL;

    *out = (struct narrowed){.node = graph->nodes[node]};
    wpk_err err = wpk_graph_lower(graph, node, &lowered, NULL);
    if (err == WPK_OK && (!wpk_program_loads_fit(&lowered->program) ||
                          !wpk_trace_dims(&lowered->program, range->dim, dims))) {
        err = WPK_ENOENT;
    }
    err = err == WPK_OK ? narrow_operands(graph, node, lowered, dims, range, out) : err;
    if (err == WPK_OK && out->slice_count > 0 && 2 * (range->end - range->begin) > whole) {
        err = WPK_ENOENT; /* Slices would cost what is saved */
    }
    err = err == WPK_OK ? narrow_shape(graph, range, out) : err;
    return err == WPK_OK || err == WPK_ENOMEM ? err : WPK_ENOENT;
}

/* ---- the graph */

/* Put the narrowed node and its Slices in the node's place, if its shape is then as expected.
 *   errors  WPK_ENOENT  it is not */
static wpk_err put(struct wpk_graph *graph, int node, const struct range *range,
                   const struct narrowed *narrowed)
{
    const struct wpk_graph_node old = graph->nodes[node];
    struct wpk_graph_value whole = graph->values[old.outputs[0]];
    struct wpk_graph_value expected = whole;
    int count = 0;

    expected.extent[range->dim] = range->end - range->begin;
    graph->nodes[node] = narrowed->node;
    wpk_err err = wpk_graph_infer_node(graph, node, NULL);
    if (err == WPK_OK && !wpk_graph_same_shape(&graph->values[old.outputs[0]], &expected)) {
        err = WPK_ENOENT;
    }
    if (err != WPK_OK) {
        graph->nodes[node] = old;
        graph->values[old.outputs[0]] = whole;
        return err == WPK_ENOMEM ? err : WPK_ENOENT;
    }
    struct wpk_graph_node *nodes = wpk_graph_take_nodes(graph, &count);
    for (int n = 0; err == WPK_OK && n < count; n++) {
        for (int i = 0; n == node && err == WPK_OK && i < narrowed->slice_count; i++) {
            err = wpk_graph_add_node(graph, &narrowed->slices[i]);
        }
        err = err == WPK_OK ? wpk_graph_add_node(graph, &nodes[n]) : err;
    }
    wpk_graph_end_nodes(graph, nodes);
    return err;
}

/* Readers of a value that has become shorter, of `whole` elements, take their parts of what is
 * left. */
static wpk_err shift_readers(struct wpk_graph *graph, int value, const struct range *range,
                             int64_t whole)
{
    wpk_err err = WPK_OK;

    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        struct wpk_graph_node *node = &graph->nodes[n];
        struct range part;
        if (node->input_count == 0 || node->inputs[0] != value) {
            continue;
        }
        /* The node's range is one of the whole value. */
        graph->values[value].extent[range->dim] = whole;
        bool found = find_range(graph, n, &part);
        graph->values[value].extent[range->dim] = range->end - range->begin;
        WPK_ASSERT(found);
        if (wpk_operator_find(node->op, node->domain)->kind == WPK_KIND_GATHER) {
            int64_t index = part.begin - range->begin;
            int *inputs = WPK_ARENA_DEMAND(&graph->arena, int, 2);
            inputs[0] = value;
            err = wpk_graph_add_integers(graph, &index, 1, &inputs[1]);
            graph->values[inputs[1]].rank = graph->values[node->inputs[1]].rank;
            node->inputs = inputs;
        } else {
            err = wpk_graph_make_slice(graph, node, value, range->dim, part.begin - range->begin,
                                       part.end - range->begin, node);
        }
    }
    return err;
}

/* Compute of the node's output what is read.   errors  WPK_ENOENT  all of it is */
static wpk_err prune_node(struct pruning *p, int node)
{
    struct wpk_graph *graph = p->graph;
    int value = graph->nodes[node].outputs[0];
    struct range range;

    if (graph->values[value].is_output || graph->values[value].data != NULL ||
        !find_union(p, value, &range)) {
        return WPK_ENOENT;
    }
    int64_t whole = graph->values[value].extent[range.dim];
    struct narrowed *narrowed = WPK_DEMAND(calloc(1, sizeof(*narrowed)));
    wpk_err err = narrow(graph, node, &range, narrowed);
    err = err == WPK_OK ? put(graph, node, &range, narrowed) : err;
    free(narrowed);
    return err == WPK_OK ? shift_readers(graph, value, &range, whole) : err;
}

/* Let a slice of a Concat read the part that it lies in. */
static wpk_err read_part(struct wpk_graph *graph, int node)
{
    const struct wpk_graph_node *n = &graph->nodes[node];
    struct range range;

    if (!find_range(graph, node, &range) || graph->values[n->inputs[0]].writer < 0 ||
        wpk_operator_find(n->op, n->domain)->kind != WPK_KIND_SLICE) {
        return WPK_OK;
    }
    const struct wpk_graph_node *concat = &graph->nodes[graph->values[n->inputs[0]].writer];
    int axis = -1;
    int64_t begin = 0;
    if (wpk_operator_find(concat->op, concat->domain)->kind != WPK_KIND_CONCAT ||
        wpk_operator_axis_of(concat, 0, graph->values[n->inputs[0]].rank, &axis, NULL) != WPK_OK ||
        axis != range.dim) {
        return WPK_OK;
    }
    for (int i = 0; i < concat->input_count; i++) {
        int64_t end = begin + graph->values[concat->inputs[i]].extent[axis];
        if (range.begin >= begin && range.end <= end) {
            return wpk_graph_make_slice(graph, n, concat->inputs[i], axis, range.begin - begin,
                                        range.end - begin, &graph->nodes[node]);
        }
        begin = end;
    }
    return WPK_OK;
}

static void count_uses(struct pruning *p)
{
    free(p->uses);
    p->uses = wpk_graph_count_uses(p->graph);
}

/* From the last node on: the Slices that a node gets are readers of earlier ones. */
wpk_err wpk_graph_prune(struct wpk_graph *graph)
{
    struct pruning p = {.graph = graph};
    wpk_err err = remove_dead(graph);

    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        err = read_part(graph, n);
    }
    count_uses(&p);
    for (int n = graph->node_count - 1; err == WPK_OK && n >= 0; n--) {
        err = prune_node(&p, n);
        if (err == WPK_OK) {
            count_uses(&p);
        }
        err = err == WPK_ENOENT ? WPK_OK : err;
    }
    free(p.uses);
    return err == WPK_OK ? remove_dead(graph) : err;
}
