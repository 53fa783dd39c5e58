/* SPDX-License-Identifier: Apache-2.0 */
/* Rewritten graphs compute the same with fewer nodes; both sides of every rule are equal. */
#include "model/rewrite/rewrite.h"

#include "model/onnx/read.h"
#include "model/operator/interpret.h"
#include "model/operator/shape.h"
#include "tests/model_fixture.h"

#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NODES_MAX = 10, ELEMENTS = 4 * 6 * 6, LETTERS = 26 };

#define CONV "pads:I=1,1,1,1"

struct node {
    const char *op;
    const char *inputs;
    const char *output;
    const char *attributes;
};

static void read_model(struct wpk_model_fixture *model, const char *output, struct wpk_graph *graph)
{
    struct wpk_buf problems = {0};

    wpk_model_fixture_output(model, output);
    assert_int_equal(wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), graph, NULL), WPK_OK);
    assert_int_equal(wpk_graph_infer(graph, &problems), WPK_OK);
    wpk_buf_fini(&problems);
}

static void assert_near(const double *wanted, const double *got)
{
    double largest = 0;

    for (int i = 0; i < ELEMENTS; i++) {
        largest = fmax(largest, fabs(wanted[i]));
    }
    for (int i = 0; i < ELEMENTS; i++) {
        assert_true(largest > 0 && fabs(wanted[i] - got[i]) <= 2e-6 * largest);
    }
}

/* ---- graphs */

/* `gone`: what is said of the nodes that are left out, without repeats. */
struct rewriting {
    struct node nodes[NODES_MAX];
    int node_count;
    const char *gone;
};

#define ASSOCIATIVITY "associativity: MatMul(MatMul(x, y), z) is MatMul(x, MatMul(y, z))"

static const struct rewriting rewritings[] = {
    /* the second one's result has two readers */
    {{{"Conv", "x,w,v", "t", CONV},
      {"BatchNormalization", "t,v,v,v,v", "u", "epsilon:f=0.5"},
      {"Conv", "u,w", "p", CONV},
      {"BatchNormalization", "p,v,v,v,v", "q", ""},
      {"Add", "p,q", "y", ""}},
     4,
     "folded into the weights of t"},
    /* weights that begin alike; biases; a node before the second product */
    {{{"MatMul", "x,m", "t", ""},
      {"Sigmoid", "x", "v2", ""},
      {"MatMul", "x,m2", "u", ""},
      {"Add", "t,m", "r", ""},
      {"Add", "u,m2", "s", ""},
      {"MatMul", "r,v2", "p", ""},
      {"MatMul", "s,v2", "q", ""},
      {"Abs", "p", "o", ""},
      {"Sub", "o,q", "y", ""}},
     9,
     "computed as one: t + u, computed as one: r + s"},
    /* a constant that both share runs along */
    {{{"Conv", "x,w,v", "t", CONV},
      {"Conv", "x,w2,v", "u", CONV},
      {"Relu", "t", "v1", ""},
      {"Relu", "u", "v2", ""},
      {"Conv", "v1,w", "p", CONV},
      {"Conv", "v2,w", "q", CONV},
      {"Abs", "p", "o", ""},
      {"Sub", "o,q", "y", ""}},
     8,
     "computed as one: t + u, computed as one: v1 + v2"},
    /* factors and addends by channel: a bias is made, and added to; one for all; backwards through
     * a sum of two convolutions */
    {{{"Conv", "x,w", "t", CONV}, {"Mul", "t,b", "u", ""}, {"Add", "u,b", "y", ""}},
     1,
     "folded into the weights of t"},
    {{{"Conv", "x,w,v", "t", CONV}, {"Sub", "b,t", "u", ""}, {"Div", "u,half", "y", ""}},
     1,
     "folded into the weights of t"},
    {{{"Conv", "x,w", "t", CONV},
      {"Conv", "z,w2,v", "u", CONV},
      {"Add", "t,u", "s", ""},
      {"Mul", "s,b", "y", ""}},
     3,
     "folded into the weights of t"},
    /* the addend of a product stays */
    {{{"MatMul", "x,m", "t", ""}, {"Mul", "t,g", "u", ""}, {"Add", "u,g", "y", ""}},
     2,
     "folded into the weights of t"},
    {{{"MatMul", "x,m", "t", ""}, {"BatchNormalization", "t,v,v,v,v", "y", ""}}, 2, ""},
    /* 1 / sqrt(d) after the product of Q and K goes to Q's weights and bias, through its order */
    {{{"MatMul", "x,m", "q", ""},
      {"Add", "q,g", "r", ""},
      {"Transpose", "r", "s", "perm:I=0,1,3,2"},
      {"MatMul", "s,z", "t", ""},
      {"Mul", "t,half", "y", ""}},
     4,
     "folded into the weights of q"},
    /* nor where a product overflows, or an addend hides the factor */
    {{{"MatMul", "x,m", "t", ""},
      {"Mul", "t,huge", "u", ""},
      {"Mul", "u,huge", "v1", ""},
      {"Div", "v1,huge", "v2", ""},
      {"Div", "v2,huge", "y", ""}},
     2,
     "folded into the weights of t"},
    /* not where the value is used twice, is an input, or is not linear */
    {{{"MatMul", "x,m", "q", ""}, {"Mul", "q,half", "r", ""}, {"Add", "q,r", "y", ""}}, 3, ""},
    {{{"Mul", "x,half", "y", ""}}, 1, ""},
    {{{"MatMul", "x,m", "q", ""}, {"Exp", "q", "r", ""}, {"Mul", "r,half", "y", ""}}, 3, ""},
    {{{"MatMul", "x,m", "q", ""}, {"HardSwish", "q", "r", ""}, {"Mul", "r,half", "y", ""}}, 3, ""},
    /* constants are multiplied with each other first; both products are as dear */
    {{{"MatMul", "x,m", "t", ""}, {"MatMul", "t,m2", "y", ""}}, 1, ASSOCIATIVITY},
    {{{"MatMul", "x,z", "t", ""}, {"MatMul", "t,x", "y", ""}}, 2, ""},
    /* a column that becomes a row */
    {{{"MatMul", "x,g", "t", ""},
      {"MatMul", "t,m", "u", ""},
      {"Unsqueeze", "u,three", "v1", ""},
      {"Sub", "x,v1", "y", ""}},
     4,
     ""},
    /* the order of three products by their work */
    {{{"MatMul", "x,tall", "t", ""}, {"MatMul", "t,wide", "y", ""}}, 2, ""},
    {{{"MatMul", "x,z", "t", ""}, {"MatMul", "t,tall", "u", ""}, {"Sub", "u,x", "y", ""}},
     3,
     ASSOCIATIVITY},
    /* what no output depends on; what a slice, a split, an index does not take */
    {{{"Relu", "x", "t", ""}, {"Sigmoid", "t", "u", ""}, {"Exp", "t", "y", ""}},
     2,
     "no output depends on it"},
    {{{"MatMul", "x,m", "t", ""},
      {"Add", "t,g", "u", ""},
      {"Softmax", "u", "v1", "axis:i=-1"},
      {"Transpose", "v1", "v2", "perm:I=0,1,3,2"},
      {"Slice", "v2,two,three,three", "r", ""},
      {"Sub", "x,r", "y", ""}},
     6,
     "changes no element"},
    {{{"Conv", "x,w,v", "t", CONV},
      {"Relu", "t", "u", ""},
      {"Slice", "u,one,two,one", "r", ""},
      {"Slice", "u,two,three,one", "s", ""},
      {"Mul", "r,s", "p", ""},
      {"Sub", "x,p", "y", ""}},
     6,
     "changes no element"},
    {{{"Add", "x,z", "h", ""},
      {"MatMul", "h,m", "t", ""},
      {"Relu", "t", "u", ""},
      {"Add", "h,u", "r", ""},
      {"Gather", "r,two_i", "s", "axis:i=2"},
      {"Unsqueeze", "s,two", "p", ""},
      {"Sub", "x,p", "y", ""}},
     11,
     "changes no element"},
    /* the same through an order of axes whose shape is inferred again */
    {{{"Relu", "x", "t", ""},
      {"Squeeze", "t,zero", "u", ""},
      {"Slice", "u,one,two,zero", "r", ""},
      {"Sub", "x,r", "y", ""}},
     4,
     "changes no element"},
    {{{"Relu", "x", "t", ""},
      {"Concat", "z,t,x", "u", "axis:i=1"},
      {"Slice", "u,eight,nine,one", "r", ""},
      {"Sub", "z,r", "y", ""}},
     2,
     "no output depends on it"},
    {{{"Relu", "x", "t", ""}, {"Relu", "t", "u", ""}, {"Exp", "u", "y", ""}},
     2,
     "cancelling: Relu(x) is x"},
    {{{"Sigmoid", "x", "t", ""}, {"Abs", "t", "u", ""}, {"Sqrt", "u", "y", ""}},
     2,
     "cancelling: Abs(x) is x"},
    /* not of integers, the least of which has no absolute value */
    {{{"Cast", "x", "s", "to:i=7"},
      {"Abs", "s", "t", ""},
      {"Relu", "t", "u", ""},
      {"Cast", "u", "y", "to:i=1"}},
     4,
     ""},
};

static void add_tensors(struct wpk_model_fixture *model)
{
    wpk_model_fixture_input(model, "x", "f32[1,4,6,6]");
    wpk_model_fixture_input(model, "z", "f32[1,4,6,6]");
    wpk_model_fixture_constant(model, "w", "f32[4,4,3,3]", NULL);
    wpk_model_fixture_constant(model, "w2", "f32[4,4,3,3]", "3,1,2");
    wpk_model_fixture_constant(model, "b", "f32[4,1,1]", NULL);
    wpk_model_fixture_constant(model, "v", "f32[4]", NULL);
    wpk_model_fixture_constant(model, "g", "f32[6]", "3,1,4,1,5,9");
    wpk_model_fixture_constant(model, "m", "f32[6,6]", NULL);
    wpk_model_fixture_constant(model, "m2", "f32[6,6]", "2,3,5,7");
    wpk_model_fixture_constant(model, "tall", "f32[6,1]", "2,3,5,7");
    wpk_model_fixture_constant(model, "wide", "f32[1,6]", "1,2,3");
    wpk_model_fixture_constant(model, "zero", "i64[1]", "0");
    wpk_model_fixture_constant(model, "one", "i64[1]", "1");
    wpk_model_fixture_constant(model, "two", "i64[1]", "2");
    wpk_model_fixture_constant(model, "three", "i64[1]", "3");
    wpk_model_fixture_constant(model, "eight", "i64[1]", "8");
    wpk_model_fixture_constant(model, "nine", "i64[1]", "9");
    wpk_model_fixture_constant(model, "two_i", "i64[]", "2");
    wpk_model_fixture_constant(model, "huge", "f32[1]", "1e30");
    wpk_model_fixture_constant(model, "half", "f32[1]", "0.5");
}

static void print_notes(const struct wpk_graph *graph, struct wpk_buf *out)
{
    for (int i = 0; i < graph->note_count; i++) {
        if (out->size == 0 || strstr(wpk_buf_text(out), graph->notes[i].why) == NULL) {
            wpk_buf_printf(out, "%s%s", out->size > 0 ? ", " : "", graph->notes[i].why);
        }
    }
}

static void test_rewrite(void **state)
{
    static double x[ELEMENTS];
    static double z[ELEMENTS];
    static double before[ELEMENTS];
    static double after[ELEMENTS];
    const double *inputs[] = {x, z};
    double *wanted[] = {before};
    double *got[] = {after};

    (void)state;
    for (int i = 0; i < ELEMENTS; i++) {
        x[i] = (i * 37 % 101) / 50.0 - 1;
        z[i] = (i * 53 % 89) / 40.0 - 1;
    }
    for (size_t r = 0; r < sizeof(rewritings) / sizeof(rewritings[0]); r++) {
        const struct node *nodes = rewritings[r].nodes;
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_graph graph;
        struct wpk_buf gone = {0};
        add_tensors(&model);
        for (int i = 0; i < NODES_MAX && nodes[i].op != NULL; i++) {
            wpk_model_fixture_node(&model, nodes[i].op, nodes[i].inputs, nodes[i].output,
                                   nodes[i].attributes);
        }
        read_model(&model, "y", &graph);
        assert_int_equal(wpk_graph_interpret(&graph, inputs, wanted, NULL), WPK_OK);
        assert_int_equal(wpk_graph_rewrite(&graph), WPK_OK);
        print_notes(&graph, &gone);
        assert_string_equal(wpk_buf_text(&gone), rewritings[r].gone);
        assert_int_equal(graph.node_count, rewritings[r].node_count);
        assert_int_equal(wpk_graph_interpret(&graph, inputs, got, NULL), WPK_OK);
        assert_near(before, after);
        wpk_buf_fini(&gone);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

/* ---- rules */

/* A side of a rule as a model. Letters are its inputs. */
struct side {
    struct wpk_model_fixture model;
    const char *at;            /* in the expression */
    const char *type[LETTERS]; /* found in `from`, and kept for `to` */
    char order[LETTERS + 1];   /* of the inputs */
    int node_count;
};

static void add_letter(struct side *side, const char *name, const char *op, int position)
{
    bool is_conv = strcmp(op, "Conv") == 0;
    const char **type = &side->type[name[0] - 'a'];

    if (strchr(side->order, name[0]) != NULL) {
        return;
    }
    if (*type == NULL) {
        *type = strcmp(op, "Not") == 0     ? "bool[1,4,6,6]"
                : is_conv && position == 2 ? "f32[4]"
                : is_conv && position == 1 ? "f32[4,4,3,3]"
                                           : "f32[1,4,6,6]";
    }
    side->order[strlen(side->order)] = name[0];
    wpk_model_fixture_input(&side->model, name, *type);
}

/* Add the nodes of the expression at side->at, which is operand `position` of `op`.
 *   shape   out [16] its value's name */
static void add_expression(struct side *side, const char *op, int position, char *out)
{
    size_t size = strcspn(side->at, "(,)");
    char name[16];
    char operands[64] = "";

    snprintf(name, sizeof(name), "%.*s", (int)size, side->at);
    side->at += size;
    if (*side->at != '(') {
        add_letter(side, name, op, position);
        snprintf(out, 16, "%s", name);
        return;
    }
    for (int i = 0; *side->at == '(' || *side->at == ','; i++) {
        char operand[16];
        side->at += *side->at == '(' ? 1 : 2;
        add_expression(side, name, i, operand);
        snprintf(operands + strlen(operands), sizeof(operands) - strlen(operands), "%s%s",
                 i > 0 ? "," : "", operand);
    }
    side->at++;
    snprintf(out, 16, "n%d", ++side->node_count);
    wpk_model_fixture_node(&side->model, name, operands, out,
                           strcmp(name, "Conv") == 0 ? CONV : "");
}

/* The value of one side, for drawn inputs. */
static void compute_side(struct side *side, const char *expression, bool is_positive, double *out)
{
    static double data[LETTERS][ELEMENTS];
    struct wpk_graph graph;
    const double *inputs[LETTERS];
    double *outputs[] = {out};
    char name[16];

    side->model = (struct wpk_model_fixture){.fd = 0};
    side->at = expression;
    memset(side->order, 0, sizeof(side->order));
    add_expression(side, "", 0, name);
    wpk_model_fixture_node(&side->model, "Identity", name, "result", "");
    read_model(&side->model, "result", &graph);
    for (int i = 0; i < graph.input_count; i++) {
        int letter = side->order[i] - 'a';
        bool is_bool = graph.values[graph.inputs[i]].dtype == WPK_BOOL;
        for (int k = 0; k < ELEMENTS; k++) {
            double drawn = ((k + 7 * letter) * 37 % 101) / 50.0 - 1;
            data[letter][k] = is_bool ? drawn > 0 : is_positive ? fabs(drawn) : drawn;
        }
        inputs[i] = data[letter];
    }
    assert_int_equal(wpk_graph_interpret(&graph, inputs, outputs, NULL), WPK_OK);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&side->model);
}

static void test_rules(void **state)
{
    static double from[ELEMENTS];
    static double to[ELEMENTS];
    int count = 0;
    const struct wpk_rule *rules = wpk_rules(&count);

    (void)state;
    for (int r = 0; r < count; r++) {
        struct side side = {.at = NULL};
        compute_side(&side, rules[r].from, rules[r].never_negative, from);
        compute_side(&side, rules[r].to, rules[r].never_negative, to);
        assert_near(from, to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rewrite),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
