/* SPDX-License-Identifier: Apache-2.0 */
#include "target/c/type.h"

static const struct {
    const char *name, *c;
    int bytes;
} types[WPK_C_TYPE_COUNT] = {
#define TYPE_ROW(name, text, c, bytes) {text, c, bytes},
    WPK_C_TYPE_LIST(TYPE_ROW)
#undef TYPE_ROW
};

enum wpk_c_type wpk_c_type_of(enum wpk_dtype dtype)
{
    static const enum wpk_c_type of[WPK_DTYPE_COUNT] = {
        [WPK_F32] = WPK_C_F32,  [WPK_F64] = WPK_C_F64, [WPK_F16] = WPK_C_F32,
        [WPK_BF16] = WPK_C_F32, [WPK_I8] = WPK_C_I8,   [WPK_U8] = WPK_C_U8,
        [WPK_I16] = WPK_C_I16,  [WPK_I32] = WPK_C_I32, [WPK_I64] = WPK_C_I64,
        [WPK_BOOL] = WPK_C_I32,
    };
    return of[dtype];
}

enum wpk_c_type wpk_c_memory_type(enum wpk_dtype dtype)
{
    return dtype == WPK_F16 || dtype == WPK_BF16 ? WPK_C_U16
           : dtype == WPK_BOOL                   ? WPK_C_I8
                                                 : wpk_c_type_of(dtype);
}

enum wpk_c_type wpk_c_integer_type(int bytes)
{
    return bytes == 1 ? WPK_C_I8 : bytes == 2 ? WPK_C_I16 : bytes == 4 ? WPK_C_I32 : WPK_C_I64;
}

int wpk_c_type_bytes(enum wpk_c_type type)
{
    return types[type].bytes;
}

const char *wpk_c_type_name(enum wpk_c_type type)
{
    return types[type].name;
}

const char *wpk_c_type_text(enum wpk_c_type type)
{
    return types[type].c;
}
