/* SPDX-License-Identifier: Apache-2.0 */
/* Code of schedules as workers send them, which may be anything. */
#include "target/code.h"

#include "ir/notation/notation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char program[] =
    "layout X f32[1,64,56,56] 0,2,3,1 pad 0:0,0:0,1:1,1:1\n"
    "layout W f32[64,64,3,3] 0,1,2,3\n"
    "layout Y f32[1,64,56,56] 0,2,3,1\n"
    "program\n"
    "input X f32[1,56,56,64] pad 0:0,1:1,1:1,0:0\n"
    "constant W f32[64,64,3,3]\n"
    "output Y f32[1,56,56,64]\n"
    "intermediate Y_r f32[1,56,56,64]\n"
    "Y_r[n,y,x,k] = sum.f32(c:64,r:3,s:3) X[n,y+r-1,x+s-1,c] * W[k,c,r,s]\n"
    "Y[n,y,x,k] = Y_r[n,y,x,k]\n"
    "end\n";
static const char legal[] = "stage Y root\n  serial n\n  serial y\n  serial x\n  serial k\n"
                            "stage Y_r root\n"
                            "  init\n    serial n\n    serial y\n    serial x\n    serial k\n"
                            "  update\n    serial n\n    serial y\n    serial x\n    serial k\n"
                            "    serial c\n    serial r\n    serial s\n";
/* The sum lies where an output would, which no stage holds. */
static const char astray[] = "stage Y root\n  serial n\n  serial y\n  serial x\n  serial k\n"
                             "stage Y_r root\n  scope output\n"
                             "  init\n    serial n\n    serial y\n    serial x\n    serial k\n"
                             "  update\n    serial n\n    serial y\n    serial x\n    serial k\n"
                             "    serial c\n    serial r\n    serial s\n";
/* 115 million statements. */
static const char endless[] = "stage Y root\n  unroll n\n  unroll y\n  unroll x\n  unroll k\n"
                              "stage Y_r root\n"
                              "  init\n    unroll n\n    unroll y\n    unroll x\n    unroll k\n"
                              "  update\n    unroll n\n    unroll y\n    unroll x\n    unroll k\n"
                              "    unroll c\n    unroll r\n    unroll s\n";

static wpk_err print(const char *by, const char *nest)
{
    struct wpk_buf schedule = {0}, code = {0};
    wpk_buf_printf(&schedule,
                   "wpk-schedule 2\ntarget x86-64-linux-sse41-avx-avx2-f16c-fma threads 1\n"
                   "by %s\n%s%s",
                   by, program, nest);
    wpk_err err = wpk_code_print(WPK_CODE_OWN, wpk_buf_text(&schedule), &code, NULL);
    assert_int_equal(err == WPK_OK, code.size > 0);
    wpk_buf_fini(&schedule);
    wpk_buf_fini(&code);
    return err;
}

static void test_what_no_nest_may_have_is_refused(void **state)
{
    (void)state;
    static const char *const by[] = {"c", "halide-cpu"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(print(by[i], legal), WPK_OK);
        assert_int_equal(print(by[i], astray), WPK_EINVAL);
        assert_int_equal(print(by[i], endless), WPK_EINVAL);
    }
}

/* Each stage reads the two before it: more ways lead to the first one than can be gone. */
static void test_long_chains_are_looked_at_once(void **state)
{
    (void)state;
    enum { STAGES = 90 };
    struct wpk_buf text = {0};
    struct wpk_program chain;
    wpk_buf_append_text(&text, "input T0 f32[8]\ninput T1 f32[8]\n");
    for (int i = 2; i < STAGES; i++) {
        wpk_buf_printf(&text, "%s T%d f32[8]\n", i + 1 < STAGES ? "intermediate" : "output", i);
    }
    for (int i = 2; i < STAGES; i++) {
        wpk_buf_printf(&text, "T%d[i] = T%d[i] + T%d[i]\n", i, i - 1, i - 2);
    }
    assert_int_equal(wpk_program_parse(wpk_buf_text(&text), &chain, NULL), WPK_OK);
    assert_int_equal(wpk_program_alignment(&chain, chain.stage_count - 1, 0), 1);
    wpk_program_fini(&chain);
    wpk_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_no_nest_may_have_is_refused),
        cmocka_unit_test(test_long_chains_are_looked_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
