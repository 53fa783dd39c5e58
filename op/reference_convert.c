/* SPDX-License-Identifier: Apache-2.0 */
/* Casts inside a program: to an integer from a float rounds to nearest even and saturates, from
 * an integer wraps (as C and every instruction set do); to bool is `!= 0`; to a float keeps the
 * double, because rounding to that type is what the comparison's tolerance is for. */
#include "op/reference.h"
#include "op/reference_tape.h"

#include <math.h>

double wpk_reference_magnitude(double value)
{
    return isinf(value) ? 0.0 : fabs(value);
}

double wpk_reference_wrap(enum wpk_dtype dtype, double value)
{
    switch (dtype) {
    case WPK_I8:
        return (double)(int8_t)(uint8_t)(uint64_t)wpk_convert_int64(value);
    case WPK_U8:
        return (double)(uint8_t)(uint64_t)wpk_convert_int64(value);
    case WPK_I32:
        return (double)(int32_t)(uint32_t)(uint64_t)wpk_convert_int64(value);
    case WPK_BOOL:
        return value != 0.0 ? 1.0 : 0.0;
    default:
        return value;
    }
}

double wpk_reference_cast(enum wpk_dtype from, enum wpk_dtype to, double value)
{
    if (wpk_dtype_is_float(to)) {
        return value;
    }
    if (to == WPK_BOOL || !wpk_dtype_is_float(from)) {
        return wpk_reference_wrap(to, value);
    }
    return wpk_convert_saturate(to, value);
}

double wpk_reference_cast_magnitude(enum wpk_dtype from, enum wpk_dtype to, double value,
                                    double magnitude)
{
    if (to == WPK_BOOL) {
        return value != 0.0 ? 1.0 : 0.0;
    }
    if (wpk_dtype_is_float(from) && !wpk_dtype_is_float(to)) {
        double error = magnitude * WPK_REFERENCE_UNSURE;
        double steps =
            wpk_convert_saturate(to, value + error) - wpk_convert_saturate(to, value - error);
        return steps > 0.0 ? steps * WPK_REFERENCE_STEP : magnitude;
    }
    return magnitude;
}
