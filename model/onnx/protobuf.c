/* SPDX-License-Identifier: Apache-2.0 */
#include "model/onnx/protobuf.h"

#include <string.h>

#define VARINT_BYTES_MAX 10
#define NUMBER_MAX ((1U << 29) - 1)

size_t wpk_protobuf_size(const struct wpk_protobuf *reader)
{
    return (size_t)(reader->end - reader->at);
}

bool wpk_protobuf_varint(struct wpk_protobuf *reader, uint64_t *out)
{
    uint64_t value = 0;

    if (reader->malformed || reader->at == reader->end) {
        return false;
    }
    for (size_t i = 0; i < VARINT_BYTES_MAX && i < wpk_protobuf_size(reader); i++) {
        value |= (uint64_t)(reader->at[i] & 0x7f) << (7 * i);
        if ((reader->at[i] & 0x80) == 0) {
            reader->at += i + 1;
            *out = value;
            return true;
        }
    }
    reader->malformed = true;
    return false;
}

static bool take(struct wpk_protobuf *reader, size_t size, struct wpk_protobuf *out)
{
    if (size > wpk_protobuf_size(reader)) {
        return false;
    }
    *out = (struct wpk_protobuf){.at = reader->at, .end = reader->at + size};
    reader->at += size;
    return true;
}

static bool read_value(struct wpk_protobuf *reader, struct wpk_protobuf_field *out)
{
    struct wpk_protobuf bytes;
    uint64_t size;

    switch (out->wire) {
    case WPK_PROTOBUF_VARINT:
        return wpk_protobuf_varint(reader, &out->value);
    case WPK_PROTOBUF_BYTES:
        return wpk_protobuf_varint(reader, &size) && size <= SIZE_MAX &&
               take(reader, (size_t)size, &out->bytes);
    case WPK_PROTOBUF_FIXED64:
        if (!take(reader, sizeof(uint64_t), &bytes)) {
            return false;
        }
        memcpy(&out->value, bytes.at, sizeof(uint64_t));
        return true;
    case WPK_PROTOBUF_FIXED32: {
        uint32_t value;
        if (!take(reader, sizeof(value), &bytes)) {
            return false;
        }
        memcpy(&value, bytes.at, sizeof(value));
        out->value = value;
        return true;
    }
    default:
        return false;
    }
}

bool wpk_protobuf_next(struct wpk_protobuf *reader, struct wpk_protobuf_field *out)
{
    const uint8_t *start = reader->at;
    uint64_t tag;

    if (!wpk_protobuf_varint(reader, &tag)) {
        return false;
    }
    *out = (struct wpk_protobuf_field){.number = (uint32_t)(tag >> 3),
                                       .wire = (enum wpk_protobuf_wire)(tag & 7)};
    if (tag >> 3 == 0 || tag >> 3 > NUMBER_MAX || !read_value(reader, out)) {
        reader->at = start;
        reader->malformed = true;
        return false;
    }
    return true;
}
