/* SPDX-License-Identifier: Apache-2.0 */
/* How values between steps are stored: as written, or channels last; with or without borders. */
#ifndef WPK_MODEL_REGION_LAYOUT_H
#define WPK_MODEL_REGION_LAYOUT_H

#include "model/region/region.h"

/* Find the regions of a graph (wpk_graph_regions_find), and store the values that windows
 * (convolutions, pools) read or compute with their channels last, where every step that touches
 * them can take them so. In the graph such a value gets a Transpose behind the node that computes
 * it, and one before each node that reads it: all become part of the steps around them. Then values
 * get borders.
 *
 *   owns    caller calls wpk_graph_regions_fini, after failures too
 *   errors  those of wpk_graph_regions_find; WPK_ENOSPC, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_layout(struct wpk_graph *graph, struct wpk_graph_regions *out,
                                        struct wpk_diag *diag);

/* border.c: values with something around them in memory, zeros that windows read or the rest of a
 * Concat. */

/* Set pad_before and pad_after of the values between steps of which a step with little work for
 * each byte, such as a depthwise convolution, reads zeros beyond the ends: the step then needs
 * neither a copy nor conditions. Not of values that are parts of others, or the model's, nor where
 * a step reads something else than zeros out there.
 *   shape   any: true if a value has got a border: the regions are then to be found again
 *   errors  those of wpk_graph_fuse; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_add_borders(struct wpk_graph *graph,
                                             const struct wpk_graph_regions *regions, bool *any,
                                             struct wpk_diag *diag);

/* Let the inputs of a Concat be parts of its output where they do not lie in one piece there: their
 * pads are what lies around them. The views of the next wpk_graph_regions_find have them.
 *   shape   any: true if there are such parts
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_add_places(struct wpk_graph *graph,
                                            const struct wpk_graph_regions *regions, bool *any);

#endif
