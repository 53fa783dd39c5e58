/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of one session: options, claims, compiled groups. */
#ifndef WPK_RUNTIME_ONNXRUNTIME_SESSION_H
#define WPK_RUNTIME_ONNXRUNTIME_SESSION_H

#include "runtime/onnxruntime/ort.h"

#include <stdbool.h>
#include <stddef.h>

#define WPK_EP_NAME "WoodpeckerExecutionProvider"

/* Make a session's provider.
 *
 *   owns    caller calls wpk_session_release; `ort` outlives it
 *   errors  an unknown option, or one with a wrong value
 */
struct ort_status *wpk_session_make(const struct wpk_ort *ort,
                                    const struct ort_session_options *options, struct ort_ep **out);
void wpk_session_release(struct ort_ep *ep);

/* The nodes that the provider claims.
 *
 * Claimed are all nodes that a twin can hold (runtime/onnxruntime/twin.h): of ONNX's own domains or
 * ONNX Runtime's, without subgraphs, with tensors of numbers, with attributes that can be copied,
 * and not taken by another provider. Bodies of If, Loop and Scan are left to ONNX Runtime: they are
 * small and run often, and each run of a group has a fixed cost. */

/* Claim the nodes of `graph` in convex groups. ONNX Runtime asks several times and for several
 * graphs of a session: nothing is kept. An error claims nothing and is logged by ONNX Runtime. */
struct ort_status *wpk_capability_claim(const struct wpk_ort *ort, const struct ort_graph *graph,
                                        struct ort_support_info *info);

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
