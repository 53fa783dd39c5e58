/* SPDX-License-Identifier: Apache-2.0 */
#include "model/onnx/reader.h"

#include "model/operator/expansion.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of fields, from onnx.proto. */
enum { NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_GRAPH = 6 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { VALUE_NAME = 1 };

enum { CONDITION, THEN, ELSE, INPUTS }; /* of what the If becomes */

/* The GraphProto that is the attribute of this name.   errors  WPK_EPARSE  there is none */
static wpk_err find_branch(const struct wpk_onnx_reader *reader, struct wpk_protobuf node,
                           const char *name, struct wpk_protobuf *out)
{
    struct wpk_protobuf_field attribute;
    struct wpk_protobuf_field field;
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&node, &attribute)) {
        const char *found = "";
        struct wpk_protobuf graph = {0};
        if (attribute.number != NODE_ATTRIBUTE || attribute.wire != WPK_PROTOBUF_BYTES) {
            continue;
        }
        while (err == WPK_OK && wpk_protobuf_next(&attribute.bytes, &field)) {
            if (field.number == ATTRIBUTE_NAME) {
                err = wpk_onnx_text(reader, &field, &found);
            } else if (field.number == ATTRIBUTE_GRAPH && field.wire == WPK_PROTOBUF_BYTES) {
                graph = field.bytes;
            }
        }
        if (err == WPK_OK && strcmp(found, name) == 0 && graph.at != NULL) {
            *out = graph;
            return WPK_OK;
        }
    }
    return err == WPK_OK ? wpk_onnx_fail(reader, WPK_EPARSE, "it has no %s", name) : err;
}

/* The values that the branch's outputs are.   shape  out [count] */
static wpk_err find_outputs(struct wpk_onnx_reader *reader, struct wpk_protobuf graph, int *out,
                            int count)
{
    struct wpk_protobuf_field output;
    struct wpk_protobuf_field field;
    int found = 0;
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&graph, &output)) {
        const char *name = "";
        if (output.number != GRAPH_OUTPUT || output.wire != WPK_PROTOBUF_BYTES) {
            continue;
        }
        while (err == WPK_OK && wpk_protobuf_next(&output.bytes, &field)) {
            if (field.number == VALUE_NAME) {
                err = wpk_onnx_text(reader, &field, &name);
            }
        }
        if (err == WPK_OK && found == count) {
            return wpk_onnx_fail(reader, WPK_EPARSE, "a branch has more than its %d outputs",
                                 count);
        }
        if (err == WPK_OK && (!wpk_onnx_find_value(reader, name, &out[found]) || out[found] < 0)) {
            return wpk_onnx_fail(reader, WPK_EPARSE, "no node of its branch computes %s", name);
        }
        if (err == WPK_OK) {
            reader->graph->values[out[found++]].is_read = true;
        }
    }
    return err == WPK_OK && found < count
               ? wpk_onnx_fail(reader, WPK_EPARSE, "a branch has fewer than its %d outputs", count)
               : err;
}

/* Read the nodes of one branch.   shape  out [node->output_count] the values of its outputs */
static wpk_err read_branch(struct wpk_onnx_reader *reader, const struct wpk_graph_node *node,
                           struct wpk_protobuf message, bool wanted,
                           const struct wpk_onnx_parts *parts, int *out)
{
    const char *name = wanted ? "then_branch" : "else_branch";
    struct wpk_graph_guard *guard =
        WPK_ARENA_DEMAND(&reader->graph->arena, struct wpk_graph_guard, 1);
    const struct wpk_graph_guard *outer_guard = reader->guard;
    struct wpk_onnx_scope scope = {.caller = node, .outer = reader->scope};
    struct wpk_protobuf graph = {0};
    char where[sizeof(reader->where)];

    scope.prefix = wpk_graph_format(reader->graph, "%s/%s", node->name, wanted ? "then" : "else");
    *guard = (struct wpk_graph_guard){.condition = node->inputs[CONDITION], .wanted = wanted};
    memcpy(where, reader->where, sizeof(where));
    wpk_err err = find_branch(reader, message, name, &graph);
    reader->scope = &scope;
    reader->guard = guard;
    err = err == WPK_OK ? wpk_onnx_read_parts(reader, graph, GRAPH_INITIALIZER, parts->initializer)
                        : err;
    err = err == WPK_OK ? wpk_onnx_read_parts(reader, graph, GRAPH_NODE, parts->node) : err;
    if (err == WPK_OK) {
        memcpy(reader->where, where, sizeof(where));
        err = find_outputs(reader, graph, out, node->output_count);
    }
    reader->scope = scope.outer;
    reader->guard = outer_guard;
    return err;
}

/* Add the node that chooses output `index`. */
static wpk_err add_choice(struct wpk_onnx_reader *reader, const struct wpk_graph_node *node,
                          int index, int then_value, int else_value)
{
    int *inputs = WPK_ARENA_DEMAND(&reader->graph->arena, int, INPUTS);
    struct wpk_graph_node choice = *node;

    inputs[CONDITION] = node->inputs[CONDITION];
    inputs[THEN] = then_value;
    inputs[ELSE] = else_value;
    choice.inputs = inputs;
    choice.input_count = INPUTS;
    choice.outputs = &node->outputs[index];
    choice.output_count = 1;
    choice.attribute_count = 0;
    if (choice.outputs[0] >= 0) {
        reader->graph->values[choice.outputs[0]].writer = reader->graph->node_count;
    }
    return wpk_graph_add_node(reader->graph, &choice);
}

wpk_err wpk_onnx_branch_read(struct wpk_onnx_reader *reader, const struct wpk_graph_node *node,
                             struct wpk_protobuf message, const struct wpk_onnx_parts *parts)
{
    int *values = WPK_ARENA_DEMAND(&reader->graph->arena, int, 2 * (size_t)node->output_count + 1);
    wpk_err err = wpk_onnx_count_call(reader);

    if (err == WPK_OK && (node->input_count != 1 || node->inputs[CONDITION] < 0)) {
        err = wpk_onnx_fail(reader, WPK_EPARSE, "it has no condition");
    }
    err = err == WPK_OK ? read_branch(reader, node, message, true, parts, values) : err;
    if (err == WPK_OK) {
        err = read_branch(reader, node, message, false, parts, values + node->output_count);
    }
    for (int i = 0; err == WPK_OK && i < node->output_count; i++) {
        if (node->outputs[i] >= 0) {
            err = add_choice(reader, node, i, values[i], values[node->output_count + i]);
        }
    }
    return err;
}

/* ---- bodies */

bool wpk_onnx_is_repeating(const struct wpk_graph_node *node)
{
    return node->domain[0] == '\0' &&
           (strcmp(node->op, "Loop") == 0 || strcmp(node->op, "Scan") == 0);
}

/* Add a value for each input of the body.   shape  out [count] */
static wpk_err add_inputs(struct wpk_onnx_reader *reader, struct wpk_protobuf graph, int *out)
{
    struct wpk_protobuf_field input;
    struct wpk_protobuf_field field;
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&graph, &input)) {
        const char *name = "";
        if (input.number != GRAPH_INPUT || input.wire != WPK_PROTOBUF_BYTES) {
            continue;
        }
        while (err == WPK_OK && wpk_protobuf_next(&input.bytes, &field)) {
            if (field.number == VALUE_NAME) {
                err = wpk_onnx_text(reader, &field, &name);
            }
        }
        name = wpk_onnx_scoped_name(reader, name);
        if (err == WPK_OK && wpk_graph_find(reader->graph, name) >= 0) {
            return wpk_onnx_fail(reader, WPK_EPARSE, "an input's name is given twice");
        }
        err = err == WPK_OK ? wpk_graph_add_value(reader->graph, name, out++) : err;
    }
    return err;
}

/* Take the nodes from `first` on out of the graph, each with one output where it has a program. */
static wpk_err take_body(struct wpk_graph *graph, int first, struct wpk_graph_body *out)
{
    struct wpk_graph own = *graph; /* with those nodes alone */
    size_t count = (size_t)(graph->node_count - first);

    own.nodes = WPK_DEMAND(calloc(count + 1, sizeof(*own.nodes)));
    memcpy(own.nodes, graph->nodes + first, count * sizeof(*own.nodes));
    own.node_count = (int)count;
    own.node_capacity = (int)count + 1;
    wpk_err err = wpk_graph_split_outputs(&own);
    graph->arena = own.arena;
    graph->node_count = first;
    struct wpk_graph_node *nodes =
        WPK_ARENA_DEMAND(&graph->arena, struct wpk_graph_node, (size_t)own.node_count + 1);
    for (int n = 0; err == WPK_OK && n < own.node_count; n++) {
        nodes[n] = own.nodes[n];
        for (int i = 0; i < nodes[n].output_count; i++) {
            if (nodes[n].outputs[i] >= 0) {
                graph->values[nodes[n].outputs[i]].writer = -1;
            }
        }
    }
    out->nodes = nodes;
    out->node_count = own.node_count;
    free(own.nodes);
    return err;
}

wpk_err wpk_onnx_body_read(struct wpk_onnx_reader *reader, const struct wpk_graph_node *node,
                           struct wpk_protobuf message, const struct wpk_onnx_parts *parts,
                           const struct wpk_graph_body **out)
{
    struct wpk_arena *arena = &reader->graph->arena;
    struct wpk_onnx_scope scope = {.caller = node, .outer = reader->scope};
    const struct wpk_graph_guard *guard = reader->guard;
    struct wpk_protobuf graph = {0};
    struct wpk_graph_body *body = WPK_ARENA_DEMAND(arena, struct wpk_graph_body, 1);
    int first = reader->graph->node_count;

    scope.prefix = wpk_graph_format(reader->graph, "%s/body", node->name);
    wpk_err err = wpk_onnx_count_call(reader);
    err = err == WPK_OK ? find_branch(reader, message, "body", &graph) : err;
    if (err != WPK_OK) {
        return err;
    }
    int inputs = wpk_onnx_count(graph, GRAPH_INPUT), outputs = wpk_onnx_count(graph, GRAPH_OUTPUT);
    int *values = WPK_ARENA_DEMAND(arena, int, (size_t)inputs + (size_t)outputs + 1);
    *body = (struct wpk_graph_body){.inputs = values,
                                    .input_count = inputs,
                                    .outputs = values + inputs,
                                    .output_count = outputs};
    reader->scope = &scope;
    reader->guard = NULL;
    err = wpk_onnx_read_parts(reader, graph, GRAPH_INITIALIZER, parts->initializer);
    err = err == WPK_OK ? add_inputs(reader, graph, values) : err;
    err = err == WPK_OK ? wpk_onnx_read_parts(reader, graph, GRAPH_NODE, parts->node) : err;
    err = err == WPK_OK ? find_outputs(reader, graph, values + inputs, outputs) : err;
    reader->scope = scope.outer;
    reader->guard = guard;
    err = err == WPK_OK ? take_body(reader->graph, first, body) : err;
    *out = body;
    return err;
}
