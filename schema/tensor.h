/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and layouts of tensors.
 *
 * A logical tensor is what the user declared: extents, row-major, no padding. A layout says how
 * its elements lie in memory: an order of axes, at most one blocked axis, and zero padding. */
#ifndef WPK_SCHEMA_TENSOR_H
#define WPK_SCHEMA_TENSOR_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_RANK_MAX 10
#define WPK_NAME_MAX 48                     /* with its NUL */
#define WPK_ELEMENTS_MAX ((int64_t)1 << 33) /* of one tensor; extents and products stay below */

/* enum suffix, text, bytes, is floating point */
#define WPK_DTYPE_LIST(X)                                                                          \
    X(F32, "f32", 4, true)                                                                         \
    X(F64, "f64", 8, true)                                                                         \
    X(F16, "f16", 2, true)                                                                         \
    X(BF16, "bf16", 2, true)                                                                       \
    X(I8, "i8", 1, false)                                                                          \
    X(U8, "u8", 1, false)                                                                          \
    X(I16, "i16", 2, false)                                                                        \
    X(I32, "i32", 4, false)                                                                        \
    X(I64, "i64", 8, false)                                                                        \
    X(BOOL, "bool", 1, false)

#define WPK_DTYPE_ENUM(name, text, size, floating) WPK_##name,
enum wpk_dtype { WPK_DTYPE_LIST(WPK_DTYPE_ENUM) WPK_DTYPE_COUNT };

const char *wpk_dtype_name(enum wpk_dtype dtype);
size_t wpk_dtype_size(enum wpk_dtype dtype);
bool wpk_dtype_is_float(enum wpk_dtype dtype);

/*   errors  WPK_ENOENT  no such type */
wpk_err wpk_dtype_parse(const char *text, enum wpk_dtype *out);

/* How a logical tensor lies in memory.
 *
 * Physical dimension d holds logical axis `axis[d]`. If `block` > 0, logical axis `block_axis`
 * appears twice: its quotient by `block` at its place in the order, and its remainder as the last
 * physical dimension (so nchw16c is order 0,1,2,3,1 with block 16). The last dimension is dense.
 * Padding counts elements of the logical axis, holds zeros, and is added before blocking:
 * a padded and blocked axis has ceil((before + extent + after) / block) blocks.
 * Invariant: dim_count == rank + (block > 0). The row-major layout is axis[d] = d, no padding. */
struct wpk_layout {
    int rank;               /* of the logical tensor */
    int dim_count;          /* physical */
    int axis[WPK_RANK_MAX]; /* [dim_count] logical axis of each physical dimension */
    int block_axis;
    int64_t block;                    /* 0: nothing is blocked */
    int64_t pad_before[WPK_RANK_MAX]; /* [rank] elements of the logical axis */
    int64_t pad_after[WPK_RANK_MAX];  /* [rank] */
};

/* A declared tensor with its layout. */
struct wpk_tensor_type {
    enum wpk_dtype dtype;
    int rank;
    int64_t extent[WPK_RANK_MAX]; /* [rank], logical, each >= 1; rank 0 is a scalar */
    struct wpk_layout layout;
};

struct wpk_layout wpk_layout_row_major(int rank);
bool wpk_layout_is_row_major(const struct wpk_layout *layout); /* no padding either */
bool wpk_layout_is_ordered(const struct wpk_layout *layout);   /* row-major but for padding */

/* Text of a layout: the physical order with its block and padding, such as "0,2,3,1",
 * "0,1,2,3,1/16" or "0,2,3,1 pad 0:0,0:0,1:1,1:1" (padding per logical axis).
 *   errors  WPK_EPARSE on decode; WPK_ENOSPC when `size` is too small on encode */
wpk_err wpk_layout_encode(const struct wpk_layout *layout, char *out, size_t size);
wpk_err wpk_layout_decode(const char *text, int rank, struct wpk_layout *out);

/* True if buffers of both types hold the same elements at the same places. */
bool wpk_tensor_type_equal(const struct wpk_tensor_type *a, const struct wpk_tensor_type *b);

/* Extents of the physical dimensions, and the elements and bytes of the whole buffer. */
void wpk_tensor_type_dims(const struct wpk_tensor_type *type, int64_t dims[WPK_RANK_MAX]);
int64_t wpk_tensor_type_elements(const struct wpk_tensor_type *type); /* logical, without padding */
int64_t wpk_extents_product(const int64_t *extent, int count);        /* 1 if count <= 0 */
size_t wpk_tensor_type_bytes(const struct wpk_tensor_type *type);     /* physical, with padding */

/* Copy between a dense row-major array and a buffer of `type`'s layout.
 *
 *   shape   logical [extent...], physical [dims...]
 *   owns    caller owns both; pack writes every physical element, padding with zeros
 */
void wpk_tensor_pack(const struct wpk_tensor_type *type, const void *logical, void *physical);
void wpk_tensor_unpack(const struct wpk_tensor_type *type, const void *physical, void *logical);

/* A part of a buffer. */
struct wpk_tensor_span {
    size_t offset; /* bytes */
    size_t size;
};

/* Find the padding of a buffer, in order; spans do not touch each other.
 *   shape   out [max]; returns how many there are, which may be more than max */
int64_t wpk_tensor_padding(const struct wpk_tensor_type *type, struct wpk_tensor_span *out,
                           int64_t max);

/* True when every padding element of `physical` is zero; a kernel must not write padding. */
bool wpk_tensor_padding_is_zero(const struct wpk_tensor_type *type, const void *physical);

#ifdef __cplusplus
}
#endif

#endif
