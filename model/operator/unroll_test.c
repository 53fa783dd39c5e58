/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/loop.h"

#include "model/onnx/read.h"
#include "model/operator/interpret.h"
#include "model/operator/shape.h"
#include "tests/model_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Check that the model computes `expected` of x, or is refused with a text that contains
 * `problem`. */
static void check(struct wpk_model_fixture *model, const double *x, const double *expected,
                  int count, const char *problem)
{
    struct wpk_graph graph;
    struct wpk_buf said = {0};
    struct wpk_diag diag = {.text = ""};
    double y[16];
    double *outputs[] = {y};

    wpk_err err = wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), &graph, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(err, WPK_OK);
    err = wpk_graph_infer(&graph, &said);
    if (problem != NULL) {
        if (err == WPK_OK || strstr(wpk_buf_text(&said), problem) == NULL) {
            fail_msg("%s: '%s'", problem, wpk_buf_text(&said));
        }
    } else {
        assert_string_equal(wpk_buf_text(&said), "");
        assert_int_equal(wpk_graph_interpret(&graph, &x, outputs, NULL), WPK_OK);
        for (int i = 0; i < count; i++) {
            assert_true(y[i] == expected[i]);
        }
    }
    wpk_buf_fini(&said);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(model);
}

/* A Loop with state x [2] that adds the constant 1, 2, and a row of it for each iteration; it ends
 * when `less` than this many were run. */
static void build_loop(struct wpk_model_fixture *model, const char *trips, const char *less,
                       const char *wanted)
{
    struct wpk_model_fixture body = {.fd = 0};

    wpk_model_fixture_input(&body, "i", "i64[]");
    wpk_model_fixture_input(&body, "going", "bool[]");
    wpk_model_fixture_input(&body, "state", "f32[2]");
    wpk_model_fixture_constant(&body, "one", "f32[2]", NULL);
    wpk_model_fixture_constant(&body, "last", "i64[]", less);
    wpk_model_fixture_node(&body, "Less", "i,last", "on", "");
    wpk_model_fixture_node(&body, "Add", "state,one", "next", "");
    wpk_model_fixture_node(&body, "Mul", "next,x", "row", "");
    wpk_model_fixture_output(&body, "on");
    wpk_model_fixture_output(&body, "next");
    wpk_model_fixture_output(&body, "row");
    wpk_model_fixture_input(model, "x", "f32[2]");
    wpk_model_fixture_constant(model, "trips", "i64[]", trips);
    wpk_model_fixture_body(model, "Loop", "trips,,x", "y,rows", "", &body);
    wpk_model_fixture_output(model, wanted);
}

static void test_loop(void **state)
{
    struct wpk_model_fixture model = {.fd = 0};
    const double x[] = {1, -1};

    (void)state;
    build_loop(&model, "3", "9", "y");
    check(&model, x, (const double[]){4, 5}, 2, NULL);
    build_loop(&model, "3", "1", "rows"); /* its condition ends it after two */
    check(&model, x, (const double[]){2, -1, 3, -3}, 4, NULL);
    build_loop(&model, "0", "1", "y");
    check(&model, x, x, 2, NULL);
    build_loop(&model, "0", "1", "rows");
    check(&model, x, NULL, 0, "it has no iteration");
    build_loop(&model, "2000", "2000", "y");
    check(&model, x, NULL, 0, "it runs more than 1024 times");
}

static void test_loop_on_data(void **state)
{
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_model_fixture body = {.fd = 0};

    (void)state;
    wpk_model_fixture_input(&body, "i", "i64[]");
    wpk_model_fixture_input(&body, "going", "bool[]");
    wpk_model_fixture_node(&body, "Identity", "going", "on", "");
    wpk_model_fixture_output(&body, "on");
    wpk_model_fixture_node(&body, "Identity", "i", "row", "");
    wpk_model_fixture_output(&body, "row");
    wpk_model_fixture_input(&model, "n", "i64[]");
    wpk_model_fixture_body(&model, "Loop", "n,", "y", "", &body);
    wpk_model_fixture_output(&model, "y");
    check(&model, NULL, NULL, 0, "node y (Loop): data decides how often it runs");
}

/* A running sum of the rows of x [3, 2], forwards or backwards. */
static void build_scan(struct wpk_model_fixture *model, const char *attributes)
{
    struct wpk_model_fixture body = {.fd = 0};

    wpk_model_fixture_input(&body, "sum", "f32[2]");
    wpk_model_fixture_input(&body, "row", "f32[2]");
    wpk_model_fixture_node(&body, "Add", "sum,row", "next", "");
    wpk_model_fixture_node(&body, "Identity", "next", "shown", "");
    wpk_model_fixture_output(&body, "next");
    wpk_model_fixture_output(&body, "shown");
    wpk_model_fixture_input(model, "x", "f32[3,2]");
    wpk_model_fixture_constant(model, "zero", "f32[2]", "0,0");
    wpk_model_fixture_body(model, "Scan", "zero,x", "last,y", attributes, &body);
    wpk_model_fixture_output(model, "y");
}

static void test_scan(void **state)
{
    struct wpk_model_fixture model = {.fd = 0};
    const double x[] = {1, 2, 3, 4, 5, 6};

    (void)state;
    build_scan(&model, "num_scan_inputs:i=1");
    check(&model, x, (const double[]){1, 2, 4, 6, 9, 12}, 6, NULL);
    build_scan(&model, "num_scan_inputs:i=1 scan_input_directions:I=1 scan_output_directions:I=1 "
                       "scan_output_axes:I=1");
    check(&model, x, (const double[]){9, 8, 5, 12, 10, 6}, 6, NULL);
    build_scan(&model, "num_scan_inputs:i=3");
    check(&model, x, NULL, 0, "not those of its body");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_loop_on_data),
        cmocka_unit_test(test_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
