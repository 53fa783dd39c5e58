/* SPDX-License-Identifier: Apache-2.0 */
/* Convex groups of a graph's claimable nodes.
 *
 * A group becomes one node. It has to be convex: no path leaves it and comes back, or the graph
 * would get a circle. ONNX Runtime drops every claim of a provider for one group that is not.
 *
 *      a ──▶ b ──▶ X ──▶ c ──▶ d        X is not claimable: groups {a b}, {c d}, and e, from which
 *      e ──────────────────▶ d          no path leads through an unclaimable node, is in {a b e}
 *
 * A node's layer is the largest number of times that a path to it enters the claimable nodes from
 * an unclaimable one. The claimable nodes of a layer are a group. Layers never decrease along an
 * edge and increase on the way back from an unclaimable node, so a path that leaves a group ends in
 * a later layer; the groups are convex, each and together, and no partition has fewer layers. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_CONVEX_H
#define WPK_RUNTIME_ONNXRUNTIME_CONVEX_H

#include <stdbool.h>
#include <stddef.h>

struct wpk_convex_edge {
    size_t from; /* index of a node */
    size_t to;   /* > from */
};

/* Write each node's layer and return the number of layers, at least 1.
 *
 *   shape   is_claimable, layer [node_count]; edges [edge_count], sorted by `to`
 */
size_t wpk_convex_layers(size_t node_count, const bool *is_claimable, size_t edge_count,
                         const struct wpk_convex_edge *edges, size_t *layer);

#endif
