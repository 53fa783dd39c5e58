/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that differ in constants alone become one. */
#ifndef WPK_MODEL_REWRITE_MERGE_H
#define WPK_MODEL_REWRITE_MERGE_H

#include "model/graph.h"

/* Let products and convolutions of the same values by different constants, such as those of Q, K
 * and V, be one, with the constants concatenated; so are the pointwise nodes after them. Slices
 * of the result stand for their outputs. Merged are only those of which the slices are no steps,
 * and whose readers are none that would be computed with them. Ids of nodes change.
 *
 *   shape   a graph whose shapes were inferred without problems
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_merge(struct wpk_graph *graph);

#endif
