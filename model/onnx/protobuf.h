/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of protocol buffers' wire format over bytes in memory; nothing is copied.
 *
 *   source  protobuf.dev, "Encoding": varints, tags, length-delimited fields; groups are refused */
#ifndef WPK_MODEL_ONNX_PROTOBUF_H
#define WPK_MODEL_ONNX_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wpk_protobuf_wire {
    WPK_PROTOBUF_VARINT = 0,
    WPK_PROTOBUF_FIXED64 = 1,
    WPK_PROTOBUF_BYTES = 2,
    WPK_PROTOBUF_FIXED32 = 5,
};

/* One message, or a packed field, that is being read. Invariant: at <= end. */
struct wpk_protobuf {
    const uint8_t *at;
    const uint8_t *end;
    bool malformed; /* sticks: `at` is where the field began that could not be read */
};

struct wpk_protobuf_field {
    uint32_t number; /* >= 1 */
    enum wpk_protobuf_wire wire;
    uint64_t value;            /* VARINT, FIXED64, FIXED32 */
    struct wpk_protobuf bytes; /* BYTES: text, a message, or packed values; borrowed */
};

/* Read the next field. False at the end, and where the rest is malformed. */
bool wpk_protobuf_next(struct wpk_protobuf *reader, struct wpk_protobuf_field *out);

/* Read the next varint of a packed field, under the same rule. */
bool wpk_protobuf_varint(struct wpk_protobuf *reader, uint64_t *out);

/* Bytes that are left. */
size_t wpk_protobuf_size(const struct wpk_protobuf *reader);

#endif
