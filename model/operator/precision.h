/* SPDX-License-Identifier: Apache-2.0 */
/* Element types that are narrower than those that a model is computed in. Values of f16 and bf16
 * are read and written; what is computed of them is f32, and stays so from node to node. */
#ifndef WPK_MODEL_OPERATOR_PRECISION_H
#define WPK_MODEL_OPERATOR_PRECISION_H

#include "model/graph.h"

/* True if a value of `dtype` is one that a file declares to be of this ONNX element type. */
bool wpk_precision_declares(int element_type, enum wpk_dtype dtype);

/* Make the node read its operands of f16 and bf16 as f32: casts are appended.
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_precision_widen(struct wpk_graph *graph, struct wpk_graph_node *node);

/* Let the node compute new values where the file declares outputs of the model as f16 or bf16.
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_precision_outputs(struct wpk_graph *graph, struct wpk_graph_node *node);
/* Append casts of these to the outputs that the node had before: `declared` [output_count].
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_precision_narrow_outputs(struct wpk_graph *graph,
                                                    const struct wpk_graph_node *node,
                                                    const int *declared);

/* Append a product of operands of graph->math, with sums of f32, that takes the node's place; or of
 * constant weights of graph->weights, of which i8 have a scale for each column.
 *   errors  WPK_ENOENT nothing was appended: the node is no product of f32, or has few terms;
 *           WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_precision_product(struct wpk_graph *graph,
                                             const struct wpk_graph_node *node);

/* The signal to noise ratio of the weights that were narrowed, in dB. */
double wpk_precision_loss(const struct wpk_graph *graph);

#endif
