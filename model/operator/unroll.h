/* SPDX-License-Identifier: Apache-2.0 */
/* Loop and Scan, written out: copies of the body's nodes for each iteration. */
#ifndef WPK_MODEL_OPERATOR_UNROLL_H
#define WPK_MODEL_OPERATOR_UNROLL_H

#include "model/graph.h"

#define WPK_UNROLL_TIMES_MAX 1024 /* iterations */

/* A callback that appends a node to the graph and infers its shape, or the nodes that it expands
 * to. */
struct wpk_unroll {
    wpk_err (*add)(struct wpk_graph *graph, struct wpk_graph_node *node, void *context);
    void *context;
};

/* Append what a node with a body computes. How often a Loop runs follows from constants and shapes:
 * its trip count, and its condition after each iteration.
 *   errors  WPK_EUNSUPPORTED, WPK_EPARSE with a reason; WPK_ENOSPC, WPK_ENOMEM; those of add */
WPK_MUST_CHECK wpk_err wpk_graph_unroll(struct wpk_graph *graph, const struct wpk_graph_node *node,
                                        const struct wpk_unroll *to, struct wpk_diag *diag);

#endif
