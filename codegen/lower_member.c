/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of a group's members: each is computed inside the innermost tile loop of the root, over
 * just what the tile needs, all of it unrolled but the reductions. */
#include "codegen/lowering.h"

#include <stdio.h>
#include <string.h>

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

static void split_member_pure(struct wpk_lowering *l, int g, const struct wpk_member *member,
                              bool update, const int64_t *region, int vector, int lanes,
                              struct member_loops *loops)
{
    const struct wpk_stage *stage = &l->variant->program.stages[member->stage];
    memset(loops, 0, sizeof(*loops));
    for (int a = stage->rank - 1; a >= 0; a--) {
        const char *name = stage->axes[a].name;
        if (a == vector && region[a] == lanes) {
            snprintf(loops->lanes, WPK_LOOP_NAME_MAX, "%s", name);
        } else if (a == vector) {
            char *vectors = loops->unrolled[loops->unrolled_count++];
            wpk_loop_name(vectors, name, 'U');
            wpk_loop_name(loops->lanes, name, 'V');
            wpk_directive_split(wpk_lowering_emit(l, WPK_DIRECTIVE_SPLIT, member->stage, update),
                                name, vectors, loops->lanes, lanes, WPK_TAIL_EXACT);
        } else if (region[a] > 1 && l->decisions[g].roll && !member->literal[a] &&
                   is_transformed(l, g, member, a)) {
            snprintf(loops->rolled[loops->rolled_count++], WPK_LOOP_NAME_MAX, "%s", name);
        } else if (region[a] > 1) {
            snprintf(loops->unrolled[loops->unrolled_count++], WPK_LOOP_NAME_MAX, "%s", name);
        }
    }
}

/* Cuts the contraction's reduction loops; fills `serial`, innermost first. */
static int split_reductions(struct wpk_lowering *l, int g, const struct wpk_member *member,
                            struct member_loops *loops, char serial[][WPK_LOOP_NAME_MAX])
{
    const struct wpk_decisions *d = &l->decisions[g];
    const struct wpk_stage *stage = &l->variant->program.stages[member->stage];
    char outermost[WPK_LOOP_NAME_MAX] = "";
    int count = 0;
    for (int i = d->red_count - 1; i >= 0; i--) {
        int axis = d->red[i];
        char loop[WPK_LOOP_NAME_MAX];
        snprintf(loop, sizeof(loop), "%s", stage->axes[axis].name);
        if (axis == d->split_axis && d->split > 0) {
            char inner[WPK_LOOP_NAME_MAX];
            wpk_loop_name(outermost, stage->axes[axis].name, 'B');
            wpk_loop_name(inner, stage->axes[axis].name, 'T');
            wpk_directive_split(wpk_lowering_emit(l, WPK_DIRECTIVE_SPLIT, member->stage, true),
                                loop, outermost, inner, d->split, WPK_TAIL_EXACT);
            snprintf(loop, sizeof(loop), "%s", inner);
        }
        if (i == d->red_count - 1 && d->unroll > 1) {
            char outer[WPK_LOOP_NAME_MAX];
            char *unrolled = loops->unrolled[loops->unrolled_count++];
            wpk_loop_name(outer, stage->axes[axis].name, 'O');
            wpk_loop_name(unrolled, stage->axes[axis].name, 'U');
            wpk_directive_split(wpk_lowering_emit(l, WPK_DIRECTIVE_SPLIT, member->stage, true),
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

static void emit_member_loops(struct wpk_lowering *l, const struct wpk_member *member, bool update,
                              const struct member_loops *loops, char serial[][WPK_LOOP_NAME_MAX],
                              int serial_count)
{
    struct wpk_directive *reorder =
        wpk_lowering_emit(l, WPK_DIRECTIVE_REORDER, member->stage, update);
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
        wpk_lowering_emit_loop(l, WPK_DIRECTIVE_VECTORIZE, member->stage, update, loops->lanes);
    }
    for (int i = 0; i < loops->unrolled_count; i++) {
        wpk_lowering_emit_loop(l, WPK_DIRECTIVE_UNROLL, member->stage, update, loops->unrolled[i]);
    }
}

/* A scalar result of a short contiguous reduction: the reduction itself goes into lanes. */
static bool reduce_in_lanes(struct wpk_lowering *l, const struct wpk_member *member)
{
    const struct wpk_stage *stage = &l->variant->program.stages[member->stage];
    int64_t extent = stage->axis_count == stage->rank + 1 ? stage->axes[stage->rank].extent : 0;
    if (extent < 4 || extent > 64 || (extent & (extent - 1)) != 0) {
        return false;
    }
    (void)wpk_lowering_emit(l, WPK_DIRECTIVE_ATOMIC, member->stage, true);
    wpk_lowering_emit_loop(l, WPK_DIRECTIVE_VECTORIZE, member->stage, true,
                           stage->axes[stage->rank].name);
    return true;
}

static void lower_update(struct wpk_lowering *l, int g, int m, const int64_t *region, int vector,
                         int lanes)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_member *member = &group->member[m];
    const struct wpk_stage *stage = &l->variant->program.stages[member->stage];
    struct member_loops loops;
    char serial[WPK_AXES_MAX][WPK_LOOP_NAME_MAX];
    int serial_count = 0;
    if (vector < 0 && m != group->contraction && reduce_in_lanes(l, member)) {
        return;
    }
    split_member_pure(l, g, member, true, region, vector, lanes, &loops);
    if (m == group->contraction) {
        serial_count = split_reductions(l, g, member, &loops, serial);
    }
    for (int a = stage->axis_count - 1; a >= stage->rank; a--) {
        if (member->literal[a]) {
            snprintf(loops.unrolled[loops.unrolled_count++], WPK_LOOP_NAME_MAX, "%s",
                     stage->axes[a].name);
        } else if (m != group->contraction) {
            snprintf(serial[serial_count++], WPK_LOOP_NAME_MAX, "%s", stage->axes[a].name);
        }
    }
    emit_member_loops(l, member, true, &loops, serial, serial_count);
}

void wpk_lowering_member(struct wpk_lowering *l, int g, int m, const int64_t *region)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_member *member = &group->member[m];
    const struct wpk_program *program = &l->variant->program;
    const struct wpk_stage *stage = &program->stages[member->stage];
    struct member_loops loops;
    int lanes = 1, vector = wpk_member_vector(l->variant, &l->space->options, &l->decisions[g],
                                              member, region, &lanes);
    if (l->loops[g].tile_level[0] == '\0') {
        (void)wpk_lowering_emit(l, WPK_DIRECTIVE_COMPUTE_ROOT, member->stage, false);
    } else {
        struct wpk_directive *place =
            wpk_lowering_emit(l, WPK_DIRECTIVE_COMPUTE_AT, member->stage, false);
        wpk_directive_operand(place, group->name);
        wpk_directive_operand(place, l->loops[g].tile_level);
    }
    for (int a = 0; a < stage->rank; a++) {
        struct wpk_directive *bound =
            wpk_lowering_emit(l, WPK_DIRECTIVE_BOUND_EXTENT, member->stage, false);
        wpk_directive_operand(bound, stage->axes[a].name);
        bound->factor = region[a];
    }
    split_member_pure(l, g, member, false, region, vector, lanes, &loops);
    emit_member_loops(l, member, false, &loops, NULL, 0);
    if (stage->reduction != WPK_REDUCE_NONE) {
        lower_update(l, g, m, region, vector, lanes);
    }
}
