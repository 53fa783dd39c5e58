/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes whose output follows from constants and shapes alone: exporters compute shapes in nodes. */
#ifndef WPK_GRAPH_FOLD_H
#define WPK_GRAPH_FOLD_H

#include "graph/graph.h"

#define WPK_FOLD_ELEMENTS_MAX 4096 /* of an output that is folded */
#define WPK_FOLD_WORK_MAX 4e9      /* operations: seconds */

/* Make the node's output constant data if it follows from constants and shapes. The shapes of its
 * inputs and its output are known. It is no error if it does not follow.
 *   errors  those of wpk_graph_interpret_node; WPK_EINVAL an index beyond its axis */
WPK_MUST_CHECK wpk_err wpk_graph_fold(struct wpk_graph *graph, int node, struct wpk_diag *diag);

/* Compute the node by the interpreter if all its inputs are constants, whatever their size, in at
 * most WPK_FOLD_WORK_MAX operations.
 *   errors  WPK_ENOENT  it takes more; WPK_ENOMEM; WPK_OK also where an input is no constant */
WPK_MUST_CHECK wpk_err wpk_graph_fold_large(struct wpk_graph *graph, int node);

#endif
