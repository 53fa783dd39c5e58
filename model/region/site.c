/* SPDX-License-Identifier: Apache-2.0 */
#include "model/region/site.h"

#include "model/operator/mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct finding {
    const struct wpk_graph *graph;
    const struct wpk_graph_regions *regions;
    int *uses;                   /* owned; [value_count] by nodes, and as an output of the model */
    struct wpk_graph_site *list; /* owned; [count] */
    int count;
};

static bool reduces(const struct wpk_graph *graph, const struct wpk_graph_region_use *use)
{
    for (int i = 0; i < use->node_count; i++) {
        if (wpk_graph_mapping(graph, use->nodes[i]) == WPK_MAPPING_MANY_TO_MANY) {
            return true;
        }
    }
    return false;
}

static int reads_of(const struct wpk_graph *graph, const struct wpk_graph_region_use *use,
                    int value)
{
    int count = 0;

    for (int i = 0; i < use->node_count; i++) {
        const struct wpk_graph_node *node = &graph->nodes[use->nodes[i]];
        for (int k = 0; k < node->input_count; k++) {
            count += node->inputs[k] == value;
        }
    }
    return count;
}

/* True if step `second` is the only reader of the output of `first`. A view of the value is a
 * reader, too. */
static bool is_pair(const struct finding *f, int first, int second)
{
    int value = f->graph->nodes[first].outputs[0];
    const struct wpk_graph_region_use *reader = &f->regions->uses[second];

    return reader->region >= 0 && f->uses[value] > 0 &&
           f->graph->nodes[first].loop == f->graph->nodes[second].loop &&
           reads_of(f->graph, reader, value) == f->uses[value];
}

static void add_pair(struct finding *f, int first, int second)
{
    const struct wpk_graph_value *value = &f->graph->values[f->graph->nodes[first].outputs[0]];
    int a = f->regions->uses[first].region, b = f->regions->uses[second].region;
    int at = 0;

    while (at < f->count && (f->list[at].first != a || f->list[at].second != b)) {
        at++;
    }
    if (at == f->count) {
        f->list[f->count++] =
            (struct wpk_graph_site){.first = a, .second = b, .nodes = {first, second}};
    }
    int64_t times = f->graph->nodes[second].loop > 0 ? f->graph->nodes[second].times : 1;
    f->list[at].count += times;
    f->list[at].bytes += 2.0 * (double)times * (double)wpk_graph_elements(value) *
                         (double)wpk_dtype_size(value->dtype);
}

static void find(struct finding *f)
{
    const struct wpk_graph *graph = f->graph;

    for (int n = 0; n < graph->node_count; n++) {
        if (f->regions->uses[n].region < 0 || !reduces(graph, &f->regions->uses[n])) {
            continue;
        }
        for (int m = n + 1; m < graph->node_count; m++) {
            if (is_pair(f, n, m) && reduces(graph, &f->regions->uses[m])) {
                add_pair(f, n, m);
                break;
            }
        }
    }
}

static int most_bytes_first(const void *a, const void *b)
{
    const struct wpk_graph_site *x = a, *y = b;

    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : x->nodes[0] - y->nodes[0];
}

static wpk_err begin(const struct wpk_graph *graph, const struct wpk_graph_regions *regions,
                     struct finding *f)
{
    *f = (struct finding){.graph = graph,
                          .regions = regions,
                          .uses = wpk_graph_count_uses(graph),
                          .list = calloc((size_t)graph->node_count + 1, sizeof(*f->list))};
    if (f->uses == NULL || f->list == NULL) {
        return WPK_ENOMEM;
    }
    return WPK_OK;
}

static void end(struct finding *f)
{
    free(f->uses);
    free(f->list);
}

wpk_err wpk_graph_sites_find(const struct wpk_graph *graph, const struct wpk_graph_regions *regions,
                             int max, struct wpk_graph_site *out, int *count)
{
    struct finding f;
    wpk_err err = begin(graph, regions, &f);

    *count = 0;
    if (err == WPK_OK) {
        find(&f);
        qsort(f.list, (size_t)f.count, sizeof(*f.list), most_bytes_first);
        *count = f.count < max ? f.count : max;
        memcpy(out, f.list, (size_t)*count * sizeof(*out));
    }
    end(&f);
    return err;
}

wpk_err wpk_graph_site_region(const struct wpk_graph *graph,
                              const struct wpk_graph_regions *regions,
                              const struct wpk_graph_site *site, struct wpk_graph_region *out,
                              struct wpk_diag *diag)
{
    wpk_err err =
        wpk_graph_regions_joint(graph, regions, site->nodes[0], site->nodes[1], out, diag);

    if (err == WPK_OK) {
        out->count = site->count;
        snprintf(out->name, sizeof(out->name), "%.30s_%.30s", regions->list[site->first].name,
                 regions->list[site->second].name);
    }
    return err;
}

wpk_err wpk_graph_site_join(const struct wpk_graph *graph, const struct wpk_graph_site *site,
                            const struct wpk_graph_region *region,
                            struct wpk_graph_regions *regions, int *joined, struct wpk_diag *diag)
{
    struct finding f;
    wpk_err err = begin(graph, regions, &f);

    *joined = 0;
    for (int n = 0; err == WPK_OK && n < graph->node_count; n++) {
        for (int m = n + 1; err == WPK_OK && m < graph->node_count; m++) {
            bool same = false;
            if (regions->uses[n].region == site->first && regions->uses[m].region == site->second &&
                is_pair(&f, n, m)) {
                err = wpk_graph_regions_join(graph, regions, n, m, region, &same, diag);
                *joined += same;
            }
        }
    }
    end(&f);
    return err;
}
