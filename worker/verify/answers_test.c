/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/verify/answers.h"

#include "ir/notation/notation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

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

static const char convolution[] =
    "input X f32[1,8,16,16]\nconstant W f32[8,8,3,3]\noutput Y f32[1,8,16,16]\n"
    "Y[n,k,y,x] = sum(c:8,r:3,s:3) X[n,c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n";

static void make_reals(const struct wpk_program *op, uint64_t seed, int64_t samples,
                       struct wpk_answers *out)
{
    const struct wpk_input_options inputs = {.kind = WPK_INPUT_REALS, .seed = seed};
    assert_int_equal(wpk_answers_make(op, &inputs, samples, out, NULL), WPK_OK);
}

static void test_answers_as_file(void **state)
{
    (void)state;
    char path[] = "/tmp/wpk-answers-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    struct wpk_program op = parse(convolution);
    for (int64_t samples = 0; samples <= 50; samples += 50) {
        struct wpk_answers made = {0};
        struct wpk_answers read = {0};
        make_reals(&op, 9, samples, &made);
        assert_int_equal(made.whole, samples == 0);
        assert_int_equal(wpk_answers_save(&made, path, NULL), WPK_OK);
        assert_int_equal(wpk_answers_load(path, &read), WPK_OK);
        assert_int_equal(read.count, made.count);
        assert_int_equal(read.inputs.seed, 9);
        assert_memory_equal(read.value, made.value, (size_t)made.count * sizeof(double));
        assert_memory_equal(read.magnitude, made.magnitude, (size_t)made.count * sizeof(double));
        assert_true(read.magnitude_max == made.magnitude_max);
        assert_true(read.direct_error == made.direct_error && made.direct_error > 0);
        wpk_answers_fini(&read);
        assert_int_equal(truncate(path, (off_t)made.block_size - 1), 0);
        assert_int_equal(wpk_answers_load(path, &read), WPK_ECORRUPT);
        wpk_answers_fini(&made);
    }
    assert_int_equal(wpk_answers_load("/nowhere", &(struct wpk_answers){0}), WPK_ENOENT);
    unlink(path);
    close(fd);
    wpk_program_fini(&op);
}

/* Direct evaluation is exact on small integers, and off by some last places on reals: as much at
 * some points as at all. */
static void test_direct_error(void **state)
{
    (void)state;
    struct wpk_program op = parse(convolution);
    static const enum wpk_input_kind kinds[] = {WPK_INPUT_INTEGERS, WPK_INPUT_REALS,
                                                WPK_INPUT_RELU};
    for (int k = 0; k < 3; k++) {
        double error[2];
        for (int sampled = 0; sampled < 2; sampled++) {
            struct wpk_answers answers = {0};
            const struct wpk_input_options inputs = {.kind = kinds[k], .seed = 4};
            int64_t samples = sampled != 0 ? 1000 : 0;
            assert_int_equal(wpk_answers_make(&op, &inputs, samples, &answers, NULL), WPK_OK);
            error[sampled] = answers.direct_error;
            wpk_answers_fini(&answers);
        }
        assert_int_equal(error[0] > 1e-8 && error[0] < 1e-5, kinds[k] != WPK_INPUT_INTEGERS);
        assert_true(fabs(error[1] - error[0]) <= 0.2 * error[0]);
    }
    wpk_program_fini(&op);
}

/* Sampled points give what the whole gives there. */
static void test_samples_equal_whole(void **state)
{
    (void)state;
    struct wpk_program op = parse(convolution);
    struct wpk_answers whole = {0};
    struct wpk_answers some = {0};
    make_reals(&op, 4, 0, &whole);
    make_reals(&op, 4, 300, &some);
    for (int64_t i = 0; i < some.count; i++) {
        const int64_t *p = some.points + i * 4;
        int64_t at = ((p[0] * 8 + p[1]) * 16 + p[2]) * 16 + p[3];
        assert_true(fabs(whole.value[at] - some.value[i]) < 1e-12);
    }
    wpk_answers_fini(&whole);
    wpk_answers_fini(&some);
    wpk_program_fini(&op);
}

static void test_undefined_ops_get_positive_inputs(void **state)
{
    (void)state;
    struct wpk_program op = parse("input X f32[64]\noutput Y f32[64]\nY[i] = log(X[i])\n");
    struct wpk_answers answers = {0};
    make_reals(&op, 4, 0, &answers);
    assert_int_equal(answers.inputs.domain, WPK_DRAW_POSITIVE);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
}

static const char softmax[] =
    "input X f32[6,40]\noutput Y f32[6,40]\nintermediate M f32[6]\nintermediate S f32[6]\n"
    "M[i] = max(k:40) X[i,k]\nS[i] = sum(k:40) exp(X[i,k] - M[i])\n"
    "Y[i,j] = exp(X[i,j] - M[i]) / S[i]\n";

/* An infinity that the operator's formula writes is a right answer, on all inputs. */
static void test_outputs_may_be_infinite(void **state)
{
    (void)state;
    struct wpk_program op = parse("input X f32[9,14]\noutput Y f32[9,14]\n"
                                  "Y[i,j] = select(j <= i, X[i,j], -inf)\n");
    struct wpk_answers answers;
    const struct wpk_input_options reals = {.kind = WPK_INPUT_REALS, .seed = 3};
    int infinite = 0;
    assert_int_equal(wpk_answers_make(&op, &reals, 0, &answers, NULL), WPK_OK);
    assert_int_equal(answers.inputs.domain, WPK_DRAW_ANY);
    for (int64_t i = 0; i < answers.count; i++) {
        infinite += isinf(answers.value[i]) != 0;
    }
    assert_int_equal(infinite, 9 * 14 - 45);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
}

/* Each output of a program has answers of its own. */
static void test_each_output_has_answers(void **state)
{
    (void)state;
    struct wpk_program op = parse("input A f32[64,64]\ninput B f32[64,64]\noutput T f32[64,64]\n"
                                  "output Y f32[64,64]\nT[i,j] = sum(k:64) A[i,k] * B[k,j]\n"
                                  "Y[i,j] = max(T[i,j], 0)\n");
    struct wpk_program view;
    struct wpk_answers first, second;
    const struct wpk_input_options reals = {.kind = WPK_INPUT_REALS, .seed = 3};
    assert_int_equal(wpk_program_view(&op, wpk_program_find_tensor(&op, "Y"), &view), WPK_OK);
    assert_int_equal(wpk_answers_make(&op, &reals, 1024, &first, NULL), WPK_OK);
    assert_int_equal(wpk_answers_make(&view, &reals, 1024, &second, NULL), WPK_OK);
    assert_int_equal(first.count, second.count);
    for (int64_t i = 0; i < first.count; i++) {
        assert_true(second.value[i] == fmax(first.value[i], 0));
    }
    wpk_answers_fini(&first);
    wpk_answers_fini(&second);
    wpk_program_fini(&view);
    wpk_program_fini(&op);
}

/* Every row has masked elements and others, and two that are far above the rest. */
static void test_inputs_of_an_exp(void **state)
{
    (void)state;
    struct wpk_program op = parse(softmax);
    struct wpk_inputs masked = {0};
    struct wpk_inputs wide = {0};
    assert_int_equal(
        wpk_inputs_make(&op, &(struct wpk_input_options){.kind = WPK_INPUT_MASKED}, &masked),
        WPK_OK);
    assert_int_equal(
        wpk_inputs_make(&op, &(struct wpk_input_options){.kind = WPK_INPUT_WIDE}, &wide), WPK_OK);
    for (int i = 0; i < 6; i++) {
        int infinite = 0;
        int spikes = 0;
        for (int k = 0; k < 40; k++) {
            float x = ((const float *)masked.dense[0])[i * 40 + k];
            infinite += isinf(x) && x < 0;
            spikes += ((const float *)wide.dense[0])[i * 40 + k] >= 1000;
        }
        assert_true(infinite > 4 && infinite <= 30);
        assert_int_equal(spikes, 2);
    }
    wpk_inputs_fini(&masked);
    wpk_inputs_fini(&wide);
    wpk_program_fini(&op);
}

/* A row that is masked whole is NaN where kernels make NaN of it too, by dividing 0 by 0; else no
 * row is. */
static void test_whole_rows(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool rows;
    } cases[] = {
        {softmax, true},
        {"input X f32[6,40]\noutput S f32[6]\nintermediate M f32[6]\nM[i] = max(k:40) X[i,k]\n"
         "S[i] = sum(k:40) exp(X[i,k] - M[i])\n",
         true},
        /* NaN meets a comparison */
        {"input X f32[6,40]\noutput Y f32[6,40]\nintermediate M f32[6]\nintermediate S f32[6]\n"
         "M[i] = max(k:40) X[i,k]\nS[i] = sum(k:40) exp(X[i,k] - M[i])\n"
         "Y[i,j] = max(exp(X[i,j] - M[i]) / S[i], 0)\n",
         false},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct wpk_program op = parse(cases[c].text);
        struct wpk_answers answers = {0};
        int64_t nan_count = 0;
        const struct wpk_input_options inputs = {.kind = WPK_INPUT_MASKED};
        assert_int_equal(wpk_answers_make(&op, &inputs, 400, &answers, NULL), WPK_OK);
        assert_true(answers.count > 0);
        for (int64_t i = 0; i < answers.count; i++) {
            nan_count += isnan(answers.value[i]);
        }
        assert_int_equal(answers.inputs.rows, cases[c].rows);
        assert_int_equal(nan_count, cases[c].rows ? answers.count / 6 : 0);
        wpk_answers_fini(&answers);
        wpk_program_fini(&op);
    }
}

/* Sums stay in the accumulator; functions that would overflow get smaller integers. */
static void test_large_integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double below;
    } cases[] = {
        {convolution, 0x1p24},
        {"input A f64[9,20]\ninput B f64[20,9]\noutput C f64[9,9]\n"
         "C[i,j] = sum(k:20) A[i,k] * B[k,j]\n",
         0x1p53},
        {"input A i32[9,20]\ninput B i32[20,9]\noutput C i32[9,9]\n"
         "C[i,j] = sum(k:20) A[i,k] * B[k,j]\n",
         0x1p31},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct wpk_program op = parse(cases[c].text);
        struct wpk_answers answers = {0};
        const struct wpk_input_options inputs = {.kind = WPK_INPUT_LARGE, .seed = c};
        assert_int_equal(wpk_answers_make(&op, &inputs, 0, &answers, NULL), WPK_OK);
        assert_true(answers.exact && answers.count > 0);
        assert_true(answers.magnitude_max > cases[c].below / 16);
        assert_true(answers.magnitude_max < cases[c].below);
        wpk_answers_fini(&answers);
        wpk_program_fini(&op);
    }
    /* Of other doubles nobody knows: the reference is no more precise than direct evaluation. */
    struct wpk_program sum = parse(cases[1].text);
    struct wpk_answers doubles = {0};
    const struct wpk_input_options reals = {.kind = WPK_INPUT_REALS};
    assert_int_equal(wpk_answers_make(&sum, &reals, 0, &doubles, NULL), WPK_OK);
    assert_false(doubles.exact);
    wpk_answers_fini(&doubles);
    wpk_program_fini(&sum);
    struct wpk_program op = parse("input X f32[64]\noutput Y f32[64]\nY[i] = exp(X[i])\n");
    struct wpk_answers answers = {0};
    const struct wpk_input_options inputs = {.kind = WPK_INPUT_LARGE};
    assert_int_equal(wpk_answers_make(&op, &inputs, 0, &answers, NULL), WPK_OK);
    assert_true(answers.count == 0 || answers.inputs.large < 1000);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
}

/* Acosh is defined from 1 on, atanh below it. */
static void test_domains_of_functions(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        enum wpk_draw_domain domain[2]; /* of integers and reals */
    } cases[] = {
        {"sqrt(X[i]) + 1", {WPK_DRAW_POSITIVE, WPK_DRAW_POSITIVE}},
        {"log(X[i] + sqrt(X[i] * X[i] - 1))", {WPK_DRAW_POSITIVE, WPK_DRAW_ABOVE_ONE}},
        {"log((1 + X[i]) / (1 - X[i]))", {WPK_DRAW_BELOW_ONE, WPK_DRAW_ANY}},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        char text[256];
        snprintf(text, sizeof(text), "input X f32[999]\noutput Y f32[999]\nY[i] = %s\n",
                 cases[c].expression);
        struct wpk_program op = parse(text);
        for (int kind = WPK_INPUT_INTEGERS; kind <= WPK_INPUT_REALS; kind++) {
            const struct wpk_input_options inputs = {.kind = (enum wpk_input_kind)kind};
            struct wpk_answers answers = {0};
            assert_int_equal(wpk_answers_make(&op, &inputs, 0, &answers, NULL), WPK_OK);
            assert_int_equal(answers.inputs.domain, cases[c].domain[kind]);
            assert_true(answers.count == 999);
            wpk_answers_fini(&answers);
        }
        wpk_program_fini(&op);
    }
}

/* Labels lie in their axis, and are not all the one that is left out: the mean is a number. */
static void test_labels_are_of_their_axis(void **state)
{
    (void)state;
    struct wpk_program op =
        parse("input X f32[2,3]\ninput L i64[2]\nintermediate S f32[]\nintermediate V f32[]\n"
              "output Y f32[]\n"
              "S[] = sum.f32(d:2,c:3) select(L[d] == c && c != 0, X[d,c], f32(0))\n"
              "V[] = sum.f32(d:2,c:3) select(L[d] == c && c != 0, f32(1), f32(0))\n"
              "Y[] = S[] / V[]\n");
    for (int kind = WPK_INPUT_INTEGERS; kind <= WPK_INPUT_REALS; kind++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            const struct wpk_input_options inputs = {.kind = (enum wpk_input_kind)kind,
                                                     .seed = seed};
            struct wpk_answers answers = {0};
            assert_int_equal(wpk_answers_make(&op, &inputs, 0, &answers, NULL), WPK_OK);
            assert_int_equal(answers.count, 1);
            wpk_answers_fini(&answers);
        }
    }
    wpk_program_fini(&op);
}

/* The special set shows faults in comparisons and in functions of special values. */
static void expect_special(const char *expression, bool infinite, bool nan)
{
    char text[256];
    int64_t infinities = 0, nans = 0, left_out = 0;
    snprintf(text, sizeof(text), "input X f32[6]\noutput Y f32[6]\nY[i] = %s\n", expression);
    struct wpk_program op = parse(text);
    struct wpk_answers answers = {0};
    const struct wpk_input_options inputs = {.kind = WPK_INPUT_SPECIAL};
    assert_int_equal(wpk_answers_make(&op, &inputs, 0, &answers, NULL), WPK_OK);
    assert_int_equal(wpk_answers_draw_more(&op, &answers, NULL), WPK_OK);
    for (int64_t i = 0; i < answers.draws * answers.count; i++) {
        infinities += isinf(answers.value[i]) && answers.magnitude[i] >= 0;
        nans += isnan(answers.value[i]) && answers.magnitude[i] >= 0;
        left_out += answers.magnitude[i] < 0;
    }
    assert_true(answers.draws > 100); /* all special values meet all lanes */
    assert_int_equal(infinities > 0, infinite);
    assert_int_equal(nans > 0, nan);
    assert_true(left_out < answers.draws * answers.count / 4);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
}

static void test_special_values(void **state)
{
    (void)state;
    expect_special("max(X[i], 0)", true, true);
    expect_special("select(isnan(X[i]), 7, 1)", false, false);
    expect_special("select(X[i] == inf, 1, 0)", false, false);
    expect_special("min(max(X[i], -1), 1)", false, true);
    expect_special("exp(X[i])", true, true);
    expect_special("tanh(X[i])", false, true);
    expect_special("select(X[i] < 1, X[i] * X[i], 0)", true, false);
}

/* A kind that has nothing of its own to try, or on which the op is undefined, is left out. */
static void test_kinds_that_do_not_apply(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool given[WPK_INPUT_KINDS];
    } cases[] = {
        {softmax, {true, true, true, true, true, true, false, false, true}},
        {"input X f32[9]\noutput Y f32[9]\nY[i] = X[i] + 1\n",
         {true, true, true, true, false, false, false, false, true}},
        {"input X f32[9]\noutput Y f32[9]\nY[i] = log(X[i])\n",
         {true, true, true, true, false, false, true, false, true}},
        {"input X f32[9]\noutput Y f32[9]\nY[i] = exp(X[i])\n",
         {true, true, true, true, true, false, true, false, true}},
        {"input A f32[9]\ninput B f32[9]\noutput Y f32[9]\nY[i] = exp(A[i] + B[i])\n",
         {true, true, true, true, true, false, false, false, false}},
        {"input X i8[9]\noutput Y i8[9]\nY[i] = max(X[i], 3)\n",
         {true, true, false, false, false, false, false, false, true}},
        {convolution, {true, true, true, true, false, false, false, true, true}},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct wpk_program op = parse(cases[c].text);
        for (int k = 0; k < WPK_INPUT_KINDS; k++) {
            const struct wpk_input_options inputs = {.kind = (enum wpk_input_kind)k};
            struct wpk_answers answers = {0};
            assert_int_equal(wpk_answers_make(&op, &inputs, 100, &answers, NULL), WPK_OK);
            assert_int_equal(answers.count > 0, cases[c].given[k]);
            wpk_answers_fini(&answers);
        }
        wpk_program_fini(&op);
    }
}

static bool has_index(const struct wpk_answers *answers, int dimension, int64_t index)
{
    for (int64_t i = 0; i < answers->count; i++) {
        if (answers->points[i * answers->rank + dimension] == index) {
            return true;
        }
    }
    return false;
}

/* However few points there are and whatever is drawn: tails and padding go wrong at the borders. */
static void test_samples_reach_every_border(void **state)
{
    (void)state;
    struct wpk_program op = parse("input X f32[500]\ninput Z f32[700]\noutput Y f32[3,500,700]\n"
                                  "Y[b,i,j] = X[i] * Z[j] + f32(b)\n");
    static const int64_t extent[] = {3, 500, 700};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        for (int64_t samples = 2; samples <= 18; samples += 16) {
            struct wpk_answers answers = {0};
            make_reals(&op, seed, samples, &answers);
            assert_int_equal(answers.count, samples);
            for (int d = 0; d < 3; d++) {
                assert_true(has_index(&answers, d, 0));
                assert_true(has_index(&answers, d, extent[d] - 1));
            }
            /* Not in the corners alone. */
            bool inside = samples == 2 || has_index(&answers, 0, 1);
            for (int64_t j = 3; j < 697 && !inside; j++) {
                inside = has_index(&answers, 2, j);
            }
            assert_true(inside);
            wpk_answers_fini(&answers);
        }
    }
    wpk_program_fini(&op);
}

/* Near a border fewer terms are summed, and direct evaluation errs less: points that make a set's
 * error lie there no more often than those of the output do. */
static void test_errors_are_those_of_the_whole_output(void **state)
{
    (void)state;
    struct wpk_program op = parse("input X f32[80]\ninput Z f32[100]\noutput Y f32[80,100]\n"
                                  "Y[i,j] = X[i] * Z[j]\n");
    struct wpk_answers answers = {0};
    make_reals(&op, 1, WPK_ANSWERS_SAMPLE_COUNT, &answers);
    int64_t counted = 0, border = 0;
    for (int64_t p = 0; p < answers.count; p++) {
        int64_t i = answers.points[2 * p], j = answers.points[2 * p + 1];
        counted += wpk_answers_count(&answers, p);
        border += wpk_answers_count(&answers, p) && (i < 2 || i >= 78 || j < 2 || j >= 98);
    }
    assert_true(counted >= WPK_ACCURACY_POINTS_MIN);
    double share = (double)border / (double)counted;
    assert_true(share > 0.07 && share < 0.11); /* 1 - 0.95 * 0.96 = 0.088 */
    assert_true(answers.count - counted > WPK_ACCURACY_POINTS_MIN / 8);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
}

/* An output of 8 values: its error is that of 4,096, in any kind of set, and survives the file. */
static void test_small_outputs_are_drawn_again(void **state)
{
    (void)state;
    struct wpk_program op = parse("input A f32[8,96]\nconstant B f32[96]\noutput Y f32[8]\n"
                                  "Y[i] = sum(k:96) A[i,k] * B[k]\n");
    static const enum wpk_input_kind kinds[] = {WPK_INPUT_REALS, WPK_INPUT_RELU};
    for (int k = 0; k < 2; k++) {
        const struct wpk_input_options inputs = {.kind = kinds[k], .seed = 3, .constants_seed = 4};
        struct wpk_answers answers = {0}, loaded = {0};
        struct wpk_input_options draws[2];
        assert_int_equal(
            wpk_answers_make(&op, &inputs, k == 0 ? 0 : WPK_ANSWERS_SAMPLE_COUNT, &answers, NULL),
            WPK_OK);
        double first = answers.value[7];
        assert_int_equal(answers.draws, 1);
        assert_int_equal(wpk_answers_draw_more(&op, &answers, NULL), WPK_OK);
        assert_true(answers.whole && answers.count == 8);
        assert_int_equal(answers.draws, WPK_ACCURACY_POINTS_MIN / 8);
        assert_true(answers.value[7] == first && answers.value[15] != first);
        assert_true(answers.direct_error > 0);
        draws[0] = wpk_answers_inputs(&answers, 0);
        draws[1] = wpk_answers_inputs(&answers, 1);
        assert_true(draws[0].seed == 3 && draws[1].seed != 3);
        assert_true(wpk_inputs_share_constants(&draws[0], &draws[1]));
        assert_int_equal(wpk_answers_save(&answers, "draws.answers", NULL), WPK_OK);
        assert_int_equal(wpk_answers_load("draws.answers", &loaded), WPK_OK);
        assert_int_equal(loaded.draws, answers.draws);
        assert_true(loaded.magnitude[4095] == answers.magnitude[4095]);
        assert_true(loaded.direct_error == answers.direct_error);
        wpk_answers_fini(&loaded);
        wpk_answers_fini(&answers);
        assert_int_equal(unlink("draws.answers"), 0);
    }
    wpk_program_fini(&op);
}

/* An operator without a reduction can be too large as well: this one would take 4 GiB. */
static void test_large_pointwise_ops_are_sampled(void **state)
{
    (void)state;
    struct wpk_program op = parse("input X f32[16384]\ninput Z f32[16384]\n"
                                  "output Y f32[16384,16384]\nY[i,j] = exp(X[i] - Z[j])\n");
    struct wpk_answers answers = {0};
    make_reals(&op, 1, 0, &answers);
    assert_false(answers.whole);
    assert_int_equal(answers.count, WPK_ANSWERS_SAMPLE_COUNT);
    assert_true(answers.value[0] > exp(-2) && answers.value[0] < exp(2));
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
}

/* Y's two elements each take side * side. */
static wpk_err make_large(int64_t side, int64_t samples, struct wpk_diag *diag)
{
    char text[200];
    snprintf(text, sizeof(text),
             "input A f32[%lld]\noutput Y f32[2]\nY[i] = sum(k:%lld,l:%lld) A[k] * A[l]\n",
             (long long)side, (long long)side, (long long)side);
    struct wpk_program op = parse(text);
    struct wpk_answers answers = {0};
    wpk_err err =
        wpk_answers_make(&op, &(struct wpk_input_options){.kind = WPK_INPUT_REALS, .seed = 1},
                         samples, &answers, diag);
    wpk_answers_fini(&answers);
    wpk_program_fini(&op);
    return err;
}

/* Not even one point: said, and nothing computed. A fresh set has a candidate's time only. */
static void test_too_large_a_point(void **state)
{
    (void)state;
    struct wpk_diag diag = {0};
    assert_int_equal(make_large(40000, 0, &diag), WPK_EUNSUPPORTED);
    assert_true(diag.text[0] != '\0');
    diag = (struct wpk_diag){0};
    assert_int_equal(make_large(20000, 2, &diag), WPK_EUNSUPPORTED);
    assert_true(diag.text[0] != '\0');
    assert_int_equal(make_large(200, 2, &diag), WPK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_as_file),
        cmocka_unit_test(test_direct_error),
        cmocka_unit_test(test_samples_equal_whole),
        cmocka_unit_test(test_undefined_ops_get_positive_inputs),
        cmocka_unit_test(test_outputs_may_be_infinite),
        cmocka_unit_test(test_each_output_has_answers),
        cmocka_unit_test(test_inputs_of_an_exp),
        cmocka_unit_test(test_whole_rows),
        cmocka_unit_test(test_large_integers),
        cmocka_unit_test(test_domains_of_functions),
        cmocka_unit_test(test_labels_are_of_their_axis),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_kinds_that_do_not_apply),
        cmocka_unit_test(test_samples_reach_every_border),
        cmocka_unit_test(test_errors_are_those_of_the_whole_output),
        cmocka_unit_test(test_small_outputs_are_drawn_again),
        cmocka_unit_test(test_large_pointwise_ops_are_sampled),
        cmocka_unit_test(test_too_large_a_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
