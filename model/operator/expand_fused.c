/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/expansion.h"

#include <string.h>

enum { ATTRIBUTES_MAX = 16 };

static int add_node(struct wpk_expansion *e, const char *op, const int *inputs, int count,
                    const struct wpk_graph_attribute *attributes, int attribute_count, int output)
{
    const struct wpk_graph_node node = {.op = op,
                                        .name = e->node->name,
                                        .inputs = inputs,
                                        .input_count = count,
                                        .attributes = attributes,
                                        .attribute_count = attribute_count};

    return wpk_compose_node(&e->to, &node, output);
}

/* The value of an input; -1: it is left out. */
static int input_of(const struct wpk_expansion *e, int index)
{
    return index < e->node->input_count ? e->node->inputs[index] : -1;
}

/* ---- products */

/* Swap the last two axes of an operand, if the attribute says so. */
static int transposed(struct wpk_expansion *e, int input, const char *attribute)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, input);
    int64_t order[WPK_RANK_MAX];

    if (wpk_graph_int(e->node, attribute, 0) == 0 || x.rank < 2) {
        return input_of(e, input);
    }
    for (int d = 0; d < x.rank; d++) {
        order[d] = d < x.rank - 2 ? d : 2 * x.rank - 3 - d;
    }
    return wpk_compose_transpose(&e->to, input_of(e, input), x.rank, order, -1);
}

wpk_err wpk_expand_fused_matmul(struct wpk_expansion *e)
{
    double alpha = wpk_expansion_real(e, "alpha", 1);
    int output = wpk_expansion_output(e, 0);

    if (wpk_graph_int(e->node, "transBatchA", 0) != 0 ||
        wpk_graph_int(e->node, "transBatchB", 0) != 0) {
        return wpk_expansion_refuse(e, "its batches are transposed");
    }
    const int operands[] = {transposed(e, 0, "transA"), transposed(e, 1, "transB")};
    int product = add_node(e, "MatMul", operands, 2, NULL, 0, alpha == 1 ? output : -1);
    if (alpha != 1) {
        const int factors[] = {product, wpk_compose_number(&e->to, (float)alpha)};
        (void)add_node(e, "Mul", factors, 2, NULL, 0, output);
    }
    return WPK_OK;
}

/* ---- activations */

/* Number `index` of the activation's parameters. */
static float parameter(const struct wpk_expansion *e, int index, double otherwise)
{
    static const char *const names[] = {"activation_alpha", "activation_beta"};
    const struct wpk_graph_attribute *list =
        wpk_graph_attribute(e->node, "activation_params", WPK_ATTRIBUTE_FLOATS);

    return list != NULL && index < list->count
               ? list->reals[index]
               : (float)wpk_expansion_real(e, names[index], otherwise);
}

/* Append the activation that the node names; none without a name. */
static wpk_err activate(struct wpk_expansion *e, int x, int output)
{
    const char *name = wpk_graph_text(e->node, "activation", "Identity");
    const bool is_clip = strcmp(name, "Clip") == 0;
    const struct wpk_graph_attribute attributes[] = {
        wpk_compose_real("alpha", parameter(e, 0, strcmp(name, "LeakyRelu") == 0 ? 0.01 : 0.2)),
        wpk_compose_real("beta", parameter(e, 1, 0.5))};
    static const struct {
        const char *name;
        int attributes;
    } known[] = {{"Identity", 0}, {"Relu", 0},      {"Tanh", 0},
                 {"Sigmoid", 0},  {"LeakyRelu", 1}, {"HardSigmoid", 2}};

    if (is_clip) {
        const int inputs[] = {x, wpk_compose_number(&e->to, parameter(e, 0, 0)),
                              wpk_compose_number(&e->to, parameter(e, 1, 0))};
        (void)add_node(e, "Clip", inputs, 3, NULL, 0, output);
        return WPK_OK;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].name, name) == 0) {
            (void)add_node(e, name, &x, 1, attributes, known[i].attributes, output);
            return WPK_OK;
        }
    }
    return wpk_expansion_refuse(e, "its activation is none of Relu, Tanh, Sigmoid, LeakyRelu, "
                                   "HardSigmoid and Clip");
}

wpk_err wpk_expand_fused_activation(struct wpk_expansion *e)
{
    struct wpk_graph_attribute kept[ATTRIBUTES_MAX];
    bool is_conv = strcmp(e->node->op, "FusedConv") == 0;
    int count = 0;

    for (int i = 0; i < e->node->attribute_count && count < ATTRIBUTES_MAX; i++) {
        if (strncmp(e->node->attributes[i].name, "activation", strlen("activation")) != 0) {
            kept[count++] = e->node->attributes[i];
        }
    }
    const int inputs[] = {input_of(e, 0), input_of(e, 1), input_of(e, 2)};
    int value =
        add_node(e, is_conv ? "Conv" : "Gemm", inputs, inputs[2] >= 0 ? 3 : 2, kept, count, -1);
    if (is_conv && input_of(e, 3) >= 0) {
        const int terms[] = {value, input_of(e, 3)};
        value = add_node(e, "Add", terms, 2, NULL, 0, -1);
    }
    return activate(e, value, wpk_expansion_output(e, 0));
}

/* ---- normalized sums */

static int add(struct wpk_expansion *e, int x, int y, int output)
{
    const int terms[] = {x, y};

    return y < 0 ? x : add_node(e, "Add", terms, 2, NULL, 0, output);
}

/* Append the normalization of the last axis.   shape  shift: value -1: none */
static void normalize(struct wpk_expansion *e, const char *op, int x, int scale, int shift,
                      int output)
{
    const struct wpk_graph_attribute attributes[] = {
        wpk_compose_integer("axis", -1),
        wpk_compose_real("epsilon", (float)wpk_expansion_real(e, "epsilon", 1e-12))};
    const int inputs[] = {x, scale, shift};

    (void)add_node(e, op, inputs, shift >= 0 ? 3 : 2, attributes, 2, output);
}

/* True if the node's output is asked for and refused. */
static bool wants(const struct wpk_expansion *e, int output)
{
    return wpk_expansion_output(e, output) >= 0;
}

wpk_err wpk_expand_skip_norm(struct wpk_expansion *e)
{
    enum { INPUT, SKIP, SCALE };
    bool is_simple = strcmp(e->node->op, "SkipSimplifiedLayerNormalization") == 0;
    int shift = is_simple ? -1 : input_of(e, 3), bias = input_of(e, is_simple ? 3 : 4);
    int sum_output = wpk_expansion_output(e, 3);

    if (wants(e, 1) || wants(e, 2)) {
        return wpk_expansion_refuse(e, "its mean or inverse deviation is asked for");
    }
    int sum = add(e, input_of(e, INPUT), input_of(e, SKIP), bias < 0 ? sum_output : -1);
    sum = add(e, sum, bias, sum_output);
    if (wpk_expansion_output(e, 0) >= 0) {
        normalize(e, is_simple ? "RMSNormalization" : "LayerNormalization", sum, input_of(e, SCALE),
                  shift, wpk_expansion_output(e, 0));
    }
    return WPK_OK;
}

static int gather(struct wpk_expansion *e, int table, int rows)
{
    return wpk_expansion_gather(e, table, rows, -1);
}

wpk_err wpk_expand_embed_norm(struct wpk_expansion *e)
{
    enum { IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_TABLE, SCALE, SHIFT, MASK, PLACES };
    const struct wpk_graph_value ids = wpk_expansion_input(e, IDS);
    const struct wpk_graph_value positions = wpk_expansion_input(e, POSITIONS);
    int sum_output = wpk_expansion_output(e, 2);

    if (wants(e, 1) || ids.rank != 2 || positions.rank != 2 ||
        ids.extent[1] > positions.extent[0]) {
        return wpk_expansion_refuse(e, "its mask's index is asked for, or its ids are no rows of "
                                       "as many positions as its table has");
    }
    int place = input_of(e, PLACES) >= 0
                    ? gather(e, input_of(e, POSITIONS), input_of(e, PLACES))
                    : wpk_compose_slice(&e->to, input_of(e, POSITIONS), 0, 0, ids.extent[1]);
    int segment = input_of(e, SEGMENTS) >= 0
                      ? gather(e, input_of(e, SEGMENT_TABLE), input_of(e, SEGMENTS))
                      : -1;
    int sum = add(e, gather(e, input_of(e, WORDS), input_of(e, IDS)), place,
                  segment < 0 ? sum_output : -1);
    sum = add(e, sum, segment, sum_output);
    normalize(e, "LayerNormalization", sum, input_of(e, SCALE), input_of(e, SHIFT),
              wpk_expansion_output(e, 0));
    return WPK_OK;
}
