/* SPDX-License-Identifier: Apache-2.0 */
/* Several nodes as one program. */
#ifndef WPK_GRAPH_FUSE_H
#define WPK_GRAPH_FUSE_H

#include "graph/lower.h"

#define WPK_FUSE_NODES_MAX 24
#define WPK_FUSE_OPERANDS_MAX 16

/* Lower nodes of a graph as wpk_graph_lower does one. Tensor Y is output 0 of the last node; the
 * outputs of the others are intermediates, and are put into the expressions that read them where
 * that computes nothing twice.
 *
 *   shape   nodes [count] ascending; 1 to WPK_FUSE_NODES_MAX
 *   owns    caller calls wpk_lowered_fini, after failures too
 *   errors  those of wpk_graph_lower; WPK_ENOSPC too large for a program, or more than
 *           WPK_FUSE_OPERANDS_MAX operands of several nodes */
WPK_MUST_CHECK wpk_err wpk_graph_fuse(const struct wpk_graph *graph, const int *nodes, int count,
                                      struct wpk_lowered *out, struct wpk_diag *diag);

/* True if the node computes each element of its output by one expression, and reads value `value`
 * at that element alone.   errors  as wpk_graph_lower: false */
bool wpk_graph_reads_own_element(const struct wpk_graph *graph, int node, int value);

/* True if the node reads value `value` and never outside of it; with `or_zero`: or zeros there. */
bool wpk_graph_reads_inside(const struct wpk_graph *graph, int node, int value, bool or_zero);

/* True if the node's output is its input with zeros around it. */
bool wpk_graph_is_padding(const struct wpk_graph *graph, int node);

/* True if the node only moves elements, each index being a sum of multiples of axes. With
 * `is_order`: all of them, once. */
bool wpk_graph_is_movement(const struct wpk_graph *graph, int node, bool is_order);

/* True if one stage without a reduction computes the node's output. */
bool wpk_graph_is_pointwise(const struct wpk_graph *graph, int node);

#endif
