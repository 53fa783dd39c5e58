/* SPDX-License-Identifier: Apache-2.0 */
/* Resize of one axis against a loop over the places that ONNX's specification names. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX 64

/* The place in the input, in elements, of element i of the output. */
static double place(const char *where, int i, int input, int output, double scale)
{
    double half = (i + 0.5) / scale - 0.5;
    if (strcmp(where, "asymmetric") == 0) {
        return i / scale;
    }
    if (strcmp(where, "align_corners") == 0) {
        return output == 1 ? 0 : (double)i * (input - 1) / (output - 1);
    }
    if (strcmp(where, "pytorch_half_pixel") == 0) {
        return output > 1 ? half : 0;
    }
    return half;
}

static double at(const double *x, int count, double index)
{
    return x[(int)fmin(fmax(index, 0), count - 1)];
}

static double linear(const double *x, int count, double p)
{
    double left = floor(p), part = p - left;
    return (1 - part) * at(x, count, left) + part * at(x, count, left + 1);
}

/* The cubic convolution of Keys with a = -0.75. */
static double cubic(const double *x, int count, double p)
{
    const double a = -0.75;
    double left = floor(p), t = p - left;
    const double weight[] = {((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a,
                             ((a + 2) * t - (a + 3)) * t * t + 1,
                             ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1,
                             ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a};
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        sum += weight[k] * at(x, count, left + k - 1);
    }
    return sum;
}

static double nearest(const double *x, int count, double p, const char *mode)
{
    double index = strcmp(mode, "floor") == 0               ? floor(p)
                   : strcmp(mode, "ceil") == 0              ? ceil(p)
                   : strcmp(mode, "round_prefer_ceil") == 0 ? floor(p + 0.5)
                                                            : ceil(p - 0.5);
    return at(x, count, index);
}

static const char *const places[] = {"half_pixel", "asymmetric", "align_corners",
                                     "pytorch_half_pixel"};
static const struct {
    int input, output;
} sizes[] = {{4, 8}, {4, 7}, {7, 3}, {5, 1}, {3, 12}, {6, 5}};

/* Resize x [input] to `output` elements by the sizes. */
static void resize(const double *x, int input, int output, const char *attributes, double *found)
{
    char type[32], size[16];
    snprintf(type, sizeof(type), "f64[%d]", input);
    snprintf(size, sizeof(size), "%d", output);
    const struct wpk_model_input inputs[] = {{.type = type, .data = x},
                                             {.type = NULL},
                                             {.type = NULL},
                                             {.type = "i64[1]", .values = size}};
    assert_int_equal(wpk_model_case_compute("Resize", 19, attributes, inputs, 4, 0, found, MAX),
                     output);
}

static void linear_and_cubic_modes_weigh_neighbours(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (int p = 0; p < 4; p++) {
            for (int is_cubic = 0; is_cubic < 2; is_cubic++) {
                double x[MAX], found[MAX], expected[MAX];
                char attributes[128];
                int input = sizes[s].input, output = sizes[s].output;
                wpk_model_case_draw(5, x, input);
                snprintf(attributes, sizeof(attributes),
                         "mode:s=%s coordinate_transformation_mode:s=%s",
                         is_cubic ? "cubic" : "linear", places[p]);
                for (int i = 0; i < output; i++) {
                    double to = place(places[p], i, input, output, (double)output / input);
                    expected[i] = is_cubic ? cubic(x, input, to) : linear(x, input, to);
                }
                resize(x, input, output, attributes, found);
                wpk_model_case_compare(attributes, found, expected, output);
            }
        }
    }
}

static void the_nearest_element_is_rounded_by_its_mode(void **state)
{
    (void)state;
    static const char *const modes[] = {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (int p = 0; p < 16; p++) {
            double x[MAX], found[MAX], expected[MAX];
            char attributes[128];
            int input = sizes[s].input, output = sizes[s].output;
            wpk_model_case_draw(6, x, input);
            snprintf(attributes, sizeof(attributes),
                     "coordinate_transformation_mode:s=%s nearest_mode:s=%s", places[p / 4],
                     modes[p % 4]);
            for (int i = 0; i < output; i++) {
                double to = place(places[p / 4], i, input, output, (double)output / input);
                expected[i] = nearest(x, input, to, modes[p % 4]);
            }
            resize(x, input, output, attributes, found);
            wpk_model_case_compare(attributes, found, expected, output);
        }
    }
}

static void scales_round_the_extent_down(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Resize", ":f32[4] - 1.9:f32[1]",
         "coordinate_transformation_mode:s=asymmetric "
         "nearest_mode:s=floor",
         "f32[7] 1,1,2,2,3,3,4"}, /* 4 * 1.9 = 7.6; i / 1.9 */
        {"Resize", ":f32[4] - 0.6:f32[1]",
         "coordinate_transformation_mode:s=asymmetric "
         "nearest_mode:s=floor",
         "f32[2] 1,2"},
        {"Resize", ":f32[2,2] - 1,2:f32[2]", "", "f32[2,4] 1,1,2,2,3,3,4,4"},
        {"Resize", ":f32[2,2] - - 4:i64[1]", "axes:I=0", "f32[4,2] 1,2,1,2,3,4,3,4"},
        {"Upsample@9", ":f32[2] 3:f32[1]", "", "f32[6] 1,1,1,2,2,2"},
        {"Resize@10", ":f32[2] 2:f32[1]", "", "f32[4] 1,1,2,2"}, /* without a roi */
    };
    WPK_MODEL_CASES(cases);
}

/* 4 x 2 to at most, and at least, 8 x 8: by a factor of 2, and of 4. */
static void the_aspect_ratio_may_be_kept(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Resize", "1,2,3,4,5,6,7,8:f32[4,2] - - 8,8:i64[2]",
         "keep_aspect_ratio_policy:s=not_larger",
         "f32[8,4] 1,1,2,2,1,1,2,2,3,3,4,4,3,3,4,4,5,5,6,6,5,5,6,6,7,7,8,8,7,7,8,8"},
        {"Resize", "1,2:f32[1,2] - - 2,8:i64[2]", "keep_aspect_ratio_policy:s=not_smaller",
         "f32[4,8] 1,1,1,1,2,2,2,2,1,1,1,1,2,2,2,2,1,1,1,1,2,2,2,2,1,1,1,1,2,2,2,2"},
    };
    WPK_MODEL_CASES(cases);
}

/* The elements from 0.25 to 0.75 of the axis; outside of it the extrapolation's zeros. */
static void a_crop_reads_its_region(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Resize", "0,1,2,3,4:f32[5] 0.25,0.75:f32[2] - 3:i64[1]",
         "mode:s=linear coordinate_transformation_mode:s=tf_crop_and_resize", "f32[3] 1,2,3"},
        {"Resize", "0,1,2,3,4:f32[5] -0.25,1:f32[2] - 6:i64[1]",
         "mode:s=linear coordinate_transformation_mode:s=tf_crop_and_resize", "f32[6] 0,0,1,2,3,4"},
    };
    WPK_MODEL_CASES(cases);
}

/* Each of two elements is the mean of those that it covers, by a hat of twice that width. */
static void antialiasing_weighs_all_that_is_covered(void **state)
{
    (void)state;
    const double x[] = {1, 2, 4, 8};
    double found[MAX], expected[2];
    for (int i = 0; i < 2; i++) {
        double to = (i + 0.5) * 2 - 0.5, sum = 0, weights = 0;
        for (int k = -4; k < 8; k++) {
            double weight = fmax(0, 1 - fabs(k - to) / 2);
            sum += weight * at(x, 4, k);
            weights += weight;
        }
        expected[i] = sum / weights;
    }
    resize(x, 4, 2, "mode:s=linear antialias:i=1", found);
    wpk_model_case_compare("antialias", found, expected, 2);
}

static void what_is_not_known_is_refused(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Resize", ":f32[4] - 2,2:f32[2]", "", "!one for each axis"},
        {"Resize", ":f32[4]", "", "!one for each axis"},
        {"Resize", ":f32[4] - 0.1:f32[1]", "", "!an axis is resized to 0 elements"},
        {"Resize", ":f32[4] - -1:f32[1]", "", "!an axis is resized to"},
        {"Resize", ":f32[4] - nan:f32[1]", "", "!an axis is resized to"},
        {"Resize", ":f32[4] - 2:f32[1]", "mode:s=sinc", "!its mode (sinc"},
        {"Resize", ":f32[4] - 1.5:f32[1]", "coordinate_transformation_mode:s=other", "!other"},
        {"Resize", ":f32[4] - 2:f32[1]", "axes:I=0,0", "!2 axes of 1"},
        {"Resize", ":f32[4] - 2:f32[1]", "axes:I=1", "!axis 1 of 1"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_and_cubic_modes_weigh_neighbours),
        cmocka_unit_test(the_nearest_element_is_rounded_by_its_mode),
        cmocka_unit_test(scales_round_the_extent_down),
        cmocka_unit_test(the_aspect_ratio_may_be_kept),
        cmocka_unit_test(a_crop_reads_its_region),
        cmocka_unit_test(antialiasing_weighs_all_that_is_covered),
        cmocka_unit_test(what_is_not_known_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
