/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/convert.h"

#include <math.h>

void wpk_convert_bounds(enum wpk_dtype dtype, double *low, double *high)
{
    bool is_signed = dtype == WPK_I8 || dtype == WPK_I16 || dtype == WPK_I32 || dtype == WPK_I64;
    int bits = dtype == WPK_BOOL ? 1 : 8 * (int)wpk_dtype_size(dtype);
    *low = is_signed ? -ldexp(1.0, bits - 1) : 0.0;
    *high = ldexp(1.0, is_signed ? bits - 1 : bits) - 1.0; /* 2^63 for i64: not a double */
}

int64_t wpk_convert_int64(double value)
{
    if (value >= 0x1p63) {
        return INT64_MAX;
    }
    if (value < -0x1p63) {
        return INT64_MIN;
    }
    return isnan(value) ? 0 : (int64_t)value;
}

double wpk_convert_saturate(enum wpk_dtype dtype, double value)
{
    double low;
    double high;
    wpk_convert_bounds(dtype, &low, &high);
    double rounded = isnan(value) ? 0.0 : nearbyint(value);
    return rounded < low ? low : rounded > high ? high : rounded;
}

/* The bits of a float format with 16 bits: sign, `16 - 1 - fraction` exponent bits, fraction.
 * Rounded straight from the double, since going through f32 would round twice. */
static uint16_t encode_16(double value, int fraction)
{
    int exponent_bits = 15 - fraction;
    int bias = (1 << (exponent_bits - 1)) - 1;
    uint16_t sign = signbit(value) ? 0x8000u : 0u;
    uint16_t infinity = (uint16_t)(((1 << exponent_bits) - 1) << fraction);
    if (isnan(value)) {
        return (uint16_t)(sign | infinity | 1u);
    }
    double size = fabs(value);
    if (isinf(value) || size == 0.0) {
        return (uint16_t)(sign | (size == 0.0 ? 0u : infinity));
    }
    int exponent = ilogb(size);
    exponent = exponent < 1 - bias ? 1 - bias : exponent;
    /* In units of the last place; a carry into the next power of two encodes itself. */
    double units = nearbyint(ldexp(size, fraction - exponent));
    int64_t bits = ((int64_t)(exponent + bias - 1) << fraction) + (int64_t)units;
    return (uint16_t)(sign | (bits >= infinity ? infinity : (uint16_t)bits));
}

static double decode_16(uint16_t bits, int fraction)
{
    int exponent_bits = 15 - fraction;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (bits >> fraction) & ((1 << exponent_bits) - 1);
    int rest = bits & ((1 << fraction) - 1);
    double size;
    if (exponent == (1 << exponent_bits) - 1) {
        size = rest != 0 ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        size = ldexp(rest, 1 - bias - fraction);
    } else {
        size = ldexp(rest + (1 << fraction), exponent - bias - fraction);
    }
    return (bits & 0x8000u) != 0 ? -size : size;
}

#define FRACTION_F16 10
#define FRACTION_BF16 7

/* Buffers are aligned for their type. */
#define WIDEN(type)                                                                                \
    for (int64_t i = 0; i < count; i++) {                                                          \
        out[i] = (double)((const type *)in)[i];                                                    \
    }

void wpk_convert_widen(enum wpk_dtype dtype, const void *in, int64_t count, double *out)
{
    switch (dtype) {
    case WPK_F32:
        WIDEN(float)
        break;
    case WPK_F64:
        WIDEN(double)
        break;
    case WPK_F16:
    case WPK_BF16:
        for (int64_t i = 0; i < count; i++) {
            out[i] = decode_16(((const uint16_t *)in)[i],
                               dtype == WPK_F16 ? FRACTION_F16 : FRACTION_BF16);
        }
        break;
    case WPK_I8:
        WIDEN(int8_t)
        break;
    case WPK_U8:
        WIDEN(uint8_t)
        break;
    case WPK_I16:
        WIDEN(int16_t)
        break;
    case WPK_I32:
        WIDEN(int32_t)
        break;
    case WPK_I64:
        WIDEN(int64_t)
        break;
    case WPK_BOOL:
        for (int64_t i = 0; i < count; i++) {
            out[i] = ((const uint8_t *)in)[i] != 0 ? 1.0 : 0.0;
        }
        break;
    case WPK_DTYPE_COUNT:
        WPK_ASSERT(dtype != WPK_DTYPE_COUNT);
    }
}

#define NARROW(type, expression)                                                                   \
    for (int64_t i = 0; i < count; i++) {                                                          \
        ((type *)out)[i] = (type)(expression);                                                     \
    }

void wpk_convert_narrow(enum wpk_dtype dtype, const double *in, int64_t count, void *out)
{
    switch (dtype) {
    case WPK_F32:
        NARROW(float, in[i])
        break;
    case WPK_F64:
        NARROW(double, in[i])
        break;
    case WPK_F16:
        NARROW(uint16_t, encode_16(in[i], FRACTION_F16))
        break;
    case WPK_BF16:
        NARROW(uint16_t, encode_16(in[i], FRACTION_BF16))
        break;
    case WPK_I8:
        NARROW(int8_t, wpk_convert_saturate(dtype, in[i]))
        break;
    case WPK_U8:
        NARROW(uint8_t, wpk_convert_saturate(dtype, in[i]))
        break;
    case WPK_I16:
        NARROW(int16_t, wpk_convert_saturate(dtype, in[i]))
        break;
    case WPK_I32:
        NARROW(int32_t, wpk_convert_saturate(dtype, in[i]))
        break;
    case WPK_I64:
        NARROW(int64_t, wpk_convert_int64(nearbyint(in[i])))
        break;
    case WPK_BOOL:
        NARROW(uint8_t, in[i] != 0.0)
        break;
    case WPK_DTYPE_COUNT:
        WPK_ASSERT(dtype != WPK_DTYPE_COUNT);
    }
}

void wpk_convert_to_cells(enum wpk_dtype dtype, const void *in, int64_t count, double *out)
{
    for (int64_t i = 0; dtype == WPK_I64 && i < count; i++) {
        out[i] = wpk_cell_of(((const int64_t *)in)[i]);
    }
    if (dtype != WPK_I64) {
        wpk_convert_widen(dtype, in, count, out);
    }
}

void wpk_convert_from_cells(enum wpk_dtype dtype, const double *in, int64_t count, void *out)
{
    for (int64_t i = 0; dtype == WPK_I64 && i < count; i++) {
        ((int64_t *)out)[i] = wpk_cell_integer(in[i]);
    }
    if (dtype != WPK_I64) {
        wpk_convert_narrow(dtype, in, count, out);
    }
}
