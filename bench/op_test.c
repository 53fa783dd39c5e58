/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/op.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static double reference_at(const struct bench_op *op, const float *const *operands, int64_t index)
{
    double value = 0;
    double magnitude = 0;
    bench_op_reference(op, operands, index, &value, &magnitude);
    assert_true(magnitude >= fabs(value) * (1 - 1e-12));
    return value;
}

/* 1 channel of 3x3, kernel of ones with padding 1: a corner sums 4, the centre 9; stride 2 takes
 * every other one. Worked out by hand. */
static void test_convolution_pads_strides_and_clips(void **state)
{
    (void)state;
    struct bench_op op = {.kind = BENCH_CONV,
                          .c = 1,
                          .h = 3,
                          .w = 3,
                          .k = 1,
                          .r = 3,
                          .s = 3,
                          .stride = {1, 1},
                          .padding = {1, 1, 1, 1},
                          .groups = 1,
                          .bias = true,
                          .relu = true};
    const float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const float w[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    const float bias[1] = {-20};
    const float *const operands[] = {x, w, bias};
    assert_true(reference_at(&op, operands, 4) == 25);
    assert_true(reference_at(&op, operands, 0) == 0); /* 12 - 20 */
    assert_true(reference_at(&op, operands, 8) == 8); /* 28 - 20 */
    op.stride[0] = op.stride[1] = 2;
    const struct bench_shape shape = bench_op_output(&op);
    assert_int_equal(shape.extent[2], 2);
    assert_true(reference_at(&op, operands, 3) == 8);
}

static void test_depthwise_keeps_channels_apart(void **state)
{
    (void)state;
    const struct bench_op op = {.kind = BENCH_CONV,
                                .c = 2,
                                .h = 1,
                                .w = 1,
                                .k = 2,
                                .r = 1,
                                .s = 1,
                                .stride = {1, 1},
                                .groups = 2};
    const float x[2] = {3, 5};
    const float w[2] = {10, 100};
    const float *const operands[] = {x, w};
    assert_true(reference_at(&op, operands, 0) == 30);
    assert_true(reference_at(&op, operands, 1) == 500);
}

static void test_rows_are_normalised(void **state)
{
    (void)state;
    const struct bench_op softmax = {.kind = BENCH_SOFTMAX, .rows = 2, .columns = 3};
    const struct bench_op norm = {.kind = BENCH_LAYERNORM, .rows = 2, .columns = 3};
    const float x[6] = {0, 0, 0, 1, 2, 3};
    const float scale[3] = {1, 1, 2};
    const float shift[3] = {0, 0, 1};
    const float *const operands[] = {x, scale, shift};
    assert_true(fabs(reference_at(&softmax, operands, 1) - 1.0 / 3) < 1e-15);
    assert_true(fabs(reference_at(&norm, operands, 5) - (2 * sqrt(1.5) + 1)) < 1e-12);
}

/* A result that is right passes; one element off, bf16 rounding of inputs, and NaN do not. */
static void test_check_tells_right_from_wrong(void **state)
{
    (void)state;
    const struct bench_op op = {.kind = BENCH_MATMUL, .m = 16, .n = 16, .depth = 512};
    float *operands[2];
    for (int i = 0; i < 2; i++) {
        const struct bench_shape shape = bench_op_operand(&op, i);
        operands[i] = calloc((size_t)bench_shape_elements(&shape), sizeof(float));
        assert_non_null(operands[i]);
        bench_op_fill(&op, i, operands[i]);
    }
    const float *const data[] = {operands[0], operands[1]};
    float result[256];
    float rough[256];
    for (int64_t i = 0; i < 256; i++) {
        result[i] = (float)reference_at(&op, data, i);
        rough[i] = result[i] * (1 + ldexpf(1, -9));
    }
    assert_true(bench_op_check(&op, data, result, 512) < 0.5);
    assert_true(bench_op_check(&op, data, rough, 512) > 1);
    result[255] = NAN;
    assert_true(isinf(bench_op_check(&op, data, result, 512)));
    free(operands[0]);
    free(operands[1]);
}

static void test_numbers_spread_over_the_interval(void **state)
{
    (void)state;
    const struct bench_op op = {.kind = BENCH_RELU, .rows = 1, .columns = 4096};
    float values[4096];
    bench_op_fill(&op, 0, values);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < 4096; i++) {
        assert_true(values[i] >= -0.5F && values[i] < 0.5F);
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    assert_true(fabs(sum / 4096) < 0.02);
    assert_true(fabs(squares / 4096 - 1.0 / 12) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolution_pads_strides_and_clips),
        cmocka_unit_test(test_depthwise_keeps_channels_apart),
        cmocka_unit_test(test_rows_are_normalised),
        cmocka_unit_test(test_check_tells_right_from_wrong),
        cmocka_unit_test(test_numbers_spread_over_the_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
