/* SPDX-License-Identifier: Apache-2.0 */
/* Images that are read between their elements, against loops. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N = 2, C = 2, H = 3, W = 4, P = 3, Q = 2, MAX = 128 };

struct rule {
    const char *mode, *padding;
    bool aligned;
};

/* Mirror x in [low, high], again and again. */
static double reflect(double x, double low, double high)
{
    if (high <= low) {
        return low;
    }
    while (x < low || x > high) {
        x = x < low ? 2 * low - x : 2 * high - x;
    }
    return x;
}

/* The place in elements of a coordinate in [-1, 1]. */
static double place(const struct rule *rule, double x, int size)
{
    return rule->aligned ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
}

/* The element at whole places, which may lie outside. */
static double pixel(const struct rule *rule, const double *plane, double y, double x)
{
    double low = rule->aligned ? 0 : -0.5;
    if (strcmp(rule->padding, "zeros") == 0) {
        return y < 0 || y >= H || x < 0 || x >= W ? 0 : plane[(int)y * W + (int)x];
    }
    if (strcmp(rule->padding, "reflection") == 0) {
        y = reflect(y, low, H - 1 - low);
        x = reflect(x, low, W - 1 - low);
    }
    y = fmin(fmax(y, 0), H - 1);
    x = fmin(fmax(x, 0), W - 1);
    return plane[(int)y * W + (int)x];
}

static void cubic_weights(double t, double *out)
{
    const double a = -0.75;
    for (int k = 0; k < 4; k++) {
        double d = fabs(t - (k - 1));
        out[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1
                        : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
}

static double sample(const struct rule *rule, const double *plane, double gx, double gy)
{
    double x = place(rule, gx, W), y = place(rule, gy, H), low = rule->aligned ? 0 : -0.5;
    if (strcmp(rule->padding, "border") == 0) { /* beyond the image, as onnx.reference does */
        x = x < low || x > W - 1 - low ? fmin(fmax(x, 0), W - 1) : x;
        y = y < low || y > H - 1 - low ? fmin(fmax(y, 0), H - 1) : y;
    } else if (strcmp(rule->padding, "reflection") == 0) {
        x = reflect(x, low, W - 1 - low);
        y = reflect(y, low, H - 1 - low);
    }
    if (strcmp(rule->mode, "nearest") == 0) {
        return pixel(rule, plane, nearbyint(y), nearbyint(x));
    }
    double left = floor(x), top = floor(y), wx[4], wy[4], sum = 0;
    if (strcmp(rule->mode, "linear") == 0) {
        for (int k = 0; k < 4; k++) {
            wx[k] = k == 1 ? 1 - (x - left) : k == 2 ? x - left : 0;
            wy[k] = k == 1 ? 1 - (y - top) : k == 2 ? y - top : 0;
        }
    } else {
        cubic_weights(x - left, wx);
        cubic_weights(y - top, wy);
    }
    for (int k = 0; k < 16; k++) {
        if (wy[k / 4] * wx[k % 4] != 0) {
            sum += wy[k / 4] * wx[k % 4] * pixel(rule, plane, top + k / 4 - 1, left + k % 4 - 1);
        }
    }
    return sum;
}

static void a_grid_says_where_an_image_is_read(void **state)
{
    (void)state;
    static const char *const modes[] = {"linear", "nearest", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    double image[N * C * H * W], grid[N * P * Q * 2], found[MAX], expected[MAX];
    wpk_model_case_draw(1, image, (int64_t)N * C * H * W);
    wpk_model_case_draw(2, grid, (int64_t)N * P * Q * 2); /* in [-2, 2]: also outside */
    for (int i = 0; i < 18; i++) {
        const struct rule rule = {modes[i % 3], paddings[i / 3 % 3], i / 9 != 0};
        char attributes[96];
        for (int o = 0; o < N * C * P * Q; o++) {
            int n = o / (C * P * Q);
            const double *at = grid + (ptrdiff_t)(n * P * Q + o % (P * Q)) * 2;
            expected[o] = sample(&rule, image + (ptrdiff_t)(o / (P * Q)) * H * W, at[0], at[1]);
        }
        snprintf(attributes, sizeof(attributes), "mode:s=%s padding_mode:s=%s align_corners:i=%d",
                 rule.mode, rule.padding, rule.aligned);
        const struct wpk_model_input inputs[] = {{.type = "f64[2,2,3,4]", .data = image},
                                                 {.type = "f64[2,3,2,2]", .data = grid}};
        int64_t count =
            wpk_model_case_compute("GridSample", 20, attributes, inputs, 2, 0, found, MAX);
        assert_int_equal(count, N * C * P * Q);
        wpk_model_case_compare(attributes, found, expected, count);
    }
}

/* The mean, or the largest part, of 2 x 2 samples of each of 2 x 3 bins of a region. */
static double bin(const double *plane, const double *roi, int row, int column, bool is_half,
                  bool is_max)
{
    double shift = is_half ? 0.5 : 0, scale = 0.5;
    double x1 = roi[0] * scale - shift, y1 = roi[1] * scale - shift;
    double w = roi[2] * scale - shift - x1, h = roi[3] * scale - shift - y1;
    double sum = 0, most = -INFINITY;
    w = is_half ? w : fmax(w, 1);
    h = is_half ? h : fmax(h, 1);
    for (int s = 0; s < 4; s++) {
        double y = y1 + h / 2 * (row + (s / 2 + 0.5) / 2);
        double x = x1 + w / 3 * (column + (s % 2 + 0.5) / 2);
        double parts[4] = {0};
        if (y >= -1 && y <= H && x >= -1 && x <= W) {
            y = fmax(y, 0);
            x = fmax(x, 0);
            int top = y >= H - 1 ? H - 1 : (int)y, left = x >= W - 1 ? W - 1 : (int)x;
            int below = top == H - 1 ? top : top + 1, right = left == W - 1 ? left : left + 1;
            double dy = top == H - 1 ? 0 : y - top, dx = left == W - 1 ? 0 : x - left;
            parts[0] = (1 - dy) * (1 - dx) * plane[top * W + left];
            parts[1] = (1 - dy) * dx * plane[top * W + right];
            parts[2] = dy * (1 - dx) * plane[below * W + left];
            parts[3] = dy * dx * plane[below * W + right];
        }
        double value = parts[0] + parts[1] + parts[2] + parts[3];
        double largest = fmax(fmax(parts[0], parts[1]), fmax(parts[2], parts[3]));
        sum += value / 4;
        most = fmax(most, largest);
    }
    return is_max ? most : sum;
}

static void regions_are_read_bin_by_bin(void **state)
{
    (void)state;
    enum { R = 3 };
    static const double rois[R][4] = {{0, 0, 6, 4}, {1, 2, 7, 5}, {-3, -3, 12, 9}};
    static const int batch[R] = {0, 1, 1};
    double image[N * C * H * W], found[MAX], expected[MAX];
    wpk_model_case_draw(3, image, (int64_t)N * C * H * W);
    for (int i = 0; i < 4; i++) {
        bool is_half = i % 2 == 0, is_max = i / 2 != 0;
        char attributes[160];
        for (int o = 0; o < R * C * 6; o++) {
            int r = o / (C * 6), c = o / 6 % C;
            expected[o] = bin(image + (ptrdiff_t)(batch[r] * C + c) * H * W, rois[r], o / 3 % 2,
                              o % 3, is_half, is_max);
        }
        snprintf(attributes, sizeof(attributes),
                 "output_height:i=2 output_width:i=3 sampling_ratio:i=2 spatial_scale:f=0.5 "
                 "mode:s=%s coordinate_transformation_mode:s=%s",
                 is_max ? "max" : "avg", is_half ? "half_pixel" : "output_half_pixel");
        const struct wpk_model_input inputs[] = {{.type = "f64[2,2,3,4]", .data = image},
                                                 {.type = "f64[3,4]", .data = rois[0]},
                                                 {.type = "i64[3]", .values = "0,1,1"}};
        int64_t count =
            wpk_model_case_compute("RoiAlign", 16, attributes, inputs, 3, 0, found, MAX);
        assert_int_equal(count, R * C * 6);
        wpk_model_case_compare(attributes, found, expected, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grid_says_where_an_image_is_read),
        cmocka_unit_test(regions_are_read_bin_by_bin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
