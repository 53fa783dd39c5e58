/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of steps that could be one: both reduce, and the second alone reads what the first writes,
 * such as a product before a window, or before a softmax. One kernel for both does without the
 * value between, but has to compute parts of it again, or loops that suit neither. */
#ifndef WPK_MODEL_REGION_SITE_H
#define WPK_MODEL_REGION_SITE_H

#include "model/region/region.h"

/* All pairs of groups of two regions. */
struct wpk_graph_site {
    int first, second; /* regions */
    int nodes[2];      /* the last node of both groups of the first pair */
    int64_t count;     /* pairs, in a loop once for each iteration */
    double bytes;      /* that all of them write between and read again */
};

/* Find the sites of a graph, those with the most bytes first.
 *   shape   out [max]
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_graph_sites_find(const struct wpk_graph *graph,
                                            const struct wpk_graph_regions *regions, int max,
                                            struct wpk_graph_site *out, int *count);

/* Make the region that the site's first pair would be; its count is that of the pairs.
 *   errors  those of wpk_graph_fuse; WPK_ENOSPC too many nodes */
WPK_MUST_CHECK wpk_err wpk_graph_site_region(const struct wpk_graph *graph,
                                             const struct wpk_graph_regions *regions,
                                             const struct wpk_graph_site *site,
                                             struct wpk_graph_region *out, struct wpk_diag *diag);

/* Make the site's pairs one step each, of this region, as far as both groups are as they were
 * found. Regions without a group keep their number, with a count of 0.
 *   shape   *joined: pairs
 *   errors  those of wpk_graph_regions_join */
WPK_MUST_CHECK wpk_err wpk_graph_site_join(const struct wpk_graph *graph,
                                           const struct wpk_graph_site *site,
                                           const struct wpk_graph_region *region,
                                           struct wpk_graph_regions *regions, int *joined,
                                           struct wpk_diag *diag);

#endif
