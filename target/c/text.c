/* SPDX-License-Identifier: Apache-2.0 */
#include "target/c/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- types */

enum wpk_c_type wpk_c_value_type(const struct wpk_c_value *value)
{
    bool mask = value->dtype == WPK_BOOL && value->width > 1;
    return mask ? wpk_c_integer_type(value->mask_bytes) : wpk_c_type_of(value->dtype);
}

static int width_index(int width)
{
    int index = 0;
    while (1 << index < width) {
        index++;
    }
    WPK_ASSERT(1 << index == width && index < WPK_C_WIDTHS);
    return index;
}

/* ---- printing */

void wpk_c_put(struct wpk_c_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    wpk_buf_vprintf(t->out, format, args);
    va_end(args);
}

void wpk_c_indent(struct wpk_c_text *t)
{
    for (int i = 0; i < t->depth; i++) {
        wpk_buf_append(t->out, "  ", 2);
    }
}

void wpk_c_line(struct wpk_c_text *t, const char *format, ...)
{
    va_list args;
    t->depth -= format[0] == '}';
    wpk_c_indent(t);
    va_start(args, format);
    wpk_buf_vprintf(t->out, format, args);
    va_end(args);
    wpk_buf_append_byte(t->out, '\n');
    t->depth += format[strlen(format) - 1] == '{';
}

void wpk_c_put_type(struct wpk_c_text *t, enum wpk_c_type type, int width)
{
    t->type[type][width_index(width)] = true;
    wpk_buf_append_text(t->out, wpk_c_type_name(type));
    if (width > 1) {
        wpk_buf_printf(t->out, "x%d", width);
    }
}

void wpk_c_put_function(struct wpk_c_text *t, enum wpk_c_function function, enum wpk_c_type type,
                        int width)
{
    static const char *const names[WPK_C_FUNCTION_COUNT] = {WPK_C_FUNCTION_LIST(WPK_LIST_TEXT)};
    /* Mark what a call of the function needs as used. */
    int index = width_index(width);
    const struct wpk_c_needs needs = wpk_c_function_needs(function, type, index > 0);
    for (int i = 0; i < WPK_C_TYPE_COUNT; i++) {
        t->type[i][index] = t->type[i][index] || needs.type[i];
    }
    for (int f = 0; f < WPK_C_FUNCTION_COUNT; f++) {
        bool *used = t->function[f][type];
        used[index] = used[index] || needs.function[f];
        used[0] = used[0] || needs.scalar[f];
    }
    wpk_c_put_type(t, type, width);
    wpk_buf_printf(t->out, "_%s", names[function]);
}

void wpk_c_put_form(struct wpk_c_text *t, const struct wpk_form *form)
{
    wpk_form_print(t->forms, form, t->out);
}

/* Hexadecimal digits are exact. */
void wpk_c_put_number(struct wpk_c_text *t, enum wpk_c_type type, double number)
{
    const char *suffix = type == WPK_C_F32 ? "f" : "";
    if (isinf(number)) {
        wpk_buf_printf(t->out, "(%s__builtin_inf%s())", number < 0 ? "-" : "", suffix);
    } else {
        bool sign = signbit(number) != 0;
        wpk_buf_printf(t->out, sign ? "(%a%s)" : "%a%s", number, suffix);
    }
}

/* ---- values */

struct wpk_c_value wpk_c_real(enum wpk_dtype dtype, double number)
{
    return (struct wpk_c_value){.kind = WPK_C_NUMBER, .dtype = dtype, .width = 1, .number = number};
}

struct wpk_c_value wpk_c_integer(enum wpk_dtype dtype, const struct wpk_form *form)
{
    return (struct wpk_c_value){.kind = WPK_C_INDEX, .dtype = dtype, .width = 1, .form = *form};
}

int wpk_c_width(const struct wpk_c_text *t, const struct wpk_c_value *value, int lanes)
{
    bool index = value->kind == WPK_C_INDEX;
    return !index ? value->width : wpk_form_is_uniform(t->forms, &value->form) ? 1 : lanes;
}

/* The value of one lane, or of all of them. */
static void put_scalar(struct wpk_c_text *t, const struct wpk_c_value *value)
{
    if (value->kind == WPK_C_NUMBER) {
        wpk_c_put_number(t, wpk_c_type_of(value->dtype), value->number);
    } else if (value->kind == WPK_C_INDEX) {
        wpk_buf_append_text(t->out, "(");
        wpk_c_put_type(t, wpk_c_type_of(value->dtype), 1);
        wpk_buf_append_text(t->out, ")");
        wpk_c_put_form(t, &value->form);
    } else {
        wpk_buf_printf(t->out, "t%d", value->name);
    }
}

/* An index that lanes have different values of: its first and its step, or element by element. */
static void put_lanes(struct wpk_c_text *t, const struct wpk_form *form, enum wpk_c_type type,
                      int width, bool negate)
{
    bool even = wpk_form_is_even(t->forms, form);
    struct wpk_form lane = wpk_form_number(0), first = wpk_form_at_lane(t->forms, form, &lane);
    wpk_buf_append_text(t->out, "(");
    if (even) {
        wpk_c_put_function(t, WPK_C_OF, type, width);
        wpk_buf_printf(t->out, "(%s(%s)", negate ? "-" : "", wpk_c_type_name(type));
        wpk_c_put_form(t, &first);
        wpk_buf_append_text(t->out, ") + ");
    }
    wpk_buf_append_text(t->out, "(");
    wpk_c_put_type(t, type, width);
    wpk_buf_append_text(t->out, "){");
    for (int i = 0; i < width; i++) {
        lane = wpk_form_number(i);
        struct wpk_form at = wpk_form_at_lane(t->forms, form, &lane);
        at = even ? wpk_form_add(t->forms, &at, &first, -1) : at;
        wpk_buf_printf(t->out, "%s%s(%s)", i > 0 ? ", " : "", negate ? "-" : "",
                       wpk_c_type_name(type));
        wpk_c_put_form(t, &at);
    }
    wpk_buf_append_text(t->out, "})");
}

void wpk_c_put_value(struct wpk_c_text *t, const struct wpk_c_value *value, int width)
{
    enum wpk_c_type type = wpk_c_value_type(value);
    int own = wpk_c_width(t, value, width);
    if (value->dtype == WPK_BOOL && width > 1) {
        wpk_c_put_mask(t, value, width, value->width > 1 ? value->mask_bytes : 4);
    } else if (own == 1 && width > 1) {
        wpk_c_put_function(t, WPK_C_OF, type, width);
        wpk_buf_append_text(t->out, "(");
        put_scalar(t, value);
        wpk_buf_append_text(t->out, ")");
    } else if (value->kind == WPK_C_INDEX && width > 1) {
        put_lanes(t, &value->form, type, width, false);
    } else {
        put_scalar(t, value);
    }
}

void wpk_c_put_mask(struct wpk_c_text *t, const struct wpk_c_value *value, int width, int bytes)
{
    enum wpk_c_type type = wpk_c_integer_type(bytes);
    int own = wpk_c_width(t, value, width);
    if (own == 1) {
        wpk_c_put_function(t, WPK_C_OF, type, width);
        wpk_buf_printf(t->out, "((%s)-", wpk_c_type_name(type));
        put_scalar(t, value);
        wpk_buf_append_text(t->out, ")");
    } else if (value->kind == WPK_C_INDEX) {
        put_lanes(t, &value->form, type, width, true);
    } else if (value->mask_bytes != bytes) {
        wpk_buf_printf(t->out, "__builtin_convertvector(t%d, ", value->name);
        wpk_c_put_type(t, type, width);
        wpk_buf_append_text(t->out, ")");
    } else {
        wpk_buf_printf(t->out, "t%d", value->name);
    }
}

static void begin(struct wpk_c_text *t, struct wpk_c_value *value)
{
    value->kind = WPK_C_NAME;
    value->name = t->name_count++;
    wpk_c_indent(t);
    wpk_buf_append_text(t->out, "const ");
    wpk_c_put_type(t, wpk_c_value_type(value), value->width);
    wpk_buf_printf(t->out, " t%d = ", value->name);
}

struct wpk_c_value wpk_c_begin(struct wpk_c_text *t, enum wpk_dtype dtype, int width)
{
    struct wpk_c_value value = {.dtype = dtype, .width = width, .mask_bytes = 4};
    begin(t, &value);
    return value;
}

struct wpk_c_value wpk_c_begin_mask(struct wpk_c_text *t, int width, int bytes)
{
    struct wpk_c_value value = {.dtype = WPK_BOOL, .width = width, .mask_bytes = bytes};
    begin(t, &value);
    return value;
}

void wpk_c_end(struct wpk_c_text *t)
{
    wpk_buf_append(t->out, ";\n", 2);
}

/* ---- what comes before the kernel */

static void put_replaced(const char *text, enum wpk_c_type type, int width, struct wpk_buf *out)
{
    char vector[24], integer[24];
    enum wpk_c_type same = wpk_c_integer_type(wpk_c_type_bytes(type));
    snprintf(vector, sizeof(vector), width > 1 ? "%sx%d" : "%s", wpk_c_type_name(type), width);
    snprintf(integer, sizeof(integer), width > 1 ? "%sx%d" : "%s", wpk_c_type_name(same), width);
    for (; *text != '\0'; text++) {
        if (*text != '$') {
            wpk_buf_append_byte(out, *text);
            continue;
        }
        switch (*++text) {
        case 'V':
            wpk_buf_append_text(out, vector);
            break;
        case 'E':
            wpk_buf_append_text(out, wpk_c_type_name(type));
            break;
        case 'I':
            wpk_buf_append_text(out, integer);
            break;
        case 'J':
            wpk_buf_append_text(out, wpk_c_type_name(same));
            break;
        case 'X': /* what follows the element's type in names of vectors of this width */
            if (width > 1) {
                wpk_buf_printf(out, "x%d", width);
            }
            break;
        case 'F': /* the suffix of the C library's functions and of literals */
            wpk_buf_append_text(out, type == WPK_C_F32 ? "f" : "");
            break;
        default:
            wpk_buf_printf(out, "%d", width);
        }
    }
}

static void put_each(int width, struct wpk_buf *out)
{
    wpk_buf_printf(out, "#define EACH%d(r, f) r = (__typeof__(r)){", width);
    for (int i = 0; i < width; i++) {
        wpk_buf_printf(out, "%sf(%d)", i > 0 ? ", " : "", i);
    }
    wpk_buf_append_text(out, "}\n");
}

/* gcc makes vector instructions of loops over lanes, clang of lists of them. A constant operand gcc
 * makes a comparison and a move of min and max, of any other the machine's instruction. */
static void put_eaches(struct wpk_buf *out)
{
    wpk_buf_append_text(out, "#ifdef __clang__\n");
    for (int w = 1; w < WPK_C_WIDTHS; w++) {
        put_each(1 << w, out);
    }
    wpk_buf_append_text(out,
                        "#define HIDE(a)\n#define HIDE_CONSTANT(a)\n#else\n"
                        "#define HIDE(a) __asm__(\"\" : \"+v\"(a))\n"
                        "#define HIDE_CONSTANT(a) if (__builtin_constant_p((a)[0])) HIDE(a)\n");
    for (int w = 1; w < WPK_C_WIDTHS; w++) {
        wpk_buf_printf(out, "#define EACH%d(r, f) for (int i = 0; i < %d; i++) r[i] = f(i)\n",
                       1 << w, 1 << w);
    }
    wpk_buf_append_text(out, "#endif\n");
}

void wpk_c_put_functions(const struct wpk_c_text *t, struct wpk_buf *out)
{
    struct wpk_buf text = {0};
    for (int f = 0; f < WPK_C_FUNCTION_COUNT; f++) {
        for (int type = 0; type < WPK_C_TYPE_COUNT; type++) {
            for (int w = 0; w < WPK_C_WIDTHS; w++) {
                if (t->function[f][type][w]) {
                    wpk_buf_reset(&text);
                    wpk_c_put_function_text((enum wpk_c_function)f, (enum wpk_c_type)type, w > 0,
                                            &text);
                    put_replaced(wpk_buf_text(&text), (enum wpk_c_type)type, 1 << w, out);
                }
            }
        }
    }
    wpk_buf_fini(&text);
}

void wpk_c_put_prologue(const struct wpk_c_text *t, struct wpk_buf *out)
{
    wpk_buf_append_text(out,
                        "#define INLINE static inline __attribute__((always_inline, unused))\n");
    for (int type = 0; type < WPK_C_TYPE_COUNT; type++) {
        wpk_buf_printf(out, "typedef %s %s;\n", wpk_c_type_text((enum wpk_c_type)type),
                       wpk_c_type_name((enum wpk_c_type)type));
    }
    for (int type = 0; type < WPK_C_TYPE_COUNT; type++) {
        for (int w = 1; w < WPK_C_WIDTHS; w++) {
            if (t->type[type][w]) {
                put_replaced("typedef $E $V __attribute__((vector_size($N * sizeof($E))));\n",
                             (enum wpk_c_type)type, 1 << w, out);
            }
        }
    }
    put_eaches(out);
    wpk_buf_append_text(
        out, "INLINE i64 wpk_quotient(i64 a, i64 b) { return a / b - (a % b < 0); }\n"
             "INLINE i64 wpk_remainder(i64 a, i64 b) { return a - b * wpk_quotient(a, b); }\n"
             "INLINE i64 wpk_limit(i64 a, i64 low, i64 high)"
             " { return a < low ? low : a > high ? high : a; }\n"
             "INLINE i64 wpk_least(i64 a, i64 b) { return a < b ? a : b; }\n"
             "INLINE i64 wpk_most(i64 a, i64 b) { return a > b ? a : b; }\n"
             "INLINE i32 wpk_group(const void *p, unsigned long size)\n{\n"
             "  i32 a = 0;\n  u16 two = 0;\n"
             "  if (size != 3) { __builtin_memcpy(&a, p, size); return a; }\n"
             "  __builtin_memcpy(&two, p, 2);\n" /* in registers: no load waits for two stores */
             "  return two | (i32)((const unsigned char *)p)[2] << 16;\n}\n");
    wpk_buf_append_text(out, wpk_c_narrow_text());
    wpk_c_put_functions(t, out);
}
