/* SPDX-License-Identifier: Apache-2.0 */
/* The matrices of F(m, r), by Toom-Cook: polynomials are multiplied at n points. */
#include "ir/derive/winograd.h"

#include "ir/derive/rewrite.h"
#include "ir/derive/winograd_points.h"

#include <stdio.h>
#include <string.h>

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
    wpk_winograd_matrices_at(points, m, r, at, g, bt);
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
