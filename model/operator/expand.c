/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/expand.h"

#include "model/operator/expand_product.h"
#include "model/operator/expand_quantize.h"
#include "model/operator/expansion.h"
#include "model/operator/operator.h"

#include <string.h>

static wpk_err expand_recurrent(struct wpk_expansion *e)
{
    return wpk_graph_expand_recurrent(e->graph, e->node, e->diag);
}

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
    {"DynamicQuantizeLSTM", expand_recurrent},
    {"DynamicQuantizeMatMul", wpk_expand_dynamic_quantize_matmul},
    {"EmbedLayerNormalization", wpk_expand_embed_norm},
    {"FlexAttention", wpk_expand_flex_attention},
    {"FusedConv", wpk_expand_fused_activation},
    {"FusedGemm", wpk_expand_fused_activation},
    {"FusedMatMul", wpk_expand_fused_matmul},
    {"GridSample", wpk_expand_grid_sample},
    {"GRU", expand_recurrent},
    {"HammingWindow", wpk_expand_window},
    {"HannWindow", wpk_expand_window},
    {"LinearAttention", wpk_expand_linear_attention},
    {"LinearClassifier", wpk_expand_linear},
    {"LinearRegressor", wpk_expand_linear},
    {"LSTM", expand_recurrent},
    {"MatMulInteger", wpk_expand_matmul_integer},
    {"MatMulIntegerToFloat", wpk_expand_matmul_integer_to_float},
    {"MatMulNBits", wpk_expand_matmul_nbits},
    {"MaxUnpool", wpk_expand_max_unpool},
    {"QLinearConv", wpk_expand_qlinear_conv},
    {"QLinearMatMul", wpk_expand_qlinear_matmul},
    {"QuantizeLinear", wpk_expand_quantize},
    {"ReverseSequence", wpk_expand_reverse_sequence},
    {"RNN", expand_recurrent},
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
            wpk_diag_set(diag, "its input %s has no elements, or no supported type", input->name);
            err = WPK_EUNSUPPORTED;
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
