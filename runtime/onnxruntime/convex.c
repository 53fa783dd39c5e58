/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/session.h"

#include "common/err.h"

size_t wpk_convex_layers(size_t node_count, const bool *is_claimable, size_t edge_count,
                         const struct wpk_convex_edge *edges, size_t *layer)
{
    size_t layer_count = 1;
    size_t edge = 0;
    for (size_t node = 0; node < node_count; node++) {
        layer[node] = 0;
        for (; edge < edge_count && edges[edge].to == node; edge++) {
            size_t from = edges[edge].from;
            WPK_ASSERT(from < node);
            size_t least = layer[from] + (is_claimable[node] && !is_claimable[from]);
            if (layer[node] < least) {
                layer[node] = least;
            }
        }
        if (layer_count <= layer[node]) {
            layer_count = layer[node] + 1;
        }
    }
    WPK_ASSERT(edge == edge_count);
    return layer_count;
}
