/* SPDX-License-Identifier: Apache-2.0 */
/* The directives of one entry of a nest: its place, its splits and their order, and what its loops
 * are bound to. An axis is first split into the loops outside and inside the register tile, then
 * each of these if it is several loops. */
#include "codegen/lowering.h"

#include <stdio.h>

#define JOBS "jobs.P" /* the loop that parallel ones become */

/* The loops of one axis in a definition, outermost first. */
struct axis_loops {
    int outer[2]; /* that stay loops */
    int outer_count;
    int inner[2]; /* of the register tile */
    int inner_count;
};

static bool is_rolled(const struct wpk_nest_loop *loop)
{
    return loop->binding == WPK_BIND_SERIAL || loop->binding == WPK_BIND_PARALLEL;
}

static struct axis_loops loops_of(const struct wpk_nest *nest, const struct wpk_nest_loops *loops,
                                  int axis)
{
    struct axis_loops out = {.outer_count = 0};
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        if (loop->axis == axis && is_rolled(loop)) {
            WPK_ASSERT(out.outer_count < 2);
            out.outer[out.outer_count++] = i;
        } else if (loop->axis == axis) {
            WPK_ASSERT(out.inner_count < 2);
            out.inner[out.inner_count++] = i;
        }
    }
    return out;
}

/* The letters of the loops of an axis. Where there is one loop, it has the axis's name. */
struct letters {
    char block, tile, rest; /* the outer of two outer loops; an only outer one; the inner of two */
    char within, vectors, lanes;
};

static struct letters letters_of(const struct wpk_nest_entry *entry, bool update,
                                 const struct axis_loops *axis)
{
    struct letters letters = {'B', 'T', axis->inner_count > 0 ? 'S' : 'T', 'I', 'U', 'V'};
    if (update && axis->outer_count > 0) { /* of a reduction */
        letters.tile = axis->outer_count == 2 ? 'T' : 'O';
        letters.rest = axis->inner_count > 0 ? 'O' : 'T';
        letters.within = 'U';
    } else if (entry->kind == WPK_NEST_COPY) {
        letters.tile = 'U';
        letters.within = 'V';
    }
    return letters;
}

static const char *axis_name(const struct wpk_lowering *l, int e, bool update, int axis)
{
    const struct wpk_program *main = &l->out->main;
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    if (entry->kind != WPK_NEST_COPY && !(update && entry->block > 0 && axis == entry->blocked)) {
        return wpk_nest_stage(l->nest, entry)->axes[axis].name;
    }
    int stage = wpk_schedule_find_stage(main, l->name[e]);
    axis = entry->kind == WPK_NEST_COPY || stage < 0 ? axis : main->stages[stage].rank;
    return stage < 0 ? "" : main->stages[stage].axes[axis].name;
}

static void name_loop(const struct wpk_lowering *l, int e, bool update, int i,
                      char out[WPK_LOOP_NAME_MAX])
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    const struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    const struct wpk_nest_loop *loop = wpk_nest_at(l->nest, loops, i);
    struct axis_loops axis = loops_of(l->nest, loops, loop->axis);
    struct letters letters = letters_of(entry, update, &axis);
    const char *name = axis_name(l, e, update, loop->axis);
    if (axis.outer_count + axis.inner_count == 1) {
        snprintf(out, WPK_LOOP_NAME_MAX, "%s", name);
    } else if (is_rolled(loop)) {
        wpk_loop_name(out, name,
                      axis.outer_count == 1 ? letters.tile
                      : i == axis.outer[0]  ? letters.block
                                            : letters.rest);
    } else {
        wpk_loop_name(out, name,
                      axis.inner_count == 1 ? letters.within
                      : i == axis.inner[0]  ? letters.vectors
                                            : letters.lanes);
    }
}

/* Emit the split and what its outer loop is: not split into prologue, body and epilogue. */
static void split(struct wpk_lowering *l, int e, bool update, const char *loop, const char *outer,
                  const char *inner, const struct wpk_nest_loop *at, int64_t factor)
{
    wpk_directive_split(wpk_lowering_emit(l, WPK_DIRECTIVE_SPLIT, e, update), loop, outer, inner,
                        factor, at->tail);
    if (at->whole) {
        wpk_lowering_emit_loop(l, WPK_DIRECTIVE_NO_PARTITION, e, update, outer);
    }
}

static void split_inner(struct wpk_lowering *l, int e, bool update, const struct axis_loops *axis,
                        const char *within, const char *name)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    const struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    struct letters letters = letters_of(entry, update, axis);
    char outer[WPK_LOOP_NAME_MAX], inner[WPK_LOOP_NAME_MAX];
    const struct wpk_nest_loop *loop = wpk_nest_at(l->nest, loops, axis->inner[0]);
    wpk_loop_name(outer, name, letters.vectors);
    wpk_loop_name(inner, name, letters.lanes);
    split(l, e, update, within, outer, inner, loop, loop->step);
}

static void split_outer(struct wpk_lowering *l, int e, bool update, const struct axis_loops *axis,
                        const char *whole, const char *name)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    const struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    struct letters letters = letters_of(entry, update, axis);
    char outer[WPK_LOOP_NAME_MAX], inner[WPK_LOOP_NAME_MAX];
    const struct wpk_nest_loop *block = wpk_nest_at(l->nest, loops, axis->outer[0]);
    const struct wpk_nest_loop *rest = wpk_nest_at(l->nest, loops, axis->outer[1]);
    wpk_loop_name(outer, name, letters.block);
    wpk_loop_name(inner, name, letters.rest);
    split(l, e, update, whole, outer, inner, block, block->step / rest->step);
}

/* A pure axis is cut at the register tile first, then within it, then outside. A reduction is cut
 * from the outside. */
static void split_axis(struct wpk_lowering *l, int e, bool update, int a)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    const struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    struct axis_loops axis = loops_of(l->nest, loops, a);
    struct letters letters = letters_of(entry, update, &axis);
    const char *name = axis_name(l, e, update, a);
    char outer[WPK_LOOP_NAME_MAX], inner[WPK_LOOP_NAME_MAX];
    const struct wpk_nest_loop *tile =
        axis.outer_count == 0 ? NULL
                              : wpk_nest_at(l->nest, loops, axis.outer[axis.outer_count - 1]);
    if (update && axis.outer_count == 2 && axis.inner_count == 1) {
        const struct wpk_nest_loop *block = wpk_nest_at(l->nest, loops, axis.outer[0]);
        wpk_loop_name(outer, name, letters.block);
        wpk_loop_name(inner, name, letters.tile);
        split(l, e, update, name, outer, inner, block, block->step);
        char rest[WPK_LOOP_NAME_MAX];
        wpk_loop_name(rest, name, letters.rest);
        wpk_loop_name(outer, name, letters.within);
        split(l, e, update, inner, rest, outer, tile, tile->step);
        return;
    }
    if (axis.outer_count == 0 && axis.inner_count == 2) {
        split_inner(l, e, update, &axis, name, name);
    } else if (axis.outer_count > 0 && axis.inner_count > 0) {
        wpk_loop_name(outer, name, letters.tile);
        wpk_loop_name(inner, name, letters.within);
        split(l, e, update, name, outer, inner, tile, tile->step);
        if (axis.inner_count == 2) {
            split_inner(l, e, update, &axis, inner, name);
        }
        if (axis.outer_count == 2) {
            split_outer(l, e, update, &axis, outer, name);
        }
    } else if (axis.outer_count == 2) {
        split_outer(l, e, update, &axis, name, name);
    }
}

static void emit_reorder(struct wpk_lowering *l, int e, bool update)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    const struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    struct wpk_directive *reorder = wpk_lowering_emit(l, WPK_DIRECTIVE_REORDER, e, update);
    for (int i = loops->count - 1; i >= 0; i--) {
        char name[WPK_LOOP_NAME_MAX];
        name_loop(l, e, update, i, name);
        wpk_directive_operand(reorder, name);
    }
    wpk_lowering_settle_reorder(l, reorder);
}

static void emit_binding(struct wpk_lowering *l, int e, bool update, int i)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    const struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    enum wpk_loop_binding binding = wpk_nest_at(l->nest, loops, i)->binding;
    char name[WPK_LOOP_NAME_MAX];
    name_loop(l, e, update, i, name);
    if (binding == WPK_BIND_LANES || binding == WPK_BIND_UNROLL) {
        wpk_lowering_emit_loop(
            l, binding == WPK_BIND_LANES ? WPK_DIRECTIVE_VECTORIZE : WPK_DIRECTIVE_UNROLL, e,
            update, name);
    }
}

/* The parallel loops, two at most, outermost first; fills `loop`, returns how many. */
static int find_parallel(const struct wpk_nest *nest, const struct wpk_nest_loops *loops,
                         int loop[2])
{
    int count = 0;
    for (int i = 0; i < loops->count && count < 2; i++) {
        if (wpk_nest_at(nest, loops, i)->binding == WPK_BIND_PARALLEL) {
            loop[count++] = i;
        }
    }
    return count;
}

static void emit_parallel(struct wpk_lowering *l, int e)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    char name[2][WPK_LOOP_NAME_MAX];
    int loop[2], count = find_parallel(l->nest, &entry->pure, loop);
    for (int i = 0; i < count; i++) {
        name_loop(l, e, false, loop[i], name[i]);
    }
    if (count == 2) {
        struct wpk_directive *fuse = wpk_lowering_emit(l, WPK_DIRECTIVE_FUSE, e, false);
        wpk_directive_operand(fuse, name[1]);
        wpk_directive_operand(fuse, name[0]);
        wpk_directive_operand(fuse, JOBS);
    }
    if (count > 0) {
        wpk_lowering_emit_loop(l, WPK_DIRECTIVE_PARALLEL, e, false, count == 2 ? JOBS : name[0]);
    }
}

static void emit_place(struct wpk_lowering *l, int e)
{
    const struct wpk_nest_place *place = &l->nest->entry[e].place;
    if (place->entry < 0 || place->loop < 0) {
        (void)wpk_lowering_emit(l, WPK_DIRECTIVE_COMPUTE_ROOT, e, false);
        return;
    }
    const struct wpk_nest_entry *reader = &l->nest->entry[place->entry];
    const struct wpk_nest_loops *loops = place->update ? &reader->update : &reader->pure;
    char name[WPK_LOOP_NAME_MAX];
    int parallel[2];
    bool fused = !place->update && find_parallel(l->nest, loops, parallel) == 2 &&
                 (place->loop == parallel[0] || place->loop == parallel[1]);
    name_loop(l, place->entry, place->update, place->loop, name);
    struct wpk_directive *at = wpk_lowering_emit(l, WPK_DIRECTIVE_COMPUTE_AT, e, false);
    wpk_directive_operand(at, l->name[place->entry]);
    wpk_directive_operand(at, fused ? JOBS : name);
}

/* The root of a group: its axes in their order, its place last. */
static void lower_root(struct wpk_lowering *l, int e)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    const struct wpk_stage *stage = wpk_nest_stage(l->nest, entry);
    for (int a = 0; a < stage->rank; a++) {
        split_axis(l, e, false, a);
    }
    emit_reorder(l, e, false);
    for (int a = 0; a < stage->rank; a++) {
        for (int i = entry->pure.count - 1; i >= 0; i--) {
            if (wpk_nest_at(l->nest, &entry->pure, i)->axis == a) {
                emit_binding(l, e, false, i);
            }
        }
    }
    emit_parallel(l, e);
    if (l->nest->program->tensors[stage->output].role != WPK_ROLE_OUTPUT) {
        emit_place(l, e);
    }
}

/* Splits, order and bindings from the innermost loop outwards. */
static void lower_definition(struct wpk_lowering *l, int e, bool update)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    const struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    for (int i = loops->count - 1; i >= 0; i--) {
        struct axis_loops axis = loops_of(l->nest, loops, wpk_nest_at(l->nest, loops, i)->axis);
        int innermost = axis.outer_count > 0 ? axis.outer[axis.outer_count - 1] : axis.inner[0];
        if (i == innermost) {
            split_axis(l, e, update, wpk_nest_at(l->nest, loops, i)->axis);
        }
    }
    if (!loops->atomic) { /* a reduction in lanes is the innermost loop to begin with */
        emit_reorder(l, e, update);
    } else {
        (void)wpk_lowering_emit(l, WPK_DIRECTIVE_ATOMIC, e, update);
    }
    for (int i = loops->count - 1; i >= 0; i--) {
        emit_binding(l, e, update, i);
    }
}

static void lower_member(struct wpk_lowering *l, int e)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    const struct wpk_stage *stage = wpk_nest_stage(l->nest, entry);
    emit_place(l, e);
    for (int a = 0; a < stage->rank; a++) {
        struct wpk_directive *bound = wpk_lowering_emit(l, WPK_DIRECTIVE_BOUND_EXTENT, e, false);
        wpk_directive_operand(bound, stage->axes[a].name);
        bound->factor = entry->extent[a];
    }
    lower_definition(l, e, false);
    if (entry->expanded) {
        (void)wpk_lowering_emit(l, WPK_DIRECTIVE_EXPAND, e, false);
    } else if (stage->reduction != WPK_REDUCE_NONE) {
        lower_definition(l, e, true);
    }
}

/* The loops of a copy keep their order. That of a constant is no stage of the main program. */
static void lower_copy(struct wpk_lowering *l, int e)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    if (entry->pure.count == 0) {
        return;
    }
    (void)wpk_lowering_emit(l, WPK_DIRECTIVE_COMPUTE_ROOT, e, false);
    split_axis(l, e, false, entry->packing.dim_count - 1);
    emit_binding(l, e, false, entry->pure.count - 1);
    emit_parallel(l, e);
}

void wpk_lowering_entry(struct wpk_lowering *l, int e)
{
    const struct wpk_nest_entry *entry = &l->nest->entry[e];
    if (entry->kind == WPK_NEST_COPY) {
        lower_copy(l, e);
    } else if (entry->bounded && !entry->inlined) {
        lower_member(l, e);
    } else if (!entry->inlined) {
        lower_root(l, e);
    }
}
