/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/twin.h"

#include <string.h>

/* Numbers of fields in onnx.proto. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_GRAPH = 7,
    MODEL_OPERATOR_SET = 8,
    OPERATOR_SET_DOMAIN = 1,
    OPERATOR_SET_VERSION = 2,
    GRAPH_NAME = 2,
    GRAPH_INPUT = 11,
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_ELEMENT = 1,
    TENSOR_SHAPE = 2,
    SHAPE_EXTENT = 1,
    EXTENT_NUMBER = 1,
    EXTENT_SYMBOL = 2,
};

/* Of the format; operator sets have versions of their own. */
#define IR_VERSION 8

static void put_varint(struct wpk_buf *buf, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        wpk_buf_append_byte(buf, (char)(value | 0x80));
    }
    wpk_buf_append_byte(buf, (char)value);
}

static void put_number(struct wpk_buf *buf, unsigned field, uint64_t value)
{
    put_varint(buf, field << 3);
    put_varint(buf, value);
}

static void put_bytes(struct wpk_buf *buf, unsigned field, const void *data, size_t size)
{
    put_varint(buf, field << 3 | 2);
    put_varint(buf, size);
    wpk_buf_append(buf, data, size);
}

static void put_text(struct wpk_buf *buf, unsigned field, const char *text)
{
    put_bytes(buf, field, text, strlen(text));
}

/* Append `message` as a field, and empty it. Running out of memory in it is passed on. */
static void put_message(struct wpk_buf *buf, unsigned field, struct wpk_buf *message)
{
    if (message->err != WPK_OK) {
        buf->err = message->err;
    }
    put_bytes(buf, field, message->data, message->size);
    wpk_buf_fini(message);
}

/* Rank 0 may stand for a rank that is not known, and is declared so. */
static void put_value(struct wpk_buf *graph, const char *name, const struct wpk_ort_type *type)
{
    struct wpk_buf value = {0}, holder = {0}, tensor = {0}, shape = {0};
    for (size_t i = 0; i < type->rank; i++) {
        struct wpk_buf extent = {0};
        if (type->extents[i] >= 0) {
            put_number(&extent, EXTENT_NUMBER, (uint64_t)type->extents[i]);
        } else if (type->symbols[i][0] != '\0') {
            put_text(&extent, EXTENT_SYMBOL, type->symbols[i]);
        }
        put_message(&shape, SHAPE_EXTENT, &extent);
    }
    put_number(&tensor, TENSOR_ELEMENT, (uint64_t)type->element);
    if (type->rank > 0) {
        put_message(&tensor, TENSOR_SHAPE, &shape);
    }
    put_message(&holder, TYPE_TENSOR, &tensor);
    put_text(&value, VALUE_NAME, name);
    put_message(&value, VALUE_TYPE, &holder);
    put_message(graph, GRAPH_INPUT, &value);
}

static struct ort_status *put_operator_sets(const struct wpk_ort *ort, struct wpk_arena *arena,
                                            const struct ort_graph *graph, struct wpk_buf *model)
{
    struct ort_status *status = NULL;
    size_t count;
    const char **domains;
    int64_t *versions;
    WPK_ORT_TRY(ort->Graph_GetNumOperatorSets(graph, &count));
    WPK_ORT_TAKE(arena, count, domains);
    WPK_ORT_TAKE(arena, count, versions);
    WPK_ORT_TRY(ort->Graph_GetOperatorSets(graph, domains, versions, count));
    for (size_t i = 0; i < count; i++) {
        struct wpk_buf set = {0};
        put_text(&set, OPERATOR_SET_DOMAIN, domains[i]);
        put_number(&set, OPERATOR_SET_VERSION, (uint64_t)versions[i]);
        put_message(model, MODEL_OPERATOR_SET, &set);
    }
done:
    return status;
}

struct ort_status *wpk_inputs_encode(const struct wpk_ort *ort, struct wpk_arena *arena,
                                     const struct ort_graph *graph,
                                     const struct ort_value_info **values,
                                     const struct wpk_ort_type *types, size_t count,
                                     struct wpk_buf *out)
{
    struct ort_status *status = NULL;
    struct wpk_buf inputs = {0};
    put_text(&inputs, GRAPH_NAME, "woodpecker");
    for (size_t i = 0; i < count; i++) {
        const char *name;
        WPK_ORT_TRY(ort->GetValueInfoName(values[i], &name));
        put_value(&inputs, name, &types[i]);
    }
    put_number(out, MODEL_IR_VERSION, IR_VERSION);
    put_message(out, MODEL_GRAPH, &inputs);
    WPK_ORT_TRY(put_operator_sets(ort, arena, graph, out));
    if (wpk_buf_status(out) != WPK_OK) {
        WPK_ORT_TRY(wpk_ort_fail(ort, "out of memory"));
    }
done:
    wpk_buf_fini(&inputs);
    return status;
}
