/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of prepare programs: which axis runs in lanes, and that they are valid. */
#include "nest/schedule.h"

#include "target/codegen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "wpk-schedule 2\ntarget x86-64-linux-sse41-avx threads 1\nby halide-cpu\n"

/* The main program's nest, which nothing depends on. */
#define Y_POINTWISE "stage Y root\n  serial i\n"
#define Y_PRODUCT                                                                                  \
    "stage Y root\n  init\n    serial i\n    serial j\n"                                           \
    "  update\n    serial i\n    serial j\n    serial k\n"

/* The nest, printed. */
static void expect_nest(const char *text, const char *expected)
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
    if (wpk_codegen_check(&prepare, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(wpk_schedule_print(&prepare, &printed), WPK_OK);
    assert_string_equal(strstr(wpk_buf_text(&printed), "end\n") + 4, expected);
    wpk_buf_fini(&printed);
    wpk_schedule_fini(&prepare);
    wpk_schedule_fini(&schedule);
}

/* The packed weight P is written along its last axis, so the transform U before it has its lanes
 * along that axis, and is stored with it last. */
static void test_lanes_follow_what_reads_them(void **state)
{
    (void)state;
    expect_nest(HEAD "layout X f32[4,40] 0,1\nlayout W f32[32,40,3] 0,1,2\nlayout Y f32[4,32] 0,1\n"
                     "program\ninput X f32[4,40]\nconstant W f32[32,40,3]\noutput Y f32[4,32]\n"
                     "literal G f64[2,3] = 1,2,3,4,5,6\nintermediate U f64[2,32,40]\n"
                     "intermediate P f32[2,40,16]\n"
                     "U[a,j,k] = sum.f64(r:3) G[a,r] * f64(W[j,k,r])\n"
                     "P[i0,i1,i2] = f32(U[0,16*i0+i2,i1] + U[1,16*i0+i2,i1])\n"
                     "Y[i,j] = sum.f32(k:40) X[i,k] * P[j/16,k,j%16]\nend\n" Y_PRODUCT,
                "stage P root\n  serial i0\n  serial i1\n  serial i2 step 16 exact\n  lanes i2.1\n"
                "stage U root\n  align j 16\n  stored a k j\n"
                "  init\n    serial a\n    serial k\n    serial j step 16 exact\n    lanes j.1\n"
                "  update\n    serial a\n    serial k\n    serial j step 16 exact\n    unroll r\n"
                "    lanes j.1\n");
}

/* Computed for each a0 alone, which is all that is needed of it there. */
static void test_one_reader_has_it_inside(void **state)
{
    (void)state;
    expect_nest(
        HEAD
        "layout X f32[4,40] 0,1\nlayout W f32[2,32,40,3] 0,1,2,3\nlayout Y f32[4,32] 0,1\n"
        "program\ninput X f32[4,40]\nconstant W f32[2,32,40,3]\noutput Y f32[4,32]\n"
        "literal G f64[3] = 1,2,3\nintermediate U f64[2,32,40]\n"
        "intermediate P f32[2,2,40,16]\n"
        "U[a,j,k] = sum.f64(r:3) G[r] * f64(W[a,j,k,r])\n"
        "P[a0,i0,i1,i2] = f32(U[a0,16*i0+i2,i1])\n"
        "Y[i,j] = sum.f32(k:40) X[i,k] * (P[0,j/16,k,j%16] + P[1,j/16,k,j%16])\nend\n" Y_PRODUCT,
        "stage P root\n  serial a0\n  serial i0\n  serial i1\n  serial i2 step 16 exact\n"
        "  lanes i2.1\n"
        "stage U in P a0\n  align j 16\n  stored a k j\n"
        "  init\n    serial a\n    serial k\n    serial j step 16 exact\n    lanes j.1\n"
        "  update\n    serial a\n    serial k\n    serial j step 16 exact\n    unroll r\n"
        "    lanes j.1\n");
}

/* Axes a and b are the transform's own: they are unrolled inside the loops over the constant's. */
static void test_a_transform_reads_each_constant_once(void **state)
{
    (void)state;
    expect_nest(
        HEAD
        "layout X f32[4,40] 0,1\nlayout W f32[32,40,3] 0,1,2\nlayout Y f32[4,32] 0,1\n"
        "program\ninput X f32[4,40]\nconstant W f32[32,40,3]\noutput Y f32[4,32]\n"
        "literal G f64[2,3] = 1,2,3,4,5,6\nintermediate U f64[2,32,40]\n"
        "intermediate P f32[2,2,40,16]\n"
        "U[a,j,k] = sum.f64(r:3) G[a,r] * f64(W[j,k,r])\n"
        "P[a0,i0,i1,i2] = f32(U[a0,16*i0+i2,i1])\n"
        "Y[i,j] = sum.f32(k:40) X[i,k] * (P[0,j/16,k,j%16] + P[1,j/16,k,j%16])\nend\n" Y_PRODUCT,
        "stage P root\n  serial i0\n  serial i1\n  serial i2 step 16 exact\n  unroll a0\n"
        "  lanes i2.1\n"
        "stage U in P i2\n  align j 16\n  stored a k j\n"
        "  init\n    serial j step 16 exact\n    unroll a\n    unroll k\n    lanes j.1\n"
        "  update\n    serial j step 16 exact\n    unroll a\n    unroll k\n    unroll r\n"
        "    lanes j.1\n");
}

/* Where the last axis of what is stored does not divide, nothing runs in lanes; a long sum keeps
 * its loop. */
static void test_odd_extents_stay_scalar(void **state)
{
    (void)state;
    expect_nest(
        HEAD
        "layout X f32[7] 0\nlayout W f32[40,12] 0,1\nlayout Y f32[7] 0\n"
        "program\ninput X f32[7]\nconstant W f32[40,12]\noutput Y f32[7]\n"
        "intermediate S f32[12]\nintermediate T f32[7]\n"
        "S[c] = sum.f32(n:40) W[n,c]\nT[i] = S[i] + S[i+5]\nY[i] = X[i] * T[i]\nend\n" Y_POINTWISE,
        "stage T root\n  serial i\n"
        "stage S root\n  align c 4\n  stored c\n"
        "  init\n    serial c step 4 exact\n    lanes c.1\n"
        "  update\n    serial c step 4 exact\n    serial n\n    lanes c.1\n");
}

/* On a GPU the blocks that add up divide the axis: one that moved inwards would add terms twice. */
static void test_blocks_add_up_once(void **state)
{
    (void)state;
    expect_nest("wpk-schedule 2\ntarget cuda-sm_90 threads 1\nby cuda\nlayout X f32[150] 0\n"
                "layout W f32[150,3] 0,1\nlayout Y f32[150] 0\nprogram\ninput X f32[150]\n"
                "constant W f32[150,3]\noutput Y f32[150]\nintermediate S f32[150]\n"
                "S[c] = sum.f32(r:3) W[c,r]\nY[i] = X[i] * S[i]\nend\n"
                "stage Y root\n  block.x i\n  thread.x i.1\n",
                "stage S root\n  init\n    block.x c step 128 shift\n    thread.x c.1\n"
                "  update\n    block.x c step 75 exact\n    thread.x c.1\n    serial r\n");
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
                                "P[i] = A[i] + B[i]\nY[i] = exp(X[i] + P[i])\nend\n" Y_POINTWISE,
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
        cmocka_unit_test(test_a_transform_reads_each_constant_once),
        cmocka_unit_test(test_odd_extents_stay_scalar),
        cmocka_unit_test(test_blocks_add_up_once),
        cmocka_unit_test(test_masks_are_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
