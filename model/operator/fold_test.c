/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that follow from constants and shapes, and those that are too much work. */
#include "model/operator/shape.h"

#include "tests/model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void shapes_fold_without_data(void **state)
{
    (void)state;
    static const struct {
        const char *op, *attributes;
        int count;
        int64_t expected[4];
    } cases[] = {
        {"Shape", "", 3, {2, 3, 5}},
        {"Shape", "start:i=1", 2, {3, 5}},
        {"Shape", "end:i=-1", 2, {2, 3}},
        {"Shape", "start:i=-2 end:i=2", 1, {3}},
        {"Size", "", 1, {30}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        wpk_model_fixture_input(&model, "x", "f32[2,3,5]");
        wpk_model_fixture_node(&model, cases[i].op, "x", "y", cases[i].attributes);
        wpk_model_fixture_output(&model, "y");
        wpk_model_case_read(&model, &graph);
        const struct wpk_graph_value *y = &graph.values[graph.outputs[0]];
        assert_non_null(y->data);
        assert_int_equal(wpk_graph_elements(y), cases[i].count);
        for (int k = 0; k < cases[i].count; k++) {
            assert_int_equal(wpk_graph_integer(y, k), cases[i].expected[k]);
        }
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

static void constants_are_filled_gathered_and_counted(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"ConstantOfShape", "2,3:i64[2]", "", "f32[2,3] 0,0,0,0,0,0"},
        {"ConstantOfShape", "-1:i64[1]", "", "!extent -1 of its shape"},
        {"NonZero", "0,1,2,0,0,3:f32[2,3]", "", "i64[2,3] 0,0,1,1,2,2"},
        {"NonZero", "0,-1:i64[2]", "", "i64[1,1] 1"},
        {"Gather", "5,6,7:i64[3] 2,-3:i64[2]", "", "i64[2] 7,5"},
        {"Gather", "5,6,7:i64[3] 3:i64[1]", "", "!index 3 of an axis of 3 elements"},
        {"Gather", "5,6,7:i64[3] 0:f32[1]", "", "!its indices must be integers"},
        {"Range", "1:i64[] 8:i64[] 3:i64[]", "", "i64[3] 1,4,7"},
        {"Range", "5:f32[] 1:f32[] -1.5:f32[]", "", "f32[3] 5,3.5,2"},
        {"Range", "1:i64[] 1:i64[] 1:i64[]", "", "!no elements"},
        {"Range", "1:i64[] 8:i64[] 0:i64[]", "", "!Range"},
        {"Range", "1:i64[] 8:i64[] 1:i32[]", "", "!must be constant numbers"},
    };
    WPK_MODEL_CASES(cases);
}

/* Values of i64 do not pass through doubles. */
static void integers_stay_exact(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    wpk_model_fixture_constant(&model, "x", "i64[1]", "4611686018427387904"); /* 2^62 */
    wpk_model_fixture_constant(&model, "one", "i64[1]", "1");
    wpk_model_fixture_node(&model, "Add", "x,one", "y", "");
    wpk_model_fixture_output(&model, "y");
    wpk_model_case_read(&model, &graph);
    assert_true(wpk_graph_integer(&graph.values[graph.outputs[0]], 0) == ((int64_t)1 << 62) + 1);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

static bool is_folded(const struct wpk_graph *graph, const char *name)
{
    return graph->values[wpk_graph_find(graph, name)].data != NULL;
}

/* Of [n, n] by [n, n]: n^3 operations. Free are 1e8 of a graph, and few for each byte of a file. */
static void products_are_folded_up_to_a_limit_of_work(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        bool folded;
    } cases[] = {{"f32[16,16]", true}, {"f32[80,80]", true}, {"f32[640,640]", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        char shape[32];
        int n = (int)strtol(cases[i].type + 4, NULL, 10);
        snprintf(shape, sizeof(shape), "%d,%d", n, n);
        wpk_model_fixture_constant(&model, "s", "i64[2]", shape);
        wpk_model_fixture_node(&model, "ConstantOfShape", "s", "w", "");
        wpk_model_fixture_node(&model, "MatMul", "w,w", "y", "");
        wpk_model_fixture_output(&model, "y");
        wpk_model_case_read(&model, &graph);
        assert_true(is_folded(&graph, "w"));
        if (is_folded(&graph, "y") != cases[i].folded) {
            fail_msg("%s", cases[i].type);
        }
        assert_true(graph.fold_work <= WPK_FOLD_WORK_FREE * 1.1);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

/* 2^21 elements of one: kernels may as well read the one. */
static void a_constant_that_grows_much_is_left_to_kernels(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    wpk_model_fixture_constant(&model, "one", "f32[1]", "3");
    wpk_model_fixture_constant(&model, "small", "i64[1]", "4096");
    wpk_model_fixture_constant(&model, "large", "i64[1]", "2097152");
    wpk_model_fixture_node(&model, "Expand", "one,small", "a", "");
    wpk_model_fixture_node(&model, "Expand", "one,large", "b", "");
    wpk_model_fixture_output(&model, "a");
    wpk_model_fixture_output(&model, "b");
    wpk_model_case_read(&model, &graph);
    assert_true(is_folded(&graph, "a"));
    assert_false(is_folded(&graph, "b"));
    assert_int_equal(wpk_graph_fold_rest(&graph), WPK_OK);
    assert_false(is_folded(&graph, "b")); /* nor before it is tuned */
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

static void data_is_never_folded(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_constant(&model, "w", "f32[2]", NULL);
    wpk_model_fixture_node(&model, "Mul", "x,w", "y", "");
    wpk_model_fixture_output(&model, "y");
    wpk_model_case_read(&model, &graph);
    assert_int_equal(wpk_graph_fold_large(&graph, 0), WPK_OK);
    assert_int_equal(wpk_graph_fold_rest(&graph), WPK_OK);
    assert_false(is_folded(&graph, "y"));
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_fold_without_data),
        cmocka_unit_test(constants_are_filled_gathered_and_counted),
        cmocka_unit_test(integers_stay_exact),
        cmocka_unit_test(products_are_folded_up_to_a_limit_of_work),
        cmocka_unit_test(a_constant_that_grows_much_is_left_to_kernels),
        cmocka_unit_test(data_is_never_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
