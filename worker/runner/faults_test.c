/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/runner_ops.h"

#include "ir/derive/derive.h"
#include "ir/notation/notation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wpk_program parse(const char *text)
{
    struct wpk_program program = {0};
    struct wpk_diag diag = {0};
    if (wpk_program_parse(text, &program, &diag) != WPK_OK) {
        fail_msg("%s in %s", diag.text, text);
    }
    return program;
}

/* Find the faults that no input kind up to `last` shows. */
static void find_unseen(const char *text, enum wpk_input_kind last, char *out)
{
    struct wpk_program op = parse(text);
    assert_int_equal(wpk_faults_find(&op, 7, 300, (int)last + 1, out, NULL), WPK_OK);
    wpk_program_fini(&op);
}

static const char softmax[] =
    "input X f32[24,40]\noutput Y f32[24,40]\nintermediate M f32[24]\nintermediate S f32[24]\n"
    "M[i] = max(k:40) X[i,k]\nS[i] = sum(k:40) exp(X[i,k] - M[i])\n"
    "Y[i,j] = exp(X[i,j] - M[i]) / S[i]\n";

/* A softmax does not feel its maximum, unless something is far above the rest. */
static void test_maximum_of_a_softmax(void **state)
{
    (void)state;
    char unseen[WPK_FAULTS_TEXT_MAX];
    find_unseen(softmax, WPK_INPUT_OFFSET, unseen);
    assert_non_null(strstr(unseen, "M: identity"));
    find_unseen(softmax, WPK_INPUT_WIDE, unseen);
    assert_string_equal(unseen, "");
}

static void test_other_operators(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "input X f32[1,6,9,9]\nconstant W f32[5,6,3,3]\nconstant B f32[5]\noutput Y f32[1,5,9,9]\n"
        "intermediate T f32[1,5,9,9]\n"
        "T[n,k,y,x] = sum(c:6,r:3,s:3) X[n,c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n"
        "Y[n,k,y,x] = max(T[n,k,y,x] + B[k], 0)\n",
        "input X f32[16,48]\nconstant G f32[48]\nconstant B f32[48]\noutput Y f32[16,48]\n"
        "intermediate M f32[16]\nintermediate V f32[16]\nM[i] = sum(k:48) X[i,k] * (1.0 / 48)\n"
        "V[i] = sum(k:48) (X[i,k] - M[i]) * (X[i,k] - M[i]) * (1.0 / 48)\n"
        "Y[i,j] = (X[i,j] - M[i]) * rsqrt(V[i] + 0.00001) * G[j] + B[j]\n",
        "input X f32[1,4,12,12]\noutput Y f32[1,4,6,6]\n"
        "Y[n,c,y,x] = max(r:2,s:2) X[n,c,2*y+r,2*x+s]\n",
        "input A i8[16,40]\ninput B i8[40,24]\noutput C i32[16,24]\n"
        "C[i,j] = sum(k:40) i32(A[i,k]) * i32(B[k,j])\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char unseen[WPK_FAULTS_TEXT_MAX];
        find_unseen(texts[i], WPK_INPUT_WIDE, unseen);
        assert_string_equal(unseen, "");
    }
}

/* Sums that are always large leave a tanh nothing to feel, and a quantised output is 0 for small
 * inputs: then constants scaled by their terms join, or large integers. */
static void test_sets_join(void **state)
{
    (void)state;
    static const char saturated[] =
        "input X f32[64,256]\nconstant W f32[256]\noutput Y f32[64]\nintermediate T f32[64]\n"
        "T[i] = sum(k:256) (X[i,k] * W[k]) * (X[i,k] * W[k])\nY[i] = tanh(T[i])\n";
    static const char quantised[] = "input X f32[64,2]\noutput Y f32[64]\nintermediate T f32[64]\n"
                                    "T[i] = sum(k:2) X[i,k]\nY[i] = max(floor(T[i] * 0.01), 0)\n";
    char unseen[WPK_FAULTS_TEXT_MAX];
    find_unseen(saturated, WPK_INPUT_WIDE, unseen);
    assert_non_null(strstr(unseen, "T: first term dropped"));
    find_unseen(saturated, WPK_INPUT_SCALED, unseen);
    assert_string_equal(unseen, "");
    find_unseen(quantised, WPK_INPUT_SCALED, unseen);
    assert_non_null(strstr(unseen, "Y: neighbour's value"));
    find_unseen(quantised, WPK_INPUT_LARGE, unseen);
    assert_string_equal(unseen, "");
}

/* Two batches share a mask, so that the maxima of one do for the other while logits are small. */
static void test_neighbours_along_each_axis(void **state)
{
    (void)state;
    static const char attention[] =
        "input Q f32[2,6,8]\ninput K f32[2,6,8]\ninput A f32[6,6]\noutput Y f32[2,6,6]\n"
        "intermediate T f32[2,6,6]\nintermediate M f32[2,6]\nintermediate S f32[2,6]\n"
        "T[b,i,j] = (sum(k:8) Q[b,i,k] * K[b,j,k]) * 0.35355339059327373 + A[i,j]\n"
        "M[b,i] = max(j:6) T[b,i,j]\nS[b,i] = sum(j:6) exp(T[b,i,j] - M[b,i])\n"
        "Y[b,i,j] = exp(T[b,i,j] - M[b,i]) / S[b,i]\n";
    char unseen[WPK_FAULTS_TEXT_MAX];
    find_unseen(attention, WPK_INPUT_WIDE, unseen);
    assert_non_null(strstr(unseen, "M: neighbour's value"));
    find_unseen(attention, WPK_INPUT_LARGE, unseen);
    assert_string_equal(unseen, "");
}

/* A fault of a stage that only the second output reads shows in the second output. */
static void test_each_output_is_looked_at(void **state)
{
    (void)state;
    static const char two[] = "input X f32[12,20]\noutput T f32[12,20]\noutput Y f32[12]\n"
                              "T[i,k] = X[i,k] * 2\nY[i] = sum(k:20) T[i,k]\n";
    char unseen[WPK_FAULTS_TEXT_MAX];
    find_unseen(two, WPK_INPUT_WIDE, unseen);
    assert_string_equal(unseen, "");
}

/* They are not drawn where the others show all. */
static void test_sets_that_need_not_join(void **state)
{
    (void)state;
    struct wpk_program op = parse(softmax);
    struct wpk_answers answers[WPK_INPUT_KINDS] = {0};
    for (int k = 0; k < WPK_INPUT_JOINING; k++) {
        const struct wpk_input_options inputs = {.kind = (enum wpk_input_kind)k, .seed = 7};
        assert_true(wpk_faults_ask_for(&op, answers, inputs.kind));
        assert_int_equal(wpk_answers_make(&op, &inputs, 300, &answers[k], NULL), WPK_OK);
        assert_true(k > WPK_INPUT_WIDE || wpk_faults_ask_for(&op, answers, WPK_INPUT_SCALED));
        assert_int_equal(wpk_faults_look(&op, &answers[k]), WPK_OK);
    }
    assert_false(wpk_faults_ask_for(&op, answers, WPK_INPUT_SCALED));
    assert_false(wpk_faults_ask_for(&op, answers, WPK_INPUT_LARGE));
    for (int k = 0; k < WPK_INPUT_JOINING; k++) {
        wpk_answers_fini(&answers[k]);
    }
    wpk_program_fini(&op);
}

/* A stage that nothing depends on cannot be seen, and that is said. */
static void test_what_cannot_be_seen(void **state)
{
    (void)state;
    char unseen[WPK_FAULTS_TEXT_MAX];
    find_unseen("input X f32[16]\noutput Y f32[16]\nintermediate T f32[16]\nT[i] = max(X[i], 0)\n"
                "Y[i] = T[i] * 0\n",
                WPK_INPUT_WIDE, unseen);
    assert_non_null(strstr(unseen, "T: neighbour's value; T: identity"));
}

static void test_faults_are_programs(void **state)
{
    (void)state;
    struct wpk_program op = parse(softmax);
    for (int s = 0; s < op.stage_count; s++) {
        for (int f = 0; f < WPK_FAULT_COUNT; f++) {
            struct wpk_program faulty;
            bool reduces = op.stages[s].reduction != WPK_REDUCE_NONE;
            wpk_err err = wpk_fault_make(&op, s, (enum wpk_fault)f, 0, &faulty);
            bool has = reduces || f == WPK_FAULT_NEIGHBOUR || f == WPK_FAULT_IDENTITY;
            assert_int_equal(err, has ? WPK_OK : WPK_ENOENT);
            if (has) {
                assert_int_equal(wpk_program_validate(&faulty, NULL), WPK_OK);
                wpk_program_fini(&faulty);
            }
        }
    }
    wpk_program_fini(&op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maximum_of_a_softmax),
        cmocka_unit_test(test_other_operators),
        cmocka_unit_test(test_sets_join),
        cmocka_unit_test(test_neighbours_along_each_axis),
        cmocka_unit_test(test_each_output_is_looked_at),
        cmocka_unit_test(test_sets_that_need_not_join),
        cmocka_unit_test(test_what_cannot_be_seen),
        cmocka_unit_test(test_faults_are_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
