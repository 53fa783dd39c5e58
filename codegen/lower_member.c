/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of a group's members: each is computed inside the innermost tile loop of the root, over
 * just what the tile needs, all of it unrolled but the reductions. A sum in blocks is two stages:
 * the total, whose only reduction loop is that over the blocks, and inside it the sum of a block,
 * which has the registers. */
#include "codegen/lowering.h"

#include <stdio.h>
#include <string.h>

/* A member, or the sums of blocks that it adds up. */
struct subject {
    const struct wpk_member *member;
    const struct wpk_stage *stage; /* the member's */
    const char *tensor;            /* that is written */
    const int64_t *region;         /* [stage->axis_count] */
    int vector, lanes;             /* as wpk_member_vector has them */
};

struct member_loops {
    char rolled[WPK_AXES_MAX][WPK_LOOP_NAME_MAX]; /* loops that stay loops */
    int rolled_count;
    char lanes[WPK_LOOP_NAME_MAX];
    char unrolled[WPK_AXES_MAX][WPK_LOOP_NAME_MAX];
    int unrolled_count;
};

/* An axis of the member that is covered whole because another member transforms along it. */
static bool is_transformed(const struct wpk_lowering *l, int g, const struct wpk_member *member,
                           int a)
{
    int root_axis = member->root_axis[a];
    return root_axis < 0 || l->structure->plan.group[g].whole[root_axis];
}

static void split_member_pure(struct wpk_lowering *l, int g, const struct subject *s, bool update,
                              struct member_loops *loops)
{
    memset(loops, 0, sizeof(*loops));
    for (int a = s->stage->rank - 1; a >= 0; a--) {
        const char *name = s->stage->axes[a].name;
        if (a == s->vector && s->region[a] == s->lanes) {
            snprintf(loops->lanes, WPK_LOOP_NAME_MAX, "%s", name);
        } else if (a == s->vector) {
            char *vectors = loops->unrolled[loops->unrolled_count++];
            wpk_loop_name(vectors, name, 'U');
            wpk_loop_name(loops->lanes, name, 'V');
            wpk_directive_split(wpk_lowering_emit_named(l, WPK_DIRECTIVE_SPLIT, s->tensor, update),
                                name, vectors, loops->lanes, s->lanes, WPK_TAIL_EXACT);
        } else if (s->region[a] > 1 && l->decisions[g].roll && !s->member->literal[a] &&
                   is_transformed(l, g, s->member, a)) {
            snprintf(loops->rolled[loops->rolled_count++], WPK_LOOP_NAME_MAX, "%s", name);
        } else if (s->region[a] > 1) {
            snprintf(loops->unrolled[loops->unrolled_count++], WPK_LOOP_NAME_MAX, "%s", name);
        }
    }
}

/* Cuts the contraction's reduction loops; fills `serial`, innermost first. */
static int split_reductions(struct wpk_lowering *l, int g, const struct subject *s,
                            struct member_loops *loops, char serial[][WPK_LOOP_NAME_MAX])
{
    const struct wpk_decisions *d = &l->decisions[g];
    char outermost[WPK_LOOP_NAME_MAX] = "";
    int count = 0;
    for (int i = d->red_count - 1; i >= 0; i--) {
        const char *name = s->stage->axes[d->red[i]].name;
        char loop[WPK_LOOP_NAME_MAX];
        snprintf(loop, sizeof(loop), "%s", name);
        if (d->red[i] == d->split_axis && d->split > 0 && !d->blocked) {
            char inner[WPK_LOOP_NAME_MAX];
            wpk_loop_name(outermost, name, 'B');
            wpk_loop_name(inner, name, 'T');
            wpk_directive_split(wpk_lowering_emit_named(l, WPK_DIRECTIVE_SPLIT, s->tensor, true),
                                loop, outermost, inner, d->split, WPK_TAIL_EXACT);
            snprintf(loop, sizeof(loop), "%s", inner);
        }
        if (i == d->red_count - 1 && d->unroll > 1) {
            char outer[WPK_LOOP_NAME_MAX];
            char *unrolled = loops->unrolled[loops->unrolled_count++];
            wpk_loop_name(outer, name, 'O');
            wpk_loop_name(unrolled, name, 'U');
            wpk_directive_split(wpk_lowering_emit_named(l, WPK_DIRECTIVE_SPLIT, s->tensor, true),
                                loop, outer, unrolled, d->unroll, WPK_TAIL_EXACT);
            snprintf(loop, sizeof(loop), "%s", outer);
        }
        snprintf(serial[count++], WPK_LOOP_NAME_MAX, "%s", loop);
    }
    if (outermost[0] != '\0') {
        snprintf(serial[count++], WPK_LOOP_NAME_MAX, "%s", outermost);
    }
    return count;
}

static void emit_loop(struct wpk_lowering *l, enum wpk_directive_kind kind, const struct subject *s,
                      bool update, const char *loop)
{
    wpk_directive_operand(wpk_lowering_emit_named(l, kind, s->tensor, update), loop);
}

static void emit_member_loops(struct wpk_lowering *l, const struct subject *s, bool update,
                              const struct member_loops *loops, char serial[][WPK_LOOP_NAME_MAX],
                              int serial_count)
{
    struct wpk_directive *reorder =
        wpk_lowering_emit_named(l, WPK_DIRECTIVE_REORDER, s->tensor, update);
    if (loops->lanes[0] != '\0') {
        wpk_directive_operand(reorder, loops->lanes);
    }
    for (int i = 0; i < loops->unrolled_count; i++) {
        wpk_directive_operand(reorder, loops->unrolled[i]);
    }
    for (int i = 0; i < serial_count; i++) {
        wpk_directive_operand(reorder, serial[i]);
    }
    for (int i = 0; i < loops->rolled_count; i++) {
        wpk_directive_operand(reorder, loops->rolled[i]);
    }
    wpk_lowering_settle_reorder(l, reorder);
    if (loops->lanes[0] != '\0') {
        emit_loop(l, WPK_DIRECTIVE_VECTORIZE, s, update, loops->lanes);
    }
    for (int i = 0; i < loops->unrolled_count; i++) {
        emit_loop(l, WPK_DIRECTIVE_UNROLL, s, update, loops->unrolled[i]);
    }
}

/* A scalar result of a short contiguous reduction: the reduction itself goes into lanes. */
static bool reduce_in_lanes(struct wpk_lowering *l, const struct subject *s)
{
    const struct wpk_stage *stage = s->stage;
    int64_t extent = stage->axis_count == stage->rank + 1 ? stage->axes[stage->rank].extent : 0;
    if (extent < 4 || extent > 64 || (extent & (extent - 1)) != 0) {
        return false;
    }
    (void)wpk_lowering_emit_named(l, WPK_DIRECTIVE_ATOMIC, s->tensor, true);
    emit_loop(l, WPK_DIRECTIVE_VECTORIZE, s, true, stage->axes[stage->rank].name);
    return true;
}

static void lower_update(struct wpk_lowering *l, int g, const struct subject *s, bool contraction)
{
    const struct wpk_stage *stage = s->stage;
    struct member_loops loops;
    char serial[WPK_AXES_MAX][WPK_LOOP_NAME_MAX];
    int serial_count = 0;
    if (s->vector < 0 && !contraction && reduce_in_lanes(l, s)) {
        return;
    }
    split_member_pure(l, g, s, true, &loops);
    if (contraction) {
        serial_count = split_reductions(l, g, s, &loops, serial);
    }
    for (int a = stage->axis_count - 1; a >= stage->rank; a--) {
        if (s->member->literal[a]) {
            snprintf(loops.unrolled[loops.unrolled_count++], WPK_LOOP_NAME_MAX, "%s",
                     stage->axes[a].name);
        } else if (!contraction) {
            snprintf(serial[serial_count++], WPK_LOOP_NAME_MAX, "%s", stage->axes[a].name);
        }
    }
    emit_member_loops(l, s, true, &loops, serial, serial_count);
}

/* A transform: a short sum over the axis of a literal. As one expression it is a fraction of the
 * code that an update is, which loads and stores what it sums for each term. */
static bool is_transform(const struct subject *s)
{
    bool all = s->stage->reduction == WPK_REDUCE_SUM;
    for (int a = s->stage->rank; a < s->stage->axis_count; a++) {
        all = all && s->member->literal[a];
    }
    return all;
}

static void bound(struct wpk_lowering *l, const struct subject *s, const char *axis, int64_t extent)
{
    struct wpk_directive *directive =
        wpk_lowering_emit_named(l, WPK_DIRECTIVE_BOUND_EXTENT, s->tensor, false);
    wpk_directive_operand(directive, axis);
    directive->factor = extent;
}

/* The pure definition of the subject, computed inside a loop of `at`; with neither at root. */
static void lower_pure(struct wpk_lowering *l, int g, const struct subject *s, const char *at,
                       const char *loop)
{
    struct member_loops loops;
    if (*loop == '\0') {
        (void)wpk_lowering_emit_named(l, WPK_DIRECTIVE_COMPUTE_ROOT, s->tensor, false);
    } else {
        struct wpk_directive *place =
            wpk_lowering_emit_named(l, WPK_DIRECTIVE_COMPUTE_AT, s->tensor, false);
        wpk_directive_operand(place, at);
        wpk_directive_operand(place, loop);
    }
    for (int a = 0; a < s->stage->rank; a++) {
        bound(l, s, s->stage->axes[a].name, s->region[a]);
    }
    split_member_pure(l, g, s, false, &loops);
    emit_member_loops(l, s, false, &loops, NULL, 0);
}

/* The total, and inside its loop over the blocks the sum of one. */
static void lower_blocks(struct wpk_lowering *l, int g, const struct subject *total)
{
    int id = wpk_schedule_find_stage(&l->out->main, total->tensor);
    const struct wpk_stage *stage = id < 0 ? NULL : &l->out->main.stages[id];
    const char *block = stage == NULL ? "" : stage->axes[stage->rank].name;
    char serial[1][WPK_LOOP_NAME_MAX];
    struct member_loops loops;
    struct subject part = *total;
    part.tensor = l->partial[g];
    split_member_pure(l, g, total, true, &loops);
    snprintf(serial[0], WPK_LOOP_NAME_MAX, "%s", block);
    emit_member_loops(l, total, true, &loops, serial, 1);
    lower_pure(l, g, &part, total->tensor, block);
    lower_update(l, g, &part, true);
}

void wpk_lowering_member(struct wpk_lowering *l, int g, int m, const int64_t *region)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_program *program = &l->variant->program;
    struct subject s = {.member = &group->member[m], .region = region, .lanes = 1};
    s.stage = &program->stages[s.member->stage];
    s.tensor = program->tensors[s.stage->output].name;
    s.vector = wpk_member_vector(l->variant, &l->space->options, &l->decisions[g], s.member, region,
                                 &s.lanes);
    lower_pure(l, g, &s, group->name, l->loops[g].tile_level);
    if (m == group->contraction && l->decisions[g].blocked) {
        lower_blocks(l, g, &s);
    } else if (m != group->contraction && is_transform(&s) && wpk_schedule_may_expand(s.stage)) {
        (void)wpk_lowering_emit_named(l, WPK_DIRECTIVE_EXPAND, s.tensor, false);
    } else if (s.stage->reduction != WPK_REDUCE_NONE) {
        lower_update(l, g, &s, m == group->contraction);
    }
}
