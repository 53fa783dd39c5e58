/* SPDX-License-Identifier: Apache-2.0 */
/* One product, an operand of which is staged at a loop over its terms, is bound for a CPU by both
 * back ends, and for blocks and threads, which run on any OpenCL device that there is: each
 * computes what the reference does. So do nests of GPUs' candidates on that device.
 * WPK_TEST_TERMS sets the terms of the sums, a multiple of 64, WPK_TEST_CANDIDATES the candidates
 * of each program. */
#include "ir/notation/notation.h"
#include "target/codegen.h"
#include "target/emit.h"
#include "target/lower.h"
#include "tests/kernel_check.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TERMS 128
#define DRAWS 10 /* for each candidate that is wanted: many are refused */
#define TARGET "x86-64-linux-sse41-avx-avx2-f16c-fma"

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

static int number_of(const char *variable, int otherwise)
{
    const char *given = getenv(variable);
    return given == NULL ? otherwise : (int)strtol(given, NULL, 10);
}

static void bind(struct wpk_kernels *batch, const char *by, const char *feature, const char *nest,
                 int extent)
{
    struct wpk_kernel_case *subject = &batch->subject[batch->count++];
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    int k = number_of("WPK_TEST_TERMS", TERMS), n = extent;
    wpk_buf_printf(&text,
                   "wpk-schedule 2\ntarget " TARGET "%s threads 2\nby %s\n"
                   "layout A f32[%d,%d] 0,1\nlayout B f32[%d,%d] 0,1\n"
                   "layout Y f32[%d,%d] 0,1\nprogram\ninput A f32[%d,%d]\n"
                   "input B f32[%d,%d]\nintermediate S f32[%d,%d]\n"
                   "intermediate T f32[%d,%d]\noutput Y f32[%d,%d]\nS[k,j] = B[k,j]\n"
                   "T[i,j] = sum.f32(k:%d) A[i,k] * S[k,j]\nY[i,j] = T[i,j]\nend\n%s",
                   feature, by, n, k, k, n, n, n, n, k, k, n, k, n, n, n, n, n, k, nest);
    if (wpk_schedule_parse(wpk_buf_text(&text), &subject->schedule, &diag) != WPK_OK ||
        wpk_codegen_check(&subject->schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    snprintf(subject->words, sizeof(subject->words), "by hand");
    wpk_buf_fini(&text);
}

static void expect_product(const char *by, const char *feature, const char *nest, int extent)
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
    bind(&batch, by, feature, nest, extent);
    wpk_check_kernels(&batch, &rng);
    assert_int_equal(batch.refused, 0);
}

static void test_cpu_by_halide(void **state)
{
    (void)state;
    expect_product("halide-cpu", "", for_cpu, 1024);
}

static void test_cpu_by_c(void **state)
{
    (void)state;
    expect_product("c", "", for_cpu, 1024);
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

static void need_platform(void)
{
    if (!has_platform()) {
        print_message("no OpenCL platform: deploy/setup.sh test installs PoCL\n");
        skip();
    }
}

static void test_opencl_product(void **state)
{
    (void)state;
    need_platform();
    expect_product("halide-cpu", "-opencl", for_blocks, 64);
}

/* No threads share terms where kernels are strict. An unrolled loop of a GPU's nest has a barrier
 * for each copy of the body, of which PoCL makes much code: it takes half a minute for the first
 * product. */
static const struct {
    const char *text;
    int count; /* candidates, unless the test is asked for others */
} programs[] = {
    /* rows of a softmax; windows; literals; tails that move inwards */
    {"input X f32[13,48]\nintermediate M f32[13]\nintermediate E f32[13,48]\n"
     "intermediate D f32[13]\noutput Y f32[13,48]\nM[i] = max.f32(k:48) X[i,k]\n"
     "E[i,k] = exp(X[i,k] - M[i])\nD[i] = sum.f32(k:48) E[i,k]\nY[i,k] = E[i,k] / D[i]\n",
     1},
    {"input X f32[2,3,9,11]\noutput Y f32[2,3,5,6]\n"
     "Y[n,c,y,x] = max.f32(r:3,s:3) X[n,c,2*y+r-1,2*x+s-1 | -inf]\n",
     0},
    {"input X f32[1,16,12,12]\nconstant W f32[16,16,3,3]\noutput Y f32[1,16,12,12]\n"
     "Y[n,k,y,x] = sum.f32(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n",
     0},
    {"input A f32[49,37]\ninput B f32[70,37]\ninput C f32[70]\nintermediate T f32[49,70]\n"
     "output Y f32[49,70]\nT[i,j] = sum.f32(k:37) A[i,k] * B[j,k]\n"
     "Y[i,j] = max(T[i,j] + C[j], 0)\n",
     0},
};

/* Make it one for OpenCL; false: Halide refuses it. */
static bool rebind(struct wpk_schedule *schedule)
{
    struct wpk_diag diag = {0};
    for (int e = 0; e < schedule->nest->entry_count; e++) {
        schedule->nest->entry[e].depth = 0; /* copies ahead are CUDA C's alone */
    }
    snprintf(schedule->target, sizeof(schedule->target), "x86-64-linux-strict_float-opencl");
    snprintf(schedule->by, sizeof(schedule->by), "halide-cpu");
    return wpk_codegen_check(schedule, &diag) == WPK_OK;
}

static void add_candidates(struct wpk_kernels *batch, size_t p, struct wpk_rng *rng)
{
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1, .strict = true};
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_candidate drawn;
    struct wpk_diag diag = {0};
    int constructed = 0;
    int wanted = number_of("WPK_TEST_CANDIDATES", programs[p].count);
    int end = batch->count + wanted;
    assert_int_equal(wpk_device_emulate("sm_90", 132, &options.device, &diag), WPK_OK);
    assert_int_equal(wpk_program_parse(programs[p].text, &program, &diag), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, &diag), WPK_OK);
    assert_int_equal(wpk_space_construct(&space, &drawn, 1, &constructed), WPK_OK);
    for (int i = 0; i < DRAWS * wanted && batch->count < end; i++) {
        struct wpk_kernel_case *subject = &batch->subject[batch->count];
        if (i >= constructed) {
            assert_int_equal(wpk_space_draw(&space, rng, &drawn), WPK_OK);
        }
        assert_int_equal(wpk_lower(&space, &drawn, &subject->schedule, &diag), WPK_OK);
        (void)wpk_candidate_encode(&space, &drawn, subject->words, sizeof(subject->words));
        if (rebind(&subject->schedule)) {
            batch->count++;
        } else {
            wpk_schedule_fini(&subject->schedule);
        }
    }
    assert_int_equal(batch->count, end);
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

static void test_opencl_candidates(void **state)
{
    (void)state;
    static struct wpk_kernels batch; /* large */
    struct wpk_rng rng;
    need_platform();
    wpk_rng_seed(&rng, 2);
    memset(&batch, 0, sizeof(batch)); /* of a test that failed */
    batch.emit = wpk_emit;
    for (size_t p = 0; p < sizeof(programs) / sizeof(programs[0]); p++) {
        add_candidates(&batch, p, &rng);
    }
    wpk_check_kernels(&batch, &rng);
    assert_int_equal(batch.refused, 0);
}

/* An argument is a pattern of names of tests, as in cmocka_set_test_filter(). */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_by_halide),
        cmocka_unit_test(test_cpu_by_c),
        cmocka_unit_test(test_opencl_product),
        cmocka_unit_test(test_opencl_candidates),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
