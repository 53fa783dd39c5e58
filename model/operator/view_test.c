/* SPDX-License-Identifier: Apache-2.0 */
/* Values that lie in the memory of others. */
#include "model/operator/view.h"

#include "tests/model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* t = relu(x) and u = exp(x) [4,6], which can be moved; then one node that makes y of them. */
static void build(const char *op, const char *inputs, const char *shape, const char *attributes,
                  struct wpk_model_fixture *model, struct wpk_graph *graph)
{
    *model = (struct wpk_model_fixture){.opset = 9};
    wpk_model_fixture_input(model, "x", "f32[4,6]");
    wpk_model_fixture_constant(model, "c", "f32[4,6]", NULL);
    if (shape != NULL) {
        char type[16];
        int commas = 0;
        for (const char *at = shape; *at != '\0'; at++) {
            commas += *at == ',';
        }
        snprintf(type, sizeof(type), "i64[%d]", commas + 1);
        wpk_model_fixture_constant(model, "s", type, shape);
    }
    wpk_model_fixture_node(model, "Relu", "x", "t", "");
    wpk_model_fixture_node(model, "Exp", "x", "u", "");
    wpk_model_fixture_node(model, op, inputs, "y", attributes);
    wpk_model_fixture_output(model, "y");
    wpk_model_fixture_output(model, "u");
    wpk_model_case_read(model, graph);
}

static void whole_rows_of_a_value_are_a_part_of_it(void **state)
{
    (void)state;
    static const struct {
        const char *op, *inputs, *shape, *attributes;
        int64_t offset; /* of y in t; -1: it is no view */
    } cases[] = {
        {"Reshape", "t,s", "3,8", "", 0},
        {"Flatten", "t", NULL, "axis:i=0", 0},
        {"Unsqueeze", "t", NULL, "axes:I=0", 0},
        {"Identity", "t", NULL, "", 0},
        {"Slice", "t", NULL, "starts:I=1 ends:I=3", 6},
        {"Slice", "t", NULL, "starts:I=3 ends:I=4", 18},
        {"Slice", "t", NULL, "starts:I=1 ends:I=3 axes:I=1", -1}, /* rows lie apart */
        {"Slice", "t", NULL, "starts:I=2,1 ends:I=3,4", 13},      /* a part of one row */
        {"Transpose", "t", NULL, "", -1},
        {"Relu", "t", NULL, "", -1},
        {"Slice", "x", NULL, "starts:I=1 ends:I=3", -1}, /* of the user's memory */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model;
        struct wpk_graph graph;
        struct wpk_graph_views views;
        int64_t offset = -1;
        build(cases[i].op, cases[i].inputs, cases[i].shape, cases[i].attributes, &model, &graph);
        wpk_graph_views_init(&views, &graph);
        int y = wpk_graph_find(&graph, "y"), t = wpk_graph_find(&graph, "t");
        bool is_view = wpk_graph_views_add(&views, &graph, graph.values[y].writer);
        int root = wpk_graph_views_root(&views, y, &offset);
        if (is_view != (cases[i].offset >= 0) || root != (is_view ? t : y) ||
            offset != (is_view ? cases[i].offset : 0)) {
            fail_msg("case %zu (%s): %d, root %d, offset %d", i, cases[i].op, is_view, root,
                     (int)offset);
        }
        assert_int_equal(wpk_graph_views_step(&views, y), 0);
        wpk_graph_views_fini(&views);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

static void inputs_of_a_concat_are_parts_of_its_output(void **state)
{
    (void)state;
    static const struct {
        const char *inputs, *attributes;
        bool is_view;
    } cases[] = {
        {"t,u", "axis:i=0", true},  {"t,u", "axis:i=1", false}, /* rows of both lie side by side */
        {"t,t", "axis:i=0", false},                             /* it cannot be in two places */
        {"t,x", "axis:i=0", false},                             /* the user's memory cannot move */
        {"t,c", "axis:i=0", false},                             /* nor can a constant's */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model;
        struct wpk_graph graph;
        struct wpk_graph_views views;
        int64_t offset = -1;
        build("Concat", cases[i].inputs, NULL, cases[i].attributes, &model, &graph);
        wpk_graph_views_init(&views, &graph);
        int y = wpk_graph_find(&graph, "y"), u = wpk_graph_find(&graph, "u");
        assert_int_equal(wpk_graph_views_add(&views, &graph, graph.values[y].writer),
                         cases[i].is_view);
        assert_int_equal(wpk_graph_views_root(&views, u, &offset), cases[i].is_view ? y : u);
        assert_int_equal(offset, cases[i].is_view ? 24 : 0);
        wpk_graph_views_fini(&views);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

/* A row of a slice of a reshape: offsets add up. */
static void views_of_views_add_their_offsets(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.opset = 9};
    struct wpk_graph graph;
    struct wpk_graph_views views;
    int64_t offset = -1;
    wpk_model_fixture_input(&model, "x", "f32[4,6]");
    wpk_model_fixture_constant(&model, "s", "i64[2]", "8,3");
    wpk_model_fixture_node(&model, "Relu", "x", "t", "");
    wpk_model_fixture_node(&model, "Slice", "t", "a", "starts:I=0 ends:I=4");
    wpk_model_fixture_node(&model, "Reshape", "a,s", "b", "");
    wpk_model_fixture_node(&model, "Slice", "b", "c", "starts:I=2 ends:I=8");
    wpk_model_fixture_node(&model, "Slice", "c", "y", "starts:I=1 ends:I=2");
    wpk_model_fixture_output(&model, "y");
    wpk_model_case_read(&model, &graph);
    wpk_graph_views_init(&views, &graph);
    for (int n = 1; n < graph.node_count; n++) {
        assert_true(wpk_graph_views_add(&views, &graph, n));
    }
    int y = wpk_graph_find(&graph, "y"), t = wpk_graph_find(&graph, "t");
    assert_int_equal(wpk_graph_views_root(&views, y, &offset), t);
    assert_int_equal(offset, 2 * 3 + 3);
    wpk_graph_views_fini(&views);
    assert_int_equal(views.count, 0);
    wpk_graph_views_fini(&views);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

static void nodes_that_keep_their_elements_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        bool keeps;
    } cases[] = {{"Reshape", true},  {"Squeeze", true},    {"Unsqueeze", true}, {"Flatten", true},
                 {"Identity", true}, {"Transpose", false}, {"Cast", false},     {"Expand", false},
                 {"Relu", false},    {"Slice", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wpk_graph_node node = {.op = cases[i].op, .domain = ""};
        if (wpk_graph_keeps_elements(&node) != cases[i].keeps) {
            fail_msg("%s", cases[i].op);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_rows_of_a_value_are_a_part_of_it),
        cmocka_unit_test(inputs_of_a_concat_are_parts_of_its_output),
        cmocka_unit_test(views_of_views_add_their_offsets),
        cmocka_unit_test(nodes_that_keep_their_elements_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
