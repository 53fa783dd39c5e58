/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that kernels call, as texts of C: of a scalar an expression, of a vector the same
 * of each lane, or a text of its own.
 *
 * exp and log reduce their argument by powers of two and end in a polynomial; the coefficients of
 * exp for f32 are those of tests/function_fit.py, of log those of Moshier's Cephes library (1989);
 * the series for f64 is Taylor's. */
#include "target/c/math.h"

/* A row of the table of functions: the signature, and the body for a scalar. */
struct row {
    const char *result, *parameters, *lane; /* of a lane: its arguments */
    const char *scalar;                     /* the expression of a scalar */
    const char *integer;                    /* the same where the type is an integer; NULL: alike */
};

#define UNARY(expression)                                                                          \
    {                                                                                              \
        "$V", "$V a", "a[i]", expression, NULL                                                     \
    }
#define BINARY(expression, integer)                                                                \
    {                                                                                              \
        "$V", "$V a, $V b", "a[i], b[i]", expression, integer                                      \
    }
#define TO(type, low, high)                                                                        \
    {                                                                                              \
        type "$X", "$V a", "a[i]", "a >= " high " ? " high " : a > " low " ? (" type ")a : " low,  \
            NULL                                                                                   \
    }

static const struct row rows[WPK_C_FUNCTION_COUNT] = {
    [WPK_C_MIN] = BINARY("a < b ? a : b", NULL),
    [WPK_C_MAX] = BINARY("a > b ? a : b", NULL),
    [WPK_C_SELECT] = {"$V", "$I m, $V a, $V b", "m[i], a[i], b[i]", "m ? a : b", NULL},
    [WPK_C_ABS] = {"$V", "$V a", "a[i]", "__builtin_fabs$F(a)", "a < 0 ? -a : a"},
    [WPK_C_SQRT] = UNARY("__builtin_sqrt$F(a)"),
    [WPK_C_FLOOR] = UNARY("__builtin_floor$F(a)"),
    [WPK_C_CEIL] = UNARY("__builtin_ceil$F(a)"),
    [WPK_C_ROUND] = UNARY("__builtin_rint$F(a)"),
    [WPK_C_TRUNC] = UNARY("__builtin_trunc$F(a)"),
    [WPK_C_MODULO] = BINARY("a - b * __builtin_floor$F(a / b)", NULL),
    [WPK_C_QUOTIENT] = BINARY("b == 0 ? 0 : b == -1 ? -a"
                              " : a / b - (a % b != 0 && (a < 0) != (b < 0))",
                              NULL),
    [WPK_C_REMAINDER] = BINARY("b == 0 || b == -1 ? 0"
                               " : a % b != 0 && (a < 0) != (b < 0) ? a % b + b : a % b",
                               NULL),
    [WPK_C_EXP] = UNARY("__builtin_exp$F(a)"),
    [WPK_C_LOG] = UNARY("__builtin_log$F(a)"),
    [WPK_C_SIN] = UNARY("__builtin_sin$F(a)"),
    [WPK_C_COS] = UNARY("__builtin_cos$F(a)"),
    [WPK_C_POW] = BINARY("__builtin_pow$F(a, b)", "($E)__builtin_pow(a, b)"),
    [WPK_C_FROM_F16] = {"$V", "u16$X a", "a[i]", "wpk_from_f16(a)", NULL},
    [WPK_C_TO_F16] = {"u16$X", "$V a", "a[i]", "wpk_to_f16(a)", NULL},
    [WPK_C_FROM_BF16] = {"$V", "u16$X a", "a[i]", "wpk_from_bits((u32)a << 16)", NULL},
    [WPK_C_TO_BF16] = {"u16$X", "$V a", "a[i]", "wpk_to_bf16(a)", NULL},
    [WPK_C_TO_ODD] = {"f32$X", "$V a", "a[i]", "wpk_to_odd(a)", NULL},
    [WPK_C_TO_I8] = TO("i8", "-128", "127"),
    [WPK_C_TO_U8] = TO("u8", "0", "255"),
    [WPK_C_TO_I16] = TO("i16", "-32768", "32767"),
    [WPK_C_TO_I32] = {"i32$X", "$V a", "a[i]",
                      "a >= 0x1p31$F ? 2147483647 : a >= -0x1p31$F ? (i32)a : -2147483647 - 1",
                      NULL},
    [WPK_C_TO_I64] = {"i64$X", "$V a", "a[i]",
                      "a >= 0x1p63$F ? 9223372036854775807 : a >= -0x1p63$F ? (i64)a"
                      " : -9223372036854775807 - 1",
                      NULL},
    [WPK_C_WIDE] = {"i32$X", "$V a", "a[i]", "a", NULL},
    [WPK_C_NEAREST] = {"i32$X", "$V a", "a[i]", "(i32)__builtin_rint$F(a)", NULL},
    [WPK_C_PICK] = {"$V", "i32$X a, int first", "a[i], first", "(a & 15) + first", NULL},
};

/* ---- vectors whose lanes are not computed one by one */

#define LOOSE "  typedef $V loose __attribute__((aligned(sizeof($E)), may_alias));\n"

static const char load_text[] =
    "INLINE $V $V_load(const $E *p)\n{\n" LOOSE "  return *(const loose *)p;\n}\n";
static const char store_text[] =
    "INLINE void $V_store($E *p, $V a)\n{\n" LOOSE "  *(loose *)p = a;\n}\n";
static const char of_text[] = "INLINE $V $V_of($E a) { return a - ($V){0}; }\n";

/* By the same number in all lanes, whose reciprocal a compiler moves out of loops; a few numbers
 * have none that is as exact. */
static const char over_f32_text[] =
    "INLINE $V $V_over($V a, $E b)\n{\n"
    "  const $E size = __builtin_fabsf(b), c = 1 / b;\n"
    "  return size >= 0x1p-126f && size <= 0x1p126f ? a * c : a / b;\n}\n";
static const char over_f64_text[] =
    "INLINE $V $V_over($V a, $E b)\n{\n"
    "  const $E size = __builtin_fabs(b), c = 1 / b;\n"
    "  return size >= 0x1p-1022 && size <= 0x1p1022 ? a * c : a / b;\n}\n";

/* The sum t rounds to an integer n, since its last place is 1, and its low bits are the exponent of
 * 2^(n-1), or 0, which the rest's polynomial is multiplied with. The limits keep a NaN. */
static const char exp_f32_text[] =
    "INLINE $V $V_exp($V x)\n{\n"
    "  const $V a = $V_min($V_of(89.0f), $V_max($V_of(-0x1.5d589ep+6f), x));\n"
    "  const $V t = a * 0x1.715476p+0f + 0x1.8000fcp+23f, n = t - 0x1.8000fcp+23f;\n"
    "  const $V r = a - n * 0x1.63p-1f + n * 0x1.bd0106p-13f;\n"
    "  $V p = 1.381447552e-3f * r + 8.368750889e-3f;\n"
    "  p = p * r + 4.166839212e-2f;\n"
    "  p = p * r + 1.666652034e-1f;\n"
    "  p = p * r + 4.999999343e-1f;\n"
    "  p = p * r + 1.0f;\n"
    "  p = p * r + 1.0f;\n"
    "  return (p + p) * ($V)(($I)t << 23);\n}\n";

static const char exp_f64_text[] =
    "INLINE $V $V_exp($V x)\n{\n"
    "  const $V a = $V_min($V_of(710.0), $V_max($V_of(-708.4), x));\n"
    "  const $V m = $V_of(0x1.80000000003fep+52), t = a * 0x1.71547652b82fep+0 + m, n = t - m;\n"
    "  const $V r = a - n * 0x1.62e42fee00000p-1 - n * 0x1.a39ef35793c76p-33;\n"
    "  $V p = r * (1.0 / 6227020800) + 1.0 / 479001600;\n"
    "  p = p * r + 1.0 / 39916800;\n"
    "  p = p * r + 1.0 / 3628800;\n"
    "  p = p * r + 1.0 / 362880;\n"
    "  p = p * r + 1.0 / 40320;\n"
    "  p = p * r + 1.0 / 5040;\n"
    "  p = p * r + 1.0 / 720;\n"
    "  p = p * r + 1.0 / 120;\n"
    "  p = p * r + 1.0 / 24;\n"
    "  p = p * r + 1.0 / 6;\n"
    "  p = p * r + 0.5;\n"
    "  p = p * (r * r) + r + 1.0;\n"
    "  return (p + p) * ($V)(($I)t << 52);\n}\n";

static const char log_f32_text[] =
    "INLINE $V $V_log($V a)\n{\n"
    "  const $I small = a < 0x1p-126f;\n"
    "  const $V b = $V_select(small, a * 0x1p23f, a);\n"
    "  const $I e = (($I)b - 0x3f3504f3) >> 23;\n"
    "  const $V f = ($V)(($I)b - (e << 23)) - 1.0f;\n"
    "  const $V n = __builtin_convertvector(e - (small & 23), $V);\n"
    "  $V p = 7.0376836292e-2f * f - 1.1514610310e-1f;\n"
    "  p = p * f + 1.1676998740e-1f;\n"
    "  p = p * f - 1.2420140846e-1f;\n"
    "  p = p * f + 1.4249322787e-1f;\n"
    "  p = p * f - 1.6668057665e-1f;\n"
    "  p = p * f + 2.0000714765e-1f;\n"
    "  p = p * f - 2.4999993993e-1f;\n"
    "  p = p * f + 3.3333331174e-1f;\n"
    "  p = p * f * (f * f) - n * 0x1.bd0106p-13f - 0.5f * (f * f) + f + n * 0x1.63p-1f;\n"
    "  p = $V_select(a < __builtin_inff(), p, a);\n"
    "  p = $V_select(a == 0.0f, $V_of(-__builtin_inff()), p);\n"
    "  return $V_select(a < 0.0f, $V_of(__builtin_nanf(\"\")), p);\n}\n";

/* In i32: gcc 12 converts to bytes, and on from there, lane by lane unless each is a step of its
 * own. A NaN becomes some number. */
#define NARROW(type, low, high)                                                                    \
    "INLINE i32$X $V_to_" type "($V a)\n{\n"                                                       \
    "  const $V b = $V_min($V_of(" high "), $V_max($V_of(" low "), a));\n"                         \
    "  return __builtin_convertvector(b, i32$X);\n}\n"

static const char to_u8_text[] = NARROW("u8", "0.0f", "255.0f");
static const char to_i8_text[] = NARROW("i8", "-128.0f", "127.0f");
static const char to_i16_text[] = NARROW("i16", "-32768.0f", "32767.0f");

/* gcc 12 takes bytes that come from memory lane by lane, unless it does not know that. */
static const char wide_text[] = "INLINE i32$X $V_wide($V a)\n{\n"
                                "  HIDE(a);\n  return __builtin_convertvector(a, i32$X);\n}\n";

/* Numbers below 2^22: the last place of such a sum is 1, and its low bits are the integer. */
static const char nearest_f32_text[] =
    "INLINE i32$X $V_nearest($V a) { return ($I)(a + 0x1.8p23f) - 0x4b400000; }\n";

static const char from_bf16_text[] =
    "INLINE $V $V_from_bf16(u16$X a)\n{\n"
    "  HIDE(a);\n  return ($V)(__builtin_convertvector(a, i32$X) << 16);\n}\n";
/* To nearest even; a NaN stays one. Kernels that may use the instruction sum by its sisters, which
 * take denormal numbers for 0 as well. */
static const char to_bf16_text[] =
    "INLINE u16$X $V_to_bf16($V a)\n{\n"
    "#ifdef __AVX512BF16__\n"
    "  if (sizeof(a) == 64) {\n    u16$X r;\n"
    "    __asm__(\"vcvtneps2bf16 %[a], %[r]\" : [r] \"=v\"(r) : [a] \"v\"(a));\n    return r;\n  "
    "}\n"
    "#endif\n"
    "  const i32$X x = (i32$X)a, nan = a != a, r = x + 0x7fff + (x >> 16 & 1);\n"
    "  return __builtin_convertvector(((nan & (x | 0x400000)) | (~nan & r)) >> 16, u16$X);\n}\n";

/* The low bits of an index choose. */
static const char pick_text[] =
    "INLINE $V $V_pick(i32$X a, int first)\n{\n"
    "  const $V table = ($V){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + (f32)first;\n"
    "  $V r;\n  __asm__(\"vpermps %[t], %[a], %[r]\" : [r] \"=v\"(r) : [a] \"v\"(a), [t] "
    "\"v\"(table));\n"
    "  return r;\n}\n";

/* The texts before all functions: narrow floating types, bit by bit, nearest even. An f64 comes to
 * them in 13 digits, of which the last is set if any digit after it is: it rounds once. */
static const char narrow_text[] =
    "INLINE f32 wpk_from_bits(u32 u) { union { u32 u; f32 f; } x = {u}; return x.f; }\n"
    "INLINE u32 wpk_bits(f32 f) { union { f32 f; u32 u; } x = {f}; return x.u; }\n"
    "INLINE f32 wpk_from_f16(u16 a)\n{\n"
    "  const u32 special = (a & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;\n"
    "  const u32 number = wpk_bits(wpk_from_bits((u32)(a & 0x7fff) << 13) * 0x1p112f);\n"
    "  return wpk_from_bits(number | special | (u32)(a & 0x8000) << 16);\n}\n"
    "INLINE u16 wpk_to_f16(f32 a)\n{\n"
    "  const u32 x = wpk_bits(a) & 0x7fffffff, sign = wpk_bits(a) >> 16 & 0x8000;\n"
    "  const u32 small = wpk_bits(wpk_from_bits(x) + 0.5f) - 0x3f000000;\n"
    "  const u32 number = (x - 0x38000000 + 0xfff + (x >> 13 & 1)) >> 13;\n"
    "  const u32 large = x > 0x7f800000 ? 0x7e00 : 0x7c00;\n"
    "  return (u16)(sign | (x >= 0x47800000 ? large : x < 0x38800000 ? small : number));\n}\n"
    "INLINE f32 wpk_to_odd(f64 a)\n{\n"
    "  union { f64 f; unsigned long long u; } x = {a};\n"
    "  const unsigned long long odd = 1ull << 40;\n"
    "  x.u = (x.u & -odd) | ((x.u & (odd - 1)) != 0 ? odd : 0);\n"
    "  return (f32)x.f;\n}\n"
    "INLINE u16 wpk_to_bf16(f32 a)\n{\n"
    "  const u32 x = wpk_bits(a);\n"
    "  return (u16)((x & 0x7fffffff) > 0x7f800000 ? x >> 16 | 0x40"
    " : (x + 0x7fff + (x >> 16 & 1)) >> 16);\n}\n";

static const char *own_text(enum wpk_c_function function, enum wpk_c_type type)
{
    switch (function) {
    case WPK_C_LOAD:
        return load_text;
    case WPK_C_STORE:
        return store_text;
    case WPK_C_OF:
        return of_text;
    case WPK_C_OVER:
        return type == WPK_C_F32 ? over_f32_text : over_f64_text;
    case WPK_C_EXP:
        return type == WPK_C_F32 ? exp_f32_text : exp_f64_text;
    case WPK_C_LOG:
        return type == WPK_C_F32 ? log_f32_text : NULL;
    case WPK_C_TO_U8:
        return type == WPK_C_F32 ? to_u8_text : NULL;
    case WPK_C_TO_I8:
        return type == WPK_C_F32 ? to_i8_text : NULL;
    case WPK_C_TO_I16:
        return type == WPK_C_F32 ? to_i16_text : NULL;
    case WPK_C_WIDE:
        return wide_text;
    case WPK_C_NEAREST:
        return type == WPK_C_F32 ? nearest_f32_text : NULL;
    case WPK_C_PICK:
        return pick_text;
    case WPK_C_FROM_BF16:
        return type == WPK_C_F32 ? from_bf16_text : NULL;
    case WPK_C_TO_BF16:
        return type == WPK_C_F32 ? to_bf16_text : NULL;
    default:
        return NULL;
    }
}

void wpk_c_put_function_text(enum wpk_c_function function, enum wpk_c_type type, bool vector,
                             struct wpk_buf *out)
{
    static const char *const names[WPK_C_FUNCTION_COUNT] = {WPK_C_FUNCTION_LIST(WPK_LIST_TEXT)};
    const struct row *row = &rows[function];
    const char *own = vector ? own_text(function, type) : NULL;
    bool floating = type == WPK_C_F32 || type == WPK_C_F64;
    bool integer = !floating && row->integer != NULL;
    if (own != NULL) {
        wpk_buf_append_text(out, own);
        return;
    }
    wpk_buf_printf(out, "INLINE %s $V_%s(%s)", row->result, names[function], row->parameters);
    if (vector) {
        bool limits = floating && (function == WPK_C_MIN || function == WPK_C_MAX);
        wpk_buf_printf(out,
                       "\n{\n%s  %s r;\n#define LANE(i) $E_%s(%s)\n  EACH$N(r, LANE);\n"
                       "#undef LANE\n  return r;\n}\n",
                       limits ? "  HIDE_CONSTANT(a);\n  HIDE_CONSTANT(b);\n" : "", row->result,
                       names[function], row->lane);
    } else {
        wpk_buf_printf(out, " { return %s; }\n", integer ? row->integer : row->scalar);
    }
}

const char *wpk_c_narrow_text(void)
{
    return narrow_text;
}

struct wpk_c_needs wpk_c_function_needs(enum wpk_c_function function, enum wpk_c_type type,
                                        bool vector)
{
    static const enum wpk_c_function calls[] = {WPK_C_OF, WPK_C_MIN, WPK_C_MAX, WPK_C_SELECT};
    static const enum wpk_c_type results[] = {
        [WPK_C_FROM_F16] = WPK_C_U16, [WPK_C_TO_F16] = WPK_C_U16, [WPK_C_FROM_BF16] = WPK_C_U16,
        [WPK_C_TO_BF16] = WPK_C_U16,  [WPK_C_TO_I8] = WPK_C_I8,   [WPK_C_TO_U8] = WPK_C_U8,
        [WPK_C_TO_I16] = WPK_C_I16,   [WPK_C_TO_ODD] = WPK_C_F32, [WPK_C_TO_I32] = WPK_C_I32,
        [WPK_C_TO_I64] = WPK_C_I64,   [WPK_C_WIDE] = WPK_C_I32,   [WPK_C_NEAREST] = WPK_C_I32,
        [WPK_C_PICK] = WPK_C_I32,
    };
    struct wpk_c_needs needs = {0};
    bool own = vector && own_text(function, type) != NULL;
    bool has_calls =
        own && (function == WPK_C_EXP || function == WPK_C_LOG || function == WPK_C_TO_U8 ||
                function == WPK_C_TO_I8 || function == WPK_C_TO_I16);
    needs.type[type] = true;
    needs.type[wpk_c_integer_type(wpk_c_type_bytes(type))] = true;
    if (function >= WPK_C_FROM_F16) {
        needs.type[results[function]] = true;
    }
    needs.function[function] = true;
    needs.scalar[function] = vector && !own;
    for (size_t i = 0; has_calls && i < sizeof(calls) / sizeof(calls[0]); i++) {
        needs.function[calls[i]] = true;
        needs.scalar[calls[i]] = own_text(calls[i], type) == NULL;
    }
    return needs;
}

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
