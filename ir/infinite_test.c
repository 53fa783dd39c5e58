/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/infinite.h"
#include "ir/notation/notation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Which tensors may be infinite, by the first letters of their names. */
static void expect(const char *text, const char *infinite)
{
    struct wpk_program program = {0};
    struct wpk_infinite found;
    struct wpk_diag diag = {0};
    if (wpk_program_parse(text, &program, &diag) != WPK_OK) {
        fail_msg("%s of %s", diag.text, text);
    }
    wpk_infinite_find(&program, &found);
    for (int t = 0; t < program.tensor_count; t++) {
        bool wanted = strchr(infinite, program.tensors[t].name[0]) != NULL;
        if (found.tensor[t] != wanted) {
            fail_msg("%s of %s", program.tensors[t].name, text);
        }
    }
    wpk_program_fini(&program);
}

static void test_masks_are_found(void **state)
{
    (void)state;
    expect("input X f32[4,8]\ninput A f32[4,8]\noutput Y f32[4,8]\nintermediate M f32[4]\n"
           "intermediate S f32[4]\nM[i] = max(k:8) (X[i,k] + A[i,k])\n"
           "S[i] = sum(k:8) exp(X[i,k] + A[i,k] - M[i])\n"
           "Y[i,j] = exp(X[i,j] + A[i,j] - M[i]) / S[i]\n",
           "XAM");
    /* scaled: what is multiplied may be 0 times infinite */
    expect("input X f32[8]\ninput A f32[8]\noutput Y f32[8]\nY[i] = exp(X[i] * 0.5 + A[i])\n", "A");
    /* subtracted, it would be an exp of +inf */
    expect("input X f32[8]\ninput B f32[8]\noutput Y f32[8]\nY[i] = exp(X[i] - B[i])\n", "X");
    /* the output of a log-softmax is one itself */
    expect("input X f32[8]\noutput Y f32[8]\nintermediate S f32[1]\n"
           "S[i] = sum(k:8) exp(X[k])\nY[i] = X[i] - log(S[0])\n",
           "XY");
    expect("input X f32[8]\noutput Y f32[8]\nY[i] = X[i] / (1 + X[i])\n", "");
    /* a maximum may be of masked terms alone; a product's factors are scaled */
    expect("input X f32[4,8]\noutput Y f32[4]\nY[i] = max(k:8) X[i,k]\n", "XY");
    expect("input X f32[4,8]\ninput C f32[4]\noutput Y f32[4]\n"
           "Y[i] = max(k:8) (X[i,k] * 2 + C[i])\n",
           "CY");
}

/* Whether whole rows may be masked. */
static void expect_rows(const char *text, bool rows)
{
    struct wpk_program program = {0};
    static struct wpk_infinite found;
    assert_int_equal(wpk_program_parse(text, &program, NULL), WPK_OK);
    wpk_infinite_find(&program, &found);
    assert_int_equal(found.rows, rows);
    wpk_program_fini(&program);
}

#define MAXIMUM                                                                                    \
    "input X f32[4,8]\noutput Y f32[4,8]\nintermediate M f32[4]\nM[i] = max(k:8) X[i,k]\n"

static void test_whole_rows(void **state)
{
    (void)state;
    expect_rows(MAXIMUM "Y[i,j] = exp(X[i,j] - M[i])\n", true);
    expect_rows(MAXIMUM "Y[i,j] = tanh(exp(X[i,j] - M[i]))\n", true);
    expect_rows(MAXIMUM "Y[i,j] = sqrt(exp(X[i,j] - M[i])) + exp(X[i,j])\n", true);
    expect_rows(MAXIMUM "Y[i,j] = max(exp(X[i,j] - M[i]), 0.5)\n", false);
    expect_rows(MAXIMUM "Y[i,j] = select(X[i,j] - M[i] < 0 - 3, 0, exp(X[i,j]))\n", false);
    expect_rows("input X f32[4,8]\noutput Y f32[4]\nY[i] = max(k:8) X[i,k] * 2\n", false);
}

/* How many operations are strict, and how many reductions. */
static void expect_strict(const char *text, int operations, int reductions)
{
    struct wpk_program program = {0};
    static struct wpk_infinite found;
    int strict = 0, reducing = 0;
    assert_int_equal(wpk_program_parse(text, &program, NULL), WPK_OK);
    wpk_infinite_find(&program, &found);
    for (int i = 0; i < program.node_count; i++) {
        enum wpk_node_kind kind = program.nodes[i].kind;
        bool operates = kind == WPK_NODE_UNARY || kind == WPK_NODE_BINARY || kind == WPK_NODE_CAST;
        strict += operates && found.strict[i];
    }
    for (int s = 0; s < program.stage_count; s++) {
        reducing += found.reduction[s];
    }
    if (strict != operations || reducing != reductions) {
        fail_msg("%d operations and %d reductions are strict in\n%s", strict, reducing, text);
    }
    assert_int_equal(found.any, operations + reductions > 0);
    wpk_program_fini(&program);
}

static void test_strict_operations(void **state)
{
    (void)state;
    /* both operations of a mask, whose numbers are large; not where they are small */
    expect_strict("input X f32[4,8]\ninput W f32[4,8]\ninput M i64[4]\noutput Y f32[4]\n"
                  "intermediate T f32[4]\nT[i] = sum(k:8) X[i,k] * W[i,k]\n"
                  "Y[i] = T[i] + (1 - f32(M[i])) * -10000\n",
                  2, 0);
    expect_strict("input X f32[4,8]\ninput W f32[4,8]\noutput Y f32[4]\n"
                  "intermediate T f32[4]\nT[i] = sum(k:8) X[i,k] * W[i,k]\n"
                  "Y[i] = (T[i] + 3) / 6\n",
                  0, 0);
    /* of a softmax the subtractions, the exps, and a division of 0 by 0; not its sum */
    expect_strict("input X f32[4,8]\noutput Y f32[4,8]\nintermediate M f32[4]\n"
                  "intermediate S f32[4]\nM[i] = max(k:8) X[i,k]\n"
                  "S[i] = sum(k:8) exp(X[i,k] - M[i])\nY[i,j] = exp(X[i,j] - M[i]) / S[i] * 0.5\n",
                  2 + 2 + 2, 1);
    /* all arithmetic that an exp is a function of */
    expect_strict("input X f32[8]\ninput A f32[8]\noutput Y f32[8]\n"
                  "Y[i] = exp(X[i] * 0.5 + A[i])\n",
                  3, 0);
    /* a product with what may be NaN stays a sum of fused multiply-adds */
    expect_strict("input X f32[4,8]\ninput V f32[4,8]\noutput Y f32[4]\nintermediate M f32[4]\n"
                  "intermediate S f32[4]\nintermediate P f32[4,8]\nM[i] = max(k:8) X[i,k]\n"
                  "S[i] = sum(k:8) exp(X[i,k] - M[i])\nP[i,j] = exp(X[i,j] - M[i]) / S[i]\n"
                  "Y[i] = sum(j:8) P[i,j] * V[i,j]\n",
                  2 + 2 + 1, 1);
    /* literals */
    expect_strict("input X f32[8]\noutput Y f32[8]\nY[i] = max(r:3) X[i+r-1 | -inf]\n", 0, 1);
    expect_strict("input X f32[8]\noutput Y f32[8]\nY[i] = max(r:3) X[i+r-1 | 0]\n", 0, 1);
    expect_strict("input X i32[8]\noutput Y i32[8]\nY[i] = max.i32(r:3) X[i+r-1 | 0]\n", 0, 0);
    /* +inf: no maximum of a row is subtracted */
    expect_strict("input X f32[8]\ninput B f32[8]\noutput Y f32[8]\n"
                  "Y[i] = exp(X[i] - B[i]) + exp(B[i])\n",
                  4, 0);
    expect_strict("input X f32[8]\noutput Y f32[8]\nY[i] = X[i] * sigmoid(X[i])\n", 2, 0);
    /* a divisor that may be NaN; the terms of a sum that its reciprocal is a factor of */
    expect_strict("input X f32[4,8]\ninput V f32[4,8]\noutput Y f32[4]\nintermediate M f32[4]\n"
                  "intermediate S f32[4]\nintermediate R f32[4]\nM[i] = max(k:8) X[i,k]\n"
                  "S[i] = sum(k:8) exp(X[i,k] - M[i])\nR[i] = 1 / S[i]\n"
                  "Y[i] = sum(j:8) exp(X[i,j] - M[i]) * R[i] * V[i,j]\n",
                  2 + 2 + 1, 1);
}

#define PRODUCT                                                                                    \
    "input A f32[4,8]\ninput B f32[8]\ninput C f32[4]\noutput Y f32[4]\nintermediate T f32[4]\n"   \
    "T[i] = sum(k:8) A[i,k] * B[k]\n"

static void test_questions(void **state)
{
    (void)state;
    expect_strict(PRODUCT "Y[i] = T[i] * 2 + C[i]\n", 0, 0);
    /* what a question is asked of, not what follows it, nor the products of a sum */
    expect_strict(PRODUCT "Y[i] = max(T[i] + C[i], 0) * 2 + 1\n", 2, 0);
    expect_strict(PRODUCT "Y[i] = select(T[i] * C[i] < 1, C[i] * 3, 2)\n", 2, 0);
    expect_strict(PRODUCT "Y[i] = tanh(T[i] * C[i]) * 2\n", 2, 0);
    expect_strict("input A f32[4,8]\ninput B f32[8]\noutput Y f32[4]\n"
                  "Y[i] = sum(k:8) max(A[i,k] + 1, 0) * B[k]\n",
                  2, 0);
    /* through an intermediate, and a cast */
    expect_strict("input A f32[4,8]\noutput Y f32[4]\nintermediate S f32[4]\n"
                  "intermediate T f32[4]\nS[i] = sum(k:8) A[i,k]\nT[i] = S[i] * 2\n"
                  "Y[i] = f32(isnan(T[i] + 1))\n",
                  3, 0);
    /* without sums everything, but not of integers */
    expect_strict("input X f32[8]\noutput Y f32[8]\nY[i] = X[i] * 2 + 1\n", 2, 0);
    expect_strict("input X i32[8]\noutput Y i32[8]\nY[i] = max(X[i] * 2 + 1, 0)\n", 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_are_found),
        cmocka_unit_test(test_whole_rows),
        cmocka_unit_test(test_strict_operations),
        cmocka_unit_test(test_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
