/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/reference/accuracy.h"

#include "common/rng.h"
#include "ir/derive/derive.h"
#include "ir/derive/extract.h"
#include "ir/node.h"
#include "ir/notation/notation.h"
#include "ir/reference/direct.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct wpk_accuracy strict = {1.25}, standard = {4}, fast = {16};

/* ---- arithmetic */

static void test_sums(void **state)
{
    (void)state;
    const double y64[4] = {3, -4, INFINITY, 0};
    const double y[4] = {3.5, -4, 7, 0.5};
    struct wpk_accuracy_sums sums = {0};
    assert_true(wpk_accuracy_error(&sums) == 0 && wpk_accuracy_of_rms(&sums) == 0);
    wpk_accuracy_add(&sums, y, y64, NULL, 2);
    wpk_accuracy_add(&sums, y + 2, y64 + 2, NULL, 2);
    assert_int_equal(sums.count, 3);
    assert_true(fabs(wpk_accuracy_error(&sums) - sqrt(0.5 / 3)) < 1e-15);
    assert_true(fabs(wpk_accuracy_of_rms(&sums) - sqrt(0.5 / 25)) < 1e-15);
    const double beside[2] = {1, WPK_REFERENCE_STEP};
    struct wpk_accuracy_sums certain = {0};
    wpk_accuracy_add(&certain, y, y64, beside, 2);
    assert_int_equal(certain.count, 1);
    assert_true(wpk_accuracy_error(&certain) == 0.5);
    const double none = NAN;
    wpk_accuracy_add(&sums, &none, y64, NULL, 1);
    assert_true(wpk_accuracy_error(&sums) == DBL_MAX);
    assert_true(wpk_accuracy_of_rms(&sums) == DBL_MAX);
}

/* The sums of a set with these rms. */
static struct wpk_accuracy_sums make(double error, double value, int64_t count)
{
    return (struct wpk_accuracy_sums){error * error * (double)count, value * value * (double)count,
                                      count};
}

static double times(enum wpk_dtype output, double error, double value, double direct)
{
    struct wpk_accuracy_errors errors = {0};
    struct wpk_accuracy_sums sums = make(error, value, 4096);
    wpk_accuracy_fold(&errors, output, &sums, direct);
    return errors.times_direct;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

static void test_ratio(void **state)
{
    (void)state;
    assert_true(near(times(WPK_F32, 3e-6, 1, 1e-6), 3));
    /* direct is nearly exact: a quarter of the type's rounding takes its place */
    assert_true(near(times(WPK_F32, 0x1p-24, 2, 1e-12), 2));
    assert_true(near(times(WPK_F16, 0x1p-11, 2, 1e-12), 2));
    assert_true(near(times(WPK_BF16, 0x1p-8, 2, 1e-12), 2));
    assert_true(near(times(WPK_F64, 0x1p-53, 2, 1e-30), 2));
    /* direct is exact, the output too, or of integers: no ratio */
    assert_true(times(WPK_F32, 1e-3, 1, 0) == 0);
    assert_true(times(WPK_F32, 0, 1, 1e-6) == 0);
    assert_true(times(WPK_I32, 1, 100, 1e-6) == 0);
    /* a reference of zeros has no rms */
    assert_true(near(times(WPK_F32, 1e-3, 0, 1e-4), 10));
    assert_true(times(WPK_F32, INFINITY, 1, 1e-6) == DBL_MAX);
}

static void test_largest_set_counts(void **state)
{
    (void)state;
    struct wpk_accuracy_errors errors = {0};
    for (int i = 0; i < 3; i++) {
        struct wpk_accuracy_sums sums = make(i == 1 ? 5e-6 : 1e-6, 1, 1000 + i);
        wpk_accuracy_fold(&errors, WPK_F32, &sums, 1e-6);
    }
    assert_true(near(errors.times_direct, 5));
    assert_int_equal(errors.count, 1001);
}

static void test_few_values_are_noisy(void **state)
{
    (void)state;
    const struct wpk_accuracy_errors within = {.times_direct = 4.18, .count = 4096};
    const struct wpk_accuracy_errors beyond = {.times_direct = 4.19, .count = 4096};
    const struct wpk_accuracy_errors few = {.times_direct = 5.1, .count = 100};
    const struct wpk_accuracy_errors none = {0};
    assert_true(wpk_accuracy_stays_in(standard, &within));
    assert_false(wpk_accuracy_stays_in(standard, &beyond));
    assert_true(wpk_accuracy_stays_in(standard, &few));
    assert_true(wpk_accuracy_stays_in(standard, &none));
}

/* ---- algorithms */

/* An operator with inputs, its reference and the error of direct evaluation. */
struct subject {
    struct wpk_program program;
    double *given[WPK_TENSORS_MAX];
    struct wpk_reference_args args;
    int64_t count;
    double *y64;
    double *y; /* scratch */
    double direct;
};

static const struct wpk_tensor *output_of(const struct wpk_program *program)
{
    return &program->tensors[program->stages[program->stage_count - 1].output];
}

static double draw_value(struct wpk_rng *rng, bool relu)
{
    if (!relu) {
        return 2 * wpk_rng_unit(rng) - 1;
    }
    double normal = -6; /* a sum of twelve */
    for (int i = 0; i < 12; i++) {
        normal += wpk_rng_unit(rng);
    }
    return fmax(normal, 0);
}

/* Inputs uniform, or ReLU of normal; constants always uniform. */
static void open_subject(struct subject *s, const char *text, bool relu)
{
    struct wpk_diag diag = {0};
    struct wpk_rng rng;
    *s = (struct subject){0};
    wpk_rng_seed(&rng, 5);
    if (wpk_program_parse(text, &s->program, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    for (int t = 0; t < s->program.tensor_count; t++) {
        const struct wpk_tensor *tensor = &s->program.tensors[t];
        if (tensor->role != WPK_ROLE_INPUT && tensor->role != WPK_ROLE_CONSTANT) {
            continue;
        }
        int64_t count = wpk_tensor_elements(tensor);
        s->args.tensor[t] = s->given[t] = malloc((size_t)count * sizeof(double));
        assert_non_null(s->given[t]);
        for (int64_t i = 0; i < count; i++) {
            double value = draw_value(&rng, relu && tensor->role == WPK_ROLE_INPUT);
            s->given[t][i] = wpk_dtype_round(tensor->dtype, value);
        }
    }
    s->count = wpk_tensor_elements(output_of(&s->program));
    s->y64 = malloc((size_t)s->count * 2 * sizeof(double));
    assert_non_null(s->y64);
    s->y = s->y64 + s->count;
    assert_int_equal(wpk_reference_run(&s->program, &s->args, s->y64, NULL, NULL), WPK_OK);
    assert_int_equal(wpk_direct_run(&s->program, &s->args, 1, s->y, NULL), WPK_OK);
    struct wpk_accuracy_sums sums = {0};
    wpk_accuracy_add(&sums, s->y, s->y64, NULL, s->count);
    s->direct = wpk_accuracy_error(&sums);
}

static void close_subject(struct subject *s)
{
    for (int t = 0; t < WPK_TENSORS_MAX; t++) {
        free(s->given[t]);
    }
    free(s->y64);
    wpk_program_fini(&s->program);
}

/* times_direct of what `y` holds. */
static double judge(struct subject *s)
{
    struct wpk_accuracy_errors errors = {0};
    struct wpk_accuracy_sums sums = {0};
    wpk_accuracy_add(&sums, s->y, s->y64, NULL, s->count);
    wpk_accuracy_fold(&errors, output_of(&s->program)->dtype, &sums, s->direct);
    return errors.times_direct;
}

/* The error of a kernel of the derived program that rounds like direct evaluation. */
static double judge_derived(struct subject *s, const struct wpk_program *derived)
{
    struct wpk_reference_args args = {.tensor = {NULL}};
    for (int t = 0; t < derived->tensor_count; t++) {
        int given = wpk_program_find_tensor(&s->program, derived->tensors[t].name);
        args.tensor[t] = given >= 0 ? s->args.tensor[given] : NULL;
    }
    assert_int_equal(wpk_direct_run(derived, &args, 2, s->y, NULL), WPK_OK);
    return judge(s);
}

static double judge_winograd(struct subject *s, int m)
{
    struct wpk_program derived;
    assert_int_equal(wpk_program_copy(&s->program, &derived), WPK_OK);
    assert_int_equal(
        wpk_derive_winograd(&derived, wpk_contraction_find(&derived), (const int64_t[]){m, m}),
        WPK_OK);
    double result = judge_derived(s, &derived);
    wpk_program_fini(&derived);
    return result;
}

/* F(2,3), F(4,3), F(6,3) of 64 to 512 channels. */
static void test_winograd(void **state)
{
    (void)state;
    for (int channels = 64; channels <= 512; channels *= 8) {
        for (int relu = 0; relu <= (channels < 512); relu++) {
            struct subject s;
            char text[512];
            snprintf(text, sizeof text,
                     "input X f32[%d,12,12]\nconstant W f32[12,%d,3,3]\noutput Y f32[12,12,12]\n"
                     "Y[k,y,x] = sum(c:%d,r:3,s:3) X[c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n",
                     channels, channels, channels);
            open_subject(&s, text, relu != 0);
            double f2 = judge_winograd(&s, 2), f4 = judge_winograd(&s, 4);
            double f6 = judge_winograd(&s, 6);
            print_message("%d channels%s: F(2,3) %.2f, F(4,3) %.2f, F(6,3) %.2f x direct\n",
                          channels, relu != 0 ? " after ReLU" : "", f2, f4, f6);
            assert_true(wpk_accuracy_admits(strict, f2));
            assert_true(!wpk_accuracy_admits(strict, f4) && wpk_accuracy_admits(standard, f4));
            assert_true(!wpk_accuracy_admits(standard, f6) && wpk_accuracy_admits(fast, f6));
            close_subject(&s);
        }
    }
}

/* Significant bits of a product's operands: 8 for bf16, 11 for tf32. */
static double cut(double value, int bits)
{
    if (bits == 24) {
        return value;
    }
    int exponent;
    (void)frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(value, bits - exponent)), exponent - bits);
}

/* Sums in f32 of products of operands with so many bits, in `ways` partial sums. */
static double judge_matmul(struct subject *s, int depth, int bits, int ways)
{
    for (int i = 0; i < 64 * 64; i++) {
        float part[16] = {0};
        for (int k = 0; k < depth; k++) {
            double a = cut(s->given[0][i / 64 * depth + k], bits);
            double b = cut(s->given[1][k * 64 + i % 64], bits);
            part[k % ways] = (float)((double)part[k % ways] + a * b); /* fused */
        }
        for (int w = ways / 2; w > 0; w /= 2) {
            for (int k = 0; k < w; k++) {
                part[k] += part[k + w];
            }
        }
        s->y[i] = (double)part[0];
    }
    return judge(s);
}

/* At every depth, products in short types are in no class, and honest sums are strict. */
static void test_products_in_short_types(void **state)
{
    (void)state;
    static const int depths[] = {4, 64, 512};
    for (size_t n = 0; n < sizeof depths / sizeof *depths; n++) {
        for (int relu = 0; relu < 2; relu++) {
            int depth = depths[n];
            struct subject s;
            char text[512];
            snprintf(text, sizeof text,
                     "input A f32[64,%d]\ninput B f32[%d,64]\noutput C f32[64,64]\n"
                     "C[i,j] = sum(k:%d) A[i,k] * B[k,j]\n",
                     depth, depth, depth);
            open_subject(&s, text, relu != 0);
            assert_false(wpk_accuracy_admits(fast, judge_matmul(&s, depth, 8, 1)));
            assert_false(wpk_accuracy_admits(fast, judge_matmul(&s, depth, 11, 1)));
            for (int ways = 1; ways <= 16; ways *= 4) {
                assert_true(wpk_accuracy_admits(strict, judge_matmul(&s, depth, 24, ways)));
            }
            close_subject(&s);
        }
    }
}

/* The same sums in another order, by the derivations that only move data. */
static void test_derivations_without_transforms(void **state)
{
    (void)state;
    struct subject s;
    struct wpk_program derived;
    open_subject(&s,
                 "input X f32[40,12,12]\nconstant W f32[30,40,3,3]\noutput Y f32[30,12,12]\n"
                 "Y[k,y,x] = sum(c:40,r:3,s:3) X[c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n",
                 false);
    assert_int_equal(wpk_program_copy(&s.program, &derived), WPK_OK);
    assert_int_equal(wpk_derive_im2col(&derived, wpk_contraction_find(&derived)), WPK_OK);
    assert_true(wpk_accuracy_admits(strict, judge_derived(&s, &derived)));
    wpk_program_fini(&derived);
    close_subject(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_ratio),
        cmocka_unit_test(test_largest_set_counts),
        cmocka_unit_test(test_few_values_are_noisy),
        cmocka_unit_test(test_winograd),
        cmocka_unit_test(test_products_in_short_types),
        cmocka_unit_test(test_derivations_without_transforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
