/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of hand-written kernels: what a run computes, that it allocates nothing, and which plans
 * are refused. The fixture's kernel computes Y[i,j] = X[i,j] * 2 * W[j] + S[j]. */
#include "common/fs.h"
#include "runtime/wpk.h"
#include "schema/model_plan.h"
#include "tests/kernel_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 5
#define COLUMNS 16
#define COUNT (ROWS * COLUMNS)
#define DATA_SIZE 65536 /* bytes of a plan's data: the kernel, then the constants */

/* Calls of the allocator from libwpk and from here; the linker leads them to these (--wrap). */
static int allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    allocations++;
    return __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __real_aligned_alloc(alignment, size);
}

/* y = f(f(x, w, s), v, s), and `same`, which is x. Lists are the caller's to change. */
struct scene {
    struct wpk_kernel_fixture fixture;
    char path[128];
    struct wpk_model_plan plan;
    struct wpk_model_plan_shape shapes[2]; /* the second one has the first step alone */
    struct wpk_model_plan_value values[8];
    struct wpk_model_plan_loop loops[1];
    struct wpk_model_plan_end inputs[1];
    struct wpk_model_plan_end outputs[2];
    struct wpk_model_plan_end short_outputs[2];
    struct wpk_model_plan_kernel kernels[1];
    struct wpk_model_plan_step steps[2];
    struct wpk_model_plan_argument arguments[2][4];
    char data[DATA_SIZE];
};

static struct wpk_tensor_type type_of(int rank, int64_t a, int64_t b)
{
    struct wpk_tensor_type type = {
        .dtype = WPK_F32, .rank = rank, .layout = wpk_layout_row_major(rank)};

    type.extent[0] = a;
    type.extent[1] = b;
    return type;
}

static void put_constant(struct scene *scene, int value, int64_t offset, float first, float step)
{
    float numbers[COLUMNS];

    for (int j = 0; j < COLUMNS; j++) {
        numbers[j] = first + step * (float)j;
    }
    memcpy(scene->data + offset, numbers, sizeof(numbers));
    scene->values[value] = (struct wpk_model_plan_value){type_of(1, COLUMNS, 0),
                                                         WPK_MODEL_PLAN_DATA, offset, false, 0};
}

static void read_kernel(struct scene *scene)
{
    struct wpk_buf file = {0};

    assert_int_equal(wpk_fs_read(scene->fixture.path, DATA_SIZE, &file, NULL), WPK_OK);
    assert_true(file.size < DATA_SIZE - 1024);
    memcpy(scene->data, file.data, file.size);
    scene->kernels[0] = (struct wpk_model_plan_kernel){
        .size = (int64_t)file.size, .name = "Scale1", .flops = 12, .time_ns = 7, .vendor = "peer"};
    wpk_buf_fini(&file);
}

static void fill(struct scene *scene)
{
    const struct wpk_tensor_type matrix = type_of(2, ROWS, COLUMNS);

    scene->values[0] = (struct wpk_model_plan_value){matrix, WPK_MODEL_PLAN_INPUT, 0, false, 0};
    scene->values[1] = (struct wpk_model_plan_value){matrix, WPK_MODEL_PLAN_ARENA, 64, false, 0};
    scene->values[2] = (struct wpk_model_plan_value){matrix, WPK_MODEL_PLAN_OUTPUT, 0, false, 0};
    put_constant(scene, 3, DATA_SIZE - 64, 0.5F, 0.25F);
    put_constant(scene, 4, DATA_SIZE - 128, -1.0F, 0.125F);
    put_constant(scene, 5, DATA_SIZE - 192, 3.0F, -0.5F);
    for (int i = 0; i < 2; i++) {
        scene->arguments[i][0] = (struct wpk_model_plan_argument){"X", i};
        scene->arguments[i][1] = (struct wpk_model_plan_argument){"W", 3 + i};
        scene->arguments[i][2] = (struct wpk_model_plan_argument){"S", 5};
        scene->arguments[i][3] = (struct wpk_model_plan_argument){"Y", 1 + i};
        scene->steps[i] = (struct wpk_model_plan_step){.node = i == 0 ? "first" : "second",
                                                       .arguments = scene->arguments[i],
                                                       .argument_count = 4};
    }
    scene->inputs[0] = (struct wpk_model_plan_end){.name = "x", .value = 0};
    scene->outputs[0] = (struct wpk_model_plan_end){.name = "y", .value = 2};
    scene->outputs[1] = (struct wpk_model_plan_end){.name = "same", .value = 0};
    scene->short_outputs[0] = (struct wpk_model_plan_end){.name = "y", .value = 1};
    scene->short_outputs[1] = scene->outputs[1];
    scene->shapes[0] = (struct wpk_model_plan_shape){
        .arena_size = 64 + COUNT * (int64_t)sizeof(float),
        .values = scene->values,
        .value_count = 6,
        .inputs = scene->inputs,
        .input_count = 1,
        .outputs = scene->outputs,
        .output_count = 2,
        .steps = scene->steps,
        .step_count = 2,
    };
    scene->shapes[1] = scene->shapes[0];
    scene->shapes[1].outputs = scene->short_outputs;
    scene->shapes[1].step_count = 1;
    scene->plan = (struct wpk_model_plan){.device = "cpu",
                                          .threads = 1,
                                          .kernels = scene->kernels,
                                          .kernel_count = 1,
                                          .shapes = scene->shapes,
                                          .shape_count = 2,
                                          .data = scene->data,
                                          .data_size = DATA_SIZE};
}

static int set_up(void **state)
{
    static struct scene scene;
    struct wpk_manifest manifest;

    scene = (struct scene){.path = ""};
    wpk_kernel_fixture_manifest(&manifest, ROWS, COLUMNS, "0,1");
    snprintf(manifest.in_place, sizeof(manifest.in_place), "X");
    wpk_kernel_fixture_init(&scene.fixture, &manifest, false);
    snprintf(scene.path, sizeof(scene.path), "%s/model.wpk", scene.fixture.directory);
    read_kernel(&scene);
    fill(&scene);
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;

    (void)remove(scene->path);
    wpk_kernel_fixture_fini(&scene->fixture);
    return 0;
}

static wpk_err open_plan(struct scene *scene, struct wpk_model **out, struct wpk_diag *diag)
{
    struct wpk_buf file = {0};

    assert_int_equal(wpk_model_plan_encode(&scene->plan, &file), WPK_OK);
    assert_int_equal(wpk_fs_write(scene->path, file.data, file.size, 0600, NULL), WPK_OK);
    wpk_buf_fini(&file);
    return wpk_model_open(scene->path, NULL, out, diag);
}

static void run(struct wpk_model_context *context, const float *x, float *y, float *same)
{
    const struct wpk_tensor_data input = {"x", (void *)x, COUNT * sizeof(float)};
    const struct wpk_tensor_data outputs[] = {{"same", same, COUNT * sizeof(float)},
                                              {"y", y, COUNT * sizeof(float)}};

    assert_int_equal(wpk_model_run(context, &input, 1, outputs, 2), WPK_OK);
}

static void test_run(void **state)
{
    struct scene *scene = *state;
    struct wpk_model *model = NULL;
    struct wpk_model_context *contexts[2];
    float x[COUNT], other[COUNT], y[COUNT], same[COUNT], again[COUNT];

    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i % 9) - 4;
        other[i] = (float)(i % 5);
    }
    assert_int_equal(open_plan(scene, &model, NULL), WPK_OK);
    assert_int_equal(wpk_model_step_count(model, 0), 2);
    assert_string_equal(wpk_model_input(model, 0, 0)->name, "x");
    assert_int_equal(wpk_model_output(model, 0, 1)->type.extent[1], COLUMNS);
    for (int c = 0; c < 2; c++) {
        assert_int_equal(wpk_model_context_new(model, 0, NULL, &contexts[c]), WPK_OK);
    }
    run(contexts[0], x, y, same);
    run(contexts[1], x, y, same);
    int before = allocations;
    run(contexts[0], x, y, same);
    run(contexts[1], other, again, same);
    run(contexts[1], x, again, same);
    assert_int_equal(allocations, before);
    assert_memory_equal(y, again, sizeof(y));
    assert_memory_equal(x, same, sizeof(x));
    for (int i = 0; i < COUNT; i++) {
        float j = (float)(i % COLUMNS);
        float s = 3.0F - 0.5F * j;
        float first = x[i] * 2 * (0.5F + 0.25F * j) + s;
        float wanted = first * 2 * (-1.0F + 0.125F * j) + s;
        assert_true(y[i] == wanted); /* small multiples of powers of two are exact */
    }
    const struct wpk_model_step step = wpk_model_step(model, 0, 1);
    assert_string_equal(step.node, "second");
    assert_string_equal(step.kernel, "Scale1");
    assert_string_equal(step.vendor, "peer");
    assert_true(step.flops == 12 && step.tuned_ns == 7 && step.vendor_ns == 0);
    uint64_t step_ns[3] = {0, 0, 123};
    const struct wpk_tensor_data input = {"x", x, sizeof(x)};
    const struct wpk_tensor_data outputs[] = {{"same", same, sizeof(same)},
                                              {"y", again, sizeof(again)}};
    memset(again, 0, sizeof(again));
    assert_int_equal(wpk_model_profile(contexts[0], &input, 1, outputs, 2, step_ns), WPK_OK);
    assert_memory_equal(y, again, sizeof(y));
    assert_true(step_ns[0] > 0 && step_ns[1] > 0 && step_ns[2] == 123);
    for (int c = 0; c < 2; c++) {
        wpk_model_context_free(contexts[c]);
    }
    wpk_model_close(model);
}

/* Each set of shapes has steps of its own; several contexts of several sets live side by side. */
static void test_shapes(void **state)
{
    struct wpk_model *model = NULL;
    struct wpk_model_context *both = NULL;
    struct wpk_model_context *first = NULL;
    float x[COUNT], y[COUNT], same[COUNT];

    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i % 7) - 3;
    }
    assert_int_equal(open_plan(*state, &model, NULL), WPK_OK);
    assert_int_equal(wpk_model_shape_count(model), 2);
    assert_int_equal(wpk_model_step_count(model, 1), 1);
    struct wpk_argument wanted = *wpk_model_input(model, 1, 0);
    assert_int_equal(wpk_model_find_shape(model, &wanted, 1), 0);
    assert_int_equal(wpk_model_find_shape(model, NULL, 0), 0);
    wanted.type.extent[0]++;
    assert_true(wpk_model_find_shape(model, &wanted, 1) == WPK_MODEL_NO_SHAPE);
    assert_int_equal(wpk_model_context_new(model, 1, NULL, &first), WPK_OK);
    assert_int_equal(wpk_model_context_new(model, 0, NULL, &both), WPK_OK);
    run(both, x, y, same);
    run(first, x, y, same);
    for (int i = 0; i < COUNT; i++) {
        float j = (float)(i % COLUMNS);
        assert_true(y[i] == x[i] * 2 * (0.5F + 0.25F * j) + 3.0F - 0.5F * j);
    }
    wpk_model_context_free(first);
    wpk_model_context_free(both);
    wpk_model_close(model);
}

/* A step's output may be where its input is, if the kernel says so, and not beside it. */
static void test_in_place(void **state)
{
    struct scene *scene = *state;
    struct wpk_model *model = NULL;
    struct wpk_model_context *context = NULL;
    struct wpk_diag diag = {.text = ""};
    float x[COUNT], apart[COUNT], y[COUNT], same[COUNT];

    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i % 11) - 5;
    }
    assert_int_equal(open_plan(scene, &model, NULL), WPK_OK);
    assert_int_equal(wpk_model_context_new(model, 0, NULL, &context), WPK_OK);
    run(context, x, apart, same);
    wpk_model_context_free(context);
    wpk_model_close(model);
    scene->values[2].place = WPK_MODEL_PLAN_ARENA;
    scene->values[2].offset = 64; /* as value 1 */
    assert_int_equal(open_plan(scene, &model, NULL), WPK_OK);
    assert_int_equal(wpk_model_context_new(model, 0, NULL, &context), WPK_OK);
    run(context, x, y, same);
    assert_memory_equal(y, apart, sizeof(y));
    wpk_model_context_free(context);
    wpk_model_close(model);
    scene->values[2].offset = 68;
    scene->shapes[0].arena_size += 64;
    scene->shapes[1].arena_size += 64;
    assert_int_equal(open_plan(scene, &model, &diag), WPK_ECORRUPT);
    assert_non_null(strstr(diag.text, "node second: the plan has output Y where an input is"));
}

static void expect_refused(struct scene *scene, const char *text)
{
    struct wpk_model *model = NULL;
    struct wpk_diag diag = {.text = ""};

    assert_int_equal(open_plan(scene, &model, &diag), WPK_ECORRUPT);
    assert_non_null(strstr(diag.text, text));
    assert_string_equal(diag.file, scene->path);
    fill(scene);
}

#define TIMES 3

/* Let `y` be f(f(f(x, v, s), v, s), v, s): a loop, with its states side by side in the arena. */
static void fill_loop(struct scene *scene, bool is_reverse)
{
    const struct wpk_tensor_type matrix = type_of(2, ROWS, COLUMNS);
    const int64_t size = COUNT * (int64_t)sizeof(float);
    const int64_t stride = is_reverse ? -size : size;
    const int64_t first = 64 + (is_reverse ? TIMES * size : 0);

    fill(scene);
    for (int i = 0; i < 4; i++) {
        static const int numbers[] = {1, 6, 2, 7}; /* the start, each state, the next, the last */
        static const int slots[] = {0, 0, 1, TIMES};
        scene->values[numbers[i]] =
            (struct wpk_model_plan_value){matrix, WPK_MODEL_PLAN_ARENA, first + slots[i] * stride,
                                          false, i == 1 || i == 2 ? stride : 0};
    }
    scene->steps[0].kernel = -1;
    scene->steps[0].argument_count = 2;
    scene->steps[0].host = (struct wpk_model_plan_host){
        .op = WPK_MODEL_PLAN_COPY, .before = 1, .extent = COUNT, .after = 1, .count = COUNT};
    scene->arguments[0][1] = (struct wpk_model_plan_argument){"y", 1};
    scene->arguments[1][0].value = 6;
    scene->loops[0] = (struct wpk_model_plan_loop){.first = 1, .count = 1, .times = TIMES};
    scene->outputs[0].value = 7;
    scene->shapes[0].arena_size = 64 + (TIMES + 1) * size;
    scene->shapes[0].value_count = 8;
    scene->shapes[0].loops = scene->loops;
    scene->shapes[0].loop_count = 1;
    scene->plan.shape_count = 1;
}

static void count_calls(void *user, size_t step, bool is_done,
                        const struct wpk_model_tensor *tensors, size_t count)
{
    int *calls = user;

    (void)tensors;
    (void)count;
    calls[step] += is_done;
}

static void run_loop(struct scene *scene)
{
    struct wpk_model *model = NULL;
    struct wpk_model_context *context = NULL;
    float x[COUNT], y[COUNT], same[COUNT];
    const struct wpk_tensor_data input = {"x", x, sizeof(x)};
    const struct wpk_tensor_data outputs[] = {{"same", same, sizeof(same)}, {"y", y, sizeof(y)}};
    uint64_t step_ns[2] = {0};
    int calls[2] = {0};

    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)(i % 9) - 4;
    }
    assert_int_equal(open_plan(scene, &model, NULL), WPK_OK);
    assert_int_equal(wpk_model_context_new(model, 0, NULL, &context), WPK_OK);
    assert_true(wpk_model_step(model, 0, 0).calls == 1);
    assert_true(wpk_model_step(model, 0, 1).calls == TIMES);
    run(context, x, y, same);
    int before = allocations;
    run(context, x, y, same);
    assert_int_equal(allocations, before);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < COUNT; i++) {
            float j = (float)(i % COLUMNS);
            float wanted = x[i];
            for (int t = 0; t < TIMES; t++) {
                wanted = wanted * 2 * (-1.0F + 0.125F * j) + 3.0F - 0.5F * j;
            }
            assert_true(y[i] == wanted);
        }
        memset(y, 0, sizeof(y));
        assert_int_equal(wpk_model_watch(context, &input, 1, outputs, 2, count_calls, calls),
                         WPK_OK);
    }
    assert_int_equal(calls[0], 2);
    assert_int_equal(calls[1], 2 * 2); /* the first and the last iteration */
    assert_int_equal(wpk_model_profile(context, &input, 1, outputs, 2, step_ns), WPK_OK);
    assert_true(step_ns[1] > 0);
    wpk_model_context_free(context);
    wpk_model_close(model);
}

static void test_loop(void **state)
{
    struct scene *scene = *state;

    fill_loop(scene, false);
    run_loop(scene);
    fill_loop(scene, true);
    run_loop(scene);
}

/* An iteration writes over what it reads, or a later one over what all read. */
static void test_loop_overlap(void **state)
{
    struct scene *scene = *state;

    fill_loop(scene, false);
    scene->values[2].offset = 68;
    expect_refused(scene, "node second: the plan has output Y where an input is");
    fill_loop(scene, false);
    scene->values[6].stride = 0;
    scene->values[6].offset = scene->values[7].offset;
    expect_refused(scene, "node second: the plan has output Y where an input is");
}

static void test_wrong_arguments(void **state)
{
    struct wpk_model *model = NULL;
    struct wpk_model_context *context = NULL;
    static float data[COUNT + 1];
    const struct wpk_tensor_data good = {"x", data, COUNT * sizeof(float)};
    const struct wpk_tensor_data y[] = {{"y", data, COUNT * sizeof(float)},
                                        {"same", data, COUNT * sizeof(float)}};
    const struct wpk_tensor_data wrong[] = {
        {"z", data, COUNT * sizeof(float)},
        {NULL, data, COUNT * sizeof(float)},
        {"x", NULL, COUNT * sizeof(float)},
        {"x", data, (COUNT - 1) * sizeof(float)},
        {"x", (char *)data + 1, COUNT * sizeof(float)},
    };

    assert_int_equal(open_plan(*state, &model, NULL), WPK_OK);
    assert_int_equal(wpk_model_context_new(model, 0, NULL, &context), WPK_OK);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(wpk_model_run(context, &wrong[i], 1, y, 2), WPK_EINVAL);
    }
    assert_int_equal(wpk_model_run(context, &good, 0, y, 2), WPK_EINVAL);
    assert_int_equal(wpk_model_run(context, &good, 1, y, 1), WPK_EINVAL);
    wpk_model_context_free(context);
    wpk_model_close(model);
}

/* Plans whose steps do not fit their kernels. */
static void test_refused(void **state)
{
    struct scene *scene = *state;
    struct wpk_model *model = NULL;
    struct wpk_diag diag = {.text = ""};

    snprintf(scene->arguments[1][1].name, WPK_NAME_MAX, "Q");
    expect_refused(scene, "node second: the plan has no fitting value for constant W");
    scene->arguments[0][0].value = 3;
    expect_refused(scene, "input X");
    scene->arguments[0][3].value = 0; /* a kernel may not write an input */
    expect_refused(scene, "output Y");
    scene->arguments[0][1].value = 1; /* a constant must be one */
    expect_refused(scene, "constant W");
    scene->values[1].type.dtype = WPK_I32;
    expect_refused(scene, "node first");
    scene->kernels[0].offset = 64;
    expect_refused(scene, "cannot load the kernel");
    assert_int_equal(wpk_model_open("/nonexistent.wpk", NULL, &model, &diag), WPK_ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shapes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_in_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_loop_overlap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_arguments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
