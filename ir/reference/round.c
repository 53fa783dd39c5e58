/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic over rows of doubles that hold values of a narrower type.
 *
 * + - * / and sqrt of a type with p bits may be computed in double and rounded: where
 * 53 >= 2 p + 2, which f32, f16 and bf16 satisfy, the second rounding never errs.
 *   source  Figueroa, When is double rounding innocuous?, ACM SIGNUM Newsletter 30, 1995
 *
 * No expression here may be contracted to a fused multiply-add: see ir/meson.build. */
#include "ir/node.h"
#include "ir/reference/reference.h"
#include "ir/reference/tape.h"

#include <math.h>
#include <string.h>

#define UNITS_MAX 2 /* in the last place, by which a function may be off */

void wpk_lanes_round(enum wpk_dtype dtype, int count, double *value)
{
    if (dtype == WPK_F64) {
        return;
    }
    if (dtype == WPK_F32) {
        for (int i = 0; i < count; i++) {
            value[i] = (double)(float)value[i];
        }
        return;
    }
    for (int i = 0; i < count; i++) {
        value[i] = wpk_dtype_round(dtype, value[i]);
    }
}

void wpk_lanes_modulo(enum wpk_dtype dtype, int count, const double *x, const double *y,
                      double *value)
{
    for (int i = 0; i < count; i++) {
        double quotient = wpk_dtype_round(dtype, x[i] / y[i]);
        double part = wpk_dtype_round(dtype, y[i] * floor(quotient));
        value[i] = x[i] - part;
    }
}

/* ---- functions */

/*   source  the finalizer of splitmix64, see common/rng.h */
uint64_t wpk_lanes_mix(uint64_t number)
{
    uint64_t z = number + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The distance of 1 to the next number of the type, and of 0. */
static void find_units(enum wpk_dtype dtype, double *of_one, double *of_zero)
{
    switch (dtype) {
    case WPK_F16:
        *of_one = 0x1p-10;
        *of_zero = 0x1p-24;
        break;
    case WPK_BF16:
        *of_one = 0x1p-7;
        *of_zero = 0x1p-133;
        break;
    case WPK_F32:
        *of_one = 0x1p-23;
        *of_zero = 0x1p-149;
        break;
    default:
        *of_one = 0x1p-52;
        *of_zero = 0x1p-1074;
    }
}

/* The largest power of two up to |value|; 0 for subnormal doubles. */
static double power_below(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= UINT64_C(0x7ff0000000000000);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

void wpk_lanes_move(enum wpk_dtype dtype, int count, uint64_t hash, uint64_t step, double most,
                    double *value)
{
    double of_one, of_zero;
    find_units(dtype, &of_one, &of_zero);
    for (int i = 0; i < count; i++) {
        uint64_t drawn = wpk_lanes_mix(hash + step * (uint64_t)i) >> 32;
        double units = (double)(drawn * (2 * UNITS_MAX + 1) >> 32) - UNITS_MAX;
        double unit = fmax(power_below(value[i]) * of_one, of_zero);
        double moved = wpk_dtype_round(dtype, value[i] + units * unit);
        bool same_sign = (value[i] > 0 && moved > 0) || (value[i] < 0 && moved < 0);
        if (isfinite(moved) && same_sign && fabs(moved) <= most) {
            value[i] = moved;
        }
    }
}

/* ---- sums and products */

static void add_scaled_f32(int count, float a, const double *restrict b, float *restrict sum)
{
    WPK_LANES_EACH(count, sum[i] += a * (float)b[i])
}

static void add_products_f32(int count, const double *restrict a, const double *restrict b,
                             float *restrict sum)
{
    WPK_LANES_EACH(count, sum[i] += (float)a[i] * (float)b[i])
}

void wpk_lanes_multiply_add_f32(int count, bool uniform, const double *a, const double *b,
                                float *sum)
{
    if (uniform) {
        add_scaled_f32(count, (float)a[0], b, sum);
    } else {
        add_products_f32(count, a, b, sum);
    }
}

void wpk_lanes_join(enum wpk_reduction reduction, enum wpk_dtype dtype, int count, const double *a,
                    double *sum)
{
    bool adds = reduction == WPK_REDUCE_SUM;
    for (int i = 0; i < count; i++) {
        sum[i] = adds ? sum[i] + a[i] : sum[i] * a[i];
    }
    wpk_lanes_round(dtype, count, sum);
}

double wpk_lanes_fold(enum wpk_reduction reduction, enum wpk_dtype dtype, int64_t count,
                      const double *terms, double sum)
{
    if (reduction == WPK_REDUCE_SUM && dtype == WPK_F32) {
        float narrow = (float)sum;
        for (int64_t i = 0; i < count; i++) {
            narrow += (float)terms[i];
        }
        return (double)narrow;
    }
    for (int64_t i = 0; i < count; i++) {
        sum = reduction == WPK_REDUCE_SUM ? sum + terms[i] : sum * terms[i];
        sum = wpk_dtype_round(dtype, sum);
    }
    return sum;
}

/* Casts inside a program: to an integer from a float rounds to nearest even and saturates, from
 * an integer wraps (as C and every instruction set do); to bool is `!= 0`; to a float keeps the
 * double, because rounding to that type is what the comparison's tolerance is for. */

/* The magnitude of what a NaN is cast to: any integer is as far from it as is allowed. */
#define ANY_INTEGER (0x1p70 * WPK_REFERENCE_STEP)

double wpk_reference_magnitude(enum wpk_dtype dtype, double cell)
{
    double value = wpk_cell_number(dtype, cell);
    return isinf(value) ? 0.0 : fabs(value);
}

/* The low bits of an integer as a number of a narrower type. */
static double narrowed(enum wpk_dtype dtype, int64_t value)
{
    switch (dtype) {
    case WPK_I8:
        return (double)(int8_t)(uint8_t)(uint64_t)value;
    case WPK_U8:
        return (double)(uint8_t)(uint64_t)value;
    case WPK_I16:
        return (double)(int16_t)(uint16_t)(uint64_t)value;
    case WPK_I32:
        return (double)(int32_t)(uint32_t)(uint64_t)value;
    case WPK_BOOL:
        return value != 0 ? 1.0 : 0.0;
    default:
        return (double)value;
    }
}

double wpk_reference_wrap(enum wpk_dtype dtype, double value)
{
    if (wpk_dtype_is_float(dtype) || dtype == WPK_I64) {
        return value;
    }
    return dtype == WPK_BOOL ? (value != 0.0 ? 1.0 : 0.0)
                             : narrowed(dtype, wpk_convert_int64(value));
}

double wpk_reference_cast(enum wpk_dtype from, enum wpk_dtype to, double cell)
{
    if (from == to) {
        return cell;
    }
    if (from == WPK_I64) {
        return narrowed(to, wpk_cell_integer(cell));
    }
    if (to == WPK_I64) {
        return wpk_cell_of(wpk_convert_int64(nearbyint(cell)));
    }
    if (wpk_dtype_is_float(to)) {
        return cell;
    }
    return to == WPK_BOOL || !wpk_dtype_is_float(from) ? wpk_reference_wrap(to, cell)
                                                       : wpk_convert_saturate(to, cell);
}

double wpk_reference_cast_magnitude(enum wpk_dtype from, enum wpk_dtype to, double cell,
                                    double magnitude)
{
    double value = wpk_cell_number(from, cell);
    if (to == WPK_BOOL) {
        return value != 0.0 ? 1.0 : 0.0;
    }
    bool to_integer = wpk_dtype_is_float(from) && !wpk_dtype_is_float(to);
    if (to_integer && isnan(value)) {
        return ANY_INTEGER;
    }
    if (to_integer && magnitude < WPK_REFERENCE_STEP) {
        double error = magnitude * WPK_REFERENCE_UNSURE;
        double steps =
            wpk_convert_saturate(to, value + error) - wpk_convert_saturate(to, value - error);
        return steps > 0.0 ? steps * WPK_REFERENCE_STEP : magnitude;
    }
    return magnitude;
}

double wpk_reference_limit(double magnitude, double a, double b)
{
    bool sure = a < WPK_REFERENCE_STEP && b < WPK_REFERENCE_STEP;
    return sure && magnitude >= WPK_REFERENCE_STEP ? WPK_REFERENCE_STEP / 2 : magnitude;
}
