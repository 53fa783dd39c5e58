/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes that the user gives, inputs that become constants, and the list of problems. */
#include "model/operator/shape.h"

#include "model/onnx/read.h"
#include "tests/model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* An input of these dimensions, "N,3"; a word is a name. */
static void put_input(struct wpk_model_fixture *model, const char *name, const char *dims)
{
    struct wpk_buf info = {0}, types = {0}, tensor = {0}, shape = {0};
    while (dims != NULL && *dims != '\0') {
        struct wpk_buf dim = {0};
        size_t size = strcspn(dims, ",");
        if (*dims >= '0' && *dims <= '9') {
            wpk_model_put_number(&dim, 1, dims[0] - '0');
        } else {
            wpk_model_put_bytes(&dim, 2, dims, size);
        }
        wpk_model_put_message(&shape, 1, &dim);
        dims += size + (dims[size] == ',');
    }
    wpk_model_put_number(&tensor, 1, 1);
    if (dims != NULL) {
        wpk_model_put_message(&tensor, 2, &shape);
    }
    wpk_model_put_message(&types, 1, &tensor);
    wpk_model_put_text(&info, 1, name);
    wpk_model_put_message(&info, 2, &types);
    wpk_model_put_message(&model->graph, 11, &info);
}

static void read_in(struct wpk_model_fixture *model, struct wpk_graph *graph)
{
    struct wpk_diag diag = {.text = ""};
    wpk_err err = wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), graph, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(err, WPK_OK);
}

/* x [N, 3], "a=b" of one axis, u of no shape: y = relu(x). */
static void build(struct wpk_model_fixture *model, struct wpk_graph *graph)
{
    *model = (struct wpk_model_fixture){.fd = 0};
    put_input(model, "x", "N,3");
    put_input(model, "a=b", "M");
    put_input(model, "u", NULL);
    wpk_model_fixture_node(model, "Relu", "x", "y", "");
    wpk_model_fixture_output(model, "y");
    read_in(model, graph);
}

static void shapes_fix_what_the_file_leaves_open(void **state)
{
    (void)state;
    static const struct {
        const char *text, *problem; /* NULL: good */
    } cases[] = {
        {"x=5,3", NULL},
        {"a=b=7", NULL}, /* a name may have an '=' */
        {"u=1,2,3", NULL},
        {"u=", NULL}, /* a scalar */
        {"x=5,4", "the model fixes extent 1 of input x at 3"},
        {"x=5", "input x has 2 extents, not 1"},
        {"x=5,3,1", "input x has 2 extents, not 3"},
        {"z=5", "the model has no input 'z'"},
        {"x", "--shape takes INPUT=EXTENT"},
        {"x=", "input x has 2 extents, not 0"},
        {"x=0,3", "--shape takes INPUT=EXTENT"},
        {"x=-1,3", "--shape takes"},
        {"x=5,", "--shape takes"},
        {"x=5,3x", "--shape takes"},
        {"x=,3", "--shape takes"},
        {"x=99999999999999999999,3", "--shape takes"},
        {"x=8589934593,3", "--shape takes"}, /* 2^33 + 1 */
        {"u=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "--shape takes"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model;
        struct wpk_graph graph;
        struct wpk_diag diag = {.text = ""};
        build(&model, &graph);
        wpk_err err = wpk_graph_set_shape(&graph, cases[i].text, &diag);
        if (err != (cases[i].problem == NULL ? WPK_OK : WPK_EINVAL) ||
            (cases[i].problem != NULL && strstr(diag.text, cases[i].problem) == NULL)) {
            fail_msg("%s: %s", cases[i].text, diag.text);
        }
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

static void open_inputs_are_problems_until_they_are_fixed(void **state)
{
    (void)state;
    struct wpk_model_fixture model;
    struct wpk_graph graph;
    struct wpk_buf problems = {0};
    build(&model, &graph);
    assert_int_equal(wpk_graph_infer(&graph, &problems), WPK_EUNSUPPORTED);
    assert_string_equal(wpk_buf_text(&problems),
                        "input x: its extent N is not fixed; --shape x=... fixes it\n"
                        "input a=b: its extent M is not fixed; --shape a=b=... fixes it\n"
                        "input u: its shape is not fixed; --shape u=... fixes it\n");
    wpk_graph_fini(&graph);
    wpk_buf_fini(&problems);
    read_in(&model, &graph);
    static const char *const shapes[] = {"x=5,3", "a=b=2", "u=4"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wpk_graph_set_shape(&graph, shapes[i], NULL), WPK_OK);
    }
    assert_int_equal(wpk_graph_infer(&graph, &problems), WPK_OK);
    assert_int_equal(graph.values[graph.outputs[0]].extent[0], 5);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
    wpk_buf_fini(&problems);
}

/* A bound input of axes decides on the shape; the caller's memory is copied. */
static void a_bound_input_is_a_constant(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    struct wpk_buf problems = {0};
    int64_t shape[] = {3, 2};
    wpk_model_fixture_input(&model, "x", "f32[6]");
    wpk_model_fixture_input(&model, "s", "i64[2]");
    wpk_model_fixture_node(&model, "Reshape", "x,s", "y", "");
    wpk_model_fixture_output(&model, "y");
    read_in(&model, &graph);
    assert_int_equal(graph.input_count, 2);
    assert_int_equal(wpk_graph_bind(&graph, wpk_graph_find(&graph, "s"), shape, sizeof(shape)),
                     WPK_OK);
    shape[0] = 99;
    assert_int_equal(graph.input_count, 1);
    assert_int_equal(graph.inputs[0], wpk_graph_find(&graph, "x"));
    assert_int_equal(wpk_graph_infer(&graph, &problems), WPK_OK);
    assert_int_equal(graph.values[graph.outputs[0]].extent[0], 3);
    assert_int_equal(graph.values[graph.outputs[0]].extent[1], 2);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
    wpk_buf_fini(&problems);
}

/* One line for each operator; what follows from a problem is none of its own. */
static void problems_are_listed_once_for_each_operator(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    struct wpk_buf problems = {0};
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_node(&model, "NoSuch", "x", "a", "");
    wpk_model_fixture_node(&model, "Relu", "a", "b", "");
    wpk_model_fixture_node(&model, "NoSuch", "b", "c", "");
    wpk_model_fixture_node(&model, "NoSuch", "x", "d", "");
    wpk_model_fixture_node(&model, "Concat", "x,x", "e", "axis:i=3");
    wpk_model_fixture_node(&model, "Add", "c,d", "y", "");
    wpk_model_fixture_output(&model, "y");
    wpk_model_fixture_output(&model, "e");
    read_in(&model, &graph);
    assert_int_equal(wpk_graph_infer(&graph, &problems), WPK_EUNSUPPORTED);
    assert_string_equal(wpk_buf_text(&problems),
                        "node a (NoSuch): the operator NoSuch is not supported; 2 more of these "
                        "nodes are refused\nnode e (Concat): axis 3 of 1\n");
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
    wpk_buf_fini(&problems);
}

/* y declared as another type than it has. */
static void an_output_has_the_type_that_the_file_declares(void **state)
{
    (void)state;
    static const struct {
        int type;
        bool good;
    } cases[] = {{0, true}, {1, true}, {10, true}, {7, false}, {11, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        struct wpk_buf info = {0}, types = {0}, tensor = {0};
        wpk_model_fixture_input(&model, "x", "f32[2]");
        wpk_model_fixture_node(&model, "Relu", "x", "y", "");
        wpk_model_put_number(&tensor, 1, cases[i].type);
        wpk_model_put_message(&types, 1, &tensor);
        wpk_model_put_text(&info, 1, "y");
        wpk_model_put_message(&info, 2, &types);
        wpk_model_put_message(&model.graph, 12, &info);
        if (cases[i].good) {
            wpk_model_case_read(&model, &graph);
            wpk_graph_fini(&graph);
        } else {
            wpk_model_case_refuse(&model, "its output y is declared as");
        }
        wpk_model_fixture_fini(&model);
    }
}

static void older_versions_that_compute_something_else_are_refused(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Concat@3", ":f32[2] :f32[2]", "axis:i=0", "!supported since opset 4"},
        {"Concat@4", ":f32[2] :f32[1]", "axis:i=0", "f32[3] 1,2,1"},
        {"Gemm@6", ":f32[1,1] :f32[1,1] :f32[1]", "", "!opset 6; this operator is supported since"},
        {"Gemm@7", ":f32[1,1] 3:f32[1,1] 4:f32[1]", "", "f32[1,1] 7"},
        {"Selu@5", ":f32[1]", "", "!supported since opset 6"},
    };
    WPK_MODEL_CASES(cases);
}

/* 2^33 elements are the limit of a tensor. */
static void values_have_elements_but_not_too_many(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *text;
    } cases[] = {
        {"65536,131073", "!more than 2^33 elements"},
        {"65536,0", "!extent 0 of its shape"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        wpk_model_fixture_input(&model, "x", "f32[1,1]");
        wpk_model_fixture_constant(&model, "s", "i64[2]", cases[i].shape);
        wpk_model_fixture_node(&model, "Expand", "x,s", "y", "");
        wpk_model_fixture_output(&model, "y");
        wpk_model_case_refuse(&model, cases[i].text + 1);
        wpk_model_fixture_fini(&model);
    }
}

/* Dead ends without elements do not count in a Concat; all parts without elements do. */
static void empty_parts_of_a_concat_are_left_out(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_constant(&model, "none", "i64[1]", "0");
    wpk_model_fixture_node(&model, "ConstantOfShape", "none", "empty", "");
    wpk_model_fixture_node(&model, "Concat", "empty,x,empty,x", "y", "axis:i=0");
    wpk_model_fixture_output(&model, "y");
    wpk_model_case_read(&model, &graph);
    const struct wpk_graph_node *node = &graph.nodes[graph.node_count - 1];
    assert_string_equal(node->op, "Concat");
    assert_int_equal(node->input_count, 2);
    assert_int_equal(graph.values[graph.outputs[0]].extent[0], 4);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_fix_what_the_file_leaves_open),
        cmocka_unit_test(open_inputs_are_problems_until_they_are_fixed),
        cmocka_unit_test(a_bound_input_is_a_constant),
        cmocka_unit_test(problems_are_listed_once_for_each_operator),
        cmocka_unit_test(an_output_has_the_type_that_the_file_declares),
        cmocka_unit_test(older_versions_that_compute_something_else_are_refused),
        cmocka_unit_test(values_have_elements_but_not_too_many),
        cmocka_unit_test(empty_parts_of_a_concat_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
