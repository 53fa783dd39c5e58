/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of points decides Winograd's accuracy.
 *
 * In f32 the products U V are summed over the channels with a rounding error in each addition.
 * These errors are as large as the sums, whose mean squares follow from the rows of G and BT, and
 * AT adds them up: per axis the mean square of the output's error is
 *
 *     A = sum(j) |AT column j|^2 |G row j|^2 |BT row j|^2 / (m r)
 *
 * times what a direct sum of as many terms has. No scaling of rows or columns changes it, the
 * points do. The transforms' own roundings add 5 to 20 % and grow with it. For 2-D F(m x m, r x r)
 * error ÷ error of direct evaluation, which sums r * r times as many terms, is A / r.
 *
 * tests/winograd_points.c minimises it for each F(m, r) over all sets of real points that are
 * symmetric, with and without 0 and infinity. With n = m + r - 1 fixed, the best points hardly
 * depend on m: one table by n is enough. The table's points are multiples of 1, 1/2, 1/4, …: the
 * coarsest grid on which A exceeds the least one by less than 3 %. Up to n = 8 the entries of BT
 * and AT are then exact in f32, and points of 1 save multiplications. Where n is odd, leaving
 * infinity out beats an unpaired point by far: F(3,3) 0.88, with 0, ±1, 2, infinity 2.0.
 *
 *     n    mean over m of A ÷ least A   A / r of F(n - 2, 3)   with 0, ±1, ±2, ±1/2, ±4
 *     3    1.001                        0.57 (F(2,2))          1.00
 *     4    1.010                        0.56                   0.56
 *     5    1.009                        0.88                   2.0
 *     6    1.010                        1.59                   3.6
 *     7    1.002                        3.2                    5.5
 *     8    1.003                        6.9                    6.9
 *     9    1.027                        16                     67
 *     10   1.008                        38                     520
 *
 *   source  the error of a sum: Higham, Accuracy and Stability of Numerical Algorithms, 4.2;
 *           points for Winograd by search: Barabasz et al. 2020, Error analysis and improving the
 *           accuracy of Winograd convolution for deep neural networks */
#include "ir/derive/winograd.h"

#include "ir/derive/rewrite.h"

#include <stdio.h>
#include <string.h>

#define N WPK_WINOGRAD_POINTS_MAX

static const struct wpk_winograd_points table[N + 1] = {
    [2] = {1, {0}},
    [3] = {3, {0, 1.5, -1.5}},
    [4] = {3, {0, 1, -1}},
    [5] = {5, {0, 0.75, -0.75, 2.5, -2.5}},
    [6] = {5, {0, 0.625, -0.625, 1.5, -1.5}},
    [7] = {7, {0, 0.5625, -0.5625, 1.1875, -1.1875, 3.5, -3.5}},
    [8] = {7, {0, 0.5, -0.5, 1, -1, 2, -2}},
    [9] = {9, {0, 0.5, -0.5, 0.875, -0.875, 1.5, -1.5, 4.25, -4.25}},
    [10] = {9, {0, 0.4375, -0.4375, 0.8125, -0.8125, 1.25, -1.25, 2.375, -2.375}},
};

const struct wpk_winograd_points *wpk_winograd_points(int n)
{
    return n < 2 || n > N ? NULL : &table[n];
}

/* coefficient[i] of x^i in the product of (x - finite[j]) over all finite points but `skip` */
static void expand_roots(const struct wpk_winograd_points *points, int64_t skip,
                         double *coefficient)
{
    int64_t degree = 0;
    memset(coefficient, 0, WPK_WINOGRAD_POINTS_MAX * sizeof(double));
    coefficient[0] = 1;
    for (int64_t j = 0; j < points->finite_count; j++) {
        if (j == skip) {
            continue;
        }
        degree++;
        for (int64_t i = degree; i >= 0; i--) {
            coefficient[i] = (i > 0 ? coefficient[i - 1] : 0) - points->finite[j] * coefficient[i];
        }
    }
}

static double power(double base, int64_t exponent)
{
    double result = 1;
    for (int64_t i = 0; i < exponent; i++) {
        result *= base;
    }
    return result;
}

/* The same as wpk_winograd_matrices(), at points that the caller chooses. */
static void matrices_at(const struct wpk_winograd_points *points, int64_t m, int64_t r, double *at,
                        double *g, double *bt)
{
    int64_t n = m + r - 1, finite_count = points->finite_count;
    const double *finite = points->finite;
    WPK_ASSERT(n <= WPK_WINOGRAD_POINTS_MAX);
    WPK_ASSERT(finite_count == n || finite_count == n - 1);
    for (int64_t j = 0; j < n; j++) {
        bool infinity = j == finite_count;
        double scale = 1, row[WPK_WINOGRAD_POINTS_MAX];
        for (int64_t l = 0; l < finite_count && !infinity; l++) {
            scale *= l == j ? 1 : finite[j] - finite[l];
        }
        /* the sign goes to G, so that the additions of the transforms have positive heads */
        double sign = scale < 0 ? -1 : 1;
        expand_roots(points, infinity ? -1 : j, row);
        for (int64_t i = 0; i < n; i++) {
            bt[j * n + i] = sign * row[i];
        }
        for (int64_t i = 0; i < r; i++) {
            g[j * r + i] = infinity ? (double)(i == r - 1) : power(finite[j], i) / (sign * scale);
        }
        for (int64_t i = 0; i < m; i++) {
            at[i * n + j] = infinity ? (double)(i == m - 1) : power(finite[j], i);
        }
    }
}

double wpk_winograd_error(const struct wpk_winograd_points *points, int64_t m, int64_t r)
{
    double at[N * N], g[N * N], bt[N * N], sum = 0;
    int64_t n = m + r - 1;
    matrices_at(points, m, r, at, g, bt);
    for (int64_t j = 0; j < n; j++) {
        double a = 0, u = 0, v = 0;
        for (int64_t i = 0; i < m; i++) {
            a += at[i * n + j] * at[i * n + j];
        }
        for (int64_t i = 0; i < r; i++) {
            u += g[j * r + i] * g[j * r + i];
        }
        for (int64_t i = 0; i < n; i++) {
            v += bt[j * n + i] * bt[j * n + i];
        }
        sum += a * u * v;
    }
    return sum / (double)(m * r * r);
}

/* The matrices of F(m, r), by Toom-Cook: polynomials are multiplied at n points. */

#define MATRIX_MAX (WPK_WINOGRAD_POINTS_MAX * WPK_WINOGRAD_POINTS_MAX)

wpk_err wpk_winograd_matrices(int64_t m, int64_t r, double *at, double *g, double *bt)
{
    const struct wpk_winograd_points *points = NULL;
    if (m >= 1 && r >= 1 && m + r - 1 <= WPK_WINOGRAD_POINTS_MAX) {
        points = wpk_winograd_points((int)(m + r - 1));
    }
    if (points == NULL) {
        return WPK_ERANGE;
    }
    matrices_at(points, m, r, at, g, bt);
    return WPK_OK;
}

wpk_err wpk_winograd_add_matrices(struct wpk_winograd *w)
{
    double at[MATRIX_MAX], g[MATRIX_MAX], bt[MATRIX_MAX];
    for (int p = 0; p < w->pair_count; p++) {
        struct wpk_winograd_pair *pair = &w->pair[p];
        char name[WPK_NAME_MAX], stem[WPK_NAME_MAX];
        if (p == 1 && pair->r == w->pair[0].r && pair->m == w->pair[0].m) {
            pair->at = w->pair[0].at;
            pair->g = w->pair[0].g;
            pair->bt = w->pair[0].bt;
            continue;
        }
        if (wpk_winograd_matrices(pair->m, pair->r, at, g, bt) != WPK_OK) {
            return WPK_EUNSUPPORTED;
        }
        const struct {
            const char *suffix;
            enum wpk_dtype dtype;
            int64_t rows, columns;
            const double *values;
            int *out;
        } matrices[] = {{"at", w->dtype, pair->m, pair->n, at, &pair->at},
                        {"g", w->weight_dtype, pair->n, pair->r, g, &pair->g},
                        {"bt", w->dtype, pair->n, pair->n, bt, &pair->bt}};
        for (int i = 0; i < 3; i++) {
            int64_t extent[2] = {matrices[i].rows, matrices[i].columns};
            snprintf(stem, sizeof(stem), "%.40s_%s", w->stem, matrices[i].suffix);
            wpk_program_free_name(w->program, stem, name);
            *matrices[i].out = wpk_program_add_literal(w->program, name, matrices[i].dtype, 2,
                                                       extent, matrices[i].values);
            if (*matrices[i].out < 0) {
                return WPK_ENOSPC;
            }
        }
    }
    return WPK_OK;
}
