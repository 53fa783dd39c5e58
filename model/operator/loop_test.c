/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers as loops: how many nodes they are, what they compute, where their values lie. */
#include "model/operator/loop.h"

#include "model/onnx/read.h"
#include "model/operator/interpret.h"
#include "model/operator/shape.h"
#include "model/region/region.h"
#include "model/rewrite/rewrite.h"
#include "tests/model_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Read a model of one layer: y = OP(x, w, r), and z = Relu(x). */
static void read_layer(const char *op, const char *types, const char *attributes, bool rewrites,
                       struct wpk_graph *out)
{
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_buf problems = {0};
    char type[3][32] = {""};

    for (int i = 0; i < 3; i++) {
        size_t size = strcspn(types, " ");
        memcpy(type[i], types, size);
        types += size + (types[size] == ' ');
    }
    wpk_model_fixture_input(&model, "x", type[0]);
    wpk_model_fixture_constant(&model, "w", type[1], "0.5,-0.25,0.125,0.75");
    wpk_model_fixture_constant(&model, "r", type[2], "0.25,0.5,-0.5,0.125");
    wpk_model_fixture_node(&model, op, "x,w,r", "y", attributes);
    wpk_model_fixture_node(&model, "Relu", "x", "z", "");
    wpk_model_fixture_output(&model, "y");
    wpk_model_fixture_output(&model, "z");
    assert_int_equal(wpk_onnx_read(wpk_model_fixture_write(&model, SIZE_MAX), out, NULL), WPK_OK);
    assert_int_equal(wpk_graph_infer(out, &problems), WPK_OK);
    if (rewrites) {
        assert_int_equal(wpk_graph_rewrite(out), WPK_OK);
    }
    wpk_buf_fini(&problems);
    wpk_model_fixture_fini(&model);
}

/* The node of a loop's operator, the first from `from` on. */
static const struct wpk_graph_node *find(const struct wpk_graph *graph, const char *op, int from)
{
    for (int n = from; n < graph->node_count; n++) {
        if (wpk_graph_is_boundary(&graph->nodes[n]) && strcmp(graph->nodes[n].op, op) == 0) {
            return &graph->nodes[n];
        }
    }
    return NULL;
}

#define STEPS 7

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The states of one cell, by the operator's definition. */
static void test_interpret(void **state)
{
    static const struct {
        const char *op, *types, *attributes;
    } layers[] = {
        {"RNN", "f32[7,1,1] f32[1,1,1] f32[1,1,1]", "hidden_size:i=1"},
        {"RNN", "f32[7,1,1] f32[1,1,1] f32[1,1,1]", "hidden_size:i=1 direction:s=reverse"},
        {"RNN", "f32[7,1,1] f32[1,1,1] f32[1,1,1]", "hidden_size:i=1 clip:f=0.5"},
        {"RNN", "f32[7,1,1] f32[1,1,1] f32[1,1,1]", "hidden_size:i=1 activations:s=Relu"},
        {"LSTM", "f32[7,1,1] f32[1,4,1] f32[1,4,1]", "hidden_size:i=1"},
        {"LSTM", "f32[7,1,1] f32[1,4,1] f32[1,4,1]", "hidden_size:i=1 input_forget:i=1"},
    };
    static const double w[] = {0.5, -0.25, 0.125, 0.75}, r[] = {0.25, 0.5, -0.5, 0.125};
    double x[STEPS], y[STEPS], z[STEPS];
    const double *inputs[] = {x};
    double *outputs[] = {y, z};

    (void)state;
    for (int t = 0; t < STEPS; t++) {
        x[t] = (double)(t * t % 5) - 1.5;
    }
    for (size_t l = 0; l < sizeof(layers) / sizeof(layers[0]); l++) {
        struct wpk_graph graph;
        double h = 0, c = 0;
        bool is_reverse = strstr(layers[l].attributes, "reverse") != NULL;
        read_layer(layers[l].op, layers[l].types, layers[l].attributes, l % 2 == 0, &graph);
        assert_int_equal(wpk_graph_interpret(&graph, inputs, outputs, NULL), WPK_OK);
        for (int i = 0; i < STEPS; i++) {
            int t = is_reverse ? STEPS - 1 - i : i;
            double sum = w[0] * x[t] + r[0] * h;
            if (layers[l].op[0] == 'L') {
                double in = sigmoid(sum);
                double shown = sigmoid(w[1] * x[t] + r[1] * h);
                double kept = strstr(layers[l].attributes, "input_forget") != NULL
                                  ? 1 - in
                                  : sigmoid(w[2] * x[t] + r[2] * h);
                c = kept * c + in * tanh(w[3] * x[t] + r[3] * h);
                h = shown * tanh(c);
            } else if (strstr(layers[l].attributes, "Relu") != NULL) {
                h = sum > 0 ? sum : 0;
            } else {
                bool clips = strstr(layers[l].attributes, "clip") != NULL;
                h = tanh(clips ? fmax(-0.5, fmin(0.5, sum)) : sum);
            }
            assert_true(fabs(y[t] - h) < 1e-6);
        }
        wpk_graph_fini(&graph);
    }
}

/* A long sequence has the nodes of one step, and its steps are counted. */
static void test_long(void **state)
{
    struct wpk_graph graph;
    struct wpk_graph_regions regions;
    int64_t most = 0;

    (void)state;
    read_layer("LSTM", "f32[100000,1,4] f32[1,12,4] f32[1,12,3]", "hidden_size:i=3", true, &graph);
    assert_int_equal(graph.loop_count, 1);
    assert_true(graph.node_count < 40);
    assert_int_equal(wpk_graph_regions_find(&graph, &regions, NULL), WPK_OK);
    for (int r = 0; r < regions.count; r++) {
        most = regions.list[r].count > most ? regions.list[r].count : most;
    }
    assert_int_equal(most, 100000);
    for (int n = 0; n < graph.node_count; n++) {
        for (int i = 0; i < regions.uses[n].node_count; i++) {
            assert_int_equal(graph.nodes[regions.uses[n].nodes[i]].loop, graph.nodes[n].loop);
        }
    }
    wpk_graph_regions_fini(&regions);
    wpk_graph_fini(&graph);
}

/* An iteration reads a state in its slot, and writes the next one. */
static void test_slots(void **state)
{
    (void)state;
    for (int is_reverse = 0; is_reverse < 2; is_reverse++) {
        struct wpk_graph graph;
        struct wpk_graph_regions regions;
        int64_t offset = -1;
        const int64_t step = is_reverse ? -3 : 3;
        read_layer("RNN", "f32[7,1,4] f32[1,3,4] f32[1,3,3]",
                   is_reverse ? "hidden_size:i=3 direction:s=reverse" : "hidden_size:i=3", true,
                   &graph);
        assert_int_equal(wpk_graph_regions_find(&graph, &regions, NULL), WPK_OK);
        const struct wpk_graph_node *store = find(&graph, "Store", 0);
        const struct wpk_graph_node *read = find(&graph, "Read", 0);
        const int all = store->outputs[0];
        assert_int_equal(graph.values[all].extent[0], STEPS + 1);
        assert_int_equal(wpk_graph_loop_store(&graph, store->inputs[1]), store - graph.nodes);
        assert_int_equal(wpk_graph_views_root(&regions.views, store->inputs[1], &offset), all);
        assert_int_equal(offset, is_reverse ? 21 : 0);
        assert_int_equal(wpk_graph_views_step(&regions.views, store->inputs[1]), 0);
        assert_int_equal(wpk_graph_views_root(&regions.views, store->inputs[0], &offset), all);
        assert_int_equal(offset, is_reverse ? 18 : 3);
        assert_int_equal(wpk_graph_views_step(&regions.views, store->inputs[0]), step);
        /* the first one reads the product of the inputs, the second one the state */
        assert_int_not_equal(wpk_graph_views_root(&regions.views, read->outputs[0], &offset), all);
        assert_int_equal(offset, is_reverse ? 18 : 0);
        read = find(&graph, "Read", (int)(read - graph.nodes) + 1);
        assert_int_equal(wpk_graph_views_root(&regions.views, read->outputs[0], &offset), all);
        assert_int_equal(offset, is_reverse ? 21 : 0);
        assert_int_equal(wpk_graph_views_step(&regions.views, read->outputs[0]), step);
        wpk_graph_regions_fini(&regions);
        wpk_graph_fini(&graph);
    }
}

/* A node among those of a loop goes before it. */
static void test_gather(void **state)
{
    struct wpk_graph graph;

    (void)state;
    read_layer("RNN", "f32[7,1,1] f32[1,1,1] f32[1,1,1]", "hidden_size:i=1", false, &graph);
    const int last = graph.node_count - 1;
    const struct wpk_graph_node relu = graph.nodes[last];
    const int store = wpk_graph_loop_store(&graph, find(&graph, "Enter", 0)->outputs[0]);
    assert_string_equal(relu.op, "Relu");
    memmove(&graph.nodes[store + 1], &graph.nodes[store],
            (size_t)(last - store) * sizeof(graph.nodes[0]));
    graph.nodes[store] = relu;
    assert_int_equal(wpk_graph_gather_loops(&graph), WPK_OK);
    const int first = graph.values[relu.outputs[0]].writer + 1;
    assert_string_equal(graph.nodes[first - 1].op, "Relu");
    assert_int_equal(graph.nodes[first].loop, 1);
    assert_int_equal(wpk_graph_loop_end(&graph, first), store + 1);
    assert_string_equal(graph.nodes[store + 1].op, "Store");
    assert_int_equal(graph.values[graph.nodes[store].outputs[0]].writer, store);
    wpk_graph_fini(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interpret),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_gather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
