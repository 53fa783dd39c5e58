/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on the emulated driver, through the code that a real one runs. */
#include "runtime/gpu/cuda_driver.h"
#include "runtime/gpu/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define X_SIZE ((size_t)1 << 20)
#define C_SIZE ((size_t)1 << 19)
#define L2_SIZE ((size_t)50 << 20) /* of the emulated device */
#define CALLS_MAX 512

/* The kernel notes the addresses of x and c, which are its arguments, where x says: at the end of a
 * list that begins with its length. */
static const char image[] =
    "{\"version\":5,\"cubin_bytes\":0,\"architecture\":\"sm_50\",\"arguments\":2,\"launches\":[{"
    "\"entry\":\"k\","
    "\"blocks\":[1,1,1],\"threads\":[1,1,1],\"shared_bytes\":0,\"added_bytes\":0,"
    "\"registers\":0,\"local_bytes\":0,\"parameters\":[{\"tensor\":0,\"offset\":0},"
    "{\"tensor\":1,\"offset\":0}]}],\"scratch\":[]}\n"
    ".version 8.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry k(.param .u64 x, .param .u64 c)\n{\n.reg .b64 %d<9>;\n"
    "ld.param.u64 %d1, [x];\nld.param.u64 %d2, [c];\nld.global.u64 %d3, [%d1];\n"
    "ld.global.u64 %d4, [%d3];\nshl.b64 %d5, %d4, 4;\nadd.s64 %d6, %d3, %d5;\n"
    "st.global.u64 [%d6+8], %d1;\nst.global.u64 [%d6+16], %d2;\nadd.s64 %d7, %d4, 1;\n"
    "st.global.u64 [%d3], %d7;\nret;\n}\n";

struct list {
    uint64_t count;
    struct {
        uint64_t x, c;
    } call[CALLS_MAX];
};

struct fixture {
    struct wpk_gpu *gpu;
    struct wpk_gpu_call *call;
    struct list *list; /* in device memory, which is the host's */
};

static uint64_t x_data[X_SIZE / sizeof(uint64_t)], c_data[C_SIZE / sizeof(uint64_t)];

static void set_up(struct fixture *f)
{
    const struct wpk_gpu_options options = {.emulated = true, .image = {image, sizeof(image) - 1}};
    static const struct list empty;
    struct wpk_gpu_argument arguments[2] = {{.size = X_SIZE}, {.size = C_SIZE}};
    struct wpk_diag diag = {0};
    void *data[2] = {x_data, NULL};
    uint64_t list = 0;
    if (wpk_gpu_open(&options, &f->gpu, &diag) != WPK_OK ||
        wpk_gpu_upload(f->gpu, &empty, sizeof(empty), &list, &diag) != WPK_OK ||
        wpk_gpu_upload(f->gpu, c_data, C_SIZE, &arguments[1].address, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    wpk_gpu_settle(f->gpu, arguments);
    assert_int_equal(wpk_gpu_call_new(f->gpu, &f->call, &diag), WPK_OK);
    x_data[0] = list;
    assert_int_equal(wpk_gpu_call_run(f->call, data), WPK_OK);
    f->list = (struct list *)(uintptr_t)list; // NOLINT: a device address is a host's
    assert_int_equal(f->list->count, 1);
}

static void tear_down(struct fixture *f)
{
    wpk_gpu_call_free(f->call);
    wpk_gpu_release(f->gpu);
}

static void time_calls(struct fixture *f, int count)
{
    double ns = 0;
    f->list->count = 0;
    assert_int_equal(wpk_gpu_call_time(f->call, count, &ns), WPK_OK);
    assert_true(ns > 0);
    assert_int_equal(f->list->count, count);
}

/* The number of calls until the first one's argument comes again. */
static size_t period_of(const struct list *list, bool constant)
{
    size_t i = 1;
    while (i < list->count &&
           (constant ? list->call[i].c != list->call[0].c : list->call[i].x != list->call[0].x)) {
        i++;
    }
    return i;
}

static void test_warm_calls_take_the_same_arguments(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    time_calls(&f, 3);
    assert_int_equal(period_of(f.list, false), 1);
    assert_int_equal(period_of(f.list, true), 1);
    tear_down(&f);
}

/* Between two calls with one set all others were read: more than twice the cache. */
static void test_cold_calls_take_sets_in_turns(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_int_equal(wpk_gpu_call_rotate(f.call, false), WPK_OK);
    time_calls(&f, 200);
    size_t period = period_of(f.list, false);
    assert_int_equal(period_of(f.list, true), period);
    assert_true((period - 1) * (X_SIZE + C_SIZE) > 2 * L2_SIZE && period < 100);
    assert_true(f.list->call[0].x != f.list->call[1].x);
    tear_down(&f);
}

static void test_only_constants_are_cold(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f);
    assert_int_equal(wpk_gpu_call_rotate(f.call, true), WPK_OK);
    assert_int_equal(wpk_gpu_call_rotate(f.call, true), WPK_OK); /* changes nothing */
    time_calls(&f, 300);
    assert_int_equal(period_of(f.list, false), 1);
    size_t period = period_of(f.list, true);
    assert_true((period - 1) * C_SIZE > 2 * L2_SIZE && period < 300);
    tear_down(&f);
}

static void test_uuids_are_written_with_dashes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *written;
    } names[] = {
        {"GPU-8932f937d72c40f5aaF3123456789abc", "GPU-8932f937-d72c-40f5-aaF3-123456789abc"},
        {"MIG-8932f937d72c40f5aaf3123456789abc", "MIG-8932f937-d72c-40f5-aaf3-123456789abc"},
        {"GPU-8932f937-d72c-40f5-aaf3-123456789abc", "GPU-8932f937-d72c-40f5-aaf3-123456789abc"},
        {"GPU-8932f937d72c40f5aaf3123456789abcd", "GPU-8932f937d72c40f5aaf3123456789abcd"},
        {"GPU-8932", "GPU-8932"},
        {"8932f937d72c40f5aaf3123456789abc", "8932f937d72c40f5aaf3123456789abc"},
        {"0", "0"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char out[WPK_CUDA_UUID_TEXT_MAX];
        wpk_cuda_driver_name_uuid(names[i].name, out);
        assert_string_equal(out, names[i].written);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warm_calls_take_the_same_arguments),
        cmocka_unit_test(test_cold_calls_take_sets_in_turns),
        cmocka_unit_test(test_only_constants_are_cold),
        cmocka_unit_test(test_uuids_are_written_with_dashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
