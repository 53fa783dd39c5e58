/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of a convolution or pool over the spatial axes of its input. */
#ifndef WPK_MODEL_OPERATOR_WINDOW_H
#define WPK_MODEL_OPERATOR_WINDOW_H

#include "model/graph.h"

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
