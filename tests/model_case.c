/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model_case.h"

#include "model/onnx/read.h"
#include "model/operator/interpret.h"
#include "model/operator/shape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Add the node's inputs; *names is their list. */
static void add_inputs(struct wpk_model_fixture *model, const char *inputs, struct wpk_buf *names)
{
    char word[512];
    char name[8];

    for (int i = 0; *inputs != '\0'; i++) {
        size_t size = strcspn(inputs, " ");
        snprintf(word, sizeof(word), "%.*s", (int)size, inputs);
        inputs += size + (inputs[size] == ' ');
        snprintf(name, sizeof(name), "x%d", i);
        wpk_buf_printf(names, "%s%s", i > 0 ? "," : "", word[0] == '-' && size == 1 ? "" : name);
        char *type = strchr(word, ':');
        if (type != NULL) {
            *type++ = '\0';
            wpk_model_fixture_constant(model, name, type, word[0] != '\0' ? word : NULL);
        }
    }
}

static void print_value(const struct wpk_graph_value *value, struct wpk_buf *out)
{
    wpk_buf_printf(out, "%s[", wpk_dtype_name(value->dtype));
    for (int d = 0; d < value->rank; d++) {
        wpk_buf_printf(out, "%s%lld", d > 0 ? "," : "", (long long)value->extent[d]);
    }
    wpk_buf_append_text(out, "] ");
}

static bool agrees(const struct wpk_graph_value *value, int64_t i, const char *text, char **end)
{
    double tolerance = value->dtype == WPK_F64 ? 1e-14 : 2e-6;
    double expected = strtod(text, end);

    if (!wpk_dtype_is_float(value->dtype) && value->dtype != WPK_BOOL) {
        return wpk_graph_integer(value, i) == strtoll(text, NULL, 10);
    }
    double found = wpk_graph_element(value, i);
    return found == expected || (isnan(found) && isnan(expected)) ||
           fabs(found - expected) <= tolerance * (1 + fabs(expected));
}

static void check_value(const struct wpk_model_case *sample, const struct wpk_graph_value *value)
{
    struct wpk_buf type = {0};

    print_value(value, &type);
    if (strncmp(sample->expected, wpk_buf_text(&type), type.size) != 0) {
        fail_msg("%s (%s; %s) is %s, not %s", sample->op, sample->inputs, sample->attributes,
                 wpk_buf_text(&type), sample->expected);
    }
    char *at = (char *)sample->expected + type.size;
    wpk_buf_fini(&type);
    if (value->data == NULL) {
        fail_msg("%s (%s; %s) is not folded", sample->op, sample->inputs, sample->attributes);
    }
    for (int64_t i = 0; i < wpk_graph_elements(value); i++) {
        const char *given = at;
        if (!agrees(value, i, at, &at)) {
            fail_msg("%s (%s; %s): element %d is %.9g, not %s", sample->op, sample->inputs,
                     sample->attributes, (int)i, wpk_graph_element(value, i), given);
        }
        at += *at == ',';
    }
    assert_int_equal(*at, '\0');
}

static void check_case(const struct wpk_model_case *sample)
{
    struct wpk_model_fixture model = {.opset = 20};
    struct wpk_graph graph;
    struct wpk_buf names = {0};
    struct wpk_buf problems = {0};
    struct wpk_diag diag = {.text = ""};
    char op[64];

    const char *opset = strchr(sample->op, '@');
    model.opset = opset != NULL ? (int)strtol(opset + 1, NULL, 10) : 20;
    snprintf(op, sizeof(op), "%.*s", (int)strcspn(sample->op, ">@"), sample->op);
    add_inputs(&model, sample->inputs, &names);
    wpk_model_fixture_node(&model, op, wpk_buf_text(&names),
                           strchr(sample->op, '>') == NULL    ? "y"
                           : strstr(sample->op, ">2") != NULL ? "w,z,y"
                                                              : "z,y",
                           sample->attributes);
    wpk_model_fixture_output(&model, "y");
    wpk_err err = wpk_onnx_read(wpk_model_fixture_write(&model, SIZE_MAX), &graph, &diag);
    assert_string_equal(diag.text, "");
    err = err == WPK_OK ? wpk_graph_infer(&graph, &problems) : err;
    if (sample->expected[0] == '!') {
        if (err == WPK_OK || strstr(wpk_buf_text(&problems), sample->expected + 1) == NULL) {
            fail_msg("%s (%s; %s): %s: '%s'", sample->op, sample->inputs, sample->attributes,
                     sample->expected, wpk_buf_text(&problems));
        }
    } else {
        assert_string_equal(wpk_buf_text(&problems), "");
        check_value(sample, &graph.values[wpk_graph_find(&graph, "y")]);
    }
    wpk_buf_fini(&problems);
    wpk_buf_fini(&names);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
}

void wpk_model_case_check(const struct wpk_model_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_case(&cases[i]);
    }
}

int64_t wpk_model_case_compute(const char *op, int opset, const char *attributes,
                               const struct wpk_model_input *inputs, int count, int part,
                               double *out, int64_t max)
{
    struct wpk_model_fixture model = {.opset = opset};
    struct wpk_graph graph;
    struct wpk_buf names = {0};
    struct wpk_diag diag = {.text = ""};
    const double *data[16];
    double *outputs[] = {out};
    int used = 0;

    for (int i = 0; i < count; i++) {
        char name[8];
        snprintf(name, sizeof(name), "x%d", i);
        wpk_buf_printf(&names, "%s%s", i > 0 ? "," : "", inputs[i].type != NULL ? name : "");
        if (inputs[i].type != NULL && inputs[i].data != NULL) {
            wpk_model_fixture_input(&model, name, inputs[i].type);
            data[used++] = inputs[i].data;
        } else if (inputs[i].type != NULL) {
            wpk_model_fixture_constant(&model, name, inputs[i].type, inputs[i].values);
        }
    }
    wpk_model_fixture_node(&model, op, wpk_buf_text(&names),
                           part == 0   ? "y"
                           : part == 1 ? "z,y"
                                       : "w,z,y",
                           attributes);
    wpk_model_fixture_output(&model, "y");
    wpk_model_case_read(&model, &graph);
    int64_t elements = wpk_graph_elements(&graph.values[graph.outputs[0]]);
    assert_in_range(elements, 1, max);
    if (wpk_graph_interpret(&graph, data, outputs, &diag) != WPK_OK) {
        fail_msg("%s: %s", op, diag.text);
    }
    wpk_buf_fini(&names);
    wpk_graph_fini(&graph);
    wpk_model_fixture_fini(&model);
    return elements;
}

void wpk_model_case_compare(const char *what, const double *found, const double *expected,
                            int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        bool same = found[i] == expected[i] || (isnan(found[i]) && isnan(expected[i])) ||
                    fabs(found[i] - expected[i]) <= 1e-9 * (1 + fabs(expected[i]));
        if (!same) {
            fail_msg("%s: element %d is %.12g, not %.12g", what, (int)i, found[i], expected[i]);
        }
    }
}

void wpk_model_case_draw(unsigned seed, double *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525U + 1013904223U;
        out[i] = (double)(seed >> 16) / 16384 - 2;
    }
}

void wpk_model_case_read(struct wpk_model_fixture *model, struct wpk_graph *graph)
{
    struct wpk_buf problems = {0};
    struct wpk_diag diag = {.text = ""};

    wpk_err err = wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), graph, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(err, WPK_OK);
    err = wpk_graph_infer(graph, &problems);
    assert_string_equal(wpk_buf_text(&problems), "");
    assert_int_equal(err, WPK_OK);
    wpk_buf_fini(&problems);
}

void wpk_model_case_refuse(struct wpk_model_fixture *model, const char *expected)
{
    struct wpk_graph graph;
    struct wpk_buf problems = {0};

    assert_int_equal(wpk_onnx_read(wpk_model_fixture_write(model, SIZE_MAX), &graph, NULL), WPK_OK);
    assert_int_equal(wpk_graph_infer(&graph, &problems), WPK_EUNSUPPORTED);
    if (strstr(wpk_buf_text(&problems), expected) == NULL) {
        fail_msg("%s: '%s'", expected, wpk_buf_text(&problems));
    }
    wpk_buf_fini(&problems);
    wpk_graph_fini(&graph);
}
