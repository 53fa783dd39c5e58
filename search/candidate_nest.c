/* SPDX-License-Identifier: Apache-2.0 */
#include "search/candidate_nest.h"

#include "nest/reach.h"

#include <string.h>

struct draft {
    const struct wpk_variant *variant;
    const struct wpk_structure *structure;
    const struct wpk_space_options *options;
    const struct wpk_decisions *d; /* [group_count] */
    struct wpk_nest *nest;
    int root[WPK_GROUPS_MAX]; /* entry of each group's root that was added */
};

/* Loops, innermost first: the order in which they are decided. */
struct list {
    struct wpk_nest_loop loop[2 * WPK_AXES_MAX];
    int count;
};

static void put(struct list *list, int axis, enum wpk_loop_binding binding, int64_t step)
{
    WPK_ASSERT(list->count < 2 * WPK_AXES_MAX);
    list->loop[list->count++] =
        (struct wpk_nest_loop){.axis = axis, .binding = binding, .step = step};
}

static void add_loops(struct wpk_nest *nest, struct wpk_nest_loops *loops, const struct list *list)
{
    for (int i = list->count - 1; i >= 0; i--) {
        wpk_nest_add_loop(nest, loops, &list->loop[i]);
    }
}

/* ---- the root of a group */

/* The place inside the block loops of group `g`, or inside all loops over its tiles. */
static struct wpk_nest_place place_in(const struct draft *draft, int g, enum wpk_level level)
{
    const struct wpk_group *group = &draft->structure->plan.group[g];
    const struct wpk_stage *root = &draft->variant->program.stages[group->root];
    const struct wpk_decisions *d = &draft->d[g];
    int blocks = 0, ones = 0;
    for (int a = 0; a < root->rank; a++) {
        ones += root->axes[a].extent == 1 && !group->whole[a];
    }
    for (int i = 0; i < d->order_count; i++) {
        blocks += wpk_has_block_loop(root, d, d->outer[i]);
    }
    return (struct wpk_nest_place){
        .entry = draft->root[g],
        .loop = ones + blocks + (level == WPK_LEVEL_TILE ? d->order_count : 0) - 1,
    };
}

/* `least` is what is left of the extent where an outer loop ends: what is exact elsewhere computes
 * past the end there. */
static enum wpk_tail tail_for(int64_t extent, int64_t least, int64_t factor, bool shift_allowed)
{
    if (extent % factor == 0 && least == extent) {
        return WPK_TAIL_EXACT;
    }
    return shift_allowed && factor <= least ? WPK_TAIL_SHIFT : WPK_TAIL_GUARD;
}

/* A tile that moves inwards costs a minimum, a block's guard is seldom checked: neither is worth a
 * copy of the loop's whole body. That of a tile's guard is. */
static bool stays_whole(enum wpk_tail tail, bool blocks)
{
    return tail == WPK_TAIL_SHIFT || (tail == WPK_TAIL_GUARD && blocks);
}

static void put_tiles(const struct draft *draft, int g, const struct wpk_nest_entry *entry, int a,
                      struct list *list)
{
    const struct wpk_decisions *d = &draft->d[g];
    bool plain = draft->structure->plan.group[g].align[a] == 1;
    put(list, a, WPK_BIND_SERIAL, d->tile[a]);
    if (d->tile[a] > 1) {
        struct wpk_nest_loop *loop = &list->loop[list->count - 1];
        bool cut = wpk_candidate_copy_is_cut(draft->variant, g, d, a);
        bool own = a == d->vec && d->own_tail &&
                   wpk_has_dead_vectors(entry->extent[a], d->tile[a], d->lanes);
        loop->tail = tail_for(entry->extent[a], entry->least[a], d->tile[a], plain && !cut && !own);
        loop->whole = stays_whole(loop->tail, cut && !own);
    }
}

static void put_blocks(const struct draft *draft, int g, const struct wpk_nest_entry *entry, int a,
                       struct list *list)
{
    const struct wpk_group *group = &draft->structure->plan.group[g];
    const struct wpk_stage *root = &draft->variant->program.stages[group->root];
    const struct wpk_decisions *d = &draft->d[g];
    int64_t tile = d->tile[a], block = wpk_block_tiles(root, d, a);
    if (!wpk_has_block_loop(root, d, a)) {
        return;
    }
    put(list, a, WPK_BIND_SERIAL, tile * block);
    struct wpk_nest_loop *loop = &list->loop[list->count - 1];
    loop->tail = tail_for((entry->extent[a] + tile - 1) / tile, (entry->least[a] + tile - 1) / tile,
                          block, group->align[a] == 1);
    loop->whole = stays_whole(loop->tail, true);
    for (int i = 0; i < list->count - 1; i++) { /* a tile that moves is part of the block */
        loop->whole = loop->whole || (list->loop[i].axis == a && list->loop[i].whole);
    }
}

/* The register tile: the lanes, then the vectors of their axis and the other axes. */
static void put_tile(const struct draft *draft, int g, struct list *list)
{
    const struct wpk_group *group = &draft->structure->plan.group[g];
    const struct wpk_stage *root = &draft->variant->program.stages[group->root];
    const struct wpk_decisions *d = &draft->d[g];
    bool lanes = d->vec >= 0 && d->tile[d->vec] > 1 && wpk_has_loop(group, root, d->vec);
    if (lanes) {
        put(list, d->vec, WPK_BIND_LANES, 1);
    }
    for (int a = root->rank - 1; a >= 0; a--) {
        if (group->whole[a] && !d->roll) {
            put(list, a, root->axes[a].extent > 1 ? WPK_BIND_UNROLL : WPK_BIND_SERIAL, 1);
        } else if (lanes && a == d->vec && d->tile[a] > d->lanes) {
            put(list, a, WPK_BIND_UNROLL, d->lanes);
        } else if (wpk_has_loop(group, root, a) && d->tile[a] > 1 && a != d->vec) {
            put(list, a, WPK_BIND_UNROLL, 1);
        }
    }
    for (int a = root->rank - 1; a >= 0; a--) {
        if (group->whole[a] && d->roll) {
            put(list, a, WPK_BIND_SERIAL, 1);
        }
    }
}

/* True if a k-block's partial sums or another group are computed inside the block loops of the
 * group. */
static bool is_block_level(const struct draft *draft, int g)
{
    bool found = draft->d[g].panel;
    for (int h = 0; h < g; h++) {
        found = found || (draft->d[h].level == WPK_LEVEL_BLOCK && draft->d[h].at_group == g);
    }
    return found;
}

/* The outermost loops with more than one iteration run in parallel.
 *   shape   list: of the root, innermost first, with `tiles` loops over tiles from `first` on */
static void parallelize(const struct draft *draft, int g, struct list *list, int first, int tiles)
{
    const struct wpk_group *group = &draft->structure->plan.group[g];
    const struct wpk_stage *root = &draft->variant->program.stages[group->root];
    const struct wpk_decisions *d = &draft->d[g];
    int count = 0, wanted = d->level == WPK_LEVEL_ROOT ? d->par : 0, end = first + tiles;
    for (int i = 0; i < d->order_count; i++) {
        end += wpk_has_block_loop(root, d, d->outer[i]);
    }
    for (int i = end - 1; i >= first + tiles && count < wanted; i--, count++) {
        list->loop[i].binding = WPK_BIND_PARALLEL;
    }
    /* what is computed inside the block loops is computed there for all of their tiles */
    wanted = count > 0 && is_block_level(draft, g) ? count : wanted;
    for (int i = first + tiles - 1; i >= first && count < wanted; i--) {
        if (wpk_block_tiles(root, d, list->loop[i].axis) > 1) {
            list->loop[i].binding = WPK_BIND_PARALLEL;
            count++;
        }
    }
}

static void add_root(struct draft *draft, int g)
{
    const struct wpk_group *group = &draft->structure->plan.group[g];
    const struct wpk_stage *root = &draft->variant->program.stages[group->root];
    const struct wpk_decisions *d = &draft->d[g];
    struct list list = {.count = 0};
    struct wpk_nest_entry *entry = wpk_nest_add(draft->nest, WPK_NEST_STAGE, group->root);
    draft->root[g] = draft->nest->entry_count - 1;
    if (d->level != WPK_LEVEL_ROOT) {
        entry->place = place_in(draft, d->at_group, d->level);
    }
    wpk_nest_find_region(draft->nest);
    for (int a = 0; a < root->rank && entry->place.entry < 0; a++) {
        /* tiles begin at multiples, though readers may need fewer elements */
        entry->align[a] = entry->grain[a] % group->align[a] != 0 ? group->align[a] : 0;
    }
    put_tile(draft, g, &list);
    int first = list.count;
    for (int i = d->order_count - 1; i >= 0; i--) {
        put_tiles(draft, g, entry, d->inner[i], &list);
    }
    for (int i = d->order_count - 1; i >= 0; i--) {
        put_blocks(draft, g, entry, d->outer[i], &list);
    }
    parallelize(draft, g, &list, first, d->order_count);
    for (int a = root->rank - 1; a >= 0; a--) {
        if (root->axes[a].extent == 1 && !group->whole[a]) {
            put(&list, a, WPK_BIND_SERIAL, 1);
        }
    }
    add_loops(draft->nest, &entry->pure, &list);
}

/* ---- members */

int wpk_member_vector(const struct wpk_variant *variant, const struct wpk_space_options *options,
                      const struct wpk_decisions *d, const struct wpk_member *member,
                      const int64_t *region, int *lanes)
{
    const struct wpk_stage *stage = &variant->program.stages[member->stage];
    for (int a = 0; a < stage->rank; a++) {
        if (d->vec >= 0 && member->root_axis[a] == d->vec && region[a] % d->lanes == 0) {
            *lanes = d->lanes;
            return a;
        }
    }
    int last = stage->rank - 1;
    for (int widest = options->target.machine.lanes_max;
         last >= 0 && widest >= options->target.machine.lanes_min; widest /= 2) {
        if (region[last] % widest == 0) {
            *lanes = widest;
            return last;
        }
    }
    *lanes = 1;
    return -1;
}

/* The innermost loops of a definition, all but those that stay loops, which are in `rolled`. */
static void put_member_pure(const struct draft *draft, int g, int m,
                            const struct wpk_nest_entry *entry, struct list *list,
                            struct list *rolled)
{
    const struct wpk_group *group = &draft->structure->plan.group[g];
    const struct wpk_member *member = &group->member[m];
    const struct wpk_stage *stage = wpk_nest_stage(draft->nest, entry);
    int lanes = 1;
    int vector = wpk_member_vector(draft->variant, draft->options, &draft->d[g], member,
                                   entry->extent, &lanes);
    if (vector >= 0) {
        put(list, vector, WPK_BIND_LANES, 1);
    }
    /* what is broadcast meets all vectors at once, and need not be kept */
    if (vector >= 0 && entry->extent[vector] > lanes) {
        put(list, vector, WPK_BIND_UNROLL, lanes);
    }
    for (int a = stage->rank - 1; a >= 0; a--) {
        /* it is covered whole because another member transforms along it */
        bool transformed = member->root_axis[a] < 0 || group->whole[member->root_axis[a]];
        bool rolls = draft->d[g].roll && !member->literal[a] && transformed;
        if (a != vector && entry->extent[a] > 1 && rolls) {
            put(rolled, a, WPK_BIND_SERIAL, 1);
        } else if (a != vector && entry->extent[a] > 1) {
            put(list, a, WPK_BIND_UNROLL, 1);
        }
    }
}

/* The contraction's reduction loops: `serial` innermost first. */
static void put_reductions(const struct draft *draft, int g, const struct wpk_stage *stage,
                           struct list *list, struct list *serial)
{
    const struct wpk_decisions *d = &draft->d[g];
    bool lanes = list->count > 0 && list->loop[0].binding == WPK_BIND_LANES;
    int64_t terms = lanes ? d->terms : 1;
    if (terms > 1) {
        /* The terms of an instruction are the innermost loop, inside the lanes. */
        put(list, d->dot, WPK_BIND_DOT, 1);
        struct wpk_nest_loop dot = list->loop[list->count - 1];
        memmove(list->loop + 1, list->loop, (size_t)(list->count - 1) * sizeof(list->loop[0]));
        list->loop[0] = dot;
        list->loop[0].instruction = d->instruction;
    }
    bool split = d->split > 0 && !d->blocked;
    for (int i = d->red_count - 1; i >= 0; i--) {
        int64_t step = i == d->red_count - 1 ? d->unroll * terms : 1;
        if (step > terms) {
            put(list, d->red[i], WPK_BIND_UNROLL, terms);
        }
        put(serial, d->red[i], WPK_BIND_SERIAL, step);
        if (stage->axes[d->red[i]].extent % step != 0) {
            serial->loop[serial->count - 1].tail = WPK_TAIL_GUARD;
        }
    }
    if (split && d->red_count > 0) {
        put(serial, d->split_axis, WPK_BIND_SERIAL, d->split);
    }
}

static void append(struct list *list, const struct list *rest)
{
    for (int i = 0; i < rest->count; i++) {
        put(list, rest->loop[i].axis, rest->loop[i].binding, rest->loop[i].step);
        list->loop[list->count - 1] = rest->loop[i];
    }
}

/* A scalar result of a short contiguous reduction: the reduction itself goes into lanes. */
static bool reduces_in_lanes(const struct wpk_stage *stage, const struct wpk_machine *machine)
{
    int64_t extent = stage->axis_count == stage->rank + 1 ? stage->axes[stage->rank].extent : 0;
    return extent >= machine->lanes_min && extent <= machine->row_max &&
           (extent & (extent - 1)) == 0;
}

static void add_update(struct draft *draft, int g, int m, struct wpk_nest_entry *entry)
{
    const struct wpk_member *member = &draft->structure->plan.group[g].member[m];
    const struct wpk_stage *stage = wpk_nest_stage(draft->nest, entry);
    bool contraction = m == draft->structure->plan.group[g].contraction;
    struct list list = {.count = 0}, serial = {.count = 0}, rolled = {.count = 0};
    put_member_pure(draft, g, m, entry, &list, &rolled);
    bool scalar = list.count == 0 || list.loop[0].binding != WPK_BIND_LANES;
    if (scalar && !contraction && reduces_in_lanes(stage, &draft->options->target.machine)) {
        list.count = 0;
        put(&list, stage->rank, WPK_BIND_LANES, 1);
        entry->update.atomic = true;
        add_loops(draft->nest, &entry->update, &list);
        return;
    }
    if (contraction) {
        put_reductions(draft, g, stage, &list, &serial);
    }
    for (int a = stage->axis_count - 1; a >= stage->rank; a--) {
        if (member->literal[a]) {
            put(&list, a, WPK_BIND_UNROLL, 1);
        } else if (!contraction) {
            put(&serial, a, WPK_BIND_SERIAL, 1);
        }
    }
    append(&list, &serial);
    append(&list, &rolled);
    add_loops(draft->nest, &entry->update, &list);
    wpk_nest_mark_inside(draft->nest);
}

/* Accumulators whose lanes are apart in memory never become registers: the lanes are innermost. */
static void store_lanes_together(const struct draft *draft, const struct list *list,
                                 struct wpk_nest_entry *entry)
{
    int rank = wpk_nest_stage(draft->nest, entry)->rank, count = 0;
    bool lanes = list->count > 0 && list->loop[0].binding == WPK_BIND_LANES;
    for (int a = lanes ? list->loop[0].axis + 1 : rank; a < rank; a++) {
        entry->reordered = entry->reordered || entry->extent[a] > 1;
    }
    for (int a = 0; a < rank && entry->reordered; a++) {
        if (a != list->loop[0].axis) {
            entry->storage[count++] = a;
        }
    }
    entry->storage[count] = entry->reordered ? list->loop[0].axis : 0;
}

static void add_pure(struct draft *draft, int g, int m, struct wpk_nest_entry *entry)
{
    struct list list = {.count = 0}, rolled = {.count = 0};
    put_member_pure(draft, g, m, entry, &list, &rolled);
    store_lanes_together(draft, &list, entry);
    append(&list, &rolled);
    add_loops(draft->nest, &entry->pure, &list);
}

/* A part of a vector has no instruction for its sums, and costs as much as a whole one that has:
 * they are computed in whole vectors. Their operand lies in blocks of whole tiles, so that there is
 * something to read past the end. */
static void fill_vectors(const struct draft *draft, int g, int m, struct wpk_nest_entry *sums)
{
    const struct wpk_member *member = &draft->structure->plan.group[g].member[m];
    const struct wpk_decisions *d = &draft->d[g];
    int rank = wpk_nest_stage(draft->nest, sums)->rank;
    for (int a = 0; a < rank && d->terms > 1; a++) {
        if (member->root_axis[a] == d->vec && sums->extent[a] % d->lanes == 0 &&
            wpk_candidate_copy_is_cut(draft->variant, g, d, d->vec)) {
            sums->align[a] = d->lanes;
        }
    }
}

/* The total, and inside its loop over the blocks the sum of one. */
static void add_blocks(struct draft *draft, int g, int m, struct wpk_nest_entry *total)
{
    const struct wpk_decisions *d = &draft->d[g];
    struct list list = {.count = 0}, rolled = {.count = 0};
    total->block = d->split;
    total->blocked = d->split_axis;
    put_member_pure(draft, g, m, total, &list, &rolled);
    WPK_ASSERT(rolled.count == 0);
    put(&list, d->split_axis, WPK_BIND_SERIAL, d->split);
    add_loops(draft->nest, &total->update, &list);
    struct wpk_nest_entry *part = wpk_nest_add(draft->nest, WPK_NEST_PART, total->stage);
    part->bounded = true;
    part->place =
        (struct wpk_nest_place){.entry = draft->nest->entry_count - 2, .update = true, .loop = 0};
    wpk_nest_find_region(draft->nest);
    fill_vectors(draft, g, m, part);
    add_pure(draft, g, m, part);
    add_update(draft, g, m, part);
}

/* The binding of the root's loop over the tiles of an axis. */
static enum wpk_loop_binding tiles_binding(const struct draft *draft, int g, int axis)
{
    const struct wpk_nest_entry *root = &draft->nest->entry[draft->root[g]];
    enum wpk_loop_binding binding = WPK_BIND_SERIAL;
    for (int i = 0; i < root->pure.count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(draft->nest, &root->pure, i);
        binding = loop->axis == axis && wpk_nest_is_rolled(loop) ? loop->binding : binding;
    }
    return binding;
}

/* The loops over all tiles of a block of the root, and those of a tile. */
static void put_panel(const struct draft *draft, int g, int m, const struct wpk_nest_entry *total,
                      struct list *list)
{
    const struct wpk_member *member = &draft->structure->plan.group[g].member[m];
    const struct wpk_stage *stage = wpk_nest_stage(draft->nest, total);
    const struct wpk_decisions *d = &draft->d[g];
    struct wpk_nest_entry tile = *total;
    struct list rolled = {.count = 0};
    for (int a = 0; a < stage->rank; a++) {
        tile.extent[a] = stage->axes[a].extent > 1 ? d->tile[member->root_axis[a]] : 1;
    }
    put_member_pure(draft, g, m, &tile, list, &rolled);
    for (int i = d->order_count - 1; i >= 0; i--) {
        int a = 0;
        while (stage->axes[a].extent == 1 || member->root_axis[a] != d->inner[i]) {
            a++;
            WPK_ASSERT(a < stage->rank);
        }
        put(list, a, tiles_binding(draft, g, d->inner[i]), tile.extent[a]);
    }
}

/* The totals of a block of the root: each panel's terms are summed for one tile after the other,
 * before the next panel's. */
static void add_panels(struct draft *draft, int g, int m, struct wpk_nest_entry *total)
{
    const struct wpk_decisions *d = &draft->d[g];
    struct list zeros = {.count = 0}, list = {.count = 0};
    total->place = place_in(draft, g, WPK_LEVEL_BLOCK);
    wpk_nest_find_region(draft->nest);
    fill_vectors(draft, g, m, total);
    total->block = d->split;
    total->blocked = d->split_axis;
    put_panel(draft, g, m, total, &zeros);
    store_lanes_together(draft, &zeros, total);
    add_loops(draft->nest, &total->pure, &zeros);
    put_panel(draft, g, m, total, &list);
    put(&list, d->split_axis, WPK_BIND_SERIAL, d->split);
    add_loops(draft->nest, &total->update, &list);
    struct wpk_nest_entry *part = wpk_nest_add(draft->nest, WPK_NEST_PART, total->stage);
    part->bounded = true;
    part->place = (struct wpk_nest_place){
        .entry = draft->nest->entry_count - 2, .update = true, .loop = d->order_count};
    wpk_nest_find_region(draft->nest);
    fill_vectors(draft, g, m, part);
    add_pure(draft, g, m, part);
    add_update(draft, g, m, part);
}

/* A transform: a short sum over the axis of a literal. As one expression it is a fraction of the
 * code that an update is, which loads and stores what it sums for each term. */
static bool is_transform(const struct wpk_stage *stage, const struct wpk_member *member)
{
    bool all = stage->reduction == WPK_REDUCE_SUM;
    for (int a = stage->rank; a < stage->axis_count; a++) {
        all = all && member->literal[a];
    }
    return all;
}

/* The place inside the loops over the terms of a member's sum. */
static struct wpk_nest_place place_in_sum(const struct draft *draft, int g, int stage)
{
    int e = draft->root[g], innermost = -1;
    while (draft->nest->entry[e].stage != stage) {
        e++;
        WPK_ASSERT(e < draft->nest->entry_count);
    }
    const struct wpk_nest_loops *update = &draft->nest->entry[e].update;
    for (int i = 0; i < update->count; i++) {
        innermost = wpk_nest_is_rolled(wpk_nest_at(draft->nest, update, i)) ? i : innermost;
    }
    return (struct wpk_nest_place){.entry = e, .update = true, .loop = innermost};
}

static void add_member(struct draft *draft, int g, int m)
{
    const struct wpk_group *group = &draft->structure->plan.group[g];
    const struct wpk_member *member = &group->member[m];
    const struct wpk_stage *stage = &draft->variant->program.stages[member->stage];
    struct wpk_nest_entry *root = &draft->nest->entry[draft->root[g]];
    struct wpk_nest_entry *entry = wpk_nest_add(draft->nest, WPK_NEST_STAGE, member->stage);
    int innermost = -1;
    for (int i = 0; i < root->pure.count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(draft->nest, &root->pure, i);
        bool rolled = loop->binding == WPK_BIND_SERIAL || loop->binding == WPK_BIND_PARALLEL;
        innermost =
            rolled && wpk_has_loop(group, &draft->variant->program.stages[group->root], loop->axis)
                ? i
                : innermost;
    }
    entry->place = member->in_sum
                       ? place_in_sum(draft, g, group->member[member->consumer].stage)
                       : (struct wpk_nest_place){.entry = draft->root[g], .loop = innermost};
    entry->bounded = true;
    entry->inlined = member->inlined;
    if (m == group->contraction && draft->d[g].panel) {
        add_panels(draft, g, m, entry);
        return;
    }
    wpk_nest_find_region(draft->nest);
    if (member->inlined) {
        return;
    }
    if (m == group->contraction) {
        fill_vectors(draft, g, m, entry);
    }
    add_pure(draft, g, m, entry);
    if (m == group->contraction && draft->d[g].blocked) {
        add_blocks(draft, g, m, entry);
    } else if (m != group->contraction && is_transform(stage, member) &&
               wpk_nest_may_expand(stage)) {
        entry->expanded = true;
    } else if (stage->reduction != WPK_REDUCE_NONE) {
        add_update(draft, g, m, entry);
    }
}

wpk_err wpk_decisions_nest(const struct wpk_variant *variant,
                           const struct wpk_space_options *options, const struct wpk_decisions *d,
                           struct wpk_nest *out)
{
    const struct wpk_structure *structure = variant->plan;
    struct draft draft = {.variant = variant, .structure = structure, .options = options, .d = d};
    draft.nest = out;
    out->program = &variant->program;
    out->entry_count = 0;
    out->loop_count = 0;
    out->full = false;
    out->tile.place.entry = -1;
    /* consumers first: where the others are computed are loops that must exist */
    for (int g = structure->plan.group_count - 1; g >= 0 && !out->full; g--) {
        add_root(&draft, g);
        for (int m = 0; m < structure->plan.group[g].member_count && !out->full; m++) {
            add_member(&draft, g, m);
        }
    }
    for (int g = 0; g < structure->plan.group_count; g++) {
        wpk_candidate_add_copies(variant, options, g, &d[g], draft.root[g], out);
    }
    return out->full ? WPK_ENOSPC : WPK_OK;
}

wpk_err wpk_candidate_nest(const struct wpk_space *space, const struct wpk_candidate *candidate,
                           struct wpk_nest *out)
{
    return space->options.target.rules->nest(space, candidate, out);
}
