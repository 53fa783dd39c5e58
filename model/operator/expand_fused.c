/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/expansion.h"

#include <string.h>

enum { ATTRIBUTES_MAX = 16 };

/* Append a node of ONNX, named after this one. */
static int add_node(struct wpk_expansion *e, const char *op, const int *inputs, int count,
                    const struct wpk_graph_attribute *attributes, int attribute_count, int output)
{
    return wpk_expansion_node(e, "", op, inputs, count, attributes, attribute_count, output);
}

/* ---- products */

/* Swap the last two axes of an operand, if the attribute says so. */
static int transposed(struct wpk_expansion *e, int input, const char *attribute)
{
    const struct wpk_graph_value x = wpk_expansion_input(e, input);
    int64_t order[WPK_RANK_MAX];

    if (wpk_graph_int(e->node, attribute, 0) == 0 || x.rank < 2) {
        return wpk_expansion_input_of(e, input);
    }
    for (int d = 0; d < x.rank; d++) {
        order[d] = d < x.rank - 2 ? d : 2 * x.rank - 3 - d;
    }
    return wpk_compose_transpose(&e->to, wpk_expansion_input_of(e, input), x.rank, order, -1);
}

wpk_err wpk_expand_fused_matmul(struct wpk_expansion *e)
{
    double alpha = wpk_graph_real(e->node, "alpha", 1);
    int output = wpk_expansion_output(e, 0);

    if (wpk_graph_int(e->node, "transBatchA", 0) != 0 ||
        wpk_graph_int(e->node, "transBatchB", 0) != 0) {
        return wpk_expansion_refuse(e, "its batches are transposed");
    }
    const int operands[] = {transposed(e, 0, "transA"), transposed(e, 1, "transB")};
    int product = add_node(e, "MatMul", operands, 2, NULL, 0, alpha == 1 ? output : -1);
    if (alpha != 1) {
        (void)wpk_expansion_binary(e, "Mul", product, wpk_compose_number(&e->to, (float)alpha),
                                   output);
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
               : (float)wpk_graph_real(e->node, names[index], otherwise);
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
        if (!wpk_begins(e->node->attributes[i].name, "activation")) {
            kept[count++] = e->node->attributes[i];
        }
    }
    const int inputs[] = {wpk_expansion_input_of(e, 0), wpk_expansion_input_of(e, 1),
                          wpk_expansion_input_of(e, 2)};
    int value =
        add_node(e, is_conv ? "Conv" : "Gemm", inputs, inputs[2] >= 0 ? 3 : 2, kept, count, -1);
    if (is_conv && wpk_expansion_input_of(e, 3) >= 0) {
        value = wpk_expansion_binary(e, "Add", value, wpk_expansion_input_of(e, 3), -1);
    }
    return activate(e, value, wpk_expansion_output(e, 0));
}

/* ---- normalized sums */

static int add(struct wpk_expansion *e, int x, int y, int output)
{
    return y < 0 ? x : wpk_expansion_binary(e, "Add", x, y, output);
}

/* Append the normalization of the last axis.   shape  shift: value -1: none */
static void normalize(struct wpk_expansion *e, const char *op, int x, int scale, int shift,
                      int output)
{
    const struct wpk_graph_attribute attributes[] = {
        wpk_compose_integer("axis", -1),
        wpk_compose_real("epsilon", (float)wpk_graph_real(e->node, "epsilon", 1e-12))};
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
    int shift = is_simple ? -1 : wpk_expansion_input_of(e, 3),
        bias = wpk_expansion_input_of(e, is_simple ? 3 : 4);
    int sum_output = wpk_expansion_output(e, 3);

    if (wants(e, 1) || wants(e, 2)) {
        return wpk_expansion_refuse(e, "its mean or inverse deviation is asked for");
    }
    int sum = add(e, wpk_expansion_input_of(e, INPUT), wpk_expansion_input_of(e, SKIP),
                  bias < 0 ? sum_output : -1);
    sum = add(e, sum, bias, sum_output);
    if (wpk_expansion_output(e, 0) >= 0) {
        normalize(e, is_simple ? "RMSNormalization" : "LayerNormalization", sum,
                  wpk_expansion_input_of(e, SCALE), shift, wpk_expansion_output(e, 0));
    }
    return WPK_OK;
}

/* The rows that one input is of the table that another one is. */
static int gather(struct wpk_expansion *e, int table, int rows)
{
    return wpk_expansion_gather(e, wpk_expansion_input_of(e, table),
                                wpk_expansion_input_of(e, rows), -1);
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
    int place =
        wpk_expansion_input_of(e, PLACES) >= 0
            ? gather(e, POSITIONS, PLACES)
            : wpk_compose_slice(&e->to, wpk_expansion_input_of(e, POSITIONS), 0, 0, ids.extent[1]);
    int segment =
        wpk_expansion_input_of(e, SEGMENTS) >= 0 ? gather(e, SEGMENT_TABLE, SEGMENTS) : -1;
    int sum = add(e, gather(e, WORDS, IDS), place, segment < 0 ? sum_output : -1);
    sum = add(e, sum, segment, sum_output);
    normalize(e, "LayerNormalization", sum, wpk_expansion_input_of(e, SCALE),
              wpk_expansion_input_of(e, SHIFT), wpk_expansion_output(e, 0));
    return WPK_OK;
}
