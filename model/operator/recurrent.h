/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM as nodes that have programs: the steps of the sequence one after the other. */
#ifndef WPK_MODEL_OPERATOR_RECURRENT_H
#define WPK_MODEL_OPERATOR_RECURRENT_H

#include "model/graph.h"

/* Append to the graph nodes that compute the outputs of `node`, which is none of its nodes. The
 * shapes of its inputs are known. Inputs are multiplied by the weights for all steps at once; the
 * nodes of a step are named after it.
 *
 *   errors  WPK_EUNSUPPORTED, WPK_EINVAL with a reason; WPK_ENOSPC, WPK_ENOMEM
 *   source  https://onnx.ai/onnx/operators/ (RNN, GRU, LSTM) */
WPK_MUST_CHECK wpk_err wpk_graph_expand_recurrent(struct wpk_graph *graph,
                                                  const struct wpk_graph_node *node,
                                                  struct wpk_diag *diag);

#endif
