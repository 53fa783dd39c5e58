/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between element types and double. */
#ifndef WPK_SCHEMA_CONVERT_H
#define WPK_SCHEMA_CONVERT_H

#include "schema/tensor.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Convert between element types; narrowing rounds to nearest even, integers saturate, NaN becomes
 * the integer 0.
 *   shape   in, out [count], aligned for their types */
void wpk_convert_widen(enum wpk_dtype dtype, const void *in, int64_t count, double *out);
void wpk_convert_narrow(enum wpk_dtype dtype, const double *in, int64_t count, void *out);

/* A cell is the double that the interpreter computes with: of an i64 its bits, else its value. */
void wpk_convert_to_cells(enum wpk_dtype dtype, const void *in, int64_t count, double *out);
void wpk_convert_from_cells(enum wpk_dtype dtype, const double *in, int64_t count, void *out);
/* The cell of an i64, and the other way round. */
static inline double wpk_cell_of(int64_t value)
{
    double cell;
    memcpy(&cell, &value, sizeof(cell));
    return cell;
}
static inline int64_t wpk_cell_integer(double cell)
{
    int64_t value;
    memcpy(&value, &cell, sizeof(value));
    return value;
}
/* The double nearest to what the cell holds. */
static inline double wpk_cell_number(enum wpk_dtype dtype, double cell)
{
    return dtype == WPK_I64 ? (double)wpk_cell_integer(cell) : cell;
}

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
