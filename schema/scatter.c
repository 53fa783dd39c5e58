/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/scatter.h"

#include <string.h>

enum wpk_scatter_reduction wpk_scatter_find(const char *name)
{
    static const char *const names[] = {WPK_SCATTER_LIST(WPK_LIST_TEXT)};
    int found = wpk_list_find(names, WPK_SCATTER_COUNT, name);
    return found >= 0 ? (enum wpk_scatter_reduction)found : WPK_SCATTER_COUNT;
}

/* The axes of x that a row of indices names. */
static int count_named(const struct wpk_scatter *s)
{
    return s->axis >= 0 ? s->rank : (int)s->indices_extent[s->indices_rank - 1];
}

/* Elements of x behind those axes. */
static int64_t row_elements(const struct wpk_scatter *s)
{
    int named = count_named(s);
    return wpk_extents_product(s->extent + named, s->rank - named);
}

int64_t wpk_scatter_updates(const struct wpk_scatter *s)
{
    bool fits = s->axis >= -1 && s->axis < s->rank && s->indices_rank >= 1;

    if (s->axis < 0) {
        fits = fits && s->indices_extent[s->indices_rank - 1] <= s->rank;
        int64_t rows = wpk_extents_product(s->indices_extent, s->indices_rank - 1);
        int64_t row = fits ? row_elements(s) : 1;
        return fits && rows <= WPK_ELEMENTS_MAX / row ? rows * row : -1;
    }
    fits = fits && s->indices_rank == s->rank;
    for (int d = 0; fits && d < s->rank; d++) {
        fits = d == s->axis || s->indices_extent[d] <= s->extent[d];
    }
    return fits ? wpk_extents_product(s->indices_extent, s->rank) : -1;
}

/* ---- the place of an update */

/* Where rows of updates go. */
struct placing {
    const struct wpk_scatter *scatter;
    const void *indices;
    int64_t stride[WPK_RANK_MAX]; /* of x */
    int64_t at[WPK_RANK_MAX];     /* ScatterElements: the row's place among the indices */
    struct wpk_diag *diag;
};

static wpk_err take_index(const struct placing *p, int64_t element, int axis, int64_t *place)
{
    enum wpk_dtype dtype = p->scatter->indices_dtype;
    int64_t extent = p->scatter->extent[axis];
    int64_t index = dtype == WPK_I64   ? ((const int64_t *)p->indices)[element]
                    : dtype == WPK_I32 ? ((const int32_t *)p->indices)[element]
                                       : (int64_t)((const double *)p->indices)[element];

    if (index < -extent || index >= extent) {
        return wpk_fail(p->diag, WPK_ERANGE,
                        "element %lld of its indices is %lld, which is no index from %lld to %lld",
                        (long long)element, (long long)index, (long long)-extent,
                        (long long)extent - 1);
    }
    *place += (index < 0 ? index + extent : index) * p->stride[axis];
    return WPK_OK;
}

static wpk_err place_elements(struct placing *p, int64_t row, int64_t *place)
{
    const struct wpk_scatter *s = p->scatter;

    *place = 0;
    for (int d = 0; d < s->rank; d++) {
        *place += d == s->axis ? 0 : p->at[d] * p->stride[d];
    }
    for (int d = s->rank - 1; d >= 0 && ++p->at[d] == s->indices_extent[d]; d--) {
        p->at[d] = 0;
    }
    return take_index(p, row, s->axis, place);
}

static wpk_err place_slice(const struct placing *p, int64_t row, int64_t *place)
{
    int named = count_named(p->scatter);
    wpk_err err = WPK_OK;

    *place = 0;
    for (int j = 0; err == WPK_OK && j < named; j++) {
        err = take_index(p, row * named + j, j, place);
    }
    return err;
}

/* ---- joining */

/* Integers wrap: they are computed with as unsigned ones. A NaN stays. */
#define JOIN(name, type, wrapping)                                                                 \
    static void join_##name(enum wpk_scatter_reduction reduction, int64_t count, const type *u,    \
                            type *y)                                                               \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            switch (reduction) {                                                                   \
            case WPK_SCATTER_ADD:                                                                  \
                y[i] = (type)((wrapping)y[i] + (wrapping)u[i]);                                    \
                break;                                                                             \
            case WPK_SCATTER_MUL:                                                                  \
                y[i] = (type)((wrapping)y[i] * (wrapping)u[i]);                                    \
                break;                                                                             \
            case WPK_SCATTER_MIN:                                                                  \
                y[i] = u[i] < y[i] || u[i] != u[i] ? u[i] : y[i];                                  \
                break;                                                                             \
            case WPK_SCATTER_MAX:                                                                  \
                y[i] = u[i] > y[i] || u[i] != u[i] ? u[i] : y[i];                                  \
                break;                                                                             \
            default:                                                                               \
                y[i] = u[i];                                                                       \
            }                                                                                      \
        }                                                                                          \
    }

JOIN(f32, float, float)
JOIN(f64, double, double)
JOIN(i32, int32_t, uint32_t)
JOIN(i64, int64_t, uint64_t)
JOIN(bool, uint8_t, uint8_t)

static void join(const struct wpk_scatter *s, int64_t count, const void *updates, void *out)
{
    switch (s->dtype) {
    case WPK_F64:
        join_f64(s->reduction, count, updates, out);
        break;
    case WPK_I32:
        join_i32(s->reduction, count, updates, out);
        break;
    case WPK_I64:
        join_i64(s->reduction, count, updates, out);
        break;
    case WPK_BOOL:
        join_bool(s->reduction, count, updates, out);
        break;
    default:
        join_f32(s->reduction, count, updates, out);
    }
}

wpk_err wpk_scatter_run(const struct wpk_scatter *s, const void *x, const void *indices,
                        const void *updates, void *out, struct wpk_diag *diag)
{
    struct placing placing = {.scatter = s, .indices = indices, .diag = diag};
    size_t size = wpk_dtype_size(s->dtype);
    int64_t row = row_elements(s);
    int64_t rows = wpk_scatter_updates(s) / row;
    wpk_err err = WPK_OK;

    for (int d = s->rank - 1; d >= 0; d--) {
        placing.stride[d] = wpk_extents_product(s->extent + d + 1, s->rank - d - 1);
    }
    memmove(out, x, (size_t)wpk_extents_product(s->extent, s->rank) * size);
    for (int64_t r = 0; err == WPK_OK && r < rows; r++) {
        int64_t place = 0;
        err = s->axis >= 0 ? place_elements(&placing, r, &place) : place_slice(&placing, r, &place);
        if (err == WPK_OK) {
            join(s, row, (const char *)updates + (size_t)(r * row) * size,
                 (char *)out + (size_t)place * size);
        }
    }
    return err;
}
