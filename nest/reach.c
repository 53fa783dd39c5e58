/* SPDX-License-Identifier: Apache-2.0 */
/* The regions that Halide computes of each stage, and reads for it.
 *
 * An entry is computed for a box of its axes, which follows from what its readers need in one
 * iteration of its place. `extent` and `align` make the box larger. The loops of the entry then
 * cover the box, and steps that do not divide it reach past it. Entries inside these loops are
 * needed for all that is covered; entries at the same place or further out only for the box itself.
 *
 * Of the loops around a place the first and the last iteration are looked at, in each combination
 * of axes. They reach farthest where what is needed moves one way. Where iterations need different
 * lengths, one in between may round to more: the most that rounding adds is taken. Where an index
 * wraps in between, or combinations are too many, all given tensors are limited. */
#include "nest/reach.h"

#include <stdlib.h>
#include <string.h>

#define VARYING_MAX 10    /* axes whose first and last iteration differ */
#define PLACES_MAX 2048   /* that are looked at, with each combination */
#define INLINED_MAX 65536 /* loads of inlined stages that are followed */

struct range {
    int64_t low, high;
};

/* Of a stage's axes, or of a tensor's dimensions. */
struct box {
    bool present;
    struct range axis[WPK_AXES_MAX];
};

_Static_assert(WPK_RANK_MAX <= WPK_AXES_MAX, "a box has room for a tensor's dimensions");
_Static_assert(WPK_RANK_MAX <= 16, "a bit for each dimension");

struct walk {
    const struct wpk_nest *nest;
    const struct wpk_program *program; /* expanded: terms of sums have loads of their own */
    struct wpk_nest_reach *out;
    int entry_of[WPK_STAGES_MAX];
    int load[WPK_STAGES_MAX][WPK_LOADS_MAX];
    int loads[WPK_STAGES_MAX]; /* how many */
    int places, inlined;
    bool all;  /* are limited: no more is looked at */
    bool full; /* memory ran out */
};

/* ---- what a stage reads */

static unsigned axes_of(const struct wpk_program *program, int index)
{
    const struct wpk_node *node = &program->nodes[index];
    unsigned axes = 0;
    for (int d = 0; node->kind == WPK_NODE_LOAD && d < program->tensors[node->tensor].rank; d++) {
        axes |= axes_of(program, node->index[d]);
    }
    return node->kind == WPK_NODE_AXIS   ? 1U << node->axis
           : node->kind == WPK_NODE_CAST ? axes_of(program, node->arg[0])
           : node->kind == WPK_NODE_BINARY
               ? axes_of(program, node->arg[0]) | axes_of(program, node->arg[1])
               : axes;
}

static struct range range_of(const struct wpk_program *program, const struct wpk_stage *stage,
                             int index, const struct box *box)
{
    int64_t low[WPK_AXES_MAX] = {0}, extent[WPK_AXES_MAX] = {0};
    struct range out = {0, 0};
    for (int a = 0; a < stage->axis_count; a++) {
        low[a] = box->axis[a].low;
        extent[a] = box->axis[a].high - low[a] + 1;
    }
    wpk_index_range_in(program, index, low, extent, &out.low, &out.high);
    return out;
}

static int64_t limit(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static void extend(struct box *box, const struct box *by, int rank)
{
    for (int d = 0; d < rank; d++) {
        struct range *range = &box->axis[d];
        const struct range *other = &by->axis[d];
        if (!box->present) {
            *range = *other;
            continue;
        }
        range->low = other->low < range->low ? other->low : range->low;
        range->high = other->high > range->high ? other->high : range->high;
    }
    box->present = true;
}

/* No more of it can be computed than its buffer holds. */
static bool is_output(const struct wpk_program *program, int tensor)
{
    return program->tensors[tensor].role == WPK_ROLE_OUTPUT;
}

/* Limit all given tensors, and outputs, if no region is known. */
static void limit_all(struct walk *w)
{
    const struct wpk_program *program = w->program;
    for (int s = 0; s < program->stage_count; s++) {
        for (int t = 0; t < program->tensor_count; t++) {
            unsigned all = (1U << program->tensors[t].rank) - 1;
            bool given = wpk_program_writer(program, t) < 0 || is_output(program, t);
            w->out->limited[s][t] = (uint16_t)(given ? all : 0);
        }
    }
    w->all = true;
}

static void limit_given(struct walk *w, int s, int tensor, const struct box *index)
{
    const struct wpk_tensor *t = &w->program->tensors[tensor];
    for (int d = 0; d < t->rank; d++) {
        const struct range *range = &index->axis[d];
        if (range->low < -t->pad_before[d] || range->high >= t->extent[d] + t->pad_after[d]) {
            w->out->limited[s][tensor] |= (uint16_t)(1U << d);
        }
    }
}

static void take_whole(const struct wpk_stage *stage, int first, struct box *box)
{
    for (int a = first; a < stage->axis_count; a++) {
        box->axis[a] = (struct range){.high = stage->axes[a].extent - 1};
    }
}

/* Add what stage `s` reads of entries to their boxes. Without boxes: note what it reads outside of
 * given tensors. An index that may leave its tensor is limited anyway. */
static void read_box(struct walk *w, int s, const struct box *box, struct box *boxes)
{
    const struct wpk_program *program = w->program;
    const struct wpk_stage *stage = &program->stages[s];
    for (int i = 0; i < w->loads[s] && !w->all; i++) {
        const struct wpk_node *load = &program->nodes[w->load[s][i]];
        const struct wpk_tensor *t = &program->tensors[load->tensor];
        struct box index = {.present = true};
        int writer = wpk_program_writer(program, load->tensor);
        for (int d = 0; d < t->rank; d++) {
            int64_t first = 0, last = 0, begin = -t->pad_before[d];
            int64_t end = t->extent[d] + t->pad_after[d] - 1;
            struct range *range = &index.axis[d];
            *range = range_of(program, stage, load->index[d], box);
            wpk_index_range(program, stage, load->index[d], &first, &last);
            if (first < begin || last > end) {
                range->low = limit(range->low, begin, end);
                range->high = limit(range->high, begin, end);
            }
        }
        if (boxes == NULL && (writer < 0 || is_output(program, load->tensor))) {
            limit_given(w, s, load->tensor, &index);
        }
        if (writer < 0) {
            continue;
        }
        for (int d = 0; d < t->rank && is_output(program, load->tensor); d++) {
            index.axis[d].low = limit(index.axis[d].low, 0, t->extent[d] - 1);
            index.axis[d].high = limit(index.axis[d].high, 0, t->extent[d] - 1);
        }
        int e = w->entry_of[writer];
        if (!w->nest->entry[e].inlined) {
            if (boxes != NULL) {
                extend(&boxes[e], &index, t->rank);
            }
        } else if (w->inlined++ < INLINED_MAX) {
            take_whole(&program->stages[writer], program->stages[writer].rank, &index);
            read_box(w, writer, &index, boxes);
        } else {
            limit_all(w);
        }
    }
}

/* ---- what loops cover */

static bool reads(const struct walk *w, int s, int tensor, unsigned moving, unsigned *axes)
{
    bool found = false;
    for (int i = 0; i < w->loads[s]; i++) {
        const struct wpk_node *load = &w->program->nodes[w->load[s][i]];
        for (int d = 0; d < w->program->tensors[tensor].rank && load->tensor == tensor; d++) {
            *axes |= (axes_of(w->program, load->index[d]) & moving) != 0 ? 1U << d : 0;
        }
        found = found || load->tensor == tensor;
    }
    return found;
}

/* The axes along which values stay from one iteration to the next, so that any number of elements
 * is left to be computed; all, where other stages read the entry, too. */
static unsigned sliding_axes(const struct walk *w, int e)
{
    const struct wpk_nest *nest = w->nest;
    const struct wpk_nest_entry *entry = &nest->entry[e];
    if (!entry->slides) {
        return 0;
    }
    const struct wpk_nest_entry *host = &nest->entry[entry->place.entry];
    const struct wpk_nest_loops *loops = entry->place.update ? &host->update : &host->pure;
    int tensor = wpk_nest_stage(nest, entry)->output;
    unsigned moving = 0, axes = 0;
    for (int i = entry->slide + 1; i <= entry->place.loop; i++) {
        moving |= 1U << wpk_nest_at(nest, loops, i)->axis;
    }
    for (int r = 0; r < e; r++) {
        const struct wpk_nest_entry *reader = &nest->entry[r];
        bool found = reads(w, reader->stage, tensor, moving, &axes);
        axes |= found && reader != host ? UINT32_MAX : 0;
    }
    return axes;
}

/* True if iterations around the entry may need different lengths of some axis of it, or of what it
 * is computed in. */
static bool varies(const struct wpk_nest *nest, int e)
{
    bool out = false;
    for (; nest->entry[e].place.entry >= 0 && !out; e = nest->entry[e].place.entry) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        for (int a = 0; a < wpk_nest_stage(nest, entry)->rank; a++) {
            bool same = entry->bounded || entry->least[a] == entry->extent[a];
            out = out || !same || entry->align[a] > 1;
        }
    }
    return out;
}

/* The part of `whole` that the loops over an axis cover in the first or last iteration of those at
 * and around the loop `inner` of the definition; -1: in all iterations. */
static struct range cover(const struct walk *w, int e, bool update, int axis, int inner, bool last,
                          const struct range *whole)
{
    const struct wpk_nest *nest = w->nest;
    const struct wpk_nest_entry *entry = &nest->entry[e];
    const struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    bool any = axis < wpk_nest_stage(nest, entry)->rank &&
               (varies(nest, e) || (sliding_axes(w, e) >> axis & 1) != 0);
    const struct wpk_nest_iterations at = {.inner = inner, .last = last};
    int64_t begin = 0, end = whole->high - whole->low + 1;
    wpk_nest_cover(nest, loops, axis, &at, any, &begin, &end);
    return (struct range){.low = whole->low + begin, .high = whole->low + end - 1};
}

/* ---- entries */

static bool is_at(const struct wpk_nest_entry *entry, const struct wpk_nest_place *place)
{
    return entry->place.entry == place->entry &&
           (place->entry < 0 ||
            (entry->place.update == place->update && entry->place.loop == place->loop));
}

static int64_t round_down(int64_t value, int64_t by)
{
    return (value - (value % by + by) % by);
}

/* Enlarge the needed box to the computed one (extent, align); `here`: at the place that is looked
 * at. */
static void grow(const struct wpk_nest_entry *entry, int rank, bool here, struct box *box)
{
    for (int a = 0; a < rank; a++) {
        struct range *range = &box->axis[a];
        int64_t end = range->low + entry->extent[a] - 1, align = entry->align[a];
        if (entry->bounded && here && !entry->slides && end > range->high) {
            range->high = end;
        }
        if (align > 1) {
            range->low = round_down(range->low, align);
            range->high = round_down(range->high + align, align) - 1;
        }
    }
}

static void walk_place(struct walk *w, const struct wpk_nest_place *place, const struct box *host);

/* How an iteration differs from the one before, a bit for each axis. */
struct motion {
    unsigned varying; /* of all below */
    unsigned aligned; /* quotients and remainders move evenly, or not at all */
    unsigned even;    /* and all iterations are as long */
    unsigned rough;   /* else: the axis moves as an index does that is not affine */
};

/* True if the range of an index in some iteration is within those of the first and the last of
 * each axis. */
static bool is_steady(const struct wpk_program *program, int index, const struct motion *motion)
{
    const struct wpk_node *node = &program->nodes[index];
    unsigned axes = axes_of(program, index) & motion->varying;
    struct wpk_affine affine;
    if ((axes & ~motion->even) == 0 || node->kind == WPK_NODE_AXIS) {
        return true;
    }
    if ((axes & motion->rough) != 0 || node->kind != WPK_NODE_BINARY) {
        return false;
    }
    if (wpk_index_affine(program, index, &affine)) {
        return true;
    }
    int a = node->arg[0], b = node->arg[1];
    if (node->op == WPK_BINARY_DIV || node->op == WPK_BINARY_MOD) {
        bool moves = node->op == WPK_BINARY_DIV || (axes & ~motion->aligned) == 0;
        return moves && wpk_index_affine(program, a, &affine);
    }
    bool apart = (axes_of(program, a) & axes_of(program, b) & axes & ~motion->even) == 0;
    return apart && is_steady(program, a, motion) && is_steady(program, b, motion);
}

static bool reads_steadily(struct walk *w, const struct wpk_nest_place *place, int s,
                           const struct motion *motion)
{
    const struct wpk_program *program = w->program;
    for (int i = 0; i < w->loads[s]; i++) {
        const struct wpk_node *load = &program->nodes[w->load[s][i]];
        int writer = wpk_program_writer(program, load->tensor);
        const struct wpk_nest_entry *read =
            writer < 0 ? NULL : &w->nest->entry[w->entry_of[writer]];
        struct motion inner = {0};
        /* all of what is computed elsewhere is there in every iteration */
        if (read == NULL || (!read->inlined && !wpk_nest_is_inside(w->nest, read, place))) {
            continue;
        }
        for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
            int axis = wpk_index_axis(program, load->index[d]);
            struct wpk_affine affine;
            if (!is_steady(program, load->index[d], motion)) {
                return false;
            }
            bool varying = (axes_of(program, load->index[d]) & motion->varying) != 0;
            bool rough = axis >= 0 ? (motion->rough >> axis & 1) != 0
                                   : !wpk_index_affine(program, load->index[d], &affine);
            inner.varying |= varying ? 1U << d : 0;
            inner.aligned |= axis >= 0 ? (motion->aligned >> axis & 1U) << d : 0;
            inner.even |= axis >= 0 ? (motion->even >> axis & 1U) << d : 0;
            inner.rough |= varying && rough ? 1U << d : 0;
        }
        if (read->inlined &&
            (w->inlined++ >= INLINED_MAX || !reads_steadily(w, place, writer, &inner))) {
            return false;
        }
    }
    return true;
}

/* Each combination of the first and the last iteration of every axis around the loop. */
static void walk_host(struct walk *w, const struct wpk_nest_place *place, const struct box *box)
{
    const struct wpk_nest_entry *entry = &w->nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &entry->update : &entry->pure;
    const struct wpk_stage *stage = wpk_nest_stage(w->nest, entry);
    struct box side[2], corner = {.present = true};
    struct motion motion = {0};
    int varying[WPK_AXES_MAX], count = 0;
    for (int a = 0; a < stage->axis_count; a++) {
        struct range *first = &side[0].axis[a], *last = &side[1].axis[a];
        *first = cover(w, place->entry, place->update, a, place->loop, false, &box->axis[a]);
        *last = cover(w, place->entry, place->update, a, place->loop, true, &box->axis[a]);
        corner.axis[a] = *last;
        if (first->low == last->low && first->high == last->high) {
            continue;
        }
        int64_t step = wpk_nest_covered(w->nest, entry, loops, place->loop, a);
        bool aligned = step % wpk_program_alignment(w->nest->program, entry->stage, a) == 0;
        bool even = aligned && first->high - first->low == last->high - last->low;
        motion.varying |= 1U << a;
        motion.aligned |= aligned ? 1U << a : 0;
        motion.even |= even ? 1U << a : 0;
        varying[count++] = a;
    }
    if (count > VARYING_MAX || !reads_steadily(w, place, entry->stage, &motion)) {
        limit_all(w);
    }
    for (int i = 0; i < 1 << count && !w->all; i++) {
        for (int v = 0; v < count; v++) {
            corner.axis[varying[v]] = side[i >> v & 1].axis[varying[v]];
        }
        walk_place(w, place, &corner);
    }
}

static bool is_host(const struct wpk_nest *nest, const struct wpk_nest_place *place)
{
    bool host = false;
    for (int e = place->entry + 1; e < nest->entry_count; e++) {
        host = host || (!nest->entry[e].inlined && is_at(&nest->entry[e], place));
    }
    return host;
}

/* An entry that is computed for the box. */
static void walk_entry(struct walk *w, int e, const struct box *box)
{
    const struct wpk_nest_entry *entry = &w->nest->entry[e];
    const struct wpk_stage *stage = wpk_nest_stage(w->nest, entry);
    bool updates = wpk_nest_has_update(w->nest, entry);
    for (int update = 0; update <= updates; update++) {
        const struct wpk_nest_loops *loops = update != 0 ? &entry->update : &entry->pure;
        struct box all = {.present = true};
        for (int a = 0; a < stage->axis_count; a++) {
            all.axis[a] = cover(w, e, update != 0, a, -1, false, &box->axis[a]);
        }
        if (update == updates) {
            read_box(w, entry->stage, &all, NULL);
        }
        for (int i = 0; i < loops->count; i++) {
            struct wpk_nest_place place = {.entry = e, .update = update != 0, .loop = i};
            if (is_host(w->nest, &place)) {
                walk_host(w, &place, box);
            }
        }
    }
}

/* One iteration of the place's loop, in which its entry covers `host`; before everything: NULL. */
static void walk_place(struct walk *w, const struct wpk_nest_place *place, const struct box *host)
{
    const struct wpk_nest *nest = w->nest;
    struct box *box = calloc((size_t)nest->entry_count, sizeof(*box));
    if (box == NULL) {
        w->full = true;
        return;
    }
    if (w->places++ == PLACES_MAX) {
        limit_all(w);
    }
    if (host != NULL) {
        read_box(w, nest->entry[place->entry].stage, host, box);
    }
    for (int e = place->entry + 1; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
        if (host == NULL && nest->program->tensors[stage->output].role == WPK_ROLE_OUTPUT) {
            box[e].present = true;
            take_whole(stage, 0, &box[e]);
        }
        box[e].present = box[e].present && !entry->inlined &&
                         (host == NULL || wpk_nest_is_inside(nest, entry, place));
        if (box[e].present) {
            grow(entry, stage->rank, is_at(entry, place), &box[e]);
            take_whole(stage, stage->rank, &box[e]);
            read_box(w, entry->stage, &box[e], box);
        }
    }
    for (int e = place->entry + 1; e < nest->entry_count && !w->all; e++) {
        if (box[e].present && is_at(&nest->entry[e], place)) {
            walk_entry(w, e, &box[e]);
        }
    }
    free(box);
}

wpk_err wpk_nest_find_reach(const struct wpk_nest *nest, const struct wpk_program *expanded,
                            struct wpk_nest_reach *out)
{
    const struct wpk_nest_place everywhere = {.entry = -1};
    struct walk *w = calloc(1, sizeof(*w)); /* large */
    memset(out, 0, sizeof(*out));
    if (w == NULL) {
        return WPK_ENOMEM;
    }
    w->nest = nest;
    w->program = expanded;
    w->out = out;
    for (int e = 0; e < nest->entry_count; e++) {
        w->entry_of[nest->entry[e].stage] = e;
    }
    bool fits = true;
    for (int s = 0; s < expanded->stage_count; s++) {
        w->loads[s] = wpk_stage_loads(expanded, &expanded->stages[s], w->load[s], WPK_LOADS_MAX);
        fits = fits && w->loads[s] < WPK_LOADS_MAX;
    }
    if (fits) {
        walk_place(w, &everywhere, NULL);
    } else {
        limit_all(w); /* the list of loads may be cut */
    }
    bool full = w->full;
    free(w);
    return full ? WPK_ENOMEM : WPK_OK;
}
