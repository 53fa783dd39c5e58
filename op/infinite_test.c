/* SPDX-License-Identifier: Apache-2.0 */
#include "op/infinite.h"
#include "op/notation.h"

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
}

/* How many functions drop NaN, and whether whole rows may be masked. */
static void expect_rows(const char *text, int drops, bool rows)
{
    struct wpk_program program = {0};
    static struct wpk_infinite found;
    int count = 0;
    assert_int_equal(wpk_program_parse(text, &program, NULL), WPK_OK);
    wpk_infinite_find(&program, &found);
    for (int i = 0; i < program.node_count; i++) {
        count += found.drops[i];
    }
    assert_int_equal(count, drops);
    assert_int_equal(found.rows, rows);
    struct wpk_program dropping;
    assert_int_equal(wpk_infinite_drop(&program, &found, &dropping), WPK_OK);
    assert_int_equal(wpk_program_validate(&dropping, NULL), WPK_OK);
    wpk_program_fini(&dropping);
    wpk_program_fini(&program);
}

#define MAXIMUM                                                                                    \
    "input X f32[4,8]\noutput Y f32[4,8]\nintermediate M f32[4]\nM[i] = max(k:8) X[i,k]\n"

static void test_whole_rows(void **state)
{
    (void)state;
    expect_rows(MAXIMUM "Y[i,j] = exp(X[i,j] - M[i])\n", 1, true);
    expect_rows(MAXIMUM "Y[i,j] = tanh(exp(X[i,j] - M[i]))\n", 2, true);
    expect_rows(MAXIMUM "Y[i,j] = sqrt(exp(X[i,j] - M[i])) + exp(X[i,j])\n", 1, true);
    expect_rows(MAXIMUM "Y[i,j] = max(exp(X[i,j] - M[i]), 0.5)\n", 1, false);
    expect_rows(MAXIMUM "Y[i,j] = select(X[i,j] - M[i] < 0 - 3, 0, exp(X[i,j]))\n", 0, false);
    expect_rows("input X f32[4,8]\noutput Y f32[4]\nY[i] = max(k:8) X[i,k] * 2\n", 0, false);
}

static void test_literals(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "input X f32[8]\noutput Y f32[8]\nY[i] = max(r:3) X[i+r-1 | -inf]\n",
        "input X f32[8]\noutput Y f32[8]\nY[i] = exp(X[i] - 1)\n",
    };
    for (int i = 0; i < 2; i++) {
        struct wpk_program program = {0};
        assert_int_equal(wpk_program_parse(texts[i], &program, NULL), WPK_OK);
        assert_int_equal(wpk_infinite_literal(&program), i == 0);
        wpk_program_fini(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_are_found),
        cmocka_unit_test(test_whole_rows),
        cmocka_unit_test(test_literals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
