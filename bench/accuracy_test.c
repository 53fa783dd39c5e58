/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/accuracy.h"

#include "ir/notation/definition.h"
#include "ir/reference/direct.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct data {
    struct bench_op op;
    float *operands[BENCH_OPERANDS_MAX];
    const float *read[BENCH_OPERANDS_MAX];
    float *result;
    int64_t elements;
};

static struct data new_data(struct bench_op op)
{
    struct data data = {.op = op};
    for (int i = 0; i < bench_op_operand_count(&op); i++) {
        const struct bench_shape shape = bench_op_operand(&op, i);
        data.operands[i] = calloc((size_t)bench_shape_elements(&shape), sizeof(float));
        assert_non_null(data.operands[i]);
        bench_op_fill(&op, i, data.operands[i]);
        data.read[i] = data.operands[i];
    }
    const struct bench_shape shape = bench_op_output(&op);
    data.elements = bench_shape_elements(&shape);
    data.result = calloc((size_t)data.elements, sizeof(float));
    assert_non_null(data.result);
    return data;
}

static void free_data(struct data *data)
{
    for (int i = 0; i < BENCH_OPERANDS_MAX; i++) {
        free(data->operands[i]);
    }
    free(data->result);
}

static struct bench_accuracy measure(const struct data *data)
{
    return bench_accuracy_measure(&data->op, data->read, data->result);
}

static const struct bench_op operators[] = {
    {.kind = BENCH_CONV,
     .c = 32,
     .h = 12,
     .w = 12,
     .k = 32,
     .r = 3,
     .s = 3,
     .stride = {1, 1},
     .padding = {1, 1, 1, 1},
     .groups = 1,
     .bias = true,
     .relu = true},
    {.kind = BENCH_CONV,
     .c = 32,
     .h = 9,
     .w = 9,
     .k = 32,
     .r = 3,
     .s = 3,
     .stride = {2, 2},
     .padding = {1, 1, 1, 1},
     .groups = 32},
    {.kind = BENCH_MATMUL, .m = 64, .n = 80, .depth = 300},
    {.kind = BENCH_SOFTMAX, .rows = 40, .columns = 128},
    {.kind = BENCH_LAYERNORM, .rows = 40, .columns = 128, .epsilon = 1e-5},
    {.kind = BENCH_ATTENTION, .heads = 2, .rows = 40, .columns = 16},
};

/* Also says that loops in f32 and loops in double precision are the same operator. */
static void test_direct_evaluation_is_one_times_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        struct data data = new_data(operators[i]);
        for (int64_t j = 0; j < data.elements; j++) {
            data.result[j] = bench_direct(&data.op, data.read, j);
        }
        const struct bench_accuracy accuracy = measure(&data);
        assert_true(accuracy.times_direct > 0.999 && accuracy.times_direct < 1.001);
        assert_true(accuracy.of_rms > 1e-9 && accuracy.of_rms < 1e-5);
        free_data(&data);
    }
}

/* The service evaluates its own form of the operator directly, and gets the same numbers: an error
 * here is the same multiple there. */
static void test_the_service_evaluates_the_same(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        "{\"type\": \"conv2d\", \"input\": [1, 32, 12, 12], \"filters\": 32, \"kernel\": [3, 3],"
        " \"padding\": [1, 1, 1, 1], \"bias\": true, \"activation\": \"relu\"}",
        "{\"type\": \"conv2d\", \"input\": [1, 32, 9, 9], \"filters\": 32, \"kernel\": [3, 3],"
        " \"padding\": [1, 1, 1, 1], \"stride\": [2, 2], \"groups\": 32}",
        "{\"type\": \"matmul\", \"a\": [64, 300], \"b\": [300, 80]}",
    };
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        struct data data = new_data(operators[i]);
        struct wpk_program program;
        assert_int_equal(wpk_shorthand_expand(jobs[i], &program, NULL), WPK_OK);
        struct wpk_reference_args args = {0};
        double *wide[BENCH_OPERANDS_MAX] = {0};
        int operand = 0;
        for (int t = 0; t < program.tensor_count; t++) {
            const enum wpk_role role = program.tensors[t].role;
            if (role == WPK_ROLE_INPUT || role == WPK_ROLE_CONSTANT) {
                const int64_t count = wpk_tensor_elements(&program.tensors[t]);
                wide[operand] = calloc((size_t)count, sizeof(double));
                assert_non_null(wide[operand]);
                for (int64_t j = 0; j < count; j++) {
                    wide[operand][j] = (double)data.operands[operand][j];
                }
                args.tensor[t] = wide[operand++];
            }
        }
        assert_int_equal(operand, bench_op_operand_count(&data.op));
        double *value = calloc((size_t)data.elements, sizeof(double));
        assert_non_null(value);
        assert_int_equal(wpk_direct_run(&program, &args, 0, value, NULL), WPK_OK);
        for (int64_t j = 0; j < data.elements; j++) {
            assert_true(value[j] == (double)bench_direct(&data.op, data.read, j));
        }
        free(value);
        for (int j = 0; j < BENCH_OPERANDS_MAX; j++) {
            free(wide[j]);
        }
        wpk_program_fini(&program);
        free_data(&data);
    }
}

/* A product and a sum are rounded apart: (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 when contracted. */
static void test_direct_evaluation_contracts_nothing(void **state)
{
    (void)state;
    const struct bench_op op = {.kind = BENCH_MATMUL, .m = 1, .n = 1, .depth = 2};
    const float a[2] = {-1 - 0x1p-11F, 1 + 0x1p-12F};
    const float b[2] = {1, 1 + 0x1p-12F};
    const float *const operands[] = {a, b};
    assert_true(bench_direct(&op, operands, 0) == 0);
}

/* The exact result rounded once is as good as f32 can be; inputs of 8 bits of mantissa are what
 * bf16 does. */
static void test_errors_are_told_apart(void **state)
{
    (void)state;
    struct data data = new_data(operators[2]);
    for (int64_t i = 0; i < data.elements; i++) {
        double value = 0;
        double magnitude = 0;
        bench_op_reference(&data.op, data.read, i, &value, &magnitude);
        data.result[i] = (float)value;
    }
    assert_true(measure(&data).times_direct < 0.5);
    assert_true(measure(&data).of_rms < 0x1p-24);
    for (int64_t i = 0; i < data.elements; i++) {
        data.result[i] *= 1 + ldexpf((float)(i % 3 - 1), -9);
    }
    assert_true(measure(&data).times_direct > 1000);
    data.result[7] = NAN;
    assert_false(bench_accuracy_fits(measure(&data), (struct wpk_accuracy){1e6}));
    free_data(&data);
}

/* relu is exact, and so is direct evaluation: no division by zero. */
static void test_exact_results_fit_every_class(void **state)
{
    (void)state;
    struct data data = new_data((struct bench_op){.kind = BENCH_RELU, .rows = 1, .columns = 16});
    for (int64_t i = 0; i < data.elements; i++) {
        data.result[i] = bench_direct(&data.op, data.read, i);
    }
    assert_true(measure(&data).times_direct == 0);
    assert_true(bench_accuracy_fits(measure(&data), (struct wpk_accuracy){1}));
    data.result[0] += 0.1F;
    assert_true(measure(&data).times_direct > 1e4);
    free_data(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direct_evaluation_is_one_times_itself),
        cmocka_unit_test(test_the_service_evaluates_the_same),
        cmocka_unit_test(test_direct_evaluation_contracts_nothing),
        cmocka_unit_test(test_errors_are_told_apart),
        cmocka_unit_test(test_exact_results_fit_every_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
