/* SPDX-License-Identifier: Apache-2.0 */
/* A GraphProto is read in passes, because the file has nodes before what they read: constants,
 * then inputs, nodes and outputs. */
#include "model/onnx/read.h"

#include "model/onnx/reader.h"
#include "model/operator/expansion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of fields, from onnx.proto. */
enum { MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum {
    GRAPH_NODE = 1,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_SPARSE = 15
};
enum { NODE_INPUT = 1, NODE_OUTPUT, NODE_NAME, NODE_OP, NODE_ATTRIBUTE, NODE_DOMAIN = 7 };
enum {
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_ELEMENT = 1,
    TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_PARAM = 2
};

/* ---- inputs and outputs */

static wpk_err read_dim(const struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                        struct wpk_graph_value *value)
{
    struct wpk_protobuf_field field;
    int64_t extent = 0;
    const char *free_dim = "";
    wpk_err err = WPK_OK;

    if (value->rank == WPK_RANK_MAX) {
        return wpk_onnx_fail(reader, WPK_EUNSUPPORTED, "more than %d dimensions", WPK_RANK_MAX);
    }
    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == DIM_VALUE && field.wire == WPK_PROTOBUF_VARINT) {
            extent = (int64_t)field.value;
        } else if (field.number == DIM_PARAM) {
            err = wpk_onnx_text(reader, &field, &free_dim);
        }
    }
    /* Exporters write 0 and -1, too, for what is not fixed. */
    bool is_fixed = extent > 0;
    if (err == WPK_OK && extent > WPK_ELEMENTS_MAX) {
        err = wpk_onnx_fail(reader, WPK_ERANGE, "an extent of %lld", (long long)extent);
    }
    value->free_dim[value->rank] = is_fixed ? NULL : free_dim;
    value->extent[value->rank++] = is_fixed ? extent : 0;
    return err == WPK_OK ? wpk_onnx_end(reader, &message) : err;
}

static wpk_err read_tensor_type(const struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                                struct wpk_graph_value *value)
{
    struct wpk_protobuf_field field;
    struct wpk_protobuf_field dim;
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == TENSOR_ELEMENT && field.wire == WPK_PROTOBUF_VARINT) {
            value->element_type = (int)(field.value & 0xffff);
        } else if (field.number == TENSOR_SHAPE && field.wire == WPK_PROTOBUF_BYTES) {
            value->is_shaped = true;
            while (err == WPK_OK && wpk_protobuf_next(&field.bytes, &dim)) {
                if (dim.number == SHAPE_DIM && dim.wire == WPK_PROTOBUF_BYTES) {
                    err = read_dim(reader, dim.bytes, value);
                }
            }
            err = err == WPK_OK ? wpk_onnx_end(reader, &field.bytes) : err;
        }
    }
    return err == WPK_OK ? wpk_onnx_end(reader, &message) : err;
}

/* Fill a value of its own with what a ValueInfoProto says. */
static wpk_err read_value_info(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                               struct wpk_graph_value *out)
{
    struct wpk_protobuf_field field;
    struct wpk_protobuf type = {0};
    wpk_err err = WPK_OK;

    *out = (struct wpk_graph_value){.name = "", .writer = -1};
    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == VALUE_NAME) {
            err = wpk_onnx_text(reader, &field, &out->name);
        } else if (field.number == VALUE_TYPE && field.wire == WPK_PROTOBUF_BYTES) {
            type = field.bytes;
        }
    }
    err = err == WPK_OK ? wpk_onnx_end(reader, &message) : err;
    snprintf(reader->where, sizeof(reader->where), "value %s", out->name);
    while (err == WPK_OK && wpk_protobuf_next(&type, &field)) {
        if (field.number == TYPE_TENSOR && field.wire == WPK_PROTOBUF_BYTES) {
            err = read_tensor_type(reader, field.bytes, out);
        }
    }
    return err == WPK_OK ? wpk_onnx_end(reader, &type) : err;
}

static void append(int **list, int *count, int value)
{
    *list = WPK_DEMAND(realloc(*list, (size_t)(*count + 1) * sizeof(int)));
    (*list)[(*count)++] = value;
}

static wpk_err read_input(struct wpk_onnx_reader *reader, struct wpk_protobuf message)
{
    struct wpk_graph *graph = reader->graph;
    struct wpk_graph_value info;
    int value = -1;

    wpk_err err = read_value_info(reader, message, &info);
    if (err != WPK_OK) {
        return err;
    }
    int known = wpk_graph_find(graph, info.name);
    if (known >= 0 && graph->values[known].data != NULL) {
        return WPK_OK; /* files before IR version 4 list their initializers as inputs */
    }
    if (known >= 0 || info.name[0] == '\0') {
        return wpk_onnx_fail(reader, WPK_EPARSE, "an input's name is empty or given twice");
    }
    err = wpk_graph_add_value(graph, info.name, &value);
    if (err == WPK_OK) {
        info.is_input = true;
        info.is_typed = wpk_graph_dtype(info.element_type, &info.dtype) == WPK_OK;
        graph->values[value] = info;
        append(&graph->inputs, &graph->input_count, value);
    }
    return err;
}

static wpk_err read_output(struct wpk_onnx_reader *reader, struct wpk_protobuf message)
{
    struct wpk_graph *graph = reader->graph;
    struct wpk_graph_value info;

    wpk_err err = read_value_info(reader, message, &info);
    int value = err == WPK_OK ? wpk_graph_find(graph, info.name) : -1;
    if (err == WPK_OK && value < 0) {
        err = wpk_onnx_fail(reader, WPK_EPARSE, "no node computes this output");
    }
    if (err == WPK_OK && graph->values[value].is_output) {
        err = wpk_onnx_fail(reader, WPK_EPARSE, "an output is listed twice");
    }
    if (err == WPK_OK) {
        graph->values[value].is_output = true;
        graph->values[value].element_type = info.element_type;
        append(&graph->outputs, &graph->output_count, value);
    }
    return err;
}

/* ---- nodes */

static wpk_err read_node_input(struct wpk_onnx_reader *reader,
                               const struct wpk_protobuf_field *field, int *out)
{
    const char *name;

    *out = -1;
    wpk_err err = wpk_onnx_text(reader, field, &name);
    if (err != WPK_OK) {
        return err;
    }
    if (name[0] != '\0' && !wpk_onnx_find_value(reader, name, out)) {
        return wpk_onnx_fail(reader, WPK_EPARSE,
                             "nothing before this node gives its input %s: the nodes form a cycle, "
                             "are not sorted, or one is missing",
                             name);
    }
    if (*out >= 0) {
        reader->graph->values[*out].is_read = true;
    }
    return WPK_OK;
}

static wpk_err read_node_output(struct wpk_onnx_reader *reader,
                                const struct wpk_protobuf_field *field, int *out)
{
    const char *name;

    *out = -1;
    wpk_err err = wpk_onnx_text(reader, field, &name);
    if (err != WPK_OK || name[0] == '\0') {
        return err;
    }
    struct wpk_onnx_formal *formal = wpk_onnx_formal_find(reader, name);
    if (formal != NULL && formal->is_output && !formal->is_given) {
        formal->is_given = true;
        *out = formal->value;
        reader->graph->values[*out].writer = reader->graph->node_count;
        return WPK_OK;
    }
    name = wpk_onnx_scoped_name(reader, name);
    if (wpk_graph_find(reader->graph, name) >= 0) {
        return wpk_onnx_fail(reader, WPK_EPARSE, "its output %s is given twice", name);
    }
    err = wpk_graph_add_value(reader->graph, name, out);
    if (err == WPK_OK) {
        reader->graph->values[*out].writer = reader->graph->node_count;
    }
    return err;
}

/* The names first: everything else that is wrong is reported with them. */
static wpk_err read_node_names(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                               struct wpk_graph_node *node)
{
    struct wpk_protobuf_field field;
    const char *first = "";
    wpk_err err = WPK_OK;

    *node = (struct wpk_graph_node){.name = "", .op = "", .domain = ""};
    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == NODE_NAME) {
            err = wpk_onnx_text(reader, &field, &node->name);
        } else if (field.number == NODE_OP) {
            err = wpk_onnx_text(reader, &field, &node->op);
        } else if (field.number == NODE_DOMAIN) {
            err = wpk_onnx_text(reader, &field, &node->domain);
        } else if (field.number == NODE_OUTPUT && first[0] == '\0') {
            err = wpk_onnx_text(reader, &field, &first);
        }
    }
    if (err == WPK_OK && node->name[0] == '\0') {
        node->name = first;
    }
    snprintf(reader->where, sizeof(reader->where), "node %s (%s)", node->name, node->op);
    return err == WPK_OK ? wpk_onnx_end(reader, &message) : err;
}

static void constant_of_numbers(struct wpk_graph *graph, struct wpk_graph_value *value,
                                const struct wpk_graph_attribute *attribute)
{
    bool is_real =
        attribute->kind == WPK_ATTRIBUTE_FLOAT || attribute->kind == WPK_ATTRIBUTE_FLOATS;
    bool is_list = attribute->kind == WPK_ATTRIBUTE_INTS || attribute->kind == WPK_ATTRIBUTE_FLOATS;
    size_t count = is_list ? (size_t)attribute->count : 1;
    size_t size = is_real ? sizeof(float) : sizeof(int64_t);
    void *copy = wpk_arena_demand(&graph->arena, count, size);
    const void *from = is_list ? (is_real ? (const void *)attribute->reals : attribute->integers)
                               : (is_real ? (const void *)&attribute->real : &attribute->integer);
    if (count > 0) {
        memcpy(copy, from, count * size);
    }
    value->dtype = is_real ? WPK_F32 : WPK_I64;
    value->is_typed = true;
    value->is_shaped = true;
    value->rank = is_list ? 1 : 0;
    value->extent[0] = (int64_t)count;
    value->data = copy;
    value->size = count * size;
}

/* A node Constant is no node: its output is constant data. */
static wpk_err take_constant(struct wpk_onnx_reader *reader, const struct wpk_graph_node *node)
{
    struct wpk_graph *graph = reader->graph;

    if (node->output_count != 1 || node->outputs[0] < 0 || node->attribute_count != 1) {
        return wpk_onnx_fail(reader, WPK_EPARSE, "a Constant has one output and one attribute");
    }
    const struct wpk_graph_attribute *attribute = &node->attributes[0];
    struct wpk_graph_value *value = &graph->values[node->outputs[0]];
    value->writer = -1;
    switch (attribute->kind) {
    case WPK_ATTRIBUTE_TENSOR: {
        const char *name = value->name;
        *value = graph->values[attribute->tensor];
        value->name = name;
        return WPK_OK;
    }
    case WPK_ATTRIBUTE_INT:
    case WPK_ATTRIBUTE_FLOAT:
    case WPK_ATTRIBUTE_INTS:
    case WPK_ATTRIBUTE_FLOATS:
        constant_of_numbers(graph, value, attribute);
        return WPK_OK;
    default:
        return wpk_onnx_fail(reader, WPK_EUNSUPPORTED, "its attribute %s", attribute->name);
    }
}

static wpk_err read_initializer(struct wpk_onnx_reader *reader, struct wpk_protobuf message)
{
    int value;

    return wpk_onnx_tensor(reader, message, false, &value);
}

static wpk_err read_node(struct wpk_onnx_reader *reader, struct wpk_protobuf message)
{
    const struct wpk_protobuf whole = message;
    struct wpk_arena *arena = &reader->graph->arena;
    struct wpk_protobuf_field field;
    struct wpk_graph_node node;

    wpk_err err = read_node_names(reader, message, &node);
    if (err != WPK_OK) {
        return err;
    }
    int *inputs = WPK_ARENA_DEMAND(arena, int, (size_t)wpk_onnx_count(message, NODE_INPUT));
    int *outputs = WPK_ARENA_DEMAND(arena, int, (size_t)wpk_onnx_count(message, NODE_OUTPUT));
    struct wpk_graph_attribute *attributes = WPK_ARENA_DEMAND(
        arena, struct wpk_graph_attribute, (size_t)wpk_onnx_count(message, NODE_ATTRIBUTE));
    node.inputs = inputs;
    node.outputs = outputs;
    node.attributes = attributes;
    /* An input that is the node's own output is a cycle: inputs are looked up before. */
    struct wpk_protobuf again = message;
    while (err == WPK_OK && wpk_protobuf_next(&again, &field)) {
        if (field.number == NODE_INPUT) {
            err = read_node_input(reader, &field, &inputs[node.input_count++]);
        }
    }
    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == NODE_OUTPUT) {
            err = read_node_output(reader, &field, &outputs[node.output_count++]);
        } else if (field.number == NODE_ATTRIBUTE && field.wire == WPK_PROTOBUF_BYTES) {
            struct wpk_graph_attribute *attribute = &attributes[node.attribute_count];
            err = wpk_onnx_attribute(reader, field.bytes, attribute);
            node.attribute_count += attribute->name[0] != '\0'; /* else the caller gives none */
        }
    }
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_onnx_function *function = wpk_onnx_function_find(reader, &node);
    if (function != NULL) {
        return wpk_onnx_function_call(reader, function, &node, read_node);
    }
    node.name = wpk_onnx_scoped_name(reader, node.name);
    node.guard = reader->guard;
    const struct wpk_onnx_parts parts = {read_initializer, read_node};
    if (wpk_onnx_is_repeating(&node)) {
        err = wpk_onnx_body_read(reader, &node, whole, &parts, &node.body);
        return err == WPK_OK ? wpk_graph_add_node(reader->graph, &node) : err;
    }
    if (wpk_graph_is_branching(&node)) {
        return wpk_onnx_branch_read(reader, &node, whole, &parts);
    }
    return strcmp(node.op, "Constant") == 0 && node.domain[0] == '\0'
               ? take_constant(reader, &node)
               : wpk_graph_add_node(reader->graph, &node);
}

/* ---- graph and model */

/* Read every part of the model's graph that is field `number`. */
static wpk_err read_parts(struct wpk_onnx_reader *reader, struct wpk_protobuf graph,
                          uint32_t number,
                          wpk_err (*read)(struct wpk_onnx_reader *, struct wpk_protobuf))
{
    wpk_err err = wpk_onnx_read_parts(reader, graph, number, read);

    return err == WPK_ENOSPC ? wpk_onnx_fail(reader, WPK_ERANGE, "more than %d nodes or %d values",
                                             WPK_GRAPH_NODES_MAX, WPK_GRAPH_VALUES_MAX)
                             : err;
}

static wpk_err read_graph(struct wpk_onnx_reader *reader, struct wpk_protobuf graph)
{
    wpk_err err = WPK_OK;

    if (wpk_onnx_count(graph, GRAPH_SPARSE) > 0) {
        err = wpk_onnx_fail(reader, WPK_EUNSUPPORTED, "sparse initializers");
    }
    err = err == WPK_OK ? read_parts(reader, graph, GRAPH_INITIALIZER, read_initializer) : err;
    err = err == WPK_OK ? read_parts(reader, graph, GRAPH_INPUT, read_input) : err;
    err = err == WPK_OK ? read_parts(reader, graph, GRAPH_NODE, read_node) : err;
    err = err == WPK_OK ? read_parts(reader, graph, GRAPH_OUTPUT, read_output) : err;
    if (err == WPK_OK && reader->graph->output_count == 0) {
        err = wpk_onnx_fail(reader, WPK_EPARSE, "the graph has no outputs");
    }
    return err == WPK_OK ? wpk_graph_split_outputs(reader->graph) : err;
}

static wpk_err read_opset(struct wpk_onnx_reader *reader, struct wpk_protobuf message)
{
    struct wpk_protobuf_field field;
    const char *domain = "";
    int64_t version = 0;
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == OPSET_DOMAIN) {
            err = wpk_onnx_text(reader, &field, &domain);
        } else if (field.number == OPSET_VERSION) {
            version = (int64_t)field.value;
        }
    }
    if (err == WPK_OK && (domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0)) {
        reader->graph->opset = version;
        reader->has_opset = true;
    }
    return err == WPK_OK ? wpk_onnx_end(reader, &message) : err;
}

static wpk_err read_model(struct wpk_onnx_reader *reader, struct wpk_protobuf model)
{
    const struct wpk_protobuf whole = model;
    struct wpk_protobuf_field field;
    struct wpk_protobuf graph = {0};
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&model, &field)) {
        if (field.number == MODEL_OPSET && field.wire == WPK_PROTOBUF_BYTES) {
            err = read_opset(reader, field.bytes);
        } else if (field.number == MODEL_GRAPH && field.wire == WPK_PROTOBUF_BYTES) {
            graph = field.bytes;
        }
    }
    err = err == WPK_OK ? wpk_onnx_end(reader, &model) : err;
    err = err == WPK_OK ? wpk_onnx_functions_read(reader, whole) : err;
    if (err == WPK_OK && graph.at == NULL) {
        err = wpk_onnx_fail(reader, WPK_EPARSE, "not an ONNX model: it has no graph");
    }
    if (err == WPK_OK && !reader->has_opset && wpk_onnx_count(whole, MODEL_OPSET) > 0) {
        reader->graph->opset = WPK_ONNX_OPSET_MAX; /* it has operators of other domains alone */
    }
    int64_t opset = reader->graph->opset;
    if (err == WPK_OK && (opset < WPK_ONNX_OPSET_MIN || opset > WPK_ONNX_OPSET_MAX)) {
        err = wpk_onnx_fail(reader, WPK_EUNSUPPORTED, "opset %lld; %d to %d are supported",
                            (long long)opset, WPK_ONNX_OPSET_MIN, WPK_ONNX_OPSET_MAX);
    }
    return err == WPK_OK ? read_graph(reader, graph) : err;
}

wpk_err wpk_onnx_read(const char *path, struct wpk_graph *out, struct wpk_diag *diag)
{
    struct wpk_onnx_reader reader = {.graph = out, .path = path, .diag = diag};
    struct wpk_protobuf model;

    *out = (struct wpk_graph){.node_count = 0};
    wpk_arena_init(&out->arena, WPK_GRAPH_MEMORY_MAX);
    wpk_err err = wpk_onnx_map(&reader, -1, path, &model);
    return err == WPK_OK ? read_model(&reader, model) : err;
}
