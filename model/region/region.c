/* SPDX-License-Identifier: Apache-2.0 */
#include "model/region/region.h"

#include "ir/cost.h"
#include "model/operator/mapping.h"

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
        free(regions->uses[i].nodes);
    }
    free(regions->list);
    free(regions->uses);
    wpk_graph_views_fini(&regions->views);
    *regions = (struct wpk_graph_regions){.count = 0};
}

/* ---- groups */

/* Nodes that are computed together. */
struct group {
    int nodes[WPK_FUSE_NODES_MAX]; /* [count] ascending; 0: none, or part of a later node's */
    int count;
    enum wpk_mapping mapping;
    bool is_padding; /* its one node puts zeros around its input */
};

struct grouping {
    const struct wpk_graph *graph;
    struct group *groups; /* owned; [node_count] that of which a node is the last */
    int *uses;            /* owned; [value_count] by nodes, and as an output of the model */
};

static bool is_pointwise(const struct group *group)
{
    return group->mapping != WPK_MAPPING_MANY_TO_MANY;
}

/* A node of a group may read a value of an earlier group that is to become part of it. */
static bool may_read(const struct grouping *g, const struct group *earlier,
                     const struct group *group, int node, int value)
{
    enum wpk_mapping read = wpk_graph_read_mapping(g->graph, node, value);

    if (wpk_mapping_fusion(earlier->mapping, read) != WPK_FUSION_YES) {
        return false;
    }
    switch (earlier->mapping) {
    case WPK_MAPPING_ONE_TO_ONE:
    case WPK_MAPPING_MANY_TO_MANY: /* what is computed is stored in another order */
        return read != WPK_MAPPING_SHUFFLE ||
               (is_pointwise(group) && wpk_graph_is_movement(g->graph, node));
    case WPK_MAPPING_SHUFFLE:
        return true;
    default: /* beyond a border only if all elements are there */
        return wpk_graph_reads_inside(g->graph, node, value, earlier->is_padding);
    }
}

/* A group computes with floats of 16 bits to which the earlier one rounds. They go through memory,
 * where instructions read them; the interpreter rounds what is written there alone. */
static bool rounds_for(const struct grouping *g, const struct group *earlier,
                       const struct group *group)
{
    bool rounds = false, computes = false;

    for (int i = 0; i < earlier->count; i++) {
        const struct wpk_graph_node *node = &g->graph->nodes[earlier->nodes[i]];
        enum wpk_dtype dtype = g->graph->values[node->outputs[0]].dtype;
        rounds = rounds || ((dtype == WPK_F16 || dtype == WPK_BF16) &&
                            !wpk_graph_is_movement(g->graph, earlier->nodes[i]));
    }
    for (int i = 0; rounds && i < group->count; i++) {
        computes = computes || !wpk_graph_is_movement(g->graph, group->nodes[i]);
    }
    return computes;
}

/* Only nodes of the group read the value, and nothing wants it in memory. */
static bool is_only_read_in(const struct grouping *g, const struct group *group, int value)
{
    int uses = 0;

    if (g->graph->values[value].is_stored) {
        return false;
    }
    for (int i = 0; i < group->count; i++) {
        const struct wpk_graph_node *node = &g->graph->nodes[group->nodes[i]];
        for (int k = 0; k < node->input_count; k++) {
            uses += node->inputs[k] == value;
        }
    }
    return uses == g->uses[value];
}

/* The group reads the value at the elements that it computes, or all elements in another order;
 * what was only moved may be read anywhere. At most one of both has more than pointwise nodes. */
static bool is_pointwise_join(const struct grouping *g, const struct group *earlier,
                              const struct group *group, int value)
{
    for (int i = 0; i < group->count; i++) {
        const struct wpk_graph_node *node = &g->graph->nodes[group->nodes[i]];
        bool reads = false;
        for (int k = 0; k < node->input_count; k++) {
            reads = reads || node->inputs[k] == value;
        }
        if (reads && !may_read(g, earlier, group, group->nodes[i], value)) {
            return false;
        }
    }
    return is_pointwise(earlier) || is_pointwise(group);
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Join two groups if they make one program that computes nothing twice. */
static bool join(const struct grouping *g, const struct group *earlier, const struct group *group,
                 int value, struct group *out)
{
    struct wpk_lowered lowered;

    if (earlier->count + group->count > WPK_FUSE_NODES_MAX) {
        return false;
    }
    *out = *group;
    memcpy(out->nodes + out->count, earlier->nodes, (size_t)earlier->count * sizeof(int));
    out->count += earlier->count;
    out->mapping = wpk_mapping_join(earlier->mapping, group->mapping);
    if (earlier->is_padding || group->is_padding) {
        out->mapping = wpk_mapping_join(out->mapping, WPK_MAPPING_ONE_TO_ONE);
        out->is_padding = false;
    }
    qsort(out->nodes, (size_t)out->count, sizeof(int), ascending);
    bool joined =
        wpk_graph_fuse(g->graph, out->nodes, out->count, &lowered, NULL) == WPK_OK &&
        (is_pointwise_join(g, earlier, group, value) || wpk_program_is_of_rows(&lowered.program));
    wpk_lowered_fini(&lowered);
    return joined;
}

/* The latest node before `limit` whose output a node of the group reads; -1: none. */
static int latest_writer(const struct grouping *g, const struct group *group, int limit)
{
    int latest = -1;

    for (int i = 0; i < group->count; i++) {
        const struct wpk_graph_node *node = &g->graph->nodes[group->nodes[i]];
        for (int k = 0; k < node->input_count; k++) {
            int writer = node->inputs[k] >= 0 ? g->graph->values[node->inputs[k]].writer : -1;
            latest = writer < limit && writer > latest ? writer : latest;
        }
    }
    return latest;
}

/* Take the groups into this node's that it can be computed with, the latest first: a sum of two
 * products goes to the later one. */
static void grow(struct grouping *g, int node)
{
    struct group *group = &g->groups[node];
    struct group joint;
    int writer = latest_writer(g, group, node);

    while (writer >= 0) {
        struct group *earlier = &g->groups[writer];
        int value = g->graph->nodes[writer].outputs[0];
        bool joined = earlier->count > 0 &&
                      g->graph->nodes[writer].loop == g->graph->nodes[node].loop &&
                      is_only_read_in(g, group, value) && !rounds_for(g, earlier, group) &&
                      join(g, earlier, group, value, &joint);
        if (joined) {
            *group = joint;
            earlier->count = 0;
        }
        /* After a join, all uses of a value that was passed over may be inside. */
        writer = latest_writer(g, group, joined ? node : writer);
    }
}

/* ---- regions */

/* The node after which a group is named: the first that is not pointwise, else the first. */
static const char *main_op(const struct wpk_graph *graph, const struct group *group)
{
    for (int i = 0; i < group->count; i++) {
        if (wpk_graph_mapping(graph, group->nodes[i]) == WPK_MAPPING_MANY_TO_MANY) {
            return graph->nodes[group->nodes[i]].op;
        }
    }
    return graph->nodes[group->nodes[0]].op;
}

/* How often a node is computed in a run. */
static int64_t calls_of(const struct wpk_graph *graph, int node)
{
    return graph->nodes[node].loop > 0 ? graph->nodes[node].times : 1;
}

/* The region of this fingerprint: one that is known, or a new one. */
static int find_region(const struct wpk_graph *graph, struct wpk_graph_regions *regions,
                       const struct group *group, const struct wpk_fingerprint *fingerprint)
{
    for (int i = 0; i < regions->count; i++) {
        if (strcmp(regions->list[i].fingerprint.exact, fingerprint->exact) == 0) {
            regions->list[i].count += calls_of(graph, group->nodes[0]);
            return i;
        }
    }
    struct wpk_graph_region *region = &regions->list[regions->count];
    *region = (struct wpk_graph_region){.fingerprint = *fingerprint,
                                        .node_count = group->count,
                                        .count = calls_of(graph, group->nodes[0])};
    memcpy(region->nodes, group->nodes, sizeof(region->nodes));
    snprintf(region->name, sizeof(region->name), "%.40s%d", main_op(graph, group),
             regions->count + 1);
    return regions->count++;
}

static void bind(const struct wpk_graph *graph, int node, const struct wpk_lowered *lowered,
                 const struct wpk_binding *binding, struct wpk_graph_region_use *use)
{
    use->arguments = WPK_DEMAND(calloc((size_t)binding->count + 1, sizeof(*use->arguments)));
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
}

/* True if the node's elements are moved before it, and it can read them from where they come. */
static bool continues_movement(const struct grouping *g, int node)
{
    const struct wpk_graph_node *n = &g->graph->nodes[node];
    int writer = n->inputs[0] >= 0 ? g->graph->values[n->inputs[0]].writer : -1;
    const struct group *group = writer >= 0 ? &g->groups[writer] : NULL;

    return group != NULL && group->count > 0 && is_pointwise(group) &&
           group->mapping != WPK_MAPPING_ONE_TO_ONE && !group->is_padding &&
           g->graph->nodes[writer].loop == n->loop && g->uses[n->inputs[0]] == 1 &&
           wpk_graph_is_movement(g->graph, node);
}

static void start_group(struct grouping *g, int node, struct wpk_graph_regions *regions)
{
    struct wpk_graph_region_use *use = &regions->uses[node];

    *use = (struct wpk_graph_region_use){.region = -1};
    regions->use_count = node + 1;
    if (g->graph->values[g->graph->nodes[node].outputs[0]].data != NULL) {
        return;
    }
    use->is_host = wpk_graph_host(g->graph, node, &use->host);
    if (use->is_host) {
        return;
    }
    if (!continues_movement(g, node) && wpk_graph_views_add(&regions->views, g->graph, node)) {
        regions->uses[node].is_view = true;
        return;
    }
    g->groups[node] = (struct group){
        .nodes = {node},
        .count = 1,
        .mapping = wpk_graph_mapping(g->graph, node),
        .is_padding = wpk_graph_is_padding(g->graph, node),
    };
    grow(g, node);
}

static wpk_err add_group(const struct grouping *g, int node, struct wpk_binding *binding,
                         struct wpk_graph_regions *regions, struct wpk_diag *diag)
{
    const struct wpk_graph_node *n = &g->graph->nodes[node];
    const struct group *group = &g->groups[node];
    struct wpk_graph_region_use *use = &regions->uses[node];
    struct wpk_lowered lowered;
    struct wpk_program canonical = {0};
    struct wpk_fingerprint fingerprint;

    if (use->is_host) {
        /* The inputs of a host step that are its arguments, and its output. */
        int inputs = use->host.op == WPK_MODEL_PLAN_SCATTER ? 3 : 1;
        use->nodes = WPK_DEMAND(malloc(sizeof(*use->nodes)));
        use->arguments = WPK_DEMAND(calloc((size_t)inputs + 1, sizeof(*use->arguments)));
        use->nodes[0] = node;
        use->node_count = 1;
        for (int i = 0; i <= inputs; i++) {
            struct wpk_graph_region_argument *argument = &use->arguments[use->argument_count++];
            snprintf(argument->name, sizeof(argument->name), "%c", i < inputs ? "xiu"[i] : 'y');
            argument->value = i < inputs ? n->inputs[i] : n->outputs[0];
        }
        return WPK_OK;
    }
    if (group->count == 0) {
        return WPK_OK;
    }
    wpk_err err = wpk_graph_fuse(g->graph, group->nodes, group->count, &lowered, diag);
    err = err == WPK_OK ? wpk_program_identity(&lowered.program, &canonical, binding, &fingerprint)
                        : err;
    if (err == WPK_OK) {
        use->region = find_region(g->graph, regions, group, &fingerprint);
        use->nodes = WPK_DEMAND(malloc((size_t)group->count * sizeof(*use->nodes)));
        memcpy(use->nodes, group->nodes, (size_t)group->count * sizeof(*use->nodes));
        use->node_count = group->count;
        bind(g->graph, node, &lowered, binding, use);
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
    struct wpk_binding *binding = WPK_DEMAND(calloc(1, sizeof(*binding))); /* large for a stack */
    struct grouping g = {
        .graph = graph,
        .groups = WPK_DEMAND(calloc((size_t)graph->node_count + 1, sizeof(*g.groups))),
        .uses = wpk_graph_count_uses(graph),
    };
    wpk_err err = WPK_OK;

    *out = (struct wpk_graph_regions){.count = 0};
    out->list = WPK_DEMAND(calloc((size_t)graph->node_count + 1, sizeof(*out->list)));
    out->uses = WPK_DEMAND(calloc((size_t)graph->node_count + 1, sizeof(*out->uses)));
    wpk_graph_views_init(&out->views, graph);
    for (int n = 0; n < graph->node_count; n++) {
        start_group(&g, n, out);
    }
    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        err = add_group(&g, n, binding, out, diag);
    }
    free(g.groups);
    free(g.uses);
    free(binding);
    return err;
}
