/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of graphs whose kernels are texts: steps, places of values, constants, notes. */
#include "model/plan/assemble.h"

#include "tests/model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { KERNELS_MAX = 8 };

/* A graph, its regions, and a kernel for each of them. */
struct subject {
    struct wpk_assemble_shape shape;
    struct wpk_assemble_kernel kernels[KERNELS_MAX];
    struct wpk_buf file;
    void *bytes; /* of the file, aligned */
    struct wpk_model_plan plan;
};

/* Find the regions of a model, which is empty then. */
static void begin(struct wpk_model_fixture *model, struct subject *s)
{
    memset(s, 0, sizeof(*s));
    wpk_model_case_read(model, &s->shape.graph);
    assert_int_equal(wpk_graph_regions_find(&s->shape.graph, &s->shape.regions, NULL), WPK_OK);
    assert_in_range(s->shape.regions.count, 0, KERNELS_MAX);
    s->shape.kernel = calloc(KERNELS_MAX, sizeof(int));
    assert_non_null(s->shape.kernel);
    for (int r = 0; r < s->shape.regions.count; r++) {
        s->shape.kernel[r] = r;
        s->kernels[r] = (struct wpk_assemble_kernel){.region = r, .vendor = "", .time_ns = 7};
        wpk_buf_printf(&s->kernels[r].object, "object %d", r);
    }
    s->file.size_max = 1 << 24;
    wpk_model_fixture_fini(model);
}

/* Assemble the plan of so many copies of the shape, and read it. */
static void assemble(struct subject *s, int shapes)
{
    struct wpk_assemble_shape list[2];
    struct wpk_diag diag = {.text = ""};
    list[0] = list[1] = s->shape;
    const struct wpk_assemble_parts parts = {.shapes = list,
                                             .shape_count = shapes,
                                             .kernels = s->kernels,
                                             .kernel_count = s->shape.regions.count,
                                             .threads = 3,
                                             .device = "cpu/any/avx2"};
    if (wpk_assemble_plan(&parts, &s->file, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    size_t size = (s->file.size + 63) / 64 * 64;
    s->bytes = aligned_alloc(WPK_MODEL_PLAN_ALIGNMENT, size);
    assert_non_null(s->bytes);
    memcpy(s->bytes, s->file.data, s->file.size);
    if (wpk_model_plan_decode(s->bytes, s->file.size, &s->plan, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
}

static void end(struct subject *s)
{
    wpk_model_plan_fini(&s->plan);
    free(s->bytes);
    wpk_buf_fini(&s->file);
    for (int r = 0; r < KERNELS_MAX; r++) {
        wpk_buf_fini(&s->kernels[r].object);
    }
    wpk_assemble_shape_fini(&s->shape);
}

/* The value that a step writes: that of its last argument. */
static const struct wpk_model_plan_value *written(const struct wpk_model_plan_shape *shape, int n)
{
    const struct wpk_model_plan_step *step = &shape->steps[n];
    return &shape->values[step->arguments[step->argument_count - 1].value];
}

/* t = x w, u = t w, y = u w: three calls of one kernel. */
static void build_products(struct wpk_model_fixture *model)
{
    *model = (struct wpk_model_fixture){.fd = 0};
    wpk_model_fixture_input(model, "x", "f32[8,8]");
    wpk_model_fixture_constant(model, "w", "f32[8,8]", NULL);
    wpk_model_fixture_node(model, "MatMul", "x,w", "t", "");
    wpk_model_fixture_node(model, "MatMul", "t,w", "u", "");
    wpk_model_fixture_node(model, "MatMul", "u,w", "y", "");
    wpk_model_fixture_output(model, "y");
}

static void steps_call_the_kernels_of_their_regions(void **state)
{
    (void)state;
    struct wpk_model_fixture model;
    struct subject s;
    build_products(&model);
    begin(&model, &s);
    assert_int_equal(s.shape.regions.count, 1); /* one fingerprint */
    assert_int_equal(s.shape.regions.list[0].count, 3);
    assemble(&s, 1);
    const struct wpk_model_plan_shape *shape = &s.plan.shapes[0];
    static const char *const nodes[] = {"t", "u", "y"};
    assert_int_equal(s.plan.threads, 3);
    assert_string_equal(s.plan.device, "cpu/any/avx2");
    assert_int_equal(s.plan.kernel_count, 1);
    assert_memory_equal(s.plan.data + s.plan.kernels[0].offset, "object 0", 8);
    assert_int_equal(s.plan.kernels[0].size, 8);
    assert_int_equal(s.plan.kernels[0].time_ns, 7);
    assert_true(s.plan.kernels[0].flops == 2 * 8 * 8 * 8);
    assert_int_equal(shape->step_count, 3);
    for (int n = 0; n < 3; n++) {
        assert_int_equal(shape->steps[n].kernel, 0);
        assert_string_equal(shape->steps[n].node, nodes[n]);
        assert_int_equal(shape->steps[n].argument_count, 3);
    }
    end(&s);
}

static void values_lie_in_inputs_outputs_data_or_the_arena(void **state)
{
    (void)state;
    struct wpk_model_fixture model;
    struct subject s;
    build_products(&model);
    begin(&model, &s);
    assemble(&s, 1);
    const struct wpk_model_plan_shape *shape = &s.plan.shapes[0];
    assert_int_equal(shape->input_count, 1);
    assert_string_equal(shape->inputs[0].name, "x");
    assert_int_equal(shape->values[shape->inputs[0].value].place, WPK_MODEL_PLAN_INPUT);
    assert_int_equal(written(shape, 0)->place, WPK_MODEL_PLAN_ARENA);
    assert_int_equal(written(shape, 1)->place, WPK_MODEL_PLAN_ARENA);
    assert_int_equal(written(shape, 2)->place, WPK_MODEL_PLAN_OUTPUT); /* where the caller wants */
    assert_int_not_equal(written(shape, 0)->offset, written(shape, 1)->offset);
    assert_int_equal(shape->arena_size, 2 * 8 * 8 * 4);
    end(&s);
}

/* The input's memory holds the output, where the kernel may replace it: t's holds u. */
static void outputs_replace_inputs_that_nothing_needs_later(void **state)
{
    (void)state;
    for (int kept = 0; kept < 2; kept++) {
        struct wpk_model_fixture model;
        struct subject s;
        build_products(&model);
        if (kept) {
            wpk_model_fixture_node(&model, "MatMul", "t,w", "z", ""); /* reads t once more */
            wpk_model_fixture_output(&model, "z");
        }
        begin(&model, &s);
        const struct wpk_graph_region_use *use = &s.shape.regions.uses[0];
        for (int i = 0; i < use->argument_count; i++) { /* the kernel's name of x */
            if (use->arguments[i].value == wpk_graph_find(&s.shape.graph, "x")) {
                snprintf(s.kernels[0].in_place, sizeof(s.kernels[0].in_place), "%s",
                         use->arguments[i].name);
            }
        }
        assemble(&s, 1);
        const struct wpk_model_plan_shape *shape = &s.plan.shapes[0];
        bool same = written(shape, 0)->offset == written(shape, 1)->offset;
        assert_int_equal(same, !kept);
        assert_int_equal(shape->arena_size, (kept ? 2 : 1) * 8 * 8 * 4);
        end(&s);
    }
}

/* w and v have the same numbers, in both sets of shapes. */
static void equal_constants_are_stored_once(void **state)
{
    (void)state;
    for (int equal = 0; equal < 2; equal++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct subject s;
        int64_t offset[2] = {-1, -1};
        int constants = 0;
        wpk_model_fixture_input(&model, "x", "f32[4]");
        wpk_model_fixture_constant(&model, "w", "f32[4]", NULL);
        wpk_model_fixture_constant(&model, "v", "f32[4]", equal ? "1,2,3,4" : "1,2,3,5");
        wpk_model_fixture_node(&model, "Mul", "x,w", "t", "");
        wpk_model_fixture_node(&model, "Add", "t,v", "y", "");
        wpk_model_fixture_output(&model, "y");
        begin(&model, &s);
        assemble(&s, 2);
        assert_int_equal(s.plan.shape_count, 2);
        for (int v = 0; v < s.plan.shapes[0].value_count; v++) {
            const struct wpk_model_plan_value *value = &s.plan.shapes[0].values[v];
            if (value->place == WPK_MODEL_PLAN_DATA) {
                assert_int_equal(value->offset, s.plan.shapes[1].values[v].offset);
                assert_int_equal(value->offset % WPK_MODEL_PLAN_ALIGNMENT, 0);
                offset[constants++] = value->offset;
            }
        }
        assert_int_equal(constants, 2);
        assert_int_equal(offset[0] == offset[1], equal);
        end(&s);
    }
}

/* A constant and an input are outputs; t is read by a view of half of it. */
static void outputs_that_lie_elsewhere_are_copied(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.opset = 9};
    struct subject s;
    wpk_model_fixture_input(&model, "x", "f32[4,4]");
    wpk_model_fixture_constant(&model, "c", "f32[2]", NULL);
    wpk_model_fixture_node(&model, "Softmax", "x", "t", "");
    wpk_model_fixture_node(&model, "Slice", "t", "y", "starts:I=2 ends:I=4");
    wpk_model_fixture_node(&model, "Identity", "c", "d", "");
    wpk_model_fixture_output(&model, "y");
    wpk_model_fixture_output(&model, "d");
    wpk_model_fixture_output(&model, "x");
    begin(&model, &s);
    assemble(&s, 1);
    const struct wpk_model_plan_shape *shape = &s.plan.shapes[0];
    const struct wpk_model_plan_value *y = &shape->values[shape->outputs[0].value];
    assert_int_equal(shape->output_count, 3);
    assert_int_equal(y->place, WPK_MODEL_PLAN_ARENA);
    assert_int_equal(y->offset, written(shape, 0)->offset + 2 * 4 * 4);
    assert_int_equal(y->type.extent[0], 2);
    assert_int_equal(shape->values[shape->outputs[1].value].place, WPK_MODEL_PLAN_DATA);
    assert_int_equal(shape->values[shape->outputs[2].value].place, WPK_MODEL_PLAN_INPUT);
    assert_int_equal(shape->step_count, 1);
    end(&s);
}

static void nodes_that_are_no_steps_have_a_note(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct subject s;
    int found = 0;
    wpk_model_fixture_input(&model, "x", "f32[2,8]");
    wpk_model_fixture_constant(&model, "shape", "i64[1]", "16");
    wpk_model_fixture_constant(&model, "one", "f32[2]", NULL);
    wpk_model_fixture_node(&model, "Exp", "one", "folded", "");
    wpk_model_fixture_node(&model, "Softmax", "x", "t", "");
    wpk_model_fixture_node(&model, "Reshape", "t,shape", "y", "");
    wpk_model_fixture_output(&model, "y");
    wpk_model_fixture_output(&model, "folded");
    begin(&model, &s);
    assemble(&s, 1);
    const struct wpk_model_plan_shape *shape = &s.plan.shapes[0];
    for (int n = 0; n < shape->note_count; n++) {
        const struct wpk_model_plan_note *note = &shape->notes[n];
        found += strcmp(note->node, "folded") == 0 &&
                 strcmp(note->why, "follows from constants and shapes") == 0;
        found += strcmp(note->node, "y") == 0 &&
                 strcmp(note->why, "its output is its input's memory") == 0;
    }
    assert_int_equal(found, 2);
    end(&s);
}

/* Functions of libwpk: a step without a kernel. */
static void host_functions_are_steps(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct subject s;
    wpk_model_fixture_input(&model, "x", "f32[3,9,2]");
    wpk_model_fixture_constant(&model, "k", "i64[1]", "4");
    wpk_model_fixture_node(&model, "TopK", "x,k", "y", "axis:i=1 largest:i=0");
    wpk_model_fixture_output(&model, "y");
    begin(&model, &s);
    assemble(&s, 1);
    const struct wpk_model_plan_step *step = &s.plan.shapes[0].steps[0];
    assert_int_equal(s.plan.shapes[0].step_count, 1);
    assert_int_equal(step->kernel, -1);
    assert_int_equal(step->host.op, WPK_MODEL_PLAN_TOP_K);
    assert_true(step->host.is_smallest);
    assert_int_equal(step->host.before, 3);
    assert_int_equal(step->host.extent, 9);
    assert_int_equal(step->host.after, 2);
    assert_int_equal(step->host.count, 4);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_call_the_kernels_of_their_regions),
        cmocka_unit_test(values_lie_in_inputs_outputs_data_or_the_arena),
        cmocka_unit_test(outputs_replace_inputs_that_nothing_needs_later),
        cmocka_unit_test(equal_constants_are_stored_once),
        cmocka_unit_test(outputs_that_lie_elsewhere_are_copied),
        cmocka_unit_test(nodes_that_are_no_steps_have_a_note),
        cmocka_unit_test(host_functions_are_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
