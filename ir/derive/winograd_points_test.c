/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of 2-D F(m, r) and of direct evaluation, both in f32, each operation rounded, measured
 * against f64. The limit of an accuracy class has to hold for every set of inputs: data without a
 * mean, and data as it comes out of a ReLU, where direct evaluation adds zeros without error. */
#include "ir/derive/winograd.h"

#include "common/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define N WPK_WINOGRAD_POINTS_MAX
#define R 3
#define SEED 20261122
#define VALUES_MIN 2048 /* compared in each measurement: 3 sigma of the ratio are below 7 % */

struct matrices {
    int m, n;
    double at[N * N], g[N * N], bt[N * N];
};

static double draw_normal(struct wpk_rng *rng)
{
    double sum = -6; /* of 12 uniform values: variance 1 */
    for (int i = 0; i < 12; i++) {
        sum += wpk_rng_unit(rng);
    }
    return sum;
}

/* y [rows, columns] = a [rows, inner] x [inner, columns], with a as f32. */
static void multiply(int rows, int inner, int columns, const double *a, const float *x, float *y)
{
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            float sum = 0;
            for (int k = 0; k < inner; k++) {
                float product = (float)a[i * inner + k] * x[k * columns + j];
                sum += product;
            }
            y[i * columns + j] = sum;
        }
    }
}

static void transpose(int rows, int columns, float *x)
{
    float copy[N * N];
    memcpy(copy, x, sizeof(copy));
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            x[j * rows + i] = copy[i * columns + j];
        }
    }
}

/* x [rows, columns] becomes (a x b'), transposed: [rows of b, rows of a]. */
static void transform(const double *a, int a_rows, const double *b, int b_rows, int rows,
                      int columns, float *x)
{
    float half[N * N] = {0};
    multiply(a_rows, rows, columns, a, x, half);
    transpose(a_rows, columns, half);
    multiply(b_rows, columns, a_rows, b, half, x);
}

/* U = G w G', transposed, rounded once: filters are transformed beforehand, in f64. */
static void transform_weight(const struct matrices axis[2], const float *weight, float *u)
{
    const struct matrices *y = &axis[0], *x = &axis[1];
    for (int i = 0; i < x->n; i++) {
        for (int j = 0; j < y->n; j++) {
            double sum = 0;
            for (int k = 0; k < R * R; k++) {
                sum += y->g[j * R + k / R] * x->g[i * R + k % R] * (double)weight[k];
            }
            u[i * y->n + j] = (float)sum;
        }
    }
}

struct sums {
    double direct, winograd; /* squares of errors */
};

struct kind {
    int channels;
    int block; /* of channels, summed by itself */
    bool relu;
};

/* One tile of outputs over all channels. */
static void add_tile(const struct matrices axis[2], const struct kind *kind, struct wpk_rng *rng,
                     struct sums *sums)
{
    const struct matrices *y = &axis[0], *x = &axis[1];
    float direct[N * N] = {0}, products[N * N] = {0}, part[N * N] = {0};
    double exact[N * N] = {0};
    for (int c = 0; c < kind->channels; c++) {
        float data[N * N] = {0}, weight[R * R], u[N * N];
        for (int i = 0; i < R * R; i++) {
            weight[i] = (float)(2 * wpk_rng_unit(rng) - 1);
        }
        for (int i = 0; i < y->n * x->n; i++) {
            data[i] = (float)(kind->relu ? fmax(0, draw_normal(rng)) : 2 * wpk_rng_unit(rng) - 1);
        }
        for (int i = 0; i < y->m * x->m; i++) {
            for (int k = 0; k < R * R; k++) {
                float d = data[(i / x->m + k / R) * x->n + i % x->m + k % R];
                float product = d * weight[k];
                direct[i] += product;
                exact[i] += (double)d * weight[k];
            }
        }
        transform(y->bt, y->n, x->bt, x->n, y->n, x->n, data);
        transform_weight(axis, weight, u);
        for (int i = 0; i < y->n * x->n; i++) {
            float product = data[i] * u[i];
            part[i] += product;
            if ((c + 1) % kind->block == 0) {
                products[i] += part[i];
                part[i] = 0;
            }
        }
    }
    transpose(x->n, y->n, products);
    transform(y->at, y->m, x->at, x->m, y->n, x->n, products);
    transpose(x->m, y->m, products);
    for (int i = 0; i < y->m * x->m; i++) {
        sums->direct += pow(direct[i] - exact[i], 2);
        sums->winograd += pow(products[i] - exact[i], 2);
    }
}

/* Error of F(m[0] x m[1], 3 x 3) ÷ error of direct evaluation. */
static double measure(const int m[2], const struct kind *kind)
{
    struct matrices axis[2];
    struct wpk_rng rng;
    struct sums sums = {0};
    wpk_rng_seed(&rng, SEED);
    for (int a = 0; a < 2; a++) {
        axis[a].m = m[a];
        axis[a].n = m[a] + R - 1;
        assert_int_equal(wpk_winograd_matrices(m[a], R, axis[a].at, axis[a].g, axis[a].bt), WPK_OK);
    }
    for (int values = 0; values < VALUES_MIN; values += m[0] * m[1]) {
        add_tile(axis, kind, &rng, &sums);
    }
    return sqrt(sums.winograd / sums.direct);
}

static void test_errors_stay_in_their_class(void **state)
{
    (void)state;
    static const struct {
        int m[2];
        double most, most_blocked; /* of one sum, and of blocks of 8 and 16 channels */
    } cases[] = {
        {{2, 2}, 0.9 * 1.25, 0.7}, /* strict */
        {{3, 3}, 1.4, 1.0},        /* standard; in blocks strict */
        {{4, 2}, 1.4, 1.0},
        {{4, 4}, 2.4, 1.5},
        {{6, 4}, 5, 3.6},
        {{5, 5}, 5, 3.6},             /* fast; in blocks standard */
        {{6, 6}, 0.9 * 16 * 0.75, 7}, /* fast */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int relu = 0; relu < 2; relu++) {
            double error[2][2];
            for (int blocked = 0; blocked < 2; blocked++) {
                for (int many = 0; many < 2; many++) {
                    int channels = many ? 256 : 64;
                    const struct kind kind = {
                        channels, blocked ? channels / (many ? 16 : 8) : channels, relu != 0};
                    error[blocked][many] = measure(cases[i].m, &kind);
                    assert_true(error[blocked][many] <=
                                (blocked ? cases[i].most_blocked : cases[i].most));
                }
            }
            print_message("F(%d,%d) %s: %.2f at 64 channels, %.2f at 256; in blocks %.2f, %.2f\n",
                          cases[i].m[0], cases[i].m[1], relu ? "ReLU" : "uniform", error[0][0],
                          error[0][1], error[1][0], error[1][1]);
        }
    }
}

/* The error model orders sets of points as measurements do, and the table is its optimum: no pair
 * of points can be moved to where the error is 3 % less. */
static void test_points_are_a_minimum(void **state)
{
    (void)state;
    for (int n = 3; n <= N; n++) {
        const struct wpk_winograd_points *points = wpk_winograd_points(n);
        for (int m = 2; m < n; m++) {
            double error = wpk_winograd_error(points, m, n + 1 - m);
            for (int j = 0; j < points->finite_count; j++) {
                for (double factor = 0.7; factor < 1.4; factor += 0.02) {
                    struct wpk_winograd_points moved = *points;
                    int other = points->finite[j] > 0 ? j + 1 : j; /* pairs: p, -p */
                    moved.finite[j] *= factor;
                    moved.finite[other] *= other == j ? 1 : factor;
                    double there = wpk_winograd_error(&moved, m, n + 1 - m);
                    assert_true(isnan(there) || there > 0.97 * error);
                }
            }
        }
    }
}

static void test_entries_are_exact(void **state)
{
    (void)state;
    for (int64_t n = 2; n <= 8; n++) {
        double at[N * N], g[N * N], bt[N * N];
        assert_int_equal(wpk_winograd_matrices(2, n - 1, at, g, bt), WPK_OK);
        for (int64_t i = 0; i < n * n; i++) {
            assert_true((double)(float)bt[i] == bt[i]);
        }
    }
    assert_null(wpk_winograd_points(1));
    assert_null(wpk_winograd_points(N + 1));
}

/* The largest sum of a row's absolute values. */
static double norm(const double *a, int64_t rows, int64_t columns)
{
    double most = 0;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < columns; j++) {
            sum += fabs(a[i * columns + j]);
        }
        most = fmax(most, sum);
    }
    return most;
}

/* By how much what F(m x m, r x r) computes in between may be larger than inputs, filters and the
 * number of channels multiplied: docs/accuracy.md says up to which magnitudes it stays finite. */
static void test_gain(void **state)
{
    (void)state;
    double most = 0;
    for (int64_t n = 3; n <= N; n++) {
        for (int64_t m = 2; m < n; m++) {
            double at[N * N], g[N * N], bt[N * N];
            int64_t r = n - m + 1;
            if (wpk_winograd_matrices(m, r, at, g, bt) != WPK_OK) {
                continue;
            }
            double gain = norm(at, m, n) * norm(bt, n, n) * norm(g, n, r);
            most = fmax(most, gain * gain);
        }
    }
    assert_true(most < 0x1p41 && most > 0x1p40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_stay_in_their_class),
        cmocka_unit_test(test_points_are_a_minimum),
        cmocka_unit_test(test_entries_are_exact),
        cmocka_unit_test(test_gain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
