/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizers pass nodes that move, and some vanish; the graphs compute the same as before. */
#include "model/rewrite/rewrite.h"

#include "model/onnx/read.h"
#include "model/operator/interpret.h"
#include "model/operator/shape.h"
#include "tests/model_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NODES_MAX = 6, ELEMENTS = 4 * 6 * 6 };

/* Inputs x and z are f32[1,4,6,6], q is u8[1,4,6,6]; constants: scales s, t and minus, a zero point
 * p. `left`: the operators of the nodes in the end. */
static const struct {
    struct {
        const char *op, *inputs, *output, *attributes;
    } nodes[NODES_MAX];
    const char *left;
} samples[] = {
    /* a quantizer is two nodes: it passes a Concat, and is computed for each part */
    {{{"Concat", "x,z", "c", "axis:i=1"}, {"QuantizeLinear", "c,s,p", "y", ""}},
     "Quantize Quantize Quantize Quantize Concat"},
    /* a pool, as rounding keeps order, and a transposition before it */
    {{{"Transpose", "x", "c", "perm:I=0,1,3,2"},
      {"MaxPool", "c", "m", "kernel_shape:I=3,3 pads:I=1,1,1,1 strides:I=2,2"},
      {"QuantizeLinear", "m,s,p", "y", ""}},
     "Quantize Quantize Transpose MaxPool"},
    /* not where the scale turns the order, nor an average */
    {{{"MaxPool", "x", "m", "kernel_shape:I=2,2"}, {"QuantizeLinear", "m,minus,p", "y", ""}},
     "MaxPool Quantize Quantize"},
    {{{"AveragePool", "x", "m", "kernel_shape:I=2,2"}, {"QuantizeLinear", "m,s,p", "y", ""}},
     "Average Quantize Quantize"},
    /* nor where others read what is moved, or where that has fewer elements */
    {{{"Transpose", "x", "c", "perm:I=0,1,3,2"},
      {"QuantizeLinear", "c,s,p", "d", ""},
      {"DequantizeLinear", "d,s,p", "e", ""},
      {"Sub", "e,c", "y", ""}},
     "Transpose Quantize Quantize Dequantize Sub"},
    {{{"Slice", "x,one,two,one", "c", ""}, {"QuantizeLinear", "c,s,p", "y", ""}},
     "Slice Quantize Quantize"},
    /* what was quantized so is not quantized again, through a pool */
    {{{"DequantizeLinear", "q,s,p", "d", ""},
      {"MaxPool", "d", "m", "kernel_shape:I=2,2"},
      {"QuantizeLinear", "m,s,p", "e", ""},
      {"DequantizeLinear", "e,t,p", "y", ""}},
     "MaxPool Dequantize"},
    /* but with another scale */
    {{{"DequantizeLinear", "q,s,p", "d", ""},
      {"QuantizeLinear", "d,t,p", "e", ""},
      {"DequantizeLinear", "e,t,p", "y", ""}},
     "Dequantize Quantize Quantize Dequantize"},
};

static void read_model(size_t sample, struct wpk_model_fixture *model, struct wpk_graph *graph)
{
    struct wpk_buf problems = {0};

    wpk_model_fixture_input(model, "x", "f32[1,4,6,6]");
    wpk_model_fixture_input(model, "z", "f32[1,4,6,6]");
    wpk_model_fixture_input(model, "v", "u8[1,4,6,6]");
    wpk_model_fixture_node(model, "Identity", "v", "q", "");
    wpk_model_fixture_constant(model, "s", "f32[]", "0.0371");
    wpk_model_fixture_constant(model, "t", "f32[]", "0.05");
    wpk_model_fixture_constant(model, "minus", "f32[]", "-0.05");
    wpk_model_fixture_constant(model, "p", "u8[]", "117");
    wpk_model_fixture_constant(model, "one", "i64[1]", "1");
    wpk_model_fixture_constant(model, "two", "i64[1]", "2");
    for (int i = 0; i < NODES_MAX && samples[sample].nodes[i].op != NULL; i++) {
        wpk_model_fixture_node(model, samples[sample].nodes[i].op, samples[sample].nodes[i].inputs,
                               samples[sample].nodes[i].output,
                               samples[sample].nodes[i].attributes);
    }
    wpk_model_fixture_output(model, "y");
    assert_int_equal(wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), graph, NULL), WPK_OK);
    assert_int_equal(wpk_graph_infer(graph, &problems), WPK_OK);
    assert_string_equal(wpk_buf_text(&problems), "");
    wpk_buf_fini(&problems);
}

static void interpret(const struct wpk_graph *graph, double *y)
{
    static double x[ELEMENTS], z[ELEMENTS], v[ELEMENTS];
    const double *inputs[] = {x, z, v};
    double *outputs[] = {y};

    for (int i = 0; i < ELEMENTS; i++) {
        x[i] = (i * 37 % 101) / 10.0 - 5;
        z[i] = (i * 53 % 89) / 9.0 - 4;
        v[i] = i * 71 % 256;
    }
    assert_int_equal(wpk_graph_interpret(graph, inputs, outputs, NULL), WPK_OK);
}

/* The operators of the nodes, without "Linear" and "Pool" of an average. */
static void describe(const struct wpk_graph *graph, char *out, size_t size)
{
    out[0] = '\0';
    for (int n = 0; n < graph->node_count; n++) {
        const char *op = graph->nodes[n].op;
        size_t used = strlen(out);
        size_t length = strcmp(op, "AveragePool") == 0 ? 7
                        : strstr(op, "Linear") != NULL ? strlen(op) - 6
                                                       : strlen(op);
        if (strcmp(op, "Identity") != 0) {
            snprintf(out + used, size - used, "%s%.*s", used > 0 ? " " : "", (int)length, op);
        }
    }
}

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        static double before[2 * ELEMENTS], after[2 * ELEMENTS];
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        char left[200];

        read_model(i, &model, &graph);
        interpret(&graph, before);
        assert_int_equal(wpk_graph_narrow(&graph), WPK_OK);
        interpret(&graph, after);
        describe(&graph, left, sizeof(left));
        assert_string_equal(left, samples[i].left);
        assert_memory_equal(before, after, sizeof(before));
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
