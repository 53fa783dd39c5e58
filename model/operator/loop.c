/* SPDX-License-Identifier: Apache-2.0 */
#include "model/operator/loop.h"

#include "model/operator/operator.h"

#include <stdlib.h>
#include <string.h>

static bool is_kind(const struct wpk_graph_node *node, enum wpk_operator_kind kind)
{
    const struct wpk_operator *op = wpk_operator_find(node->op, node->domain);

    return op != NULL && op->kind == kind;
}

bool wpk_graph_is_boundary(const struct wpk_graph_node *node)
{
    return strcmp(node->domain, WPK_LOOP_DOMAIN) == 0;
}

int64_t wpk_graph_loop_step(const struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    if (is_kind(node, WPK_KIND_LOOP_READ)) {
        return wpk_graph_int(node, "step", 0);
    }
    WPK_ASSERT(is_kind(node, WPK_KIND_LOOP_STORE));
    int64_t size = wpk_graph_elements(&graph->values[node->inputs[0]]);
    return wpk_graph_int(node, "reverse", 0) != 0 ? -size : size;
}

int64_t wpk_graph_loop_offset(const struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    if (is_kind(node, WPK_KIND_LOOP_READ)) {
        return wpk_graph_int(node, "offset", 0);
    }
    int64_t step = wpk_graph_loop_step(graph, node);
    return step < 0 ? -step * (node->times - 1) : step;
}

int wpk_graph_loop_store(const struct wpk_graph *graph, int start)
{
    int writer = graph->values[start].writer;

    if (writer < 0 || !is_kind(&graph->nodes[writer], WPK_KIND_LOOP_ENTER)) {
        return -1;
    }
    for (int n = writer + 1; n < graph->node_count; n++) {
        if (is_kind(&graph->nodes[n], WPK_KIND_LOOP_STORE) && graph->nodes[n].inputs[1] == start) {
            return n;
        }
    }
    return -1;
}

int wpk_graph_loop_end(const struct wpk_graph *graph, int first)
{
    int last = first;

    while (last + 1 < graph->node_count &&
           graph->nodes[last + 1].loop == graph->nodes[first].loop) {
        last++;
    }
    return last;
}

/* ---- order */

/* Find the nodes [*first, *end) from the loop's first one to its last one; false: it has none. */
static bool find_span(const struct wpk_graph *graph, int loop, int *first, int *end)
{
    *first = -1;
    for (int n = 0; n < graph->node_count; n++) {
        if (graph->nodes[n].loop == loop) {
            *first = *first < 0 ? n : *first;
            *end = n + 1;
        }
    }
    return *first >= 0;
}

/* Other nodes of the span go before it: those that depend on the loop read its Results, which stand
 * behind its last Store. */
static void gather(struct wpk_graph *graph, int first, int end)
{
    struct wpk_graph_node *own = WPK_DEMAND(calloc((size_t)(end - first), sizeof(*own)));
    int loop = graph->nodes[first].loop;
    int own_count = 0;
    int at = first;

    for (int n = first; n < end; n++) {
        if (graph->nodes[n].loop == loop) {
            own[own_count++] = graph->nodes[n];
        } else {
            graph->nodes[at++] = graph->nodes[n];
        }
    }
    memcpy(&graph->nodes[at], own, (size_t)own_count * sizeof(*own));
    for (int n = first; n < end; n++) {
        graph->values[graph->nodes[n].outputs[0]].writer = n;
    }
    free(own);
}

wpk_err wpk_graph_gather_loops(struct wpk_graph *graph)
{
    int first = 0;
    int end = 0;

    for (int loop = 1; loop <= graph->loop_count; loop++) {
        if (find_span(graph, loop, &first, &end) && wpk_graph_loop_end(graph, first) + 1 < end) {
            gather(graph, first, end);
        }
    }
    return WPK_OK;
}
