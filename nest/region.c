/* SPDX-License-Identifier: Apache-2.0 */
/* How much of an entry its readers need in one iteration of the loop that it is computed in.
 *
 * Each reader inside that iteration covers a box of its axes, which its indices turn into boxes of
 * the tensors that it reads. The reader whose loop it is covers what its loops leave; the box of
 * any other reader is what its own readers need. Boxes lie where they do in an iteration that
 * begins at the origin. The union of two loads' boxes is as large in every iteration if both move
 * at the same rate. If not, it is taken for the whole dimension. */
#include "nest/nest.h"

#include "ir/node.h"

#include <stdlib.h>
#include <string.h>

bool wpk_nest_is_inside(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                        const struct wpk_nest_place *place)
{
    const struct wpk_nest_place *at = &entry->place;
    while (at->entry >= 0 && at->entry != place->entry) {
        at = &nest->entry[at->entry].place;
    }
    return at->entry == place->entry && at->update == place->update && at->loop >= place->loop;
}

/* The innermost loop over the axis that is no part of the register tile, or -1. */
static int tile_loop(const struct wpk_nest *nest, const struct wpk_nest_loops *loops, int axis)
{
    int found = -1;
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        found = loop->axis == axis && wpk_nest_is_rolled(loop) ? i : found;
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
    tile = tile < 0 ? cut : tile;
    int64_t step = wpk_nest_at(nest, loops, tile)->step;
    return cut == tile || most % step == 0 ? span : span - (step - most % step);
}

/* The range of a tensor's dimension that a load reads when the stage covers a box; `least`: reduced
 * by the largest part that may lie outside the tensor. */
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

/* How the box of an index or of an axis moves from iteration to iteration. Rates are arbitrary
 * numbers: two indices have the same rate if they differ by a constant, else only by chance. */
struct motion {
    uint64_t rate; /* 0: it does not move */
    int64_t grain; /* divides all its steps; 0 where it does not move */
    bool fixed;    /* its size is the same in all iterations */
};

/* A box of a stage's axes, and how it moves. */
struct box {
    int64_t origin[WPK_AXES_MAX];
    int64_t extent[WPK_AXES_MAX];
    struct motion motion[WPK_AXES_MAX];
};

static struct motion motion_of(const struct wpk_program *program, int id, const struct box *box)
{
    const struct wpk_node *node = &program->nodes[id];
    if (node->kind == WPK_NODE_AXIS) {
        return box->motion[node->axis];
    }
    if (node->kind != WPK_NODE_BINARY) {
        return (struct motion){.fixed = true};
    }
    const struct wpk_node *x = &program->nodes[node->arg[0]], *y = &program->nodes[node->arg[1]];
    struct motion a = motion_of(program, node->arg[0], box);
    struct motion b = motion_of(program, node->arg[1], box);
    if (node->op == WPK_BINARY_DIV || node->op == WPK_BINARY_MOD) {
        /* A quotient or a remainder of what moves by multiples of the divisor has the same size
         * in each iteration; so has that of a single value. */
        int64_t divisor = program->nodes[node->arg[1]].integer, low = 0, high = 0;
        bool divides = divisor > 0 && a.grain % divisor == 0;
        if (a.rate == 0) {
            return a;
        }
        wpk_index_range_in(program, node->arg[0], box->origin, box->extent, &low, &high);
        a.fixed = a.fixed && (divides || low == high);
        if (divides && node->op == WPK_BINARY_MOD) {
            return (struct motion){.fixed = a.fixed};
        }
        a.grain = divides ? a.grain / divisor : 1;
        a.rate = mix(mix(a.rate, (uint64_t)node->op), (uint64_t)divisor);
        return a;
    }
    if (node->op == WPK_BINARY_MUL) {
        int64_t factor = x->kind == WPK_NODE_LITERAL ? x->integer : y->integer;
        a = x->kind == WPK_NODE_LITERAL ? b : a;
        return (struct motion){a.rate * (uint64_t)factor, a.grain * llabs(factor), a.fixed};
    }
    return (struct motion){node->op == WPK_BINARY_SUB ? a.rate - b.rate : a.rate + b.rate,
                           wpk_gcd(a.grain, b.grain), a.fixed && b.fixed};
}

/* Only intermediate tensors have entries. */
static void extend_by_loads(const struct wpk_program *program, const struct wpk_stage *stage,
                            const struct box *box, bool least, struct wpk_nest_boxes *boxes)
{
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        const struct wpk_tensor *tensor = &program->tensors[load.node->tensor];
        for (int dim = 0; dim < tensor->rank && tensor->role == WPK_ROLE_INTERMEDIATE; dim++) {
            int64_t low = 0, high = 0;
            read_range(program, stage, load.node, dim, box->origin, box->extent, least, &low,
                       &high);
            /* Add a load's box of one dimension to what was read before. */
            int t = load.node->tensor;
            int64_t end = tensor->extent[dim];
            struct motion motion = motion_of(program, load.node->index[dim], box);
            bool first = !boxes->present[t];
            bool whole = motion.rate == 0 && low <= 0 && high >= end - 1;
            boxes->low[t][dim] = first || low < boxes->low[t][dim] ? low : boxes->low[t][dim];
            boxes->high[t][dim] = first || high > boxes->high[t][dim] ? high : boxes->high[t][dim];
            boxes->varies[t][dim] =
                !motion.fixed ||
                (!first && (boxes->varies[t][dim] || boxes->rate[t][dim] != motion.rate));
            boxes->whole[t][dim] = whole || (!first && boxes->whole[t][dim]);
            boxes->grain[t][dim] =
                first ? motion.grain : wpk_gcd(motion.grain, boxes->grain[t][dim]);
            boxes->rate[t][dim] = motion.rate;
        }
        boxes->present[load.node->tensor] = true;
    }
}

/* A divisor of the begins of all iterations. The last iteration of a loop that shifts ends at the
 * end of its axis, so its begin is a multiple of less than the step. */
static int64_t grain_of(const struct wpk_nest *nest, const struct wpk_nest_entry *reader,
                        const struct wpk_nest_loops *loops, int loop, int axis, int64_t step)
{
    bool shifts = false;
    for (int i = 0; i <= loop; i++) {
        const struct wpk_nest_loop *around = wpk_nest_at(nest, loops, i);
        shifts = shifts || (around->axis == axis && around->tail == WPK_TAIL_SHIFT);
    }
    if (!shifts) {
        return step;
    }
    int tile = tile_loop(nest, loops, axis);
    return tile < 0
               ? 1
               : wpk_gcd(wpk_gcd(step, wpk_nest_at(nest, loops, tile)->step), reader->extent[axis]);
}

/* The box that `reader` covers in one iteration of the entry's place: whole tiles, even past the
 * end of an axis, for an entry that is computed for whole tiles. Where the reader itself begins is
 * not known unless it is computed before everything. */
static void cover(const struct wpk_nest *nest, const struct wpk_nest_entry *reader,
                  const struct wpk_nest_entry *entry, bool least, struct box *box)
{
    const struct wpk_nest_place *place = &entry->place;
    const struct wpk_stage *stage = wpk_nest_stage(nest, reader);
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    for (int a = 0; a < stage->axis_count; a++) {
        int64_t step = wpk_nest_covered(nest, reader, loops, place->loop, a);
        box->origin[a] = 0;
        box->extent[a] =
            least && a < stage->rank ? least_covered(nest, reader, loops, place->loop, a) : step;
        if (!entry->bounded && box->extent[a] > reader->extent[a]) {
            box->extent[a] = reader->extent[a];
        }
        bool moves = box->extent[a] < stage->axes[a].extent;
        int64_t grain = grain_of(nest, reader, loops, place->loop, a, step);
        if (a < stage->rank) { /* a divisor of the reader's begin; 0: it begins at 0 */
            int64_t align = reader->align[a] > 1 ? reader->align[a] : 1;
            bool aligned = reader->grain[a] % align == 0;
            grain = wpk_gcd(grain, aligned ? reader->grain[a] : align);
        }
        box->motion[a] =
            (struct motion){moves ? mix((uint64_t)a + 1, 0) : 0, moves ? grain : 0, true};
    }
}

/* The box of a reader whose own readers are inside the place. */
static void take_reader(const struct wpk_nest_boxes *boxes, const struct wpk_stage *stage,
                        struct box *box)
{
    int t = stage->output;
    for (int a = 0; a < stage->axis_count; a++) {
        int64_t size = a < stage->rank ? boxes->high[t][a] - boxes->low[t][a] + 1 : 0;
        bool part = a < stage->rank && !boxes->varies[t][a] && size < stage->axes[a].extent;
        box->origin[a] = part ? boxes->low[t][a] : 0;
        box->extent[a] = part ? size : stage->axes[a].extent;
        box->motion[a] = (struct motion){.fixed = true};
        if (part) {
            box->motion[a] = (struct motion){boxes->rate[t][a], boxes->grain[t][a], true};
        }
    }
}

/* Add what the entries from boxes->next up to `entry` read in one iteration of its place. */
static void collect(const struct wpk_nest *nest, const struct wpk_nest_entry *entry, bool least,
                    struct wpk_nest_boxes *boxes)
{
    for (; &nest->entry[boxes->next] < entry; boxes->next++) {
        const struct wpk_nest_entry *reader = &nest->entry[boxes->next];
        struct box box;
        if (reader->kind != WPK_NEST_STAGE) {
            continue;
        }
        const struct wpk_stage *stage = wpk_nest_stage(nest, reader);
        if (boxes->next == entry->place.entry) {
            cover(nest, reader, entry, least, &box);
        } else if (entry->place.entry < 0 && !reader->inlined) {
            /* All that is computed of a reader, which is not inside a loop of the place. */
            for (int a = 0; a < stage->axis_count; a++) {
                box.origin[a] = 0;
                box.extent[a] = reader->place.entry < 0 ? reader->extent[a] : stage->axes[a].extent;
                box.motion[a] = (struct motion){.fixed = true};
            }
        } else if (boxes->present[stage->output] &&
                   (reader->inlined || wpk_nest_is_inside(nest, reader, &entry->place))) {
            take_reader(boxes, stage, &box);
        } else {
            continue;
        }
        extend_by_loads(nest->program, stage, &box, least, boxes);
    }
}

static void begin(struct wpk_nest_boxes *boxes, const struct wpk_nest_place *place)
{
    boxes->place = *place;
    boxes->next = place->entry < 0 ? 0 : place->entry;
    memset(boxes->present, 0, sizeof(boxes->present));
}

static void take_grain(const struct wpk_nest_boxes *boxes, const struct wpk_stage *stage,
                       int64_t *grain)
{
    int t = stage->output;
    for (int a = 0; a < stage->rank; a++) {
        bool known = boxes->present[t] && !boxes->varies[t][a] && boxes->low[t][a] == 0;
        grain[a] = known ? boxes->grain[t][a] : 1;
    }
}

/* False if iterations need different sizes: `extent` is then the whole, `least` 1. */
static bool take_box(const struct wpk_nest_boxes *boxes, const struct wpk_stage *stage, bool least,
                     int64_t *extent)
{
    int t = stage->output;
    bool fixed = true;
    for (int a = 0; a < stage->rank && boxes->present[t]; a++) {
        int64_t size = boxes->high[t][a] - boxes->low[t][a] + 1;
        bool varies = boxes->varies[t][a] && !boxes->whole[t][a];
        size = !varies ? size : least ? 1 : extent[a];
        fixed = fixed && (!varies || extent[a] == 1);
        extent[a] = size < extent[a] ? size : extent[a];
    }
    return fixed;
}

static void find_part(const struct wpk_nest *nest, struct wpk_nest_entry *part)
{
    const struct wpk_nest_entry *total = part - 1;
    const struct wpk_stage *stage = wpk_nest_stage(nest, part);
    for (int a = 0; a < stage->axis_count; a++) {
        part->extent[a] = a < stage->rank
                              ? wpk_nest_covered(nest, total, &total->update, part->place.loop, a)
                              : total->extent[a];
    }
    part->extent[total->blocked] = total->block;
}

static bool has_select(const struct wpk_program *program)
{
    bool has = false;
    for (int i = 0; i < program->node_count; i++) {
        has = has || program->nodes[i].kind == WPK_NODE_SELECT;
    }
    return has;
}

/* Where the elements of a tensor begin that are read. */
struct begin {
    int64_t axis[WPK_RANK_MAX]; /* INT64_MAX: none is read */
};

static void read_begins(const struct wpk_program *program, const struct wpk_stage *stage,
                        struct begin *begins)
{
    const struct begin *own = &begins[stage->output];
    int64_t low[WPK_AXES_MAX] = {0}, extent[WPK_AXES_MAX];
    for (int a = 0; a < stage->axis_count; a++) {
        low[a] = a < stage->rank && own->axis[a] < stage->axes[a].extent ? own->axis[a] : 0;
        extent[a] = stage->axes[a].extent - low[a];
    }
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        struct begin *begin = &begins[load.node->tensor];
        for (int d = 0; d < program->tensors[load.node->tensor].rank; d++) {
            int64_t first, last;
            wpk_index_range_in(program, load.node->index[d], low, extent, &first, &last);
            first = first < 0 ? 0 : first;
            begin->axis[d] = first < begin->axis[d] ? first : begin->axis[d];
        }
    }
}

/* An entry before everything begins where what is read of it begins, and an output at 0. A select
 * may need fewer elements: then the begin of an intermediate is not known. */
static void find_begin(const struct wpk_program *program, const struct wpk_stage *stage,
                       int64_t *grain)
{
    struct begin begins[WPK_TENSORS_MAX];
    int s = program->stage_count;
    if (program->tensors[stage->output].role == WPK_ROLE_OUTPUT) {
        return;
    }
    for (int t = 0; t < program->tensor_count; t++) {
        bool output = program->tensors[t].role == WPK_ROLE_OUTPUT;
        for (int d = 0; d < program->tensors[t].rank; d++) {
            begins[t].axis[d] = output ? 0 : INT64_MAX;
        }
    }
    while (&program->stages[--s] != stage) {
        read_begins(program, &program->stages[s], begins);
    }
    for (int a = 0; a < stage->rank; a++) {
        grain[a] = has_select(program) ? 1 : begins[stage->output].axis[a];
    }
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
    if (entry->place.entry < 0 && !entry->bounded) {
        find_begin(nest->program, stage, entry->grain);
        return;
    }
    if (entry->bounded) {
        const struct wpk_nest_place *last = &nest->tile.place, *place = &entry->place;
        if (place->entry < 0 || last->entry != place->entry || last->update != place->update ||
            last->loop != place->loop || nest->tile.next < place->entry) {
            begin(&nest->tile, &entry->place);
        }
        collect(nest, entry, false, &nest->tile);
        nest->full = !take_box(&nest->tile, stage, false, entry->extent) || nest->full;
        take_grain(&nest->tile, stage, entry->grain);
        return;
    }
    for (int least = 0; least <= 1; least++) {
        begin(&nest->tile, &entry->place);
        collect(nest, entry, least, &nest->tile);
        (void)take_box(&nest->tile, stage, least, least ? entry->least : entry->extent);
        if (least == 0) {
            take_grain(&nest->tile, stage, entry->grain);
        }
    }
    nest->tile.place.entry = -1;
}
