/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that kernels call: their texts in C, and what each of them needs. */
#ifndef WPK_TARGET_C_MATH_H
#define WPK_TARGET_C_MATH_H

#include "common/buf.h"
#include "schema/tensor.h"

/* The types of a printed kernel's scalars, vectors' elements and memory. */

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

/* The functions that a kernel may call. */
#define WPK_C_FUNCTION_LIST(X)                                                                     \
    X(LOAD, "load")                                                                                \
    X(STORE, "store")                                                                              \
    X(OF, "of")                                                                                    \
    X(SELECT, "select")                                                                            \
    X(MIN, "min")                                                                                  \
    X(MAX, "max")                                                                                  \
    X(OVER, "over")                                                                                \
    X(ABS, "abs")                                                                                  \
    X(SQRT, "sqrt")                                                                                \
    X(FLOOR, "floor")                                                                              \
    X(CEIL, "ceil")                                                                                \
    X(ROUND, "round")                                                                              \
    X(TRUNC, "trunc")                                                                              \
    X(MODULO, "modulo")                                                                            \
    X(QUOTIENT, "quotient")                                                                        \
    X(REMAINDER, "remainder")                                                                      \
    X(EXP, "exp")                                                                                  \
    X(LOG, "log")                                                                                  \
    X(SIN, "sin")                                                                                  \
    X(COS, "cos")                                                                                  \
    X(POW, "pow")                                                                                  \
    X(FROM_F16, "from_f16")                                                                        \
    X(TO_F16, "to_f16")                                                                            \
    X(FROM_BF16, "from_bf16")                                                                      \
    X(TO_BF16, "to_bf16")                                                                          \
    X(TO_ODD, "to_odd")                                                                            \
    X(TO_I8, "to_i8")                                                                              \
    X(TO_U8, "to_u8")                                                                              \
    X(TO_I16, "to_i16")                                                                            \
    X(TO_I32, "to_i32")                                                                            \
    X(TO_I64, "to_i64")                                                                            \
    X(WIDE, "wide")                                                                                \
    X(NEAREST, "nearest")                                                                          \
    X(PICK, "pick")

#define WPK_C_PICKS 16 /* elements of PICK's table, and lanes that it has */

#define WPK_C_FUNCTION_ENUM(name, text) WPK_C_##name,
enum wpk_c_function { WPK_C_FUNCTION_LIST(WPK_C_FUNCTION_ENUM) WPK_C_FUNCTION_COUNT };

/* Write a function's text, in which $V stands for the vector or scalar, $E for its element, $I and
 * $J for the integer vector and element of the same size, $N for the lanes, $X for "xN", and $F for
 * the suffix of the C library's functions. */
void wpk_c_put_function_text(enum wpk_c_function function, enum wpk_c_type type, bool vector,
                             struct wpk_buf *out);
/* The conversions of f16 and bf16 that these texts call. */
const char *wpk_c_narrow_text(void);

/* The declarations that a kernel needs to call a function: the function itself, and the types and
 * functions in its text. */
struct wpk_c_needs {
    bool type[WPK_C_TYPE_COUNT];         /* of the function's width */
    bool function[WPK_C_FUNCTION_COUNT]; /* of the function's type and width */
    bool scalar[WPK_C_FUNCTION_COUNT];   /* of the function's type, for a scalar */
};

struct wpk_c_needs wpk_c_function_needs(enum wpk_c_function function, enum wpk_c_type type,
                                        bool vector);

#endif
