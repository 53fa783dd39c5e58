/* SPDX-License-Identifier: Apache-2.0 */
#include "search/feature.h"

#include <string.h>

const struct wpk_stage_access *wpk_feature_facts(const struct wpk_feature_tree *w, int entry)
{
    return &w->accesses->stage[w->nest->entry[entry].stage];
}

double wpk_feature_product(const int64_t *values, int count)
{
    double result = 1;
    for (int i = 0; i < count; i++) {
        result *= (double)values[i];
    }
    return result;
}

bool wpk_feature_updates(const struct wpk_feature_tree *w, int e)
{
    const struct wpk_nest_entry *entry = &w->nest->entry[e];
    return entry->kind != WPK_NEST_COPY && !entry->inlined && !entry->expanded &&
           wpk_nest_stage(w->nest, entry)->reduction != WPK_REDUCE_NONE;
}

bool wpk_feature_is_held(const struct wpk_feature_tree *w, int tensor)
{
    return w->writer[tensor] >= 0 && w->held[w->writer[tensor]];
}

/* ---- the tree of loops */

static int64_t *add_row(struct wpk_feature_tree *w, const int64_t *widths, int *number)
{
    WPK_ASSERT(w->row_count < WPK_FEATURE_ROWS_MAX);
    *number = w->row_count++;
    memcpy(w->row[*number], widths, sizeof(w->row[0]));
    return w->row[*number];
}

static int add_node(struct wpk_feature_tree *w, int parent, int entry, const int64_t *widths)
{
    int number = w->node_count++;
    struct wpk_feature_node *node = &w->node[number];
    *node = (struct wpk_feature_node){.parent = parent, .entry = entry};
    node->runs = node->computed = node->parallel = node->copies = node->whole = 1;
    if (parent >= 0) {
        *node = w->node[parent];
        node->parent = parent;
        node->entry = entry;
        node->depth++;
    }
    (void)add_row(w, widths, &node->row);
    return number;
}

/* A loop around bodies: a node, unless it has one iteration. */
static int enter_loop(struct wpk_feature_tree *w, int around, int entry,
                      const struct wpk_nest_loop *loop, int64_t *widths)
{
    int64_t span = widths[loop->axis], step = loop->step;
    double iterations = (double)((span + step - 1) / step);
    bool partial = span % step != 0;
    widths[loop->axis] = step < span ? step : span;
    if ((iterations <= 1 && !partial) || w->node_count == WPK_FEATURE_NODES_MAX ||
        w->row_count + 2 * WPK_FEATURE_DEPTH_MAX > WPK_FEATURE_ROWS_MAX ||
        w->node[around].depth + 2 > WPK_FEATURE_DEPTH_MAX) {
        return around;
    }
    int number = add_node(w, around, entry, widths);
    struct wpk_feature_node *node = &w->node[number];
    bool cut = loop->tail == WPK_TAIL_GUARD || loop->tail == WPK_TAIL_PREDICATE;
    node->runs *= iterations;
    node->computed *= partial && cut ? (double)span / (double)step : iterations;
    node->parallel *= loop->binding == WPK_BIND_PARALLEL ? iterations : 1;
    node->copies *= partial && cut && !loop->whole && iterations > 1 ? 2 : 1;
    node->whole *= partial ? 1 - 1 / iterations : 1;
    return number;
}

static void enter_definition(struct wpk_feature_tree *w, int e, const struct wpk_nest_loops *loops,
                             struct wpk_feature_shape *out)
{
    const struct wpk_nest_entry *entry = &w->nest->entry[e];
    int rank = entry->kind == WPK_NEST_COPY ? entry->packing.dim_count
                                            : wpk_nest_stage(w->nest, entry)->rank;
    int64_t widths[WPK_AXES_MAX], span[WPK_AXES_MAX];
    memcpy(widths, entry->extent, sizeof(widths));
    *out = (struct wpk_feature_shape){.tile = {.lane_axis = -1, .lanes = 1}, .node = w->place[e]};
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        out->tile.vectors[a] = 1;
        span[a] = 0;
    }
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(w->nest, loops, i);
        int a = loop->axis;
        span[a] = span[a] == 0 ? entry->extent[a] : span[a];
        int64_t iterations = (span[a] + loop->step - 1) / loop->step;
        if (loop->binding == WPK_BIND_LANES) {
            out->tile.lane_axis = a;
            out->tile.lanes = iterations;
        } else if (loop->binding == WPK_BIND_DOT) {
            out->dot = wpk_instruction_at(loop->instruction);
        } else if (loop->binding == WPK_BIND_UNROLL) {
            out->tile.vectors[a] *= iterations;
        } else {
            out->node = enter_loop(w, out->node, e, loop, widths);
            out->rolls = out->rolls || (a < rank && iterations > 1);
        }
        span[a] = loop->step;
        w->loop_node[loops->first + i] = out->node;
    }
}

/* ---- widths of what is computed inside loops of others */

const int64_t *wpk_feature_widths_at(const struct wpk_feature_tree *w, int e, int node)
{
    return w->node[node].entry == e ? w->row[w->node[node].row]
                                    : w->row[w->rows[e] + w->node[node].depth];
}

int64_t wpk_feature_width(const struct wpk_feature_tree *w, const struct wpk_access *access,
                          int dim, const int64_t *widths)
{
    int64_t low = 0, high = 0;
    wpk_access_range(w->nest->program, &access->dim[dim], widths, &low, &high);
    while (access->next >= 0) {
        int64_t first = 0, last = 0;
        access = &w->accesses->access[access->next];
        wpk_access_range(w->nest->program, &access->dim[dim], widths, &first, &last);
        low = first < low ? first : low;
        high = last > high ? last : high;
    }
    return high - low + 1;
}

/* The elements of an entry, along each axis, that its readers access in one iteration of a node
 * around its place. */
static void find_widths(const struct wpk_feature_tree *w, int e, int node, int64_t *out)
{
    const struct wpk_stage *stage = wpk_nest_stage(w->nest, &w->nest->entry[e]);
    for (int a = 0; a < stage->rank; a++) {
        out[a] = 1;
    }
    for (int r = w->nest->entry[e].place.entry; r < e; r++) {
        if (w->nest->entry[r].kind != WPK_NEST_STAGE) {
            continue;
        }
        const struct wpk_stage_access *facts = wpk_feature_facts(w, r);
        for (int i = facts->first; i < facts->first + facts->count; i++) {
            const struct wpk_access *access = &w->accesses->access[i];
            for (int a = 0; a < stage->rank && access->tensor == stage->output && access->first;
                 a++) {
                int64_t width = wpk_feature_width(w, access, a, wpk_feature_widths_at(w, r, node));
                width = width < stage->axes[a].extent ? width : stage->axes[a].extent;
                out[a] = width > out[a] ? width : out[a];
            }
        }
    }
}

static int place_node(const struct wpk_feature_tree *w, const struct wpk_nest_place *place)
{
    if (place->entry < 0) {
        return 0;
    }
    const struct wpk_nest_entry *at = &w->nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &at->update : &at->pure;
    return place->loop < 0 ? w->place[place->entry] : w->loop_node[loops->first + place->loop];
}

static void enter_entry(struct wpk_feature_tree *w, int e)
{
    const struct wpk_nest_entry *entry = &w->nest->entry[e];
    int path[WPK_FEATURE_DEPTH_MAX], node = w->place[e] = place_node(w, &entry->place);
    int depth = w->node[node].depth;
    w->rows[e] = w->row_count;
    for (int d = depth; d >= 0; d--) {
        path[d] = node;
        node = w->node[node].parent;
    }
    for (int d = 0; d <= depth; d++) {
        int number;
        int64_t *widths = add_row(w, entry->extent, &number);
        if (d < depth && entry->kind == WPK_NEST_STAGE) {
            find_widths(w, e, path[d], widths);
        } else if (d < depth &&
                   entry->kind == WPK_NEST_PART) { /* the part of a sum: what its total has there */
            memcpy(widths, wpk_feature_widths_at(w, e - 1, path[d]), sizeof(w->row[0]));
        }
    }
}

/* An inlined entry has the lanes of what reads it. */
static void describe_inlined(struct wpk_feature_tree *w, int e, struct wpk_feature_shape *out)
{
    const struct wpk_nest_entry *entry = &w->nest->entry[e];
    const struct wpk_stage *stage = wpk_nest_stage(w->nest, entry);
    *out = (struct wpk_feature_shape){.tile = {.lane_axis = -1, .lanes = 1}, .node = w->place[e]};
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        out->tile.vectors[a] = a < stage->rank ? entry->extent[a] : 1;
    }
    for (int r = e - 1; r >= 0 && r >= entry->place.entry; r--) {
        const struct wpk_stage_access *facts = wpk_feature_facts(w, r);
        const struct wpk_feature_shape *shape =
            wpk_feature_updates(w, r) ? &w->update[r] : &w->pure[r];
        for (int i = facts->first; i < facts->first + facts->count; i++) {
            const struct wpk_access *access = &w->accesses->access[i];
            for (int a = 0; a < stage->rank && access->tensor == stage->output; a++) {
                if (shape->tile.lane_axis >= 0 &&
                    (access->dim[a].axes >> shape->tile.lane_axis & 1) != 0 &&
                    entry->extent[a] >= shape->tile.lanes) {
                    out->tile.lane_axis = a;
                    out->tile.lanes = shape->tile.lanes;
                    out->tile.vectors[a] = entry->extent[a] / shape->tile.lanes;
                    return;
                }
            }
        }
    }
}

bool wpk_feature_scatters(const struct wpk_nest_entry *entry, int rank,
                          const struct wpk_access_tile *tile)
{
    int lane = tile->lane_axis;
    double inside = 1;
    for (int d = rank - 1; d >= 0 && lane >= 0; d--) {
        int axis = entry->reordered ? entry->storage[d] : d;
        if (axis == lane) {
            return inside > 1;
        }
        inside *= (double)entry->extent[axis];
    }
    return false;
}

/* The elements of an entry are in registers where its definitions are unrolled altogether, there
 * are few of them, and vectors of them lie in memory as such: compilers take apart the others. */
static bool stays_in_registers(const struct wpk_feature_tree *w, int e)
{
    const struct wpk_nest_entry *entry = &w->nest->entry[e];
    int rank = wpk_nest_stage(w->nest, entry)->rank;
    bool rolls = w->pure[e].rolls || (wpk_feature_updates(w, e) && w->update[e].rolls);
    return entry->place.entry >= 0 && !rolls &&
           !wpk_feature_scatters(entry, rank, &w->pure[e].tile) &&
           wpk_feature_product(entry->extent, rank) / (double)w->pure[e].tile.lanes <= w->registers;
}

static void describe_entry(struct wpk_feature_tree *w, int e)
{
    const struct wpk_nest_entry *entry = &w->nest->entry[e];
    enter_entry(w, e);
    if (entry->inlined) {
        describe_inlined(w, e, &w->pure[e]);
        w->held[e] = true;
        return;
    }
    enter_definition(w, e, &entry->pure, &w->pure[e]);
    if (wpk_feature_updates(w, e)) {
        enter_definition(w, e, &entry->update, &w->update[e]);
    }
    w->held[e] = entry->kind != WPK_NEST_COPY && stays_in_registers(w, e);
}

void wpk_feature_tree_init(struct wpk_feature_tree *w, const struct wpk_accesses *accesses,
                           const struct wpk_nest *nest, int registers)
{
    const struct wpk_program *program = nest->program;
    static const int64_t whole[WPK_AXES_MAX] = {0};
    w->accesses = accesses;
    w->nest = nest;
    w->registers = registers;
    w->node_count = w->row_count = 0;
    (void)add_node(w, -1, -1, whole);
    for (int t = 0; t < program->tensor_count; t++) {
        w->writer[t] = -1;
        w->contiguous[t] = program->tensors[t].rank - 1;
    }
    for (int e = 0; e < w->nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &w->nest->entry[e];
        if (entry->kind == WPK_NEST_STAGE) {
            const struct wpk_stage *stage = wpk_nest_stage(w->nest, entry);
            w->writer[stage->output] = e;
            w->contiguous[stage->output] =
                entry->reordered ? entry->storage[stage->rank - 1] : stage->rank - 1;
        } else if (entry->kind == WPK_NEST_COPY) {
            w->contiguous[entry->packing.tensor] = entry->packing.dim[entry->packing.dim_count - 1];
        }
    }
    for (int e = 0; e < nest->entry_count; e++) {
        describe_entry(w, e);
    }
}
