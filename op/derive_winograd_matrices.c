/* SPDX-License-Identifier: Apache-2.0 */
/* The matrices of F(m, r), by Toom-Cook: polynomials are multiplied at n points, one of which is
 * infinity. */
#include "op/derive_winograd.h"

#include "op/rewrite.h"

#include <stdio.h>
#include <string.h>

#define MATRIX_MAX (WPK_WINOGRAD_POINTS_MAX * WPK_WINOGRAD_POINTS_MAX)

/* The finite points in the order of use; infinity is always the last one. Small magnitudes first:
 * the error grows with the spread of the points. */
static const double points[WPK_WINOGRAD_POINTS_MAX - 1] = {0, 1, -1, 2, -2, 0.5, -0.5, 4, -4};

/* coefficient[i] of x^i in the product of (x - points[j]) over j < count, j != skip */
static void expand_roots(int64_t count, int64_t skip, double *coefficient)
{
    int64_t degree = 0;
    memset(coefficient, 0, WPK_WINOGRAD_POINTS_MAX * sizeof(double));
    coefficient[0] = 1;
    for (int64_t j = 0; j < count; j++) {
        if (j == skip) {
            continue;
        }
        degree++;
        for (int64_t i = degree; i >= 0; i--) {
            coefficient[i] = (i > 0 ? coefficient[i - 1] : 0) - points[j] * coefficient[i];
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

wpk_err wpk_winograd_matrices(int64_t m, int64_t r, double *at, double *g, double *bt)
{
    int64_t n = m + r - 1;
    if (m < 1 || r < 1 || n < 2 || n > WPK_WINOGRAD_POINTS_MAX) {
        return WPK_ERANGE;
    }
    for (int64_t j = 0; j < n; j++) {
        bool infinity = j == n - 1;
        double scale = 1, row[WPK_WINOGRAD_POINTS_MAX];
        for (int64_t l = 0; l < n - 1 && !infinity; l++) {
            scale *= l == j ? 1 : points[j] - points[l];
        }
        /* the sign goes to G, so that the additions of the transforms have positive heads */
        double sign = scale < 0 ? -1 : 1;
        expand_roots(n - 1, infinity ? -1 : j, row);
        for (int64_t i = 0; i < n; i++) {
            bt[j * n + i] = sign * row[i];
        }
        for (int64_t i = 0; i < r; i++) {
            g[j * r + i] = infinity ? (double)(i == r - 1) : power(points[j], i) / (sign * scale);
        }
        for (int64_t i = 0; i < m; i++) {
            at[i * n + j] = infinity ? (double)(i == m - 1) : power(points[j], i);
        }
    }
    return WPK_OK;
}

wpk_err wpk_winograd_add_matrices(struct wpk_winograd *w)
{
    double at[MATRIX_MAX], g[MATRIX_MAX], bt[MATRIX_MAX];
    enum wpk_dtype dtype = w->program->tensors[w->data.tensor].dtype;
    for (int p = 0; p < w->pair_count; p++) {
        struct wpk_winograd_pair *pair = &w->pair[p];
        char name[WPK_NAME_MAX], stem[WPK_NAME_MAX];
        if (p == 1 && pair->r == w->pair[0].r) {
            pair->at = w->pair[0].at;
            pair->g = w->pair[0].g;
            pair->bt = w->pair[0].bt;
            continue;
        }
        bool inexact =
            dtype == WPK_F32 && w->pair_count > 1 && pair->n > WPK_WINOGRAD_F32_POINTS_MAX;
        if (inexact || wpk_winograd_matrices(pair->m, pair->r, at, g, bt) != WPK_OK) {
            return WPK_EUNSUPPORTED;
        }
        const struct {
            const char *suffix;
            int64_t rows, columns;
            const double *values;
            int *out;
        } matrices[] = {{"at", pair->m, pair->n, at, &pair->at},
                        {"g", pair->n, pair->r, g, &pair->g},
                        {"bt", pair->n, pair->n, bt, &pair->bt}};
        for (int i = 0; i < 3; i++) {
            int64_t extent[2] = {matrices[i].rows, matrices[i].columns};
            snprintf(stem, sizeof(stem), "%.40s_%s", w->stem, matrices[i].suffix);
            wpk_program_free_name(w->program, stem, name);
            *matrices[i].out =
                wpk_program_add_literal(w->program, name, dtype, 2, extent, matrices[i].values);
            if (*matrices[i].out < 0) {
                return WPK_ENOSPC;
            }
        }
    }
    return WPK_OK;
}
