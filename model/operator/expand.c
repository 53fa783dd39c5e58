/* SPDX-License-Identifier: Apache-2.0 */

#include "model/operator/expand_quantize.h"
#include "model/operator/expansion.h"
#include "model/operator/operator.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *op;
    wpk_err (*expand)(struct wpk_expansion *e);
} expansions[] = {
    {"AffineGrid", wpk_expand_affine_grid},
    {"ArrayFeatureExtractor", wpk_expand_feature_extractor},
    {"BlackmanWindow", wpk_expand_window},
    {"CausalConvWithState", wpk_expand_causal_conv},
    {"Col2Im", wpk_expand_col2im},
    {"Compress", wpk_expand_compress},
    {"ConvInteger", wpk_expand_conv_integer},
    {"DeformConv", wpk_expand_deform_conv},
    {"DequantizeLinear", wpk_expand_dequantize},
    {"Det", wpk_expand_det},
    {"DFT", wpk_expand_dft},
    {"DynamicQuantizeLinear", wpk_expand_dynamic_quantize},
    {"DynamicQuantizeLSTM", wpk_expand_recurrent},
    {"DynamicQuantizeMatMul", wpk_expand_dynamic_quantize_matmul},
    {"EmbedLayerNormalization", wpk_expand_embed_norm},
    {"FlexAttention", wpk_expand_flex_attention},
    {"FusedConv", wpk_expand_fused_activation},
    {"FusedGemm", wpk_expand_fused_activation},
    {"FusedMatMul", wpk_expand_fused_matmul},
    {"GridSample", wpk_expand_grid_sample},
    {"GRU", wpk_expand_recurrent},
    {"HammingWindow", wpk_expand_window},
    {"HannWindow", wpk_expand_window},
    {"LinearAttention", wpk_expand_linear_attention},
    {"LinearClassifier", wpk_expand_linear},
    {"LinearRegressor", wpk_expand_linear},
    {"LSTM", wpk_expand_recurrent},
    {"MatMulInteger", wpk_expand_matmul_integer},
    {"MatMulIntegerToFloat", wpk_expand_matmul_integer_to_float},
    {"MatMulNBits", wpk_expand_matmul_nbits},
    {"MaxUnpool", wpk_expand_max_unpool},
    {"QLinearConv", wpk_expand_qlinear_conv},
    {"QLinearMatMul", wpk_expand_qlinear_matmul},
    {"QuantizeLinear", wpk_expand_quantize},
    {"ReverseSequence", wpk_expand_reverse_sequence},
    {"RNN", wpk_expand_recurrent},
    {"RoiAlign", wpk_expand_roi_align},
    {"Scaler", wpk_expand_scaler},
    {"SkipLayerNormalization", wpk_expand_skip_norm},
    {"SkipSimplifiedLayerNormalization", wpk_expand_skip_norm},
    {"STFT", wpk_expand_stft},
    {"TensorScatter", wpk_expand_tensor_scatter},
    {"TreeEnsemble", wpk_expand_trees},
    {"TreeEnsembleClassifier", wpk_expand_trees},
    {"TreeEnsembleRegressor", wpk_expand_trees},
};

bool wpk_graph_is_expanded(const struct wpk_graph_node *node)
{
    const struct wpk_operator *op = wpk_operator_find(node->op, node->domain);

    return op != NULL && op->kind == WPK_KIND_EXPANDED;
}

wpk_err wpk_graph_expand(struct wpk_graph *graph, const struct wpk_graph_node *node,
                         struct wpk_diag *diag)
{
    struct wpk_expansion e = {
        .to = {.graph = graph, .name = node->name}, .graph = graph, .node = node, .diag = diag};
    const struct wpk_operator *op = wpk_operator_find(node->op, node->domain);
    wpk_err err = wpk_operator_check(op, node, diag);

    for (int i = 0; err == WPK_OK && i < node->input_count; i++) {
        const struct wpk_graph_value *input = wpk_graph_input(graph, node, i);
        if (input != NULL && (!input->is_typed || wpk_graph_elements(input) == 0)) {
            err = wpk_fail(diag, WPK_EUNSUPPORTED,
                           "its input %s has no elements, or no supported type", input->name);
        }
    }
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] >= 0) {
            graph->values[node->outputs[i]].writer = -1; /* until a node computes it */
        }
    }
    for (size_t i = 0; err == WPK_OK && i < sizeof(expansions) / sizeof(expansions[0]); i++) {
        if (strcmp(expansions[i].op, node->op) == 0) {
            err = expansions[i].expand(&e);
            err = err == WPK_OK ? e.to.err : err;
            break;
        }
    }
    wpk_buf_fini(&e.text);
    return err;
}

/* A program has one result: a Split becomes a slice for each output, a Dropout with a mask two
 * nodes. Values that both parts need are computed twice, which is seldom more than a mean. */

static wpk_err add_part(struct wpk_graph *graph, const struct wpk_graph_node *node, int part)
{
    struct wpk_graph_node copy = *node;

    copy.outputs = &node->outputs[part];
    copy.output_count = 1;
    copy.part = part;
    copy.part_count = node->output_count;
    if (copy.outputs[0] >= 0) {
        graph->values[copy.outputs[0]].writer = graph->node_count;
    }
    return wpk_graph_add_node(graph, &copy);
}

static wpk_err add_parts(struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    int count = 0;
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < node->output_count; i++) {
        int output = node->outputs[i];
        if (output >= 0 && (graph->values[output].is_read || graph->values[output].is_output)) {
            err = add_part(graph, node, i);
            count++;
        } else if (output >= 0) {
            graph->values[output].writer = -1;
        }
    }
    return err == WPK_OK && count == 0 && node->output_count > 0 ? add_part(graph, node, 0) : err;
}

wpk_err wpk_graph_split_outputs(struct wpk_graph *graph)
{
    struct wpk_graph_node *nodes = graph->nodes;
    int count = graph->node_count;
    bool is_needed = false;
    wpk_err err = WPK_OK;

    for (int n = 0; n < count; n++) {
        nodes[n].part_count = nodes[n].output_count;
        is_needed = is_needed || nodes[n].output_count > 1;
    }
    if (!is_needed) {
        return WPK_OK;
    }
    (void)wpk_graph_take_nodes(graph, &count);
    for (int n = 0; err == WPK_OK && n < count; n++) {
        err = wpk_graph_is_expanded(&nodes[n]) ? wpk_graph_add_node(graph, &nodes[n])
                                               : add_parts(graph, &nodes[n]);
    }
    free(nodes);
    return err;
}
