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

#endif
