/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/npy.h"

#include "schema/convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64 /* of the elements in a file, as NumPy writes it */
#define SHAPE_SIZE 256
#define HEADER_SIZE_MAX ((size_t)64 << 10)

static const char magic[] = "\x93NUMPY";
#define MAGIC_SIZE (sizeof(magic) - 1)

/* The header while it is read: a dictionary of three members in any order. */
struct header {
    const char *at;
    const char *end;
    struct wpk_npy *out;
    bool has_descr, has_order, has_shape;
};

const char *wpk_npy_descr(enum wpk_dtype dtype)
{
    static const char *const names[WPK_DTYPE_COUNT] = {
        [WPK_F32] = "<f4", [WPK_F64] = "<f8", [WPK_F16] = "<f2", [WPK_BF16] = "<u2",
        [WPK_I8] = "|i1",  [WPK_U8] = "|u1",  [WPK_I16] = "<i2", [WPK_I32] = "<i4",
        [WPK_I64] = "<i8", [WPK_BOOL] = "|b1"};

    WPK_ASSERT(dtype < WPK_DTYPE_COUNT);
    return names[dtype];
}

/* ---- reading */

static void skip_blanks(struct header *header)
{
    while (header->at < header->end && (*header->at == ' ' || *header->at == '\n')) {
        header->at++;
    }
}

static bool take(struct header *header, char wanted)
{
    skip_blanks(header);
    if (header->at == header->end || *header->at != wanted) {
        return false;
    }
    header->at++;
    return true;
}

static bool take_word(struct header *header, const char *word)
{
    size_t size = strlen(word);

    skip_blanks(header);
    if ((size_t)(header->end - header->at) < size || memcmp(header->at, word, size) != 0) {
        return false;
    }
    header->at += size;
    return true;
}

/* 'text' or "text", without escapes. */
static bool take_text(struct header *header, char *out, size_t out_size)
{
    skip_blanks(header);
    if (header->at == header->end || (*header->at != '\'' && *header->at != '"')) {
        return false;
    }
    char quote = *header->at++;
    const char *end = memchr(header->at, quote, (size_t)(header->end - header->at));
    if (end == NULL || (size_t)(end - header->at) >= out_size ||
        memchr(header->at, '\\', (size_t)(end - header->at)) != NULL) {
        return false;
    }
    memcpy(out, header->at, (size_t)(end - header->at));
    out[end - header->at] = '\0';
    header->at = end + 1;
    return true;
}

static bool take_number(struct header *header, int64_t *out)
{
    int64_t value = 0;

    skip_blanks(header);
    const char *first = header->at;
    while (header->at < header->end && *header->at >= '0' && *header->at <= '9') {
        if (value > WPK_ELEMENTS_MAX) {
            return false;
        }
        value = value * 10 + (*header->at++ - '0');
    }
    *out = value;
    return header->at > first;
}

/* (), (3,) or (3, 4) */
static bool take_shape(struct header *header)
{
    struct wpk_npy *npy = header->out;
    int64_t elements = 1;

    if (!take(header, '(')) {
        return false;
    }
    for (bool more = true; more && !take(header, ')');) {
        if (npy->rank == WPK_RANK_MAX || !take_number(header, &npy->extent[npy->rank])) {
            return false;
        }
        if (npy->extent[npy->rank] > 0 && elements > WPK_ELEMENTS_MAX / npy->extent[npy->rank]) {
            return false;
        }
        elements *= npy->extent[npy->rank++];
        more = take(header, ',');
        if (!more && (npy->rank == 1 || !take(header, ')'))) {
            return false; /* (3) is no tuple */
        }
    }
    return true;
}

static bool take_member(struct header *header)
{
    char name[WPK_NPY_DESCR_SIZE];

    if (!take_text(header, name, sizeof(name)) || !take(header, ':')) {
        return false;
    }
    if (strcmp(name, "descr") == 0 && !header->has_descr) {
        header->has_descr = true;
        return take_text(header, header->out->descr, sizeof(header->out->descr));
    }
    if (strcmp(name, "fortran_order") == 0 && !header->has_order) {
        header->has_order = true;
        header->out->fortran_order = take_word(header, "True");
        return header->out->fortran_order || take_word(header, "False");
    }
    if (strcmp(name, "shape") == 0 && !header->has_shape) {
        header->has_shape = true;
        return take_shape(header);
    }
    return false;
}

static bool take_header(struct header *header)
{
    if (!take(header, '{')) {
        return false;
    }
    while (!take(header, '}')) {
        if (!take_member(header)) {
            return false;
        }
        if (!take(header, ',')) {
            if (!take(header, '}')) {
                return false;
            }
            break;
        }
    }
    skip_blanks(header);
    return header->at == header->end && header->has_descr && header->has_order && header->has_shape;
}

wpk_err wpk_npy_decode(const void *bytes, size_t size, struct wpk_npy *out, struct wpk_diag *diag)
{
    const uint8_t *byte = bytes;
    struct wpk_npy npy = {.rank = 0};

    if (size < MAGIC_SIZE + 4 || memcmp(bytes, magic, MAGIC_SIZE) != 0) {
        return wpk_fail(diag, WPK_EPARSE, "not a .npy file; numpy.save writes one");
    }
    uint8_t version = byte[MAGIC_SIZE];
    size_t length_size = version == 1 ? 2 : 4;
    size_t length = 0;
    size_t start = MAGIC_SIZE + 2 + length_size;
    if (version < 1 || version > 2 || byte[MAGIC_SIZE + 1] != 0) {
        return wpk_fail(diag, WPK_EPARSE, ".npy version %d.%d; versions 1.0 and 2.0 are read",
                        version, byte[MAGIC_SIZE + 1]);
    }
    for (size_t i = 0; i < length_size && MAGIC_SIZE + 2 + i < size; i++) {
        length |= (size_t)byte[MAGIC_SIZE + 2 + i] << (8 * i);
    }
    if (start > size || length > size - start || length > HEADER_SIZE_MAX) {
        return wpk_fail(diag, WPK_EPARSE,
                        "the file ends within its header; write it again with numpy.save");
    }
    const char *text = (const char *)bytes + start;
    struct header header = {.at = text, .end = text + length, .out = &npy};
    if (!take_header(&header)) {
        return wpk_fail(diag, WPK_EPARSE,
                        "the header is not a dictionary of descr, fortran_order and shape; "
                        "write the file again with numpy.save");
    }
    npy.data = text + length;
    npy.size = size - start - length;
    *out = npy;
    return WPK_OK;
}

/* ---- elements */

static void print_shape(const int64_t *extent, int rank, char out[SHAPE_SIZE])
{
    size_t used = (size_t)snprintf(out, SHAPE_SIZE, "(");

    for (int i = 0; i < rank && used < SHAPE_SIZE; i++) {
        used += (size_t)snprintf(out + used, SHAPE_SIZE - used, "%s%" PRId64, i > 0 ? ", " : "",
                                 extent[i]);
    }
    if (used < SHAPE_SIZE) {
        snprintf(out + used, SHAPE_SIZE - used, "%s)", rank == 1 ? "," : "");
    }
}

/* The type of "<f4" and the like. False: none that tensors have. */
static bool find_dtype(const char *descr, enum wpk_dtype *out, bool *is_swapped)
{
    for (int i = 0; i < WPK_DTYPE_COUNT; i++) {
        const char *name = wpk_npy_descr((enum wpk_dtype)i);
        if (i != WPK_BF16 && strchr("<>|=", descr[0]) != NULL && strcmp(descr + 1, name + 1) == 0) {
            *out = (enum wpk_dtype)i;
            *is_swapped = descr[0] == '>' && wpk_dtype_size(*out) > 1;
            return true;
        }
    }
    return false;
}

/* As NumPy's casting "same_kind", but that no integer loses bits. */
static bool can_convert(enum wpk_dtype from, enum wpk_dtype to)
{
    double low[2];
    double high[2];

    if (from == to || wpk_dtype_is_float(to)) {
        return from == to || wpk_dtype_is_float(from);
    }
    if (wpk_dtype_is_float(from) || to == WPK_BOOL) {
        return false;
    }
    wpk_convert_bounds(from, &low[0], &high[0]);
    wpk_convert_bounds(to, &low[1], &high[1]);
    return from == WPK_BOOL || (low[1] <= low[0] && high[0] <= high[1]);
}

/* Copy the elements in C order and the machine's byte order. */
static void reorder(const struct wpk_npy *npy, size_t size, bool is_swapped, char *out)
{
    int64_t index[WPK_RANK_MAX] = {0};
    int64_t count = (int64_t)(npy->size / size);

    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        for (int d = npy->rank - 1; npy->fortran_order && d >= 0; d--) {
            at = at * npy->extent[d] + index[d];
        }
        const char *from = (const char *)npy->data + (size_t)(npy->fortran_order ? at : i) * size;
        for (size_t b = 0; b < size; b++) {
            out[(size_t)i * size + b] = from[is_swapped ? size - 1 - b : b];
        }
        for (int d = npy->rank - 1; d >= 0 && ++index[d] == npy->extent[d]; d--) {
            index[d] = 0;
        }
    }
}

static bool has_shape(const struct wpk_npy *npy, const struct wpk_tensor_type *type)
{
    bool same = npy->rank == type->rank;

    for (int i = 0; same && i < type->rank; i++) {
        same = npy->extent[i] == type->extent[i];
    }
    return same;
}

wpk_err wpk_npy_read(const struct wpk_npy *npy, const struct wpk_tensor_type *type, void *out,
                     struct wpk_diag *diag)
{
    char wanted[SHAPE_SIZE];
    char found[SHAPE_SIZE];
    const char *descr = wpk_npy_descr(type->dtype);
    int64_t count = wpk_tensor_type_elements(type);
    bool is_raw = strcmp(npy->descr, descr) == 0; /* bf16 is "<u2" */
    bool is_swapped = false;
    enum wpk_dtype from = type->dtype;

    print_shape(type->extent, type->rank, wanted);
    print_shape(npy->extent, npy->rank, found);
    if (!has_shape(npy, type) || (!is_raw && (!find_dtype(npy->descr, &from, &is_swapped) ||
                                              !can_convert(from, type->dtype)))) {
        return wpk_fail(diag, WPK_EINVAL, "expected %s (%s) %s, found %s %s", descr,
                        wpk_dtype_name(type->dtype), wanted, npy->descr, found);
    }
    size_t size = wpk_dtype_size(from);
    if (npy->size != (size_t)count * size) {
        return wpk_fail(diag, WPK_EINVAL,
                        "expected %zu bytes of elements, found %zu; write it again with numpy.save",
                        (size_t)count * size, npy->size);
    }
    if (from == type->dtype) {
        reorder(npy, size, is_swapped, out);
        return WPK_OK;
    }
    char *elements = malloc(npy->size + 1);
    double *wide = calloc((size_t)count + 1, sizeof(*wide));
    if (elements != NULL && wide != NULL) {
        reorder(npy, size, is_swapped, elements);
        wpk_convert_widen(from, elements, count, wide);
        wpk_convert_narrow(type->dtype, wide, count, out);
    }
    wpk_err err = elements != NULL && wide != NULL ? WPK_OK : WPK_ENOMEM;
    free(elements);
    free(wide);
    return err;
}

/* ---- writing */

void wpk_npy_encode(const struct wpk_tensor_type *type, const void *data, struct wpk_buf *out)
{
    char shape[SHAPE_SIZE];
    char header[2 * SHAPE_SIZE];

    print_shape(type->extent, type->rank, shape);
    int length =
        snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                 wpk_npy_descr(type->dtype), shape);
    size_t start = MAGIC_SIZE + 4;
    size_t padded = (start + (size_t)length + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - start;
    const uint8_t head[] = {1, 0, (uint8_t)(padded & 255), (uint8_t)(padded >> 8)};
    wpk_buf_append(out, magic, MAGIC_SIZE);
    wpk_buf_append(out, head, sizeof(head));
    wpk_buf_printf(out, "%s%*s\n", header, (int)(padded - 1 - (size_t)length), "");
    wpk_buf_append(out, data, (size_t)wpk_tensor_type_elements(type) * wpk_dtype_size(type->dtype));
}
