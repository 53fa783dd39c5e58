/* SPDX-License-Identifier: Apache-2.0 */
/* Operators without a program of their own: nodes that have one take their place. */
#ifndef WPK_MODEL_OPERATOR_EXPAND_H
#define WPK_MODEL_OPERATOR_EXPAND_H

#include "model/graph.h"

/* True if the node is of the kind WPK_KIND_EXPANDED. */
bool wpk_graph_is_expanded(const struct wpk_graph_node *node);

/* Append to the graph nodes that compute the outputs of `node`, which is none of its nodes. The
 * shapes of its inputs are known.
 *   errors  WPK_EUNSUPPORTED, WPK_EINVAL, WPK_EPARSE with a reason; WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_expand(struct wpk_graph *graph, const struct wpk_graph_node *node,
                                        struct wpk_diag *diag);

/* Nodes with several outputs as nodes with one. */

/* Replace each node with several outputs by one node for each output that is read or is the
 * model's, with `part` and `part_count`. A node nobody asks anything of keeps its first output.
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_split_outputs(struct wpk_graph *graph);

#endif
