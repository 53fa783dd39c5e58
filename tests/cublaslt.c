/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt's products as measured calls: samples are recorded as graphs, and take copies of their
 * arguments in turns.
 *
 *     cublaslt LIBRARY     the one that stands for it */
#include "runtime/gpu/gpu_state.h"
#include "tests/recipe_text.h"

#include <libgen.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SIDE 8
#define ELEMENTS (SIDE * SIDE)
#define JUNK 77.0F

static const char *folder;

static const char text[] =
    "{\"version\":3,\"primitive\":\"matmul\",\"inputs\":["
    "{\"name\":\"A\",\"type\":\"f32[8,8]\",\"layout\":\"0,1\"},"
    "{\"name\":\"B\",\"type\":\"f32[8,8]\",\"layout\":\"0,1\"}],\"constants\":[],\"outputs\":["
    "{\"name\":\"Y\",\"type\":\"f32[8,8]\",\"layout\":\"0,1\"}],"
    "\"src\":{\"tensor\":0,\"extents\":[8,8],\"strides\":[8,1],\"chosen\":false},"
    "\"weights\":{\"tensor\":1,\"extents\":[8,8],\"strides\":[8,1],\"chosen\":false},"
    "\"dst\":{\"tensor\":2,\"extents\":[8,8],\"strides\":[8,1],\"chosen\":false},"
    "\"algorithm\":2,\"posts\":[]}";

struct fixture {
    struct wpk_gpu *gpu;
    struct wpk_gpu_call *call;
    float a[ELEMENTS], b[ELEMENTS], y[ELEMENTS];
};

static wpk_err open_product(int algorithm, struct wpk_gpu **out, struct wpk_diag *diag)
{
    struct wpk_recipe recipe = {0};
    struct wpk_gpu_options options = {.emulated = true, .recipe = &recipe};
    assert_int_equal(wpk_recipe_decode(text, strlen(text), &recipe, diag), WPK_OK);
    recipe.algorithm = algorithm;
    assert_int_equal(wpk_gpu_vendor_open("cublaslt", folder, &options.vendor, diag), WPK_OK);
    assert_true(options.vendor->emulated);
    return wpk_gpu_open(&options, out, diag);
}

static void set_up(struct fixture *f)
{
    const struct wpk_gpu_argument arguments[] = {
        {.size = sizeof(f->a)}, {.size = sizeof(f->b)}, {.size = sizeof(f->y), .written = true}};
    void *data[] = {f->a, f->b, f->y};
    struct wpk_diag diag = {0};
    if (open_product(2, &f->gpu, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    for (int i = 0; i < ELEMENTS; i++) {
        f->a[i] = (float)(i % 7);
        f->b[i] = (float)(i % 5) - 2;
    }
    wpk_gpu_settle(f->gpu, arguments);
    assert_int_equal(wpk_gpu_call_new(f->gpu, &f->call, &diag), WPK_OK);
    assert_int_equal(wpk_gpu_call_run(f->call, data), WPK_OK);
}

static void test_it_multiplies(void **state)
{
    (void)state;
    static struct fixture f;
    set_up(&f);
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            float sum = 0;
            for (int k = 0; k < SIDE; k++) {
                sum += f.a[i * SIDE + k] * f.b[k * SIDE + j];
            }
            assert_true(f.y[i * SIDE + j] == sum);
        }
    }
    wpk_gpu_call_free(f.call);
    wpk_gpu_release(f.gpu);
}

/* Copy `set` of the result, in device memory, which is the host's. */
static float *result_of(const struct fixture *f, size_t set)
{
    uint64_t address = f->call->sets.memory[2] + set * f->call->sets.stride[2];
    return (float *)(uintptr_t)address; // NOLINT: a device address is a host's
}

/* Each sample computes the sets that are next, and no other. */
static void test_samples_take_sets_in_turns(void **state)
{
    (void)state;
    enum { SETS = 12, CALLS = 4 };
    static struct fixture f;
    double ns = 0;
    set_up(&f);
    assert_int_equal(wpk_gpu_call_rotate(f.call, false), WPK_OK);
    assert_true(f.call->sets.count > SETS);
    for (size_t set = 0; set < SETS; set++) {
        result_of(&f, set)[0] = JUNK;
    }
    for (size_t done = 0; done < SETS; done += CALLS) {
        assert_int_equal(wpk_gpu_call_time(f.call, CALLS, &ns), WPK_OK);
        assert_true(ns > 0);
        for (size_t set = 0; set < SETS; set++) {
            float wanted = set < done + CALLS ? f.y[0] : JUNK;
            assert_true(result_of(&f, set)[0] == wanted);
        }
    }
    wpk_gpu_call_free(f.call);
    wpk_gpu_release(f.gpu);
}

static void test_an_algorithm_that_is_not_there(void **state)
{
    (void)state;
    struct wpk_diag diag = {0};
    struct wpk_gpu *gpu = NULL;
    assert_int_equal(open_product(3, &gpu, &diag), WPK_EUNSUPPORTED);
    assert_non_null(strstr(diag.text, "3 algorithms"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_multiplies),
        cmocka_unit_test(test_samples_take_sets_in_turns),
        cmocka_unit_test(test_an_algorithm_that_is_not_there),
    };
    folder = argc > 1 ? dirname(argv[1]) : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
