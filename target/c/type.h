/* SPDX-License-Identifier: Apache-2.0 */
/* The types of a printed kernel's scalars, vectors' elements and memory. */
#ifndef WPK_TARGET_C_TYPE_H
#define WPK_TARGET_C_TYPE_H

#include "schema/tensor.h"

/* suffix, text, C's type, bytes */
#define WPK_C_TYPE_LIST(X)                                                                         \
    X(F32, "f32", "float", 4)                                                                      \
    X(F64, "f64", "double", 8)                                                                     \
    X(I8, "i8", "signed char", 1)                                                                  \
    X(U8, "u8", "unsigned char", 1)                                                                \
    X(I16, "i16", "short", 2)                                                                      \
    X(U16, "u16", "unsigned short", 2)                                                             \
    X(I32, "i32", "int", 4)                                                                        \
    X(U32, "u32", "unsigned", 4)                                                                   \
    X(I64, "i64", "long", 8)

#define WPK_C_TYPE_ENUM(name, text, c, bytes) WPK_C_##name,
enum wpk_c_type { WPK_C_TYPE_LIST(WPK_C_TYPE_ENUM) WPK_C_TYPE_COUNT };

/* The type of a value, and of an element in memory. */
enum wpk_c_type wpk_c_type_of(enum wpk_dtype dtype);
enum wpk_c_type wpk_c_memory_type(enum wpk_dtype dtype);
enum wpk_c_type wpk_c_integer_type(int bytes);
int wpk_c_type_bytes(enum wpk_c_type type);
const char *wpk_c_type_name(enum wpk_c_type type);
/* As C spells it. */
const char *wpk_c_type_text(enum wpk_c_type type);

#endif
