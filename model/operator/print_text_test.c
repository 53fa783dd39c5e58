/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions and normalizations against loops over three axes. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { A = 3, B = 4, C = 5, COUNT = A * B * C };

#define TYPE "f64[3,4,5]"

/* The elements of a line: those that agree with element `at` in all axes that are not reduced. */
static int line_of(unsigned axes, int at, const double *x, double *out)
{
    int count = 0;
    for (int i = 0; i < COUNT; i++) {
        bool same = ((axes & 1) != 0 || i / (B * C) == at / (B * C)) &&
                    ((axes & 2) != 0 || i / C % B == at / C % B) &&
                    ((axes & 4) != 0 || i % C == at % C);
        if (same) {
            out[count++] = x[i];
        }
    }
    return count;
}

static double reduce(const char *op, const double *line, int count)
{
    double sum = 0, squares = 0, absolute = 0, product = 1, most = -INFINITY, least = INFINITY;
    double exponents = 0;
    for (int i = 0; i < count; i++) {
        sum += line[i];
        squares += line[i] * line[i];
        absolute += fabs(line[i]);
        product *= line[i];
        most = fmax(most, line[i]);
        least = fmin(least, line[i]);
        exponents += exp(line[i]);
    }
    return strcmp(op, "ReduceSum") == 0         ? sum
           : strcmp(op, "ReduceMean") == 0      ? sum / count
           : strcmp(op, "ReduceMax") == 0       ? most
           : strcmp(op, "ReduceMin") == 0       ? least
           : strcmp(op, "ReduceProd") == 0      ? product
           : strcmp(op, "ReduceL1") == 0        ? absolute
           : strcmp(op, "ReduceL2") == 0        ? sqrt(squares)
           : strcmp(op, "ReduceSumSquare") == 0 ? squares
           : strcmp(op, "ReduceLogSum") == 0    ? log(sum)
                                                : log(exponents);
}

/* "axes:I=..." of the bits. */
static void print_axes(unsigned axes, char *out, size_t size)
{
    snprintf(out, size, "axes:I=");
    for (int a = 0; a < 3; a++) {
        if ((axes >> a & 1) != 0) {
            size_t used = strlen(out);
            snprintf(out + used, size - used, "%s%d", out[used - 1] == '=' ? "" : ",",
                     a == 1 ? a - 3 : a);
        }
    }
}

static void reductions_combine_their_lines(void **state)
{
    (void)state;
    static const char *const ops[] = {
        "ReduceSum", "ReduceMean", "ReduceMax",       "ReduceMin",    "ReduceProd",
        "ReduceL1",  "ReduceL2",   "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"};
    double x[COUNT], found[COUNT], expected[COUNT], line[COUNT];
    wpk_model_case_draw(1, x, COUNT);
    for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
        for (unsigned axes = 1; axes < 8; axes++) {
            char attributes[64];
            int count = 0;
            for (int i = 0; i < COUNT; i++) { /* the first element of each line stands for it */
                bool first = ((axes & 1) == 0 || i / (B * C) == 0) &&
                             ((axes & 2) == 0 || i / C % B == 0) && ((axes & 4) == 0 || i % C == 0);
                if (first) {
                    int length = line_of(axes, i, x, line);
                    for (int k = 0; k < length && strcmp(ops[o], "ReduceLogSum") == 0; k++) {
                        line[k] = fabs(line[k]); /* its logarithm */
                    }
                    expected[count++] = reduce(ops[o], line, length);
                }
            }
            double data[COUNT];
            for (int i = 0; i < COUNT; i++) {
                data[i] = strcmp(ops[o], "ReduceLogSum") == 0 ? fabs(x[i]) : x[i];
            }
            print_axes(axes, attributes, sizeof(attributes));
            const struct wpk_model_input input = {.type = TYPE, .data = data};
            assert_int_equal(
                wpk_model_case_compute(ops[o], 11, attributes, &input, 1, 0, found, COUNT), count);
            wpk_model_case_compare(ops[o], found, expected, count);
        }
    }
}

static void reduced_axes_stay_or_go(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"ReduceSum", ":f32[2,3] 1:i64[1]", "", "f32[2,1] 6,15"},
        {"ReduceSum", ":f32[2,3] 1:i64[1]", "keepdims:i=0", "f32[2] 6,15"},
        {"ReduceSum", ":f32[2,3]", "", "f32[1,1] 21"},
        {"ReduceSum", ":f32[2,3]", "noop_with_empty_axes:i=1", "f32[2,3] 1,2,3,4,5,6"},
        {"ReduceMax@11", ":i64[2,2]", "axes:I=0 keepdims:i=0", "i64[2] 3,4"},
        {"ReduceMean@11", "-3,-4,0,2:i32[2,2]", "axes:I=1 keepdims:i=0", "i32[2] -3,1"},
        {"ReduceProd", "3:f32[]", "", "f32[] 3"},
        {"ArgMax", "1,3,3,0:f32[2,2]", "axis:i=1", "i64[2,1] 1,0"},
        {"ArgMax", "3,3,1:f32[3]", "axis:i=0 keepdims:i=0 select_last_index:i=1", "i64[] 1"},
        {"ArgMin", "3,1,1:f32[3]", "axis:i=-1 keepdims:i=0", "i64[] 1"},
        {"ReduceSum@11", ":f32[2,3]", "axes:I=2", "!axis 2 of 2"},
        {"ReduceSum@11", ":f32[2,3]", "axes:I=-3", "!axis -3 of 2"},
        {"ArgMax", ":f32[2]", "axis:i=1", "!axis 1 of 1"},
    };
    WPK_MODEL_CASES(cases);
}

static double softmax_at(const double *line, int count, double x)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += exp(line[i]);
    }
    return exp(x) / sum;
}

/* Before opset 13 all axes from `axis` on are one line. */
static void a_softmax_is_of_an_axis_or_of_all_behind_it(void **state)
{
    (void)state;
    double x[COUNT], found[COUNT], expected[COUNT], line[COUNT];
    wpk_model_case_draw(2, x, COUNT);
    for (int i = 0; i < 12; i++) {
        int axis = i % 3, opset = i / 3 % 2 == 0 ? 13 : 12, is_log = i / 6;
        unsigned axes = opset == 13 ? 1U << axis : 7U & ~((1U << axis) - 1);
        char attributes[16];
        for (int k = 0; k < COUNT; k++) {
            double part = softmax_at(line, line_of(axes, k, x, line), x[k]);
            expected[k] = is_log ? log(part) : part;
        }
        snprintf(attributes, sizeof(attributes), "axis:i=%d", opset == 13 ? axis - 3 : axis);
        const struct wpk_model_input input = {.type = TYPE, .data = x};
        wpk_model_case_compute(is_log ? "LogSoftmax" : "Softmax", opset, attributes, &input, 1, 0,
                               found, COUNT);
        wpk_model_case_compare(attributes, found, expected, COUNT);
    }
}

static void normalize(unsigned axes, const double *x, bool is_centered, double epsilon, double *out)
{
    double line[COUNT];
    for (int k = 0; k < COUNT; k++) {
        int count = line_of(axes, k, x, line);
        double mean = 0, variance = 0;
        for (int i = 0; i < count && is_centered; i++) {
            mean += line[i] / count;
        }
        for (int i = 0; i < count; i++) {
            variance += (line[i] - mean) * (line[i] - mean) / count;
        }
        out[k] = (x[k] - mean) / sqrt(variance + epsilon);
    }
}

static void layers_are_normalized_from_an_axis_on(void **state)
{
    (void)state;
    double x[COUNT], scale[B * C], bias[B * C], found[COUNT], expected[COUNT];
    wpk_model_case_draw(3, x, COUNT);
    wpk_model_case_draw(4, scale, B * C);
    wpk_model_case_draw(5, bias, B * C);
    for (int i = 0; i < 4; i++) {
        int axis = i % 2 + 1, is_rms = i / 2, size = axis == 1 ? B * C : C;
        char attributes[48];
        normalize(axis == 1 ? 6 : 4, x, !is_rms, 0.25, expected);
        for (int k = 0; k < COUNT; k++) {
            expected[k] = expected[k] * scale[k % size] + (is_rms ? 0 : bias[k % size]);
        }
        snprintf(attributes, sizeof(attributes), "axis:i=%d epsilon:f=0.25", axis - 3);
        const char *type = axis == 1 ? "f64[4,5]" : "f64[5]";
        const struct wpk_model_input inputs[] = {
            {.type = TYPE, .data = x}, {.type = type, .data = scale}, {.type = type, .data = bias}};
        wpk_model_case_compute(is_rms ? "RMSNormalization" : "LayerNormalization", 23, attributes,
                               inputs, is_rms ? 2 : 3, 0, found, COUNT);
        wpk_model_case_compare(attributes, found, expected, COUNT);
    }
}

/* [N, C, spatial]: a mean for each sample and channel; x [3, 4, 5]. */
static void instances_are_normalized_apart(void **state)
{
    (void)state;
    double x[COUNT], scale[B], bias[B], found[COUNT], expected[COUNT];
    wpk_model_case_draw(6, x, COUNT);
    wpk_model_case_draw(7, scale, B);
    wpk_model_case_draw(8, bias, B);
    normalize(4, x, true, 0.5, expected);
    for (int k = 0; k < COUNT; k++) {
        expected[k] = expected[k] * scale[k / C % B] + bias[k / C % B];
    }
    const struct wpk_model_input inputs[] = {{.type = TYPE, .data = x},
                                             {.type = "f64[4]", .data = scale},
                                             {.type = "f64[4]", .data = bias}};
    wpk_model_case_compute("InstanceNormalization", 13, "epsilon:f=0.5", inputs, 3, 0, found,
                           COUNT);
    wpk_model_case_compare("InstanceNormalization", found, expected, COUNT);
}

static void sums_run_up_or_down_an_axis(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"CumSum", ":f32[4] 0:i64[]", "", "f32[4] 1,3,6,10"},
        {"CumSum", ":f32[4] 0:i64[]", "exclusive:i=1", "f32[4] 0,1,3,6"},
        {"CumSum", ":f32[4] 0:i64[]", "reverse:i=1", "f32[4] 10,9,7,4"},
        {"CumSum", ":f32[4] 0:i64[]", "reverse:i=1 exclusive:i=1", "f32[4] 9,7,4,0"},
        {"CumSum", ":f32[2,2] -2:i32[]", "", "f32[2,2] 1,2,4,6"},
        {"CumSum", ":i64[2,2] 1:i64[]", "", "i64[2,2] 1,3,3,7"},
        {"CumSum", ":f32[4] 1:i64[]", "", "!axis 1 of 1"},
        {"LpNormalization", "3,4,6,8:f32[2,2]", "", "f32[2,2] 0.6,0.8,0.6,0.8"},
        {"LpNormalization", "1,3,1,1:f32[2,2]", "p:i=1 axis:i=0", "f32[2,2] 0.5,0.75,0.5,0.25"},
        {"Hardmax", "1,3,3,0:f32[2,2]", "", "f32[2,2] 0,1,1,0"},
        {"MeanVarianceNormalization", "1,3:f32[2,1,1,1]", "", "f32[2,1,1,1] -1,1"},
        {"GlobalMaxPool", ":f32[1,2,2]", "", "f32[1,2,1] 2,4"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_combine_their_lines),
        cmocka_unit_test(reduced_axes_stay_or_go),
        cmocka_unit_test(a_softmax_is_of_an_axis_or_of_all_behind_it),
        cmocka_unit_test(layers_are_normalized_from_an_axis_on),
        cmocka_unit_test(instances_are_normalized_apart),
        cmocka_unit_test(sums_run_up_or_down_an_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
