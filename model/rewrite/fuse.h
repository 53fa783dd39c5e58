/* SPDX-License-Identifier: Apache-2.0 */
/* Several nodes as one program. */
#ifndef WPK_MODEL_REWRITE_FUSE_H
#define WPK_MODEL_REWRITE_FUSE_H

#include "model/operator/lower.h"

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

#endif
