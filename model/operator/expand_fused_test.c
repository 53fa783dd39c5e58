/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft against the operators that they are made of. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void products_transpose_and_scale(void **state)
{
    (void)state;
    enum { M = 2, K = 3, N = 4, MAX = 32 };
    for (int i = 0; i < 8; i++) {
        bool trans_a = i % 2 != 0, trans_b = i / 2 % 2 != 0, scales = i / 4 != 0;
        double a[2 * M * K], b[2 * K * N], found[MAX], expected[MAX];
        char attributes[64], types[2][24];
        wpk_model_case_draw(1, a, (int64_t)2 * M * K);
        wpk_model_case_draw(2, b, (int64_t)2 * K * N);
        for (int o = 0; o < 2 * M * N; o++) {
            int n = o % N, m = o / N % M, batch = o / (N * M);
            expected[o] = 0;
            for (int k = 0; k < K; k++) {
                expected[o] += a[batch * M * K + (trans_a ? k * M + m : m * K + k)] *
                               b[batch * K * N + (trans_b ? n * K + k : k * N + n)];
            }
            expected[o] *= scales ? 0.5 : 1;
        }
        snprintf(attributes, sizeof(attributes), "transA:i=%d transB:i=%d%s", trans_a, trans_b,
                 scales ? " alpha:f=0.5" : "");
        snprintf(types[0], sizeof(types[0]), trans_a ? "f32[2,3,2]" : "f32[2,2,3]");
        snprintf(types[1], sizeof(types[1]), trans_b ? "f32[2,4,3]" : "f32[2,3,4]");
        const struct wpk_model_input inputs[] = {{.type = types[0], .data = a},
                                                 {.type = types[1], .data = b}};
        assert_int_equal(wpk_model_case_compute("com.microsoft:FusedMatMul", 17, attributes, inputs,
                                                2, 0, found, MAX),
                         2 * M * N);
        wpk_model_case_compare(attributes, found, expected, (int64_t)2 * M * N);
    }
}

#define CONV "1,-2,3:f32[1,1,3] 1:f32[1,1,1] "

static void activations_follow_what_they_are_fused_with(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"com.microsoft:FusedConv", CONV "0:f32[1]", "activation:s=Relu", "f32[1,1,3] 1,0,3"},
        {"com.microsoft:FusedConv", CONV "0:f32[1] 0,1,-9:f32[1,1,3]", "activation:s=Relu",
         "f32[1,1,3] 1,0,0"}, /* an addend before it */
        {"com.microsoft:FusedConv", CONV "0:f32[1]",
         "activation:s=LeakyRelu activation_params:F=0.5", "f32[1,1,3] 1,-1,3"},
        {"com.microsoft:FusedConv", CONV "0:f32[1]", "activation:s=Clip activation_params:F=-1,2",
         "f32[1,1,3] 1,-1,2"},
        {"com.microsoft:FusedConv", CONV "0:f32[1]",
         "activation:s=HardSigmoid activation_params:F=0.5,0.25", "f32[1,1,3] 0.75,0,1"},
        {"com.microsoft:FusedConv", CONV "0:f32[1]", "", "f32[1,1,3] 1,-2,3"},
        {"com.microsoft:FusedConv", CONV "0:f32[1]", "activation:s=Sin", "!its activation is none"},
        {"com.microsoft:FusedGemm", "1,-2:f32[1,2] 1,0,0,1:f32[2,2] 1,1:f32[2]",
         "activation:s=LeakyRelu activation_alpha:f=0.25 alpha:f=2", "f32[1,2] 3,-0.75"},
        {"com.microsoft:FusedGemm", "1,-2:f32[1,2] 1,0,0,1:f32[2,2] -", "activation:s=Tanh",
         "f32[1,2] 0.7615942,-0.9640276"},
    };
    WPK_MODEL_CASES(cases);
}

/* Rows of four: the sum of two, and a bias, normalized. */
static void sums_are_normalized(void **state)
{
    (void)state;
    enum { ROWS = 3, SIZE = 4, COUNT = ROWS * SIZE };
    double x[COUNT], skip[COUNT], scale[SIZE], shift[SIZE], bias[SIZE];
    double found[COUNT], sums[COUNT], expected[COUNT];
    wpk_model_case_draw(1, x, COUNT);
    wpk_model_case_draw(2, skip, COUNT);
    wpk_model_case_draw(3, scale, SIZE);
    wpk_model_case_draw(4, shift, SIZE);
    wpk_model_case_draw(5, bias, SIZE);
    for (int i = 0; i < 4; i++) {
        bool is_simple = i % 2 != 0, has_bias = i / 2 != 0;
        for (int r = 0; r < ROWS; r++) {
            double mean = 0, variance = 0;
            for (int k = 0; k < SIZE; k++) {
                int at = r * SIZE + k;
                sums[at] = x[at] + skip[at] + (has_bias ? bias[k] : 0);
                mean += is_simple ? 0 : sums[at] / SIZE;
            }
            for (int k = 0; k < SIZE; k++) {
                variance += (sums[r * SIZE + k] - mean) * (sums[r * SIZE + k] - mean) / SIZE;
            }
            for (int k = 0; k < SIZE; k++) {
                int at = r * SIZE + k;
                expected[at] = (sums[at] - mean) / sqrt(variance + 0.125) * scale[k] +
                               (is_simple ? 0 : shift[k]);
            }
        }
        const char *op = is_simple ? "com.microsoft:SkipSimplifiedLayerNormalization"
                                   : "com.microsoft:SkipLayerNormalization";
        const struct wpk_model_input input[] = {{.type = "f32[1,3,4]", .data = x},
                                                {.type = "f32[1,3,4]", .data = skip},
                                                {.type = "f32[4]", .data = scale},
                                                {.type = "f32[4]", .data = shift},
                                                {.type = "f32[4]", .data = bias}};
        const struct wpk_model_input simple[] = {input[0], input[1], input[2], input[4]};
        int count = 3 + !is_simple + has_bias;
        wpk_model_case_compute(op, 17, "epsilon:f=0.125", is_simple ? simple : input, count, 0,
                               found, COUNT);
        wpk_model_case_compare(op, found, expected, COUNT);
    }
}

static void an_embedding_is_a_sum_of_rows(void **state)
{
    (void)state;
    /* ids 2, 0; rows are 1, 2, ...: words 5,6 and 1,2; positions 1,2 and 3,4; segments 3,4 */
    double found[4];
    static const double expected[] = {-1, 1, -1, 1}; /* neighbours differ by 3 */
    const struct wpk_model_input inputs[] = {{.type = "i32[1,2]", .values = "2,0"},
                                             {.type = "i32[1,2]", .values = "1,1"},
                                             {.type = "f32[3,2]", .values = "1,9,3,4,5,-6"},
                                             {.type = "f32[2,2]", .values = "1,2,3,4"},
                                             {.type = "f32[2,2]", .values = "1,2,3,40"},
                                             {.type = "f32[2]", .values = "1,1"},
                                             {.type = "f32[2]", .values = "0,0"}};
    assert_int_equal(wpk_model_case_compute("com.microsoft:EmbedLayerNormalization", 17,
                                            "epsilon:f=0", inputs, 7, 0, found, 4),
                     4);
    wpk_model_case_compare("embedding", found, expected, 4);
    double sums[4];
    static const double wanted[] = {5 + 1 + 3, -6 + 2 + 40, 1 + 3 + 3, 9 + 4 + 40};
    assert_int_equal(wpk_model_case_compute("com.microsoft:EmbedLayerNormalization", 17,
                                            "epsilon:f=0", inputs, 7, 2, sums, 4),
                     4);
    wpk_model_case_compare("sums", sums, wanted, 4);
}

static void outputs_that_are_not_computed_are_refused(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"com.microsoft:SkipLayerNormalization>1", ":f32[1,1,2] :f32[1,1,2] :f32[2] :f32[2]", "",
         "!its mean or inverse deviation is asked for"},
        {"com.microsoft:FusedMatMul", ":f32[2,2] :f32[2,2]", "transBatchA:i=1",
         "!its batches are transposed"},
        {"com.microsoft:FusedMatMul", ":f32[2,3] :f32[2,3]", "", "!rows of 3 elements"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_transpose_and_scale),
        cmocka_unit_test(activations_follow_what_they_are_fused_with),
        cmocka_unit_test(sums_are_normalized),
        cmocka_unit_test(an_embedding_is_a_sum_of_rows),
        cmocka_unit_test(outputs_that_are_not_computed_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
