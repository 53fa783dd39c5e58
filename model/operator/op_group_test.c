/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizations over some of the channels against loops. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { N = 2, C = 6, D = 4 };

/* Of opset 18 scale and bias are one for each group, later one for each channel. */
static void groups_of_channels_are_normalized(void **state)
{
    (void)state;
    static const int counts[] = {1, 2, 3, 6};
    double x[N * C * D], scale[C], bias[C], found[N * C * D], expected[N * C * D];
    wpk_model_case_draw(1, x, (int64_t)N * C * D);
    wpk_model_case_draw(2, scale, C);
    wpk_model_case_draw(3, bias, C);
    for (size_t i = 0; i < 2 * sizeof(counts) / sizeof(counts[0]); i++) {
        int groups = counts[i / 2], opset = i % 2 == 0 ? 18 : 21, size = C / groups * D;
        char attributes[64], type[16];
        for (int n = 0; n < N * groups; n++) {
            const double *from = x + (ptrdiff_t)n * size;
            double mean = 0, variance = 0;
            for (int e = 0; e < size; e++) {
                mean += from[e] / size;
            }
            for (int e = 0; e < size; e++) {
                variance += (from[e] - mean) * (from[e] - mean) / size;
            }
            for (int e = 0; e < size; e++) {
                int group = n % groups, channel = group * (C / groups) + e / D;
                int own = opset == 18 ? group : channel;
                expected[n * size + e] =
                    (from[e] - mean) / sqrt(variance + 0.25) * scale[own] + bias[own];
            }
        }
        snprintf(attributes, sizeof(attributes), "num_groups:i=%d epsilon:f=0.25", groups);
        snprintf(type, sizeof(type), "f64[%d]", opset == 18 ? groups : C);
        const struct wpk_model_input inputs[] = {{.type = "f64[2,6,4]", .data = x},
                                                 {.type = type, .data = scale},
                                                 {.type = type, .data = bias}};
        int64_t count = wpk_model_case_compute("GroupNormalization", opset, attributes, inputs, 3,
                                               0, found, N * C * D);
        assert_int_equal(count, N * C * D);
        wpk_model_case_compare(attributes, found, expected, count);
    }
}

/* x / (bias + alpha / size * sum of squares of the channels around)^beta; an even size has one more
 * channel behind. */
static void neighbouring_channels_are_compared(void **state)
{
    (void)state;
    double x[N * C * D], found[N * C * D], expected[N * C * D];
    wpk_model_case_draw(5, x, (int64_t)N * C * D);
    for (int size = 1; size <= 5; size++) {
        char attributes[96];
        for (int i = 0; i < N * C * D; i++) {
            int c = i / D % C;
            double sum = 0;
            for (int k = c - (size - 1) / 2; k <= c + size / 2; k++) {
                if (k >= 0 && k < C) {
                    double other = x[i + (k - c) * D];
                    sum += other * other;
                }
            }
            expected[i] = x[i] / pow(2 + 0.5 / size * sum, 0.75);
        }
        snprintf(attributes, sizeof(attributes), "size:i=%d alpha:f=0.5 beta:f=0.75 bias:f=2",
                 size);
        const struct wpk_model_input input = {.type = "f64[2,6,4]", .data = x};
        int64_t count =
            wpk_model_case_compute("LRN", 13, attributes, &input, 1, 0, found, N * C * D);
        wpk_model_case_compare(attributes, found, expected, count);
    }
}

static void groups_divide_the_channels(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"GroupNormalization@21", ":f32[1,6,2] :f32[6] :f32[6]", "num_groups:i=4",
         "!GroupNormalization"},
        {"GroupNormalization@21", ":f32[1,6,2] :f32[6] :f32[6]", "", "!GroupNormalization"},
        {"GroupNormalization@21", ":f32[1,6,2] :f32[4] :f32[6]", "num_groups:i=3",
         "!GroupNormalization"},
        {"GroupNormalization@21", ":f32[6] :f32[6] :f32[6]", "num_groups:i=3",
         "!GroupNormalization"},
        {"LRN", ":f32[1,6,2]", "", "!LRN"}, /* its size is asked for */
        {"LRN", ":f32[1,6,2]", "size:i=0", "!LRN"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_channels_are_normalized),
        cmocka_unit_test(neighbouring_channels_are_compared),
        cmocka_unit_test(groups_divide_the_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
