/* SPDX-License-Identifier: Apache-2.0 */
/* Borders of zeros around values that windows read beyond the ends. */
#ifndef WPK_GRAPH_BORDER_H
#define WPK_GRAPH_BORDER_H

#include "graph/region.h"

/* Set pad_before and pad_after of the values between steps of which a step with little work for
 * each byte, such as a depthwise convolution, reads zeros beyond the ends: the step then needs
 * neither a copy nor conditions. Not of values that are parts of others, or the model's, nor where
 * a step reads something else than zeros out there.
 *   shape   any: true if a value has got a border: the regions are then to be found again
 *   errors  those of wpk_graph_fuse; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_add_borders(struct wpk_graph *graph,
                                             const struct wpk_graph_regions *regions, bool *any,
                                             struct wpk_diag *diag);

#endif
