/* SPDX-License-Identifier: Apache-2.0 */
/* One product, an operand of which is staged at a loop over its terms, is bound for a CPU by both
 * back ends, and for blocks and threads, which run on any OpenCL device that there is: each
 * computes what the reference does. WPK_TEST_TERMS sets the terms of the sums, a multiple of 64. */
#include "codegen/codegen.h"
#include "codegen/emit.h"
#include "tests/kernel_check.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TERMS "128"

/* Panels of 64 terms and all columns stay in a cache while all rows pass; a thread has 256 rows. */
static const char for_cpu[] =
    "stage Y root\nserial i\nserial j step 8 exact\nlanes j.1\n"
    "stage T root\ninit\nserial i\nserial j step 8 exact\nlanes j.1\n"
    "update\nserial k step 64 exact\nparallel i step 256 exact\nserial j step 8 exact\n"
    "serial i.1 step 8 exact\nserial k.1\nunroll i.2\nlanes j.1\n"
    "stage S in T k\nscope heap\nserial k\nserial j step 8 exact\nlanes j.1\n";

/* Blocks of 64 threads compute 32 x 64 results, and stage 16 terms of their columns together. */
static const char for_blocks[] =
    "stage Y root\nblock.y i step 32 exact\nblock.x j step 64 exact\nthread.y i.1 step 4 exact\n"
    "thread.x j.1 step 8 exact\nserial i.2\nserial j.2\n"
    "stage T in Y j\nextent i 32 j 64\n"
    "init\nthread.y i step 4 exact\nthread.x j step 8 exact\nserial i.1\nserial j.1\n"
    "update\nserial k step 16 exact\nthread.y i step 4 exact\nthread.x j step 8 exact\n"
    "serial k.1\nserial i.1\nserial j.1\n"
    "stage S in T k\nscope shared\nextent k 16 j 64\n"
    "thread.y k step 2 exact\nthread.x j step 8 exact\nserial k.1\nserial j.1\n";

static int terms(void)
{
    const char *given = getenv("WPK_TEST_TERMS");
    return (int)strtol(given == NULL ? TERMS : given, NULL, 10);
}

static void bind(struct wpk_kernels *batch, const char *by, const char *feature, const char *nest)
{
    struct wpk_kernel_case *subject = &batch->subject[batch->count++];
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    int k = terms();
    wpk_buf_printf(&text,
                   "wpk-schedule 2\ntarget x86-64-linux-sse41-avx-avx2-f16c-fma%s threads 2\n"
                   "by %s\nlayout A f32[1024,%d] 0,1\nlayout B f32[%d,1024] 0,1\n"
                   "layout Y f32[1024,1024] 0,1\nprogram\ninput A f32[1024,%d]\n"
                   "input B f32[%d,1024]\nintermediate S f32[%d,1024]\n"
                   "intermediate T f32[1024,1024]\noutput Y f32[1024,1024]\nS[k,j] = B[k,j]\n"
                   "T[i,j] = sum.f32(k:%d) A[i,k] * S[k,j]\nY[i,j] = T[i,j]\nend\n%s",
                   feature, by, k, k, k, k, k, k, nest);
    if (wpk_schedule_parse(wpk_buf_text(&text), &subject->schedule, &diag) != WPK_OK ||
        wpk_codegen_check(&subject->schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    snprintf(subject->words, sizeof(subject->words), "by hand");
    wpk_buf_fini(&text);
}

static void expect_product(const char *by, const char *feature, const char *nest)
{
    static struct wpk_kernels batch; /* large */
    struct wpk_device here;
    struct wpk_rng rng;
    assert_int_equal(wpk_device_probe(WPK_ISA_AVX512, &here), WPK_OK);
    if (here.isa < WPK_ISA_AVX2) {
        print_message("the CPU has no AVX2\n");
        skip();
    }
    wpk_rng_seed(&rng, 1);
    memset(&batch, 0, sizeof(batch)); /* of a test that failed */
    batch.emit = wpk_emit;
    bind(&batch, by, feature, nest);
    wpk_check_kernels(&batch, &rng);
    assert_int_equal(batch.refused, 0);
}

static void test_cpu_by_halide(void **state)
{
    (void)state;
    expect_product("halide-cpu", "", for_cpu);
}

static void test_cpu_by_c(void **state)
{
    (void)state;
    expect_product("c", "", for_cpu);
}

/* Halide's runtime crashes where there is no platform. */
static bool has_platform(void)
{
    int (*find)(unsigned, void **, unsigned *) = NULL;
    unsigned count = 0;
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) {
        *(void **)&find = dlsym(library, "clGetPlatformIDs");
    }
    return find != NULL && find(0, NULL, &count) == 0 && count > 0;
}

static void test_blocks_and_threads(void **state)
{
    (void)state;
    if (!has_platform()) {
        print_message("no OpenCL platform: deploy/setup.sh test installs PoCL\n");
        skip();
    }
    expect_product("halide-cpu", "-opencl", for_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_by_halide),
        cmocka_unit_test(test_cpu_by_c),
        cmocka_unit_test(test_blocks_and_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
