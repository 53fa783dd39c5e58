/* SPDX-License-Identifier: Apache-2.0 */
#include "search/feature.h"

#include "nest/inside.h"
#include "search/feature_traffic.h"
#include "search/feature_tree.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct count {
    const struct wpk_feature_tree *tree;
    const struct wpk_machine *machine;
    int threads;
    struct wpk_features *out;
    int leaf[2 * WPK_NEST_ENTRIES_MAX]; /* the node of each body */
};

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

/* A copy of an operand loads and stores each of its elements. */
static void add_copy(struct count *w, int e)
{
    const struct wpk_feature_shape *shape = &w->tree->pure[e];
    int tensor = w->tree->nest->entry[e].packing.tensor;
    struct wpk_body *body = add_body(w, e, false, shape);
    bool same = w->tree->contiguous[tensor] == w->tree->nest->program->tensors[tensor].rank - 1;
    body->loads = body->values * (same ? 1 : body->lanes);
    body->singles = same ? 0 : body->loads;
    body->stores = body->values;
}

static void add_bodies(struct count *w, int e)
{
    const struct wpk_nest_entry *entry = &w->tree->nest->entry[e];
    if (entry->kind != WPK_NEST_COPY) {
        add_pure(w, e, &w->tree->pure[e]);
    } else if (entry->pure.count > 0) {
        add_copy(w, e);
    }
    if (wpk_feature_updates(w->tree, e)) {
        add_update(w, e, &w->tree->update[e]);
    }
}

/* ---- totals */

static double instructions_of(const struct wpk_body *body)
{
    return body->runs * (body->arithmetic + body->loads + body->stores);
}

static void add_totals(struct count *w)
{
    struct wpk_features *out = w->out;
    double work = 0, parallel = 0, time = 0, partial = 0, most = 0;
    int threads = w->threads;
    for (int b = 0; b < out->body_count; b++) {
        struct wpk_body *body = &out->body[b];
        double own = instructions_of(body), share = body->parallel / threads;
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
        add_bodies(&count, e);
    }
    wpk_feature_traffic(&tree, count.leaf, machine, out);
    add_totals(&count);
}
