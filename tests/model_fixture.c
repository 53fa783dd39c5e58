/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model_fixture.h"

#include "ir/notation/notation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void put_varint(struct wpk_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        wpk_buf_append_byte(out, (char)(value | 0x80));
    }
    wpk_buf_append_byte(out, (char)value);
}

void wpk_model_put_number(struct wpk_buf *out, int field, int64_t value)
{
    put_varint(out, (uint64_t)field << 3);
    put_varint(out, (uint64_t)value);
}

void wpk_model_put_bytes(struct wpk_buf *out, int field, const void *data, size_t size)
{
    put_varint(out, ((uint64_t)field << 3) | 2);
    put_varint(out, size);
    wpk_buf_append(out, data, size);
}

void wpk_model_put_text(struct wpk_buf *out, int field, const char *text)
{
    wpk_model_put_bytes(out, field, text, strlen(text));
}

/* Append a message, and empty it. */
void wpk_model_put_message(struct wpk_buf *out, int field, struct wpk_buf *message)
{
    wpk_model_put_bytes(out, field, wpk_buf_text(message), message->size);
    wpk_buf_fini(message);
}

static int element_type(enum wpk_dtype dtype)
{
    enum wpk_dtype found;

    for (int type = 1; type < 32; type++) {
        if (wpk_graph_dtype(type, &found) == WPK_OK && found == dtype) {
            return type;
        }
    }
    return 4; /* uint16 stands for all that is not supported */
}

static struct wpk_declaration parse_type(const char *type)
{
    struct wpk_declaration out = {.name = NULL};

    WPK_ASSERT(wpk_notation_parse_type(type, &out, NULL) == WPK_OK);
    return out;
}

void wpk_model_fixture_input(struct wpk_model_fixture *model, const char *name, const char *type)
{
    struct wpk_declaration d = parse_type(type);
    struct wpk_buf info = {0};
    struct wpk_buf types = {0};
    struct wpk_buf tensor = {0};
    struct wpk_buf shape = {0};

    for (int i = 0; i < d.rank; i++) {
        struct wpk_buf dim = {0};
        wpk_model_put_number(&dim, 1, d.extent[i]);
        wpk_model_put_message(&shape, 1, &dim);
    }
    wpk_model_put_number(&tensor, 1, element_type(d.dtype));
    wpk_model_put_message(&tensor, 2, &shape);
    wpk_model_put_message(&types, 1, &tensor);
    wpk_model_put_text(&info, 1, name);
    wpk_model_put_message(&info, 2, &types);
    wpk_model_put_message(&model->graph, 11, &info);
}

void wpk_model_fixture_constant(struct wpk_model_fixture *model, const char *name, const char *type,
                                const char *values)
{
    struct wpk_declaration d = parse_type(type);
    struct wpk_buf tensor = {0};
    int64_t count = 1;

    for (int i = 0; i < d.rank; i++) {
        wpk_model_put_number(&tensor, 1, d.extent[i]);
        count *= d.extent[i];
    }
    wpk_model_put_number(&tensor, 2, element_type(d.dtype));
    wpk_model_put_text(&tensor, 8, name);
    for (int64_t i = 0; i < count; i++) {
        char *end = (char *)values;
        double value = values != NULL ? strtod(values, &end) : (double)(i + 1);
        values = values != NULL ? end + (*end == ',') : NULL;
        if (!wpk_dtype_is_float(d.dtype)) {
            wpk_model_put_number(&tensor, d.dtype == WPK_I64 ? 7 : 5, (int64_t)value);
        } else if (d.dtype == WPK_F64) {
            put_varint(&tensor, (10 << 3) | 1);
            wpk_buf_append(&tensor, &value, sizeof(value));
        } else {
            float narrow = (float)value;
            put_varint(&tensor, (4 << 3) | 5);
            wpk_buf_append(&tensor, &narrow, sizeof(narrow));
        }
    }
    wpk_model_put_message(&model->graph, 5, &tensor);
}

/* "name:kind=value" */
static void put_attribute(struct wpk_buf *node, const char *word, size_t size)
{
    static const char kinds[] = "?fist.FIS"; /* AttributeProto.AttributeType, as letters */
    char text[512];
    struct wpk_buf out = {0};

    snprintf(text, sizeof(text), "%.*s", (int)size, word);
    char *value = strchr(text, '=') + 1;
    char kind = value[-2];
    value[-3] = '\0';
    wpk_model_put_text(&out, 1, text);
    wpk_model_put_number(&out, 20, strchr(kinds, kind) - kinds);
    if (kind == 'f' || kind == 'F') {
        for (char *end = value; *value != '\0'; value = end + (*end == ',')) {
            float real = strtof(value, &end);
            put_varint(&out, (kind == 'f' ? UINT64_C(2) : UINT64_C(7)) << 3 | 5);
            wpk_buf_append(&out, &real, sizeof(real));
        }
    } else if (kind == 'S') {
        for (size_t n = 0; *value != '\0'; value += n + (value[n] == ',')) {
            n = strcspn(value, ",");
            wpk_model_put_bytes(&out, 9, value, n);
        }
    } else if (kind == 'i') {
        wpk_model_put_number(&out, 3, strtoll(value, NULL, 10));
    } else if (kind == 's') {
        wpk_model_put_text(&out, 4, value);
    } else {
        for (char *end = value; *value != '\0'; value = end + (*end == ',')) {
            wpk_model_put_number(&out, 8, strtoll(value, &end, 10));
        }
    }
    wpk_model_put_message(node, 5, &out);
}

void wpk_model_fixture_node(struct wpk_model_fixture *model, const char *op, const char *inputs,
                            const char *output, const char *attributes)
{
    struct wpk_model_fixture none = {.fd = 0};

    wpk_model_fixture_body(model, op, inputs, output, attributes, &none);
}

void wpk_model_fixture_body(struct wpk_model_fixture *model, const char *op, const char *inputs,
                            const char *output, const char *attributes,
                            struct wpk_model_fixture *body)
{
    struct wpk_buf node = {0};
    struct wpk_buf attribute = {0};

    if (body->graph.size > 0) {
        wpk_model_put_text(&attribute, 1, "body");
        wpk_model_put_number(&attribute, 20, 5);
        wpk_model_put_message(&attribute, 6, &body->graph);
        wpk_model_put_message(&node, 5, &attribute);
    }

    while (*inputs != '\0') {
        size_t size = strcspn(inputs, ",");
        wpk_model_put_bytes(&node, 1, inputs, size);
        inputs += size + (inputs[size] == ',');
    }
    const char *colon = strchr(op, ':');
    wpk_model_put_text(&node, 3, output);
    wpk_model_put_text(&node, 4, colon != NULL ? colon + 1 : op);
    wpk_model_put_bytes(&node, 7, op, colon != NULL ? (size_t)(colon - op) : 0);
    while (*output != '\0') {
        size_t size = strcspn(output, ",");
        wpk_model_put_bytes(&node, 2, output, size);
        output += size + (output[size] == ',');
    }
    while (*attributes != '\0') {
        size_t size = strcspn(attributes, " ");
        put_attribute(&node, attributes, size);
        attributes += size + (attributes[size] == ' ');
    }
    wpk_model_put_message(&model->graph, 1, &node);
}

void wpk_model_fixture_output(struct wpk_model_fixture *model, const char *name)
{
    struct wpk_buf info = {0};

    wpk_model_put_text(&info, 1, name);
    wpk_model_put_message(&model->graph, 12, &info);
}

const char *wpk_model_fixture_write(struct wpk_model_fixture *model, size_t size_max)
{
    struct wpk_buf opset = {0};
    struct wpk_buf whole = {0};

    wpk_model_put_number(&whole, 1, 8);
    if (model->opset >= 0) {
        wpk_model_put_number(&opset, 2, model->opset > 0 ? model->opset : 17);
        wpk_model_put_message(&whole, 8, &opset);
    }
    wpk_buf_append(&whole, wpk_buf_text(&model->other), model->other.size);
    wpk_model_put_bytes(&whole, 7, wpk_buf_text(&model->graph), model->graph.size);
    size_t size = whole.size < size_max ? whole.size : size_max;
    if (model->fd > 0) {
        close(model->fd);
    }
    model->fd = memfd_create("model", MFD_CLOEXEC);
    WPK_ASSERT(model->fd > 0);
    WPK_ASSERT(write(model->fd, whole.data, size) == (ssize_t)size);
    snprintf(model->path, sizeof(model->path), "/proc/self/fd/%d", model->fd);
    wpk_buf_fini(&whole);
    return model->path;
}

void wpk_model_fixture_fini(struct wpk_model_fixture *model)
{
    if (model->fd > 0) {
        close(model->fd);
    }
    wpk_buf_fini(&model->graph);
    wpk_buf_fini(&model->other);
    *model = (struct wpk_model_fixture){.fd = 0};
}
