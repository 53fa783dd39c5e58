/* SPDX-License-Identifier: Apache-2.0 */
/* One odometer over the physical dimensions walks every layout row by row. It alone maps physical
 * to logical indices; packing, unpacking and the padding check differ in what they do with rows. */
#include "schema/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct dtype {
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
    int found = WPK_FIND(struct dtype, name, dtypes, WPK_DTYPE_COUNT, text);
    if (found < 0) {
        return WPK_ENOENT;
    }
    *out = (enum wpk_dtype)found;
    return WPK_OK;
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

bool wpk_layout_is_ordered(const struct wpk_layout *layout)
{
    bool ordered = layout->block == 0 && layout->dim_count == layout->rank;

    for (int d = 0; ordered && d < layout->rank; d++) {
        ordered = layout->axis[d] == d;
    }
    return ordered;
}

bool wpk_layout_is_row_major(const struct wpk_layout *layout)
{
    bool dense = wpk_layout_is_ordered(layout);

    for (int d = 0; dense && d < layout->rank; d++) {
        dense = layout->pad_before[d] == 0 && layout->pad_after[d] == 0;
    }
    return dense;
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
    if (wpk_begins(text, " pad ")) {
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

bool wpk_tensor_type_equal(const struct wpk_tensor_type *a, const struct wpk_tensor_type *b)
{
    const struct wpk_layout *x = &a->layout;
    const struct wpk_layout *y = &b->layout;
    size_t size = (size_t)a->rank * sizeof(a->extent[0]);

    return a->dtype == b->dtype && a->rank == b->rank && memcmp(a->extent, b->extent, size) == 0 &&
           x->dim_count == y->dim_count &&
           memcmp(x->axis, y->axis, (size_t)x->dim_count * sizeof(x->axis[0])) == 0 &&
           x->block == y->block && (x->block == 0 || x->block_axis == y->block_axis) &&
           memcmp(x->pad_before, y->pad_before, size) == 0 &&
           memcmp(x->pad_after, y->pad_after, size) == 0;
}

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

int64_t wpk_extents_product(const int64_t *extent, int count)
{
    int64_t product = 1;
    for (int d = 0; d < count; d++) {
        product *= extent[d];
    }
    return product;
}

int64_t wpk_tensor_type_elements(const struct wpk_tensor_type *type)
{
    return wpk_extents_product(type->extent, type->rank);
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

/* ---- the odometer over physical rows */

struct walk {
    const struct wpk_tensor_type *type;
    int64_t dims[WPK_RANK_MAX];
    int64_t index[WPK_RANK_MAX];  /* physical, of the row's first element */
    int64_t stride[WPK_RANK_MAX]; /* of the logical array, in elements */
    int64_t row_count;
    int64_t row_length; /* elements of the last physical dimension */
};

/* Of a row, elements [first, last) are in the logical array, `step` apart from `offset` on; the
 * rest is padding. */
struct row {
    int64_t first;
    int64_t last;
    int64_t offset;
    int64_t step;
};

static void walk_init(struct walk *walk, const struct wpk_tensor_type *type)
{
    memset(walk, 0, sizeof *walk);
    walk->type = type;
    wpk_tensor_type_dims(type, walk->dims);
    int last = type->layout.dim_count - 1;
    walk->row_length = last >= 0 ? walk->dims[last] : 1;
    walk->row_count = 1;
    for (int d = 0; d < last; d++) {
        walk->row_count *= walk->dims[d];
    }
    int64_t stride = 1;
    for (int a = type->rank - 1; a >= 0; a--) {
        walk->stride[a] = stride;
        stride *= type->extent[a];
    }
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static struct row walk_row(const struct walk *walk)
{
    const struct wpk_layout *layout = &walk->type->layout;
    int64_t logical[WPK_RANK_MAX] = {0};
    int last = layout->dim_count - 1;
    for (int d = 0; d < last; d++) {
        int axis = layout->axis[d];
        bool quotient = layout->block > 0 && axis == layout->block_axis;
        logical[axis] += quotient ? walk->index[d] * layout->block : walk->index[d];
    }
    /* The last dimension is never a quotient: it moves its axis by one. */
    int inner = last >= 0 ? layout->axis[last] : -1;
    struct row row = {.last = walk->row_length};
    for (int a = 0; a < walk->type->rank; a++) {
        int64_t start = logical[a] - layout->pad_before[a];
        int64_t extent = walk->type->extent[a];
        if (a == inner) {
            row.first = clamp(-start, 0, walk->row_length);
            row.last = clamp(extent - start, row.first, walk->row_length);
            row.step = walk->stride[a];
            start += row.first;
        } else if (start < 0 || start >= extent) {
            return (struct row){0};
        }
        row.offset += start * walk->stride[a];
    }
    return row;
}

static void walk_next(struct walk *walk)
{
    for (int d = walk->type->layout.dim_count - 2; d >= 0; d--) {
        if (++walk->index[d] < walk->dims[d]) {
            return;
        }
        walk->index[d] = 0;
    }
}

/* `count` elements of `size` bytes, `to_step` and `from_step` elements apart. */
static void copy_elements(size_t size, char *to, int64_t to_step, const char *from,
                          int64_t from_step, int64_t count)
{
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)count * size);
        return;
    }
    /* A constant size makes each copy one instruction. */
#define COPY(bytes)                                                                                \
    for (int64_t i = 0; i < count; i++) {                                                          \
        memcpy(to + i * to_step * (bytes), from + i * from_step * (bytes), (bytes));               \
    }
    switch (size) {
    case 1:
        COPY(1)
        break;
    case 2:
        COPY(2)
        break;
    case 4:
        COPY(4)
        break;
    default:
        WPK_ASSERT(size == 8);
        COPY(8)
    }
#undef COPY
}

void wpk_tensor_pack(const struct wpk_tensor_type *type, const void *logical, void *physical)
{
    size_t size = wpk_dtype_size(type->dtype);
    struct walk walk;

    if (wpk_layout_is_row_major(&type->layout)) {
        memcpy(physical, logical, wpk_tensor_type_bytes(type));
        return;
    }
    walk_init(&walk, type);
    char *to = physical;
    for (int64_t i = 0; i < walk.row_count; i++, walk_next(&walk)) {
        struct row row = walk_row(&walk);
        memset(to, 0, (size_t)row.first * size);
        if (row.last > row.first) {
            copy_elements(size, to + (size_t)row.first * size, 1,
                          (const char *)logical + (size_t)row.offset * size, row.step,
                          row.last - row.first);
        }
        memset(to + (size_t)row.last * size, 0, (size_t)(walk.row_length - row.last) * size);
        to += (size_t)walk.row_length * size;
    }
}

void wpk_tensor_unpack(const struct wpk_tensor_type *type, const void *physical, void *logical)
{
    size_t size = wpk_dtype_size(type->dtype);
    struct walk walk;

    if (wpk_layout_is_row_major(&type->layout)) {
        memcpy(logical, physical, wpk_tensor_type_bytes(type));
        return;
    }
    walk_init(&walk, type);
    const char *from = physical;
    for (int64_t i = 0; i < walk.row_count; i++, walk_next(&walk)) {
        struct row row = walk_row(&walk);
        if (row.last > row.first) {
            copy_elements(size, (char *)logical + (size_t)row.offset * size, row.step,
                          from + (size_t)row.first * size, 1, row.last - row.first);
        }
        from += (size_t)walk.row_length * size;
    }
}

static bool is_zero(const char *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] != 0) {
            return false;
        }
    }
    return true;
}

bool wpk_tensor_padding_is_zero(const struct wpk_tensor_type *type, const void *physical)
{
    size_t size = wpk_dtype_size(type->dtype);
    struct walk walk;
    walk_init(&walk, type);
    const char *at = physical;
    for (int64_t i = 0; i < walk.row_count; i++, walk_next(&walk)) {
        struct row row = walk_row(&walk);
        if (!is_zero(at, (size_t)row.first * size) ||
            !is_zero(at + (size_t)row.last * size, (size_t)(walk.row_length - row.last) * size)) {
            return false;
        }
        at += (size_t)walk.row_length * size;
    }
    return true;
}

struct spans {
    struct wpk_tensor_span *list;
    int64_t max;
    int64_t count;
    size_t end; /* of the last one */
};

static void add_span(struct spans *spans, size_t offset, size_t size)
{
    if (size == 0) {
        return;
    }
    if (spans->count > 0 && spans->end == offset) {
        if (spans->count <= spans->max) {
            spans->list[spans->count - 1].size += size;
        }
    } else if (spans->count++ < spans->max) {
        spans->list[spans->count - 1] = (struct wpk_tensor_span){offset, size};
    }
    spans->end = offset + size;
}

int64_t wpk_tensor_padding(const struct wpk_tensor_type *type, struct wpk_tensor_span *out,
                           int64_t max)
{
    size_t size = wpk_dtype_size(type->dtype);
    struct spans spans = {.list = out, .max = max};
    size_t at = 0;
    struct walk walk;

    walk_init(&walk, type);
    for (int64_t i = 0; i < walk.row_count; i++, walk_next(&walk)) {
        struct row row = walk_row(&walk);
        add_span(&spans, at, (size_t)row.first * size);
        add_span(&spans, at + (size_t)row.last * size, (size_t)(walk.row_length - row.last) * size);
        at += (size_t)walk.row_length * size;
    }
    return spans.count;
}
