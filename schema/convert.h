/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between element types and double. */
#ifndef WPK_SCHEMA_CONVERT_H
#define WPK_SCHEMA_CONVERT_H

#include "schema/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Convert between element types; narrowing rounds to nearest even, integers saturate, NaN becomes
 * the integer 0.
 *   shape   in, out [count], aligned for their types */
void wpk_convert_widen(enum wpk_dtype dtype, const void *in, int64_t count, double *out);
void wpk_convert_narrow(enum wpk_dtype dtype, const double *in, int64_t count, void *out);

/* Round to nearest even, and limit to the bounds of an integer type; NaN becomes 0. */
double wpk_convert_saturate(enum wpk_dtype dtype, double value);
/* The least and the largest value of an integer type; 2^63 for i64, as a double. */
void wpk_convert_bounds(enum wpk_dtype dtype, double *low, double *high);
/* Truncate, and saturate beyond i64, where C's own conversion is undefined. */
int64_t wpk_convert_int64(double value);

#ifdef __cplusplus
}
#endif

#endif
