/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/index_check.h"

/* Find the first element outside of [low, high]; `count`: there is none. */
#define FIND(suffix, type)                                                                         \
    static int64_t find_##suffix(const void *data, int64_t count, int64_t low, int64_t high,       \
                                 int64_t *value)                                                   \
    {                                                                                              \
        const type *element = data;                                                                \
        for (int64_t i = 0; i < count; i++) {                                                      \
            *value = (int64_t)element[i];                                                          \
            if (*value < low || *value > high) {                                                   \
                return i;                                                                          \
            }                                                                                      \
        }                                                                                          \
        return count;                                                                              \
    }

FIND(i64, int64_t)
FIND(i32, int32_t)
FIND(i8, int8_t)
FIND(u8, uint8_t)
FIND(cell, double)

wpk_err wpk_index_check(const char *name, enum wpk_dtype dtype, const void *data, int64_t count,
                        int64_t low, int64_t high, struct wpk_diag *diag)
{
    int64_t value = 0;
    int64_t at = dtype == WPK_I64   ? find_i64(data, count, low, high, &value)
                 : dtype == WPK_I32 ? find_i32(data, count, low, high, &value)
                 : dtype == WPK_I8  ? find_i8(data, count, low, high, &value)
                 : dtype == WPK_U8  ? find_u8(data, count, low, high, &value)
                                    : find_cell(data, count, low, high, &value);

    if (at == count) {
        return WPK_OK;
    }
    wpk_diag_set(diag, "element %lld of %s is %lld, which is no index from %lld to %lld",
                 (long long)at, name, (long long)value, (long long)low, (long long)high);
    return WPK_ERANGE;
}
