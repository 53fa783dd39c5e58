/* SPDX-License-Identifier: Apache-2.0 */
#include "model/onnx/reader.h"

#include <string.h>

/* Numbers of fields, from onnx.proto. */
enum { MODEL_FUNCTION = 25 };
enum {
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_NODE = 7,
    FUNCTION_DOMAIN = 10,
    FUNCTION_DEFAULT = 11
};

static wpk_err read_names(struct wpk_onnx_reader *reader, struct wpk_onnx_function *out)
{
    struct wpk_protobuf message = out->message;
    struct wpk_protobuf_field field;
    wpk_err err = WPK_OK;

    out->name = "";
    out->domain = "";
    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == FUNCTION_NAME) {
            err = wpk_onnx_text(reader, &field, &out->name);
        } else if (field.number == FUNCTION_DOMAIN) {
            err = wpk_onnx_text(reader, &field, &out->domain);
        }
    }
    return err == WPK_OK ? wpk_onnx_end(reader, &message) : err;
}

wpk_err wpk_onnx_functions_read(struct wpk_onnx_reader *reader, struct wpk_protobuf model)
{
    int count = wpk_onnx_count(model, MODEL_FUNCTION);
    struct wpk_onnx_function *functions =
        WPK_ARENA_DEMAND(&reader->graph->arena, struct wpk_onnx_function, (size_t)count);
    struct wpk_protobuf_field field;
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&model, &field)) {
        if (field.number == MODEL_FUNCTION && field.wire == WPK_PROTOBUF_BYTES) {
            functions[reader->function_count].message = field.bytes;
            err = read_names(reader, &functions[reader->function_count++]);
        }
    }
    reader->functions = functions;
    return err;
}

const struct wpk_onnx_function *wpk_onnx_function_find(const struct wpk_onnx_reader *reader,
                                                       const struct wpk_graph_node *node)
{
    for (int i = 0; i < reader->function_count; i++) {
        if (strcmp(reader->functions[i].name, node->op) == 0 &&
            strcmp(reader->functions[i].domain, node->domain) == 0) {
            return &reader->functions[i];
        }
    }
    return NULL;
}

/* ---- a call */

static wpk_err open_scope(struct wpk_onnx_reader *reader, struct wpk_onnx_scope *scope)
{
    struct wpk_protobuf message = scope->function->message;
    struct wpk_protobuf_field field;
    struct wpk_arena *arena = &reader->graph->arena;
    int formals =
        wpk_onnx_count(message, FUNCTION_INPUT) + wpk_onnx_count(message, FUNCTION_OUTPUT);
    int defaults = wpk_onnx_count(message, FUNCTION_DEFAULT);
    int input = 0;
    int output = 0;
    wpk_err err = WPK_OK;

    scope->formals = WPK_ARENA_DEMAND(arena, struct wpk_onnx_formal, (size_t)formals + 1);
    scope->defaults = WPK_ARENA_DEMAND(arena, struct wpk_graph_attribute, (size_t)defaults + 1);
    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == FUNCTION_INPUT || field.number == FUNCTION_OUTPUT) {
            struct wpk_onnx_formal *formal = &scope->formals[scope->formal_count++];
            const struct wpk_graph_node *caller = scope->caller;
            *formal = (struct wpk_onnx_formal){.value = -1, .is_given = true};
            if (field.number == FUNCTION_INPUT && input < caller->input_count) {
                formal->value = caller->inputs[input];
            } else if (field.number == FUNCTION_OUTPUT) {
                formal->value = output < caller->output_count ? caller->outputs[output] : -1;
                formal->is_output = true;
                formal->is_given = formal->value < 0;
            }
            *(field.number == FUNCTION_INPUT ? &input : &output) += 1;
            err = wpk_onnx_text(reader, &field, &formal->name);
        } else if (field.number == FUNCTION_DEFAULT && field.wire == WPK_PROTOBUF_BYTES) {
            err = wpk_onnx_attribute(reader, field.bytes, &scope->defaults[scope->default_count++]);
        }
    }
    return err;
}

wpk_err
wpk_onnx_function_call(struct wpk_onnx_reader *reader, const struct wpk_onnx_function *function,
                       const struct wpk_graph_node *caller,
                       wpk_err (*read)(struct wpk_onnx_reader *reader, struct wpk_protobuf node))
{
    struct wpk_onnx_scope scope = {.function = function, .caller = caller, .outer = reader->scope};
    struct wpk_protobuf message = function->message;
    struct wpk_protobuf_field field;

    wpk_err err = wpk_onnx_count_call(reader);
    if (err == WPK_OK) {
        scope.prefix = wpk_onnx_scoped_name(reader, caller->name);
        err = open_scope(reader, &scope);
    }
    reader->scope = &scope;
    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == FUNCTION_NODE && field.wire == WPK_PROTOBUF_BYTES) {
            err = read(reader, field.bytes);
        }
    }
    reader->scope = scope.outer;
    for (int i = 0; err == WPK_OK && i < scope.formal_count; i++) {
        if (!scope.formals[i].is_given) {
            err =
                wpk_onnx_fail(reader, WPK_EPARSE, "the function %s does not compute its output %s",
                              function->name, scope.formals[i].name);
        }
    }
    return err;
}
