/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/index_check.h"

/* Find the first element outside of [low, high] among `count` that begin at `first`; -1: there is
 * none. */
#define FIND(suffix, type)                                                                         \
    static int64_t find_##suffix(const void *data, int64_t first, int64_t stride, int64_t count,   \
                                 const struct wpk_index_bound *bound, int64_t *value)              \
    {                                                                                              \
        const type *element = data;                                                                \
        for (int64_t i = 0; i < count; i++) {                                                      \
            *value = (int64_t)element[first + i * stride];                                         \
            if (*value < bound->low || *value > bound->high) {                                     \
                return first + i * stride;                                                         \
            }                                                                                      \
        }                                                                                          \
        return -1;                                                                                 \
    }

FIND(i64, int64_t)
FIND(i32, int32_t)
FIND(i8, int8_t)
FIND(u8, uint8_t)
FIND(cell, double)

bool wpk_index_bound_fits(const struct wpk_index_bound *bound, int64_t count)
{
    __int128 low = bound->first, high = bound->first;

    for (int a = 0; a < bound->axis_count; a++) {
        __int128 reach = (__int128)bound->stride[a] * (bound->extent[a] - 1);
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    return low >= 0 && high < count;
}

wpk_err wpk_index_check(const char *name, enum wpk_dtype dtype, const void *data,
                        const struct wpk_index_bound *bound, struct wpk_diag *diag)
{
    int last = bound->axis_count - 1;
    int64_t at[WPK_INDEX_AXES_MAX] = {0};
    int64_t first = bound->first, found = -1, value = 0;
    int axis = last;

    do {
        int64_t stride = last < 0 ? 1 : bound->stride[last];
        int64_t count = last < 0 ? 1 : bound->extent[last];
        found = dtype == WPK_I64   ? find_i64(data, first, stride, count, bound, &value)
                : dtype == WPK_I32 ? find_i32(data, first, stride, count, bound, &value)
                : dtype == WPK_I8  ? find_i8(data, first, stride, count, bound, &value)
                : dtype == WPK_U8  ? find_u8(data, first, stride, count, bound, &value)
                                   : find_cell(data, first, stride, count, bound, &value);
        for (axis = last - 1; axis >= 0; axis--) {
            first += bound->stride[axis];
            if (++at[axis] < bound->extent[axis]) {
                break;
            }
            first -= bound->extent[axis] * bound->stride[axis];
            at[axis] = 0;
        }
    } while (axis >= 0 && found < 0);
    if (found < 0) {
        return WPK_OK;
    }
    return wpk_fail(
        diag, WPK_ERANGE, "element %lld of %s is %lld, which is no index from %lld to %lld",
        (long long)found, name, (long long)value, (long long)bound->low, (long long)bound->high);
}
