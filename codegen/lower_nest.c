/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of a group's root: cutting, ordering and vectorizing them, and placing them among the
 * loops of other groups. */
#include "codegen/lowering.h"

#include <stdio.h>

#define JOBS "jobs.P" /* the loop that fused ones become: no axis has a dot in its name */

static void split_axis(struct wpk_lowering *l, int g, int axis);
static void reorder_root(struct wpk_lowering *l, int g);
static void fill_tile(struct wpk_lowering *l, int g);
static void find_levels(struct wpk_lowering *l, int g);
static void parallelize(struct wpk_lowering *l, int g);
static void place_root(struct wpk_lowering *l, int g);

void wpk_lowering_nest(struct wpk_lowering *l, int g)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_stage *root = &l->variant->program.stages[group->root];
    for (int a = 0; a < root->rank; a++) {
        if (root->axes[a].extent > 1 && !group->whole[a]) {
            split_axis(l, g, a);
        }
    }
    reorder_root(l, g);
    fill_tile(l, g);
    find_levels(l, g);
    if (l->decisions[g].par > 0 && l->decisions[g].level == WPK_LEVEL_ROOT) {
        parallelize(l, g);
    }
    place_root(l, g);
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
static void keep_whole(struct wpk_lowering *l, int root, const char *loop, bool blocks,
                       enum wpk_tail tail)
{
    if (tail == WPK_TAIL_SHIFT || (tail == WPK_TAIL_GUARD && blocks)) {
        wpk_lowering_emit_loop(l, WPK_DIRECTIVE_NO_PARTITION, root, false, loop);
    }
}

/* y becomes y.T and, within the tile, y.I or, for the vector axis, y.U and y.V. */
static void split_tile(struct wpk_lowering *l, int g, int axis, enum wpk_tail tail)
{
    const struct wpk_decisions *d = &l->decisions[g];
    int root = l->structure->plan.group[g].root;
    const char *name = l->variant->program.stages[root].axes[axis].name;
    struct wpk_axis_loops *loops = &l->loops[g].axis[axis];
    char within[WPK_LOOP_NAME_MAX];
    wpk_loop_name(loops->tile, name, 'T');
    wpk_loop_name(within, name, 'I');
    wpk_directive_split(wpk_lowering_emit(l, WPK_DIRECTIVE_SPLIT, root, false), name, loops->tile,
                        within, d->tile[axis], tail);
    keep_whole(l, root, loops->tile, false, tail);
    if (axis != d->vec) {
        snprintf(loops->unrolled, WPK_LOOP_NAME_MAX, "%s", within);
    } else if (d->tile[axis] == d->lanes) {
        snprintf(loops->lanes, WPK_LOOP_NAME_MAX, "%s", within);
    } else {
        wpk_loop_name(loops->unrolled, name, 'U');
        wpk_loop_name(loops->lanes, name, 'V');
        wpk_directive_split(wpk_lowering_emit(l, WPK_DIRECTIVE_SPLIT, root, false), within,
                            loops->unrolled, loops->lanes, d->lanes, WPK_TAIL_EXACT);
    }
}

/* The loop over tiles becomes y.B and what is left of it: y.S, or y.T where a tile is one point. */
static void split_blocks(struct wpk_lowering *l, int g, int axis, int64_t block, enum wpk_tail tail)
{
    int root = l->structure->plan.group[g].root;
    const char *name = l->variant->program.stages[root].axes[axis].name;
    struct wpk_axis_loops *loops = &l->loops[g].axis[axis];
    char whole[WPK_LOOP_NAME_MAX];
    snprintf(whole, sizeof(whole), "%s", loops->tile);
    wpk_loop_name(loops->block, name, 'B');
    wpk_loop_name(loops->tile, name, l->decisions[g].tile[axis] > 1 ? 'S' : 'T');
    wpk_directive_split(wpk_lowering_emit(l, WPK_DIRECTIVE_SPLIT, root, false), whole, loops->block,
                        loops->tile, block, tail);
    keep_whole(l, root, loops->block, true, tail);
}

static void split_axis(struct wpk_lowering *l, int g, int axis)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_stage *root = &l->variant->program.stages[group->root];
    const struct wpk_decisions *d = &l->decisions[g];
    int64_t region[WPK_RANK_MAX], least[WPK_RANK_MAX];
    wpk_group_region(l->variant, l->decisions, g, region, least);
    bool plain = group->align[axis] == 1;
    int64_t tile = d->tile[axis];
    snprintf(l->loops[g].axis[axis].tile, WPK_LOOP_NAME_MAX, "%s", root->axes[axis].name);
    if (tile > 1) {
        split_tile(l, g, axis, tail_for(region[axis], least[axis], tile, plain));
    }
    if (wpk_has_block_loop(root, d, axis)) {
        int64_t block = wpk_block_tiles(root, d, axis);
        int64_t tiles = (region[axis] + tile - 1) / tile;
        int64_t tiles_least = (least[axis] + tile - 1) / tile;
        split_blocks(l, g, axis, block, tail_for(tiles, tiles_least, block, plain));
    }
}

/* Innermost first: lanes, the rest of the tile, whole axes that stay loops, tiles, blocks, and what
 * has one iteration. */
static void reorder_root(struct wpk_lowering *l, int g)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_stage *root = &l->variant->program.stages[group->root];
    const struct wpk_decisions *d = &l->decisions[g];
    const struct wpk_group_loops *loops = &l->loops[g];
    struct wpk_directive *reorder = wpk_lowering_emit(l, WPK_DIRECTIVE_REORDER, group->root, false);
    if (d->vec >= 0 && loops->axis[d->vec].lanes[0] != '\0') {
        wpk_directive_operand(reorder, loops->axis[d->vec].lanes);
    }
    for (int a = root->rank - 1; a >= 0; a--) {
        if (group->whole[a] && !d->roll) {
            wpk_directive_operand(reorder, root->axes[a].name);
        } else if (loops->axis[a].unrolled[0] != '\0') {
            wpk_directive_operand(reorder, loops->axis[a].unrolled);
        }
    }
    for (int a = root->rank - 1; a >= 0; a--) {
        if (group->whole[a] && d->roll) {
            wpk_directive_operand(reorder, root->axes[a].name);
        }
    }
    for (int i = d->order_count - 1; i >= 0; i--) {
        wpk_directive_operand(reorder, loops->axis[d->inner[i]].tile);
    }
    for (int i = d->order_count - 1; i >= 0; i--) {
        if (loops->axis[d->outer[i]].block[0] != '\0') {
            wpk_directive_operand(reorder, loops->axis[d->outer[i]].block);
        }
    }
    for (int a = root->rank - 1; a >= 0; a--) {
        if (root->axes[a].extent == 1 && !group->whole[a]) {
            wpk_directive_operand(reorder, root->axes[a].name);
        }
    }
    wpk_lowering_settle_reorder(l, reorder);
}

static void fill_tile(struct wpk_lowering *l, int g)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_stage *root = &l->variant->program.stages[group->root];
    for (int a = 0; a < root->rank; a++) {
        const struct wpk_axis_loops *axis = &l->loops[g].axis[a];
        if (axis->lanes[0] != '\0') {
            wpk_lowering_emit_loop(l, WPK_DIRECTIVE_VECTORIZE, group->root, false, axis->lanes);
        }
        if (axis->unrolled[0] != '\0') {
            wpk_lowering_emit_loop(l, WPK_DIRECTIVE_UNROLL, group->root, false, axis->unrolled);
        }
        if (group->whole[a] && root->axes[a].extent > 1 && !l->decisions[g].roll) {
            wpk_lowering_emit_loop(l, WPK_DIRECTIVE_UNROLL, group->root, false, root->axes[a].name);
        }
    }
}

static void find_levels(struct wpk_lowering *l, int g)
{
    const struct wpk_decisions *d = &l->decisions[g];
    struct wpk_group_loops *loops = &l->loops[g];
    loops->block_level = "";
    loops->tile_level = "";
    for (int i = 0; i < d->order_count; i++) {
        const char *block = loops->axis[d->outer[i]].block;
        loops->block_level = *block != '\0' ? block : loops->block_level;
        loops->tile_level = loops->axis[d->inner[i]].tile;
    }
}

/* Is some group computed inside the block loops of this one? */
static bool is_block_level(const struct wpk_lowering *l, int g)
{
    for (int h = 0; h < g; h++) {
        if (l->decisions[h].level == WPK_LEVEL_BLOCK && l->decisions[h].at_group == g) {
            return true;
        }
    }
    return false;
}

/* Two loops, outermost first, become one that runs in parallel. */
static void fuse_jobs(struct wpk_lowering *l, int g, const char *const outermost[2])
{
    struct wpk_group_loops *loops = &l->loops[g];
    int root = l->structure->plan.group[g].root;
    struct wpk_directive *fuse = wpk_lowering_emit(l, WPK_DIRECTIVE_FUSE, root, false);
    wpk_directive_operand(fuse, outermost[1]);
    wpk_directive_operand(fuse, outermost[0]);
    wpk_directive_operand(fuse, JOBS);
    for (int i = 0; i < 2; i++) {
        loops->block_level = loops->block_level == outermost[i] ? JOBS : loops->block_level;
        loops->tile_level = loops->tile_level == outermost[i] ? JOBS : loops->tile_level;
    }
    wpk_lowering_emit_loop(l, WPK_DIRECTIVE_PARALLEL, root, false, JOBS);
}

/* The outermost loops with more than one iteration run in parallel, fused into one. */
static void parallelize(struct wpk_lowering *l, int g)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_stage *root = &l->variant->program.stages[group->root];
    const struct wpk_decisions *d = &l->decisions[g];
    const struct wpk_group_loops *loops = &l->loops[g];
    const char *outermost[2] = {NULL, NULL};
    int count = 0, wanted = d->par;
    WPK_ASSERT(wanted <= 2);
    for (int i = 0; i < d->order_count && count < wanted; i++) {
        const char *block = loops->axis[d->outer[i]].block;
        if (*block != '\0') {
            outermost[count++] = block;
        }
    }
    /* what is computed inside the block loops is computed there for all of their tiles */
    wanted = count > 0 && is_block_level(l, g) ? count : wanted;
    for (int i = 0; i < d->order_count && count < wanted; i++) {
        int a = d->inner[i];
        if (wpk_block_tiles(root, d, a) > 1) {
            outermost[count++] = loops->axis[a].tile;
        }
    }
    if (count == 2) {
        fuse_jobs(l, g, outermost);
    } else if (count == 1) {
        wpk_lowering_emit_loop(l, WPK_DIRECTIVE_PARALLEL, group->root, false, outermost[0]);
    }
}

static void place_root(struct wpk_lowering *l, int g)
{
    const struct wpk_plan *plan = &l->structure->plan;
    const struct wpk_decisions *d = &l->decisions[g];
    int root = plan->group[g].root;
    if (g == plan->group_count - 1) {
        return; /* the output is always at root */
    }
    if (d->level == WPK_LEVEL_ROOT) {
        (void)wpk_lowering_emit(l, WPK_DIRECTIVE_COMPUTE_ROOT, root, false);
        return;
    }
    const struct wpk_group_loops *at = &l->loops[d->at_group];
    const struct wpk_program *program = &l->variant->program;
    struct wpk_directive *place = wpk_lowering_emit(l, WPK_DIRECTIVE_COMPUTE_AT, root, false);
    wpk_directive_operand(
        place, program->tensors[program->stages[plan->group[d->at_group].root].output].name);
    wpk_directive_operand(place, d->level == WPK_LEVEL_TILE ? at->tile_level : at->block_level);
}
