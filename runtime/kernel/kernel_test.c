/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whole: linked, loaded, prepared, run; shared, damaged, starved. */
#include "common/clock.h"
#include "common/fs.h"
#include "runtime/kernel/context.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/trust.h"
#include "tests/kernel_fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ROWS 37
#define COLUMNS 64
#define LAYOUT_OF_X "0,1 pad 1:1,2:2"
#define X_PADDED ((ROWS + 2) * (COLUMNS + 4))

struct data {
    float x[X_PADDED];
    float w[COLUMNS];
    float s[COLUMNS];
    float y[ROWS * COLUMNS];
};

static void fill(struct data *data)
{
    memset(data, 0, sizeof(*data));
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) {
            data->x[(i + 1) * (COLUMNS + 4) + j + 2] = (float)(i * 3 + j);
        }
    }
    for (int j = 0; j < COLUMNS; j++) {
        data->w[j] = (float)(j - 5);
        data->s[j] = (float)(100 - j);
    }
}

static void check(const struct data *data)
{
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) {
            float want = (float)(i * 3 + j) * 2 * (float)(j - 5) + (float)(100 - j);
            assert_true(data->y[i * COLUMNS + j] == want);
        }
    }
}

static wpk_err prepare(struct wpk_kernel *kernel, struct data *data)
{
    const struct wpk_tensor_data constants[] = {{"S", data->s, sizeof(data->s)},
                                                {"W", data->w, sizeof(data->w)}};

    return wpk_kernel_prepare(kernel, constants, 2, NULL);
}

static wpk_err run(const struct wpk_kernel *kernel, struct wpk_context *context, struct data *data)
{
    const struct wpk_tensor_data input = {"X", data->x, sizeof(data->x)};
    const struct wpk_tensor_data output = {"Y", data->y, sizeof(data->y)};

    return wpk_kernel_run(kernel, context, &input, 1, &output, 1);
}

static int make_fixture(void **state)
{
    static struct wpk_kernel_fixture fixture;
    static struct wpk_manifest manifest;

    wpk_kernel_fixture_manifest(&manifest, ROWS, COLUMNS, LAYOUT_OF_X);
    wpk_kernel_fixture_init(&fixture, &manifest, false);
    *state = &fixture;
    return 0;
}

static int remove_fixture(void **state)
{
    wpk_kernel_fixture_fini(*state);
    return 0;
}

static struct wpk_kernel *open_fixture(void **state)
{
    const struct wpk_kernel_fixture *fixture = *state;
    struct wpk_kernel *kernel = NULL;
    struct wpk_diag diag = {0};

    if (wpk_kernel_open(fixture->path, NULL, &kernel, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    return kernel;
}

static struct wpk_context *new_context(int threads)
{
    struct wpk_context *context = NULL;

    assert_int_equal(wpk_context_new(&(struct wpk_context_options){.threads = threads}, &context),
                     WPK_OK);
    return context;
}

static void tells_its_arguments(void **state)
{
    struct wpk_kernel *kernel = open_fixture(state);

    assert_int_equal(wpk_kernel_input_count(kernel), 1);
    assert_int_equal(wpk_kernel_output_count(kernel), 1);
    assert_int_equal(wpk_kernel_constant_count(kernel), 2);
    assert_string_equal(wpk_kernel_input(kernel, 0)->name, "X");
    assert_int_equal(wpk_kernel_input(kernel, 0)->type.layout.pad_before[1], 2);
    assert_string_equal(wpk_kernel_constant(kernel, 1)->name, "S");
    assert_non_null(strstr(wpk_kernel_manifest(kernel), "\"algorithm\":\"direct\""));
    wpk_kernel_close(kernel);
}

static void computes_with_any_number_of_threads(void **state)
{
    static struct data data;
    struct wpk_kernel *kernel = open_fixture(state);

    fill(&data);
    assert_int_equal(prepare(kernel, &data), WPK_OK);
    memset(data.w, 0, sizeof(data.w)); /* the kernel has its own copies */
    memset(data.s, 0, sizeof(data.s));
    for (int threads = 0; threads <= 4; threads++) {
        struct wpk_context *context = new_context(threads);
        for (int round = 0; round < 50; round++) {
            memset(data.y, 0xff, sizeof(data.y));
            assert_int_equal(run(kernel, context, &data), WPK_OK);
            check(&data);
        }
        wpk_context_free(context);
    }
    wpk_kernel_close(kernel);
}

/* W is read by the prepare program alone. */
/* Another host's threads: each part has one, the last part the first. */
struct part {
    wpk_loop_part part;
    void *user;
    size_t index;
    pthread_t thread;
};

static void *run_one(void *argument)
{
    const struct part *part = argument;

    part->part(part->user, part->index);
    return NULL;
}

static void run_parts(void *host, wpk_loop_part part, void *user, size_t count)
{
    struct part parts[8];

    assert_true(count <= 8);
    *(size_t *)host += count;
    for (size_t i = count; i-- > 0;) {
        parts[i] = (struct part){.part = part, .user = user, .index = i};
        assert_int_equal(pthread_create(&parts[i].thread, NULL, run_one, &parts[i]), 0);
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(parts[i].thread, NULL);
    }
}

static void computes_on_threads_of_its_host(void **state)
{
    static struct data data;
    struct wpk_kernel *kernel = open_fixture(state);
    size_t parts = 0;

    fill(&data);
    assert_int_equal(prepare(kernel, &data), WPK_OK);
    for (int threads = 1; threads <= 3; threads += 2) {
        struct wpk_context *context = new_context(threads);
        assert_int_equal(run(kernel, context, &data), WPK_OK);
        assert_int_equal(parts, 0);
        wpk_context_use_threads(context, run_parts, &parts);
        for (int i = 0; i < 20; i++) {
            memset(data.y, 0, sizeof(data.y));
            assert_int_equal(run(kernel, context, &data), WPK_OK);
            check(&data);
        }
        assert_true(threads == 1 ? parts == 0 : parts >= 20 * 3);
        wpk_context_free(context);
    }
    wpk_kernel_close(kernel);
}

static void tells_where_its_constants_lie(void **state)
{
    static struct data data;
    struct wpk_kernel *kernel = open_fixture(state);
    struct wpk_span span[WPK_ABI_ARGUMENTS_MAX];

    fill(&data);
    assert_int_equal(prepare(kernel, &data), WPK_OK);
    assert_int_equal(wpk_kernel_constants(kernel, span), 2);
    assert_int_equal(span[0].size, sizeof(data.s));
    assert_memory_equal(span[0].data, data.s, sizeof(data.s));
    assert_int_equal(span[1].size, sizeof(data.w));
    for (int j = 0; j < COLUMNS; j++) {
        assert_true(((const float *)span[1].data)[j] == 2 * data.w[j]);
    }
    wpk_kernel_close(kernel);
}

static void refuses_wrong_tensors(void **state)
{
    static struct data data;
    struct wpk_kernel *kernel = open_fixture(state);
    struct wpk_context *context = new_context(1);
    struct wpk_tensor_data constants[] = {{"S", data.s, sizeof(data.s)},
                                          {"W", data.w, sizeof(data.w)}};

    fill(&data);
    assert_int_equal(run(kernel, context, &data), WPK_EINVAL); /* not prepared */
    assert_int_equal(wpk_kernel_prepare(kernel, constants, 1, NULL), WPK_EINVAL);
    constants[1].size -= 4;
    assert_int_equal(wpk_kernel_prepare(kernel, constants, 2, NULL), WPK_EINVAL);
    constants[1].name = "V";
    assert_int_equal(wpk_kernel_prepare(kernel, constants, 2, NULL), WPK_EINVAL);
    assert_int_equal(prepare(kernel, &data), WPK_OK);
    assert_int_equal(prepare(kernel, &data), WPK_EINVAL); /* immutable now */

    struct wpk_tensor_data input = {"X", data.x, sizeof(data.x) - 4};
    struct wpk_tensor_data output = {"Y", data.y, sizeof(data.y)};
    assert_int_equal(wpk_kernel_run(kernel, context, &input, 1, &output, 1), WPK_EINVAL);
    input.size = sizeof(data.x);
    output.size += 4;
    assert_int_equal(wpk_kernel_run(kernel, context, &input, 1, &output, 1), WPK_EINVAL);
    assert_int_equal(wpk_kernel_run(kernel, context, &input, 1, NULL, 0), WPK_EINVAL);
    wpk_context_free(context);
    wpk_kernel_close(kernel);
}

/* The row's scratch is refused, or already the call's; on every thread the kernel is left. */
/* Of an input with a border, which is no part of it, and of a constant. */
static void refuses_indices_out_of_their_axis(void **state)
{
    static struct wpk_kernel kernel;
    struct wpk_manifest *m = &kernel.manifest;
    int64_t i[4] = {99, 3, -4, 99};
    int32_t c[2] = {0, 7};
    struct wpk_diag diag = {0};

    (void)state;
    m->inputs[0] = (struct wpk_named_tensor){"I", {.dtype = WPK_I64, .rank = 1, .extent = {2}}};
    assert_int_equal(wpk_layout_decode("0 pad 1:1", 1, &m->inputs[0].type.layout), WPK_OK);
    m->constants[0] = (struct wpk_named_tensor){
        "C",
        {.dtype = WPK_I32, .rank = 1, .extent = {2}, .layout = wpk_layout_row_major(1)},
    };
    wpk_argument_list_add(&kernel.inputs, &m->inputs[0], 0);
    wpk_argument_list_add(&kernel.constants, &m->constants[0], 0);
    m->indices[0] = (struct wpk_manifest_index){
        "I", {.low = -4, .high = 3, .axis_count = 1, .stride = {1}, .extent = {2}}};
    m->indices[1] = (struct wpk_manifest_index){
        "C", {.low = -7, .high = 6, .axis_count = 1, .stride = {1}, .extent = {2}}};
    m->index_count = 2;
    void *const in[] = {i}, *const constants[] = {c};
    assert_int_equal(wpk_kernel_check_indices(&kernel, &kernel.inputs, in, NULL, &diag), WPK_OK);
    i[2] = 4;
    assert_int_equal(
        wpk_kernel_check_indices(&kernel, &kernel.inputs, in, (const char *[]){"ids"}, &diag),
        WPK_ERANGE);
    assert_string_equal(diag.text, "element 1 of ids is 4, which is no index from -4 to 3");
    diag.text[0] = '\0';
    assert_int_equal(wpk_kernel_check_indices(&kernel, &kernel.constants, constants, NULL, &diag),
                     WPK_ERANGE);
    assert_string_equal(diag.text, "element 1 of C is 7, which is no index from -7 to 6");
}

static void survives_refused_scratch(void **state)
{
    static struct data data;
    struct wpk_kernel *kernel = open_fixture(state);

    fill(&data);
    assert_int_equal(prepare(kernel, &data), WPK_OK);
    for (int threads = 1; threads <= 3; threads++) {
        for (size_t limit = 64; limit <= 2 * (COLUMNS * sizeof(float) + 64); limit += 64) {
            struct wpk_context *context = new_context(threads);
            wpk_context_limit_scratch(context, limit);
            wpk_err err = run(kernel, context, &data);
            assert_true(err == WPK_ENOMEM || limit >= COLUMNS * sizeof(float) + 64);
            wpk_context_limit_scratch(context, 0);
            memset(data.y, 0xff, sizeof(data.y));
            assert_int_equal(run(kernel, context, &data), WPK_OK);
            check(&data);
            wpk_context_free(context);
        }
    }
    wpk_kernel_close(kernel);
}

struct sharer {
    const struct wpk_kernel *kernel;
    struct data data;
    pthread_t thread;
    wpk_err err;
};

static void *run_often(void *argument)
{
    struct sharer *sharer = argument;
    struct wpk_context *context = NULL;

    sharer->err = wpk_context_new(&(struct wpk_context_options){.threads = 2}, &context);
    for (int i = 0; i < 100 && sharer->err == WPK_OK; i++) {
        sharer->err = run(sharer->kernel, context, &sharer->data);
    }
    wpk_context_free(context);
    return NULL;
}

static void is_shared_by_threads(void **state)
{
    static struct sharer sharers[4];
    struct wpk_kernel *kernel = open_fixture(state);

    fill(&sharers[0].data);
    assert_int_equal(prepare(kernel, &sharers[0].data), WPK_OK);
    for (int i = 0; i < 4; i++) {
        sharers[i].kernel = kernel;
        fill(&sharers[i].data);
        assert_int_equal(pthread_create(&sharers[i].thread, NULL, run_often, &sharers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(sharers[i].thread, NULL);
        assert_int_equal(sharers[i].err, WPK_OK);
        check(&sharers[i].data);
    }
    wpk_kernel_close(kernel);
}

/* Cut at many places, a bit turned at many places: each is noticed before the object is mapped. */
static void damaged_files_are_refused(void **state)
{
    const struct wpk_kernel_fixture *fixture = *state;
    struct wpk_kernel *kernel = NULL;
    struct wpk_buf file = {0};
    char path[128];

    snprintf(path, sizeof(path), "%s/damaged.so", fixture->directory);
    assert_int_equal(wpk_fs_read(fixture->path, WPK_KERNEL_SIZE_MAX, &file, NULL), WPK_OK);
    for (size_t at = 0; at < file.size; at += 997) {
        struct wpk_diag diag = {0};
        assert_int_equal(wpk_fs_write(path, file.data, at, 0644, NULL), WPK_OK);
        assert_int_equal(wpk_kernel_open(path, NULL, &kernel, &diag), WPK_ECORRUPT);
        assert_true(diag.text[0] != '\0');
        file.data[at] ^= 0x10;
        assert_int_equal(wpk_fs_write(path, file.data, file.size, 0644, NULL), WPK_OK);
        assert_int_equal(wpk_kernel_open(path, NULL, &kernel, NULL), WPK_ECORRUPT);
        file.data[at] ^= 0x10;
    }
    assert_int_equal(wpk_fs_write(path, "sealed, but no kernel", 21, 0644, NULL), WPK_OK);
    assert_int_equal(wpk_seal_write(path, NULL), WPK_OK);
    assert_int_equal(wpk_kernel_open(path, NULL, &kernel, NULL), WPK_ECORRUPT);
    assert_int_equal(wpk_kernel_open("/nowhere/k.so", NULL, &kernel, NULL), WPK_ENOENT);
    wpk_buf_fini(&file);
}

static void sealing_twice_changes_nothing(void **state)
{
    const struct wpk_kernel_fixture *fixture = *state;
    struct wpk_buf before = {0};
    struct wpk_buf after = {0};

    assert_int_equal(wpk_fs_read(fixture->path, WPK_KERNEL_SIZE_MAX, &before, NULL), WPK_OK);
    assert_int_equal(wpk_seal_write(fixture->path, NULL), WPK_OK);
    assert_int_equal(wpk_fs_read(fixture->path, WPK_KERNEL_SIZE_MAX, &after, NULL), WPK_OK);
    assert_int_equal(before.size, after.size);
    wpk_buf_fini(&before);
    wpk_buf_fini(&after);
}

static void wrong_devices_are_refused(void **state)
{
    struct wpk_kernel_fixture fixture;
    struct wpk_manifest manifest;
    struct wpk_kernel *kernel = NULL;
    struct wpk_open_options options = {.device_class = "cpu/m/zen4"};
    struct wpk_diag diag = {0};

    (void)state;
    wpk_kernel_fixture_manifest(&manifest, 4, 16, NULL);
    manifest.needs.flags = WPK_CPU_SET_AVX512 | WPK_CPU_AVX512_BF16;
    wpk_kernel_fixture_init(&fixture, &manifest, false);
    assert_int_equal(wpk_kernel_open(fixture.path, &options, &kernel, NULL), WPK_OK);
    wpk_kernel_close(kernel);
    options.device_class = "cpu/m/avx512";
    assert_int_equal(wpk_kernel_open(fixture.path, &options, &kernel, &diag), WPK_EMISMATCH);
    assert_non_null(strstr(diag.text, "needs avx512_bf16, which the machine lacks"));
    options.device_class = "cpu/m/avx2";
    diag.text[0] = '\0';
    assert_int_equal(wpk_kernel_open(fixture.path, &options, &kernel, &diag), WPK_EMISMATCH);
    assert_non_null(
        strstr(diag.text, "avx512f, avx512cd, avx512bw, avx512dq, avx512vl, avx512_bf16"));
    wpk_kernel_fixture_fini(&fixture);
}

static void malformed_device_classes_are_refused(void **state)
{
    static const char *const bad[] = {
        "",          "cpu",    "avx2",        "cpu/avx2",
        "cpu/m/mmx", "cpu/m/", "fake/m/avx2", "cuda/NVIDIA H200/sm_90/132"};
    const struct wpk_kernel_fixture *fixture = *state;
    struct wpk_kernel *kernel = NULL;
    struct wpk_model *model = NULL;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct wpk_open_options options = {.device_class = bad[i]};
        struct wpk_diag diag = {0};
        assert_int_equal(wpk_kernel_open(fixture->path, &options, &kernel, &diag), WPK_EINVAL);
        assert_non_null(strstr(diag.text, bad[i]));
        assert_non_null(strstr(diag.text, "device class"));
    }
    const struct wpk_open_options options = {.device_class = bad[0]};
    assert_int_equal(wpk_open(fixture->path, &options, &kernel, NULL), WPK_EINVAL);
    assert_int_equal(wpk_model_open(fixture->path, &options, &model, NULL), WPK_EINVAL);
}

/* The minimum over many batches: what a call costs when nothing disturbs it. A claim about time,
 * which a slow machine fails, is made with WPK_TIME only. */
static void a_call_costs_less_than_a_microsecond(void **state)
{
    const struct wpk_clock *clock = wpk_clock_system();
    struct wpk_kernel_fixture fixture;
    struct wpk_manifest manifest;
    struct wpk_kernel *kernel = NULL;
    struct wpk_context *context = new_context(1);
    _Alignas(64) float x[16] = {1};
    _Alignas(64) float y[16] = {0};
    const struct wpk_tensor_data input = {"X", x, sizeof(x)};
    const struct wpk_tensor_data output = {"Y", y, sizeof(y)};
    uint64_t best = UINT64_MAX;

    (void)state;
    wpk_kernel_fixture_manifest_bare(&manifest);
    wpk_kernel_fixture_init(&fixture, &manifest, true);
    assert_int_equal(wpk_kernel_open(fixture.path, NULL, &kernel, NULL), WPK_OK);
    assert_int_equal(wpk_kernel_prepare(kernel, NULL, 0, NULL), WPK_OK); /* nothing, twice */
    assert_int_equal(wpk_kernel_prepare(kernel, NULL, 0, NULL), WPK_OK);
    for (int batch = 0; batch < 200; batch++) {
        uint64_t start = wpk_clock_now_ns(clock);
        for (int i = 0; i < 100; i++) {
            assert_int_equal(wpk_kernel_run(kernel, context, &input, 1, &output, 1), WPK_OK);
        }
        uint64_t time = (wpk_clock_now_ns(clock) - start) / 100;
        best = time < best ? time : best;
    }
    assert_true(y[0] == 1);
    print_message("a call costs %llu ns\n", (unsigned long long)best);
    assert_true(getenv("WPK_TIME") == NULL || best < 1000);
    wpk_context_free(context);
    wpk_kernel_close(kernel);
    wpk_kernel_fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_its_arguments),
        cmocka_unit_test(computes_with_any_number_of_threads),
        cmocka_unit_test(computes_on_threads_of_its_host),
        cmocka_unit_test(tells_where_its_constants_lie),
        cmocka_unit_test(refuses_wrong_tensors),
        cmocka_unit_test(refuses_indices_out_of_their_axis),
        cmocka_unit_test(survives_refused_scratch),
        cmocka_unit_test(is_shared_by_threads),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(sealing_twice_changes_nothing),
        cmocka_unit_test(malformed_device_classes_are_refused),
        cmocka_unit_test(wrong_devices_are_refused),
        cmocka_unit_test(a_call_costs_less_than_a_microsecond),
    };

    return cmocka_run_group_tests(tests, make_fixture, remove_fixture);
}
