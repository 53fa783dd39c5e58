/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of nodes. Lists of numbers are copied: varints are no array. */
#include "model/onnx/reader.h"

#include <string.h>

/* Numbers of fields, from onnx.proto. */
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F,
    ATTRIBUTE_I,
    ATTRIBUTE_S,
    ATTRIBUTE_T,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_STRINGS = 9,
    ATTRIBUTE_TYPE = 20,
    ATTRIBUTE_REFERENCE = 21
};

/* AttributeProto.AttributeType */
static const enum wpk_graph_attribute_kind attribute_kinds[] = {
    [1] = WPK_ATTRIBUTE_FLOAT,  [2] = WPK_ATTRIBUTE_INT,    [3] = WPK_ATTRIBUTE_TEXT,
    [4] = WPK_ATTRIBUTE_TENSOR, [6] = WPK_ATTRIBUTE_FLOATS, [7] = WPK_ATTRIBUTE_INTS,
    [8] = WPK_ATTRIBUTE_TEXT, /* several, with commas between them */
};

/* Values of a repeated field of numbers: packed, or one a field. Returns how many there are. */
static int count_numbers(struct wpk_protobuf message, uint32_t number)
{
    struct wpk_protobuf_field field;
    uint64_t value;
    int count = 0;

    while (wpk_protobuf_next(&message, &field)) {
        if (field.number != number) {
            continue;
        }
        if (field.wire != WPK_PROTOBUF_BYTES) {
            count++;
        } else if (number == ATTRIBUTE_FLOATS) {
            count += (int)(wpk_protobuf_size(&field.bytes) / sizeof(float));
        } else {
            while (wpk_protobuf_varint(&field.bytes, &value)) {
                count++;
            }
        }
    }
    return count;
}

static void read_ints(const struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                      struct wpk_graph_attribute *out)
{
    struct wpk_protobuf_field field;
    uint64_t value;

    out->count = count_numbers(message, ATTRIBUTE_INTS);
    int64_t *ints = WPK_ARENA_DEMAND(&reader->graph->arena, int64_t, (size_t)out->count);
    out->integers = ints;
    while (wpk_protobuf_next(&message, &field)) {
        if (field.number == ATTRIBUTE_INTS && field.wire == WPK_PROTOBUF_VARINT) {
            *ints++ = (int64_t)field.value;
        } else if (field.number == ATTRIBUTE_INTS && field.wire == WPK_PROTOBUF_BYTES) {
            while (wpk_protobuf_varint(&field.bytes, &value)) {
                *ints++ = (int64_t)value;
            }
        }
    }
}

static void read_floats(const struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                        struct wpk_graph_attribute *out)
{
    struct wpk_protobuf_field field;

    out->count = count_numbers(message, ATTRIBUTE_FLOATS);
    float *reals = WPK_ARENA_DEMAND(&reader->graph->arena, float, (size_t)out->count);
    out->reals = reals;
    while (wpk_protobuf_next(&message, &field)) {
        size_t size = field.wire == WPK_PROTOBUF_BYTES ? wpk_protobuf_size(&field.bytes) : 0;
        if (field.number == ATTRIBUTE_FLOATS && field.wire == WPK_PROTOBUF_BYTES) {
            memcpy(reals, field.bytes.at, size / sizeof(float) * sizeof(float));
            reals += size / sizeof(float);
        } else if (field.number == ATTRIBUTE_FLOATS) {
            memcpy(reals++, &field.value, sizeof(float)); /* little-endian: the low half */
        }
    }
}

static wpk_err read_attribute_field(struct wpk_onnx_reader *reader,
                                    const struct wpk_protobuf_field *field,
                                    struct wpk_graph_attribute *out)
{
    switch (field->number) {
    case ATTRIBUTE_NAME:
        return wpk_onnx_text(reader, field, &out->name);
    case ATTRIBUTE_F:
        memcpy(&out->real, &field->value, sizeof(float));
        return WPK_OK;
    case ATTRIBUTE_I:
        out->integer = (int64_t)field->value;
        return WPK_OK;
    case ATTRIBUTE_T:
        return field->wire == WPK_PROTOBUF_BYTES
                   ? wpk_onnx_tensor(reader, field->bytes, true, &out->tensor)
                   : WPK_OK;
    case ATTRIBUTE_TYPE:
        out->kind = field->value < sizeof(attribute_kinds) / sizeof(attribute_kinds[0])
                        ? attribute_kinds[field->value]
                        : WPK_ATTRIBUTE_OTHER;
        return WPK_OK;
    default:
        return WPK_OK;
    }
}

/* Texts that are no UTF-8 may be attributes of operators that are not supported anyway. */
static wpk_err read_text(const struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                         struct wpk_graph_attribute *out)
{
    struct wpk_protobuf_field field;
    struct wpk_buf joined = {0};
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        const char *text = "";
        if (field.number == ATTRIBUTE_S || field.number == ATTRIBUTE_STRINGS) {
            err = wpk_onnx_text(reader, &field, &text);
            wpk_buf_printf(&joined, "%s%s", joined.size > 0 ? "," : "", text);
        }
    }
    err = err == WPK_OK ? wpk_buf_status(&joined) : err;
    if (err == WPK_OK) {
        out->text = wpk_arena_copy_text(&reader->graph->arena, wpk_buf_text(&joined));
        err = out->text != NULL ? WPK_OK : WPK_ENOMEM;
    }
    wpk_buf_fini(&joined);
    return err;
}

/* Fill in what an attribute of a function's node refers to, if it does: the caller's. Without a
 * value it has no kind, as if it were not there. */
static wpk_err follow_reference(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                                struct wpk_graph_attribute *out, bool *is_reference)
{
    struct wpk_protobuf_field field;
    const char *reference = "";
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == ATTRIBUTE_REFERENCE) {
            err = wpk_onnx_text(reader, &field, &reference);
        }
    }
    *is_reference = reference[0] != '\0';
    if (err != WPK_OK || !*is_reference) {
        return err;
    }
    if (reader->scope == NULL) {
        return wpk_onnx_fail(reader, WPK_EPARSE,
                             "a reference to an attribute outside of a function");
    }
    if (!wpk_onnx_scoped_attribute(reader, reference, out)) {
        out->name = "";
    }
    return WPK_OK;
}

wpk_err wpk_onnx_attribute(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                           struct wpk_graph_attribute *out)
{
    bool is_reference = false;
    struct wpk_protobuf whole = message;
    struct wpk_protobuf_field field;
    wpk_err err = WPK_OK;

    *out = (struct wpk_graph_attribute){.name = "", .tensor = -1};
    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        err = read_attribute_field(reader, &field, out);
    }
    err = err == WPK_OK ? wpk_onnx_end(reader, &message) : err;
    err = err == WPK_OK ? follow_reference(reader, whole, out, &is_reference) : err;
    if (err != WPK_OK || is_reference) {
        return err;
    }
    if (err == WPK_OK && out->kind == WPK_ATTRIBUTE_TENSOR && out->tensor < 0) {
        err = wpk_onnx_fail(reader, WPK_EPARSE, "attribute %s has no tensor", out->name);
    }
    if (err != WPK_OK) {
        return err;
    }
    switch (out->kind) {
    case WPK_ATTRIBUTE_INTS:
        read_ints(reader, whole, out);
        return WPK_OK;
    case WPK_ATTRIBUTE_FLOATS:
        read_floats(reader, whole, out);
        return WPK_OK;
    case WPK_ATTRIBUTE_TEXT:
        return read_text(reader, whole, out);
    default:
        return WPK_OK;
    }
}
