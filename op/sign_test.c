/* SPDX-License-Identifier: Apache-2.0 */
#include "op/notation.h"
#include "op/sign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Of the exp's operand in the last stage. */
static bool is_nonpositive(const char *stages)
{
    struct wpk_program program;
    struct wpk_diag diag = {0};
    struct wpk_buf text = {0};
    bool found = false;
    int exps = 0;
    static const char *const tensors[] = {"input X f32[9,9,9]", "input Z f32[9,9,9]",
                                          "intermediate M f32[9,9]", "intermediate H f16[9,9]"};
    for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++) {
        const char name[] = {*(strchr(tensors[i], ' ') + 1), '[', '\0'};
        if (strstr(stages, name) != NULL) {
            wpk_buf_printf(&text, "%s\n", tensors[i]);
        }
    }
    wpk_buf_printf(&text, "output Y f32[9,9,9]\n%s", stages);
    wpk_err err = wpk_program_parse(wpk_buf_text(&text), &program, &diag);
    if (err != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    for (int i = 0; i < program.node_count; i++) {
        const struct wpk_node *node = &program.nodes[i];
        if (node->kind == WPK_NODE_UNARY && node->op == WPK_UNARY_EXP) {
            found = wpk_is_nonpositive(&program, node->arg[0]);
            exps++;
        }
    }
    assert_int_equal(exps, 1);
    wpk_program_fini(&program);
    wpk_buf_fini(&text);
    return found;
}

static void test_maximum_of_the_row(void **state)
{
    (void)state;
    static const char *const known[] = {
        "M[a,b] = max(k:9) X[a,b,k]\nY[a,b,c] = exp(X[a,b,c] - M[a,b])\n",
        "M[a,b] = max(k:9) X[a,k,b]\nY[a,b,c] = exp(X[a,b,c] - M[a,c])\n",
        "M[a,b] = max(k:9) X[a,b,k]\nY[a,b,c] = exp(X[a,b,8-c] - M[a,b])\n",
        "M[a,b] = max(k:9) X[a,b,k]\nY[a,b,c] = exp((X[a,b,c] - M[a,b]) * 0.125)\n",
        "M[a,b] = max(k:9,l:9) X[a,l,k]\nY[a,b,c] = exp(X[a,b,c] - M[a,c])\n",
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_true(is_nonpositive(known[i]));
    }
}

static void test_nothing_is_known(void **state)
{
    (void)state;
    static const char *const unknown[] = {
        "M[a,b] = min(k:9) X[a,b,k]\nY[a,b,c] = exp(X[a,b,c] - M[a,b])\n",
        "M[a,b] = max(k:8) X[a,b,k]\nY[a,b,c] = exp(X[a,b,c] - M[a,b])\n",
        "M[a,b] = max(k:9) Z[a,b,k]\nY[a,b,c] = exp(X[a,b,c] - M[a,b])\n",
        "M[a,b] = max(k:9) X[a,b,k]\nY[a,b,c] = exp(X[b,a,c] - M[a,b])\n",
        "M[a,b] = max(k:9) X[a,b,k]\nY[a,b,c] = exp(X[a,b,c] - M[a,c])\n",
        "M[a,b] = max(k:9) X[a,k,k]\nY[a,b,c] = exp(X[a,b,c] - M[a,b])\n",
        "M[a,b] = max(k:9) X[a,b,k] * 0.5\nY[a,b,c] = exp(X[a,b,c] - M[a,b])\n",
        "M[a,b] = max(k:9) X[a,b,k]\nY[a,b,c] = exp(M[a,b] - X[a,b,c])\n",
        "M[a,b] = max(k:9) X[a,b,k]\nY[a,b,c] = exp((X[a,b,c] - M[a,b]) * -0.125)\n",
        "M[a,b] = max(k:9) X[a,b,k]\nY[a,b,c] = exp(X[a,b,c+1 | 3] - M[a,b])\n",
        "M[a,b] = max(k:9) X[a,b,k+1 | 0]\nY[a,b,c] = exp(X[a,b,c] - M[a,b])\n",
        "H[a,b] = max(k:9) X[a,b,k]\nY[a,b,c] = exp(X[a,b,c] - H[a,b])\n",
        "Y[a,b,c] = exp(X[a,b,c] - Z[a,b,c])\n",
    };
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        assert_false(is_nonpositive(unknown[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maximum_of_the_row),
        cmocka_unit_test(test_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
