/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/region.h"

#include "op/notation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wpk_graph_regions_fini(struct wpk_graph_regions *regions)
{
    if (regions == NULL) {
        return;
    }
    for (int i = 0; i < regions->use_count; i++) {
        free(regions->uses[i].arguments);
    }
    free(regions->list);
    free(regions->uses);
    *regions = (struct wpk_graph_regions){.count = 0};
}

/* Operators whose output has the elements of input 0 in their order. */
static bool keeps_elements(const struct wpk_operator *op)
{
    return op->kind == WPK_KIND_RESHAPE || op->kind == WPK_KIND_FLATTEN ||
           op->kind == WPK_KIND_SQUEEZE || op->kind == WPK_KIND_UNSQUEEZE ||
           (op->kind != WPK_KIND_EXPAND && op->text != NULL &&
            strcmp(op->text, "Y[..] = X[..]") == 0);
}

/* The region of this fingerprint: one that is known, or a new one. */
static int find_region(const struct wpk_graph *graph, struct wpk_graph_regions *regions, int node,
                       const struct wpk_fingerprint *fingerprint)
{
    for (int i = 0; i < regions->count; i++) {
        if (strcmp(regions->list[i].fingerprint.exact, fingerprint->exact) == 0) {
            regions->list[i].count++;
            return i;
        }
    }
    struct wpk_graph_region *region = &regions->list[regions->count];
    *region = (struct wpk_graph_region){.fingerprint = *fingerprint, .node = node, .count = 1};
    snprintf(region->name, sizeof(region->name), "%.40s%d", graph->nodes[node].op,
             regions->count + 1);
    return regions->count++;
}

static wpk_err bind(const struct wpk_graph *graph, int node, const struct wpk_lowered *lowered,
                    const struct wpk_binding *binding, struct wpk_graph_region_use *use)
{
    use->arguments = calloc((size_t)binding->count + 1, sizeof(*use->arguments));
    if (use->arguments == NULL) {
        return WPK_ENOMEM;
    }
    for (int i = 0; i < binding->count; i++) {
        struct wpk_graph_region_argument *argument = &use->arguments[use->argument_count];
        int tensor = wpk_program_find_tensor(&lowered->program, binding->tensor[i].name);
        if (binding->tensor[i].canonical[0] == '\0') {
            continue;
        }
        WPK_ASSERT(tensor >= 0);
        snprintf(argument->name, sizeof(argument->name), "%s", binding->tensor[i].canonical);
        argument->value = tensor < lowered->operand_count ? lowered->operand[tensor]
                                                          : graph->nodes[node].outputs[0];
        use->argument_count++;
    }
    return WPK_OK;
}

static wpk_err add_node(const struct wpk_graph *graph, int node, struct wpk_binding *binding,
                        struct wpk_graph_regions *regions, struct wpk_diag *diag)
{
    const struct wpk_graph_node *n = &graph->nodes[node];
    struct wpk_graph_region_use *use = &regions->uses[node];
    struct wpk_lowered lowered;
    struct wpk_program canonical = {0};
    struct wpk_fingerprint fingerprint;

    *use = (struct wpk_graph_region_use){.region = -1, .alias = -1};
    if (graph->values[n->outputs[0]].data != NULL) {
        return WPK_OK;
    }
    if (keeps_elements(wpk_operator_find(n->op, n->domain))) {
        use->alias = n->inputs[0];
        return WPK_OK;
    }
    wpk_err err = wpk_graph_lower(graph, node, &lowered, diag);
    if (err == WPK_OK) {
        err = wpk_program_identity(&lowered.program, &canonical, binding, &fingerprint);
    }
    if (err == WPK_OK) {
        use->region = find_region(graph, regions, node, &fingerprint);
        err = bind(graph, node, &lowered, binding, use);
    } else if (diag != NULL && diag->field[0] == '\0') {
        snprintf(diag->field, sizeof(diag->field), "node %s (%s)", n->name, n->op);
    }
    wpk_program_fini(&canonical);
    wpk_lowered_fini(&lowered);
    return err;
}

wpk_err wpk_graph_regions_find(const struct wpk_graph *graph, struct wpk_graph_regions *out,
                               struct wpk_diag *diag)
{
    struct wpk_binding *binding = calloc(1, sizeof(*binding)); /* large for a stack */
    wpk_err err = WPK_OK;

    *out = (struct wpk_graph_regions){.count = 0};
    out->list = calloc((size_t)graph->node_count + 1, sizeof(*out->list));
    out->uses = calloc((size_t)graph->node_count + 1, sizeof(*out->uses));
    if (binding == NULL || out->list == NULL || out->uses == NULL) {
        err = WPK_ENOMEM;
    }
    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        err = add_node(graph, n, binding, out, diag);
        out->use_count = n + 1;
    }
    free(binding);
    return err;
}
