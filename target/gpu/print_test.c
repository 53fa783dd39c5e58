/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the back end cuda: schedules that it refuses, and its compiler.
 * tests/cuda_kernels.c runs kernels. */
#include "nest/nest.h"
#include "target/gpu/nvrtc.h"
#include "target/gpu/print.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "wpk-schedule 2\ntarget cuda-sm_90 threads 1\nby c\n"
#define PRODUCT_OF(m, k, n)                                                                        \
    HEAD "layout A f32[" m "," k "] 0,1\nlayout B f32[" k "," n "] 0,1\nlayout Y f32[" m "," n     \
         "] 0,1\nprogram\ninput A f32[" m "," k "]\ninput B f32[" k "," n                          \
         "]\nintermediate R f32[" m "," k "]\nintermediate S f32[" k "," n                         \
         "]\nintermediate T f32[" m "," n "]\noutput Y f32[" m "," n                               \
         "]\nR[i,k] = A[i,k]\nS[k,j] = B[k,j]\nT[i,j] = sum.f32(k:" k                              \
         ") R[i,k] * S[k,j]\nY[i,j] = max(T[i,j], 0)\nend\n"

static void parse(const char *head, const char *nest, struct wpk_schedule *out)
{
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    wpk_buf_printf(&text, "%s%s", head, nest);
    if (wpk_schedule_parse(wpk_buf_text(&text), out, &diag) != WPK_OK ||
        wpk_nest_check(out->nest, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
}

/* ---- what is refused */

static void expect_refused(const char *nest, const char *expected)
{
    struct wpk_schedule schedule;
    struct wpk_cuda_plan *plan = calloc(1, sizeof(*plan));
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    assert_non_null(plan);
    parse(PRODUCT_OF("16", "16", "16"), nest, &schedule);
    assert_int_equal(wpk_cuda_print(&schedule, "k", &text, plan, &diag), WPK_EUNSUPPORTED);
    if (strstr(diag.text, expected) == NULL) {
        fail_msg("%s\nexpected: %s", diag.text, expected);
    }
    wpk_buf_fini(&text);
    wpk_schedule_fini(&schedule);
    free(plan);
}

#define INLINED "stage S inline\nstage R inline\n"
#define SUMS "stage T in Y i\nscope register\ninit\nthread.x j step 2 exact\nserial j.1\n"
#define ROOT_SUMS "stage T root\ninit\nserial i\nserial j\nupdate\n"

static void test_refusals(void **state)
{
    (void)state;
    expect_refused("stage Y root\nblock.x i\nthread.x j\n" SUMS
                   "update\nserial k\nthread.x j step 2 exact\nserial j.1\n" INLINED,
                   "registers of another");
    expect_refused("stage Y root\nblock.x i step 3 guard\nserial i.1\nserial j\n" ROOT_SUMS
                   "serial i\nserial j\nserial k\n" INLINED,
                   "write shift or exact");
    expect_refused("stage Y root\nparallel i\nserial j\n" ROOT_SUMS
                   "serial i\nserial j\nserial k\n" INLINED,
                   "has no parallel");
    expect_refused("stage Y root\nserial i\nserial j\nstage T root\nscope heap\ninit\nserial i\n"
                   "serial j\nupdate\nserial i\nserial j\nserial k\n" INLINED,
                   "has the scopes");
    expect_refused("stage Y root\nserial i\nserial j\n" ROOT_SUMS
                   "block.x i\nserial j\nserial k\nstage S in T i\nscope global\nserial k\n"
                   "serial j\nstage R inline\n",
                   "before everything");
    expect_refused("stage Y root\nblock.x i\nthread.x j\nstage T in Y j\nscope shared\ninit\n"
                   "serial j\nupdate\nserial k\nserial j\n" INLINED,
                   "in a loop around the threads");
    expect_refused(
        "stage Y root\nblock.x i\nthread.x j\nstage T in Y i\nscope register\nalign j 2\n"
        "init\nthread.x j\nupdate\nserial k\nthread.x j\n" INLINED,
        "fills multiples in shared memory alone");
}

/* ---- the compiler */

static void test_compiler(void **state)
{
    (void)state;
    struct wpk_cuda_nvrtc nvrtc;
    struct wpk_buf ptx = {0};
    struct wpk_diag diag = {0}, missing = {0}, refusal = {0};
    assert_int_equal(wpk_cuda_nvrtc_open(&nvrtc, "/nonexistent", &missing), WPK_ENOENT);
    assert_non_null(strstr(missing.text, "make setup-gpu"));
    if (wpk_cuda_nvrtc_open(&nvrtc, NULL, &diag) != WPK_OK) {
        print_message("%s\n", diag.text);
        skip();
    }
    assert_true(wpk_cuda_nvrtc_knows(&nvrtc, "sm_90"));
    assert_false(wpk_cuda_nvrtc_knows(&nvrtc, "sm_9"));
    assert_false(wpk_cuda_nvrtc_knows(&nvrtc, "sm_90 -G"));
    assert_false(wpk_cuda_nvrtc_knows(&nvrtc, "gfx90"));
    assert_int_equal(wpk_cuda_nvrtc_compile(&nvrtc, "", "sm_1", false, NULL, &ptx, &diag),
                     WPK_EINVAL);
    assert_non_null(strstr(diag.text, "knows no architecture 'sm_1'"));
    assert_int_equal(wpk_cuda_nvrtc_compile(&nvrtc, "__device__ int f() { return y; }", "sm_90",
                                            false, NULL, &ptx, &refusal),
                     WPK_EUNSUPPORTED);
    assert_non_null(strstr(refusal.text, "undefined"));
    wpk_buf_fini(&ptx);
    wpk_cuda_nvrtc_close(&nvrtc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_compiler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
