/* SPDX-License-Identifier: Apache-2.0 */
/* How nodes take their elements from those of others. */
#include "model/operator/mapping.h"

#include "tests/model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A model of one node y, with the input x and a constant c. */
static void build(const char *op, const char *x, const char *c, const char *values,
                  const char *attributes, struct wpk_model_fixture *model, struct wpk_graph *graph)
{
    *model = (struct wpk_model_fixture){.opset = 13};
    wpk_model_fixture_input(model, "x", x);
    if (c != NULL) {
        wpk_model_fixture_constant(model, "c", c, values);
    }
    wpk_model_fixture_node(model, op, c != NULL ? "x,c" : "x", "y", attributes);
    wpk_model_fixture_output(model, "y");
    wpk_model_case_read(model, graph);
}

enum {
    ONE = WPK_MAPPING_ONE_TO_ONE,
    SHUFFLE = WPK_MAPPING_SHUFFLE,
    PARTS = WPK_MAPPING_REORGANIZE,
    SPREAD = WPK_MAPPING_ONE_TO_MANY,
    MANY = WPK_MAPPING_MANY_TO_MANY
};

static void nodes_map_as_their_loads_do(void **state)
{
    (void)state;
    static const struct {
        const char *op, *x, *c, *values, *attributes;
        int mapping; /* of the node */
        int reads;   /* how it reads x */
        bool movement, padding;
    } cases[] = {
        {"Relu", "f32[2,3]", NULL, NULL, "", ONE, ONE, false, false},
        {"Add", "f32[2,3]", "f32[3]", NULL, "", ONE, ONE, false, false},
        {"Add", "f32[3]", "f32[2,3]", NULL, "", ONE, SPREAD, false, false},
        {"Add", "f32[1,3]", "f32[1,3]", NULL, "", ONE, ONE, false, false},
        {"Transpose", "f32[2,3]", NULL, NULL, "", SHUFFLE, SHUFFLE, true, false},
        {"Identity", "f32[2,3]", NULL, NULL, "", SHUFFLE, ONE, true, false},
        {"Reshape", "f32[2,6]", "i64[3]", "2,2,3", "", PARTS, PARTS, true, false},
        {"Reshape", "f32[2,6]", "i64[1]", "12", "", ONE, SPREAD, false, false}, /* by / and % */
        {"Slice", "f32[5]", "i64[1]", NULL, "", PARTS, PARTS, true, false},
        {"Pad", "f32[3]", "i64[2]", "1,2", "", PARTS, PARTS, false, true},
        {"Pad", "f32[3]", "i64[2]", "-1,2", "", ONE, PARTS, false, false}, /* it takes some away */
        {"Expand", "f32[1,3]", "i64[2]", "4,3", "", SPREAD, SPREAD, true, false},
        {"MatMul", "f32[2,3]", "f32[3,4]", NULL, "", MANY, MANY, false, false},
        {"Softmax", "f32[2,3]", NULL, NULL, "", MANY, MANY, false, false},
        {"MaxPool", "f32[1,1,4]", NULL, NULL, "kernel_shape:I=2", MANY, MANY, false, false},
        {"Gather", "f32[5]", "i64[2]", "3,0", "", ONE, ONE, false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model;
        struct wpk_graph graph;
        if (strcmp(cases[i].op, "Slice") == 0) {
            model = (struct wpk_model_fixture){.opset = 9};
            wpk_model_fixture_input(&model, "x", cases[i].x);
            wpk_model_fixture_node(&model, "Slice", "x", "y", "starts:I=1 ends:I=4");
            wpk_model_fixture_output(&model, "y");
            wpk_model_case_read(&model, &graph);
        } else {
            build(cases[i].op, cases[i].x, cases[i].c, cases[i].values, cases[i].attributes, &model,
                  &graph);
        }
        int x = wpk_graph_find(&graph, "x");
        int mapping = (int)wpk_graph_mapping(&graph, 0);
        int reads = (int)wpk_graph_read_mapping(&graph, 0, x);
        bool movement = wpk_graph_is_movement(&graph, 0), padding = wpk_graph_is_padding(&graph, 0);
        bool is_gather = strcmp(cases[i].op, "Gather") == 0; /* its index is data */
        if (!is_gather && (mapping != cases[i].mapping || reads != cases[i].reads ||
                           movement != cases[i].movement || padding != cases[i].padding)) {
            fail_msg("case %zu (%s): %d, reads %d, movement %d, padding %d", i, cases[i].op,
                     mapping, reads, movement, padding);
        }
        assert_true(!is_gather || !movement);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

static void reads_outside_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *op, *x, *c, *values, *attributes;
        bool inside, or_zero;
    } cases[] = {
        {"Relu", "f32[3]", NULL, NULL, "", true, true},
        {"Pad", "f32[3]", "i64[2]", "1,2", "", false, true},
        {"Conv", "f32[1,1,4]", "f32[1,1,3]", NULL, "pads:I=1,1", false, true},
        {"Conv", "f32[1,1,4]", "f32[1,1,3]", NULL, "", true, true},
        {"MaxPool", "f32[1,1,4]", NULL, NULL, "kernel_shape:I=3 pads:I=1,1", false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model;
        struct wpk_graph graph;
        build(cases[i].op, cases[i].x, cases[i].c, cases[i].values, cases[i].attributes, &model,
              &graph);
        int x = wpk_graph_find(&graph, "x");
        if (wpk_graph_reads_inside(&graph, 0, x, false) != cases[i].inside ||
            wpk_graph_reads_inside(&graph, 0, x, true) != cases[i].or_zero) {
            fail_msg("case %zu (%s)", i, cases[i].op);
        }
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

/* DNNFusion's rules: nothing but what computes once goes behind a node that computes. */
static void fusion_computes_nothing_twice(void **state)
{
    (void)state;
    for (int first = 0; first < WPK_MAPPING_COUNT; first++) {
        for (int second = 0; second < WPK_MAPPING_COUNT; second++) {
            enum wpk_fusion found =
                wpk_mapping_fusion((enum wpk_mapping)first, (enum wpk_mapping)second);
            bool moves = first == SHUFFLE || first == PARTS || first == SPREAD;
            bool once = second == ONE || second == SHUFFLE;
            bool reduces = first == MANY && second == MANY;
            assert_int_equal(found, moves || once ? WPK_FUSION_YES
                                    : reduces     ? WPK_FUSION_MEASURE
                                                  : WPK_FUSION_NO);
        }
    }
}

static void joined_groups_are_of_the_wider_type(void **state)
{
    (void)state;
    for (int a = 0; a < WPK_MAPPING_COUNT; a++) {
        for (int b = 0; b < WPK_MAPPING_COUNT; b++) {
            enum wpk_mapping found = wpk_mapping_join((enum wpk_mapping)a, (enum wpk_mapping)b);
            assert_int_equal(found, wpk_mapping_join((enum wpk_mapping)b, (enum wpk_mapping)a));
            bool reduces = a == MANY || b == MANY, computes = a == ONE || b == ONE;
            assert_int_equal(found, reduces ? MANY : computes ? ONE : a > b ? a : b);
        }
    }
}

/* ---- affine nodes: y = node(relu(x)) */

static void nodes_that_multiply_and_add_are_affine(void **state)
{
    (void)state;
    static const struct {
        const char *op, *c, *values, *attributes;
        int dim; /* -2: not affine */
        double factor[2], addend[2];
    } cases[] = {
        {"Mul", "f32[1]", "3", "", WPK_AFFINE_ALL, {3}, {0}},
        {"Add", "f32[]", "-2", "", WPK_AFFINE_ALL, {1}, {-2}},
        {"Add", "f32[1]", "1e-9", "", WPK_AFFINE_ALL, {1}, {(double)1e-9F}},
        {"Sub", "f32[2]", "1,5", "", 1, {1, 1}, {-1, -5}},
        {"Div", "f32[2]", "2,4", "", 1, {0.5, 0.25}, {0, 0}},
        {"Mul", "f32[3,1]", "1,2,3", "", 0, {1, 2}, {0, 0}},
        {"Neg", NULL, NULL, "", WPK_AFFINE_ALL, {-1}, {0}},
        {"Identity", NULL, NULL, "", WPK_AFFINE_ALL, {1}, {0}},
        {"Mul", "f32[3,2]", NULL, "", -2, {0}, {0}}, /* by two axes */
        {"Relu", NULL, NULL, "", -2, {0}, {0}},
        {"Exp", NULL, NULL, "", -2, {0}, {0}},
        {"Pow", "f32[1]", "2", "", -2, {0}, {0}},
        {"Transpose", NULL, NULL, "", -2, {0}, {0}}, /* elements move */
        {"Add", "f32[1]", "1e9", "", -2, {0}, {0}},  /* x is lost beside it */
        {"Div", "f32[1]", "0", "", -2, {0}, {0}},
        {"Max", "f32[1]", "0", "", -2, {0}, {0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.opset = 13};
        struct wpk_graph graph;
        struct wpk_graph_affine affine;
        wpk_model_fixture_input(&model, "x", "f32[3,2]");
        wpk_model_fixture_node(&model, "Relu", "x", "t", "");
        if (cases[i].c != NULL) {
            wpk_model_fixture_constant(&model, "c", cases[i].c, cases[i].values);
        }
        wpk_model_fixture_node(&model, cases[i].op, cases[i].c != NULL ? "t,c" : "t", "y",
                               cases[i].attributes);
        wpk_model_fixture_output(&model, "y");
        wpk_model_case_read(&model, &graph);
        wpk_err err = wpk_graph_affine_find(&graph, 1, &affine);
        if (err != (cases[i].dim == -2 ? WPK_ENOENT : WPK_OK)) {
            fail_msg("case %zu (%s): %d", i, cases[i].op, err);
        }
        if (err == WPK_OK) {
            assert_int_equal(affine.x, wpk_graph_find(&graph, "t"));
            assert_int_equal(affine.dim, cases[i].dim);
            assert_int_equal(affine.count, cases[i].dim == 0 ? 3 : cases[i].dim == 1 ? 2 : 1);
            for (int k = 0; k < affine.count && k < 2; k++) {
                assert_true(affine.factor[k] == cases[i].factor[k]);
                assert_true(affine.addend[k] == cases[i].addend[k]);
            }
            const struct wpk_graph_value *y = &graph.values[graph.outputs[0]];
            assert_true(y->extent[0] == 3 && y->extent[1] == 2); /* shapes are as before */
        }
        wpk_graph_affine_fini(&affine);
        wpk_graph_affine_fini(&affine);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

static void an_input_of_the_model_is_no_other_nodes(void **state)
{
    (void)state;
    struct wpk_model_fixture model;
    struct wpk_graph graph;
    struct wpk_graph_affine affine;
    build("Mul", "f32[2]", "f32[1]", "3", "", &model, &graph);
    assert_int_equal(wpk_graph_affine_find(&graph, 0, &affine), WPK_ENOENT);
    wpk_graph_affine_fini(&affine);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_map_as_their_loads_do),
        cmocka_unit_test(reads_outside_are_known),
        cmocka_unit_test(fusion_computes_nothing_twice),
        cmocka_unit_test(joined_groups_are_of_the_wider_type),
        cmocka_unit_test(nodes_that_multiply_and_add_are_affine),
        cmocka_unit_test(an_input_of_the_model_is_no_other_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
