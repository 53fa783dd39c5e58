/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a narrower type, and the types of values that a file declares as f16. */
#include "model/onnx/read.h"
#include "model/operator/lower.h"
#include "model/operator/shape.h"
#include "tests/model_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Read the model, whose output is y, with products and weights in these types. */
static void read_weights(struct wpk_model_fixture *model, enum wpk_dtype math,
                         struct wpk_graph_weights weights, struct wpk_graph *graph)
{
    struct wpk_buf problems = {0};

    wpk_model_fixture_output(model, "y");
    assert_int_equal(wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), graph, NULL), WPK_OK);
    graph->math = math;
    graph->weights = weights;
    wpk_err err = wpk_graph_infer(graph, &problems);
    if (err != WPK_OK) {
        fail_msg("%s", wpk_buf_text(&problems));
    }
    wpk_buf_fini(&problems);
}

static void read_model(struct wpk_model_fixture *model, enum wpk_dtype math, enum wpk_dtype weights,
                       struct wpk_graph *graph)
{
    read_weights(model, math, (struct wpk_graph_weights){.dtype = weights}, graph);
}

/* The equation of the first node with a sum, and how many nodes are not folded. */
static const char *product_of(const struct wpk_graph *graph, int *count)
{
    const char *found = "";

    *count = 0;
    for (int n = 0; n < graph->node_count; n++) {
        if (graph->values[graph->nodes[n].outputs[0]].data != NULL) {
            continue;
        }
        const struct wpk_lowered *lowered = wpk_graph_lowered(graph, n);
        assert_non_null(lowered);
        const char *text = wpk_buf_text(&lowered->text);
        found = found[0] == '\0' && strstr(text, "sum(") != NULL ? text : found;
        (*count)++;
    }
    return found;
}

#define NARROW "Y[d0,d1] = sum(k:8) f32(X[d0,k]) * f32(X1[k,d1])"

static void test_products(void **state)
{
    static const struct {
        const char *op, *inputs, *attributes;
        const char *x; /* type */
        enum wpk_dtype math;
        const char *product;
        int nodes; /* that are not folded */
    } cases[] = {
        {"MatMul", "x,w", "", "f32[2,8]", WPK_F32, "Y[d0,d1] = sum(k:8) X[d0,k] * X1[k,d1]", 1},
        {"MatMul", "x,w", "", "f32[2,8]", WPK_BF16, NARROW, 2},
        {"Gemm", "x,w,b", "", "f32[2,8]", WPK_BF16, NARROW, 3},
        {"Gemm", "x,v,b", "transB:i=1 alpha:f=0.5", "f32[2,8]", WPK_BF16, NARROW, 4},
        {"Gemm", "x,w,b", "transA:i=1 beta:f=0", "f32[8,2]", WPK_BF16, NARROW, 3},
        /* few terms, and operands of another type, stay */
        {"MatMul", "u,x", "", "f32[2,8]", WPK_BF16, "Y[d0,d1] = sum(k:2) X[d0,k] * X1[k,d1]", 1},
        {"MatMul", "x,d", "", "f64[2,8]", WPK_BF16, "Y[d0,d1] = sum(k:8) X[d0,k] * X1[k,d1]", 1},
        /* half an input is read as f32 */
        {"MatMul", "x,w", "", "f16[2,8]", WPK_F32, "Y[d0,d1] = sum(k:8) X[d0,k] * X1[k,d1]", 2},
        {"MatMul", "x,w", "", "bf16[2,8]", WPK_F32, "Y[d0,d1] = sum(k:8) X[d0,k] * X1[k,d1]", 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        int nodes = 0;

        wpk_model_fixture_input(&model, "x", cases[i].x);
        wpk_model_fixture_constant(&model, "w", "f32[8,3]", NULL);
        wpk_model_fixture_constant(&model, "v", "f32[3,8]", NULL);
        wpk_model_fixture_constant(&model, "u", "f32[4,2]", NULL);
        wpk_model_fixture_constant(&model, "d", "f64[8,3]", NULL);
        wpk_model_fixture_constant(&model, "b", "f32[3]", NULL);
        wpk_model_fixture_node(&model, cases[i].op, cases[i].inputs, "y", cases[i].attributes);
        read_model(&model, cases[i].math, WPK_F32, &graph);
        assert_string_equal(product_of(&graph, &nodes), cases[i].product);
        if (nodes != cases[i].nodes) {
            fail_msg("case %zu has %d nodes", i, nodes);
        }
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

/* Two nodes that read a value of f16 share its cast. */
static void test_one_cast(void **state)
{
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    int casts = 0;

    (void)state;
    wpk_model_fixture_input(&model, "x", "f16[4]");
    wpk_model_fixture_node(&model, "Relu", "x", "a", "");
    wpk_model_fixture_node(&model, "Neg", "x", "b", "");
    wpk_model_fixture_node(&model, "Add", "a,b", "y", "");
    read_model(&model, WPK_F32, WPK_F32, &graph);
    for (int n = 0; n < graph.node_count; n++) {
        casts += strcmp(graph.nodes[n].op, "Cast") == 0;
    }
    assert_int_equal(casts, 1);
    assert_int_equal(graph.values[graph.outputs[0]].dtype, WPK_F32);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

/* Weights of i8 have a scale for each column, whichever way they lie; few stay as they are. */
static void test_weights(void **state)
{
    static const struct {
        const char *op, *w, *attributes;
        enum wpk_dtype dtype;
        const char *product;
        int nodes, count;
    } cases[] = {
        {"MatMul", "f32[8,128]", "", WPK_I8, "Y[d0,d1] = sum(k:8) X[d0,k] * f32(X1[k,d1])", 2, 1},
        {"Gemm", "f32[128,8]", "transB:i=1", WPK_I8, "Y[d0,d1] = sum(k:8) X[d0,k] * f32(X1[k,d1])",
         2, 1},
        {"MatMul", "f32[8,128]", "", WPK_BF16, "Y[d0,d1] = sum(k:8) X[d0,k] * f32(X1[k,d1])", 1, 1},
        {"MatMul", "f32[8,16]", "", WPK_I8, "Y[d0,d1] = sum(k:8) X[d0,k] * X1[k,d1]", 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        int nodes = 0;

        wpk_model_fixture_input(&model, "x", "f32[2,8]");
        wpk_model_fixture_constant(&model, "w", cases[i].w, NULL);
        wpk_model_fixture_node(&model, cases[i].op, "x,w", "y", cases[i].attributes);
        read_model(&model, WPK_F32, cases[i].dtype, &graph);
        assert_string_equal(product_of(&graph, &nodes), cases[i].product);
        assert_int_equal(nodes, cases[i].nodes);
        assert_int_equal(graph.weights.count, cases[i].count);
        assert_true(cases[i].count == 0 ||
                    (wpk_precision_loss(&graph) > 30 && wpk_precision_loss(&graph) < 70));
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

/* Weights of 4 bits are packed in blocks of 32 rows, whichever way they lie. */
static void test_weights_of_4_bits(void **state)
{
    static const char packed[] =
        "Y[i,j] = sum(b:2) P[i,b,j] * X2[b,j] where P[i,b,j] = sum(t:16) (X[i,b,0,t] * "
        "f32(i32(X1[j,b,t]) % 16 - 8) + X[i,b,1,t] * f32(i32(X1[j,b,t]) / 16 - 8))";
    static const struct {
        const char *op, *x, *w, *attributes, *product;
        int nodes;
    } cases[] = {
        {"MatMul", "f32[2,64]", "f32[64,32]", "", packed, 2},
        {"Gemm", "f32[2,64]", "f32[32,64]", "transB:i=1", packed, 2},
        {"Gemm", "f32[2,64]", "f32[64,32]", "alpha:f=2", packed, 3},
        {"MatMul", "f32[2,40]", "f32[40,32]", "", packed, 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        int nodes = 0;

        wpk_model_fixture_input(&model, "x", cases[i].x);
        wpk_model_fixture_constant(&model, "w", cases[i].w, NULL);
        wpk_model_fixture_node(&model, cases[i].op, "x,w", "y", cases[i].attributes);
        read_weights(&model, WPK_F32, (struct wpk_graph_weights){.dtype = WPK_I8, .is_i4 = true},
                     &graph);
        assert_string_equal(product_of(&graph, &nodes), cases[i].product);
        assert_int_equal(nodes, cases[i].nodes);
        assert_int_equal(graph.weights.count, 1);
        assert_true(wpk_precision_loss(&graph) > 15 && wpk_precision_loss(&graph) < 60);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

static void test_declared_types(void **state)
{
    (void)state;
    assert_true(wpk_precision_declares(wpk_graph_element_of(WPK_F16), WPK_F32));
    assert_true(wpk_precision_declares(wpk_graph_element_of(WPK_BF16), WPK_F32));
    assert_true(wpk_precision_declares(wpk_graph_element_of(WPK_F32), WPK_F32));
    assert_false(wpk_precision_declares(wpk_graph_element_of(WPK_F64), WPK_F32));
    assert_false(wpk_precision_declares(wpk_graph_element_of(WPK_F16), WPK_F64));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),       cmocka_unit_test(test_one_cast),
        cmocka_unit_test(test_weights),        cmocka_unit_test(test_weights_of_4_bits),
        cmocka_unit_test(test_declared_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
