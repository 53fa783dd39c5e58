/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes become one program, and which program. */
#include "model/region/region.h"

#include "model/onnx/read.h"
#include "model/operator/interpret.h"
#include "model/operator/mapping.h"
#include "model/operator/shape.h"
#include "model/rewrite/rewrite.h"
#include "tests/model_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NODES_MAX = 10 };

struct node {
    const char *op;
    const char *inputs;
    const char *output;
    const char *attributes;
};

/* x f32[1,4,6,6] and z f32[1,4,6,6] are inputs; constants w f32[4,4,3,3], b f32[4,1,1], v f32[4],
 * half f32[1]. The output is y. The programs of all groups, in order, a line each. */
struct sample {
    struct node nodes[NODES_MAX];
    const char *expected;
};

#define CONV "pads:I=1,1,1,1"
#define PART "0.02777777798473835" /* f32(1 / 36) */
#define AXES "[d0,d1,d2,d3]"
#define SUM "sum(c:4,r0:3,r1:3) X[d0,c,d2+r0-1,d3+r1-1] * X1[d1,c,r0,r1]"

static const struct sample samples[] = {
    /* what follows a convolution element by element is its epilogue */
    {{{"Conv", "x,w", "t", CONV}, {"Relu", "t", "y", ""}}, "Y" AXES " = relu(" SUM ")\n"},
    {{{"Conv", "x,w", "t", CONV}, {"Add", "t,b", "u", ""}, {"Relu", "u", "y", ""}},
     "Y" AXES " = relu(" SUM " + X2[d1])\n"},
    /* a sum of two products goes to the later one */
    {{{"Conv", "x,w", "t", CONV}, {"Conv", "z,w2", "u", CONV}, {"Add", "t,u", "y", ""}},
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
     "Y" AXES " = X" AXES " * ((sum(r2:6,r3:6) X[d0,d1,r2,r3]) * " PART ")\n"},
    {{{"GlobalAveragePool", "x", "t", ""}, {"Mul", "t,half", "y", ""}},
     "Y" AXES " = (sum(r2:6,r3:6) X[d0,d1,r2,r3]) * 0.013888888992369175\n"},
    /* pointwise nodes alone */
    {{{"Relu", "x", "t", ""}, {"Add", "t,z", "u", ""}, {"Sigmoid", "u", "y", ""}},
     "Y" AXES " = sigmoid(relu(X" AXES ") + X1" AXES ")\n"},
    /* what only moves elements is read where they come from, by several readers too */
    {{{"Transpose", "x", "t", "perm:I=0,1,3,2"}, {"Conv", "t,w", "y", ""}},
     "Y" AXES " = sum(c:4,r0:3,r1:3) X[d0,c,d3+r1,d2+r0] * X1[d1,c,r0,r1]\n"},
    {{{"Transpose", "x", "t", "perm:I=0,1,3,2"}, {"Softmax", "t", "y", "axis:i=3"}},
     "Y" AXES " = E" AXES " / (sum(r3:6) E[d0,d1,d2,r3]) where "
     "E" AXES " = exp(X[d0,d1,d3,d2] - max(r3:6) X[d0,d1,r3,d2])\n"},
    /* also beyond a border, if all of it is in another order */
    {{{"Transpose", "x", "t", "perm:I=0,1,3,2"}, {"Conv", "t,w", "y", CONV}},
     "Y" AXES " = sum(c:4,r0:3,r1:3) X[d0,c,d3+r1-1,d2+r0-1] * X1[d1,c,r0,r1]\n"},
    {{{"Slice", "x,one,four,two", "t", ""}, {"Conv", "t,w2,v", "y", CONV}},
     "Y" AXES " = X[d0,d1,d2+1,d3]\n"
     "Y" AXES " = sum(c:4,r0:3,r1:3) X[d0,c,d2+r0-1,d3+r1-1] * X1[d1,c,r0,r1] + X2[d1]\n"},
    /* zeros around a value are a border of who reads it */
    {{{"Pad", "x,pads", "t", ""}, {"Conv", "t,w", "y", ""}}, "Y" AXES " = " SUM "\n"},
    {{{"Pad", "x,pads", "t", ""}, {"MaxPool", "t", "y", "kernel_shape:I=3,3 pads:I=1,1,1,1"}},
     "Y" AXES " = X[d0,d1,d2-1,d3-1]\n"
     "Y" AXES " = max(r0:3,r1:3) X[d0,d1,d2+r0-1,d3+r1-1 | -inf]\n"},
    /* a product writes its elements as they are stored after it */
    {{{"Conv", "x,w", "t", CONV},
      {"Add", "t,b", "u", ""},
      {"Transpose", "u", "v1", "perm:I=0,2,3,1"},
      {"Relu", "v1", "y", ""}},
     "Y" AXES " = relu(sum(c:4,r0:3,r1:3) X[d0,c,d1+r0-1,d2+r1-1] * X1[d3,c,r0,r1] + "
     "X2[d3])\n"},
    /* what computes is not put into a reduction */
    {{{"Relu", "x", "t", ""}, {"Transpose", "t", "u", "perm:I=0,1,3,2"}, {"Conv", "u,w", "y", ""}},
     "Y" AXES " = relu(X[d0,d1,d3,d2])\n"
     "Y" AXES " = sum(c:4,r0:3,r1:3) X[d0,c,d2+r0,d3+r1] * X1[d1,c,r0,r1]\n"},
    /* batch norm is gone before */
    {{{"Conv", "x,w", "t", CONV},
      {"BatchNormalization", "t,v,v,v,v", "u", ""},
      {"Relu", "u", "y", ""}},
     "Y" AXES " = relu(" SUM " + X2[d1])\n"},
    /* convolutions of one value are one; whole channels of its result are memory */
    {{{"Conv", "x,w", "t", CONV},
      {"Conv", "x,w2", "u", CONV},
      {"Relu", "t", "v1", ""},
      {"Relu", "u", "v2", ""},
      {"Conv", "v1,w", "r", CONV},
      {"Conv", "v2,w2", "s", CONV},
      {"Add", "r,s", "y", ""}},
     "Y" AXES " = relu(" SUM ")\n"
     "Y" AXES " = " SUM "\n"
     "Y" AXES " = X2" AXES " + " SUM "\n"},
    /* but not if one would be computed with what reads it */
    {{{"Conv", "x,w", "t", CONV},
      {"Conv", "x,w2", "u", CONV},
      {"Relu", "t", "v1", ""},
      {"Sigmoid", "u", "v2", ""},
      {"Conv", "v1,w", "r", CONV},
      {"Conv", "v2,w2", "s", CONV},
      {"Add", "r,s", "y", ""}},
     "Y" AXES " = relu(" SUM ")\n"
     "Y" AXES " = sigmoid(" SUM ")\n"
     "Y" AXES " = " SUM "\n"
     "Y" AXES " = X2" AXES " + " SUM "\n"},
    /* columns of a product are read where they are, also in other shapes */
    {{{"MatMul", "x,m", "t", ""},
      {"MatMul", "x,m2", "u", ""},
      {"Reshape", "t,shape", "v1", ""},
      {"Reshape", "u,shape", "v2", ""},
      {"Transpose", "v2", "v3", "perm:I=0,1,2,4,3"},
      {"MatMul", "v1,v3", "y", ""}},
     "Y" AXES " = sum(k:6) X[d0,d1,d2,k] * X1[k,d3]\n"
     "Y[d0,d1,d2,d3,d4] = sum(k:3) X[0,d1,d2,3*d3+k] * X[0,d1,d2,3*d4+k+6]\n"},
    /* a Concat of whole channels is memory, and so is a Slice of them, and what has their order */
    {{{"Relu", "x", "t", ""},
      {"Sigmoid", "z", "u", ""},
      {"Concat", "t,u", "r", "axis:i=1"},
      {"Conv", "r,w4", "s", CONV},
      {"Slice", "r,two,four,one", "v1", ""},
      {"Conv", "v1,w8", "v2", CONV},
      {"Add", "s,v2", "y", ""}},
     "Y" AXES " = relu(X" AXES ")\n"
     "Y" AXES " = sigmoid(X" AXES ")\n"
     "Y" AXES " = sum(c:8,r0:3,r1:3) X[d0,c,d2+r0-1,d3+r1-1] * X1[d1,c,r0,r1]\n"
     "Y" AXES " = X2" AXES " + sum(c:2,r0:3,r1:3) X[d0,c,d2+r0-1,d3+r1-1] * X1[d1,c,r0,r1]\n"},
    /* not of rows, of inputs, nor of a value twice */
    {{{"Relu", "x", "t", ""}, {"Sigmoid", "z", "u", ""}, {"Concat", "t,u", "y", "axis:i=2"}},
     "Y" AXES " = relu(X" AXES ")\n"
     "Y" AXES " = sigmoid(X" AXES ")\n"
     "Y" AXES " = select(d2 < 6, X[d0,d1,d2+0,d3], X1[d0,d1,d2-6,d3])\n"},
    {{{"Relu", "x", "t", ""}, {"Concat", "t,z", "y", "axis:i=1"}},
     "Y" AXES " = relu(X" AXES ")\n"
     "Y" AXES " = select(d1 < 4, X[d0,d1+0,d2,d3], X1[d0,d1-4,d2,d3])\n"},
    {{{"Relu", "x", "t", ""}, {"Concat", "t,t", "y", "axis:i=1"}},
     "Y" AXES " = relu(X" AXES ")\n"
     "Y" AXES " = select(d1 < 4, X[d0,d1+0,d2,d3], X[d0,d1-4,d2,d3])\n"},
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
    wpk_model_fixture_constant(model, "w2", "f32[4,4,3,3]", "3,1,2");
    wpk_model_fixture_constant(model, "w16", "f32[16,4,3,3]", NULL);
    wpk_model_fixture_constant(model, "wd16", "f32[16,1,3,3]", NULL);
    wpk_model_fixture_constant(model, "wd", "f32[4,1,3,3]", NULL);
    wpk_model_fixture_constant(model, "w4", "f32[4,8,3,3]", NULL);
    wpk_model_fixture_constant(model, "w8", "f32[4,2,3,3]", NULL);
    wpk_model_fixture_constant(model, "m", "f32[6,6]", NULL);
    wpk_model_fixture_constant(model, "m2", "f32[6,6]", "2,3,5,7");
    wpk_model_fixture_constant(model, "shape", "i64[5]", "1,4,6,2,3");
    wpk_model_fixture_constant(model, "pads", "i64[8]", "0,0,1,1,0,0,1,1");
    wpk_model_fixture_constant(model, "one", "i64[1]", "1");
    wpk_model_fixture_constant(model, "two", "i64[1]", "2");
    wpk_model_fixture_constant(model, "four", "i64[1]", "4");
    wpk_model_fixture_constant(model, "g", "f32[6]", NULL);
    wpk_model_fixture_constant(model, "b6", "f32[6]", "3,1,4,1,5,9");
    wpk_model_fixture_constant(model, "epsilon", "f32[]", "0.001");
    wpk_model_fixture_constant(model, "two_f", "f32[]", "2");
    wpk_model_fixture_constant(model, "one_f", "f32[1]", "1");
    wpk_model_fixture_constant(model, "root", "f32[]", "1.4142135");
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
        read_graph(samples[i].nodes, NODES_MAX, &model, &graph);
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

/* The same where values may be stored with their channels last. */
#define SUM_LAST "sum(c:4,r0:3,r1:3) X[d0,d2+r0-1,d3+r1-1,c] * X1[d1,c,r0,r1]"

static const struct sample layouts[] = {
    /* between convolutions; a residual, which agrees with what it is added to */
    {{{"Conv", "x,w", "t", CONV},
      {"Relu", "t", "u", ""},
      {"Conv", "u,w2", "r", CONV},
      {"Add", "r,u", "s", ""},
      {"GlobalAveragePool", "s", "v1", ""},
      {"Conv", "u,w2", "v2", CONV},
      {"Mul", "v1,v2", "y", ""}},
     "Y" AXES " = relu(sum(c:4,r0:3,r1:3) X[d0,c,d1+r0-1,d2+r1-1] * X1[d3,c,r0,r1])\n"
     "Y" AXES " = sum(c:4,r0:3,r1:3) X[d0,d1+r0-1,d2+r1-1,c] * X1[d3,c,r0,r1] + X" AXES "\n"
     "Y" AXES " = (sum(r2:6,r3:6) X[d0,r2,r3,d1]) * " PART "\n"
     "Y" AXES " = X2[d0,d1,0,0] * (" SUM_LAST ")\n"},
    /* the inputs of a Concat are parts of it in both orders */
    {{{"Conv", "x,w", "t", CONV},
      {"Conv", "z,w", "u", CONV},
      {"Concat", "t,u", "r", "axis:i=1"},
      {"Conv", "r,w4", "y", CONV}},
     "Y" AXES " = sum(c:4,r0:3,r1:3) X[d0,c,d1+r0-1,d2+r1-1] * X1[d3,c,r0,r1]\n"
     "Y" AXES " = sum(c:4,r0:3,r1:3) X[d0,c,d1+r0-1,d2+r1-1] * X1[d3,c,r0,r1]\n"
     "Y" AXES " = sum(c:8,r0:3,r1:3) X[d0,d2+r0-1,d3+r1-1,c] * X1[d1,c,r0,r1]\n"},
};

static void test_layouts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        struct wpk_graph_regions regions;
        struct wpk_buf said = {0};
        read_graph(layouts[i].nodes, NODES_MAX, &model, &graph);
        assert_int_equal(wpk_graph_layout(&graph, &regions, NULL), WPK_OK);
        print_regions(&graph, &regions, &said);
        assert_string_equal(wpk_buf_text(&said), layouts[i].expected);
        wpk_buf_fini(&said);
        wpk_graph_regions_fini(&regions);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

/* The input of a depthwise convolution is padded if its rows are whole cache lines; that of a max
 * pool is not, whose value outside is not 0. */
static void test_borders(void **state)
{
    static const struct node nodes[] = {
        {"Conv", "x,w", "r", CONV},
        {"Conv", "r,wd", "s", CONV " group:i=4"},
        {"Conv", "s,w16", "t", CONV},
        {"Conv", "t,wd16", "u", CONV " group:i=16"},
        {"MaxPool", "u", "y", "kernel_shape:I=3,3 pads:I=1,1,1,1"},
    };
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_graph graph;
    struct wpk_graph_regions regions;
    int borders = 0;

    (void)state;
    read_graph(nodes, sizeof(nodes) / sizeof(nodes[0]), &model, &graph);
    assert_int_equal(wpk_graph_layout(&graph, &regions, NULL), WPK_OK);
    for (int v = 0; v < graph.value_count; v++) {
        const struct wpk_graph_value *value = &graph.values[v];
        if (value->pad_before[1] != 0) { /* rows; the channels are last */
            assert_int_equal(value->pad_after[1], 1);
            assert_int_equal(value->pad_before[2], 1);
            assert_int_equal(value->pad_before[3], 0);
            borders++;
        }
    }
    assert_int_equal(borders, 1);
    wpk_graph_regions_fini(&regions);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

/* Two graphs that exporters make of one model have the same regions, and compute the same. */
struct spelling {
    struct node one[NODES_MAX];
    struct node other[NODES_MAX];
    int steps; /* of both */
};

static const struct spelling spellings[] = {
    {{{"LayerNormalization", "x,g,b6", "y", "axis:i=-1 epsilon:f=0.001"}},
     {{"ReduceMean", "x", "m1", "axes:I=-1"},
      {"Sub", "x,m1", "d", ""},
      {"Pow", "d,two_f", "p", ""},
      {"ReduceMean", "p", "v1", "axes:I=-1"},
      {"Add", "v1,epsilon", "v2", ""},
      {"Sqrt", "v2", "r", ""},
      {"Div", "d,r", "q", ""},
      {"Mul", "q,g", "s", ""},
      {"Add", "s,b6", "y", ""}},
     1},
    /* after a residual; the square by a product, factors in another order */
    {{{"Add", "x,z", "t", ""}, {"LayerNormalization", "t,g,b6", "y", "axis:i=3 epsilon:f=0.001"}},
     {{"Add", "z,x", "t", ""},
      {"ReduceMean", "t", "m1", "axes:I=3"},
      {"Sub", "t,m1", "d", ""},
      {"Mul", "d,d", "p", ""},
      {"ReduceMean", "p", "v1", "axes:I=3"},
      {"Add", "epsilon,v1", "v2", ""},
      {"Pow", "v2,half", "r", ""},
      {"Div", "d,r", "q", ""},
      {"Mul", "g,q", "s", ""},
      {"Add", "b6,s", "y", ""}},
     1},
    {{{"RMSNormalization", "x,g", "y", "axis:i=-1 epsilon:f=0.001"}},
     {{"Mul", "x,x", "p", ""},
      {"ReduceMean", "p", "v1", "axes:I=-1"},
      {"Add", "v1,epsilon", "v2", ""},
      {"Sqrt", "v2", "r", ""},
      {"Reciprocal", "r", "q", ""},
      {"Mul", "x,q", "s", ""},
      {"Mul", "s,g", "y", ""}},
     1},
    /* scale and mask before a softmax */
    {{{"Mul", "x,half", "t", ""}, {"Add", "t,z", "u", ""}, {"Softmax", "u", "y", "axis:i=3"}},
     {{"Div", "x,two_f", "t", ""},
      {"Add", "z,t", "u", ""},
      {"ReduceMax", "u", "m1", "axes:I=-1"},
      {"Sub", "u,m1", "d", ""},
      {"Exp", "d", "e", ""},
      {"ReduceSum", "e", "s", "axes:I=-1"},
      {"Div", "e,s", "y", ""}},
     1},
    {{{"LogSoftmax", "x", "y", "axis:i=1"}},
     {{"ReduceMax", "x", "m1", "axes:I=1"},
      {"Sub", "x,m1", "d", ""},
      {"Exp", "d", "e", ""},
      {"ReduceSum", "e", "s", "axes:I=1"},
      {"Log", "s", "l", ""},
      {"Sub", "d,l", "y", ""}},
     1},
    {{{"MatMul", "x,m", "t", ""}, {"Add", "t,b6", "u", ""}, {"Gelu", "u", "y", ""}},
     {{"MatMul", "x,m", "t", ""},
      {"Add", "b6,t", "u", ""},
      {"Div", "u,root", "d", ""},
      {"Erf", "d", "e", ""},
      {"Add", "e,one_f", "h", ""},
      {"Mul", "u,h", "p", ""},
      {"Mul", "p,half", "y", ""}},
     1},
    {{{"Conv", "x,w", "t", CONV},
      {"BatchNormalization", "t,v,v,v,v", "u", ""},
      {"Relu", "u", "y", ""}},
     {{"Conv", "x,w2,v", "t", CONV}, {"Relu", "t", "y", ""}},
     1},
};

static double differ(const struct node *one, const struct node *other, int steps)
{
    enum { ELEMENTS = 4 * 6 * 6 };
    static double x[ELEMENTS];
    static double z[ELEMENTS];
    static double got[2][ELEMENTS];
    struct wpk_fingerprint fingerprints[2];
    double largest = 0;

    for (int i = 0; i < ELEMENTS; i++) {
        x[i] = (i * 37 % 101) / 50.0 - 1;
        z[i] = i % 7 == 0 ? -1e30 : 0.125 * (i % 5);
    }
    for (int k = 0; k < 2; k++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        struct wpk_graph_regions regions;
        const double *inputs[] = {x, z};
        double *outputs[] = {got[k]};
        read_graph(k == 0 ? one : other, NODES_MAX, &model, &graph);
        assert_int_equal(wpk_graph_rewrite(&graph), WPK_OK);
        assert_int_equal(wpk_graph_interpret(&graph, inputs, outputs, NULL), WPK_OK);
        assert_int_equal(wpk_graph_regions_find(&graph, &regions, NULL), WPK_OK);
        assert_int_equal(regions.count, steps);
        fingerprints[k] = regions.list[0].fingerprint;
        wpk_graph_regions_fini(&regions);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
    assert_string_equal(fingerprints[0].exact, fingerprints[1].exact);
    for (int i = 0; i < ELEMENTS; i++) {
        largest = fmax(largest, fabs(got[0][i] - got[1][i]) / (1 + fabs(got[0][i])));
    }
    return largest;
}

static void test_spellings(void **state)
{
    size_t count = sizeof(spellings) / sizeof(spellings[0]);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        double difference = differ(spellings[i].one, spellings[i].other, spellings[i].steps);
        /* The last has other weights. */
        assert_true(i + 1 == count || difference < 1e-6);
    }
}

/* The types of nodes that read x, and of how they read it. */
static void test_mapping(void **state)
{
    static const struct {
        struct node node;
        enum wpk_mapping type;
        enum wpk_mapping read;
    } cases[] = {
        {{"Relu", "x", "y", ""}, WPK_MAPPING_ONE_TO_ONE, WPK_MAPPING_ONE_TO_ONE},
        {{"Identity", "x", "y", ""}, WPK_MAPPING_SHUFFLE, WPK_MAPPING_ONE_TO_ONE},
        {{"Transpose", "x", "y", "perm:I=0,1,3,2"}, WPK_MAPPING_SHUFFLE, WPK_MAPPING_SHUFFLE},
        {{"Slice", "x,one,four,two", "y", ""}, WPK_MAPPING_REORGANIZE, WPK_MAPPING_REORGANIZE},
        {{"Pad", "x,pads", "y", ""}, WPK_MAPPING_REORGANIZE, WPK_MAPPING_REORGANIZE},
        {{"Unsqueeze", "x,one", "y", ""}, WPK_MAPPING_REORGANIZE, WPK_MAPPING_REORGANIZE},
        {{"Expand", "x,big", "y", ""}, WPK_MAPPING_ONE_TO_MANY, WPK_MAPPING_ONE_TO_MANY},
        {{"Add", "x,wide", "y", ""}, WPK_MAPPING_ONE_TO_ONE, WPK_MAPPING_ONE_TO_MANY},
        {{"MaxPool", "x", "y", "kernel_shape:I=3,3"},
         WPK_MAPPING_MANY_TO_MANY,
         WPK_MAPPING_MANY_TO_MANY},
        {{"Conv", "x,w", "y", CONV}, WPK_MAPPING_MANY_TO_MANY, WPK_MAPPING_MANY_TO_MANY},
        {{"Softmax", "x", "y", "axis:i=3"}, WPK_MAPPING_MANY_TO_MANY, WPK_MAPPING_MANY_TO_MANY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.opset = 18};
        struct wpk_graph graph;
        wpk_model_fixture_constant(&model, "big", "i64[4]", "5,4,6,6");
        wpk_model_fixture_constant(&model, "wide", "f32[3,4,6,6]", NULL);
        read_graph(&cases[i].node, 1, &model, &graph);
        if (wpk_graph_mapping(&graph, 0) != cases[i].type ||
            wpk_graph_read_mapping(&graph, 0, graph.inputs[0]) != cases[i].read) {
            fail_msg("%s: %d, and reads as %d", cases[i].node.op, (int)wpk_graph_mapping(&graph, 0),
                     (int)wpk_graph_read_mapping(&graph, 0, graph.inputs[0]));
        }
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mapping),   cmocka_unit_test(test_regions),
        cmocka_unit_test(test_layouts),   cmocka_unit_test(test_borders),
        cmocka_unit_test(test_spellings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
