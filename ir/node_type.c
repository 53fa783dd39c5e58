/* SPDX-License-Identifier: Apache-2.0 */
/* Element types as the IR computes with them. */
#include "ir/node.h"

#include <math.h>

enum wpk_dtype wpk_dtype_wide(enum wpk_dtype dtype)
{
    switch (dtype) {
    case WPK_F16:
    case WPK_BF16:
        return WPK_F32;
    case WPK_I8:
    case WPK_U8:
    case WPK_I16:
    case WPK_BOOL:
        return WPK_I32;
    default:
        return dtype;
    }
}

void wpk_dtype_integer_range(enum wpk_dtype dtype, int64_t *low, int64_t *high)
{
    WPK_ASSERT(!wpk_dtype_is_float(dtype));
    switch (dtype) {
    case WPK_I8:
        *low = INT8_MIN;
        *high = INT8_MAX;
        break;
    case WPK_U8:
        *low = 0;
        *high = UINT8_MAX;
        break;
    case WPK_I16:
        *low = INT16_MIN;
        *high = INT16_MAX;
        break;
    case WPK_I32:
        *low = INT32_MIN;
        *high = INT32_MAX;
        break;
    case WPK_BOOL:
        *low = 0;
        *high = 1;
        break;
    default:
        *low = INT64_MIN;
        *high = INT64_MAX;
        break;
    }
}

/* Round to `bits` significant bits where the smallest normal exponent is `emin` (as frexp counts,
 * so that 1.0 has exponent 1) and values from 2^emax on are infinite. */
static double round_bits(double value, int bits, int emin, int emax)
{
    if (value == 0 || !isfinite(value)) {
        return value;
    }
    int exponent;
    (void)frexp(value, &exponent);
    int unit = (exponent < emin ? emin : exponent) - bits; /* of the last place, as a power of 2 */
    double rounded = ldexp(rint(ldexp(value, -unit)), unit);
    return fabs(rounded) >= ldexp(1, emax) ? copysign(INFINITY, value) : rounded;
}

double wpk_dtype_round(enum wpk_dtype dtype, double value)
{
    switch (dtype) {
    case WPK_F64:
        return value;
    case WPK_F32:
        return (double)(float)value;
    case WPK_F16:
        return round_bits(value, 11, -13, 16);
    case WPK_BF16:
        return round_bits(value, 8, -125, 128);
    default:
        break;
    }
    if (dtype == WPK_BOOL) {
        return value != 0;
    }
    int64_t low, high;
    wpk_dtype_integer_range(dtype, &low, &high);
    double rounded = rint(value);
    return rounded < (double)low ? (double)low : rounded > (double)high ? (double)high : rounded;
}
