/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that take a range of one axis. */
#ifndef WPK_MODEL_OPERATOR_SLICE_H
#define WPK_MODEL_OPERATOR_SLICE_H

#include "model/graph.h"

/* Make a Slice of [begin, end) of value `from` along `dim`; its output is outputs[0] of `of`, whose
 * name it has. It is not part of the graph yet.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_make_slice(struct wpk_graph *graph,
                                            const struct wpk_graph_node *of, int from, int dim,
                                            int64_t begin, int64_t end, struct wpk_graph_node *out);

/* Add a constant list of integers.
 *   shape   integers [count]
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_add_integers(struct wpk_graph *graph, const int64_t *integers,
                                              int count, int *out);

#endif
