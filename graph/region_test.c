/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes become one program, and which program; what rewriting leaves of a graph. */
#include "graph/region.h"

#include "graph/interpret.h"
#include "graph/model_fixture.h"
#include "graph/onnx_read.h"
#include "graph/rewrite.h"
#include "graph/shape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct node {
    const char *op;
    const char *inputs;
    const char *output;
    const char *attributes;
};

/* x f32[1,4,6,6] and z f32[1,4,6,6] are inputs; constants w f32[4,4,3,3], b f32[4,1,1], v f32[4],
 * half f32[1]. The output is y. The programs of all groups, in order, a line each. */
struct sample {
    struct node nodes[6];
    const char *expected;
};

#define CONV "pads:I=1,1,1,1"
#define AXES "[d0,d1,d2,d3]"
#define SUM "sum(c:4,r0:3,r1:3) X[d0,c,d2+r0-1,d3+r1-1] * X1[d1,c,r0,r1]"

static const struct sample samples[] = {
    /* what follows a convolution element by element is its epilogue */
    {{{"Conv", "x,w", "t", CONV}, {"Relu", "t", "y", ""}}, "Y" AXES " = relu(" SUM ")\n"},
    {{{"Conv", "x,w", "t", CONV}, {"Add", "t,b", "u", ""}, {"Relu", "u", "y", ""}},
     "Y" AXES " = relu(" SUM " + X2[d1,0,0])\n"},
    /* a sum of two products goes to the later one */
    {{{"Conv", "x,w", "t", CONV}, {"Conv", "z,w", "u", CONV}, {"Add", "t,u", "y", ""}},
     "Y" AXES " = " SUM "\n"
     "Y" AXES " = X2" AXES " + " SUM "\n"},
    /* two readers, both inside, one of which is found last; the value stays a stage */
    {{{"Conv", "x,w", "t", CONV}, {"Sigmoid", "t", "u", ""}, {"Mul", "t,u", "y", ""}},
     "Y" AXES " = V" AXES " * sigmoid(V" AXES ") where V[d0,d1,d2:6,d3:6] = " SUM "\n"},
    /* a reader outside, as an output is one, and one that reads another element */
    {{{"Relu", "x", "t", ""}, {"Conv", "t,w", "u", CONV}, {"Add", "t,u", "y", ""}},
     "Y" AXES " = relu(X" AXES ")\n"
     "Y" AXES " = X" AXES " + " SUM "\n"},
    {{{"GlobalAveragePool", "x", "t", ""}, {"Mul", "x,t", "y", ""}},
     "Y" AXES " = (sum(r2:6,r3:6) X[d0,d1,r2,r3]) / 36\n"
     "Y" AXES " = X" AXES " * X1[d0,d1,0,0]\n"},
    {{{"GlobalAveragePool", "x", "t", ""}, {"Mul", "t,half", "y", ""}},
     "Y" AXES " = (sum(r2:6,r3:6) X[d0,d1,r2,r3]) / 36 * 0.5\n"},
    /* pointwise nodes alone */
    {{{"Relu", "x", "t", ""}, {"Add", "t,z", "u", ""}, {"Sigmoid", "u", "y", ""}},
     "Y" AXES " = sigmoid(relu(X" AXES ") + X1" AXES ")\n"},
    /* batch norm is gone before */
    {{{"Conv", "x,w", "t", CONV},
      {"BatchNormalization", "t,v,v,v,v", "u", ""},
      {"Relu", "u", "y", ""}},
     "Y" AXES " = relu(" SUM " + X2[d1])\n"},
};

static void read_graph(const struct node *nodes, size_t count, struct wpk_model_fixture *model,
                       struct wpk_graph *graph)
{
    struct wpk_buf problems = {0};

    wpk_model_fixture_input(model, "x", "f32[1,4,6,6]");
    wpk_model_fixture_input(model, "z", "f32[1,4,6,6]");
    wpk_model_fixture_constant(model, "w", "f32[4,4,3,3]", NULL);
    wpk_model_fixture_constant(model, "b", "f32[4,1,1]", NULL);
    wpk_model_fixture_constant(model, "v", "f32[4]", NULL);
    wpk_model_fixture_constant(model, "half", "f32[1]", "0.5");
    for (size_t i = 0; i < count && nodes[i].op != NULL; i++) {
        wpk_model_fixture_node(model, nodes[i].op, nodes[i].inputs, nodes[i].output,
                               nodes[i].attributes);
    }
    wpk_model_fixture_output(model, "y");
    assert_int_equal(wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), graph, NULL), WPK_OK);
    assert_int_equal(wpk_graph_infer(graph, &problems), WPK_OK);
    wpk_buf_fini(&problems);
}

static void print_regions(const struct wpk_graph *graph, const struct wpk_graph_regions *regions,
                          struct wpk_buf *out)
{
    for (int r = 0; r < regions->count; r++) {
        const struct wpk_graph_region *region = &regions->list[r];
        struct wpk_lowered lowered;
        assert_int_equal(wpk_graph_fuse(graph, region->nodes, region->node_count, &lowered, NULL),
                         WPK_OK);
        wpk_buf_printf(out, "%s\n", wpk_buf_text(&lowered.text));
        wpk_lowered_fini(&lowered);
    }
}

static void test_regions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        struct wpk_graph_regions regions;
        struct wpk_buf said = {0};
        read_graph(samples[i].nodes, 6, &model, &graph);
        assert_int_equal(wpk_graph_rewrite(&graph), WPK_OK);
        assert_int_equal(wpk_graph_regions_find(&graph, &regions, NULL), WPK_OK);
        print_regions(&graph, &regions, &said);
        assert_string_equal(wpk_buf_text(&said), samples[i].expected);
        wpk_buf_fini(&said);
        wpk_graph_regions_fini(&regions);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

/* A graph computes the same after rewriting. */
static void test_rewrite(void **state)
{
    enum { ELEMENTS = 4 * 6 * 6 };
    static double x[ELEMENTS];
    static double before[ELEMENTS];
    static double after[ELEMENTS];
    const double *inputs[] = {x, x};
    double *wanted[] = {before};
    double *got[] = {after};
    const struct node nodes[] = {
        {"Conv", "x,w,v", "t", CONV}, {"BatchNormalization", "t,v,v,v,v", "u", "epsilon:f=0.5"},
        {"Conv", "u,w", "p", CONV},   {"BatchNormalization", "p,v,v,v,v", "q", ""},
        {"Add", "p,q", "y", ""},
    };
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;

    (void)state;
    for (int i = 0; i < ELEMENTS; i++) {
        x[i] = (i * 37 % 101) / 50.0 - 1;
    }
    read_graph(nodes, 5, &model, &graph);
    assert_int_equal(wpk_graph_interpret(&graph, inputs, wanted, NULL), WPK_OK);
    assert_int_equal(wpk_graph_rewrite(&graph), WPK_OK);
    assert_int_equal(graph.node_count, 4); /* the second one's result has two readers */
    assert_int_equal(wpk_graph_interpret(&graph, inputs, got, NULL), WPK_OK);
    for (int i = 0; i < ELEMENTS; i++) {
        assert_true(fabs(before[i] - after[i]) <= 1e-5 * fabs(before[i]) + 1e-3);
    }
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_rewrite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
