/* SPDX-License-Identifier: Apache-2.0 */
/* The points at which F(m, r) multiplies polynomials, and the matrices that follow from points. */
#ifndef WPK_IR_DERIVE_WINOGRAD_POINTS_H
#define WPK_IR_DERIVE_WINOGRAD_POINTS_H

#include "ir/derive/derive.h"

/* n = m + r - 1 distinct points: the finite ones, then infinity where finite_count = n - 1. */
struct wpk_winograd_points {
    int finite_count;
    double finite[WPK_WINOGRAD_POINTS_MAX]; /* [finite_count] */
};

/* The table's points for n = m + r - 1; NULL unless 2 <= n <= WPK_WINOGRAD_POINTS_MAX. */
const struct wpk_winograd_points *wpk_winograd_points(int n);

/* The same as wpk_winograd_matrices, at points that the caller chooses. */
void wpk_winograd_matrices_at(const struct wpk_winograd_points *points, int64_t m, int64_t r,
                              double *at, double *g, double *bt);

/* Error of F(m x m, r x r) in f32 ÷ error of direct evaluation, in the limit of many channels and
 * for data without correlations; see winograd_points.c. An axis contributes the square root. */
double wpk_winograd_error(const struct wpk_winograd_points *points, int64_t m, int64_t r);

#endif
