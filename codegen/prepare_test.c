/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of prepare programs: which axis runs in lanes, and that the model accepts them. */
#include "codegen/prepare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "wpk-schedule 1\ntarget x86-64-linux-sse41-avx threads 1\n"

/* The directives, printed. */
static void expect_directives(const char *text, const char *expected)
{
    struct wpk_schedule schedule, prepare;
    struct wpk_diag diag = {0};
    struct wpk_buf printed = {0};
    if (wpk_schedule_parse(text, &schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s", diag.line, diag.column, diag.text);
    }
    assert_true(schedule.prepare.stage_count > 0);
    assert_int_equal(wpk_prepare_schedule(&schedule, &prepare), WPK_OK);
    assert_string_equal(prepare.target, schedule.target);
    assert_int_equal(wpk_program_validate(&prepare.main, &diag), WPK_OK);
    if (wpk_schedule_check(&prepare, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(wpk_schedule_print(&prepare, &printed), WPK_OK);
    assert_string_equal(strstr(wpk_buf_text(&printed), "end\n") + 4, expected);
    wpk_buf_fini(&printed);
    wpk_schedule_fini(&prepare);
    wpk_schedule_fini(&schedule);
}

/* What is stored is read along its last axis: so the transform before it runs along the axis that
 * becomes its last one, and is stored that way. */
static void test_lanes_follow_what_reads_them(void **state)
{
    (void)state;
    expect_directives(
        HEAD "layout X f32[4,40] 0,1\nlayout W f32[32,40,3] 0,1,2\nlayout Y f32[4,32] 0,1\n"
             "program\ninput X f32[4,40]\nconstant W f32[32,40,3]\noutput Y f32[4,32]\n"
             "literal G f64[2,3] = 1,2,3,4,5,6\nintermediate U f64[2,32,40]\n"
             "intermediate P f32[2,40,16]\n"
             "U[a,j,k] = sum.f64(r:3) G[a,r] * f64(W[j,k,r])\n"
             "P[i0,i1,i2] = f32(U[0,16*i0+i2,i1] + U[1,16*i0+i2,i1])\n"
             "Y[i,j] = sum.f32(k:40) X[i,k] * P[j/16,k,j%16]\nend\n",
        "U compute_root\nU align_bounds j 16\nU reorder_storage j k a\n"
        "U split j j.U j.V 16 exact\nU reorder j.V j.U k a\nU vectorize j.V\n"
        "U.0 split j j.U j.V 16 exact\nU.0 reorder j.V r j.U k a\nU.0 vectorize j.V\n"
        "U.0 unroll r\n"
        "P split i2 i2.U i2.V 16 exact\nP reorder i2.V i2.U i1 i0\nP vectorize i2.V\n");
}

/* Computed for each a0 alone, which is all that is needed of it there. */
static void test_one_reader_has_it_inside(void **state)
{
    (void)state;
    expect_directives(
        HEAD "layout X f32[4,40] 0,1\nlayout W f32[32,40,3] 0,1,2\nlayout Y f32[4,32] 0,1\n"
             "program\ninput X f32[4,40]\nconstant W f32[32,40,3]\noutput Y f32[4,32]\n"
             "literal G f64[2,3] = 1,2,3,4,5,6\nintermediate U f64[2,32,40]\n"
             "intermediate P f32[2,2,40,16]\n"
             "U[a,j,k] = sum.f64(r:3) G[a,r] * f64(W[j,k,r])\n"
             "P[a0,i0,i1,i2] = f32(U[a0,16*i0+i2,i1])\n"
             "Y[i,j] = sum.f32(k:40) X[i,k] * (P[0,j/16,k,j%16] + P[1,j/16,k,j%16])\nend\n",
        "U compute_at P a0\nU align_bounds j 16\nU reorder_storage j k a\n"
        "U split j j.U j.V 16 exact\nU reorder j.V j.U k a\nU vectorize j.V\n"
        "U.0 split j j.U j.V 16 exact\nU.0 reorder j.V r j.U k a\nU.0 vectorize j.V\n"
        "U.0 unroll r\n"
        "P split i2 i2.U i2.V 16 exact\nP reorder i2.V i2.U i1 i0 a0\nP vectorize i2.V\n");
}

/* Where the last axis of what is stored does not divide, nothing runs in lanes; a long sum keeps
 * its loop. */
static void test_odd_extents_stay_scalar(void **state)
{
    (void)state;
    expect_directives(
        HEAD "layout X f32[7] 0\nlayout W f32[40,12] 0,1\nlayout Y f32[7] 0\n"
             "program\ninput X f32[7]\nconstant W f32[40,12]\noutput Y f32[7]\n"
             "intermediate S f32[12]\nintermediate T f32[7]\n"
             "S[c] = sum.f32(n:40) W[n,c]\nT[i] = S[i] + S[i+5]\nY[i] = X[i] * T[i]\nend\n",
        "S compute_root\nS align_bounds c 4\nS reorder_storage c\n"
        "S split c c.U c.V 4 exact\nS reorder c.V c.U\nS vectorize c.V\n"
        "S.0 split c c.U c.V 4 exact\nS.0 reorder c.V n c.U\nS.0 vectorize c.V\n");
}

/* Masks that are added up are -inf in what is prepared. */
static void test_masks_are_strict(void **state)
{
    (void)state;
    struct wpk_schedule schedule, prepare;
    assert_int_equal(
        wpk_schedule_parse(HEAD "layout X f32[8] 0\nlayout A f32[8] 0\nlayout B f32[8] 0\n"
                                "layout Y f32[8] 0\nprogram\ninput X f32[8]\nconstant A f32[8]\n"
                                "constant B f32[8]\noutput Y f32[8]\nintermediate P f32[8]\n"
                                "P[i] = A[i] + B[i]\nY[i] = exp(X[i] + P[i])\nend\n",
                           &schedule, NULL),
        WPK_OK);
    assert_int_equal(wpk_prepare_schedule(&schedule, &prepare), WPK_OK);
    assert_string_equal(strstr(prepare.target, "avx"), "avx-strict_float");
    wpk_schedule_fini(&prepare);
    wpk_schedule_fini(&schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes_follow_what_reads_them),
        cmocka_unit_test(test_one_reader_has_it_inside),
        cmocka_unit_test(test_odd_extents_stay_scalar),
        cmocka_unit_test(test_masks_are_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
