/* SPDX-License-Identifier: Apache-2.0 */
/* One product, an operand of which is staged at a loop over its terms, is bound for a CPU by both
 * back ends: each computes what the reference does. */
#include "target/codegen.h"
#include "tests/kernel_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TERMS 128
#define EXTENT 1024 /* of the results' axes */
#define TARGET "x86-64-linux-sse41-avx-avx2-f16c-fma"

/* Panels of 64 terms and all columns stay in a cache while all rows pass; a thread has 256 rows. */
static const char for_cpu[] =
    "stage Y root\nserial i\nserial j step 8 exact\nlanes j.1\n"
    "stage T root\ninit\nserial i\nserial j step 8 exact\nlanes j.1\n"
    "update\nserial k step 64 exact\nparallel i step 256 exact\nserial j step 8 exact\n"
    "serial i.1 step 8 exact\nserial k.1\nunroll i.2\nlanes j.1\n"
    "stage S in T k\nscope heap\nserial k\nserial j step 8 exact\nlanes j.1\n";

static void bind(struct wpk_kernels *batch, const char *by)
{
    struct wpk_kernel_case *subject = &batch->subject[batch->count++];
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    int k = TERMS, n = EXTENT;
    wpk_buf_printf(&text,
                   "wpk-schedule 2\ntarget " TARGET " threads 2\nby %s\n"
                   "layout A f32[%d,%d] 0,1\nlayout B f32[%d,%d] 0,1\n"
                   "layout Y f32[%d,%d] 0,1\nprogram\ninput A f32[%d,%d]\n"
                   "input B f32[%d,%d]\nintermediate S f32[%d,%d]\n"
                   "intermediate T f32[%d,%d]\noutput Y f32[%d,%d]\nS[k,j] = B[k,j]\n"
                   "T[i,j] = sum.f32(k:%d) A[i,k] * S[k,j]\nY[i,j] = T[i,j]\nend\n%s",
                   by, n, k, k, n, n, n, n, k, k, n, k, n, n, n, n, n, k, for_cpu);
    if (wpk_schedule_parse(wpk_buf_text(&text), &subject->schedule, &diag) != WPK_OK ||
        wpk_codegen_check(&subject->schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    snprintf(subject->words, sizeof(subject->words), "by hand");
    wpk_buf_fini(&text);
}

static void expect_product(const char *by)
{
    static struct wpk_kernels batch; /* large */
    struct wpk_device here;
    struct wpk_rng rng;
    assert_int_equal(wpk_device_probe(WPK_CPU_FLAGS_ALL, &here), WPK_OK);
    if (!wpk_cpu_flags_fit(WPK_CPU_SET_AVX2, here.cpu.flags)) {
        print_message("the CPU has no AVX2\n");
        skip();
    }
    wpk_rng_seed(&rng, 1);
    memset(&batch, 0, sizeof(batch)); /* of a test that failed */
    batch.emit = wpk_emit;
    bind(&batch, by);
    wpk_check_kernels(&batch, &rng);
    assert_int_equal(batch.refused, 0);
}

static void test_cpu_by_halide(void **state)
{
    (void)state;
    expect_product("halide-cpu");
}

static void test_cpu_by_c(void **state)
{
    (void)state;
    expect_product("c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_by_halide),
        cmocka_unit_test(test_cpu_by_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
