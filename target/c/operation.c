/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on values: each makes a variable. A value that is the same in all lanes stays a scalar
 * until an operation combines it with a vector. */
#include "ir/node.h"
#include "target/c/kernel.h"

static int width_of(const struct wpk_c_kernel *k, const struct wpk_c_value *value)
{
    return wpk_c_width(&k->text, value, k->forms.width);
}

static bool is_number(const struct wpk_c_value *value)
{
    return value->kind == WPK_C_INDEX && wpk_form_is_number(&value->form);
}

/* An index of 32 bits, which take less time than 64. */
static bool is_short(struct wpk_c_kernel *k, const struct wpk_c_value *value)
{
    int64_t low = 0, high = 0;
    if (value->kind != WPK_C_INDEX) {
        return false;
    }
    wpk_form_range(&k->forms, &value->form, &low, &high);
    return low >= INT32_MIN && high <= INT32_MAX;
}

static struct wpk_c_value number(enum wpk_dtype dtype, int64_t value)
{
    struct wpk_form form = wpk_form_number(value);
    return wpk_c_integer(dtype, &form);
}

/* A vector of masks, or a value. */
static struct wpk_c_value begin(struct wpk_c_kernel *k, enum wpk_dtype dtype, int width, bool mask,
                                int bytes)
{
    return mask ? wpk_c_begin_mask(&k->text, width, bytes) : wpk_c_begin(&k->text, dtype, width);
}

static void put(struct wpk_c_kernel *k, const struct wpk_c_value *value, int width, bool mask,
                int bytes)
{
    if (mask) {
        wpk_c_put_mask(&k->text, value, width, bytes);
    } else {
        wpk_c_put_value(&k->text, value, width);
    }
}

/* "function(a, b)" of a's type, with b (NULL: none) in lanes of its own width. */
static void put_call(struct wpk_c_kernel *k, enum wpk_c_function function, enum wpk_c_type type,
                     const struct wpk_c_value *a, int width, const struct wpk_c_value *b,
                     int b_width)
{
    wpk_c_put_function(&k->text, function, type, width);
    wpk_c_put(&k->text, "(");
    wpk_c_put_value(&k->text, a, width);
    if (b != NULL) {
        wpk_c_put(&k->text, ", ");
        wpk_c_put_value(&k->text, b, b_width);
    }
    wpk_c_put(&k->text, ")");
}

/* WPK_C_OVER divides a vector by what is the same in all lanes: within one and a half units in the
 * last place, which may be infinite instead of the largest number. */
static struct wpk_c_value call(struct wpk_c_kernel *k, enum wpk_c_function function,
                               const struct wpk_c_value *a, const struct wpk_c_value *b)
{
    int width = width_of(k, a), other = b == NULL ? 1 : width_of(k, b);
    width = width > other ? width : other;
    struct wpk_c_value value = wpk_c_begin(&k->text, a->dtype, width);
    put_call(k, function, wpk_c_type_of(a->dtype), a, width, b, function == WPK_C_OVER ? 1 : width);
    wpk_c_end(&k->text);
    return value;
}

/* Compare two indices while printing, if their ranges decide the result. */
static bool compare_indices(struct wpk_c_kernel *k, enum wpk_binary op, const struct wpk_c_value *a,
                            const struct wpk_c_value *b, struct wpk_c_value *out)
{
    struct wpk_form difference = wpk_form_add(&k->forms, &a->form, &b->form, -1);
    int64_t low = 0, high = 0;
    wpk_form_range(&k->forms, &difference, &low, &high);
    bool apart = low > 0 || high < 0, same = low == 0 && high == 0;
    bool known = op == WPK_BINARY_LT   ? high < 0 || low >= 0
                 : op == WPK_BINARY_LE ? high <= 0 || low > 0
                                       : apart || same;
    bool holds = op == WPK_BINARY_LT   ? high < 0
                 : op == WPK_BINARY_LE ? high <= 0
                 : op == WPK_BINARY_EQ ? same
                                       : apart;
    *out = number(WPK_BOOL, holds);
    return known;
}

static struct wpk_c_value compare(struct wpk_c_kernel *k, enum wpk_binary op,
                                  const struct wpk_c_value *a, const struct wpk_c_value *b)
{
    static const char *const signs[WPK_BINARY_COUNT] = {[WPK_BINARY_LT] = "<",
                                                        [WPK_BINARY_LE] = "<=",
                                                        [WPK_BINARY_EQ] = "==",
                                                        [WPK_BINARY_NE] = "!="};
    struct wpk_c_value x = *a, y = *b, value;
    int width = width_of(k, a) > width_of(k, b) ? width_of(k, a) : width_of(k, b);
    if (a->kind == WPK_C_INDEX && b->kind == WPK_C_INDEX) {
        if (compare_indices(k, op, a, b, &value)) {
            return value;
        }
        bool both = is_short(k, a) && is_short(k, b);
        x.dtype = y.dtype = both ? WPK_I32 : WPK_I64;
    }
    bool bools = x.dtype == WPK_BOOL;
    int bytes = wpk_c_type_bytes(wpk_c_type_of(x.dtype));
    value = begin(k, WPK_BOOL, width, width > 1, bools ? 4 : bytes);
    for (int i = 0; i < 2; i++) {
        put(k, i == 0 ? &x : &y, width, bools && width > 1, 4);
        wpk_c_put(&k->text, "%s", i == 0 ? signs[op] : "");
    }
    wpk_c_end(&k->text);
    return value;
}

static struct wpk_c_value combine_bools(struct wpk_c_kernel *k, bool both,
                                        const struct wpk_c_value *a, const struct wpk_c_value *b)
{
    int width = width_of(k, a) > width_of(k, b) ? width_of(k, a) : width_of(k, b);
    int bytes = a->kind == WPK_C_NAME && a->width > 1   ? a->mask_bytes
                : b->kind == WPK_C_NAME && b->width > 1 ? b->mask_bytes
                                                        : 4;
    for (int i = 0; i < 2; i++) {
        const struct wpk_c_value *x = i == 0 ? a : b, *other = i == 0 ? b : a;
        if (is_number(x)) {
            return (x->form.constant != 0) == both ? *other : *x;
        }
    }
    struct wpk_c_value value = begin(k, WPK_BOOL, width, width > 1, bytes);
    for (int i = 0; i < 2; i++) {
        put(k, i == 0 ? a : b, width, width > 1, bytes);
        wpk_c_put(&k->text, "%s", i > 0 ? "" : both ? " & " : " | ");
    }
    wpk_c_end(&k->text);
    return value;
}

/* The exponent of a positive power of two that is an integer; -1: it is none. */
static int power_of_two(const struct wpk_c_value *b)
{
    bool integer = is_number(b) && b->dtype != WPK_BOOL && !wpk_dtype_is_float(b->dtype);
    for (int n = 0; integer && n < 31; n++) {
        if (b->form.constant == (int64_t)1 << n) {
            return n;
        }
    }
    return -1;
}

/* A quotient, rounded down, or a remainder, never negative, of a division by 2^n. */
static struct wpk_c_value mask_or_shift(struct wpk_c_kernel *k, enum wpk_binary op,
                                        const struct wpk_c_value *a, int n)
{
    bool divides = op == WPK_BINARY_DIV;
    struct wpk_c_value value = wpk_c_begin(&k->text, a->dtype, width_of(k, a));
    wpk_c_put_value(&k->text, a, width_of(k, a));
    wpk_c_put(&k->text, divides ? " >> %lld" : " & %lld", divides ? (long long)n : (1LL << n) - 1);
    wpk_c_end(&k->text);
    return value;
}

struct wpk_c_value wpk_c_binary(struct wpk_c_kernel *k, enum wpk_binary op,
                                const struct wpk_c_value *a, const struct wpk_c_value *b)
{
    static const char *const signs[WPK_BINARY_COUNT] = {[WPK_BINARY_ADD] = "+",
                                                        [WPK_BINARY_SUB] = "-",
                                                        [WPK_BINARY_MUL] = "*",
                                                        [WPK_BINARY_DIV] = "/"};
    bool floating = wpk_dtype_is_float(a->dtype), bools = a->dtype == WPK_BOOL;
    int width = width_of(k, a) > width_of(k, b) ? width_of(k, a) : width_of(k, b);
    switch (op) {
    case WPK_BINARY_MIN:
    case WPK_BINARY_MAX:
        return bools ? combine_bools(k, op == WPK_BINARY_MIN, a, b)
                     : call(k, op == WPK_BINARY_MIN ? WPK_C_MIN : WPK_C_MAX, a, b);
    case WPK_BINARY_AND:
    case WPK_BINARY_OR:
        return combine_bools(k, op == WPK_BINARY_AND, a, b);
    case WPK_BINARY_LT:
    case WPK_BINARY_LE:
    case WPK_BINARY_EQ:
    case WPK_BINARY_NE:
        return compare(k, op, a, b);
    case WPK_BINARY_POW:
        return call(k, WPK_C_POW, a, b);
    case WPK_BINARY_MOD:
        if (power_of_two(b) >= 0) {
            return mask_or_shift(k, op, a, power_of_two(b));
        }
        return call(k, floating ? WPK_C_MODULO : WPK_C_REMAINDER, a, b);
    default:
        if (op == WPK_BINARY_DIV && power_of_two(b) >= 0) {
            return mask_or_shift(k, op, a, power_of_two(b));
        }
        if (op == WPK_BINARY_DIV && !floating) {
            return call(k, WPK_C_QUOTIENT, a, b);
        }
        if (op == WPK_BINARY_DIV && !k->strict && width > 1 && width_of(k, b) == 1) {
            return call(k, WPK_C_OVER, a, b);
        }
    }
    struct wpk_c_value value = wpk_c_begin(&k->text, a->dtype, width);
    wpk_c_put_value(&k->text, a, width);
    wpk_c_put(&k->text, " %s ", signs[op]);
    wpk_c_put_value(&k->text, b, width);
    wpk_c_end(&k->text);
    return value;
}

/* Compilers move halves of four lanes through memory: these are scalars. */
struct wpk_c_value wpk_c_combine_lanes(struct wpk_c_kernel *k, enum wpk_binary op,
                                       const struct wpk_c_value *a)
{
    struct wpk_c_value whole = *a;
    bool bools = a->dtype == WPK_BOOL;
    while (whole.width > 4) {
        struct wpk_c_value half[2];
        int width = whole.width / 2;
        for (int i = 0; i < 2; i++) {
            half[i] = begin(k, whole.dtype, width, bools, whole.mask_bytes);
            wpk_c_put(&k->text, "__builtin_shufflevector(t%d, t%d", whole.name, whole.name);
            for (int j = 0; j < width; j++) {
                wpk_c_put(&k->text, ", %d", i * width + j);
            }
            wpk_c_put(&k->text, ")");
            wpk_c_end(&k->text);
        }
        whole = wpk_c_binary(k, op, &half[0], &half[1]);
    }
    if (whole.width == 1) {
        return whole;
    }
    struct wpk_c_value lane[4];
    int count = whole.width;
    for (int i = 0; i < count; i++) {
        lane[i] = wpk_c_begin(&k->text, whole.dtype, 1);
        wpk_c_put(&k->text, bools ? "t%d[%d] != 0" : "t%d[%d]", whole.name, i);
        wpk_c_end(&k->text);
    }
    for (; count > 1; count /= 2) {
        for (int i = 0; i < count / 2; i++) {
            lane[i] = wpk_c_binary(k, op, &lane[i], &lane[i + count / 2]);
        }
    }
    return lane[0];
}

struct wpk_c_value wpk_c_unary(struct wpk_c_kernel *k, const struct wpk_node *node,
                               const struct wpk_c_value *a)
{
    static const int functions[WPK_UNARY_COUNT] = {
        [WPK_UNARY_EXP] = WPK_C_EXP,     [WPK_UNARY_LOG] = WPK_C_LOG,
        [WPK_UNARY_SQRT] = WPK_C_SQRT,   [WPK_UNARY_ABS] = WPK_C_ABS,
        [WPK_UNARY_FLOOR] = WPK_C_FLOOR, [WPK_UNARY_CEIL] = WPK_C_CEIL,
        [WPK_UNARY_ROUND] = WPK_C_ROUND, [WPK_UNARY_TRUNC] = WPK_C_TRUNC,
        [WPK_UNARY_SIN] = WPK_C_SIN,     [WPK_UNARY_COS] = WPK_C_COS,
    };
    int width = width_of(k, a);
    if (node->op == WPK_UNARY_NOT && is_number(a)) {
        return number(WPK_BOOL, a->form.constant == 0);
    }
    if (node->op != WPK_UNARY_NEG && node->op != WPK_UNARY_NOT) {
        if (functions[node->op] == 0) {
            wpk_c_refuse(k, "a function that is expanded before");
            return *a;
        }
        return call(k, (enum wpk_c_function)functions[node->op], a, NULL);
    }
    bool mask = node->op == WPK_UNARY_NOT && width > 1;
    struct wpk_c_value value = begin(k, node->dtype, width, mask, 4);
    wpk_c_put(&k->text, mask ? "~" : node->op == WPK_UNARY_NOT ? "!" : "-");
    put(k, a, width, mask, 4);
    wpk_c_end(&k->text);
    return value;
}

struct wpk_c_value wpk_c_select(struct wpk_c_kernel *k, enum wpk_dtype dtype,
                                const struct wpk_c_value *c, const struct wpk_c_value *a,
                                const struct wpk_c_value *b)
{
    int width = width_of(k, a) > width_of(k, b) ? width_of(k, a) : width_of(k, b);
    int choice = width_of(k, c);
    bool bools = dtype == WPK_BOOL;
    if (is_number(c)) {
        return c->form.constant != 0 ? *a : *b;
    }
    width = width > choice ? width : choice;
    enum wpk_c_type type = wpk_c_type_of(dtype);
    struct wpk_c_value value = begin(k, dtype, width, bools && width > 1, 4);
    if (choice > 1) {
        wpk_c_put_function(&k->text, WPK_C_SELECT, type, width);
        wpk_c_put(&k->text, "(");
        wpk_c_put_mask(&k->text, c, width, wpk_c_type_bytes(type));
        wpk_c_put(&k->text, ", ");
    } else {
        wpk_c_put_value(&k->text, c, 1);
        wpk_c_put(&k->text, " ? ");
    }
    for (int i = 0; i < 2; i++) {
        put(k, i == 0 ? a : b, width, bools && width > 1, 4);
        wpk_c_put(&k->text, "%s", i > 0 ? "" : choice > 1 ? ", " : " : ");
    }
    wpk_c_put(&k->text, "%s", choice > 1 ? ")" : "");
    wpk_c_end(&k->text);
    return value;
}

/* ---- casts */

/* A float rounds to a narrow one by way of its bits. */
static struct wpk_c_value narrow_float(struct wpk_c_kernel *k, enum wpk_dtype to,
                                       const struct wpk_c_value *a, int width)
{
    bool half = to == WPK_F16;
    int bits = k->text.name_count++;
    wpk_c_indent(&k->text);
    wpk_c_put(&k->text, "const ");
    wpk_c_put_type(&k->text, WPK_C_U16, width);
    wpk_c_put(&k->text, " t%d = ", bits);
    put_call(k, half ? WPK_C_TO_F16 : WPK_C_TO_BF16, WPK_C_F32, a, width, NULL, 0);
    wpk_c_end(&k->text);
    struct wpk_c_value value = wpk_c_begin(&k->text, to, width);
    wpk_c_put_function(&k->text, half ? WPK_C_FROM_F16 : WPK_C_FROM_BF16, WPK_C_F32, width);
    wpk_c_put(&k->text, "(t%d)", bits);
    wpk_c_end(&k->text);
    value.twin = bits + 1;
    return value;
}

/* A function of one operand whose result has another type. */
static struct wpk_c_value call_to(struct wpk_c_kernel *k, enum wpk_dtype to,
                                  enum wpk_c_function function, const struct wpk_c_value *a,
                                  int width)
{
    struct wpk_c_value value = wpk_c_begin(&k->text, to, width);
    put_call(k, function, wpk_c_type_of(a->dtype), a, width, NULL, 0);
    wpk_c_end(&k->text);
    return value;
}

/* The conversion of C. */
static void put_converted(struct wpk_c_kernel *k, enum wpk_c_type to, const struct wpk_c_value *a,
                          int width)
{
    bool mask = a->dtype == WPK_BOOL && width > 1;
    if (width == 1) {
        wpk_c_put(&k->text, "(%s)", wpk_c_type_name(to));
        wpk_c_put_value(&k->text, a, 1);
        return;
    }
    wpk_c_put(&k->text, "__builtin_convertvector(%s", mask ? "-" : "");
    put(k, a, width, mask, wpk_c_type_bytes(to));
    wpk_c_put(&k->text, ", ");
    wpk_c_put_type(&k->text, to, width);
    wpk_c_put(&k->text, ")");
}

static bool is_narrow_integer(enum wpk_dtype dtype)
{
    return dtype == WPK_I8 || dtype == WPK_U8 || dtype == WPK_I16;
}

/* The function that converts floats to an integer type. */
static enum wpk_c_function saturating(enum wpk_dtype to)
{
    static const enum wpk_c_function to_integer[WPK_DTYPE_COUNT] = {
        [WPK_I8] = WPK_C_TO_I8,   [WPK_U8] = WPK_C_TO_U8,   [WPK_I16] = WPK_C_TO_I16,
        [WPK_I32] = WPK_C_TO_I32, [WPK_I64] = WPK_C_TO_I64,
    };
    return to_integer[to];
}

/* i32 in lanes, all of them within the type, as bytes or words. */
static struct wpk_c_value narrow_lanes(struct wpk_c_kernel *k, enum wpk_dtype to,
                                       const struct wpk_c_value *wide, int width)
{
    struct wpk_c_value value = wpk_c_begin(&k->text, to, width);
    put_converted(k, wpk_c_type_of(to), wide, width);
    wpk_c_end(&k->text);
    value.twin = wide->name + 1;
    return value;
}

struct wpk_c_value wpk_c_round_to_bytes(struct wpk_c_kernel *k, enum wpk_dtype to,
                                        const struct wpk_c_value *a,
                                        const struct wpk_c_value *shift)
{
    struct wpk_c_value low = wpk_c_real(WPK_F32, to == WPK_U8 ? 0 : -128);
    struct wpk_c_value high = wpk_c_real(WPK_F32, to == WPK_U8 ? 255 : 127);
    int width = width_of(k, a);
    if (shift != NULL) {
        struct wpk_c_value real = wpk_c_cast(k, WPK_F32, shift);
        low = wpk_c_binary(k, WPK_BINARY_SUB, &low, &real);
        high = wpk_c_binary(k, WPK_BINARY_SUB, &high, &real);
        width = width_of(k, &real) > width ? width_of(k, &real) : width;
    }
    low = call(k, WPK_C_MAX, &low, a);
    high = call(k, WPK_C_MIN, &high, &low);
    struct wpk_c_value wide = call_to(k, WPK_I32, WPK_C_NEAREST, &high, width);
    if (shift != NULL) {
        struct wpk_c_value whole = wpk_c_cast(k, WPK_I32, shift);
        wide = wpk_c_binary(k, WPK_BINARY_ADD, &wide, &whole);
    }
    return width > 1 ? narrow_lanes(k, to, &wide, width) : wpk_c_cast(k, to, &wide);
}

static struct wpk_c_value convert(struct wpk_c_kernel *k, enum wpk_dtype to,
                                  const struct wpk_c_value *a)
{
    enum wpk_c_type from_type = wpk_c_value_type(a), type = wpk_c_type_of(to);
    bool narrow = to == WPK_F16 || to == WPK_BF16;
    struct wpk_c_value x = *a;
    int width = width_of(k, a);
    if (is_short(k, a)) {
        x.dtype = WPK_I32;
        from_type = WPK_C_I32;
    }
    /* f32 cannot represent all of them */
    bool wide = from_type == WPK_C_I32 || from_type == WPK_C_I64;
    if (narrow && (from_type == WPK_C_F64 || (wide && a->dtype != WPK_BOOL))) {
        x = call_to(k, WPK_F32, WPK_C_TO_ODD, &x, width); /* rounds once */
    } else if (narrow && (from_type != WPK_C_F32 || a->dtype == WPK_BOOL)) {
        x = convert(k, WPK_F32, &x);
    } else if (a->twin > 0 && is_narrow_integer(a->dtype) &&
               (to == WPK_I32 || wpk_dtype_is_float(to))) {
        x = (struct wpk_c_value){
            .kind = WPK_C_NAME, .dtype = WPK_I32, .width = width, .name = a->twin - 1};
        if (to == WPK_I32) {
            return x;
        }
    } else if (from_type == WPK_C_F32 && width > 1 && is_narrow_integer(to)) {
        /* they stay in i32, too, which is where readers of i32 take them */
        struct wpk_c_value whole = call_to(k, WPK_I32, saturating(to), a, width);
        return narrow_lanes(k, to, &whole, width);
    } else if (width > 1 && is_narrow_integer(a->dtype) && !is_narrow_integer(to) &&
               to != WPK_BOOL) {
        x = call_to(k, WPK_I32, WPK_C_WIDE, a, width);
        if (to == WPK_I32) {
            return x;
        }
    }
    if (narrow) {
        return narrow_float(k, to, &x, width);
    }
    struct wpk_c_value value = wpk_c_begin(&k->text, to, width);
    if (wpk_dtype_is_float(a->dtype) && !wpk_dtype_is_float(to)) {
        put_call(k, saturating(to), from_type, &x, width, NULL, 0);
    } else {
        put_converted(k, type, &x, width);
    }
    wpk_c_end(&k->text);
    return value;
}

struct wpk_c_value wpk_c_cast(struct wpk_c_kernel *k, enum wpk_dtype to,
                              const struct wpk_c_value *a)
{
    struct wpk_c_value value = *a;
    if (a->dtype == to) {
        return value;
    }
    if (a->kind == WPK_C_NUMBER && wpk_dtype_is_float(to)) {
        return wpk_c_real(to, wpk_dtype_round(to, a->number));
    }
    if (is_number(a) && wpk_dtype_is_float(to)) {
        return wpk_c_real(to, wpk_dtype_round(to, (double)a->form.constant));
    }
    if (a->kind == WPK_C_INDEX && to == WPK_I64) {
        value.dtype = to;
        return value;
    }
    if ((a->dtype == WPK_F16 || a->dtype == WPK_BF16) && to == WPK_F32) {
        value.dtype = to;
        return value;
    }
    return convert(k, to, a);
}
