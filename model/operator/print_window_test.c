/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and pools of two axes against loops. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX 4096

/* Of both spatial axes. */
struct window {
    int input[2], kernel[2], stride[2], dilation[2], before[2], after[2];
};

static int output_of(const struct window *w, int a)
{
    int span = w->dilation[a] * (w->kernel[a] - 1) + 1;
    return (w->input[a] + w->before[a] + w->after[a] - span) / w->stride[a] + 1;
}

static const struct window windows[] = {
    {{5, 6}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {{5, 6}, {3, 2}, {2, 1}, {1, 2}, {1, 0}, {1, 1}},
    {{7, 7}, {3, 3}, {2, 3}, {2, 1}, {2, 1}, {0, 2}},
    {{4, 4}, {4, 4}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {{6, 5}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
};
enum { WINDOWS = sizeof(windows) / sizeof(windows[0]) };

static void print(const struct window *w, const char *more, char *out, size_t size)
{
    snprintf(out, size,
             "kernel_shape:I=%d,%d strides:I=%d,%d dilations:I=%d,%d pads:I=%d,%d,%d,%d%s",
             w->kernel[0], w->kernel[1], w->stride[0], w->stride[1], w->dilation[0], w->dilation[1],
             w->before[0], w->before[1], w->after[0], w->after[1], more);
}

/* The index in the input of tap r of output y; -1: in the padding. */
static int tap(const struct window *w, int a, int y, int r)
{
    int at = y * w->stride[a] + r * w->dilation[a] - w->before[a];
    return at < 0 || at >= w->input[a] ? -1 : at;
}

enum { N = 2, C = 4, F = 6 };

static void convolutions_are_sums_over_windows(void **state)
{
    (void)state;
    static double x[MAX], weights[MAX], bias[F], found[MAX], expected[MAX];
    for (int i = 0; i < 2 * WINDOWS; i++) {
        const struct window *w = &windows[i / 2];
        int groups = i % 2 + 1, each = C / groups;
        int rows = output_of(w, 0), columns = output_of(w, 1);
        char attributes[256], types[2][48];
        wpk_model_case_draw(1, x, MAX);
        wpk_model_case_draw(2, weights, MAX);
        wpk_model_case_draw(3, bias, F);
        for (int o = 0; o < N * F * rows * columns; o++) {
            int column = o % columns, row = o / columns % rows, f = o / (columns * rows) % F;
            int n = o / (columns * rows * F);
            expected[o] = bias[f];
            for (int t = 0; t < each * w->kernel[0] * w->kernel[1]; t++) {
                int s = t % w->kernel[1], r = t / w->kernel[1] % w->kernel[0];
                int c = t / (w->kernel[1] * w->kernel[0]);
                int y = tap(w, 0, row, r), z = tap(w, 1, column, s);
                int channel = f / (F / groups) * each + c;
                if (y >= 0 && z >= 0) {
                    expected[o] += x[((n * C + channel) * w->input[0] + y) * w->input[1] + z] *
                                   weights[((f * each + c) * w->kernel[0] + r) * w->kernel[1] + s];
                }
            }
        }
        print(w, groups == 1 ? "" : " group:i=2", attributes, sizeof(attributes));
        snprintf(types[0], sizeof(types[0]), "f64[%d,%d,%d,%d]", N, C, w->input[0], w->input[1]);
        snprintf(types[1], sizeof(types[1]), "f64[%d,%d,%d,%d]", F, each, w->kernel[0],
                 w->kernel[1]);
        const struct wpk_model_input inputs[] = {{.type = types[0], .data = x},
                                                 {.type = types[1], .data = weights},
                                                 {.type = "f64[6]", .data = bias}};
        int64_t count = wpk_model_case_compute("Conv", 13, attributes, inputs, 3, 0, found, MAX);
        assert_int_equal(count, (int64_t)N * F * rows * columns);
        wpk_model_case_compare(attributes, found, expected, count);
    }
}

/* Each element of the input is added, times the weights, where a convolution would have read it. */
static void transposed_convolutions_write_what_others_read(void **state)
{
    (void)state;
    static double x[MAX], weights[MAX], found[MAX], expected[MAX];
    for (int i = 0; i < 2 * WINDOWS; i++) {
        const struct window *w = &windows[i / 2];
        int groups = i % 2 + 1, filters = F / groups;
        int extent[2];
        char attributes[256], types[2][48];
        for (int a = 0; a < 2; a++) { /* of the output */
            extent[a] = (w->input[a] - 1) * w->stride[a] + w->dilation[a] * (w->kernel[a] - 1) + 1 -
                        w->before[a] - w->after[a];
        }
        wpk_model_case_draw(1, x, MAX);
        wpk_model_case_draw(2, weights, MAX);
        memset(expected, 0, sizeof(expected));
        for (int e = 0; e < N * C * w->input[0] * w->input[1]; e++) {
            int z = e % w->input[1], y = e / w->input[1] % w->input[0];
            int c = e / (w->input[1] * w->input[0]) % C, n = e / (w->input[1] * w->input[0] * C);
            for (int t = 0; t < filters * w->kernel[0] * w->kernel[1]; t++) {
                int s = t % w->kernel[1], r = t / w->kernel[1] % w->kernel[0];
                int f = t / (w->kernel[1] * w->kernel[0]);
                int row = y * w->stride[0] + r * w->dilation[0] - w->before[0];
                int column = z * w->stride[1] + s * w->dilation[1] - w->before[1];
                int filter = c / (C / groups) * filters + f;
                if (row >= 0 && row < extent[0] && column >= 0 && column < extent[1]) {
                    expected[((n * F + filter) * extent[0] + row) * extent[1] + column] +=
                        x[e] * weights[((c * filters + f) * w->kernel[0] + r) * w->kernel[1] + s];
                }
            }
        }
        print(w, groups == 1 ? "" : " group:i=2", attributes, sizeof(attributes));
        snprintf(types[0], sizeof(types[0]), "f64[%d,%d,%d,%d]", N, C, w->input[0], w->input[1]);
        snprintf(types[1], sizeof(types[1]), "f64[%d,%d,%d,%d]", C, filters, w->kernel[0],
                 w->kernel[1]);
        const struct wpk_model_input inputs[] = {{.type = types[0], .data = x},
                                                 {.type = types[1], .data = weights}};
        int64_t count =
            wpk_model_case_compute("ConvTranspose", 13, attributes, inputs, 2, 0, found, MAX);
        assert_int_equal(count, (int64_t)N * F * extent[0] * extent[1]);
        wpk_model_case_compare(attributes, found, expected, count);
    }
}

enum kind { LARGEST, MEAN, MEAN_WITH_PADDING, NORM };

/* Of one window: the padding has no elements, but counts in MEAN_WITH_PADDING. */
static double pool(const struct window *w, const double *plane, int row, int column, enum kind kind)
{
    double most = -INFINITY, sum = 0, squares = 0;
    int count = 0, all = w->kernel[0] * w->kernel[1];
    for (int t = 0; t < all; t++) {
        int y = tap(w, 0, row, t / w->kernel[1]), z = tap(w, 1, column, t % w->kernel[1]);
        if (y >= 0 && z >= 0) {
            double element = plane[y * w->input[1] + z];
            most = element > most ? element : most;
            sum += element;
            squares += element * element;
            count++;
        }
    }
    return kind == LARGEST ? most
           : kind == NORM  ? sqrt(squares)
                           : sum / (kind == MEAN ? count : all);
}

static void pools_are_of_the_elements_in_their_windows(void **state)
{
    (void)state;
    static const struct {
        const char *op, *more;
        enum kind kind;
    } kinds[] = {{"MaxPool", "", LARGEST},
                 {"AveragePool", "", MEAN},
                 {"AveragePool", " count_include_pad:i=1", MEAN_WITH_PADDING},
                 {"LpPool", "", NORM}};
    static double x[MAX], found[MAX], expected[MAX];
    for (int i = 0; i < 4 * WINDOWS; i++) {
        const struct window *w = &windows[i / 4];
        int rows = output_of(w, 0), columns = output_of(w, 1);
        char attributes[256], type[48];
        wpk_model_case_draw(7, x, MAX);
        for (int o = 0; o < N * C * rows * columns; o++) {
            int plane = o / (rows * columns);
            expected[o] = pool(w, x + (ptrdiff_t)plane * w->input[0] * w->input[1],
                               o / columns % rows, o % columns, kinds[i % 4].kind);
        }
        print(w, kinds[i % 4].more, attributes, sizeof(attributes));
        snprintf(type, sizeof(type), "f64[%d,%d,%d,%d]", N, C, w->input[0], w->input[1]);
        const struct wpk_model_input input = {.type = type, .data = x};
        int64_t count =
            wpk_model_case_compute(kinds[i % 4].op, 19, attributes, &input, 1, 0, found, MAX);
        assert_int_equal(count, (int64_t)N * C * rows * columns);
        wpk_model_case_compare(attributes, found, expected, count);
    }
}

/* A window that the input's end cuts is computed, too; one that begins in the padding is not. */
static void ceil_mode_adds_cut_windows(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"MaxPool", ":f32[1,1,6]", "kernel_shape:I=3 strides:I=2 ceil_mode:i=1",
         "f32[1,1,3] 3,5,6"},
        {"AveragePool", ":f32[1,1,6]", "kernel_shape:I=3 strides:I=2 ceil_mode:i=1",
         "f32[1,1,3] 2,4,5.5"},
        {"AveragePool", ":f32[1,1,6]",
         "kernel_shape:I=3 strides:I=2 ceil_mode:i=1 count_include_pad:i=1", "f32[1,1,3] 2,4,5.5"},
        {"MaxPool", ":f32[1,1,4]", "kernel_shape:I=2 strides:I=3 pads:I=0,1 ceil_mode:i=1",
         "f32[1,1,2] 2,4"}, /* a third would begin in the padding */
        {"MaxPool", ":f32[1,1,5]", "kernel_shape:I=2 strides:I=2 pads:I=1,1 ceil_mode:i=1",
         "f32[1,1,3] 1,3,5"},
    };
    WPK_MODEL_CASES(cases);
}

static void padding_may_follow_from_the_output(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"MaxPool", ":f32[1,1,4]", "kernel_shape:I=2 auto_pad:s=SAME_UPPER", "f32[1,1,4] 2,3,4,4"},
        {"MaxPool", ":f32[1,1,4]", "kernel_shape:I=2 auto_pad:s=SAME_LOWER", "f32[1,1,4] 1,2,3,4"},
        {"MaxPool", ":f32[1,1,4]", "kernel_shape:I=3 strides:I=2 auto_pad:s=SAME_UPPER",
         "f32[1,1,2] 3,4"},
        {"MaxPool", ":f32[1,1,4]", "kernel_shape:I=3 auto_pad:s=VALID", "f32[1,1,2] 3,4"},
        {"Conv", ":f32[1,1,3] 1,1:f32[1,1,2]", "auto_pad:s=SAME_LOWER", "f32[1,1,3] 1,3,5"},
        {"ConvTranspose", "1,1:f32[1,1,2] 1,2,3:f32[1,1,3]", "strides:I=2 output_shape:I=4",
         "f32[1,1,4] 2,4,2,3"}, /* 1,2,4,2,3: the odd one is taken away in front */
        {"ConvTranspose", "1,1:f32[1,1,2] 1,2,3:f32[1,1,3]", "strides:I=2 output_padding:I=1",
         "f32[1,1,6] 1,2,4,2,3,0"},
    };
    WPK_MODEL_CASES(cases);
}

static void windows_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"MaxPool", ":f32[1,1,4]", "", "!MaxPool"}, /* its kernel_shape is asked for */
        {"MaxPool", ":f32[1,1,4]", "kernel_shape:I=2,2", "!MaxPool"},
        {"MaxPool", ":f32[1,1,4]", "kernel_shape:I=0", "!MaxPool"},
        {"MaxPool", ":f32[1,1,4]", "kernel_shape:I=2 strides:I=0", "!MaxPool"},
        {"MaxPool", ":f32[1,1,4]", "kernel_shape:I=2 dilations:I=-1", "!MaxPool"},
        {"MaxPool", ":f32[1,1,4]", "kernel_shape:I=2 pads:I=1", "!MaxPool"},
        {"MaxPool", ":f32[1,1,4]", "kernel_shape:I=5", "!window spans 5 elements"},
        {"MaxPool", ":f32[4]", "kernel_shape:I=2", "!MaxPool"},
        {"Conv", ":f32[1,2,4] :f32[4,2,2] :f32[3]", "", "!its bias does not have 4 elements"},
        {"Conv", ":f32[1,2,4] :f32[4,1,2]", "group:i=0", "!in 0 groups"},
        {"Conv", ":f32[1,2,4] :f32[3,1,2]", "group:i=2", "!3 filters"},
        {"Conv", ":f32[2,4] :f32[2,4]", "", "!its input has 2 axes"},
        {"ConvTranspose", ":f32[1,2,4] :f32[3,1,2]", "", "!its weights do not fit its input"},
        {"ConvTranspose", ":f32[1,2,4] :f32[2,1,2] :f32[2]", "", "!does not have 1 elements"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_are_sums_over_windows),
        cmocka_unit_test(transposed_convolutions_write_what_others_read),
        cmocka_unit_test(pools_are_of_the_elements_in_their_windows),
        cmocka_unit_test(ceil_mode_adds_cut_windows),
        cmocka_unit_test(padding_may_follow_from_the_output),
        cmocka_unit_test(windows_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
