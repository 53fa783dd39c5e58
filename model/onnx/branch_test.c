/* SPDX-License-Identifier: Apache-2.0 */
/* Branches of an If: one that is taken, or a choice between both. */
#include "model/onnx/read.h"
#include "model/operator/interpret.h"
#include "tests/model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Append an attribute that is a graph, which is empty then. */
static void put_graph(struct wpk_buf *node, const char *name, struct wpk_model_fixture *graph)
{
    struct wpk_buf attribute = {0};
    wpk_model_put_text(&attribute, 1, name);
    wpk_model_put_number(&attribute, 20, 5);
    wpk_model_put_bytes(&attribute, 6, wpk_buf_text(&graph->graph), graph->graph.size);
    wpk_model_put_message(node, 5, &attribute);
    wpk_model_fixture_fini(graph);
}

/* Add "y = If(condition)"; a branch may be left out. */
static void put_if(struct wpk_model_fixture *model, const char *condition, const char *outputs,
                   struct wpk_model_fixture *one, struct wpk_model_fixture *other)
{
    struct wpk_buf node = {0};
    if (condition != NULL) {
        wpk_model_put_text(&node, 1, condition);
    }
    while (*outputs != '\0') {
        size_t size = strcspn(outputs, ",");
        wpk_model_put_bytes(&node, 2, outputs, size);
        outputs += size + (outputs[size] == ',');
    }
    wpk_model_put_text(&node, 3, "if");
    wpk_model_put_text(&node, 4, "If");
    if (one != NULL) {
        put_graph(&node, "then_branch", one);
    }
    if (other != NULL) {
        put_graph(&node, "else_branch", other);
    }
    wpk_model_put_message(&model->graph, 1, &node);
}

/* A branch whose node computes "out". */
static struct wpk_model_fixture branch(const char *op, const char *inputs)
{
    struct wpk_model_fixture out = {.fd = 0};
    wpk_model_fixture_node(&out, op, inputs, "out", "");
    wpk_model_fixture_output(&out, "out");
    return out;
}

static void compute(struct wpk_model_fixture *model, const double *x, double *y, int *nodes)
{
    struct wpk_graph graph;
    double *outputs[] = {y};
    wpk_model_case_read(model, &graph);
    assert_int_equal(wpk_graph_interpret(&graph, &x, outputs, NULL), WPK_OK);
    *nodes = graph.node_count;
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(model);
}

static void a_constant_condition_takes_one_branch(void **state)
{
    (void)state;
    for (int condition = 0; condition < 2; condition++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_model_fixture one = branch("Neg", "x"), other = branch("Abs", "x");
        const double x[] = {-3, 2};
        double y[2];
        int nodes = 0;
        wpk_model_fixture_input(&model, "x", "f32[2]");
        wpk_model_fixture_constant(&model, "c", "bool[]", condition ? "1" : "0");
        put_if(&model, "c", "y", &one, &other);
        wpk_model_fixture_output(&model, "y");
        compute(&model, x, y, &nodes);
        assert_true(y[0] == 3 && y[1] == (condition ? -2 : 2));
        assert_int_equal(nodes, 2); /* the branch's node, and that of its output */
    }
}

static void a_condition_that_is_data_chooses_between_both(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_model_fixture one = branch("Neg", "x"), other = branch("Exp", "zero");
        const double x[] = {sign};
        double y[1];
        int nodes = 0;
        wpk_model_fixture_input(&model, "x", "f32[1]");
        wpk_model_fixture_constant(&model, "zero", "f32[1]", "0");
        wpk_model_fixture_node(&model, "Greater", "x,zero", "c", "");
        put_if(&model, "c", "y", &one, &other);
        wpk_model_fixture_output(&model, "y");
        compute(&model, x, y, &nodes);
        assert_true(y[0] == (sign > 0 ? -1 : 1));
    }
}

/* The branch that is not taken has an operator that there is not. */
static void a_branch_that_is_not_taken_may_be_unsupported(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_model_fixture one = branch("Neg", "x"), other = branch("NoSuch", "x");
    const double x[] = {-3};
    double y[1];
    int nodes = 0;
    wpk_model_fixture_input(&model, "x", "f32[1]");
    wpk_model_fixture_constant(&model, "c", "bool[]", "1");
    put_if(&model, "c", "y", &one, &other);
    wpk_model_fixture_output(&model, "y");
    compute(&model, x, y, &nodes);
    assert_true(y[0] == 3);
}

/* The inner If is taken or not by both conditions. */
static void branches_lie_in_each_other(void **state)
{
    (void)state;
    for (int c = 0; c < 4; c++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_model_fixture inner_one = branch("Neg", "x"), inner_other = branch("Exp", "x");
        struct wpk_model_fixture outer = {.fd = 0}, other = branch("Abs", "x");
        const double x[] = {0, -2};
        double y[2];
        int nodes = 0;
        put_if(&outer, "d", "out", &inner_one, &inner_other);
        wpk_model_fixture_output(&outer, "out");
        wpk_model_fixture_input(&model, "x", "f32[2]");
        wpk_model_fixture_constant(&model, "c", "bool[]", c & 1 ? "1" : "0");
        wpk_model_fixture_constant(&model, "d", "bool[]", c & 2 ? "1" : "0");
        put_if(&model, "c", "y", &outer, &other);
        wpk_model_fixture_output(&model, "y");
        compute(&model, x, y, &nodes);
        assert_true(y[0] == ((c & 1) && !(c & 2) ? 1 : 0));
        assert_true(c == 1 || y[1] == 2); /* -x and |x| */
    }
}

/* Both branches have a "t" and a constant "w" of their own. */
static void names_of_branches_are_their_own(void **state)
{
    (void)state;
    for (int condition = 0; condition < 2; condition++) {
        struct wpk_model_fixture model = {.fd = 0}, bodies[2] = {{.fd = 0}, {.fd = 0}};
        const double x[] = {1};
        double y[1];
        int nodes = 0;
        for (int i = 0; i < 2; i++) {
            wpk_model_fixture_constant(&bodies[i], "w", "f32[1]", i == 0 ? "10" : "20");
            wpk_model_fixture_node(&bodies[i], "Add", "x,w", "t", "");
            wpk_model_fixture_node(&bodies[i], "Add", "t,w", "u", "");
            wpk_model_fixture_output(&bodies[i], "u");
        }
        wpk_model_fixture_input(&model, "x", "f32[1]");
        wpk_model_fixture_constant(&model, "w", "f32[1]", "1000");
        wpk_model_fixture_constant(&model, "c", "bool[]", condition ? "1" : "0");
        put_if(&model, "c", "t", &bodies[0], &bodies[1]);
        wpk_model_fixture_node(&model, "Add", "t,w", "y", "");
        wpk_model_fixture_output(&model, "y");
        compute(&model, x, y, &nodes);
        assert_true(y[0] == (condition ? 1021 : 1041));
    }
}

static void several_outputs_are_chosen_alike(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0}, bodies[2] = {{.fd = 0}, {.fd = 0}};
    const double x[] = {-4};
    double y[1];
    int nodes = 0;
    for (int i = 0; i < 2; i++) {
        wpk_model_fixture_node(&bodies[i], i == 0 ? "Neg" : "Exp", "x", "a", "");
        wpk_model_fixture_node(&bodies[i], i == 0 ? "Abs" : "Exp", "x", "b", "");
        wpk_model_fixture_output(&bodies[i], "a");
        wpk_model_fixture_output(&bodies[i], "b");
    }
    wpk_model_fixture_input(&model, "x", "f32[1]");
    wpk_model_fixture_constant(&model, "c", "bool[]", "1");
    put_if(&model, "c", "p,q", &bodies[0], &bodies[1]);
    wpk_model_fixture_node(&model, "Add", "p,q", "y", "");
    wpk_model_fixture_output(&model, "y");
    compute(&model, x, y, &nodes);
    assert_true(y[0] == 8);
}

static void expect_refusal(struct wpk_model_fixture *model, const char *text)
{
    struct wpk_graph graph;
    struct wpk_diag diag = {.text = ""};
    wpk_model_fixture_output(model, "y");
    wpk_err err = wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), &graph, &diag);
    if (err != WPK_EPARSE || strstr(diag.text, text) == NULL) {
        fail_msg("%s: %s", text, diag.text);
    }
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(model);
}

static void an_if_has_a_condition_and_two_branches(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct wpk_model_fixture model = {.fd = 0};
        struct wpk_model_fixture one = branch("Neg", "x"), other = branch("Abs", "x");
        static const char *const texts[] = {"it has no condition",
                                            "it has no then_branch",
                                            "it has no else_branch",
                                            "a branch has fewer than its 2 outputs",
                                            "a branch has more than its 1 outputs",
                                            "no node of its branch computes none"};
        wpk_model_fixture_input(&model, "x", "f32[1]");
        wpk_model_fixture_constant(&model, "c", "bool[]", "1");
        if (i == 4) {
            wpk_model_fixture_output(&one, "x");
        } else if (i == 5) {
            wpk_model_fixture_fini(&one);
            wpk_model_fixture_output(&one, "none");
        }
        put_if(&model, i == 0 ? NULL : "c", i == 3 ? "y,z" : "y", i == 1 ? NULL : &one,
               i == 2 ? NULL : &other);
        wpk_model_fixture_fini(&one);
        wpk_model_fixture_fini(&other);
        expect_refusal(&model, texts[i]);
    }
}

/* A branch computes another shape: a Where cannot choose. */
static void branches_that_are_both_computed_have_one_shape(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    struct wpk_model_fixture one = branch("Neg", "x"), other = branch("Neg", "w");
    wpk_model_fixture_input(&model, "x", "f32[1]");
    wpk_model_fixture_input(&model, "w", "f32[2]");
    wpk_model_fixture_input(&model, "c", "bool[]");
    put_if(&model, "c", "y", &one, &other);
    wpk_model_fixture_output(&model, "y");
    wpk_model_case_refuse(&model, "node if (If)");
    wpk_model_fixture_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_condition_takes_one_branch),
        cmocka_unit_test(a_condition_that_is_data_chooses_between_both),
        cmocka_unit_test(a_branch_that_is_not_taken_may_be_unsupported),
        cmocka_unit_test(branches_lie_in_each_other),
        cmocka_unit_test(names_of_branches_are_their_own),
        cmocka_unit_test(several_outputs_are_chosen_alike),
        cmocka_unit_test(an_if_has_a_condition_and_two_branches),
        cmocka_unit_test(branches_that_are_both_computed_have_one_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
