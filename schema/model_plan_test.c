/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/model_plan.h"

#include "common/crypto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wpk_tensor_type vector(int64_t extent)
{
    struct wpk_tensor_type type = {.dtype = WPK_F32, .rank = 1, .layout = wpk_layout_row_major(1)};

    type.extent[0] = extent;
    return type;
}

/* y = k(k(x, w), w) by way of the arena, in lists of the caller's. */
struct sample {
    struct wpk_model_plan plan;
    struct wpk_model_plan_shape shapes[2];
    struct wpk_model_plan_value values[4];
    struct wpk_model_plan_end inputs[1];
    struct wpk_model_plan_end outputs[1];
    struct wpk_model_plan_kernel kernels[1];
    struct wpk_model_plan_note notes[1];
    struct wpk_model_plan_step steps[2];
    struct wpk_model_plan_argument arguments[2][3];
    struct wpk_model_plan_loop loops[2];
    char data[128];
};

static void fill(struct sample *s)
{
    *s = (struct sample){
        .values = {{vector(4), WPK_MODEL_PLAN_INPUT, 0, false, 0},
                   {vector(4), WPK_MODEL_PLAN_DATA, 64, false, 0},
                   {vector(4), WPK_MODEL_PLAN_ARENA, 64, false, 0},
                   {vector(4), WPK_MODEL_PLAN_OUTPUT, 0, false, 0}},
        .inputs = {{.name = "the \"x\"", .domain = {-2, 120}}},
        .outputs = {{.name = "y", .value = 3}},
        .kernels = {{.size = 50,
                     .name = "Conv1",
                     .flops = 9,
                     .bytes = 8,
                     .time_ns = 7,
                     .vendor = "peer",
                     .vendor_ns = 6}},
        .arguments = {{{"t0", 0}, {"t1", 1}, {"t2", 2}}, {{"t0", 2}, {"t1", 1}, {"t2", 3}}},
        .notes = {{"batch2", "folded"}},
        .data = "kernel",
    };
    for (int i = 0; i < 2; i++) {
        s->steps[i] = (struct wpk_model_plan_step){
            .kernel = 0, .node = "node", .arguments = s->arguments[i], .argument_count = 3};
    }
    for (int i = 0; i < 2; i++) {
        s->shapes[i] = (struct wpk_model_plan_shape){.arena_size = 128,
                                                     .values = s->values,
                                                     .value_count = 4,
                                                     .inputs = s->inputs,
                                                     .input_count = 1,
                                                     .outputs = s->outputs,
                                                     .output_count = 1,
                                                     .notes = s->notes,
                                                     .note_count = 1,
                                                     .steps = s->steps,
                                                     .step_count = 2};
    }
    s->plan = (struct wpk_model_plan){.device = "cpu",
                                      .threads = 2,
                                      .kernels = s->kernels,
                                      .kernel_count = 1,
                                      .shapes = s->shapes,
                                      .shape_count = 2,
                                      .data = s->data,
                                      .data_size = sizeof(s->data)};
}

static void encode(struct sample *s, struct wpk_buf *out)
{
    wpk_buf_reset(out);
    assert_int_equal(wpk_model_plan_encode(&s->plan, out), WPK_OK);
}

static void test_round_trip(void **state)
{
    struct sample s;
    struct wpk_buf once = {0};
    struct wpk_buf twice = {0};
    struct wpk_model_plan plan;

    (void)state;
    fill(&s);
    encode(&s, &once);
    assert_int_equal(wpk_model_plan_decode(once.data, once.size, &plan, NULL), WPK_OK);
    assert_string_equal(plan.shapes[0].inputs[0].name, "the \"x\"");
    assert_true(plan.shapes[0].inputs[0].domain.low == -2);
    assert_true(plan.shapes[0].inputs[0].domain.high == 120);
    assert_int_equal(plan.shapes[1].steps[1].arguments[2].value, 3);
    assert_memory_equal(plan.data, s.data, sizeof(s.data));
    assert_int_equal((plan.data - once.data) % WPK_MODEL_PLAN_ALIGNMENT, 0);
    assert_int_equal(wpk_model_plan_encode(&plan, &twice), WPK_OK);
    assert_int_equal(once.size, twice.size);
    assert_memory_equal(once.data, twice.data, once.size);
    wpk_model_plan_fini(&plan);
    wpk_buf_fini(&once);
    wpk_buf_fini(&twice);
}

/* Each byte matters but for the zeros between manifest and data; each cut is seen. */
static void test_damage(void **state)
{
    struct sample s;
    struct wpk_buf file = {0};
    struct wpk_model_plan plan;
    size_t accepted = 0;

    (void)state;
    fill(&s);
    encode(&s, &file);
    for (size_t i = 0; i < file.size; i++) {
        struct wpk_diag diag = {.text = ""};
        file.data[i] ^= 4;
        wpk_err err = wpk_model_plan_decode(file.data, file.size, &plan, &diag);
        assert_true(err == WPK_OK || err == WPK_ECORRUPT || err == WPK_EMISMATCH);
        assert_true(err == WPK_OK || diag.text[0] != '\0');
        accepted += err == WPK_OK;
        wpk_model_plan_fini(&plan);
        file.data[i] ^= 4;
        assert_int_not_equal(wpk_model_plan_decode(file.data, i, &plan, NULL), WPK_OK);
        wpk_model_plan_fini(&plan);
    }
    assert_true(accepted < WPK_MODEL_PLAN_ALIGNMENT + sizeof(uint32_t));
    wpk_buf_fini(&file);
}

static void expect_refused(struct sample *s)
{
    struct wpk_buf file = {0};
    struct wpk_model_plan plan;
    struct wpk_diag diag = {.text = ""};

    encode(s, &file);
    assert_int_equal(wpk_model_plan_decode(file.data, file.size, &plan, &diag), WPK_ECORRUPT);
    assert_string_not_equal(diag.text, "");
    wpk_model_plan_fini(&plan);
    wpk_buf_fini(&file);
    fill(s);
}

/* Shapes with other inputs or outputs, or none at all. */
static void test_unequal_shapes(void **state)
{
    struct wpk_model_plan_end other = {.name = "z"};
    struct wpk_model_plan_end two[2] = {{.name = "the \"x\""}, {.name = "y"}};
    struct sample s;

    (void)state;
    fill(&s);
    s.plan.shape_count = 0;
    expect_refused(&s);
    s.shapes[1].inputs = &other;
    expect_refused(&s);
    s.shapes[1].inputs = two;
    s.shapes[1].input_count = 2;
    expect_refused(&s);
    s.shapes[1].output_count = 0;
    expect_refused(&s);
}

/* A plan with right checksums whose places or numbers are out of bounds. */
static void test_inconsistent(void **state)
{
    struct sample s;

    (void)state;
    fill(&s);
    s.values[1].offset = 128;
    expect_refused(&s);
    s.values[1].offset = 2;
    expect_refused(&s);
    s.values[2].type = vector(17);
    expect_refused(&s);
    s.values[0].offset = 1;
    expect_refused(&s);
    s.values[3].offset = 1;
    expect_refused(&s);
    s.inputs[0].value = 2;
    expect_refused(&s);
    s.outputs[0].value = 4;
    expect_refused(&s);
    s.kernels[0].size = 129;
    expect_refused(&s);
    s.kernels[0].offset = 100;
    expect_refused(&s);
    s.steps[1].kernel = 1;
    expect_refused(&s);
    s.arguments[0][0].value = 4;
    expect_refused(&s);
}

/* The sample with both steps in a loop, in which the value between them moves. */
static void fill_loop(struct sample *s)
{
    static const struct wpk_model_plan_loop loop = {.first = 0, .count = 2, .times = 3};

    fill(s);
    s->values[2].stride = 16;
    s->loops[0] = loop;
    for (int i = 0; i < 2; i++) {
        s->shapes[i].loops = s->loops;
        s->shapes[i].loop_count = 1;
    }
}

static void test_loop_round_trip(void **state)
{
    struct sample s;
    struct wpk_buf file = {0};
    struct wpk_model_plan plan;

    (void)state;
    fill_loop(&s);
    encode(&s, &file);
    assert_int_equal(wpk_model_plan_decode(file.data, file.size, &plan, NULL), WPK_OK);
    assert_int_equal(plan.shapes[1].loop_count, 1);
    assert_int_equal(plan.shapes[1].loops[0].count, 2);
    assert_int_equal(plan.shapes[1].loops[0].times, 3);
    assert_int_equal(plan.shapes[1].values[2].stride, 16);
    assert_ptr_equal(wpk_model_plan_find_loop(&plan.shapes[1], 1), &plan.shapes[1].loops[0]);
    assert_null(wpk_model_plan_find_loop(&plan.shapes[1], 2));
    wpk_model_plan_fini(&plan);
    fill_loop(&s);
    s.values[2].offset = 112; /* the other way round */
    s.values[2].stride = -56;
    encode(&s, &file);
    assert_int_equal(wpk_model_plan_decode(file.data, file.size, &plan, NULL), WPK_OK);
    wpk_model_plan_fini(&plan);
    wpk_buf_fini(&file);
}

/* Loops that take a value out of its place, or are none. */
static void test_inconsistent_loops(void **state)
{
    struct sample s;

    (void)state;
    fill_loop(&s);
    s.loops[0].times = 5;
    expect_refused(&s);
    fill_loop(&s);
    s.loops[0].times = WPK_MODEL_PLAN_ARENA_MAX;
    expect_refused(&s);
    fill_loop(&s);
    s.values[2].stride = -36;
    expect_refused(&s);
    fill_loop(&s);
    s.values[2].stride = 2;
    expect_refused(&s);
    fill_loop(&s);
    s.values[0].stride = 4; /* of an input */
    expect_refused(&s);
    fill_loop(&s);
    s.loops[0].count = 1; /* the second step is outside of it */
    expect_refused(&s);
    fill_loop(&s);
    s.loops[0].count = 3;
    expect_refused(&s);
    fill_loop(&s);
    s.loops[0].first = 2;
    expect_refused(&s);
    fill_loop(&s);
    s.loops[0].times = 0;
    expect_refused(&s);
    fill_loop(&s);
    s.loops[1] = s.loops[0];
    s.shapes[0].loop_count = 2;
    expect_refused(&s);
    fill_loop(&s);
    s.outputs[0].value = 2;
    expect_refused(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_damage),
        cmocka_unit_test(test_unequal_shapes),  cmocka_unit_test(test_inconsistent),
        cmocka_unit_test(test_loop_round_trip), cmocka_unit_test(test_inconsistent_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
