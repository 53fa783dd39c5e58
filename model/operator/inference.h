/* SPDX-License-Identifier: Apache-2.0 */
/* The extents of one node's output, by its operator's kind. */
#ifndef WPK_MODEL_OPERATOR_INFERENCE_H
#define WPK_MODEL_OPERATOR_INFERENCE_H

#include "model/graph.h"
#include "model/operator/operator.h"

/* A node whose output's shape is asked for. */
struct wpk_inference {
    const struct wpk_graph *graph;
    const struct wpk_graph_node *node;
    const struct wpk_operator *op;
    const struct wpk_graph_value *x; /* input 0 */
    struct wpk_graph_value *out;     /* rank 0 on entry */
    struct wpk_diag *diag;
};

/* Set rank and extents of in->out, by the kind that the name says (operator.h). The shapes of all
 * inputs are known.
 *   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason in in->diag */
wpk_err wpk_infer_pointwise(const struct wpk_inference *in);
wpk_err wpk_infer_same(const struct wpk_inference *in);
wpk_err wpk_infer_like(const struct wpk_inference *in);
/* The shape of this value. */
WPK_MUST_CHECK wpk_err wpk_infer_as(const struct wpk_inference *in,
                                    const struct wpk_graph_value *value);
wpk_err wpk_infer_reduce(const struct wpk_inference *in);
wpk_err wpk_infer_conv(const struct wpk_inference *in);
wpk_err wpk_infer_pool(const struct wpk_inference *in);
wpk_err wpk_infer_matmul(const struct wpk_inference *in);
wpk_err wpk_infer_gemm(const struct wpk_inference *in);
wpk_err wpk_infer_reshape(const struct wpk_inference *in);
wpk_err wpk_infer_flatten(const struct wpk_inference *in);
wpk_err wpk_infer_squeeze(const struct wpk_inference *in);
wpk_err wpk_infer_unsqueeze(const struct wpk_inference *in);
wpk_err wpk_infer_transpose(const struct wpk_inference *in);
wpk_err wpk_infer_concat(const struct wpk_inference *in);
wpk_err wpk_infer_expand(const struct wpk_inference *in);
wpk_err wpk_infer_pad(const struct wpk_inference *in);
wpk_err wpk_infer_conv_transpose(const struct wpk_inference *in);
wpk_err wpk_infer_constant_of_shape(const struct wpk_inference *in);
wpk_err wpk_infer_slice(const struct wpk_inference *in);
wpk_err wpk_infer_range(const struct wpk_inference *in);
wpk_err wpk_infer_non_zero(const struct wpk_inference *in);
wpk_err wpk_infer_equation(const struct wpk_inference *in);
wpk_err wpk_infer_shape_of(const struct wpk_inference *in);
wpk_err wpk_infer_loop(const struct wpk_inference *in);

/* The windows of a convolution or pool over the spatial axes of its input. */

/* Arrays are [rank], the spatial axes in order. */
struct wpk_graph_window {
    int rank;
    int64_t input[WPK_RANK_MAX];
    int64_t kernel[WPK_RANK_MAX];
    int64_t stride[WPK_RANK_MAX];
    int64_t dilation[WPK_RANK_MAX];
    int64_t before[WPK_RANK_MAX]; /* elements of padding */
    int64_t after[WPK_RANK_MAX];
    int64_t output[WPK_RANK_MAX]; /* >= 1 */
};

/* Find the windows of a node whose input 0 has a shape.
 *
 *   shape   kernel: [rank of input 0 - 2] extents of the weights; NULL: attribute kernel_shape
 *   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason
 *   source  onnx/docs/Operators.md, Conv, MaxPool, AveragePool; ceil_mode as ONNX Runtime: a window
 *           that begins in the padding behind the input is left out
 */
WPK_MUST_CHECK wpk_err wpk_graph_window(const struct wpk_graph *graph,
                                        const struct wpk_graph_node *node, const int64_t *kernel,
                                        struct wpk_graph_window *out, struct wpk_diag *diag);

/* The same of a ConvTranspose: `output` is what it writes, and element `y` of it is the sum over r
 * of the input's (y + before - dilation * r) / stride, where that is whole, times the weights.
 *   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason */
WPK_MUST_CHECK wpk_err wpk_graph_window_transposed(const struct wpk_graph *graph,
                                                   const struct wpk_graph_node *node,
                                                   const int64_t *kernel,
                                                   struct wpk_graph_window *out,
                                                   struct wpk_diag *diag);

#endif
