/* SPDX-License-Identifier: Apache-2.0 */
/* Whole models: inputs, outputs, nodes, constants, opsets, and files that are not valid. */
#include "model/onnx/read.h"

#include "tests/model_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NODE = 1, INITIALIZER = 5, INPUT = 11, OUTPUT = 12, SPARSE = 15 }; /* of a GraphProto */

static wpk_err read_model(struct wpk_model_fixture *model, struct wpk_graph *graph,
                          struct wpk_diag *diag)
{
    *diag = (struct wpk_diag){.text = ""};
    return wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), graph, diag);
}

static void expect_refusal(struct wpk_model_fixture *model, wpk_err err, const char *text,
                           const char *where)
{
    struct wpk_graph graph;
    struct wpk_diag diag;
    wpk_err found = read_model(model, &graph, &diag);
    if (found != err || strstr(diag.text, text) == NULL || strcmp(diag.field, where) != 0) {
        fail_msg("%s: %s (%s)", text, diag.text, diag.field);
    }
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(model);
}

/* An input whose dimensions are numbers, or names. */
static void put_input(struct wpk_model_fixture *model, const char *name, int type,
                      const char *const *dims, int count)
{
    struct wpk_buf info = {0}, types = {0}, tensor = {0}, shape = {0};
    for (int i = 0; i < count; i++) {
        struct wpk_buf dim = {0};
        char *end;
        long long extent = strtoll(dims[i], &end, 10);
        if (*end == '\0' && end != dims[i]) {
            wpk_model_put_number(&dim, 1, extent);
        } else if (dims[i][0] != '\0') {
            wpk_model_put_text(&dim, 2, dims[i]);
        }
        wpk_model_put_message(&shape, 1, &dim);
    }
    wpk_model_put_number(&tensor, 1, type);
    if (count >= 0) {
        wpk_model_put_message(&tensor, 2, &shape);
    }
    wpk_model_put_message(&types, 1, &tensor);
    wpk_model_put_text(&info, 1, name);
    wpk_model_put_message(&info, 2, &types);
    wpk_model_put_message(&model->graph, INPUT, &info);
}

static void a_model_is_read_with_its_names_and_types(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.opset = 13};
    struct wpk_graph graph;
    struct wpk_diag diag;
    wpk_model_fixture_input(&model, "x", "f32[2,3]");
    wpk_model_fixture_constant(&model, "w", "f32[3]", NULL);
    wpk_model_fixture_node(&model, "Add", "x,w", "t", "");
    wpk_model_fixture_node(&model, "Clip", "t,,w", "y", "");
    wpk_model_fixture_output(&model, "y");
    assert_int_equal(read_model(&model, &graph, &diag), WPK_OK);
    assert_int_equal(graph.opset, 13);
    assert_int_equal(graph.node_count, 2);
    assert_int_equal(graph.input_count, 1);
    assert_int_equal(graph.output_count, 1);
    int x = wpk_graph_find(&graph, "x"), t = wpk_graph_find(&graph, "t");
    int y = wpk_graph_find(&graph, "y"), w = wpk_graph_find(&graph, "w");
    assert_true(graph.values[x].is_input && graph.values[x].is_read);
    assert_true(graph.values[x].is_typed && graph.values[x].is_shaped);
    assert_int_equal(graph.values[x].extent[1], 3);
    assert_int_equal(graph.values[t].writer, 0);
    assert_int_equal(graph.values[y].writer, 1);
    assert_true(graph.values[y].is_output && !graph.values[y].is_read);
    assert_non_null(graph.values[w].data);
    assert_int_equal(graph.nodes[1].inputs[0], t);
    assert_int_equal(graph.nodes[1].inputs[1], -1); /* left out */
    assert_int_equal(graph.nodes[1].inputs[2], w);
    assert_string_equal(graph.nodes[1].op, "Clip");
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

static void extents_that_are_not_fixed_have_a_name(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    struct wpk_diag diag;
    static const char *const dims[] = {"batch", "3", "0", "-1", ""};
    put_input(&model, "x", 1, dims, 5);
    put_input(&model, "unshaped", 1, NULL, -1);
    put_input(&model, "scalar", 1, NULL, 0);
    put_input(&model, "text", 8, dims, 1);
    wpk_model_fixture_output(&model, "x");
    assert_int_equal(read_model(&model, &graph, &diag), WPK_OK);
    const struct wpk_graph_value *x = &graph.values[wpk_graph_find(&graph, "x")];
    assert_int_equal(x->rank, 5);
    assert_string_equal(x->free_dim[0], "batch");
    assert_null(x->free_dim[1]);
    for (int d = 2; d < 5; d++) {
        assert_string_equal(x->free_dim[d], ""); /* exporters write 0 and -1, too */
        assert_int_equal(x->extent[d], 0);
    }
    assert_false(graph.values[wpk_graph_find(&graph, "unshaped")].is_shaped);
    assert_true(graph.values[wpk_graph_find(&graph, "scalar")].is_shaped);
    assert_false(graph.values[wpk_graph_find(&graph, "text")].is_typed);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

/* As files before IR version 4 do. */
static void a_constant_that_is_an_input_too_is_a_constant(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    struct wpk_diag diag;
    wpk_model_fixture_input(&model, "w", "f32[3]");
    wpk_model_fixture_constant(&model, "w", "f32[3]", NULL);
    wpk_model_fixture_node(&model, "Relu", "w", "y", "");
    wpk_model_fixture_output(&model, "y");
    assert_int_equal(read_model(&model, &graph, &diag), WPK_OK);
    assert_int_equal(graph.input_count, 0);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

static void a_node_constant_is_constant_data(void **state)
{
    (void)state;
    static const struct {
        const char *attribute;
        enum wpk_dtype dtype;
        int rank, count;
        double last;
    } cases[] = {
        {"value_int:i=-7", WPK_I64, 0, 1, -7},    {"value_float:f=0.5", WPK_F32, 0, 1, 0.5},
        {"value_ints:I=3,4,5", WPK_I64, 1, 3, 5}, {"value_floats:F=1,2", WPK_F32, 1, 2, 2},
        {"value_ints:I=", WPK_I64, 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        struct wpk_diag diag;
        wpk_model_fixture_node(&model, "Constant", "", "c", cases[i].attribute);
        wpk_model_fixture_output(&model, "c");
        assert_int_equal(read_model(&model, &graph, &diag), WPK_OK);
        const struct wpk_graph_value *c = &graph.values[wpk_graph_find(&graph, "c")];
        assert_int_equal(graph.node_count, 0);
        assert_int_equal(c->writer, -1);
        assert_int_equal(c->dtype, cases[i].dtype);
        assert_int_equal(c->rank, cases[i].rank);
        assert_int_equal(wpk_graph_elements(c), cases[i].count);
        assert_non_null(c->data);
        assert_true(cases[i].count == 0 ||
                    wpk_graph_element(c, cases[i].count - 1) == cases[i].last);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

static void a_constant_has_one_number_or_list(void **state)
{
    (void)state;
    static const struct {
        const char *outputs, *attributes;
        wpk_err err;
        const char *text;
    } cases[] = {
        {"y", "", WPK_EPARSE, "one output and one attribute"},
        {"y", "value_int:i=1 value_float:f=1", WPK_EPARSE, "one output and one attribute"},
        {"y,z", "value_int:i=1", WPK_EPARSE, "one output and one attribute"},
        {"y", "value_string:s=text", WPK_EUNSUPPORTED, "its attribute value_string"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        char where[64];
        wpk_model_fixture_node(&model, "Constant", "", cases[i].outputs, cases[i].attributes);
        wpk_model_fixture_output(&model, "y");
        snprintf(where, sizeof(where), "node %s (Constant)", cases[i].outputs);
        expect_refusal(&model, cases[i].err, cases[i].text, where);
    }
}

static void nodes_are_sorted_and_compute_each_value_once(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_node(&model, "Relu", "t", "y", "");
    wpk_model_fixture_node(&model, "Relu", "x", "t", "");
    expect_refusal(&model, WPK_EPARSE, "nothing before this node gives its input t",
                   "node y (Relu)");
    wpk_model_fixture_node(&model, "Add", "y,y", "y", ""); /* it reads itself */
    expect_refusal(&model, WPK_EPARSE, "nothing before this node", "node y (Add)");
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_node(&model, "Relu", "x", "y", "");
    wpk_model_fixture_node(&model, "Abs", "x", "y", "");
    expect_refusal(&model, WPK_EPARSE, "its output y is given twice", "node y (Abs)");
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_node(&model, "Relu", "x", "x", "");
    expect_refusal(&model, WPK_EPARSE, "its output x is given twice", "node x (Relu)");
}

static void inputs_and_outputs_are_listed_once(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_input(&model, "x", "f32[2]");
    expect_refusal(&model, WPK_EPARSE, "empty or given twice", "value x");
    wpk_model_fixture_input(&model, "", "f32[2]");
    expect_refusal(&model, WPK_EPARSE, "empty or given twice", "value ");
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_output(&model, "y");
    expect_refusal(&model, WPK_EPARSE, "no node computes this output", "value y");
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_output(&model, "x");
    wpk_model_fixture_output(&model, "x");
    expect_refusal(&model, WPK_EPARSE, "an output is listed twice", "value x");
    wpk_model_fixture_input(&model, "x", "f32[2]");
    expect_refusal(&model, WPK_EPARSE, "the graph has no outputs", "");
}

static void opsets_have_a_range(void **state)
{
    (void)state;
    static const struct {
        const char *domain;
        int64_t version;
        wpk_err err;
    } cases[] = {
        {"", WPK_ONNX_OPSET_MIN, WPK_OK}, {"", WPK_ONNX_OPSET_MAX, WPK_OK},
        {"", 0, WPK_EUNSUPPORTED},        {"", WPK_ONNX_OPSET_MAX + 1, WPK_EUNSUPPORTED},
        {"", -1, WPK_EUNSUPPORTED},       {"ai.onnx", 11, WPK_OK},
        {"com.microsoft", 1, WPK_OK}, /* operators of another domain alone */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.opset = -1};
        struct wpk_buf opset = {0};
        struct wpk_graph graph;
        struct wpk_diag diag;
        wpk_model_put_text(&opset, 1, cases[i].domain);
        wpk_model_put_number(&opset, 2, cases[i].version);
        wpk_model_put_message(&model.other, 8, &opset);
        wpk_model_fixture_input(&model, "x", "f32[2]");
        wpk_model_fixture_output(&model, "x");
        if (read_model(&model, &graph, &diag) != cases[i].err) {
            fail_msg("case %zu: %s", i, diag.text);
        }
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
    struct wpk_model_fixture none = {.opset = -1};
    wpk_model_fixture_input(&none, "x", "f32[2]");
    wpk_model_fixture_output(&none, "x");
    expect_refusal(&none, WPK_EUNSUPPORTED, "opset 0", "");
}

static void dimensions_and_extents_have_limits(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    static const char *const ones[] = {"1", "1", "1", "1", "1", "1", "1", "1", "1", "1",
                                       "1", "1", "1", "1", "1", "1", "1", "1", "1", "1"};
    static const char *const huge[] = {"8589934593"};
    put_input(&model, "x", 1, ones, WPK_RANK_MAX + 1);
    expect_refusal(&model, WPK_EUNSUPPORTED, "dimensions", "value x");
    put_input(&model, "x", 1, huge, 1);
    expect_refusal(&model, WPK_ERANGE, "an extent of 8589934593", "value x");
}

static void sparse_constants_are_not_supported(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    wpk_model_put_text(&model.graph, SPARSE, "");
    expect_refusal(&model, WPK_EUNSUPPORTED, "sparse initializers", "");
}

static void files_that_are_no_model_are_refused(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    struct wpk_diag diag = {.text = ""};
    wpk_model_put_text(&model.graph, NODE, "\x0b"); /* a group is no field */
    expect_refusal(&model, WPK_EPARSE, "not an ONNX model, or cut short", "node  ()");
    assert_int_equal(wpk_onnx_read("/nonexistent/m.onnx", &graph, &diag), WPK_ENOENT);
    assert_string_equal(diag.file, "/nonexistent/m.onnx");
    wpk_graph_fini(&graph);
    diag = (struct wpk_diag){.text = ""};
    assert_int_equal(wpk_onnx_read("/", &graph, &diag), WPK_EPARSE);
    assert_non_null(strstr(diag.text, "is not a file"));
    wpk_graph_fini(&graph);
}

/* ModelProto without a GraphProto: producer_name alone. */
static void a_model_has_a_graph(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    struct wpk_diag diag = {.text = ""};
    wpk_model_put_text(&model.other, 2, "tests");
    size_t head = 2 + 4 + 7; /* version, opset, producer */
    assert_int_equal(wpk_onnx_read(wpk_model_fixture_write(&model, head), &graph, &diag),
                     WPK_EPARSE);
    assert_non_null(strstr(diag.text, "it has no graph"));
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

/* A node with several outputs becomes one for each that is asked for. */
static void outputs_become_nodes_of_their_own(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    struct wpk_diag diag;
    wpk_model_fixture_input(&model, "x", "f32[6]");
    wpk_model_fixture_node(&model, "Split", "x", "a,b,c", "");
    wpk_model_fixture_node(&model, "Relu", "c", "y", "");
    wpk_model_fixture_output(&model, "y");
    wpk_model_fixture_output(&model, "a");
    assert_int_equal(read_model(&model, &graph, &diag), WPK_OK);
    assert_int_equal(graph.node_count, 3);
    for (int n = 0; n < 2; n++) {
        assert_string_equal(graph.nodes[n].op, "Split");
        assert_int_equal(graph.nodes[n].part, n == 0 ? 0 : 2);
        assert_int_equal(graph.nodes[n].part_count, 3);
        assert_int_equal(graph.nodes[n].output_count, 1);
        assert_int_equal(graph.values[graph.nodes[n].outputs[0]].writer, n);
    }
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_read_with_its_names_and_types),
        cmocka_unit_test(extents_that_are_not_fixed_have_a_name),
        cmocka_unit_test(a_constant_that_is_an_input_too_is_a_constant),
        cmocka_unit_test(a_node_constant_is_constant_data),
        cmocka_unit_test(a_constant_has_one_number_or_list),
        cmocka_unit_test(nodes_are_sorted_and_compute_each_value_once),
        cmocka_unit_test(inputs_and_outputs_are_listed_once),
        cmocka_unit_test(opsets_have_a_range),
        cmocka_unit_test(dimensions_and_extents_have_limits),
        cmocka_unit_test(sparse_constants_are_not_supported),
        cmocka_unit_test(files_that_are_no_model_are_refused),
        cmocka_unit_test(a_model_has_a_graph),
        cmocka_unit_test(outputs_become_nodes_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
