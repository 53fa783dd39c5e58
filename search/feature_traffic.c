/* SPDX-License-Identifier: Apache-2.0 */
#include "search/feature_traffic.h"

#include <math.h>
#include <string.h>

#define TOUCHES_MAX 1024 /* further ones count in no traffic */
#define TOUCHED_MAX 8192

/* Elements of a tensor that a body accesses. */
struct touch {
    int body;
    int tensor;
    double *elements; /* in one iteration of the node around it at each depth */
};

struct traffic {
    const struct wpk_feature_tree *tree;
    const int *leaf; /* the node of each body */
    const struct wpk_machine *machine;
    struct wpk_features *out;
    double most[WPK_FEATURE_NODES_MAX][WPK_TENSORS_MAX]; /* elements that an iteration touches */
    double bytes[WPK_FEATURE_NODES_MAX];                 /* that an iteration touches */
    struct touch touch[TOUCHES_MAX];
    int touch_count;
    double elements[TOUCHED_MAX]; /* of the touches */
    int touched;
};

static double size_of(const struct traffic *w, int tensor)
{
    return (double)wpk_dtype_size(w->tree->nest->program->tensors[tensor].dtype);
}

/* The depth at and above which a tensor is a buffer that all iterations use. */
static int buffer_depth(const struct traffic *w, int tensor)
{
    int writer = w->tree->writer[tensor];
    return writer < 0 ? 0 : w->tree->node[w->tree->place[writer]].depth;
}

/* Elements of a tensor in one iteration of a node.   shape  access: NULL: it is the output */
static double elements_at(const struct traffic *w, int e, int tensor,
                          const struct wpk_access *access, int node)
{
    const struct wpk_tensor *t = &w->tree->nest->program->tensors[tensor];
    const int64_t *widths = wpk_feature_widths_at(w->tree, e, node);
    double elements = 1;
    for (int d = 0; d < t->rank; d++) {
        int64_t most = t->extent[d] + t->pad_before[d] + t->pad_after[d];
        int64_t width = access == NULL ? widths[d] : wpk_feature_width(w->tree, access, d, widths);
        elements *= (double)(width < most ? width : most);
    }
    return elements;
}

/* Note what a body touches of a tensor in the iterations of all nodes around it. */
static void touch(struct traffic *w, int b, int tensor, const struct wpk_access *access)
{
    int e = w->out->body[b].entry, node = w->leaf[b], buffer = buffer_depth(w, tensor);
    if (w->touch_count == TOUCHES_MAX || w->touched + WPK_FEATURE_DEPTH_MAX > TOUCHED_MAX) {
        return;
    }
    struct touch *touch = &w->touch[w->touch_count++];
    *touch = (struct touch){.body = b, .tensor = tensor, .elements = &w->elements[w->touched]};
    w->touched += w->tree->node[node].depth + 1;
    double runs = w->tree->node[node].runs, elements = INFINITY;
    for (; node >= 0; node = w->tree->node[node].parent) {
        int depth = w->tree->node[node].depth;
        if (depth >= buffer || elements == INFINITY) { /* iterations touch no more than all do */
            elements = fmin(elements_at(w, e, tensor, access, node),
                            elements * runs / w->tree->node[node].runs);
        }
        runs = w->tree->node[node].runs;
        touch->elements[depth] = elements;
        double *most = &w->most[node][tensor];
        *most = elements > *most ? elements : *most;
    }
}

static void touch_all(struct traffic *w, int b)
{
    const struct wpk_body *body = &w->out->body[b];
    const struct wpk_nest_entry *entry = &w->tree->nest->entry[body->entry];
    bool reads = entry->kind != WPK_NEST_COPY && entry->block == 0 &&
                 (body->update || !wpk_feature_updates(w->tree, body->entry));
    if (entry->kind == WPK_NEST_COPY) { /* all of it, and as much is written */
        double elements =
            (double)wpk_tensor_elements(&w->tree->nest->program->tensors[entry->packing.tensor]);
        double *most = &w->most[0][entry->packing.tensor];
        *most = elements > *most ? elements : *most;
        return;
    }
    const struct wpk_stage_access *facts = wpk_feature_facts(w->tree, body->entry);
    for (int i = facts->first; i < facts->first + facts->count && reads; i++) {
        const struct wpk_access *access = &w->tree->accesses->access[i];
        if (access->first && !wpk_feature_is_held(w->tree, access->tensor)) {
            touch(w, b, access->tensor, access);
        }
    }
    if (!w->tree->held[body->entry]) {
        touch(w, b, wpk_nest_stage(w->tree->nest, entry)->output, NULL);
    }
}

static void sum_bytes(struct traffic *w)
{
    for (int n = 0; n < w->tree->node_count; n++) {
        w->bytes[n] = 0;
        for (int t = 0; t < w->tree->nest->program->tensor_count; t++) {
            w->bytes[n] += w->most[n][t] * size_of(w, t);
        }
    }
}

/* The outermost node of which one iteration fits the cache; the innermost if none does. */
static int find_fitting(const struct traffic *w, int leaf, double capacity)
{
    int node = leaf;
    while (w->tree->node[node].parent >= 0 && w->bytes[w->tree->node[node].parent] <= capacity) {
        node = w->tree->node[node].parent;
    }
    return node;
}

/* The bytes of a tensor that a body's loops get from beyond a cache: all that the loop `node`, the
 * outermost whose iterations fit, touches of it, each time it runs. Elements that are the same in
 * consecutive iterations stay in the cache, and so for loops further out. */
static double traffic_of(const struct traffic *w, const struct touch *touch, int node)
{
    int at = node;
    while (w->tree->node[at].parent >= 0 &&
           touch->elements[w->tree->node[at].depth] ==
               touch->elements[w->tree->node[w->tree->node[at].parent].depth]) {
        at = w->tree->node[at].parent;
    }
    at = w->tree->node[at].parent < 0 ? at : w->tree->node[at].parent;
    return w->tree->node[at].runs * touch->elements[w->tree->node[at].depth] *
           size_of(w, touch->tensor);
}

/* The bytes that a copy reads, and those that it writes unless they stay in the cache until the
 * panel for which it is made is done. */
static double traffic_of_copy(const struct traffic *w, int e, double capacity)
{
    const struct wpk_nest_entry *entry = &w->tree->nest->entry[e];
    int tensor = entry->packing.tensor;
    double bytes = w->most[0][tensor] * size_of(w, tensor);
    if (entry->place.entry < 0) {
        return 2 * bytes;
    }
    bytes = wpk_feature_product(entry->extent, entry->packing.dim_count) * size_of(w, tensor);
    return w->tree->node[w->tree->place[e]].runs * bytes * (bytes <= capacity ? 1 : 2);
}

static void count_traffic(struct traffic *w, int level)
{
    double capacity = (double)w->machine->cache_bytes[level];
    double *footprint = &w->out->footprint_bytes[level];
    int fitting[2 * WPK_NEST_ENTRIES_MAX];
    for (int b = 0; b < w->out->body_count; b++) {
        struct wpk_body *body = &w->out->body[b];
        const struct wpk_nest_entry *entry = &w->tree->nest->entry[body->entry];
        fitting[b] = find_fitting(w, w->leaf[b], capacity);
        double bytes = w->bytes[fitting[b]];
        *footprint = bytes <= capacity && bytes > *footprint ? bytes : *footprint;
        if (entry->kind == WPK_NEST_COPY) {
            body->traffic_bytes[level] = traffic_of_copy(w, body->entry, capacity);
        }
    }
    for (int i = 0; i < w->touch_count; i++) {
        const struct touch *touch = &w->touch[i];
        w->out->body[touch->body].traffic_bytes[level] +=
            traffic_of(w, touch, fitting[touch->body]);
    }
}

void wpk_feature_traffic(const struct wpk_feature_tree *tree, const int *leaf,
                         const struct wpk_machine *machine, struct wpk_features *out)
{
    struct traffic traffic, *w = &traffic;
    w->tree = tree;
    w->leaf = leaf;
    w->machine = machine;
    w->out = out;
    w->touch_count = w->touched = 0;
    memset(w->most, 0, (size_t)tree->node_count * sizeof(w->most[0]));
    for (int b = 0; b < out->body_count; b++) {
        touch_all(w, b);
    }
    sum_bytes(w);
    out->bytes = w->bytes[0];
    for (int level = 0; level < WPK_CACHES; level++) {
        count_traffic(w, level);
    }
}
