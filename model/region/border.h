/* SPDX-License-Identifier: Apache-2.0 */
/* Values with something around them in memory: zeros that windows read, or the rest of a Concat. */
#ifndef WPK_MODEL_REGION_BORDER_H
#define WPK_MODEL_REGION_BORDER_H

#include "model/region/region.h"

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
