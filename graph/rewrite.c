/* SPDX-License-Identifier: Apache-2.0 */
/* With s = scale / sqrt(variance + epsilon):
 *     (W * x + b - mean) * s + shift = (s W) * x + ((b - mean) s + shift) */
#include "graph/rewrite.h"

#include "graph/merge.h"
#include "graph/operator.h"

#include <math.h>
#include <stdlib.h>

#define EPSILON 1e-5F /* ONNX's default */

enum { X, SCALE, SHIFT, MEAN, VARIANCE }; /* inputs of BatchNormalization */
enum { DATA, WEIGHTS, BIAS };             /* inputs of Conv */

static bool is_of(const struct wpk_graph_node *node, const char *op)
{
    return wpk_operator_find(node->op, node->domain) == wpk_operator_find(op, "");
}

static bool is_constant_f32(const struct wpk_graph_value *value)
{
    return value != NULL && value->data != NULL && value->dtype == WPK_F32;
}

static int count_uses(const struct wpk_graph *graph, int value)
{
    int count = graph->values[value].is_output ? 1 : 0;

    for (int n = 0; n < graph->node_count; n++) {
        for (int i = 0; i < graph->nodes[n].input_count; i++) {
            count += graph->nodes[n].inputs[i] == value;
        }
    }
    return count;
}

/* The convolution whose result only this BatchNormalization reads; -1: none. */
static int find_conv(const struct wpk_graph *graph, const struct wpk_graph_node *norm)
{
    if (!is_of(norm, "BatchNormalization") || norm->input_count != 5 || norm->inputs[X] < 0) {
        return -1;
    }
    for (int i = SCALE; i <= VARIANCE; i++) {
        if (!is_constant_f32(wpk_graph_input(graph, norm, i))) {
            return -1;
        }
    }
    int conv = graph->values[norm->inputs[X]].writer;
    if (conv < 0 || !is_of(&graph->nodes[conv], "Conv") ||
        !is_constant_f32(wpk_graph_input(graph, &graph->nodes[conv], WEIGHTS))) {
        return -1;
    }
    const struct wpk_graph_value *bias = wpk_graph_input(graph, &graph->nodes[conv], BIAS);
    return (bias == NULL || is_constant_f32(bias)) && count_uses(graph, norm->inputs[X]) == 1 ? conv
                                                                                              : -1;
}

/* A constant of the type of `like`, or a vector of its first extent.   owns  by the graph */
static wpk_err add_constant(struct wpk_graph *graph, int like, bool is_vector, int *out,
                            float **data)
{
    wpk_err err = wpk_graph_add_value(graph, "", out);

    if (err != WPK_OK) {
        return err;
    }
    struct wpk_graph_value *value = &graph->values[*out];
    *value = graph->values[like];
    value->name = "";
    value->rank = is_vector ? 1 : value->rank;
    value->size = (size_t)wpk_graph_elements(value) * sizeof(float);
    *data = WPK_ARENA_NEW(&graph->arena, float, (size_t)wpk_graph_elements(value));
    value->data = *data;
    return *data != NULL ? WPK_OK : WPK_ENOMEM;
}

static void scale_weights(const struct wpk_graph *graph, const struct wpk_graph_node *conv,
                          const struct wpk_graph_node *norm, float *weights, float *bias)
{
    const struct wpk_graph_value *old = wpk_graph_input(graph, conv, WEIGHTS);
    const struct wpk_graph_value *old_bias = wpk_graph_input(graph, conv, BIAS);
    const struct wpk_graph_attribute *epsilon =
        wpk_graph_attribute(norm, "epsilon", WPK_ATTRIBUTE_FLOAT);
    int64_t each = wpk_graph_elements(old) / old->extent[0];

    for (int64_t k = 0; k < old->extent[0]; k++) {
        double variance = wpk_graph_element(wpk_graph_input(graph, norm, VARIANCE), k) +
                          (double)(epsilon != NULL ? epsilon->real : EPSILON);
        double s = wpk_graph_element(wpk_graph_input(graph, norm, SCALE), k) / sqrt(variance);
        double b = old_bias != NULL ? wpk_graph_element(old_bias, k) : 0;
        b -= wpk_graph_element(wpk_graph_input(graph, norm, MEAN), k);
        bias[k] = (float)(b * s + wpk_graph_element(wpk_graph_input(graph, norm, SHIFT), k));
        for (int64_t i = k * each; i < (k + 1) * each; i++) {
            weights[i] = (float)(wpk_graph_element(old, i) * s);
        }
    }
}

static wpk_err fold_norm(struct wpk_graph *graph, int conv, int norm)
{
    struct wpk_graph_node *c = &graph->nodes[conv];
    const struct wpk_graph_node *n = &graph->nodes[norm];
    int *inputs = WPK_ARENA_NEW(&graph->arena, int, BIAS + 1);
    float *weights = NULL;
    float *bias = NULL;
    wpk_err err = inputs != NULL ? WPK_OK : WPK_ENOMEM;

    if (err == WPK_OK) {
        inputs[DATA] = c->inputs[DATA];
        err = add_constant(graph, c->inputs[WEIGHTS], false, &inputs[WEIGHTS], &weights);
    }
    if (err == WPK_OK) {
        err = add_constant(graph, c->inputs[WEIGHTS], true, &inputs[BIAS], &bias);
    }
    if (err == WPK_OK) {
        scale_weights(graph, c, n, weights, bias);
        c->inputs = inputs;
        c->input_count = BIAS + 1;
        graph->values[c->outputs[0]].writer = -1;
        c->outputs = n->outputs;
        graph->values[n->outputs[0]].writer = conv;
    }
    return err;
}

static wpk_err note_fold(struct wpk_graph *graph, int conv, int norm)
{
    struct wpk_buf why = {0};

    wpk_buf_printf(&why, "folded into the weights of %s", graph->nodes[conv].name);
    const char *text = wpk_arena_copy_text(&graph->arena, wpk_buf_text(&why));
    wpk_buf_fini(&why);
    return text != NULL ? wpk_graph_add_note(graph, graph->nodes[norm].name, text) : WPK_ENOMEM;
}

/* Take out the nodes that are marked. */
static void remove_nodes(struct wpk_graph *graph, const bool *removed)
{
    int count = 0;

    for (int n = 0; n < graph->node_count; n++) {
        if (removed[n]) {
            continue;
        }
        graph->nodes[count] = graph->nodes[n];
        for (int i = 0; i < graph->nodes[count].output_count; i++) {
            int value = graph->nodes[count].outputs[i];
            if (value >= 0) {
                graph->values[value].writer = count;
            }
        }
        count++;
    }
    graph->node_count = count;
}

wpk_err wpk_graph_rewrite(struct wpk_graph *graph)
{
    bool *removed = calloc((size_t)graph->node_count + 1, sizeof(*removed));
    wpk_err err = removed != NULL ? WPK_OK : WPK_ENOMEM;

    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        int conv = find_conv(graph, &graph->nodes[n]);
        if (conv >= 0) {
            err = fold_norm(graph, conv, n);
            err = err == WPK_OK ? note_fold(graph, conv, n) : err;
            removed[n] = err == WPK_OK;
        }
    }
    if (err == WPK_OK) {
        remove_nodes(graph, removed);
    }
    free(removed);
    return err == WPK_OK ? wpk_graph_merge(graph) : err;
}
