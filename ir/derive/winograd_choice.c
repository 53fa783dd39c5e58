/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of m x m' outputs need fewer multiplications the larger they are, until they reach past the
 * end of the image or their transforms outweigh what they save; errors grow with them. */
#include "ir/derive/winograd.h"

#include <math.h>
#include <stdlib.h>

#define M_MAX 6
#define GAIN 0.96 /* less than that is not worth a variant's share of the trials */

/* Of the error in the limit of many channels and of data without correlations (A / r): what the
 * sums have on the worst of the sets that kernels are verified on, data as it comes out of a ReLU;
 * and what the transforms' roundings add at TERMS_FITTED terms. The latter grow with the root of
 * the number of terms, direct evaluation's error with the number. Fitted to the kernels of
 * search/prune_test.c. */
#define SUMS_SHARE 1.22
#define REST_SHARE 0.455
#define TERMS_FITTED 128

/* Half of the entries of BT and AT are zeros, or the same for both signs of a point. */
#define TRANSFORM_SHARE 0.5

/* Extents of the axes that no pair has, multiplied. */
struct extents {
    double data;   /* those that the data has */
    double output; /* those of the output */
    double all;    /* and of the reduction */
};

static struct extents measure(const struct wpk_winograd *w)
{
    struct extents e = {1, 1, 1};
    for (int a = 0; a < w->old.axis_count; a++) {
        double extent = (double)w->old.axes[a].extent;
        if (wpk_winograd_pair_of_output(w, a) >= 0 || wpk_winograd_pair_of_reduction(w, a) >= 0) {
            continue;
        }
        e.all *= extent;
        e.data *= w->in_data[a] ? extent : 1;
        e.output *= a < w->old.rank ? extent : 1;
    }
    return e;
}

/* Multiply-adds of the products and of the transforms of data and products ÷ direct's. */
static double count_operations(const struct wpk_winograd *w, const struct extents *e)
{
    double tiles = 1, points = 1, direct = e->all, into = 0, from = 0;
    for (int p = 0; p < w->pair_count; p++) {
        const struct wpk_winograd_pair *pair = &w->pair[p];
        tiles *= (double)pair->tiles;
        points *= (double)pair->n;
        into += (double)pair->n;
        direct *= (double)(w->old.axes[pair->output_axis].extent * pair->r);
    }
    double shrunk = points; /* points of a tile that are left, then its outputs */
    for (int p = 0; p < w->pair_count; p++) {
        shrunk *= (double)w->pair[p].m / (double)w->pair[p].n;
        from += shrunk * (double)w->pair[p].n;
    }
    double transforms = points * into * e->data + from * e->output;
    return tiles * (points * e->all + TRANSFORM_SHARE * transforms) / direct;
}

static double expect_error(const struct wpk_winograd *w)
{
    double square = 1;
    for (int p = 0; p < w->pair_count; p++) {
        const struct wpk_winograd_pair *pair = &w->pair[p];
        square *= wpk_winograd_error(wpk_winograd_points((int)pair->n), pair->m, pair->r);
    }
    return sqrt(square);
}

static int compare(const void *a, const void *b)
{
    const struct wpk_winograd_choice *x = a, *y = b;
    double difference = x->error != y->error ? x->error - y->error : x->operations - y->operations;
    return difference < 0 ? -1 : difference > 0;
}

int wpk_winograd_choices(struct wpk_program *program, int stage, struct wpk_winograd_choice *out)
{
    struct wpk_winograd_choice all[M_MAX * M_MAX];
    double least = 1;
    int count = 0, kept = 0;
    for (int64_t i = 0; i < M_MAX * M_MAX; i++) {
        struct wpk_winograd w = {.program = program, .stage = stage};
        struct wpk_winograd_choice choice = {.m = {1 + i / M_MAX, 1 + i % M_MAX}};
        if (choice.m[0] < 2 || choice.m[1] < 2 || !wpk_winograd_recognise(&w, choice.m)) {
            continue;
        }
        int64_t n = 0;
        for (int p = 0; p < w.pair_count; p++) {
            n = w.pair[p].n > n ? w.pair[p].n : n;
        }
        if (n <= WPK_WINOGRAD_POINTS_MAX) {
            struct extents e = measure(&w);
            choice.operations = count_operations(&w, &e);
            choice.error = SUMS_SHARE * expect_error(&w);
            choice.terms = e.all / e.output;
            choice.error_rest = REST_SHARE * expect_error(&w) * sqrt(TERMS_FITTED / choice.terms);
            all[count++] = choice;
        }
    }
    qsort(all, (size_t)count, sizeof(all[0]), compare);
    for (int i = 0; i < count && kept < WPK_WINOGRAD_CHOICES_MAX; i++) {
        if (all[i].operations < GAIN * least) {
            least = all[i].operations;
            out[kept++] = all[i];
        }
    }
    return kept;
}
