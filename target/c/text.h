/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel is spelled in C: types, vectors, values, and the functions that it calls.
 *
 * Vectors are those of GNU C, at most as wide as the machine's. A value is an index form, a number
 * or a variable that is assigned once. Bools in lanes are masks: 0 or -1 in elements as wide as
 * those that were compared. f16 and bf16 are computed with as f32. */
#ifndef WPK_TARGET_C_TEXT_H
#define WPK_TARGET_C_TEXT_H

#include "target/c/form.h"
#include "target/c/math.h"

#define WPK_C_WIDTHS 7 /* powers of two: 1 to 64 lanes */

enum wpk_c_kind {
    WPK_C_NUMBER, /* of floating type */
    WPK_C_INDEX,  /* an integer or bool: a form */
    WPK_C_NAME,   /* a variable */
};

struct wpk_c_value {
    enum wpk_c_kind kind;
    enum wpk_dtype dtype;
    int width;      /* of a variable: 1, or the lanes */
    int mask_bytes; /* of a bool in lanes: the size of its elements */
    int name;       /* of a variable: its number */
    int twin; /* 1 + the number of the variable that has the same: of bytes in lanes in i32, of
                         f16 and bf16 their bits; 0 */
    double number;
    struct wpk_form form;
};

/* = {0} is empty. */
struct wpk_c_text {
    struct wpk_buf *out; /* the function being printed */
    struct wpk_forms *forms;
    int depth; /* of blocks */
    int name_count;
    bool type[WPK_C_TYPE_COUNT][WPK_C_WIDTHS]; /* used */
    bool function[WPK_C_FUNCTION_COUNT][WPK_C_TYPE_COUNT][WPK_C_WIDTHS];
};

/* The type of a variable that holds the value: an int for a bool, a mask for bools in lanes. */
enum wpk_c_type wpk_c_value_type(const struct wpk_c_value *value);

/* ---- printing: lines are indented by the depth */

void wpk_c_put(struct wpk_c_text *t, const char *format, ...) WPK_PRINTF(2, 3);
/* Lines behind a format that ends with "{" are indented by it, until one begins with "}". */
void wpk_c_line(struct wpk_c_text *t, const char *format, ...) WPK_PRINTF(2, 3);
void wpk_c_indent(struct wpk_c_text *t);
void wpk_c_put_type(struct wpk_c_text *t, enum wpk_c_type type, int width);
/* The name of a function over vectors, which becomes one that is printed before the kernel. */
void wpk_c_put_function(struct wpk_c_text *t, enum wpk_c_function function, enum wpk_c_type type,
                        int width);
void wpk_c_put_form(struct wpk_c_text *t, const struct wpk_form *form);
void wpk_c_put_number(struct wpk_c_text *t, enum wpk_c_type type, double number);
/* A value as an operand of this width: in all lanes where it has one. */
void wpk_c_put_value(struct wpk_c_text *t, const struct wpk_c_value *value, int width);
/* A bool in lanes, as a mask of elements of `bytes`. */
void wpk_c_put_mask(struct wpk_c_text *t, const struct wpk_c_value *value, int width, int bytes);

/* Begin the line that assigns a new variable: "const f32x16 t7 = ". The caller prints the rest, and
 * a semicolon with wpk_c_end(). */
struct wpk_c_value wpk_c_begin(struct wpk_c_text *t, enum wpk_dtype dtype, int width);
struct wpk_c_value wpk_c_begin_mask(struct wpk_c_text *t, int width, int bytes);
void wpk_c_end(struct wpk_c_text *t);

struct wpk_c_value wpk_c_real(enum wpk_dtype dtype, double number);
struct wpk_c_value wpk_c_integer(enum wpk_dtype dtype, const struct wpk_form *form);
/* The lanes that the value has where its operands have so many: 1 if it is the same in all. */
int wpk_c_width(const struct wpk_c_text *t, const struct wpk_c_value *value, int lanes);

/* Write the functions that were used; or those behind all types. */
void wpk_c_put_functions(const struct wpk_c_text *t, struct wpk_buf *out);
void wpk_c_put_prologue(const struct wpk_c_text *t, struct wpk_buf *out);

#endif
