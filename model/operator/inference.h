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

/* Set rank and extents of in->out. The shapes of all inputs are known.
 *   errors  WPK_EINVAL, WPK_EUNSUPPORTED with a reason in in->diag */
WPK_MUST_CHECK wpk_err wpk_infer_shape(const struct wpk_inference *in);

#endif
