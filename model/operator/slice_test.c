/* SPDX-License-Identifier: Apache-2.0 */
/* Slices and splits against ONNX's rules, written as loops. */
#include "model/operator/mapping.h"

#include "model/operator/operator.h"
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

/* A Slice of a constant list [0, 1, 2, ...) of 5 elements: what Python's x[start:end:step]
 * gives, but that a start before the first element is that one for negative steps, too. */
static void check_slice(int64_t start, int64_t end, int64_t step)
{
    enum { COUNT = 5 };
    struct wpk_buf expected = {0}, inputs = {0}, type = {0};
    int64_t first = start < 0 ? start + COUNT : start, last = end < 0 ? end + COUNT : end;
    int count = 0;
    if (step > 0) {
        for (int64_t i = first < 0 ? 0 : first; i < COUNT && i < last; i += step) {
            wpk_buf_printf(&expected, "%s%d", count++ > 0 ? "," : "", (int)i);
        }
    } else {
        int64_t from = first >= COUNT ? COUNT - 1 : first < 0 ? 0 : first;
        for (int64_t i = from; i >= 0 && i > last; i += step) {
            wpk_buf_printf(&expected, "%s%d", count++ > 0 ? "," : "", (int)i);
        }
    }
    wpk_buf_printf(&inputs, "0,1,2,3,4:f32[5] %lld:i64[1] %lld:i64[1] - %lld:i64[1]",
                   (long long)start, (long long)end, (long long)step);
    wpk_buf_printf(&type, count > 0 ? "f32[%d] %s" : "!no elements", count,
                   wpk_buf_text(&expected));
    const struct wpk_model_case cases[] = {
        {"Slice", wpk_buf_text(&inputs), "", wpk_buf_text(&type)}};
    WPK_MODEL_CASES(cases);
    wpk_buf_fini(&expected);
    wpk_buf_fini(&inputs);
    wpk_buf_fini(&type);
}

static void a_slice_counts_from_both_ends(void **state)
{
    (void)state;
    for (int64_t step = -3; step <= 3; step++) {
        for (int64_t start = -7; start <= 7 && step != 0; start += 2) {
            for (int64_t end = -7; end <= 7; end++) {
                check_slice(start, end, step);
            }
        }
    }
}

static void ends_may_be_as_large_as_numbers_are(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Slice@9", ":f32[3]", "starts:I=1 ends:I=9223372036854775807", "f32[2] 2,3"},
        {"Slice@9", ":f32[3]", "starts:I=-9223372036854775807 ends:I=2", "f32[2] 1,2"},
        {"Slice@9", ":f32[2,3]", "starts:I=1 ends:I=3 axes:I=1", "f32[2,2] 2,3,5,6"},
        {"Slice@9", ":f32[2,3]", "starts:I=1,0 ends:I=2,2", "f32[1,2] 4,5"},
        {"Slice@9", ":f32[2,3]", "starts:I=1,0 ends:I=2", "!differ in number"},
        {"Slice@9", ":f32[2,3]", "starts:I=0 ends:I=1 axes:I=2", "!axis 2 of 2"},
        {"Slice@9", ":f32[2,3]", "ends:I=1", "!differ in number"},
        {"Slice", ":f32[3] 0:i64[1] 3:i64[1] 0:i64[1] 0:i64[1]", "", "!a step of 0"},
        {"Slice", ":f32[3] 0:i64[1] 3:i64[1] 0:i64[1] 1,1:i64[2]", "", "!differ in number"},
    };
    WPK_MODEL_CASES(cases);
}

static void a_split_gives_each_output_its_part(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Split>1@13", ":f32[4]", "", "f32[2] 3,4"},
        {"Split>1@18", ":f32[5]", "num_outputs:i=2", "f32[2] 4,5"}, /* the last one is smaller */
        {"Split>1@13", ":f32[5] 1,4:i64[2]", "", "f32[4] 2,3,4,5"},
        {"Split>1@11", ":f32[5]", "split:I=4,1", "f32[1] 5"},
        {"Split>1@13", ":f32[2,4]", "axis:i=1", "f32[2,2] 3,4,7,8"},
        {"Split>1@13", ":f32[2,4]", "axis:i=-2", "f32[1,4] 5,6,7,8"},
        {"Split>2@13", ":f32[6]", "", "f32[2] 5,6"},
        {"Split>1@13", ":f32[5] 1,3:i64[2]", "", "!does not give its input's 5 elements"},
        {"Split>1@13", ":f32[5] 6,-1:i64[2]", "", "!does not give its input's 5 elements"},
        {"Split>1@13", ":f32[5] 5:i64[1]", "", "!an integer for each output"},
        {"Split>1@13", ":f32[5] 1,2,2:i64[3]", "", "!to its 2 outputs"},
        {"Split>1@13", ":f32[5]", "axis:i=1", "!axis 1 of 1"},
    };
    WPK_MODEL_CASES(cases);
}

static void a_slice_is_made_of_a_value(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    struct wpk_graph_node slice;
    struct wpk_operator_slice found;
    struct wpk_diag diag = {.text = ""};
    wpk_model_fixture_input(&model, "x", "f32[2,7]");
    wpk_model_fixture_node(&model, "Relu", "x", "y", "");
    wpk_model_fixture_output(&model, "y");
    wpk_model_case_read(&model, &graph);
    int x = wpk_graph_find(&graph, "x");
    assert_int_equal(wpk_graph_make_slice(&graph, &graph.nodes[0], x, 1, 2, 6, &slice), WPK_OK);
    assert_string_equal(slice.name, "y");
    assert_int_equal(slice.inputs[0], x);
    assert_int_equal(slice.outputs[0], graph.nodes[0].outputs[0]);
    assert_int_equal(graph.node_count, 1); /* it is not part of the graph yet */
    assert_int_equal(wpk_operator_slice(&graph, &slice, &found, &diag), WPK_OK);
    assert_true(found.start[0] == 0 && found.count[0] == 2);
    assert_true(found.start[1] == 2 && found.step[1] == 1 && found.count[1] == 4);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

static void integers_become_a_constant_list(void **state)
{
    (void)state;
    struct wpk_graph graph = {.node_count = 0};
    int64_t numbers[] = {INT64_MIN, 7};
    int value = -1;
    assert_int_equal(wpk_graph_add_integers(&graph, numbers, 2, &value), WPK_OK);
    numbers[1] = 8; /* it is a copy */
    assert_int_equal(graph.values[value].rank, 1);
    assert_int_equal(wpk_graph_elements(&graph.values[value]), 2);
    assert_true(wpk_graph_integer(&graph.values[value], 0) == INT64_MIN);
    assert_int_equal(wpk_graph_integer(&graph.values[value], 1), 7);
    wpk_graph_fini(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slice_counts_from_both_ends),
        cmocka_unit_test(ends_may_be_as_large_as_numbers_are),
        cmocka_unit_test(a_split_gives_each_output_its_part),
        cmocka_unit_test(a_slice_is_made_of_a_value),
        cmocka_unit_test(integers_become_a_constant_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
