/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes with several outputs as nodes with one. */
#ifndef WPK_MODEL_OPERATOR_PARTS_H
#define WPK_MODEL_OPERATOR_PARTS_H

#include "model/graph.h"

/* Replace each node with several outputs by one node for each output that is read or is the
 * model's, with `part` and `part_count`. A node nobody asks anything of keeps its first output.
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_split_outputs(struct wpk_graph *graph);

#endif
