/* SPDX-License-Identifier: Apache-2.0 */
#include "search/feature.h"

#include "common/format.h"
#include "nest/reach.h"
#include "search/space.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

struct count {
    const struct wpk_feature_tree *tree;
    const struct wpk_machine *machine;
    int threads;
    struct wpk_features *out;
    int leaf[2 * WPK_NEST_ENTRIES_MAX]; /* the node of each body */
};

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
        /* The outermost node of which one iteration fits the cache; the innermost if none does. */
        int node = w->leaf[b];
        while (w->tree->node[node].parent >= 0 &&
               w->bytes[w->tree->node[node].parent] <= capacity) {
            node = w->tree->node[node].parent;
        }
        fitting[b] = node;
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

/* Fill footprint_bytes, traffic_bytes and bytes of `out`, whose bodies are complete but for their
 * traffic.
 *   shape   leaf [out->body_count] the node of each body */
static void find_traffic(const struct wpk_feature_tree *tree, const int *leaf,
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
    for (int n = 0; n < w->tree->node_count; n++) {
        w->bytes[n] = 0;
        for (int t = 0; t < w->tree->nest->program->tensor_count; t++) {
            w->bytes[n] += w->most[n][t] * size_of(w, t);
        }
    }
    out->bytes = w->bytes[0];
    for (int level = 0; level < WPK_CACHES; level++) {
        count_traffic(w, level);
    }
}

/* The expression of a stage, evaluated for all elements of a body.
 *   unit  elements: of one run */
static void count_expression(struct count *w, int e, const struct wpk_feature_shape *shape,
                             double values, struct wpk_body *body)
{
    const struct wpk_stage_access *facts = wpk_feature_facts(w->tree, e);
    double inside = wpk_nest_inside_share(w->tree->nest, e);
    double instructions = shape->dot != NULL ? shape->dot->cost : facts->instructions;
    body->arithmetic += values * instructions * facts->density * inside;
    for (int i = facts->first; i < facts->first + facts->count; i++) {
        const struct wpk_access *access = &w->tree->accesses->access[i];
        if (!wpk_feature_is_held(w->tree, access->tensor)) {
            bool single = false;
            double count = wpk_access_count(w->tree->nest->program, access, &shape->tile,
                                            w->tree->contiguous[access->tensor], &single);
            body->loads += count;
            body->singles += single ? count : 0;
        }
    }
}

static void count_flops(struct count *w, int e, const struct wpk_feature_shape *shape,
                        double elements)
{
    w->out->flops +=
        w->tree->node[shape->node].computed * elements * wpk_feature_facts(w->tree, e)->operations;
}

static struct wpk_body *add_body(struct count *w, int e, bool update,
                                 const struct wpk_feature_shape *shape)
{
    int number = w->out->body_count++;
    struct wpk_body *body = &w->out->body[number];
    const struct wpk_feature_node *node = &w->tree->node[shape->node];
    *body = (struct wpk_body){.entry = e,
                              .update = update,
                              .runs = node->runs,
                              .lanes = (double)shape->tile.lanes,
                              .copies = node->copies,
                              .parallel = node->parallel};
    body->values = wpk_feature_product(shape->tile.vectors, WPK_AXES_MAX);
    w->leaf[number] = shape->node;
    return body;
}

static void add_pure(struct count *w, int e, const struct wpk_feature_shape *shape)
{
    const struct wpk_nest_entry *entry = &w->tree->nest->entry[e];
    const struct wpk_stage *stage = wpk_nest_stage(w->tree->nest, entry);
    struct wpk_body *body = add_body(w, e, false, shape);
    if (stage->reduction != WPK_REDUCE_NONE && !entry->expanded) { /* zeros */
        body->arithmetic = body->values;
    } else {
        struct wpk_feature_shape terms = *shape;
        double count = 1;
        for (int a = stage->rank; a < stage->axis_count; a++) {
            terms.tile.vectors[a] = entry->extent[a];
            count *= (double)entry->extent[a];
        }
        count_expression(w, e, &terms, body->values * count, body);
        count_flops(w, e, shape, body->values * body->lanes * count);
    }
    if (!w->tree->held[e]) {
        bool single = wpk_feature_scatters(entry, stage->rank, &shape->tile);
        body->stores = body->values * (single ? body->lanes : 1);
        body->singles += single ? body->stores : 0;
    }
}

static void add_update(struct count *w, int e, const struct wpk_feature_shape *shape)
{
    const struct wpk_nest_entry *entry = &w->tree->nest->entry[e];
    const struct wpk_stage *stage = wpk_nest_stage(w->tree->nest, entry);
    struct wpk_body *body = add_body(w, e, true, shape);
    body->terms =
        wpk_feature_product(shape->tile.vectors + stage->rank, stage->axis_count - stage->rank);
    body->accumulators = body->values / body->terms;
    if (entry->block > 0) { /* adds the sum of a block */
        body->arithmetic = body->values;
    } else {
        count_expression(w, e, shape, body->values, body);
        int terms = shape->dot != NULL ? shape->dot->terms : 1;
        count_flops(w, e, shape, body->values * body->lanes * terms);
        body->multiply_add = wpk_feature_facts(w->tree, e)->multiply_add;
    }
    if (!w->tree->held[e]) {
        bool single = wpk_feature_scatters(entry, stage->rank, &shape->tile);
        double moved = body->accumulators * (single ? body->lanes : 1);
        body->loads += moved;
        body->stores += moved;
        body->singles += single ? 2 * moved : 0;
    }
}

/* ---- totals */

static void add_totals(struct count *w)
{
    struct wpk_features *out = w->out;
    double work = 0, parallel = 0, time = 0, partial = 0, most = 0;
    int threads = w->threads;
    for (int b = 0; b < out->body_count; b++) {
        struct wpk_body *body = &out->body[b];
        double own = body->runs * (body->arithmetic + body->loads + body->stores),
               share = body->parallel / threads;
        double products = body->multiply_add ? body->runs * body->arithmetic : 0;
        out->arithmetic += body->runs * body->arithmetic;
        out->loads += body->runs * body->loads;
        out->stores += body->runs * body->stores;
        out->statements += body->values;
        if (products > most) {
            most = products;
            out->loads_per_multiply_add = body->loads / body->arithmetic;
            out->accumulators = body->accumulators;
        }
        for (int level = 0; level < WPK_CACHES; level++) {
            out->traffic_bytes[level] += body->traffic_bytes[level];
        }
        work += own;
        parallel += body->parallel > 1 ? own : 0;
        time += own * ceil(share) / share / threads;
        partial += own * (1 - w->tree->node[w->leaf[b]].whole);
    }
    out->parallel = parallel / work;
    out->balance = work / (time * threads);
    out->tails = partial / work;
    out->recomputed = out->flops_needed > 0 ? out->flops / out->flops_needed : 1;
}

void wpk_features(const struct wpk_accesses *accesses, const struct wpk_nest *nest,
                  const struct wpk_machine *machine, int threads, struct wpk_features *out)
{
    struct wpk_feature_tree tree;
    struct count count = {.tree = &tree, .machine = machine, .threads = threads, .out = out};
    memset(out, 0, offsetof(struct wpk_features, body));
    wpk_feature_tree_init(&tree, accesses, nest, machine->registers);
    for (int e = 0; e < nest->entry_count; e++) {
        out->flops_needed +=
            nest->entry[e].kind == WPK_NEST_STAGE ? wpk_feature_facts(&tree, e)->flops : 0;
        const struct wpk_nest_entry *entry = &count.tree->nest->entry[e];
        if (entry->kind != WPK_NEST_COPY) {
            add_pure(&count, e, &count.tree->pure[e]);
        } else if (entry->pure.count > 0) {
            /* A copy of an operand loads and stores each of its elements. */
            const struct wpk_feature_shape *shape = &count.tree->pure[e];
            int tensor = count.tree->nest->entry[e].packing.tensor;
            struct wpk_body *body = add_body(&count, e, false, shape);
            bool same = count.tree->contiguous[tensor] ==
                        count.tree->nest->program->tensors[tensor].rank - 1;
            body->loads = body->values * (same ? 1 : body->lanes);
            body->singles = same ? 0 : body->loads;
            body->stores = body->values;
        }
        if (wpk_feature_updates(count.tree, e)) {
            add_update(&count, e, &count.tree->update[e]);
        }
    }
    find_traffic(&tree, count.leaf, machine, out);
    add_totals(&count);
}

/* ---- of a candidate */

wpk_err wpk_space_features(const struct wpk_space *space, const struct wpk_candidate *candidate,
                           double *out)
{
    memset(out, 0, WPK_FEATURES * sizeof(*out));
    return space->options.target.rules->features(space, candidate, out);
}

wpk_err wpk_space_bound(const struct wpk_space *space, const struct wpk_candidate *candidate,
                        double *seconds)
{
    return space->options.target.rules->bound(space, candidate, seconds);
}

wpk_err wpk_space_predict(const struct wpk_space *space, const struct wpk_candidate *candidate,
                          double *out)
{
    double seconds = 1;
    wpk_err err = wpk_device_is_emulated(&space->options.device)
                      ? WPK_OK
                      : wpk_space_bound(space, candidate, &seconds);
    *out = wpk_real_log(fmax(seconds, 1e-12));
    return err;
}
