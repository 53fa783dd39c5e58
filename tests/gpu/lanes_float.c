/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of f32 and f64. Approximate instructions give the rounded exact value, which is within
 * what the ISA promises of them; subnormal numbers are kept even where .ftz may drop them. */
#include "tests/gpu/lanes.h"
#include "tests/gpu/operation.h"

#include <fenv.h>
#include <math.h>

/* fma of 32 lanes is what kernels are made of: a processor that has the instruction may use it. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__)
#define FAST __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define FAST
#endif

FAST static void fuse_32(const float_lane *a, const float_lane *b, const float_lane *c, float *out)
{
    for (int i = 0; i < WPK_WARP_LANES; i++) {
        out[i] = fmaf(a[i], b[i], c[i]);
    }
}

FAST static void fuse_64(const double_lane *a, const double_lane *b, const double_lane *c,
                         double *out)
{
    for (int i = 0; i < WPK_WARP_LANES; i++) {
        out[i] = fma(a[i], b[i], c[i]);
    }
}

static void fma_32(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    float out[WPK_WARP_LANES];
    fuse_32(WPK_LANES(float, 1), WPK_LANES(float, 2), WPK_LANES(float, 3), out);
    wpk_lanes_put_32(warp, &in->operand[0], out);
}

static void fma_64(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)
{
    double out[WPK_WARP_LANES];
    fuse_64(WPK_LANES(double, 1), WPK_LANES(double, 2), WPK_LANES(double, 3), out);
    wpk_lanes_put_64(warp, &in->operand[0], out);
}

/* ---- other modes of rounding */

static int begin_rounding(const struct wpk_ptx_instruction *in)
{
    static const int modes[] = {FE_TONEAREST, FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    int before = fegetround();
    (void)fesetround(modes[in->round]);
    return before;
}

#define FUSED(bits)                                                                                \
    static void fma_##bits##_rounded(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)  \
    {                                                                                              \
        int before = begin_rounding(in);                                                           \
        fma_##bits(warp, in);                                                                      \
        (void)fesetround(before);                                                                  \
    }
FUSED(32)
FUSED(64)

/* One rounding, of whichever mode; the compiler must not move it. */
#define ROUNDED(name, bits, T, expression)                                                         \
    static void name(struct wpk_warp *warp, const struct wpk_ptx_instruction *in)                  \
    {                                                                                              \
        const T##_lane *as = WPK_LANES(T, 1), *bs = WPK_LANES(T, 2);                               \
        volatile T rounded;                                                                        \
        T out[WPK_WARP_LANES];                                                                     \
        int before = begin_rounding(in);                                                           \
        for (int i = 0; i < WPK_WARP_LANES; i++) {                                                 \
            const volatile T a = as[i], b = bs[i];                                                 \
            (void)b;                                                                               \
            rounded = expression;                                                                  \
            out[i] = rounded;                                                                      \
        }                                                                                          \
        (void)fesetround(before);                                                                  \
        wpk_lanes_put_##bits(warp, &in->operand[0], out);                                          \
    }

/* +0 is more than -0; of a number and NaN both are the number, or both NaN. */
#define LESS(a, b) ((a) < (b) || isnan(b) || ((a) == (b) && signbit(a)))
#define MIN(a, b) (LESS(a, b) ? (a) : (b))
#define MAX(a, b) (isnan(a) || (LESS(a, b) && !isnan(b)) ? (b) : (a))
#define NAN_OR(a, b, number) (isnan(a) || isnan(b) ? NAN : (number))

#define OPERATIONS(bits, T, f)                                                                     \
    ROUNDED(add_##bits##_rounded, bits, T, a + b)                                                  \
    ROUNDED(sub_##bits##_rounded, bits, T, a - b)                                                  \
    ROUNDED(mul_##bits##_rounded, bits, T, a *b)                                                   \
    ROUNDED(div_##bits##_rounded, bits, T, a / b)                                                  \
    ROUNDED(rcp_##bits##_rounded, bits, T, 1 / a)                                                  \
    ROUNDED(sqrt_##bits##_rounded, bits, T, sqrt##f(a))                                            \
    WPK_LANES_OPERATION(add_##bits, bits, T, T, T, T, a + b)                                       \
    WPK_LANES_OPERATION(sub_##bits, bits, T, T, T, T, a - b)                                       \
    WPK_LANES_OPERATION(mul_##bits, bits, T, T, T, T, a *b)                                        \
    WPK_LANES_OPERATION(div_##bits, bits, T, T, T, T, a / b)                                       \
    WPK_LANES_OPERATION(rcp_##bits, bits, T, T, T, T, 1 / a)                                       \
    WPK_LANES_OPERATION(sqrt_##bits, bits, T, T, T, T, sqrt##f(a))                                 \
    WPK_LANES_OPERATION(rsqrt_##bits, bits, T, T, T, T, 1 / sqrt((double)a))                       \
    WPK_LANES_OPERATION(min_##bits, bits, T, T, T, T, MIN(a, b))                                   \
    WPK_LANES_OPERATION(max_##bits, bits, T, T, T, T, MAX(a, b))                                   \
    WPK_LANES_OPERATION(min_nan_##bits, bits, T, T, T, T, NAN_OR(a, b, MIN(a, b)))                 \
    WPK_LANES_OPERATION(max_nan_##bits, bits, T, T, T, T, NAN_OR(a, b, MAX(a, b)))                 \
    WPK_LANES_OPERATION(abs_##bits, bits, T, T, T, T, fabs##f(a))                                  \
    WPK_LANES_OPERATION(neg_##bits, bits, T, T, T, T, -a)                                          \
    WPK_LANES_OPERATION(copysign_##bits, bits, T, T, T, T, copysign##f(b, a))

OPERATIONS(32, float, f)
OPERATIONS(64, double, )
#define UNARY(name, expression)                                                                    \
    WPK_LANES_OPERATION(name, 32, float, float, float, float, expression)
UNARY(ex2_32, exp2((double)a))
UNARY(lg2_32, log2((double)a))
UNARY(sin_32, sin((double)a))
UNARY(cos_32, cos((double)a))
UNARY(tanh_32, tanh((double)a))

#define ROUND_ROW(name, form, bits, run, operands) {name, form, WPK_PTX_F##bits, run, operands},
#define ROUND_ROWS(name, bits, run, operands)                                                      \
    ROUND_ROW(name, "", bits, run, operands)                                                       \
    ROUND_ROW(name, "rz", bits, run##_rounded, operands)                                           \
    ROUND_ROW(name, "rm", bits, run##_rounded, operands)                                           \
    ROUND_ROW(name, "rp", bits, run##_rounded, operands)
#define ROWS(bits)                                                                                 \
    ROUND_ROWS("add", bits, add_##bits, "d=dd")                                                    \
    ROUND_ROWS("sub", bits, sub_##bits, "d=dd")                                                    \
    ROUND_ROWS("mul", bits, mul_##bits, "d=dd")                                                    \
    ROUND_ROWS("div", bits, div_##bits, "d=dd")                                                    \
    ROUND_ROWS("rcp", bits, rcp_##bits, "d=d")                                                     \
    ROUND_ROWS("sqrt", bits, sqrt_##bits, "d=d")                                                   \
    ROUND_ROWS("fma", bits, fma_##bits, "d=ddd"){"mad", "", WPK_PTX_F##bits, fma_##bits, "d=ddd"}, \
        {"rsqrt", "", WPK_PTX_F##bits, rsqrt_##bits, "d=d"},                                       \
        {"min", "", WPK_PTX_F##bits, min_##bits, "d=dd"},                                          \
        {"max", "", WPK_PTX_F##bits, max_##bits, "d=dd"},                                          \
        {"min", "NaN", WPK_PTX_F##bits, min_nan_##bits, "d=dd"},                                   \
        {"max", "NaN", WPK_PTX_F##bits, max_nan_##bits, "d=dd"},                                   \
        {"abs", "", WPK_PTX_F##bits, abs_##bits, "d=d"},                                           \
        {"neg", "", WPK_PTX_F##bits, neg_##bits, "d=d"},                                           \
        {"copysign", "", WPK_PTX_F##bits, copysign_##bits, "d=dd"},

const struct wpk_ptx_operation wpk_ptx_floats[] = {
    ROWS(32) ROWS(64){"ex2", "", WPK_PTX_F32, ex2_32, "d=d"},
    {"lg2", "", WPK_PTX_F32, lg2_32, "d=d"},
    {"sin", "", WPK_PTX_F32, sin_32, "d=d"},
    {"cos", "", WPK_PTX_F32, cos_32, "d=d"},
    {"tanh", "", WPK_PTX_F32, tanh_32, "d=d"},
    {0},
};
