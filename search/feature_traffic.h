/* SPDX-License-Identifier: Apache-2.0 */
/* Footprints of the iterations of a nest's loops, and the traffic into each cache. */
#ifndef WPK_SEARCH_FEATURE_TRAFFIC_H
#define WPK_SEARCH_FEATURE_TRAFFIC_H

#include "search/feature_tree.h"

/* Fill footprint_bytes, traffic_bytes and bytes of `out`, whose bodies are complete but for their
 * traffic.
 *   shape   leaf [out->body_count] the node of each body */
void wpk_feature_traffic(const struct wpk_feature_tree *tree, const int *leaf,
                         const struct wpk_machine *machine, struct wpk_features *out);

#endif
