/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run_check.h"

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
    struct wpk_argument arguments[3];
    struct wpk_run_tensors tensors;
    float a[SIZE], b[SIZE], c[SIZE];
};

/* A product that was computed as the operator is written, from inputs of many digits. */
static void fill(struct run *run)
{
    static const char *const names[] = {"A", "B", "C"};
    float *const dense[] = {run->a, run->b, run->c};

    *run = (struct run){.tensors = {.input_count = 2, .output_count = 1}};
    for (int i = 0; i < 3; i++) {
        run->arguments[i] = (struct wpk_argument){
            .name = names[i], .type = {.dtype = WPK_F32, .rank = 2, .extent = {N, N}}};
        run->tensors.tensor[i] = (struct wpk_run_tensor){
            .argument = &run->arguments[i], .name = names[i], .dense = dense[i]};
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

static struct wpk_run_check check(const struct run *run)
{
    const struct wpk_accuracy widest = {.times_direct = 16};
    struct wpk_run_check result = {.passed = true};

    assert_int_equal(wpk_run_check(op, &run->tensors, widest, &result, NULL), WPK_OK);
    return result;
}

static void test_right_ones_pass(void **state)
{
    struct run run;
    (void)state;

    fill(&run);
    struct wpk_run_check result = check(&run);
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
    struct wpk_run_check result = check(&run);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_ones_pass),
        cmocka_unit_test(test_zeros_fail),
        cmocka_unit_test(test_nan_where_numbers_are_fails),
        cmocka_unit_test(test_a_number_where_nan_belongs_fails),
    };

    return cmocka_run_group_tests_name("run_check", tests, NULL, NULL);
}
