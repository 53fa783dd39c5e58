/* SPDX-License-Identifier: Apache-2.0 */
/* Narrows values before they are moved. */
#ifndef WPK_MODEL_REWRITE_NARROW_H
#define WPK_MODEL_REWRITE_NARROW_H

#include "model/graph.h"

/* Compute a function of each element, whose result has fewer bytes, before a node that moves
 * elements, joins parts, or takes the largest of several, if nothing else reads that node: a
 * quantizer behind a Concat of convolutions becomes part of each convolution. The results are the
 * same to the bit. Ids of nodes change.
 *
 *   shape   a graph whose shapes were inferred without problems
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_graph_narrow(struct wpk_graph *graph);

#endif
