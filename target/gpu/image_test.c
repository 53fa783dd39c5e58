/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code that NVRTC makes is read, compared with plans, and damaged. */
#include "target/gpu/build.h"

#include "common/cubin.h"
#include "common/rng.h"
#include "target/gpu/nvrtc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char module[] =
    "extern \"C\" __global__ void __launch_bounds__(64) k_0(const float *a, float *b)\n"
    "{\n"
    "    __shared__ float s[64];\n"
    "    s[threadIdx.x] = a[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    b[threadIdx.x] = s[63 - threadIdx.x];\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(32) k_1(const int *at, float *b, float *c)\n"
    "{\n"
    "    float v[32];\n"
    "    for (int i = 0; i < 32; i++) v[i] = b[i];\n"
    "    for (int i = 0; i < 32; i++) c[i] = v[at[i]];\n"
    "}\n"
    "extern \"C\" __global__ void k_2(int n, float *b, long long m, int at)\n"
    "{\n"
    "    b[m + at] = n;\n"
    "}\n";

#define TENSOR(number)                                                                             \
    {                                                                                              \
        .tensor = (number), .bytes = 8                                                             \
    }
#define NUMBER(size)                                                                               \
    {                                                                                              \
        .tensor = -1, .bytes = (size)                                                              \
    }

static const struct wpk_launch_plan right = {.architecture = "sm_90",
                                             .argument_count = 3,
                                             .launch_count = 3,
                                             .launch = {{.entry = "k_0",
                                                         .blocks = {1, 1, 1},
                                                         .threads = {64, 1, 1},
                                                         .shared_bytes = 256,
                                                         .parameter_count = 2},
                                                        {.entry = "k_1",
                                                         .blocks = {1, 1, 1},
                                                         .threads = {32, 1, 1},
                                                         .parameter_first = 2,
                                                         .parameter_count = 3},
                                                        {.entry = "k_2",
                                                         .blocks = {1, 1, 1},
                                                         .threads = {1, 1, 1},
                                                         .parameter_first = 5,
                                                         .parameter_count = 4}},
                                             .parameter = {TENSOR(0), TENSOR(1), TENSOR(2),
                                                           TENSOR(1), TENSOR(0), NUMBER(4),
                                                           TENSOR(0), NUMBER(8), NUMBER(4)},
                                             .parameter_count = 9};

/* Compile the module, or skip the test. */
static void compile(const char *architecture, struct wpk_buf *cubin)
{
    struct wpk_cuda_nvrtc nvrtc;
    struct wpk_buf ptx = {0};
    if (wpk_cuda_nvrtc_open(&nvrtc, NULL, NULL) != WPK_OK) {
        skip();
    }
    assert_int_equal(wpk_cuda_nvrtc_compile(&nvrtc, module, architecture, false, cubin, &ptx, NULL),
                     WPK_OK);
    wpk_buf_fini(&ptx);
    wpk_cuda_nvrtc_close(&nvrtc);
}

static void test_functions(void **state)
{
    (void)state;
    static const char *const architectures[] = {"sm_50", "sm_80", "sm_90", "sm_120"};
    for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++) {
        struct wpk_buf cubin = {0};
        struct wpk_launch_plan plan = right;
        compile(architectures[i], &cubin);
        snprintf(plan.architecture, sizeof(plan.architecture), "%s", architectures[i]);
        assert_int_equal(wpk_cubin_bytes(cubin.data), cubin.size);
        assert_int_equal(wpk_cuda_image_describe(&plan, &cubin, NULL), WPK_OK);
        assert_in_range(plan.launch[0].registers, 4, 32);
        assert_in_range(plan.launch[1].registers, 4, 255);
        assert_int_equal(plan.launch[0].local_bytes, 0);
        assert_int_equal(plan.launch[1].local_bytes, 128); /* v: its places are known late */
        wpk_buf_fini(&cubin);
    }
}

static void expect_refused(const struct wpk_launch_plan *plan, const struct wpk_buf *cubin,
                           const char *reason)
{
    struct wpk_launch_plan changed = *plan;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_cuda_image_describe(&changed, cubin, &diag), WPK_EUNSUPPORTED);
    if (strstr(diag.text, reason) == NULL) {
        fail_msg("%s\nexpected: %s", diag.text, reason);
    }
}

static void test_other_plans(void **state)
{
    (void)state;
    struct wpk_buf cubin = {0};
    struct wpk_launch_plan plan = right;
    compile("sm_90", &cubin);
    snprintf(plan.architecture, sizeof(plan.architecture), "%s", "sm_80");
    expect_refused(&plan, &cubin, "is for sm_90, not for sm_80");
    plan = right;
    snprintf(plan.launch[1].entry, sizeof(plan.launch[1].entry), "%s", "k_9");
    expect_refused(&plan, &cubin, "no function k_9");
    plan = right;
    plan.launch[1].parameter_count = 2;
    expect_refused(&plan, &cubin, "bytes of parameters 24, its launch 16");
    plan = right;
    plan.parameter[7].bytes = 4; /* m, and `at` lies beside it */
    expect_refused(&plan, &cubin, "k_2 has bytes of parameters 28, its launch 24");
    plan = right;
    plan.parameter[8].bytes = 8;
    expect_refused(&plan, &cubin, "k_2 has bytes of parameters 28, its launch 32");
    plan = right;
    plan.launch[0].shared_bytes = 252;
    expect_refused(&plan, &cubin, "shared bytes 256, its launch 252");
    plan = right;
    plan.launch[0].threads[1] = 2;
    expect_refused(&plan, &cubin, "threads: 64, its launch 128");
    wpk_buf_fini(&cubin);
}

/* A damaged cubin is refused or described; AddressSanitizer would see a read outside of the copy
 * that each try has. */
static void test_damage(void **state)
{
    (void)state;
    struct wpk_buf cubin = {0};
    struct wpk_rng rng;
    compile("sm_90", &cubin);
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < 4000; i++) {
        struct wpk_cubin_function function;
        size_t size = i % 2 == 0 ? cubin.size : wpk_rng_below(&rng, cubin.size);
        uint8_t *copy = malloc(size + 1);
        assert_non_null(copy);
        memcpy(copy, cubin.data, size);
        for (int k = 0; k < i % 8 && size > 0; k++) {
            bool head = wpk_rng_below(&rng, 2) == 0 && size > WPK_CUBIN_HEAD_BYTES;
            size_t at = wpk_rng_below(&rng, head ? WPK_CUBIN_HEAD_BYTES : size);
            copy[at] = (uint8_t)wpk_rng_below(&rng, 256);
        }
        if (i % 10 == 9 && size == cubin.size) { /* a section without content, of any size */
            uint64_t sections;
            uint16_t count;
            memcpy(&sections, copy + 40, sizeof(sections));
            memcpy(&count, copy + 60, sizeof(count));
            uint32_t type = 8; /* SHT_NOBITS */
            uint64_t far = UINT64_MAX / 2;
            uint64_t at = sections + 64 * wpk_rng_below(&rng, count);
            if (sections < size && at + 64 <= size) {
                memcpy(copy + at + 4, &type, sizeof(type));
                memcpy(copy + at + 24, &far, sizeof(far));
            }
        }
        wpk_err err = wpk_cubin_find(copy, size, "k_1", &function);
        assert_true(err == WPK_OK || err == WPK_EPARSE || err == WPK_ENOENT);
        free(copy);
    }
    wpk_buf_fini(&cubin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_other_plans),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
