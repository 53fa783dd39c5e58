/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of a model file. Their bytes stay in the mapped file if they lie there as an array:
 * raw_data, one packed field of floats, external data. Varints, and numbers one a field, are
 * copied. */
#include "model/onnx/reader.h"

#include "common/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Numbers of fields, from onnx.proto. */
enum {
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_FLOATS = 4,
    TENSOR_INTS = 5,
    TENSOR_LONGS = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_DOUBLES = 10,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14,
};
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { TYPE_UINT4 = 21, TYPE_INT4 = 22 }; /* of elements */

/* ---- external data */

struct external {
    const char *location;
    int64_t offset;
    int64_t length; /* -1: to the end */
};

static wpk_err read_entry(const struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                          struct external *out)
{
    struct wpk_protobuf_field field;
    const char *key = "";
    const char *value = "";
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == ENTRY_KEY || field.number == ENTRY_VALUE) {
            err = wpk_onnx_text(reader, &field, field.number == ENTRY_KEY ? &key : &value);
        }
    }
    if (err != WPK_OK) {
        return err;
    }
    if (strcmp(key, "location") == 0) {
        out->location = value;
    } else if (strcmp(key, "offset") == 0 || strcmp(key, "length") == 0) {
        char *end;
        errno = 0;
        long long number = strtoll(value, &end, 10);
        if (errno != 0 || *end != '\0' || end == value || number < 0) {
            return wpk_onnx_fail(reader, WPK_EPARSE, "its external %s '%s' is no number", key,
                                 value);
        }
        *(key[0] == 'o' ? &out->offset : &out->length) = number;
    }
    return wpk_onnx_end(reader, &message);
}

static wpk_err map_external(const struct wpk_onnx_reader *reader, const char *location,
                            struct wpk_protobuf *out)
{
    char folder[4096];
    const char *slash = strrchr(reader->path, '/');

    snprintf(folder, sizeof(folder), "%.*s", slash != NULL ? (int)(slash - reader->path + 1) : 1,
             slash != NULL ? reader->path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return wpk_onnx_fail(reader, wpk_fs_err(errno), "cannot open %s: %s", folder,
                             strerror(errno));
    }
    wpk_err err = wpk_onnx_map(reader, fd, location, out);
    close(fd);
    return err;
}

/* The bytes of a tensor that another file holds. That of the tensor before is mapped already. */
static wpk_err find_external(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                             struct wpk_protobuf *out)
{
    struct external external = {.location = NULL, .length = -1};
    struct wpk_protobuf_field field;
    struct wpk_protobuf file = {0};
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == TENSOR_EXTERNAL && field.wire == WPK_PROTOBUF_BYTES) {
            err = read_entry(reader, field.bytes, &external);
        }
    }
    if (err == WPK_OK && external.location == NULL) {
        err = wpk_onnx_fail(reader, WPK_EPARSE, "its external data has no location");
    }
    if (err == WPK_OK && reader->external_path != NULL &&
        strcmp(reader->external_path, external.location) == 0) {
        file = reader->external;
    } else if (err == WPK_OK) {
        err = map_external(reader, external.location, &file);
        reader->external_path = external.location;
        reader->external = file;
    }
    if (err != WPK_OK) {
        return err;
    }
    int64_t size = (int64_t)wpk_protobuf_size(&file);
    int64_t length = external.length;
    if (external.offset > size || (length >= 0 && length > size - external.offset)) {
        return wpk_onnx_fail(reader, WPK_EPARSE, "its data lies beyond the end of %s (%lld bytes)",
                             external.location, (long long)size);
    }
    out->at = file.at + external.offset;
    out->end = length >= 0 ? out->at + length : file.end;
    return WPK_OK;
}

/* ---- numbers in fields */

/* How the numbers of a typed field lie in the file. */
struct numbers {
    uint32_t field;    /* number */
    size_t fixed_size; /* bytes of one; 0: varints */
};

static struct numbers typed_field(enum wpk_dtype dtype)
{
    switch (dtype) {
    case WPK_F32:
        return (struct numbers){TENSOR_FLOATS, sizeof(float)};
    case WPK_F64:
        return (struct numbers){TENSOR_DOUBLES, sizeof(double)};
    case WPK_I64:
        return (struct numbers){TENSOR_LONGS, 0};
    default:
        return (struct numbers){TENSOR_INTS, 0};
    }
}

/* Store a number of `size` bytes unless the tensor is full; little-endian: the low bytes. */
static void store(const struct wpk_graph_value *value, char *to, size_t *count, uint64_t number)
{
    size_t size = wpk_dtype_size(value->dtype);

    if ((*count + 1) * size <= value->size) {
        memcpy(to + *count * size, &number, size);
    }
    (*count)++;
}

/* Copy the numbers, and return how many there are. */
static size_t copy_numbers(struct wpk_protobuf message, struct numbers numbers,
                           const struct wpk_graph_value *value, char *to)
{
    struct wpk_protobuf_field field;
    uint64_t number;
    size_t count = 0;

    while (wpk_protobuf_next(&message, &field)) {
        if (field.number != numbers.field) {
            continue;
        }
        if (field.wire != WPK_PROTOBUF_BYTES) {
            store(value, to, &count, field.value);
            continue;
        }
        while (numbers.fixed_size == 0 && wpk_protobuf_varint(&field.bytes, &number)) {
            store(value, to, &count, number);
        }
        while (numbers.fixed_size > 0 && wpk_protobuf_size(&field.bytes) >= numbers.fixed_size) {
            memcpy(&number, field.bytes.at, numbers.fixed_size);
            field.bytes.at += numbers.fixed_size;
            store(value, to, &count, number);
        }
    }
    return count;
}

/* Where the whole tensor lies in one piece; false: nowhere. */
static bool find_whole(struct wpk_protobuf message, uint32_t number, size_t size,
                       struct wpk_protobuf *out)
{
    struct wpk_protobuf_field field;
    int count = 0;

    while (wpk_protobuf_next(&message, &field)) {
        if (field.number == number) {
            *out = field.bytes;
            count++;
        }
    }
    return count == 1 && out->at != NULL && wpk_protobuf_size(out) == size;
}

static wpk_err find_data(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                         bool is_external, bool is_raw, struct wpk_graph_value *value)
{
    struct wpk_protobuf whole = {0};
    struct numbers numbers = typed_field(value->dtype);
    size_t count;
    wpk_err err = WPK_OK;

    if (is_external) {
        err = find_external(reader, message, &whole);
    }
    if (err == WPK_OK &&
        (is_external ? wpk_protobuf_size(&whole) >= value->size
                     : find_whole(message, is_raw ? (uint32_t)TENSOR_RAW : numbers.field,
                                  value->size, &whole) &&
                           (is_raw || numbers.fixed_size > 0))) {
        value->data = whole.at;
        return WPK_OK;
    }
    if (err == WPK_OK && (is_external || is_raw)) {
        err = wpk_onnx_fail(reader, WPK_EPARSE, "its data has %zu bytes; its extents ask for %zu",
                            wpk_protobuf_size(&whole), value->size);
    }
    if (err != WPK_OK) {
        return err;
    }
    /* A number takes at least a byte of the file: a huge tensor is refused before it is copied. */
    if (value->size / wpk_dtype_size(value->dtype) > wpk_protobuf_size(&message)) {
        return wpk_onnx_fail(reader, WPK_EPARSE,
                             "its extents ask for %zu bytes of data, which it "
                             "does not have",
                             value->size);
    }
    char *copy = wpk_arena_demand(&reader->graph->arena, value->size, 1);
    value->data = copy;
    count = copy_numbers(message, numbers, value, copy);
    if (count * wpk_dtype_size(value->dtype) != value->size) {
        return wpk_onnx_fail(reader, WPK_EPARSE, "it has %zu numbers; its extents ask for %zu",
                             count, value->size / wpk_dtype_size(value->dtype));
    }
    return WPK_OK;
}

/* ---- the tensor */

static wpk_err add_dim(const struct wpk_onnx_reader *reader, struct wpk_graph_value *value,
                       uint64_t extent)
{
    if (value->rank == WPK_RANK_MAX) {
        return wpk_onnx_fail(reader, WPK_EUNSUPPORTED, "more than %d dimensions", WPK_RANK_MAX);
    }
    int64_t before = wpk_graph_elements(value);
    if (extent > (uint64_t)(WPK_ELEMENTS_MAX / (before > 0 ? before : 1))) {
        return wpk_onnx_fail(reader, WPK_ERANGE, "more than 2^33 elements");
    }
    value->extent[value->rank++] = (int64_t)extent;
    return WPK_OK;
}

static wpk_err read_header(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                           struct wpk_graph_value *value, bool *is_external, bool *is_raw)
{
    struct wpk_protobuf_field field;
    uint64_t extent;
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        bool is_packed = field.wire == WPK_PROTOBUF_BYTES;
        if (field.number == TENSOR_TYPE) {
            value->element_type = (int)(field.value & 0xffff);
        } else if (field.number == TENSOR_RAW) {
            *is_raw = true;
        } else if (field.number == TENSOR_LOCATION) {
            *is_external = field.value == 1;
        } else if (field.number == TENSOR_DIMS && !is_packed) {
            err = add_dim(reader, value, field.value);
        } else if (field.number == TENSOR_DIMS) {
            while (err == WPK_OK && wpk_protobuf_varint(&field.bytes, &extent)) {
                err = add_dim(reader, value, extent);
            }
            err = err == WPK_OK ? wpk_onnx_end(reader, &field.bytes) : err;
        }
    }
    return err == WPK_OK ? wpk_onnx_end(reader, &message) : err;
}

/* The name first: what is wrong with the tensor is reported with it. */
static wpk_err read_name(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                         struct wpk_graph_value *value)
{
    struct wpk_protobuf_field field;
    wpk_err err = WPK_OK;

    while (err == WPK_OK && wpk_protobuf_next(&message, &field)) {
        if (field.number == TENSOR_NAME) {
            err = wpk_onnx_text(reader, &field, &value->name);
        }
    }
    if (err == WPK_OK) {
        value->name = wpk_onnx_scoped_name(reader, value->name);
    }
    if (err != WPK_OK) {
        return err;
    }
    snprintf(reader->where, sizeof(reader->where), "tensor %s", value->name);
    if (value->name[0] == '\0' || wpk_graph_find(reader->graph, value->name) >= 0) {
        return wpk_onnx_fail(reader, WPK_EPARSE, "a tensor's name is empty or given twice");
    }
    return WPK_OK;
}

/* Two elements of 4 bits lie in a byte, the first in its low half: make each one of a byte. */
static void unpack(struct wpk_onnx_reader *reader, bool is_signed, int64_t count,
                   struct wpk_graph_value *value)
{
    const uint8_t *packed = value->data;
    uint8_t *bytes = WPK_ARENA_DEMAND(&reader->graph->arena, uint8_t, (size_t)count + 1);

    for (int64_t i = 0; i < count; i++) {
        uint8_t element = packed[i / 2] >> (i % 2 * 4) & 15;
        bytes[i] = (uint8_t)(is_signed && element > 7 ? element - 16 : element);
    }
    value->data = bytes;
    value->size = (size_t)count;
    value->dtype = is_signed ? WPK_I8 : WPK_U8;
    value->element_type = wpk_graph_element_of(value->dtype);
}

wpk_err wpk_onnx_tensor(struct wpk_onnx_reader *reader, struct wpk_protobuf message,
                        bool is_attribute, int *out)
{
    struct wpk_graph_value value = {.name = "", .writer = -1, .is_shaped = true};
    bool is_external = false;
    bool is_raw = false;

    wpk_err err = is_attribute ? WPK_OK : read_name(reader, message, &value);
    err = err == WPK_OK ? read_header(reader, message, &value, &is_external, &is_raw) : err;
    if (err != WPK_OK) {
        return err;
    }
    bool is_int4 = value.element_type == TYPE_INT4, is_uint4 = value.element_type == TYPE_UINT4;
    value.is_typed = wpk_graph_dtype(value.element_type, &value.dtype) == WPK_OK;
    if (is_int4 || is_uint4) {
        int64_t count = wpk_graph_elements(&value);
        value.is_typed = true;
        value.dtype = WPK_U8;
        value.size = (size_t)(count + 1) / 2;
        err = find_data(reader, message, is_external, is_raw, &value);
        if (err == WPK_OK) {
            unpack(reader, is_int4, count, &value);
        }
    } else if (value.is_typed) {
        value.size = (size_t)wpk_graph_elements(&value) * wpk_dtype_size(value.dtype);
        err = find_data(reader, message, is_external, is_raw, &value);
    } else {
        value.data = ""; /* a constant that nothing can read: its readers are refused */
    }
    if (err == WPK_OK) {
        err = wpk_graph_add_value(reader->graph, is_attribute ? "" : value.name, out);
    }
    if (err == WPK_OK) {
        value.name = reader->graph->values[*out].name;
        reader->graph->values[*out] = value;
    }
    return err;
}
