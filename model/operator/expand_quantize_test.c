/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes that quantized operators become: how many are left once constants are folded, and what
 * their product reads. */
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

/* x u8[2,3] and its zero point z u8[] are inputs; constants: scales s and t, weights w i8[3,2] and
 * u u8[3,2], zero points of 0, 100 and 128. */
static const struct {
    const char *op;
    const char *inputs;
    const char *product; /* of the first node with a sum */
    int nodes;           /* that are not folded */
} samples[] = {
    /* no zero points: the product alone */
    {"MatMulInteger", "x,w", "Y[d0,d1] = sum(k:3) i32(X[d0,k]) * i32(X1[k,d1])", 1},
    /* that of x is subtracted times the sums of w, which are constant */
    {"MatMulInteger", "x,w,hundred", "Y[d0,d1] = sum(k:3) i32(X[d0,k]) * i32(X1[k,d1])", 2},
    /* as data it is cast, multiplied and subtracted */
    {"MatMulInteger", "x,w,z", "Y[d0,d1] = sum(k:3) i32(X[d0,k]) * i32(X1[k,d1])", 4},
    /* weights of u8 with a zero point of 128 are those of i8 without one */
    {"MatMulInteger", "x,u,,half", "Y[d0,d1] = sum(k:3) i32(X[d0,k]) * i32(X1[k,d1])", 1},
    /* with another one the sums of x are subtracted */
    {"MatMulInteger", "x,u,,hundred", "Y[d0,d1] = sum(k:3) i32(X[d0,k]) * i32(X1[k,d1])", 4},
    /* scaled, rounded, shifted and cast */
    {"QLinearMatMul", "x,s,none,w,s,none8,t,hundred",
     "Y[d0,d1] = sum(k:3) i32(X[d0,k]) * i32(X1[k,d1])", 6},
};

static int count_nodes(const struct wpk_graph *graph, const char **product)
{
    int count = 0;

    for (int n = 0; n < graph->node_count; n++) {
        const struct wpk_lowered *lowered = NULL;
        if (graph->values[graph->nodes[n].outputs[0]].data != NULL) {
            continue;
        }
        count++;
        lowered = wpk_graph_lowered(graph, n);
        assert_non_null(lowered);
        if (*product == NULL && lowered->operand_count == 2 &&
            strstr(wpk_buf_text(&lowered->text), "sum(") != NULL) {
            *product = wpk_buf_text(&lowered->text);
        }
    }
    return count;
}

/* Read the model, whose output is y, with its operators expanded. */
static void read_model(struct wpk_model_fixture *model, struct wpk_graph *graph)
{
    struct wpk_buf problems = {0};

    wpk_model_fixture_output(model, "y");
    assert_int_equal(wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), graph, NULL), WPK_OK);
    assert_int_equal(wpk_graph_infer(graph, &problems), WPK_OK);
    wpk_buf_fini(&problems);
}

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        const char *product = NULL;

        wpk_model_fixture_input(&model, "x", "u8[2,3]");
        wpk_model_fixture_input(&model, "z", "u8[]");
        wpk_model_fixture_constant(&model, "w", "i8[3,2]", "1,2,3,4,5,-6");
        wpk_model_fixture_constant(&model, "u", "u8[3,2]", "1,2,3,4,5,250");
        wpk_model_fixture_constant(&model, "s", "f32[]", "0.5");
        wpk_model_fixture_constant(&model, "t", "f32[]", "2");
        wpk_model_fixture_constant(&model, "none", "u8[]", "0");
        wpk_model_fixture_constant(&model, "none8", "i8[]", "0");
        wpk_model_fixture_constant(&model, "hundred", "u8[]", "100");
        wpk_model_fixture_constant(&model, "half", "u8[]", "128");
        wpk_model_fixture_node(&model, samples[i].op, samples[i].inputs, "y", "");
        read_model(&model, &graph);
        assert_int_equal(count_nodes(&graph, &product), samples[i].nodes);
        assert_string_equal(product, samples[i].product);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

/* A product of dequantized tensors is one of integers: scales are one number, or one for each
 * column. Others stay in floats. */
static void test_dequantized(void **state)
{
    static const struct {
        const char *weights; /* inputs of their DequantizeLinear */
        const char *axis;    /* its attributes */
        const char *gemm;    /* attributes */
        bool is_integer;
    } cases[] = {{"w,s", "", "", true},
                 {"w,s", "", "alpha:f=0.5", false},
                 {"w,columns", "axis:i=1", "", true},
                 {"w,columns", "axis:i=0", "", false}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        const char *product = NULL;

        wpk_model_fixture_input(&model, "x", "u8[3,2]");
        wpk_model_fixture_constant(&model, "w", "i8[2,2]", "1,2,3,-6");
        wpk_model_fixture_constant(&model, "s", "f32[]", "0.5");
        wpk_model_fixture_constant(&model, "columns", "f32[2]", "0.5,0.25");
        wpk_model_fixture_constant(&model, "b", "f32[2]", "1,2");
        wpk_model_fixture_node(&model, "DequantizeLinear", "x,s", "a", "");
        wpk_model_fixture_node(&model, "DequantizeLinear", cases[i].weights, "v", cases[i].axis);
        wpk_model_fixture_node(&model, "Gemm", "a,v,b", "y", cases[i].gemm);
        read_model(&model, &graph);
        (void)count_nodes(&graph, &product);
        assert_int_equal(cases[i].is_integer,
                         product != NULL && strstr(product, "i32(X1[") != NULL);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_dequantized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
