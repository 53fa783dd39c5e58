/* SPDX-License-Identifier: Apache-2.0 */
/* Casts inside a program: to an integer from a float rounds to nearest even and saturates, from
 * an integer wraps (as C and every instruction set do); to bool is `!= 0`; to a float keeps the
 * double, because rounding to that type is what the comparison's tolerance is for. */
#include "ir/reference/reference.h"
#include "ir/reference/tape.h"

#include <math.h>

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
