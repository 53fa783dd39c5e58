/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/reference/accuracy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define N 16
#define SIZE ((size_t)N * N)

static const char op[] = "input A f32[16,16]\ninput B f32[16,16]\noutput C f32[16,16]\n"
                         "C[i,j] = sum(k) A[i,k] * B[k,j]\n";

struct run {
    struct wpk_tensor_type type;
    struct wpk_check_tensor tensors[3];
    float a[SIZE], b[SIZE], c[SIZE];
};

/* A product that was computed as the operator is written, from inputs of many digits. */
static void fill(struct run *run)
{
    static const char *const names[] = {"A", "B", "C"};
    float *const dense[] = {run->a, run->b, run->c};

    *run = (struct run){.type = {.dtype = WPK_F32, .rank = 2, .extent = {N, N}}};
    for (int i = 0; i < 3; i++) {
        run->tensors[i] =
            (struct wpk_check_tensor){.name = names[i], .type = &run->type, .dense = dense[i]};
    }
    for (size_t i = 0; i < SIZE; i++) {
        run->a[i] = sinf((float)i);
        run->b[i] = cosf((float)i);
    }
    for (size_t i = 0; i < SIZE; i++) {
        for (size_t k = 0; k < N; k++) {
            run->c[i] += run->a[i / N * N + k] * run->b[k * N + i % N];
        }
    }
}

static struct wpk_check check(const struct run *run)
{
    const struct wpk_accuracy widest = {.times_direct = 16};
    struct wpk_check result = {.passed = true};

    assert_int_equal(wpk_check(op, run->tensors, 2, 1, widest, WPK_CHECK_POINTS_MAX, &result, NULL),
                     WPK_OK);
    return result;
}

static void test_right_ones_pass(void **state)
{
    struct run run;
    (void)state;

    fill(&run);
    struct wpk_check result = check(&run);
    assert_true(result.passed);
    assert_int_equal(result.points, SIZE);
    assert_true(result.times_direct > 0 && result.times_direct < 3 && result.of_rms < 1e-6);
}

static void test_zeros_fail(void **state)
{
    struct run run;
    (void)state;

    fill(&run);
    memset(run.c, 0, sizeof(run.c));
    struct wpk_check result = check(&run);
    assert_false(result.passed);
    assert_true(fabs(result.of_rms - 1) < 1e-12); /* all of the output is missing */
    assert_true(result.times_direct > 1e5);
}

/* One value suffices, and all of them are no better. */
static void test_nan_where_numbers_are_fails(void **state)
{
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    struct run run;
    (void)state;

    for (size_t w = 0; w < sizeof(wrong) / sizeof(wrong[0]); w++) {
        fill(&run);
        run.c[SIZE - 1] = wrong[w];
        assert_false(check(&run).passed);
        for (size_t i = 0; i < SIZE; i++) {
            run.c[i] = wrong[w];
        }
        assert_false(check(&run).passed);
    }
}

/* The other way round: where the reference has no number, a number is wrong. */
static void test_a_number_where_nan_belongs_fails(void **state)
{
    struct run run;
    (void)state;

    fill(&run);
    run.a[0] = NAN; /* makes the first row of the output NaN */
    assert_false(check(&run).passed);
    for (size_t j = 0; j < N; j++) {
        run.c[j] = NAN;
    }
    assert_true(check(&run).passed);
}

/* ---- any operator of a matrix and its outputs */

static bool passes(const char *text, int inputs, const struct wpk_check_tensor *given, int count)
{
    static const struct wpk_accuracy widest = {.times_direct = 16};
    struct wpk_check result = {.passed = true};
    struct wpk_diag diag = {0};
    if (wpk_check(text, given, inputs, count - inputs, widest, WPK_CHECK_POINTS_MAX, &result,
                  &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    return result.passed;
}

/* A matrix of [rows, N], or a vector where `rows` is 0. */
#define TENSOR(text, element, rows, data)                                                          \
    {                                                                                              \
        .name = (text),                                                                            \
        .type = &(struct wpk_tensor_type){.dtype = (element),                                      \
                                          .rank = (rows) > 0 ? 2 : 1,                              \
                                          .extent = {(rows) > 0 ? (rows) : N, N}},                 \
        .dense = (data),                                                                           \
    }

static void test_integers_wrap(void **state)
{
    static int32_t x[SIZE], y[N];
    static int64_t wide[SIZE], sum[N];
    (void)state;
    memset(y, 0, sizeof(y));
    memset(sum, 0, sizeof(sum));
    for (size_t i = 0; i < SIZE; i++) {
        x[i] = (int32_t)(i * 2654435761U);
        wide[i] = (int64_t)(i * UINT64_C(0x9e3779b97f4a7c15));
        y[i / N] = (int32_t)((uint32_t)y[i / N] + (uint32_t)x[i] * (uint32_t)x[i]);
        sum[i / N] = (int64_t)((uint64_t)sum[i / N] + (uint64_t)wide[i] * (uint64_t)wide[i]);
    }
    const struct wpk_check_tensor of_words[] = {TENSOR("X", WPK_I32, N, x),
                                                TENSOR("Y", WPK_I32, 0, y)};
    const struct wpk_check_tensor of_wide[] = {TENSOR("X", WPK_I64, N, wide),
                                               TENSOR("Y", WPK_I64, 0, sum)};
    static const char words[] =
        "input X i32[16,16]\noutput Y i32[16]\nY[i] = sum(k:16) X[i,k] * X[i,k]\n";
    static const char doubles[] =
        "input X i64[16,16]\noutput Y i64[16]\nY[i] = sum.i64(k:16) X[i,k] * X[i,k]\n";
    assert_true(passes(words, 1, of_words, 2));
    assert_true(passes(doubles, 1, of_wide, 2));
    y[3]++;
    sum[3] ^= 1;
    assert_false(passes(words, 1, of_words, 2));
    assert_false(passes(doubles, 1, of_wide, 2));
}

/* Beyond the output's type: infinite there, and nothing else. */
static void test_overflow_is_infinite(void **state)
{
    static float x[SIZE];
    static uint16_t y[N];
    (void)state;
    for (size_t i = 0; i < SIZE; i++) {
        x[i] = i < N ? 1e4F : 1.0F;
        y[i / N] = i < N ? 0x7c00 : 0x4c00; /* inf, 16 */
    }
    const struct wpk_check_tensor tensors[] = {TENSOR("X", WPK_F32, N, x),
                                               TENSOR("Y", WPK_F16, 0, y)};
    static const char text[] = "input X f32[16,16]\nintermediate T f32[16]\noutput Y f16[16]\n"
                               "T[i] = sum.f32(k:16) X[i,k]\nY[i] = f16(T[i])\n";
    assert_true(passes(text, 1, tensors, 2));
    y[0] = 0x7bff;
    assert_false(passes(text, 1, tensors, 2));
}

/* Points of large numbers count as the others do. */
static void test_large_numbers_are_compared(void **state)
{
    static float x[SIZE], y[N];
    (void)state;
    for (size_t i = 0; i < SIZE; i++) {
        x[i] = -3.4028235e38F;
        y[i / N] = x[i];
    }
    const struct wpk_check_tensor tensors[] = {TENSOR("X", WPK_F32, N, x),
                                               TENSOR("Y", WPK_F32, 0, y)};
    static const char most[] = "input X f32[16,16]\noutput Y f32[16]\nY[i] = max(k:16) X[i,k]\n";
    assert_true(passes(most, 1, tensors, 2));
    y[2] = -3.38953139e38F;
    assert_false(passes(most, 1, tensors, 2));
    for (size_t i = 0; i < SIZE; i++) {
        x[i] = 1e30F * sinf((float)i);
        y[i / N] = (i % N == 0 ? 0 : y[i / N]) + x[i];
    }
    static const char sum[] = "input X f32[16,16]\noutput Y f32[16]\nY[i] = sum(k:16) X[i,k]\n";
    assert_true(passes(sum, 1, tensors, 2));
    y[2] *= 1.001F;
    assert_false(passes(sum, 1, tensors, 2));
}

static void test_each_output_counts(void **state)
{
    static float x[SIZE], y[N], z[N];
    (void)state;
    for (size_t i = 0; i < SIZE; i++) {
        x[i] = (float)(i % 7);
        y[i / N] = (i % N == 0 ? 0 : y[i / N]) + x[i];
        z[i / N] = fmaxf(i % N == 0 ? 0 : z[i / N], x[i]);
    }
    const struct wpk_check_tensor tensors[] = {
        TENSOR("X", WPK_F32, N, x), TENSOR("Y", WPK_F32, 0, y), TENSOR("Z", WPK_F32, 0, z)};
    static const char text[] = "input X f32[16,16]\noutput Y f32[16]\noutput Z f32[16]\n"
                               "Y[i] = sum(k:16) X[i,k]\nZ[i] = max(k:16) X[i,k]\n";
    assert_true(passes(text, 1, tensors, 3));
    z[5]++;
    assert_false(passes(text, 1, tensors, 3));
}

/* Direct evaluation of one sum is nearly exact by luck: 16 - 16 + 2^-6 + 2^-31. */
static void test_one_value_is_held_to_its_terms(void **state)
{
    static const char sum[] = "input A f32[16]\noutput C f32[1]\nC[i] = sum(k) A[k]\n";
    static const struct {
        float off;
        bool passes;
    } rows[] = {{0, true}, {0x1p-21F, true}, {-0x1p-20F, true}, {0x1p-13F, false}};
    const struct wpk_accuracy widest = {.times_direct = 16};
    const struct wpk_tensor_type a = {.dtype = WPK_F32, .rank = 1, .extent = {16}};
    const struct wpk_tensor_type c = {.dtype = WPK_F32, .rank = 1, .extent = {1}};
    float terms[16] = {[0] = 16, [7] = -16, [14] = 0x1p-6F, [15] = 0x1p-31F};
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        float value = 0x1p-6F + rows[i].off;
        const struct wpk_check_tensor tensors[] = {{.name = "A", .type = &a, .dense = terms},
                                                   {.name = "C", .type = &c, .dense = &value}};
        struct wpk_check result;
        assert_int_equal(wpk_check(sum, tensors, 1, 1, widest, WPK_CHECK_POINTS_MAX, &result, NULL),
                         WPK_OK);
        assert_int_equal(result.passed, rows[i].passes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_ones_pass),
        cmocka_unit_test(test_zeros_fail),
        cmocka_unit_test(test_nan_where_numbers_are_fails),
        cmocka_unit_test(test_a_number_where_nan_belongs_fails),
        cmocka_unit_test(test_integers_wrap),
        cmocka_unit_test(test_overflow_is_infinite),
        cmocka_unit_test(test_large_numbers_are_compared),
        cmocka_unit_test(test_each_output_counts),
        cmocka_unit_test(test_one_value_is_held_to_its_terms),
    };

    return cmocka_run_group_tests_name("run_check", tests, NULL, NULL);
}
