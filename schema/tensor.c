/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts are walked by one odometer over the physical dimensions: what maps a physical index to
 * a logical one is written once, and packing, unpacking and the padding check differ only in what
 * they do at each element. */
#include "schema/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
    bool floating;
} dtypes[WPK_DTYPE_COUNT] = {
#define WPK_DTYPE_ROW(name, text, size, floating) {text, size, floating},
    WPK_DTYPE_LIST(WPK_DTYPE_ROW)
#undef WPK_DTYPE_ROW
};

const char *wpk_dtype_name(enum wpk_dtype dtype)
{
    WPK_ASSERT((unsigned)dtype < WPK_DTYPE_COUNT);
    return dtypes[dtype].name;
}

size_t wpk_dtype_size(enum wpk_dtype dtype)
{
    WPK_ASSERT((unsigned)dtype < WPK_DTYPE_COUNT);
    return dtypes[dtype].size;
}

bool wpk_dtype_is_float(enum wpk_dtype dtype)
{
    WPK_ASSERT((unsigned)dtype < WPK_DTYPE_COUNT);
    return dtypes[dtype].floating;
}

wpk_err wpk_dtype_parse(const char *text, enum wpk_dtype *out)
{
    for (int i = 0; i < WPK_DTYPE_COUNT; i++) {
        if (strcmp(text, dtypes[i].name) == 0) {
            *out = (enum wpk_dtype)i;
            return WPK_OK;
        }
    }
    return WPK_ENOENT;
}

struct wpk_layout wpk_layout_row_major(int rank)
{
    WPK_ASSERT(rank >= 0 && rank <= WPK_RANK_MAX);
    struct wpk_layout layout = {.rank = rank, .dim_count = rank};
    for (int d = 0; d < rank; d++) {
        layout.axis[d] = d;
    }
    return layout;
}

bool wpk_layout_is_row_major(const struct wpk_layout *layout)
{
    if (layout->block > 0 || layout->dim_count != layout->rank) {
        return false;
    }
    for (int d = 0; d < layout->rank; d++) {
        if (layout->axis[d] != d || layout->pad_before[d] != 0 || layout->pad_after[d] != 0) {
            return false;
        }
    }
    return true;
}

/* ---- text */

static bool has_padding(const struct wpk_layout *layout)
{
    for (int a = 0; a < layout->rank; a++) {
        if (layout->pad_before[a] != 0 || layout->pad_after[a] != 0) {
            return true;
        }
    }
    return false;
}

wpk_err wpk_layout_encode(const struct wpk_layout *layout, char *out, size_t size)
{
    char text[512]; /* 10 dimensions and 20 numbers of 10 digits at most: WPK_ELEMENTS_MAX */
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; d < layout->dim_count; d++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", d > 0 ? "," : "",
                                 layout->axis[d]);
    }
    if (layout->block > 0) {
        used += (size_t)snprintf(text + used, sizeof text - used, "/%" PRId64, layout->block);
    }
    for (int a = 0; has_padding(layout) && a < layout->rank; a++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%" PRId64 ":%" PRId64,
                             a > 0 ? "," : " pad ", layout->pad_before[a], layout->pad_after[a]);
        WPK_ASSERT(used < sizeof text);
    }
    if (used >= size) {
        return WPK_ENOSPC;
    }
    memcpy(out, text, used + 1);
    return WPK_OK;
}

/* Decimal digits only, at most `max`; moves *text past them. */
static bool take_number(const char **text, int64_t max, int64_t *out)
{
    const char *p = *text;
    int64_t value = 0;
    if (*p < '0' || *p > '9') {
        return false;
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (*p - '0');
        if (value > max) {
            return false;
        }
    }
    *text = p;
    *out = value;
    return true;
}

static bool take_byte(const char **text, char byte)
{
    if (**text != byte) {
        return false;
    }
    (*text)++;
    return true;
}

static bool take_order(const char **text, struct wpk_layout *layout)
{
    bool seen[WPK_RANK_MAX] = {false};
    for (int d = 0; d < layout->rank; d++) {
        int64_t axis;
        if ((d > 0 && !take_byte(text, ',')) || !take_number(text, layout->rank - 1, &axis) ||
            seen[axis]) {
            return false;
        }
        seen[axis] = true;
        layout->axis[d] = (int)axis;
    }
    layout->dim_count = layout->rank;
    if (layout->rank == 0 || !take_byte(text, ',')) {
        return true;
    }
    int64_t axis;
    if (layout->rank == WPK_RANK_MAX || !take_number(text, layout->rank - 1, &axis) ||
        !take_byte(text, '/') || !take_number(text, WPK_ELEMENTS_MAX, &layout->block) ||
        layout->block == 0) {
        return false;
    }
    layout->block_axis = (int)axis;
    layout->axis[layout->dim_count++] = (int)axis;
    return true;
}

wpk_err wpk_layout_decode(const char *text, int rank, struct wpk_layout *out)
{
    WPK_ASSERT(rank >= 0 && rank <= WPK_RANK_MAX);
    struct wpk_layout layout = {.rank = rank};
    if (!take_order(&text, &layout)) {
        return WPK_EPARSE;
    }
    if (strncmp(text, " pad ", 5) == 0) {
        text += 5;
        for (int a = 0; a < rank; a++) {
            if ((a > 0 && !take_byte(&text, ',')) ||
                !take_number(&text, WPK_ELEMENTS_MAX, &layout.pad_before[a]) ||
                !take_byte(&text, ':') ||
                !take_number(&text, WPK_ELEMENTS_MAX, &layout.pad_after[a])) {
                return WPK_EPARSE;
            }
        }
    }
    if (*text != '\0') {
        return WPK_EPARSE;
    }
    *out = layout;
    return WPK_OK;
}

/* ---- sizes */

void wpk_tensor_type_dims(const struct wpk_tensor_type *type, int64_t dims[WPK_RANK_MAX])
{
    const struct wpk_layout *layout = &type->layout;
    WPK_ASSERT(layout->rank == type->rank);
    WPK_ASSERT(layout->dim_count == layout->rank + (layout->block > 0 ? 1 : 0));
    for (int d = 0; d < layout->dim_count; d++) {
        int axis = layout->axis[d];
        int64_t padded = layout->pad_before[axis] + type->extent[axis] + layout->pad_after[axis];
        if (layout->block == 0 || axis != layout->block_axis) {
            dims[d] = padded;
        } else if (d == layout->dim_count - 1) {
            dims[d] = layout->block;
        } else {
            dims[d] = (padded + layout->block - 1) / layout->block;
        }
    }
}

int64_t wpk_tensor_type_elements(const struct wpk_tensor_type *type)
{
    int64_t count = 1;
    for (int a = 0; a < type->rank; a++) {
        count *= type->extent[a];
    }
    return count;
}

size_t wpk_tensor_type_bytes(const struct wpk_tensor_type *type)
{
    int64_t dims[WPK_RANK_MAX];
    wpk_tensor_type_dims(type, dims);
    size_t bytes = wpk_dtype_size(type->dtype);
    for (int d = 0; d < type->layout.dim_count; d++) {
        bytes *= (size_t)dims[d];
    }
    return bytes;
}

/* ---- the odometer over physical elements */

struct walk {
    const struct wpk_tensor_type *type;
    int64_t dims[WPK_RANK_MAX];
    int64_t index[WPK_RANK_MAX];  /* physical */
    int64_t stride[WPK_RANK_MAX]; /* of the logical array, in elements */
    int64_t count;                /* physical elements */
};

static void walk_init(struct walk *walk, const struct wpk_tensor_type *type)
{
    memset(walk, 0, sizeof *walk);
    walk->type = type;
    wpk_tensor_type_dims(type, walk->dims);
    walk->count = 1;
    for (int d = 0; d < type->layout.dim_count; d++) {
        walk->count *= walk->dims[d];
    }
    int64_t stride = 1;
    for (int a = type->rank - 1; a >= 0; a--) {
        walk->stride[a] = stride;
        stride *= type->extent[a];
    }
}

/* Offset in the logical array, or -1 in the padding. */
static int64_t walk_logical(const struct walk *walk)
{
    const struct wpk_layout *layout = &walk->type->layout;
    int64_t logical[WPK_RANK_MAX] = {0};
    for (int d = 0; d < layout->dim_count; d++) {
        int axis = layout->axis[d];
        bool quotient =
            layout->block > 0 && axis == layout->block_axis && d < layout->dim_count - 1;
        logical[axis] += quotient ? walk->index[d] * layout->block : walk->index[d];
    }
    int64_t offset = 0;
    for (int a = 0; a < walk->type->rank; a++) {
        int64_t i = logical[a] - layout->pad_before[a];
        if (i < 0 || i >= walk->type->extent[a]) {
            return -1;
        }
        offset += i * walk->stride[a];
    }
    return offset;
}

static void walk_next(struct walk *walk)
{
    for (int d = walk->type->layout.dim_count - 1; d >= 0; d--) {
        if (++walk->index[d] < walk->dims[d]) {
            return;
        }
        walk->index[d] = 0;
    }
}

void wpk_tensor_pack(const struct wpk_tensor_type *type, const void *logical, void *physical)
{
    size_t size = wpk_dtype_size(type->dtype);
    struct walk walk;
    walk_init(&walk, type);
    char *to = physical;
    for (int64_t i = 0; i < walk.count; i++, to += size, walk_next(&walk)) {
        int64_t offset = walk_logical(&walk);
        if (offset < 0) {
            memset(to, 0, size);
        } else {
            memcpy(to, (const char *)logical + (size_t)offset * size, size);
        }
    }
}

void wpk_tensor_unpack(const struct wpk_tensor_type *type, const void *physical, void *logical)
{
    size_t size = wpk_dtype_size(type->dtype);
    struct walk walk;
    walk_init(&walk, type);
    const char *from = physical;
    for (int64_t i = 0; i < walk.count; i++, from += size, walk_next(&walk)) {
        int64_t offset = walk_logical(&walk);
        if (offset >= 0) {
            memcpy((char *)logical + (size_t)offset * size, from, size);
        }
    }
}

bool wpk_tensor_padding_is_zero(const struct wpk_tensor_type *type, const void *physical)
{
    static const char zero[8];
    size_t size = wpk_dtype_size(type->dtype);
    struct walk walk;
    walk_init(&walk, type);
    const char *at = physical;
    for (int64_t i = 0; i < walk.count; i++, at += size, walk_next(&walk)) {
        if (memcmp(at, zero, size) != 0 && walk_logical(&walk) < 0) {
            return false;
        }
    }
    return true;
}

bool wpk_tensor_type_equal(const struct wpk_tensor_type *a, const struct wpk_tensor_type *b)
{
    const struct wpk_layout *x = &a->layout;
    const struct wpk_layout *y = &b->layout;
    if (a->dtype != b->dtype || a->rank != b->rank || x->dim_count != y->dim_count ||
        x->block != y->block || (x->block > 0 && x->block_axis != y->block_axis)) {
        return false;
    }
    for (int i = 0; i < a->rank; i++) {
        if (a->extent[i] != b->extent[i] || x->pad_before[i] != y->pad_before[i] ||
            x->pad_after[i] != y->pad_after[i]) {
            return false;
        }
    }
    for (int d = 0; d < x->dim_count; d++) {
        if (x->axis[d] != y->axis[d]) {
            return false;
        }
    }
    return true;
}
