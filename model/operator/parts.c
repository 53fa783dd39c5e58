/* SPDX-License-Identifier: Apache-2.0 */
/* A program has one result: a Split becomes a slice for each output, a Dropout with a mask two
 * nodes. Values that both parts need are computed twice, which is seldom more than a mean. */
#include "model/operator/parts.h"

#include "model/operator/expand.h"

#include <stdlib.h>

static bool is_wanted(const struct wpk_graph *graph, int value)
{
    return value >= 0 && (graph->values[value].is_read || graph->values[value].is_output);
}

static wpk_err add_part(struct wpk_graph *graph, const struct wpk_graph_node *node, int part)
{
    struct wpk_graph_node copy = *node;

    copy.outputs = &node->outputs[part];
    copy.output_count = 1;
    copy.part = part;
    copy.part_count = node->output_count;
    if (copy.outputs[0] >= 0) {
        graph->values[copy.outputs[0]].writer = graph->node_count;
    }
    return wpk_graph_add_node(graph, &copy);
}

static wpk_err add_parts(struct wpk_graph *graph, const struct wpk_graph_node *node)
{
    int count = 0;
    wpk_err err = WPK_OK;

    for (int i = 0; err == WPK_OK && i < node->output_count; i++) {
        if (is_wanted(graph, node->outputs[i])) {
            err = add_part(graph, node, i);
            count++;
        } else if (node->outputs[i] >= 0) {
            graph->values[node->outputs[i]].writer = -1;
        }
    }
    return err == WPK_OK && count == 0 && node->output_count > 0 ? add_part(graph, node, 0) : err;
}

wpk_err wpk_graph_split_outputs(struct wpk_graph *graph)
{
    struct wpk_graph_node *nodes = graph->nodes;
    int count = graph->node_count;
    bool is_needed = false;
    wpk_err err = WPK_OK;

    for (int n = 0; n < count; n++) {
        nodes[n].part_count = nodes[n].output_count;
        is_needed = is_needed || nodes[n].output_count > 1;
    }
    if (!is_needed) {
        return WPK_OK;
    }
    (void)wpk_graph_take_nodes(graph, &count);
    for (int n = 0; err == WPK_OK && n < count; n++) {
        err = wpk_graph_is_expanded(&nodes[n]) ? wpk_graph_add_node(graph, &nodes[n])
                                               : add_parts(graph, &nodes[n]);
    }
    free(nodes);
    return err;
}
