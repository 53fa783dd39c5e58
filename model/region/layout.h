/* SPDX-License-Identifier: Apache-2.0 */
/* How values between steps are stored: as written, or channels last; with or without borders. */
#ifndef WPK_MODEL_REGION_LAYOUT_H
#define WPK_MODEL_REGION_LAYOUT_H

#include "model/region/region.h"

/* Find the regions of a graph (wpk_graph_regions_find), and store the values that windows
 * (convolutions, pools) read or compute with their channels last, where every step that touches
 * them can take them so. In the graph such a value gets a Transpose behind the node that computes
 * it, and one before each node that reads it: all become part of the steps around them. Then values
 * get borders (below).
 *
 *   owns    caller calls wpk_graph_regions_fini, after failures too
 *   errors  those of wpk_graph_regions_find; WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_layout(struct wpk_graph *graph, struct wpk_graph_regions *out,
                                        struct wpk_diag *diag);

/* Values with something around them in memory: zeros that windows read, or the rest of a Concat. */

#endif
