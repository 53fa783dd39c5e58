/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that leave their tensors by so little that they stay in their allocations: the borders
 * show it, where the emulated driver's bounds of allocations do not. */
#include "runtime/gpu/gpu.h"
#include "schema/launch_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 5 /* elements: tensors end at no multiple of 16 bytes */
#define SIZE (COUNT * sizeof(float))
#define SHIFT_ODD 16
#define TENSOR(number) "{\"tensor\":" number ",\"offset\":0}"

/* y[0] = x[0] + c[0] + s[0] with s[0] = 1, and what a case does besides. 1.0 begins with two zeros,
 * as do the elements: a difference begins at the third byte. */
static const char plan[] =
    "{\"version\":%d,\"architecture\":\"sm_50\",\"cubin_bytes\":0,\"arguments\":3,\"launches\":[{"
    "\"entry\":\"k\","
    "\"blocks\":[1,1,1],\"threads\":[1,1,1],\"shared_bytes\":0,\"added_bytes\":0,"
    "\"registers\":0,\"local_bytes\":0,\"parameters\":[" TENSOR("0") "," TENSOR("1") "," TENSOR(
        "2") "," TENSOR("3") "]}],\"scratch\":[{\"bytes\":20,\"zeroed\":false}]}\n";
static const char code[] =
    ".version 8.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry k(.param .u64 x, .param .u64 c, .param .u64 y, .param .u64 s)\n{\n"
    ".reg .b64 %%d<5>;\n.reg .f32 %%f<5>;\n"
    "ld.param.u64 %%d1, [x];\nld.param.u64 %%d2, [c];\nld.param.u64 %%d3, [y];\n"
    "ld.param.u64 %%d4, [s];\nmov.f32 %%f3, 0f3F800000;\n%s\n"
    "ld.global.f32 %%f1, [%%d1];\nld.global.f32 %%f2, [%%d2];\nadd.f32 %%f1, %%f1, %%f2;\n"
    "ld.global.f32 %%f2, [%%d4];\nadd.f32 %%f1, %%f1, %%f2;\nst.global.f32 [%%d3], %%f1;\n"
    "%s\nret;\n}\n";

#define FIRST "st.global.f32 [%d4], %f3;"

static const struct {
    const char *first, *then; /* instructions */
    struct wpk_gpu_damage damage;
    bool is_nan; /* the result */
} cases[] = {
    {FIRST, "", {.size = 0}, false},
    {FIRST, "st.global.f32 [%d3+20], %f3;", {WPK_GPU_PART_ARGUMENT, 2, 20, SIZE}, false},
    {FIRST, "st.global.f32 [%d3+-4], %f3;", {WPK_GPU_PART_ARGUMENT, 2, -4, SIZE}, false},
    {FIRST, "st.global.f32 [%d1+8], %f3;", {WPK_GPU_PART_ARGUMENT, 0, 10, SIZE}, false},
    {FIRST, "st.global.f32 [%d1+272], %f3;", {WPK_GPU_PART_ARGUMENT, 0, 272, SIZE}, false},
    {FIRST, "st.global.f32 [%d2+16], %f3;", {WPK_GPU_PART_UPLOAD, 0, 18, SIZE}, false},
    {FIRST, "st.global.f32 [%d2+-256], %f3;", {WPK_GPU_PART_UPLOAD, 0, -256, SIZE}, false},
    {FIRST, "st.global.f32 [%d4+24], %f3;", {WPK_GPU_PART_SCRATCH, 0, 24, SIZE}, false},
    {"", "", {.size = 0}, true},                    /* scratch that nothing was written to */
    {FIRST "add.s64 %d1, %d1, 20;", "", {0}, true}, /* what lies behind an input */
    {FIRST "add.s64 %d2, %d2, -4;", "", {0}, true}, /* what lies before a constant */
};

static float x[COUNT] = {1, 2, 3, 4, 5}, c[COUNT] = {10, 11, 12, 13, 14}, y[COUNT];

static struct wpk_gpu *open_kernel(const char *image, size_t size, bool guarded)
{
    const struct wpk_gpu_options options = {.emulated = true, .image = {image, size}};
    struct wpk_gpu_argument arguments[] = {
        {.size = SIZE}, {.size = SIZE}, {.size = SIZE, .written = true}};
    struct wpk_diag diag = {0};
    struct wpk_gpu *gpu = NULL;
    if (wpk_gpu_open(&options, &gpu, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    if (guarded) {
        wpk_gpu_guard(gpu, 0);
    }
    assert_int_equal(wpk_gpu_upload(gpu, c, SIZE, &arguments[1].address, &diag), WPK_OK);
    assert_true(arguments[1].address % 256 == 0);
    wpk_gpu_settle(gpu, arguments);
    return gpu;
}

static size_t write_image(size_t i, char *image, size_t size)
{
    int head = snprintf(image, size, plan, WPK_LAUNCH_PLAN_VERSION);
    char text[2048];
    snprintf(text, sizeof(text), code, cases[i].first, cases[i].then);
    return (size_t)head + (size_t)snprintf(image + head, size - (size_t)head, "%s", text);
}

static void expect(struct wpk_gpu *gpu, size_t i)
{
    struct wpk_gpu_damage damage = {0};
    const struct wpk_gpu_damage *wanted = &cases[i].damage;
    struct wpk_gpu_call *call = NULL;
    struct wpk_diag diag = {0};
    void *data[] = {x, NULL, y};
    assert_int_equal(wpk_gpu_call_new(gpu, &call, &diag), WPK_OK);
    for (int run = 0; run < 2; run++) {
        y[0] = 0;
        if (wpk_gpu_call_run(call, data) != WPK_OK) {
            fail_msg("case %zu: %s", i, wpk_gpu_call_trouble(call));
        }
        if (cases[i].is_nan != (y[0] != y[0])) {
            fail_msg("case %zu: the result is %g", i, (double)y[0]);
        }
        assert_true(y[0] == 12 || cases[i].is_nan);
        assert_int_equal(wpk_gpu_call_check(call, data, &damage),
                         wanted->size > 0 ? WPK_ECORRUPT : WPK_OK);
        assert_int_equal(damage.part, wanted->part);
        assert_int_equal(damage.index, wanted->index);
        assert_int_equal(damage.at, wanted->at);
    }
    wpk_gpu_call_free(call);
}

static void test_what_a_kernel_leaves_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char image[4096];
        size_t size = write_image(i, image, sizeof(image));
        struct wpk_gpu *gpu = open_kernel(image, size, true);
        expect(gpu, i);
        wpk_gpu_guard(gpu, SHIFT_ODD);
        expect(gpu, i);
        wpk_gpu_release(gpu);
    }
}

/* A kernel that is timed may be guarded from then on: its constants lie where they lay. */
static void test_guarded_late(void **state)
{
    (void)state;
    char image[4096];
    size_t size = write_image(0, image, sizeof(image));
    struct wpk_gpu *gpu = open_kernel(image, size, false);
    struct wpk_gpu_call *call = NULL;
    struct wpk_diag diag = {0};
    double ns = 0;
    void *data[] = {x, NULL, y};
    assert_int_equal(wpk_gpu_call_new(gpu, &call, &diag), WPK_OK);
    assert_int_equal(wpk_gpu_call_run(call, data), WPK_OK);
    assert_int_equal(wpk_gpu_call_time(call, 3, &ns), WPK_OK);
    wpk_gpu_call_free(call);
    wpk_gpu_guard(gpu, SHIFT_ODD);
    expect(gpu, 0);
    wpk_gpu_release(gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_kernel_leaves_alone),
        cmocka_unit_test(test_guarded_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
