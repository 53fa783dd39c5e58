/* SPDX-License-Identifier: Apache-2.0 */
#include "client/npy.h"

#include <inttypes.h>
#include <stdio.h>
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
        [WPK_F32] = "<f4",  [WPK_F64] = "<f8", [WPK_F16] = "<f2",
        [WPK_BF16] = "<u2", [WPK_I8] = "|i1",  [WPK_U8] = "|u1",
        [WPK_I32] = "<i4",  [WPK_I64] = "<i8", [WPK_BOOL] = "|b1"};

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
        wpk_diag_set(diag, "not a .npy file; numpy.save writes one");
        return WPK_EPARSE;
    }
    uint8_t version = byte[MAGIC_SIZE];
    size_t length_size = version == 1 ? 2 : 4;
    size_t length = 0;
    size_t start = MAGIC_SIZE + 2 + length_size;
    if (version < 1 || version > 2 || byte[MAGIC_SIZE + 1] != 0) {
        wpk_diag_set(diag, ".npy version %d.%d; versions 1.0 and 2.0 are read", version,
                     byte[MAGIC_SIZE + 1]);
        return WPK_EPARSE;
    }
    for (size_t i = 0; i < length_size && MAGIC_SIZE + 2 + i < size; i++) {
        length |= (size_t)byte[MAGIC_SIZE + 2 + i] << (8 * i);
    }
    if (start > size || length > size - start || length > HEADER_SIZE_MAX) {
        wpk_diag_set(diag, "the file ends within its header; write it again with numpy.save");
        return WPK_EPARSE;
    }
    const char *text = (const char *)bytes + start;
    struct header header = {.at = text, .end = text + length, .out = &npy};
    if (!take_header(&header)) {
        wpk_diag_set(diag, "the header is not a dictionary of descr, fortran_order and shape; "
                           "write the file again with numpy.save");
        return WPK_EPARSE;
    }
    npy.data = text + length;
    npy.size = size - start - length;
    *out = npy;
    return WPK_OK;
}

/* ---- comparing */

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

wpk_err wpk_npy_check(const struct wpk_npy *npy, const struct wpk_tensor_type *type,
                      struct wpk_diag *diag)
{
    char wanted[SHAPE_SIZE];
    char found[SHAPE_SIZE];
    const char *descr = wpk_npy_descr(type->dtype);
    size_t size = (size_t)wpk_tensor_type_elements(type) * wpk_dtype_size(type->dtype);
    /* Of one axis or none both orders are the same bytes. */
    bool fortran = npy->fortran_order && npy->rank > 1;
    bool same = strcmp(npy->descr, descr) == 0 && npy->rank == type->rank && !fortran;

    for (int i = 0; same && i < type->rank; i++) {
        same = npy->extent[i] == type->extent[i];
    }
    if (same && npy->size == size) {
        return WPK_OK;
    }
    print_shape(type->extent, type->rank, wanted);
    print_shape(npy->extent, npy->rank, found);
    if (same) {
        wpk_diag_set(diag,
                     "expected %zu bytes of elements, found %zu; write it again with numpy.save",
                     size, npy->size);
    } else {
        wpk_diag_set(diag, "expected %s (%s) %s in C order, found %s %s in %s order", descr,
                     wpk_dtype_name(type->dtype), wanted, npy->descr, found,
                     fortran ? "Fortran" : "C");
    }
    return WPK_EINVAL;
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
