/* SPDX-License-Identifier: Apache-2.0 */
/* The tolerance held against sums as kernels compute them: honest ones in several orders, and ones
 * that must be caught. */
#include "worker/verify/verify.h"

#include "ir/derive/derive.h"
#include "ir/derive/extract.h"
#include "ir/notation/notation.h"
#include "ir/reference/reference.h"
#include "schema/convert.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 512
#define TERMS 1152 /* of a 3x3 convolution of 128 channels */

static const char product[] = "input X f32[512,1152]\nconstant W f32[1152]\noutput Y f32[512]\n"
                              "Y[i] = sum(k:1152) X[i,k] * W[k]\n";
static const char scaled_product[] = "input X f32[512,1152]\nconstant W f32[1152]\n"
                                     "intermediate T f32[512]\noutput Y f32[512]\n"
                                     "T[i] = sum(k:1152) X[i,k] * W[k]\nY[i] = 0.7 * T[i]\n";

static struct wpk_program parse(const char *text)
{
    struct wpk_program program = {0};
    struct wpk_diag diag = {0};
    wpk_err err = wpk_program_parse(text, &program, &diag);
    if (err != WPK_OK) {
        fail_msg("%s: %s", wpk_err_text(err), diag.text);
    }
    return program;
}

/* How a kernel might compute one row. */
typedef float (*summation)(const float *x, const float *w);

static float sum_in_order(const float *x, const float *w)
{
    float sum = 0;
    for (int k = 0; k < TERMS; k++) {
        sum += x[k] * w[k];
    }
    return sum;
}

static float sum_backwards(const float *x, const float *w)
{
    float sum = 0;
    for (int k = TERMS - 1; k >= 0; k--) {
        sum = fmaf(x[k], w[k], sum);
    }
    return sum;
}

static float sum_in_lanes(const float *x, const float *w)
{
    float lane[16] = {0};
    for (int k = 0; k < TERMS; k++) {
        lane[k % 16] = fmaf(x[k], w[k], lane[k % 16]);
    }
    float sum = 0;
    for (int i = 0; i < 16; i++) {
        sum += lane[i];
    }
    return sum;
}

static float sum_without_one(const float *x, const float *w)
{
    float sum = 0;
    for (int k = 0; k < TERMS; k++) {
        sum += k == 77 ? 0 : x[k] * w[k];
    }
    return sum;
}

static float round_to(enum wpk_dtype dtype, float value)
{
    double wide = (double)value;
    char narrow[8];
    wpk_convert_narrow(dtype, &wide, 1, narrow);
    wpk_convert_widen(dtype, narrow, 1, &wide);
    return (float)wide;
}

static float sum_of_bf16(const float *x, const float *w)
{
    float sum = 0;
    for (int k = 0; k < TERMS; k++) {
        sum += round_to(WPK_BF16, x[k]) * round_to(WPK_BF16, w[k]);
    }
    return sum;
}

static float sum_of_f16(const float *x, const float *w)
{
    float sum = 0;
    for (int k = 0; k < TERMS; k++) {
        sum += round_to(WPK_F16, x[k]) * round_to(WPK_F16, w[k]);
    }
    return sum;
}

/* The errors of a summation on one input set. */
static struct wpk_verify_errors judge_scaled(enum wpk_input_kind kind, bool positive, summation sum,
                                             double times, float scale)
{
    struct wpk_program op = parse(scale == 1 ? product : scaled_product);
    struct wpk_answers answers = {0};
    struct wpk_inputs inputs = {0};
    assert_int_equal(
        wpk_answers_make(&op,
                         &(struct wpk_input_options){.kind = kind, .seed = 3, .constants_seed = 3},
                         0, &answers, NULL),
        WPK_OK);
    if (positive) {
        /* All terms of one sign: the sum's own rounding is what matters. */
        answers.inputs.domain = WPK_DRAW_POSITIVE;
    }
    assert_int_equal(wpk_inputs_make(&op, &answers.inputs, &inputs), WPK_OK);
    if (positive) {
        assert_int_equal(wpk_inputs_widen(&op, &inputs), WPK_OK);
        struct wpk_reference_args args = {.tensor = {NULL}};
        args.tensor[0] = inputs.wide[0];
        args.tensor[1] = inputs.wide[1];
        assert_int_equal(wpk_reference_run(&op, &args, (double *)answers.value,
                                           (double *)answers.magnitude, NULL),
                         WPK_OK);
    }
    static float y[ROWS];
    const float *x = inputs.dense[0];
    for (int i = 0; i < ROWS; i++) {
        y[i] = sum(x + i * TERMS, inputs.dense[1]) * scale;
    }
    struct wpk_verify_errors errors = {0};
    const struct wpk_verify_rule rule = {.exact = wpk_verify_is_exact(&op), .times = times};
    wpk_verify_compare(&op, &answers, 0, &rule, y, &errors);
    /* The largest error and what is allowed there are one pair: users compare them. */
    assert_true(errors.ratio > 1 || errors.max <= errors.max_tolerance);
    wpk_inputs_fini(&inputs);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
    return errors;
}

static struct wpk_verify_errors judge(enum wpk_input_kind kind, bool positive, summation sum,
                                      double times)
{
    return judge_scaled(kind, positive, sum, times, 1);
}

/* Rounded as an algorithm with transforms rounds. */
static float sum_with_an_offset(const float *x, const float *w)
{
    float sum = 3e5F / 7;
    for (int k = 0; k < TERMS; k++) {
        sum += x[k] * w[k];
    }
    return sum - 3e5F / 7;
}

/* Direct evaluation's sums of integers are exact: what follows them is no yardstick. */
static void test_integers_give_no_ratio(void **state)
{
    (void)state;
    struct wpk_verify_errors errors =
        judge_scaled(WPK_INPUT_INTEGERS, false, sum_with_an_offset, 1, 0.7F);
    assert_true(errors.max > 0);
    assert_true(errors.accuracy.times_direct == 0);
    assert_true(judge_scaled(WPK_INPUT_REALS, false, sum_in_lanes, 1, 0.7F).accuracy.times_direct >
                0);
}

static void test_honest_sums_pass_with_margin(void **state)
{
    (void)state;
    static const summation honest[] = {sum_in_order, sum_backwards, sum_in_lanes};
    for (size_t i = 0; i < sizeof(honest) / sizeof(honest[0]); i++) {
        assert_true(judge(WPK_INPUT_REALS, false, honest[i], 1).ratio < 0.5);
        assert_true(judge(WPK_INPUT_REALS, true, honest[i], 1).ratio < 0.5);
        struct wpk_verify_errors exact = judge(WPK_INPUT_INTEGERS, false, honest[i], 1);
        assert_true(exact.ratio == 0 && exact.max == 0);
    }
}

static void test_dishonest_sums_are_caught(void **state)
{
    (void)state;
    static const summation dishonest[] = {sum_without_one, sum_of_bf16, sum_of_f16};
    for (size_t i = 0; i < sizeof(dishonest) / sizeof(dishonest[0]); i++) {
        assert_true(judge(WPK_INPUT_REALS, false, dishonest[i], 1).ratio > 2);
        assert_true(judge(WPK_INPUT_REALS, true, dishonest[i], 1).ratio > 1);
    }
    assert_true(judge(WPK_INPUT_INTEGERS, false, sum_without_one, 1).ratio > 1);
    /* A class may ask for less, but not for that. */
    assert_true(judge(WPK_INPUT_REALS, false, sum_without_one, 40).ratio > 2);
    assert_true(judge(WPK_INPUT_INTEGERS, false, sum_without_one, 40).ratio > 1);
}

/* Beside the worst point, the rms error of the set: honest sums are strict, short products are in
 * no class, and integers, on which direct evaluation is exact, give no ratio. */
static void test_accuracy(void **state)
{
    (void)state;
    static const struct wpk_accuracy strict = {1.25}, fast = {16};
    static const summation honest[] = {sum_in_order, sum_backwards, sum_in_lanes};
    static const summation dishonest[] = {sum_without_one, sum_of_bf16, sum_of_f16};
    for (size_t i = 0; i < 3; i++) {
        struct wpk_accuracy_errors good = judge(WPK_INPUT_REALS, false, honest[i], 1).accuracy;
        struct wpk_accuracy_errors bad = judge(WPK_INPUT_REALS, false, dishonest[i], 1).accuracy;
        assert_true(good.times_direct > 0.05 && wpk_accuracy_admits(strict, good.times_direct));
        assert_true(good.of_rms > 1e-8 && good.of_rms < 5e-6);
        assert_int_equal(good.count, ROWS);
        assert_false(wpk_accuracy_admits(fast, bad.times_direct));
        assert_true(bad.of_rms > 1e-4);
        struct wpk_accuracy_errors none = judge(WPK_INPUT_INTEGERS, false, honest[i], 1).accuracy;
        assert_true(none.times_direct == 0);
    }
    /* in the order of direct evaluation, without contraction: the same bits */
    double same = judge(WPK_INPUT_REALS, false, sum_in_order, 1).accuracy.times_direct;
    assert_true(same > 0.99 && same < 1.01);
}

/* Where terms are large, a large error is right; where they are small, a small one is wrong. */
static void test_largest_error_has_its_own_tolerance(void **state)
{
    (void)state;
    struct wpk_program op = parse("input X f32[2,4]\noutput Y f32[2]\nY[i] = sum(k:4) X[i,k]\n");
    struct wpk_answers answers = {0};
    assert_int_equal(wpk_answers_make(&op,
                                      &(struct wpk_input_options){
                                          .kind = WPK_INPUT_REALS, .seed = 3, .constants_seed = 3},
                                      0, &answers, NULL),
                     WPK_OK);
    ((double *)answers.value)[0] = ((double *)answers.magnitude)[0] = 1e6;
    ((double *)answers.value)[1] = ((double *)answers.magnitude)[1] = 1;
    const float y[2] = {1e6F + 0.0625F, 1 + 4e-7F}; /* an ulp, and three of them */
    struct wpk_verify_errors errors = {0};
    wpk_verify_compare(&op, &answers, 0, &(struct wpk_verify_rule){.times = 1}, y, &errors);
    assert_true(errors.ratio < 1);
    assert_int_equal(errors.point, 1);
    assert_true(errors.max == 0.0625);
    assert_true(errors.max_tolerance > 0.5 && errors.max_tolerance < 1);
    assert_true(errors.tolerance < 1e-5);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
}

/* The ratio of 0 where -7.4e-38 is right. */
static double judge_zero(const char *text)
{
    struct wpk_program op = parse(text);
    struct wpk_answers answers = {0};
    const struct wpk_input_options options = {
        .kind = WPK_INPUT_REALS, .seed = 3, .constants_seed = 3};
    struct wpk_verify_errors errors = {0};
    const float y[2] = {0};
    assert_int_equal(wpk_answers_make(&op, &options, 0, &answers, NULL), WPK_OK);
    for (int i = 0; i < 2; i++) {
        ((double *)answers.value)[i] = -7.4e-38;
        ((double *)answers.magnitude)[i] = 7.4e-38;
    }
    wpk_verify_compare(&op, &answers, 0, &(struct wpk_verify_rule){.times = 1}, y, &errors);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
    return errors.ratio;
}

/* A sigmoid that flushed to 0 may be multiplied by a large number. */
static void test_what_underflows_inside(void **state)
{
    (void)state;
    assert_true(judge_zero("input X f32[2]\noutput Y f32[2]\nY[i] = X[i] * sigmoid(X[i])\n") < 1);
    assert_true(judge_zero("input X f32[2]\noutput Y f32[2]\nY[i] = X[i] * X[i]\n") > 1);
}

/* One value of `op` replaced; returns the ratio. */
static double judge_value(const char *text, const struct wpk_verify_rule *rule, int at,
                          double value)
{
    struct wpk_program op = parse(text);
    struct wpk_answers answers = {0};
    assert_int_equal(
        wpk_answers_make(
            &op,
            &(struct wpk_input_options){.kind = WPK_INPUT_INTEGERS, .seed = 3, .constants_seed = 3},
            0, &answers, NULL),
        WPK_OK);
    enum wpk_dtype dtype = op.tensors[wpk_program_find_tensor(&op, "Y")].dtype;
    char *y = calloc((size_t)answers.count, 8);
    wpk_convert_narrow(dtype, answers.value, answers.count, y);
    if (at >= 0) {
        double wrong = answers.value[at] + value;
        wpk_convert_narrow(dtype, &wrong, 1, y + (size_t)at * wpk_dtype_size(dtype));
    }
    struct wpk_verify_errors errors = {0};
    wpk_verify_compare(&op, &answers, 0, rule, y, &errors);
    if (at >= 0 && errors.ratio > 0) {
        char text_of[200];
        assert_int_equal(errors.point, at);
        wpk_verify_describe(&op, &answers, &errors, text_of, sizeof(text_of));
        assert_int_equal(strncmp(text_of, "Y[", 2), 0);
    }
    free(y);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
    return errors.ratio;
}

static void test_values_that_are_none(void **state)
{
    (void)state;
    const struct wpk_verify_rule rules[] = {
        {.exact = true, .times = 1}, {.times = 1}, {.times = 1000}};
    for (int i = 0; i < 3; i++) {
        assert_true(judge_value(product, &rules[i], 5, NAN) == DBL_MAX);
        assert_true(judge_value(product, &rules[i], 511, INFINITY) > 1);
        assert_true(judge_value(product, &rules[i], 0, -INFINITY) > 1);
        assert_true(judge_value(product, &rules[i], -1, 0) <= 1);
    }
}

static void test_other_types(void **state)
{
    (void)state;
    const struct wpk_verify_rule exact = {.exact = true, .times = 1};
    static const char *const ops[] = {
        "input X i8[16,64]\nconstant W i8[64]\noutput Y i32[16]\n"
        "Y[i] = sum(k:64) i32(X[i,k]) * i32(W[k])\n",
        "input X f16[16,64]\nconstant W f16[64]\noutput Y f16[16]\nintermediate T f32[16]\n"
        "T[i] = sum(k:64) f32(X[i,k]) * f32(W[k])\nY[i] = f16(T[i])\n",
    };
    for (int i = 0; i < 2; i++) {
        assert_true(judge_value(ops[i], &exact, -1, 0) == 0);
        assert_true(judge_value(ops[i], &exact, 3, 1) > 1);
    }
}

/* Integers are right or wrong, whatever the algorithm; beside a step one of two is right. */
static void test_integers_are_exact(void **state)
{
    (void)state;
    const struct wpk_verify_rule wide = {.times = 16};
    static const char *const ops[] = {
        "input X i8[16,64]\nconstant W i8[64]\noutput Y i32[16]\n"
        "Y[i] = sum(k:64) i32(X[i,k]) * i32(W[k])\n",
        "input X i32[64]\noutput Y i8[64]\nintermediate T f32[64]\nT[i] = f32(X[i]) * 0.3\n"
        "Y[i] = i8(T[i])\n",
    };
    for (int i = 0; i < 2; i++) {
        for (int at = 0; at < 16; at++) {
            assert_true(judge_value(ops[i], &wide, at, 1) > 1);
            assert_true(judge_value(ops[i], &wide, at, -1) > 1);
        }
        assert_true(judge_value(ops[i], &wide, -1, 0) == 0);
    }
    /* 0.5 times an integer is beside a step for every odd one. */
    const char *half = "input X i32[64]\noutput Y i32[64]\nintermediate T f32[64]\n"
                       "T[i] = f32(X[i]) * 0.5\nY[i] = i32(T[i]) * 3\n";
    int beside = 0;
    for (int at = 0; at < 64; at++) {
        beside += judge_value(half, &wide, at, 3) == 1;
        assert_true(judge_value(half, &wide, at, 4) > 1);
    }
    assert_true(beside > 10 && beside < 50);
}

static void test_infinities_meet_their_like(void **state)
{
    (void)state;
    struct wpk_program op = parse("input X f32[4]\noutput Y f32[4]\nY[i] = X[i]\n");
    struct wpk_answers answers = {0};
    assert_int_equal(wpk_answers_make(&op,
                                      &(struct wpk_input_options){
                                          .kind = WPK_INPUT_REALS, .seed = 3, .constants_seed = 3},
                                      0, &answers, NULL),
                     WPK_OK);
    static const double special[] = {NAN, INFINITY, -INFINITY, 0};
    for (int right = 0; right < 4; right++) {
        for (int given = 0; given < 4; given++) {
            float y[4] = {0};
            struct wpk_verify_errors errors = {0};
            for (int i = 0; i < 4; i++) {
                ((double *)answers.value)[i] = special[right];
                ((double *)answers.magnitude)[i] = 1;
                y[i] = (float)special[given];
            }
            wpk_verify_compare(&op, &answers, 0, &(struct wpk_verify_rule){.times = 1}, y, &errors);
            assert_int_equal(errors.ratio > 1, right != given);
            assert_true(isfinite(errors.tolerance) && isfinite(errors.max_tolerance));
        }
    }
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
}

static void test_exactness(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool exact;
    } cases[] = {
        {product, true},
        {"input X f32[8]\noutput Y f32[8]\nY[i] = max(X[i] * 2 - 1, 0)\n", true},
        {"input X f32[8]\noutput Y f32[8]\nY[i] = X[i] * 0.1\n", false},
        {"input X f32[8]\noutput Y f32[8]\nY[i] = exp(X[i])\n", false},
        {"input X f32[8]\ninput Z f32[8]\noutput Y f32[8]\nY[i] = X[i] / Z[i]\n", false},
        {"input X f32[8]\noutput Y f32[8]\nintermediate T f16[8]\nT[i] = f16(X[i])\n"
         "Y[i] = f32(T[i])\n",
         false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program op = parse(cases[i].text);
        assert_int_equal(wpk_verify_is_exact(&op), cases[i].exact);
        wpk_program_fini(&op);
    }
}

/* Winograd is recognized by its constants: an error of its F(6,4) is in the second digit. */
static void test_transforms(void **state)
{
    (void)state;
    static const char convolution[] =
        "input X f32[1,8,16,16]\nconstant W f32[8,8,3,3]\noutput Y f32[1,8,16,16]\n"
        "Y[n,k,y,x] = sum(c:8,r:3,s:3) X[n,c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n";
    struct wpk_program op = parse(convolution);
    assert_false(wpk_verify_has_transforms(&op));
    assert_int_equal(wpk_derive_winograd(&op, wpk_contraction_find(&op), (const int64_t[]){4, 4}),
                     WPK_OK);
    assert_true(wpk_verify_has_transforms(&op));
    wpk_program_fini(&op);
}

/* One output of a set drawn at random is off by a unit in the last place. */
static double judge_ulp(const char *text, enum wpk_input_kind kind,
                        const struct wpk_verify_rule *rule)
{
    struct wpk_program op = parse(text);
    struct wpk_answers answers = {0};
    float y[64];
    const struct wpk_input_options inputs = {.kind = kind, .seed = 3, .constants_seed = 3};
    assert_int_equal(wpk_answers_make(&op, &inputs, 0, &answers, NULL), WPK_OK);
    assert_int_equal(answers.count, 64);
    wpk_convert_narrow(WPK_F32, answers.value, 64, y);
    y[17] = nextafterf(y[17], 100);
    struct wpk_verify_errors errors = {0};
    wpk_verify_compare(&op, &answers, 0, rule, y, &errors);
    assert_true(errors.ratio <= 1 || errors.point == 17);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
    return errors.ratio;
}

/* Where direct evaluation does not round, nor may an algorithm without transforms, on any set. */
static void test_what_is_exact_is_matched_bit_for_bit(void **state)
{
    (void)state;
    static const char pool[] =
        "input X f32[8,32]\noutput Y f32[8,8]\nY[i,j] = max(k:4) X[i,4*j+k]\n";
    static const char sum[] = "input X f32[64,9]\noutput Y f32[64]\nY[i] = sum(k:9) X[i,k]\n";
    const struct wpk_verify_rule exact = {.exact = true, .times = 16};
    const struct wpk_verify_rule transforms = {.transforms = true, .times = 16};
    for (int k = WPK_INPUT_INTEGERS; k <= WPK_INPUT_OFFSET; k++) {
        assert_true(judge_ulp(pool, (enum wpk_input_kind)k, &exact) > 1);
        assert_true(judge_ulp(pool, (enum wpk_input_kind)k, &transforms) < 1);
        bool integers = k == WPK_INPUT_INTEGERS;
        assert_int_equal(judge_ulp(sum, (enum wpk_input_kind)k, &exact) > 1, integers);
    }
}

/* Large integers are as exact as small ones. */
static void test_large_integers(void **state)
{
    (void)state;
    struct wpk_program op = parse(product);
    struct wpk_answers answers = {0};
    struct wpk_inputs inputs = {0};
    static float y[ROWS];
    const struct wpk_verify_rule rule = {.exact = true, .times = 16};
    assert_int_equal(wpk_answers_make(&op, &(struct wpk_input_options){.kind = WPK_INPUT_LARGE}, 0,
                                      &answers, NULL),
                     WPK_OK);
    assert_true(answers.magnitude_max > 0x1p21 && answers.magnitude_max < 0x1p24);
    assert_int_equal(wpk_inputs_make(&op, &answers.inputs, &inputs), WPK_OK);
    for (int right = 0; right < 2; right++) {
        struct wpk_verify_errors errors = {0};
        for (int i = 0; i < ROWS; i++) {
            const float *x = inputs.dense[0];
            y[i] = sum_in_lanes(x + i * TERMS, inputs.dense[1]);
        }
        y[77] += right ? 0 : 1;
        wpk_verify_compare(&op, &answers, 0, &rule, y, &errors);
        assert_int_equal(errors.ratio == 0, right);
        assert_true(errors.accuracy.times_direct == 0);
    }
    wpk_inputs_fini(&inputs);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_give_no_ratio),
        cmocka_unit_test(test_what_underflows_inside),
        cmocka_unit_test(test_what_is_exact_is_matched_bit_for_bit),
        cmocka_unit_test(test_large_integers),
        cmocka_unit_test(test_honest_sums_pass_with_margin),
        cmocka_unit_test(test_dishonest_sums_are_caught),
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_largest_error_has_its_own_tolerance),
        cmocka_unit_test(test_values_that_are_none),
        cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_integers_are_exact),
        cmocka_unit_test(test_infinities_meet_their_like),
        cmocka_unit_test(test_exactness),
        cmocka_unit_test(test_transforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
