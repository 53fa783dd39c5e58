/* SPDX-License-Identifier: Apache-2.0 */
/* Products of quantized numbers against loops over integers. */
#include "tests/model_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { M = 3, K = 5, N = 4 };

/* Integers in [low, high] that look drawn. */
static void draw(unsigned seed, int low, int high, int *out, int count)
{
    for (int i = 0; i < count; i++) {
        seed = seed * 1664525U + 1013904223U;
        out[i] = low + (int)(seed >> 8) % (high - low + 1);
    }
}

/* Append "1,2,3:TYPE[EXTENTS] ". */
static void put(struct wpk_buf *out, const int *values, int count, const char *type)
{
    for (int i = 0; i < count; i++) {
        wpk_buf_printf(out, "%s%d", i > 0 ? "," : "", values[i]);
    }
    wpk_buf_printf(out, ":%s ", type);
}

static void check(const char *op, struct wpk_buf *inputs, const char *attributes, const char *type,
                  const double *expected, int count)
{
    struct wpk_buf text = {0};
    inputs->data[--inputs->size] = '\0'; /* the last blank */
    wpk_buf_printf(&text, "%s ", type);
    for (int i = 0; i < count; i++) {
        wpk_buf_printf(&text, "%s%.9g", i > 0 ? "," : "", expected[i]);
    }
    const struct wpk_model_case cases[] = {
        {op, wpk_buf_text(inputs), attributes, wpk_buf_text(&text)}};
    WPK_MODEL_CASES(cases);
    wpk_buf_fini(&text);
    wpk_buf_fini(inputs);
}

struct operand {
    const char *type; /* "u8" or "i8" */
    int low, high;
};

static const struct operand bytes[] = {{"u8", 0, 255}, {"i8", -128, 127}};

/* Zero points: none, one, or one for each row of A and each column of B. */
static void products_subtract_zero_points(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * 9; i++) {
        const struct operand *a = &bytes[i % 2], *b = &bytes[i / 2 % 2];
        int kind_a = i / 4 % 3, kind_b = i / 12;
        int x[M * K], w[K * N], zero_a[M] = {0}, zero_b[N] = {0};
        struct wpk_buf inputs = {0};
        char type[16];
        double expected[M * N];
        draw(1, a->low, a->high, x, M * K);
        draw(2, b->low, b->high, w, K * N);
        draw(3, a->low, a->high, zero_a, kind_a == 0 ? 0 : M);
        draw(4, b->low, b->high, zero_b, kind_b == 0 ? 0 : N);
        snprintf(type, sizeof(type), "%s[3,5]", a->type);
        put(&inputs, x, M * K, type);
        snprintf(type, sizeof(type), "%s[5,4]", b->type);
        put(&inputs, w, K * N, type);
        if (kind_a == 0) {
            wpk_buf_append_text(&inputs, "- ");
        } else {
            snprintf(type, sizeof(type), kind_a == 1 ? "%s[]" : "%s[3]", a->type);
            put(&inputs, zero_a, kind_a == 1 ? 1 : M, type);
        }
        if (kind_b > 0) {
            snprintf(type, sizeof(type), kind_b == 1 ? "%s[]" : "%s[4]", b->type);
            put(&inputs, zero_b, kind_b == 1 ? 1 : N, type);
        }
        for (int o = 0; o < M * N; o++) {
            int za = zero_a[kind_a == 2 ? o / N : 0], zb = zero_b[kind_b == 2 ? o % N : 0], sum = 0;
            for (int k = 0; k < K; k++) {
                sum += (x[o / N * K + k] - za) * (w[k * N + o % N] - zb);
            }
            expected[o] = sum;
        }
        check("MatMulInteger", &inputs, "", "i32[3,4]", expected, M * N);
    }
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Round halves to even, add the zero point, and keep within the type. */
static void products_are_requantized(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct operand *a = &bytes[i % 2], *y = &bytes[i % 2], *b = &bytes[i / 2];
        int x[M * K], w[K * N], zero_a = a->low + 100, zero_b = b->low + 90, zero_y = y->low + 128;
        struct wpk_buf inputs = {0};
        char type[16];
        double expected[M * N];
        draw(5, a->low, a->high, x, M * K);
        draw(6, b->low, b->high, w, K * N);
        snprintf(type, sizeof(type), "%s[3,5]", a->type);
        put(&inputs, x, M * K, type);
        wpk_buf_append_text(&inputs, "0.5:f32[] ");
        snprintf(type, sizeof(type), "%s[]", a->type);
        put(&inputs, &zero_a, 1, type);
        snprintf(type, sizeof(type), "%s[5,4]", b->type);
        put(&inputs, w, K * N, type);
        wpk_buf_append_text(&inputs, "0.25:f32[] ");
        snprintf(type, sizeof(type), "%s[]", b->type);
        put(&inputs, &zero_b, 1, type);
        wpk_buf_append_text(&inputs, "32:f32[] ");
        snprintf(type, sizeof(type), "%s[]", y->type);
        put(&inputs, &zero_y, 1, type);
        for (int o = 0; o < M * N; o++) {
            double sum = 0;
            for (int k = 0; k < K; k++) {
                sum += (x[o / N * K + k] - zero_a) * (w[k * N + o % N] - zero_b);
            }
            expected[o] = clamp(nearbyint(sum / 256) + zero_y, y->low, y->high);
        }
        snprintf(type, sizeof(type), "%s[3,4]", y->type);
        check("QLinearMatMul", &inputs, "", type, expected, M * N);
    }
}

/* Padding has the zero point's value: it adds nothing. */
static void convolutions_pad_with_the_zero_point(void **state)
{
    (void)state;
    enum { W = 6, F = 2, C = 2, R = 3 };
    for (int i = 0; i < 8; i++) {
        const struct operand *a = &bytes[i % 2], *b = &bytes[i / 2 % 2];
        int x[C * W], w[F * C * R], zero_a = i / 4 == 0 ? 0 : a->low + 77, zero_b = b->low + 130;
        struct wpk_buf inputs = {0};
        char type[16];
        double expected[F * W];
        draw(7, a->low, a->high, x, C * W);
        draw(8, b->low, b->high, w, F * C * R);
        snprintf(type, sizeof(type), "%s[1,2,6]", a->type);
        put(&inputs, x, C * W, type);
        snprintf(type, sizeof(type), "%s[2,2,3]", b->type);
        put(&inputs, w, F * C * R, type);
        snprintf(type, sizeof(type), "%s[]", a->type);
        put(&inputs, &zero_a, 1, type);
        snprintf(type, sizeof(type), "%s[]", b->type);
        put(&inputs, &zero_b, 1, type);
        for (int o = 0; o < F * W; o++) {
            int sum = 0;
            for (int t = 0; t < C * R; t++) {
                int c = t / R, at = o % W + t % R - 1;
                if (at >= 0 && at < W) {
                    sum += (x[c * W + at] - zero_a) * (w[(o / W * C + c) * R + t % R] - zero_b);
                }
            }
            expected[o] = sum;
        }
        check("ConvInteger", &inputs, "pads:I=1,1", "i32[1,2,6]", expected, F * W);
    }
}

static void numbers_are_quantized_and_back(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"QuantizeLinear", "0.5,1.5,2.5,-1.5,300,-300:f32[6] 1:f32[] 0:i8[]", "",
         "i8[6] 0,2,2,-2,127,-128"}, /* halves to even */
        {"QuantizeLinear", "0,1,-1,1000:f32[4] 0.5:f32[] 10:u8[]", "", "u8[4] 10,12,8,255"},
        {"QuantizeLinear", "1,2,3,4:f32[2,2] 1,2:f32[2] 0,1:i8[2]", "axis:i=0", "i8[2,2] 1,2,3,3"},
        {"QuantizeLinear", "1,2,3,4:f32[2,2] 1,2:f32[2] 0,1:i8[2]", "axis:i=1", "i8[2,2] 1,2,3,3"},
        {"DequantizeLinear", "0,128,255:u8[3] 0.5:f32[] 128:u8[]", "", "f32[3] -64,0,63.5"},
        {"DequantizeLinear", "1,2,3,4:i8[2,2] 1,10:f32[2]", "axis:i=1", "f32[2,2] 1,20,3,40"},
        {"DynamicQuantizeLinear", "0,1,2,255:f32[4]", "", "u8[4] 0,1,2,255"},
        {"DynamicQuantizeLinear>1", "0,1,2,255:f32[4]", "", "f32[] 1"},
        {"DynamicQuantizeLinear>2", "-51,0,204:f32[3]", "", "u8[] 51"},
        {"MatMulInteger", ":u8[2,3] :i8[2,4]", "", "!rows of 3 elements, columns of 2"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_subtract_zero_points),
        cmocka_unit_test(products_are_requantized),
        cmocka_unit_test(convolutions_pad_with_the_zero_point),
        cmocka_unit_test(numbers_are_quantized_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
