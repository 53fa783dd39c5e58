/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes whose output follows from constants and shapes alone: exporters compute shapes in nodes. */
#ifndef WPK_MODEL_OPERATOR_FOLD_H
#define WPK_MODEL_OPERATOR_FOLD_H

#include "model/graph.h"

#define WPK_FOLD_SMALL 4096 /* elements that are folded whatever they are made of */
#define WPK_FOLD_GROWTH 4   /* of outputs against all inputs: a large Expand stays in kernels */
#define WPK_FOLD_GROWN_MAX ((int64_t)1 << 20)  /* elements that may be any growth */
#define WPK_FOLD_FILLED_MAX ((int64_t)1 << 26) /* elements of one number */
#define WPK_FOLD_WORK_FREE 1e8 /* operations of a graph's large nodes: half a second */
#define WPK_FOLD_WORK_A_BYTE                                                                       \
    16 /* and of each byte of its files: a small file cannot ask for more */
#define WPK_FOLD_READ_WORK_MAX 2e8 /* of all, while it is read */
#define WPK_FOLD_WORK_MAX 4e9      /* the same before it is tuned; and of one node */

/* Make the node's output constant data if it follows from constants and shapes. The shapes of its
 * inputs and its output are known. It is no error if it does not follow, or is too large.
 *   errors  those of wpk_graph_interpret_node; WPK_EINVAL an index beyond its axis */
WPK_MUST_CHECK wpk_err wpk_graph_fold(struct wpk_graph *graph, int node, struct wpk_diag *diag);

/* Fold what reading the graph left, up to WPK_FOLD_WORK_MAX operations together: a run computes
 * none of it.   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_fold_rest(struct wpk_graph *graph);

/* Compute the node by the interpreter if all its inputs are constants, whatever their size, in at
 * most WPK_FOLD_WORK_MAX operations.
 *   errors  WPK_ENOENT  it takes more; WPK_ENOMEM; WPK_OK also where an input is no constant */
WPK_MUST_CHECK wpk_err wpk_graph_fold_large(struct wpk_graph *graph, int node);

#endif
