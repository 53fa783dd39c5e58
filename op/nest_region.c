/* SPDX-License-Identifier: Apache-2.0 */
/* How much of an entry its readers need in one iteration of the loop that it is computed in.
 *
 * Each reader inside that iteration covers a box of its axes, which its indices turn into boxes of
 * the tensors that it reads. The reader whose loop it is covers what its loops leave; the box of
 * any other reader is what its own readers need. Boxes lie where they do in an iteration that
 * begins at the origin. What two loads read together is as large in every iteration if both move at
 * the same rate. If not, it is taken for the whole dimension. */
#include "op/nest.h"

#include <string.h>

/* Is the entry computed inside the iterations of the loop that `place` names? */
static bool is_inside(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                      const struct wpk_nest_place *place)
{
    const struct wpk_nest_place *at = &entry->place;
    while (at->entry >= 0 && at->entry != place->entry) {
        at = &nest->entry[at->entry].place;
    }
    return at->entry == place->entry && (at->update != place->update || at->loop >= place->loop);
}

/* The innermost loop over the axis that is no part of the register tile, or -1. */
static int tile_loop(const struct wpk_nest *nest, const struct wpk_nest_loops *loops, int axis)
{
    int found = -1;
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        bool rolled = loop->binding == WPK_BIND_SERIAL || loop->binding == WPK_BIND_PARALLEL;
        found = loop->axis == axis && rolled ? i : found;
    }
    return found;
}

/* The least that an iteration of the loop covers of a pure axis. Each iteration of a loop that
 * shifts covers the same, but tiles of the last block overlap. */
static int64_t least_covered(const struct wpk_nest *nest, const struct wpk_nest_entry *reader,
                             const struct wpk_nest_loops *loops, int loop, int axis)
{
    int64_t most = reader->extent[axis], span = most;
    int cut = -1;
    for (int i = 0; i <= loop; i++) {
        const struct wpk_nest_loop *around = wpk_nest_at(nest, loops, i);
        if (around->axis == axis && around->step <= span) {
            span = around->step;
            cut = i;
        }
    }
    if (span >= most) {
        return reader->least[axis];
    }
    if (reader->least[axis] != most) {
        return 1;
    }
    if (wpk_nest_at(nest, loops, cut)->tail == WPK_TAIL_GUARD) {
        return most % span == 0 ? span : most % span;
    }
    int tile = tile_loop(nest, loops, axis);
    int64_t step = wpk_nest_at(nest, loops, tile)->step;
    return cut == tile || most % step == 0 ? span : span - (step - most % step);
}

/* What a dimension of a load reads of its tensor when the stage covers a box; `least`: where the
 * tensor ends. */
static void read_range(const struct wpk_program *program, const struct wpk_stage *stage,
                       const struct wpk_node *load, int dim, const int64_t *origin,
                       const int64_t *extent, bool least, int64_t *low, int64_t *high)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    int axis = wpk_index_axis(program, load->index[dim]);
    if (axis >= 0 && !least) {
        *low = origin[axis];
        *high = origin[axis] + extent[axis] - 1;
        return;
    }
    int64_t first = 0, last = 0;
    wpk_index_range_in(program, load->index[dim], origin, extent, low, high);
    if (least) {
        wpk_index_range(program, stage, load->index[dim], &first, &last);
        int64_t begin = -tensor->pad_before[dim];
        int64_t end = tensor->extent[dim] + tensor->pad_after[dim];
        *low += first < begin ? begin - first : 0;
        *high -= last >= end ? last - end + 1 : 0;
    }
    *high = *high < *low ? *low : *high;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 31;
}

/* The rate of an index, given those of the axes. Rates of axes are arbitrary numbers: equal sums of
 * them are equal indices but for constants, save by chance. A quotient of what moves has a rate of
 * its own. */
static uint64_t rate_of(const struct wpk_program *program, int id, const uint64_t *axes)
{
    const struct wpk_node *node = &program->nodes[id];
    if (node->kind == WPK_NODE_AXIS) {
        return axes[node->axis];
    }
    if (node->kind != WPK_NODE_BINARY) {
        return 0;
    }
    uint64_t a = rate_of(program, node->arg[0], axes), b = rate_of(program, node->arg[1], axes);
    const struct wpk_node *x = &program->nodes[node->arg[0]], *y = &program->nodes[node->arg[1]];
    if (node->op == WPK_BINARY_ADD || node->op == WPK_BINARY_SUB) {
        return node->op == WPK_BINARY_ADD ? a + b : a - b;
    }
    if (node->op == WPK_BINARY_MUL && x->kind == WPK_NODE_LITERAL) {
        return b * (uint64_t)x->integer;
    }
    if (node->op == WPK_BINARY_MUL && y->kind == WPK_NODE_LITERAL) {
        return a * (uint64_t)y->integer;
    }
    return a == 0 && b == 0 ? 0 : mix(mix(a, (uint64_t)node->op), b + (uint64_t)y->integer);
}

/* Only intermediate tensors have entries.
 *   shape  origin, extent, rate [axis_count] of the box that the stage covers */
static void extend_by_loads(const struct wpk_program *program, const struct wpk_stage *stage,
                            const int64_t *origin, const int64_t *extent, const uint64_t *rate,
                            bool least, struct wpk_nest_boxes *boxes)
{
    int loads[WPK_LOADS_MAX];
    int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
    for (int i = 0; i < count; i++) {
        const struct wpk_node *load = &program->nodes[loads[i]];
        int t = load->tensor;
        if (program->tensors[t].role != WPK_ROLE_INTERMEDIATE) {
            continue;
        }
        for (int dim = 0; dim < program->tensors[t].rank; dim++) {
            int64_t low = 0, high = 0;
            uint64_t moves = rate_of(program, load->index[dim], rate);
            read_range(program, stage, load, dim, origin, extent, least, &low, &high);
            bool whole = moves == 0 && low <= 0 && high >= program->tensors[t].extent[dim] - 1;
            boxes->apart[t][dim] =
                boxes->present[t] && (boxes->apart[t][dim] || boxes->rate[t][dim] != moves);
            boxes->whole[t][dim] = whole || (boxes->present[t] && boxes->whole[t][dim]);
            boxes->rate[t][dim] = moves;
            if (!boxes->present[t] || low < boxes->low[t][dim]) {
                boxes->low[t][dim] = low;
            }
            if (!boxes->present[t] || high > boxes->high[t][dim]) {
                boxes->high[t][dim] = high;
            }
        }
        boxes->present[t] = true;
    }
}

/* The box that `reader` covers in one iteration of the entry's place: whole tiles, even past the
 * end of an axis, for an entry that is computed for whole tiles. */
static void cover(const struct wpk_nest *nest, const struct wpk_nest_entry *reader,
                  const struct wpk_nest_entry *entry, bool least, int64_t *extent)
{
    const struct wpk_nest_place *place = &entry->place;
    const struct wpk_stage *stage = wpk_nest_stage(nest, reader);
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    for (int a = 0; a < stage->axis_count; a++) {
        extent[a] = least && a < stage->rank
                        ? least_covered(nest, reader, loops, place->loop, a)
                        : wpk_nest_covered(nest, reader, loops, place->loop, a);
        if (!entry->bounded && extent[a] > reader->extent[a]) {
            extent[a] = reader->extent[a];
        }
    }
}

/* Add what the entries from boxes->next up to `entry` read in one iteration of its place. */
static void collect(const struct wpk_nest *nest, const struct wpk_nest_entry *entry, bool least,
                    struct wpk_nest_boxes *boxes)
{
    for (; &nest->entry[boxes->next] < entry; boxes->next++) {
        const struct wpk_nest_entry *reader = &nest->entry[boxes->next];
        int64_t origin[WPK_AXES_MAX] = {0}, extent[WPK_AXES_MAX];
        uint64_t rate[WPK_AXES_MAX] = {0};
        if (reader->kind != WPK_NEST_STAGE) {
            continue;
        }
        const struct wpk_stage *stage = wpk_nest_stage(nest, reader);
        int t = stage->output;
        bool first = boxes->next == entry->place.entry;
        if (first) {
            cover(nest, reader, entry, least, extent);
        } else if (!boxes->present[t] || !is_inside(nest, reader, &entry->place)) {
            continue;
        }
        for (int a = 0; a < stage->axis_count; a++) {
            int64_t size = stage->axes[a].extent;
            if (first) {
                rate[a] = extent[a] < size ? mix((uint64_t)a + 1, 0) : 0;
            } else if (a < stage->rank) {
                origin[a] = boxes->low[t][a];
                extent[a] = boxes->high[t][a] - boxes->low[t][a] + 1;
                rate[a] = boxes->rate[t][a];
            } else {
                extent[a] = size;
            }
            bool apart = !first && a < stage->rank && boxes->apart[t][a];
            origin[a] = apart ? 0 : origin[a];
            extent[a] = !first && (apart || extent[a] > size) ? size : extent[a];
        }
        extend_by_loads(nest->program, stage, origin, extent, rate, least, boxes);
    }
}

static bool is_same(const struct wpk_nest_place *a, const struct wpk_nest_place *b)
{
    return a->entry == b->entry && a->update == b->update && a->loop == b->loop;
}

static void begin(struct wpk_nest_boxes *boxes, const struct wpk_nest_place *place)
{
    boxes->place = *place;
    boxes->next = place->entry;
    memset(boxes->present, 0, sizeof(boxes->present));
}

static void take_box(const struct wpk_nest_boxes *boxes, const struct wpk_stage *stage, bool least,
                     int64_t *extent)
{
    int t = stage->output;
    for (int a = 0; a < stage->rank && boxes->present[t]; a++) {
        int64_t size = boxes->high[t][a] - boxes->low[t][a] + 1;
        bool part = boxes->apart[t][a] && !boxes->whole[t][a];
        size = !part ? size : least ? 1 : extent[a];
        extent[a] = size < extent[a] ? size : extent[a];
    }
}

static void find_part(const struct wpk_nest *nest, struct wpk_nest_entry *part)
{
    const struct wpk_nest_entry *total = part - 1;
    const struct wpk_stage *stage = wpk_nest_stage(nest, part);
    memcpy(part->extent, total->extent, (size_t)stage->axis_count * sizeof(part->extent[0]));
    part->extent[total->blocked] = total->block;
}

/* The members of a group have one place and come one after the other: their boxes are kept. */
void wpk_nest_find_region(struct wpk_nest *nest)
{
    struct wpk_nest_entry *entry = &nest->entry[nest->entry_count - 1];
    if (entry->kind == WPK_NEST_PART) {
        find_part(nest, entry);
        return;
    }
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
    for (int a = 0; a < stage->axis_count; a++) {
        entry->extent[a] = stage->axes[a].extent;
    }
    memcpy(entry->least, entry->extent, sizeof(entry->least));
    if (entry->place.entry < 0) {
        return;
    }
    if (entry->bounded) {
        if (!is_same(&nest->tile.place, &entry->place) || nest->tile.next < entry->place.entry) {
            begin(&nest->tile, &entry->place);
        }
        collect(nest, entry, false, &nest->tile);
        take_box(&nest->tile, stage, false, entry->extent);
        return;
    }
    for (int least = 0; least <= 1; least++) {
        begin(&nest->tile, &entry->place);
        collect(nest, entry, least, &nest->tile);
        take_box(&nest->tile, stage, least, least ? entry->least : entry->extent);
    }
    nest->tile.place.entry = -1;
}
