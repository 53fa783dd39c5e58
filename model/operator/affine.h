/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that multiply a value by constants and add constants. */
#ifndef WPK_MODEL_OPERATOR_AFFINE_H
#define WPK_MODEL_OPERATOR_AFFINE_H

#include "model/graph.h"

#define WPK_AFFINE_ALL (-1) /* the same factor and addend for all elements */

/* A node's output is factor[k] * x + addend[k] at element k of dimension `dim`. */
struct wpk_graph_affine {
    int x; /* value that another node computes */
    int dim;
    int64_t count;
    double *factor; /* owned; [count] */
    double *addend; /* owned; [count] */
};

/* Find factors and addends of a node. Shapes in the graph change while it runs, and are put back.
 *   owns    caller calls wpk_graph_affine_fini, after failures too
 *   errors  WPK_ENOENT  the node is not affine in one value; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_affine_find(struct wpk_graph *graph, int node,
                                             struct wpk_graph_affine *out);
void wpk_graph_affine_fini(struct wpk_graph_affine *affine);

/* Nodes that take a range of one axis. */

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
