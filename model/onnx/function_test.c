/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a model: calls are replaced by their nodes. */
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

enum { FUNCTION = 25 }; /* of a ModelProto */
enum { F_NAME = 1, F_INPUT = 4, F_OUTPUT, F_NODE = 7, F_DOMAIN = 10, F_DEFAULT };

static void put_words(struct wpk_buf *out, int field, const char *words)
{
    while (*words != '\0') {
        size_t size = strcspn(words, ",");
        wpk_model_put_bytes(out, field, words, size);
        words += size + (words[size] == ',');
    }
}

/* Add a function whose nodes are those of `body`, which is empty then. */
static void put_function(struct wpk_model_fixture *model, const char *name, const char *inputs,
                         const char *outputs, struct wpk_buf *defaults,
                         struct wpk_model_fixture *body)
{
    struct wpk_buf function = {0};
    const char *at = wpk_buf_text(&body->graph), *end = at + body->graph.size;
    wpk_model_put_text(&function, F_NAME, name);
    put_words(&function, F_INPUT, inputs);
    put_words(&function, F_OUTPUT, outputs);
    /* A node is field 1 of a graph, of a length that takes one byte or two, and 7 of a function. */
    while (at < end) {
        size_t length = (unsigned char)at[1], head = 2;
        if (length >= 128) {
            length = (length & 127) | (size_t)(unsigned char)at[2] << 7;
            head = 3;
        }
        assert_int_equal(at[0], 0x0a);
        wpk_model_put_bytes(&function, F_NODE, at + head, length);
        at += head + length;
    }
    wpk_model_put_text(&function, F_DOMAIN, "local");
    if (defaults != NULL) {
        wpk_model_put_message(&function, F_DEFAULT, defaults);
    }
    wpk_model_put_message(&model->other, FUNCTION, &function);
    wpk_model_fixture_fini(body);
}

static void expect_values(struct wpk_model_fixture *model, const double *x, const double *expected,
                          int count)
{
    struct wpk_graph graph;
    double y[16];
    double *outputs[] = {y};
    assert_true(count <= 16);
    wpk_model_case_read(model, &graph);
    assert_int_equal(wpk_graph_interpret(&graph, &x, outputs, NULL), WPK_OK);
    wpk_model_case_compare("y", y, expected, count);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(model);
}

static void expect_refusal(struct wpk_model_fixture *model, const char *text)
{
    struct wpk_graph graph;
    struct wpk_diag diag = {.text = ""};
    wpk_err err = wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), &graph, &diag);
    if (err == WPK_OK || strstr(diag.text, text) == NULL) {
        fail_msg("%s: %s", text, diag.text);
    }
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(model);
}

/* f(a, b) = relu(a - b) */
static void put_difference(struct wpk_model_fixture *model)
{
    struct wpk_model_fixture body = {.fd = 0};
    wpk_model_fixture_node(&body, "Sub", "a,b", "d", "");
    wpk_model_fixture_node(&body, "Relu", "d", "out", "");
    put_function(model, "f", "a,b", "out", NULL, &body);
}

static void a_call_computes_the_functions_nodes(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    put_difference(&model);
    wpk_model_fixture_input(&model, "x", "f32[3]");
    wpk_model_fixture_constant(&model, "w", "f32[3]", "2,2,2");
    wpk_model_fixture_node(&model, "local:f", "x,w", "y", "");
    wpk_model_fixture_output(&model, "y");
    expect_values(&model, (const double[]){1, 2, 5}, (const double[]){0, 0, 3}, 3);
}

/* Both calls have a "d" of their own; operands are taken by position. */
static void two_calls_have_values_of_their_own(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    put_difference(&model);
    wpk_model_fixture_input(&model, "x", "f32[3]");
    wpk_model_fixture_constant(&model, "w", "f32[3]", "2,2,2");
    wpk_model_fixture_node(&model, "local:f", "x,w", "p", "");
    wpk_model_fixture_node(&model, "local:f", "w,x", "q", "");
    wpk_model_fixture_node(&model, "Add", "p,q", "y", "");
    wpk_model_fixture_output(&model, "y");
    expect_values(&model, (const double[]){1, 2, 5}, (const double[]){1, 0, 3}, 3); /* |x - 2| */
}

static void a_function_may_call_another(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0}, body = {.fd = 0};
    put_difference(&model);
    wpk_model_fixture_node(&body, "local:f", "a,b", "p", "");
    wpk_model_fixture_node(&body, "local:f", "b,a", "q", "");
    wpk_model_fixture_node(&body, "Add", "p,q", "out", "");
    put_function(&model, "distance", "a,b", "out", NULL, &body);
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_node(&model, "Neg", "x", "n", "");
    wpk_model_fixture_node(&model, "local:distance", "x,n", "y", "");
    wpk_model_fixture_output(&model, "y");
    expect_values(&model, (const double[]){-1, 4}, (const double[]){2, 8}, 2);
}

static void a_function_that_calls_itself_is_refused(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0}, body = {.fd = 0};
    wpk_model_fixture_node(&body, "local:f", "a", "out", "");
    put_function(&model, "f", "a", "out", NULL, &body);
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_node(&model, "local:f", "x", "y", "");
    wpk_model_fixture_output(&model, "y");
    expect_refusal(&model, "lie in each other 32 times");
}

/* An attribute "alpha" of LeakyRelu that refers to the call's "slope", of default 0.5. */
static void put_slope(struct wpk_model_fixture *model, bool has_default)
{
    struct wpk_model_fixture body = {.fd = 0};
    struct wpk_buf reference = {0}, node = {0}, default_slope = {0};
    const float half = 0.5F;
    wpk_model_put_text(&reference, 1, "alpha");
    wpk_model_put_number(&reference, 20, 1);
    wpk_model_put_text(&reference, 21, "slope");
    wpk_model_put_text(&node, 1, "a");
    wpk_model_put_text(&node, 2, "out");
    wpk_model_put_text(&node, 4, "LeakyRelu");
    wpk_model_put_message(&node, 5, &reference);
    wpk_model_put_message(&body.graph, 1, &node);
    wpk_model_put_text(&default_slope, 1, "slope");
    wpk_model_put_number(&default_slope, 20, 1);
    wpk_buf_append_byte(&default_slope, 2 << 3 | 5);
    wpk_buf_append(&default_slope, &half, sizeof(half));
    put_function(model, "leak", "a", "out", has_default ? &default_slope : NULL, &body);
    wpk_buf_fini(&default_slope);
}

static void attributes_are_passed_or_have_defaults(void **state)
{
    (void)state;
    static const struct {
        bool has_default;
        const char *given;
        double slope;
    } cases[] = {
        {true, "slope:f=0.25", 0.25},
        {true, "", 0.5},
        {false, "slope:f=0.25", 0.25},
        {false, "", (double)0.01F}, /* that of LeakyRelu */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_model_fixture model = {.fd = 0};
        put_slope(&model, cases[i].has_default);
        wpk_model_fixture_input(&model, "x", "f32[2]");
        wpk_model_fixture_node(&model, "local:leak", "x", "y", cases[i].given);
        wpk_model_fixture_output(&model, "y");
        struct wpk_graph graph;
        const double x[] = {-8, 3};
        const double *inputs[] = {x};
        double y[2];
        double *outputs[] = {y};
        wpk_model_case_read(&model, &graph);
        assert_int_equal(wpk_graph_interpret(&graph, inputs, outputs, NULL), WPK_OK);
        assert_true(y[1] == 3);
        assert_true(y[0] > -8 * cases[i].slope - 1e-6 && y[0] < -8 * cases[i].slope + 1e-6);
        wpk_graph_fini(&graph);
        wpk_model_fixture_fini(&model);
    }
}

/* f(a, b, c) = clip(a, b, c): the call has no c. */
static void an_input_may_be_left_out(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0}, body = {.fd = 0};
    wpk_model_fixture_node(&body, "Clip", "a,b,c", "out", "");
    put_function(&model, "f", "a,b,c", "out", NULL, &body);
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_constant(&model, "low", "f32[]", "2");
    wpk_model_fixture_node(&model, "local:f", "x,low", "y", "");
    wpk_model_fixture_output(&model, "y");
    expect_values(&model, (const double[]){1, 9}, (const double[]){2, 9}, 2);
}

static void an_output_may_not_be_asked_for(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0}, body = {.fd = 0};
    wpk_model_fixture_node(&body, "Neg", "a", "first", "");
    wpk_model_fixture_node(&body, "Abs", "first", "second", "");
    put_function(&model, "f", "a", "first,second", NULL, &body);
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_node(&model, "local:f", "x", "y", ""); /* the first alone */
    wpk_model_fixture_output(&model, "y");
    expect_values(&model, (const double[]){1, -9}, (const double[]){-1, 9}, 2);
}

static void a_function_computes_all_of_its_outputs(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0}, body = {.fd = 0};
    wpk_model_fixture_node(&body, "Neg", "a", "other", "");
    put_function(&model, "f", "a", "out", NULL, &body);
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_node(&model, "local:f", "x", "y", "");
    wpk_model_fixture_output(&model, "y");
    expect_refusal(&model, "the function f does not compute its output out");
}

static void a_function_sees_no_value_around_its_call(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0}, body = {.fd = 0};
    wpk_model_fixture_node(&body, "Add", "a,w", "out", "");
    put_function(&model, "f", "a", "out", NULL, &body);
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_constant(&model, "w", "f32[2]", NULL);
    wpk_model_fixture_node(&model, "local:f", "x", "y", "");
    wpk_model_fixture_output(&model, "y");
    expect_refusal(&model, "gives its input w");
}

static void a_function_is_found_by_its_domain(void **state)
{
    (void)state;
    struct wpk_model_fixture model = {.fd = 0};
    put_difference(&model);
    wpk_model_fixture_input(&model, "x", "f32[2]");
    wpk_model_fixture_node(&model, "other:f", "x,x", "y", "");
    wpk_model_fixture_output(&model, "y");
    wpk_model_case_refuse(&model, "the operator other.f is not supported");
    wpk_model_fixture_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_computes_the_functions_nodes),
        cmocka_unit_test(two_calls_have_values_of_their_own),
        cmocka_unit_test(a_function_may_call_another),
        cmocka_unit_test(a_function_that_calls_itself_is_refused),
        cmocka_unit_test(attributes_are_passed_or_have_defaults),
        cmocka_unit_test(an_input_may_be_left_out),
        cmocka_unit_test(an_output_may_not_be_asked_for),
        cmocka_unit_test(a_function_computes_all_of_its_outputs),
        cmocka_unit_test(a_function_sees_no_value_around_its_call),
        cmocka_unit_test(a_function_is_found_by_its_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
