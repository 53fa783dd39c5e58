/* SPDX-License-Identifier: Apache-2.0 */
/* Search for the interpolation points of ir/derive/winograd_points.c. Run by hand:
 *
 *     build/tests/winograd_points
 *
 * For each F(m, r) the error of wpk_winograd_error is minimised over all symmetric sets of real
 * points (0 or not, infinity or not, pairs +-p) by descent from random starts: lower bounds. Then
 * one set for each n is searched whose members are multiples of 1 / denominator: the entries of BT
 * and AT are then exact in f32 up to n = 8. */
#include "common/rng.h"
#include "ir/derive/winograd.h"

#include <math.h>
#include <stdio.h>

#define STARTS 40
#define STEPS 30

/* 0 and infinity are members or not; the rest are pairs. */
struct shape {
    bool zero, infinity;
};

static int pair_count(int n, const struct shape *shape)
{
    int rest = n - shape->zero - shape->infinity;
    return rest < 0 || rest % 2 != 0 ? -1 : rest / 2;
}

static struct wpk_winograd_points make_points(const struct shape *shape, int pairs,
                                              const double *size)
{
    struct wpk_winograd_points points = {.finite_count = 0};
    if (shape->zero) {
        points.finite[points.finite_count++] = 0;
    }
    for (int i = 0; i < pairs; i++) {
        points.finite[points.finite_count++] = size[i];
        points.finite[points.finite_count++] = -size[i];
    }
    return points;
}

/* The error of one F(m, r), or, m being 0, the mean over all of n of error ÷ least[m]. */
struct goal {
    int n, m;
    const double *least; /* [n] */
};

static double judge(const struct goal *goal, const struct wpk_winograd_points *points)
{
    double sum = 0;
    if (goal->m > 0) {
        return wpk_winograd_error(points, goal->m, goal->n + 1 - goal->m);
    }
    for (int m = 2; m <= goal->n - 1; m++) {
        sum += wpk_winograd_error(points, m, goal->n + 1 - m) / goal->least[m];
    }
    return sum / (goal->n - 2);
}

/* Descent from `size`; `grid` is the denominator of its values, 0: any. */
static double descend(const struct goal *goal, const struct shape *shape, int pairs,
                      struct wpk_rng *rng, double grid, double *size)
{
    double best = INFINITY;
    for (double width = 0.5; width > 1e-5;) {
        bool better = false;
        for (int step = 0; step < STEPS; step++) {
            double trial[WPK_WINOGRAD_POINTS_MAX];
            for (int i = 0; i < pairs; i++) {
                double factor = exp(width * (2 * wpk_rng_unit(rng) - 1));
                trial[i] = size[i] * (wpk_rng_chance(rng, 0.5) ? factor : 1);
                trial[i] = grid > 0 ? fmax(1, round(trial[i] * grid)) / grid : trial[i];
            }
            struct wpk_winograd_points points = make_points(shape, pairs, trial);
            double error = judge(goal, &points);
            if (error < best) { /* false for equal points, which divide by 0 */
                best = error;
                better = true;
                for (int i = 0; i < pairs; i++) {
                    size[i] = trial[i];
                }
            }
        }
        width *= better ? 1 : 0.5;
    }
    return best;
}

static double search(const struct goal *goal, const struct shape *shape, struct wpk_rng *rng,
                     double grid, double *best_size)
{
    double best = INFINITY;
    int pairs = pair_count(goal->n, shape);
    for (int start = 0; start < STARTS && pairs >= 0; start++) {
        double size[WPK_WINOGRAD_POINTS_MAX] = {0};
        for (int i = 0; i < pairs; i++) {
            size[i] = exp(2.4 * wpk_rng_unit(rng) - 1.2);
        }
        double error = descend(goal, shape, pairs, rng, grid, size);
        if (error < best) {
            best = error;
            for (int i = 0; i < pairs; i++) {
                best_size[i] = size[i];
            }
        }
    }
    return best;
}

static void print_result(const char *title, const struct goal *goal, double error,
                         const struct shape *shape, const double *size)
{
    printf("%s %.4f at%s%s", title, error, shape->zero ? " 0" : "",
           shape->infinity ? " infinity" : "");
    for (int i = 0; i < pair_count(goal->n, shape); i++) {
        printf(" +-%.5g", size[i]);
    }
    printf("\n");
}

int main(void)
{
    static const struct shape shapes[] = {{true, true}, {true, false}, {false, false}};
    static const double grids[] = {1, 2, 4, 8, 16};
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 1);
    for (int n = 3; n <= WPK_WINOGRAD_POINTS_MAX; n++) {
        double least[WPK_WINOGRAD_POINTS_MAX], size[WPK_WINOGRAD_POINTS_MAX];
        char title[64];
        for (int m = 2; m <= n - 1; m++) {
            const struct goal goal = {.n = n, .m = m};
            least[m] = INFINITY;
            for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
                double error = search(&goal, &shapes[s], &rng, 0, size);
                if (isfinite(error)) {
                    snprintf(title, sizeof(title), "F(%d,%d)", m, n + 1 - m);
                    print_result(title, &goal, error, &shapes[s], size);
                }
                least[m] = fmin(least[m], error);
            }
            printf("F(%d,%d) of the table %.4f\n", m, n + 1 - m,
                   wpk_winograd_error(wpk_winograd_points(n), m, n + 1 - m));
        }
        const struct goal all = {.n = n, .least = least};
        for (size_t g = 0; g < sizeof(grids) / sizeof(grids[0]); g++) {
            for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
                double error = search(&all, &shapes[s], &rng, grids[g], size);
                if (isfinite(error)) {
                    snprintf(title, sizeof(title), "n = %d, 1/%g: mean ÷ least", n, grids[g]);
                    print_result(title, &all, error, &shapes[s], size);
                }
            }
        }
    }
    return 0;
}
