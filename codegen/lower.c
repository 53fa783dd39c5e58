/* SPDX-License-Identifier: Apache-2.0 */
/* How a candidate's decisions become directives. Every group's root gets the same kind of nest:
 *
 *     block loops        one for each axis that is cut into blocks, in the order `outer`
 *       tile loops       one for each axis, in the order `inner`
 *         the tile       unrolled, its vector axis in lanes
 *
 * and its members are computed inside the innermost tile loop, over just what the tile needs.
 * Names: axis y has loops yB (blocks), yT (tiles), yI (within the tile), which the vector axis
 * splits into yU (vectors) and yV (lanes). */
#include "codegen/lower.h"

#include "op/derive.h"
#include "search/genes.h"
#include "search/variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The loops a root axis has been cut into; empty names are absent. */
struct axis_loops {
    char block[WPK_NAME_MAX];
    char tile[WPK_NAME_MAX];
    char unrolled[WPK_NAME_MAX];
    char lanes[WPK_NAME_MAX];
};

struct group_loops {
    struct axis_loops axis[WPK_RANK_MAX];
    char block_level[WPK_NAME_MAX]; /* innermost block loop, "" when there is none */
    char tile_level[WPK_NAME_MAX];  /* innermost loop around the tile */
};

struct lowering {
    const struct wpk_space *space;
    const struct wpk_variant *variant;
    const struct wpk_structure *structure;
    struct wpk_schedule *out;
    struct wpk_decisions decisions[WPK_GROUPS_MAX];
    struct group_loops loops[WPK_GROUPS_MAX];
    wpk_err err;
};

/* ---- emitting; the first failure sticks */

static struct wpk_directive *emit(struct lowering *l, enum wpk_directive_kind kind, int stage,
                                  bool update)
{
    static struct wpk_directive nowhere;
    const struct wpk_program *from = &l->variant->program;
    const char *name = from->tensors[from->stages[stage].output].name;
    int id = wpk_schedule_find_stage(&l->out->main, name);
    struct wpk_directive *directive = id < 0 ? NULL : wpk_schedule_add(l->out, kind, id, update);
    if (directive == NULL) {
        l->err = l->err == WPK_OK ? WPK_ENOSPC : l->err;
        memset(&nowhere, 0, sizeof(nowhere));
        return &nowhere;
    }
    return directive;
}

static void operand(struct wpk_directive *directive, const char *name)
{
    WPK_ASSERT(directive->loop_count < WPK_LOOPS_MAX);
    snprintf(directive->loop[directive->loop_count++], WPK_NAME_MAX, "%s", name);
}

static void emit_one(struct lowering *l, enum wpk_directive_kind kind, int stage, bool update,
                     const char *loop)
{
    operand(emit(l, kind, stage, update), loop);
}

static void emit_split(struct lowering *l, int stage, bool update, const char *loop,
                       const char *outer, const char *inner, int64_t factor, enum wpk_tail tail)
{
    struct wpk_directive *directive = emit(l, WPK_DIRECTIVE_SPLIT, stage, update);
    operand(directive, loop);
    operand(directive, outer);
    operand(directive, inner);
    directive->factor = factor;
    directive->tail = tail;
}

static void suffixed(char *out, const char *name, char suffix)
{
    snprintf(out, WPK_NAME_MAX, "%.*s%c", WPK_NAME_MAX - 3, name, suffix);
}

/* ---- packing: the operands of contractions in the order of use */

static bool is_reduction_of(const struct wpk_stage *stage, int axis)
{
    return axis >= stage->rank;
}

/* Position of a root axis in the order of the tile loops, outermost 0. */
static int loop_position(const struct wpk_decisions *d, int root_axis)
{
    for (int i = 0; i < d->order_count; i++) {
        if (d->inner[i] == root_axis) {
            return i;
        }
    }
    return -1; /* no loop: extent 1 or whole */
}

static int reduction_position(const struct wpk_decisions *d, int axis)
{
    for (int i = 0; i < d->red_count; i++) {
        if (d->red[i] == axis) {
            return i;
        }
    }
    return -1;
}

/* One dimension of a packed operand with the key it is sorted by: quotients by the position of
 * their loop, then reductions by theirs, then what lies within a tile, the lanes last. */
struct packed_dim {
    int dim;
    int64_t block;
    int key;
};

enum { KEY_UNROLLED = 50, KEY_REDUCTION = 100, KEY_TILE = 200, KEY_LANES = 299 };

static int collect_dims(const struct wpk_variant *variant, const struct wpk_group *group,
                        const struct wpk_decisions *d, int load, struct packed_dim *dims)
{
    const struct wpk_program *program = &variant->program;
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &program->stages[member->stage];
    const struct wpk_node *node = &program->nodes[load];
    int count = 0;
    for (int dim = 0; dim < program->tensors[node->tensor].rank; dim++) {
        int axis = wpk_index_axis(program, node->index[dim]);
        if (axis < 0) {
            WPK_ASSERT(program->tensors[node->tensor].extent[dim] == 1);
            continue; /* always index 0: the packed tensor does without */
        }
        if (is_reduction_of(stage, axis)) {
            int position = reduction_position(d, axis);
            position = position < 0 ? KEY_UNROLLED : position; /* unrolled: inside all others */
            if (axis == d->split_axis && d->split > 0) {
                dims[count++] = (struct packed_dim){dim, -d->split, KEY_REDUCTION};
                dims[count++] = (struct packed_dim){dim, d->split, KEY_REDUCTION + 1 + position};
            } else {
                dims[count++] = (struct packed_dim){dim, 0, KEY_REDUCTION + 1 + position};
            }
            continue;
        }
        int root_axis = member->root_axis[axis];
        int64_t tile = root_axis < 0 ? 1 : d->tile[root_axis];
        int position = root_axis < 0 ? -1 : loop_position(d, root_axis);
        if (tile == 1 || position < 0) {
            dims[count++] = (struct packed_dim){dim, 0, 1 + position};
            continue;
        }
        int inner = root_axis == d->vec ? KEY_LANES : KEY_TILE + position;
        if (tile < program->stages[group->root].axes[root_axis].extent) {
            dims[count++] = (struct packed_dim){dim, -tile, 1 + position};
            dims[count++] = (struct packed_dim){dim, tile, inner};
        } else {
            dims[count++] = (struct packed_dim){dim, 0, inner};
        }
    }
    return count;
}

static int compare_dims(const void *a, const void *b)
{
    const struct packed_dim *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->dim - y->dim;
}

/* Packed operands that are no constants are stages of the main program; remember their names. */
struct packed_names {
    char name[WPK_GROUPS_MAX * WPK_PACKS_MAX][WPK_NAME_MAX];
    int count;
};

static wpk_err pack_operand(struct lowering *l, int g, int slot, struct packed_names *names)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_slots *slots = &l->structure->slots[g];
    const struct wpk_program *from = &l->variant->program;
    int load = slots->pack_load[slot];
    const char *tensor = from->tensors[from->nodes[load].tensor].name;
    struct packed_dim dims[2 * WPK_RANK_MAX];
    struct wpk_packing packing = {.tensor = wpk_program_find_tensor(&l->out->program, tensor)};
    int count = collect_dims(l->variant, group, &l->decisions[g], load, dims);
    if (packing.tensor < 0 || count > WPK_RANK_MAX) {
        return count > WPK_RANK_MAX ? WPK_OK : WPK_EINVAL; /* too many dimensions: left as it is */
    }
    qsort(dims, (size_t)count, sizeof(dims[0]), compare_dims);
    packing.dim_count = count;
    bool moved = false;
    for (int i = 0; i < count; i++) {
        packing.dim[i] = dims[i].dim;
        packing.block[i] = dims[i].block;
        moved = moved || dims[i].dim != i || dims[i].block != 0;
    }
    return moved ? wpk_derive_pack(&l->out->program, &packing, names->name[names->count++])
                 : WPK_OK;
}

static wpk_err pack_operands(struct lowering *l, struct packed_names *names)
{
    const struct wpk_plan *plan = &l->structure->plan;
    for (int g = 0; g < plan->group_count; g++) {
        for (int i = 0; i < l->structure->slots[g].pack_count; i++) {
            wpk_err err = l->decisions[g].pack[i] ? pack_operand(l, g, i, names) : WPK_OK;
            if (err != WPK_OK) {
                return err;
            }
        }
    }
    return WPK_OK;
}

/* ---- the root's nest */

/* `least` is what is left of the extent where an outer loop ends: what is exact elsewhere computes
 * past the end there. */
static enum wpk_tail tail_for(int64_t extent, int64_t least, int64_t factor, bool shift_allowed)
{
    if (extent % factor == 0 && least == extent) {
        return WPK_TAIL_EXACT;
    }
    return shift_allowed && factor <= least ? WPK_TAIL_SHIFT : WPK_TAIL_GUARD;
}

static void split_axis(struct lowering *l, int g, int axis)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_stage *root = &l->variant->program.stages[group->root];
    const struct wpk_decisions *d = &l->decisions[g];
    struct axis_loops *loops = &l->loops[g].axis[axis];
    const char *name = root->axes[axis].name;
    int64_t region[WPK_RANK_MAX], least[WPK_RANK_MAX];
    wpk_group_region(l->variant, l->decisions, g, region, least);
    bool plain = group->align[axis] == 1;
    int64_t tile = d->tile[axis];
    snprintf(loops->tile, WPK_NAME_MAX, "%s", name);
    if (tile > 1) {
        char within[WPK_NAME_MAX];
        suffixed(loops->tile, name, 'T');
        suffixed(within, name, 'I');
        emit_split(l, group->root, false, name, loops->tile, within, tile,
                   tail_for(region[axis], least[axis], tile, plain));
        if (axis != d->vec) {
            snprintf(loops->unrolled, WPK_NAME_MAX, "%s", within);
        } else if (tile == d->lanes) {
            snprintf(loops->lanes, WPK_NAME_MAX, "%s", within);
        } else {
            suffixed(loops->unrolled, name, 'U');
            suffixed(loops->lanes, name, 'V');
            emit_split(l, group->root, false, within, loops->unrolled, loops->lanes, d->lanes,
                       WPK_TAIL_EXACT);
        }
    }
    if (wpk_has_block_loop(root, d, axis)) {
        int64_t block = wpk_block_tiles(root, d, axis);
        char whole[WPK_NAME_MAX], tiles[WPK_NAME_MAX];
        snprintf(whole, sizeof(whole), "%s", loops->tile);
        suffixed(loops->block, name, 'B');
        suffixed(tiles, name, tile > 1 ? 'S' : 'T');
        emit_split(l, group->root, false, whole, loops->block, tiles, block,
                   tail_for((region[axis] + tile - 1) / tile, (least[axis] + tile - 1) / tile,
                            block, plain));
        snprintf(loops->tile, WPK_NAME_MAX, "%s", tiles);
    }
}

static void reorder_root(struct lowering *l, int g)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_stage *root = &l->variant->program.stages[group->root];
    const struct wpk_decisions *d = &l->decisions[g];
    const struct group_loops *loops = &l->loops[g];
    struct wpk_directive *reorder = emit(l, WPK_DIRECTIVE_REORDER, group->root, false);
    if (d->vec >= 0 && loops->axis[d->vec].lanes[0] != '\0') {
        operand(reorder, loops->axis[d->vec].lanes);
    }
    for (int a = root->rank - 1; a >= 0; a--) {
        if (group->whole[a] && !d->roll) {
            operand(reorder, root->axes[a].name);
        } else if (loops->axis[a].unrolled[0] != '\0') {
            operand(reorder, loops->axis[a].unrolled);
        }
    }
    for (int a = root->rank - 1; a >= 0; a--) {
        if (group->whole[a] && d->roll) {
            operand(reorder, root->axes[a].name);
        }
    }
    for (int i = d->order_count - 1; i >= 0; i--) {
        operand(reorder, loops->axis[d->inner[i]].tile);
    }
    for (int i = d->order_count - 1; i >= 0; i--) {
        if (loops->axis[d->outer[i]].block[0] != '\0') {
            operand(reorder, loops->axis[d->outer[i]].block);
        }
    }
    for (int a = root->rank - 1; a >= 0; a--) {
        if (root->axes[a].extent == 1 && !group->whole[a]) {
            operand(reorder, root->axes[a].name);
        }
    }
    if (reorder->loop_count < 2 && l->err == WPK_OK) {
        l->out->directive_count--; /* nothing to order */
    }
}

static void fill_tile(struct lowering *l, int g)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_stage *root = &l->variant->program.stages[group->root];
    for (int a = 0; a < root->rank; a++) {
        const struct axis_loops *axis = &l->loops[g].axis[a];
        if (axis->lanes[0] != '\0') {
            emit_one(l, WPK_DIRECTIVE_VECTORIZE, group->root, false, axis->lanes);
        }
        if (axis->unrolled[0] != '\0') {
            emit_one(l, WPK_DIRECTIVE_UNROLL, group->root, false, axis->unrolled);
        }
        if (group->whole[a] && root->axes[a].extent > 1 && !l->decisions[g].roll) {
            emit_one(l, WPK_DIRECTIVE_UNROLL, group->root, false, root->axes[a].name);
        }
    }
}

static void find_levels(struct lowering *l, int g)
{
    const struct wpk_decisions *d = &l->decisions[g];
    struct group_loops *loops = &l->loops[g];
    for (int i = 0; i < d->order_count; i++) {
        if (loops->axis[d->outer[i]].block[0] != '\0') {
            snprintf(loops->block_level, WPK_NAME_MAX, "%s", loops->axis[d->outer[i]].block);
        }
    }
    if (d->order_count > 0) {
        snprintf(loops->tile_level, WPK_NAME_MAX, "%s",
                 loops->axis[d->inner[d->order_count - 1]].tile);
    }
}

/* Is some group computed inside the block loops of this one? */
static bool is_block_level(const struct lowering *l, int g)
{
    for (int h = 0; h < g; h++) {
        if (l->decisions[h].level == WPK_LEVEL_BLOCK && l->decisions[h].at_group == g) {
            return true;
        }
    }
    return false;
}

/* The outermost loops with more than one iteration run in parallel, fused into one. */
static void parallelize(struct lowering *l, int g)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_decisions *d = &l->decisions[g];
    struct group_loops *loops = &l->loops[g];
    char *outermost[2] = {NULL, NULL};
    int count = 0, wanted = d->par;
    for (int i = 0; i < d->order_count && count < wanted; i++) {
        char *block = loops->axis[d->outer[i]].block;
        if (*block != '\0') {
            outermost[count++] = block;
        }
    }
    const struct wpk_stage *root = &l->variant->program.stages[group->root];
    /* what is computed inside the block loops is computed there for all of their tiles */
    wanted = count > 0 && is_block_level(l, g) ? count : wanted;
    for (int i = 0; i < d->order_count && count < wanted; i++) {
        int a = d->inner[i];
        if (wpk_block_tiles(root, d, a) > 1) {
            outermost[count++] = loops->axis[a].tile;
        }
    }
    if (count == 2) {
        struct wpk_directive *fuse = emit(l, WPK_DIRECTIVE_FUSE, group->root, false);
        operand(fuse, outermost[1]);
        operand(fuse, outermost[0]);
        operand(fuse, "jobs");
        for (int i = 0; i < 2; i++) {
            if (strcmp(loops->block_level, outermost[i]) == 0) {
                snprintf(loops->block_level, WPK_NAME_MAX, "jobs");
            }
            if (strcmp(loops->tile_level, outermost[i]) == 0) {
                snprintf(loops->tile_level, WPK_NAME_MAX, "jobs");
            }
        }
        emit_one(l, WPK_DIRECTIVE_PARALLEL, group->root, false, "jobs");
    } else if (count == 1) {
        emit_one(l, WPK_DIRECTIVE_PARALLEL, group->root, false, outermost[0]);
    }
}

static void place_root(struct lowering *l, int g)
{
    const struct wpk_plan *plan = &l->structure->plan;
    const struct wpk_decisions *d = &l->decisions[g];
    int root = plan->group[g].root;
    if (g == plan->group_count - 1) {
        return; /* the output is always at root */
    }
    if (d->level == WPK_LEVEL_ROOT) {
        (void)emit(l, WPK_DIRECTIVE_COMPUTE_ROOT, root, false);
        return;
    }
    const struct group_loops *at = &l->loops[d->at_group];
    const struct wpk_program *program = &l->variant->program;
    struct wpk_directive *place = emit(l, WPK_DIRECTIVE_COMPUTE_AT, root, false);
    operand(place, program->tensors[program->stages[plan->group[d->at_group].root].output].name);
    operand(place, d->level == WPK_LEVEL_TILE ? at->tile_level : at->block_level);
}

/* ---- members */

struct member_loops {
    char rolled[WPK_AXES_MAX][WPK_NAME_MAX]; /* loops that stay loops */
    int rolled_count;
    char lanes[WPK_NAME_MAX];
    char unrolled[WPK_AXES_MAX][WPK_NAME_MAX];
    int unrolled_count;
};

/* An axis of the member that is covered whole because another member transforms along it. */
static bool is_transformed(const struct lowering *l, int g, const struct wpk_member *member, int a)
{
    int root_axis = member->root_axis[a];
    return root_axis < 0 || l->structure->plan.group[g].whole[root_axis];
}

static void split_member_pure(struct lowering *l, int g, const struct wpk_member *member,
                              bool update, const int64_t *region, int vector, int lanes,
                              struct member_loops *loops)
{
    const struct wpk_stage *stage = &l->variant->program.stages[member->stage];
    memset(loops, 0, sizeof(*loops));
    for (int a = stage->rank - 1; a >= 0; a--) {
        const char *name = stage->axes[a].name;
        if (a == vector && region[a] == lanes) {
            snprintf(loops->lanes, WPK_NAME_MAX, "%s", name);
        } else if (a == vector) {
            char *vectors = loops->unrolled[loops->unrolled_count++];
            suffixed(vectors, name, 'U');
            suffixed(loops->lanes, name, 'V');
            emit_split(l, member->stage, update, name, vectors, loops->lanes, lanes,
                       WPK_TAIL_EXACT);
        } else if (region[a] > 1 && l->decisions[g].roll && !member->literal[a] &&
                   is_transformed(l, g, member, a)) {
            snprintf(loops->rolled[loops->rolled_count++], WPK_NAME_MAX, "%s", name);
        } else if (region[a] > 1) {
            snprintf(loops->unrolled[loops->unrolled_count++], WPK_NAME_MAX, "%s", name);
        }
    }
}

/* Cuts the contraction's reduction loops; fills `serial`, innermost first. */
static int split_reductions(struct lowering *l, int g, const struct wpk_member *member,
                            struct member_loops *loops, char serial[][WPK_NAME_MAX])
{
    const struct wpk_decisions *d = &l->decisions[g];
    const struct wpk_stage *stage = &l->variant->program.stages[member->stage];
    char outermost[WPK_NAME_MAX] = "";
    int count = 0;
    for (int i = d->red_count - 1; i >= 0; i--) {
        int axis = d->red[i];
        char loop[WPK_NAME_MAX];
        snprintf(loop, sizeof(loop), "%s", stage->axes[axis].name);
        if (axis == d->split_axis && d->split > 0) {
            char inner[WPK_NAME_MAX];
            suffixed(outermost, stage->axes[axis].name, 'B');
            suffixed(inner, stage->axes[axis].name, 'T');
            emit_split(l, member->stage, true, loop, outermost, inner, d->split, WPK_TAIL_EXACT);
            snprintf(loop, sizeof(loop), "%s", inner);
        }
        if (i == d->red_count - 1 && d->unroll > 1) {
            char outer[WPK_NAME_MAX];
            char *unrolled = loops->unrolled[loops->unrolled_count++];
            suffixed(outer, stage->axes[axis].name, 'O');
            suffixed(unrolled, stage->axes[axis].name, 'U');
            emit_split(l, member->stage, true, loop, outer, unrolled, d->unroll, WPK_TAIL_EXACT);
            snprintf(loop, sizeof(loop), "%s", outer);
        }
        snprintf(serial[count++], WPK_NAME_MAX, "%s", loop);
    }
    if (outermost[0] != '\0') {
        snprintf(serial[count++], WPK_NAME_MAX, "%s", outermost);
    }
    return count;
}

static void emit_member_loops(struct lowering *l, const struct wpk_member *member, bool update,
                              const struct member_loops *loops, char serial[][WPK_NAME_MAX],
                              int serial_count)
{
    struct wpk_directive *reorder = emit(l, WPK_DIRECTIVE_REORDER, member->stage, update);
    if (loops->lanes[0] != '\0') {
        operand(reorder, loops->lanes);
    }
    for (int i = 0; i < loops->unrolled_count; i++) {
        operand(reorder, loops->unrolled[i]);
    }
    for (int i = 0; i < serial_count; i++) {
        operand(reorder, serial[i]);
    }
    for (int i = 0; i < loops->rolled_count; i++) {
        operand(reorder, loops->rolled[i]);
    }
    if (reorder->loop_count < 2 && l->err == WPK_OK) {
        l->out->directive_count--;
    }
    if (loops->lanes[0] != '\0') {
        emit_one(l, WPK_DIRECTIVE_VECTORIZE, member->stage, update, loops->lanes);
    }
    for (int i = 0; i < loops->unrolled_count; i++) {
        emit_one(l, WPK_DIRECTIVE_UNROLL, member->stage, update, loops->unrolled[i]);
    }
}

/* A scalar result of a short contiguous reduction: the reduction itself goes into lanes. */
static bool reduce_in_lanes(struct lowering *l, const struct wpk_member *member)
{
    const struct wpk_stage *stage = &l->variant->program.stages[member->stage];
    int64_t extent = stage->axis_count == stage->rank + 1 ? stage->axes[stage->rank].extent : 0;
    if (extent < 4 || extent > 64 || (extent & (extent - 1)) != 0) {
        return false;
    }
    (void)emit(l, WPK_DIRECTIVE_ATOMIC, member->stage, true);
    emit_one(l, WPK_DIRECTIVE_VECTORIZE, member->stage, true, stage->axes[stage->rank].name);
    return true;
}

static void lower_update(struct lowering *l, int g, int m, const int64_t *region, int vector,
                         int lanes)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_member *member = &group->member[m];
    const struct wpk_stage *stage = &l->variant->program.stages[member->stage];
    struct member_loops loops;
    char serial[WPK_AXES_MAX][WPK_NAME_MAX];
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
            snprintf(loops.unrolled[loops.unrolled_count++], WPK_NAME_MAX, "%s",
                     stage->axes[a].name);
        } else if (m != group->contraction) {
            snprintf(serial[serial_count++], WPK_NAME_MAX, "%s", stage->axes[a].name);
        }
    }
    emit_member_loops(l, member, true, &loops, serial, serial_count);
}

static void lower_member(struct lowering *l, int g, int m, const int64_t *region)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_member *member = &group->member[m];
    const struct wpk_program *program = &l->variant->program;
    const struct wpk_stage *stage = &program->stages[member->stage];
    struct member_loops loops;
    int lanes = 1, vector = wpk_member_vector(l->variant, &l->space->options, &l->decisions[g],
                                              member, region, &lanes);
    if (l->loops[g].tile_level[0] == '\0') {
        (void)emit(l, WPK_DIRECTIVE_COMPUTE_ROOT, member->stage, false);
    } else {
        struct wpk_directive *place = emit(l, WPK_DIRECTIVE_COMPUTE_AT, member->stage, false);
        operand(place, group->name);
        operand(place, l->loops[g].tile_level);
        for (int a = 0; a < stage->rank; a++) {
            struct wpk_directive *bound = emit(l, WPK_DIRECTIVE_BOUND_EXTENT, member->stage, false);
            operand(bound, stage->axes[a].name);
            bound->factor = region[a];
        }
    }
    split_member_pure(l, g, member, false, region, vector, lanes, &loops);
    emit_member_loops(l, member, false, &loops, NULL, 0);
    if (stage->reduction != WPK_REDUCE_NONE) {
        lower_update(l, g, m, region, vector, lanes);
    }
}

static void lower_group(struct lowering *l, int g)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    const struct wpk_stage *root = &l->variant->program.stages[group->root];
    int64_t region[WPK_MEMBERS_MAX][WPK_AXES_MAX];
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
    wpk_plan_regions(&l->variant->program, group, l->decisions[g].tile, region);
    for (int m = 0; m < group->member_count; m++) {
        if (!group->member[m].inlined) {
            lower_member(l, g, m, region[m]);
        }
    }
}

/* A packed operand of the main program: copied whole beforehand, its last dimension in lanes. */
static void lower_packed(struct lowering *l, const char *name)
{
    int id = wpk_schedule_find_stage(&l->out->main, name);
    if (id < 0) {
        return; /* a constant: packed by the prepare program */
    }
    const struct wpk_stage *stage = &l->out->main.stages[id];
    const struct wpk_axis *last = &stage->axes[stage->rank - 1];
    int lanes = l->space->options.device.vector_bytes / 4;
    struct wpk_directive *root = wpk_schedule_add(l->out, WPK_DIRECTIVE_COMPUTE_ROOT, id, false);
    while (lanes > 1 && last->extent % lanes != 0) {
        lanes /= 2;
    }
    if (root == NULL || lanes < 2) {
        l->err = root == NULL ? WPK_ENOSPC : l->err;
        return;
    }
    struct wpk_directive *split = wpk_schedule_add(l->out, WPK_DIRECTIVE_SPLIT, id, false);
    struct wpk_directive *vector = NULL;
    if (split != NULL) {
        char outer[WPK_NAME_MAX], inner[WPK_NAME_MAX];
        suffixed(outer, last->name, 'U');
        suffixed(inner, last->name, 'V');
        operand(split, last->name);
        operand(split, outer);
        operand(split, inner);
        split->factor = lanes;
        split->tail = WPK_TAIL_EXACT;
        vector = wpk_schedule_add(l->out, WPK_DIRECTIVE_VECTORIZE, id, false);
    }
    if (vector == NULL) {
        l->err = WPK_ENOSPC;
        return;
    }
    char inner[WPK_NAME_MAX];
    suffixed(inner, last->name, 'V');
    operand(vector, inner);
    if (l->space->options.threads > 1 && stage->rank > 1) {
        struct wpk_directive *parallel =
            wpk_schedule_add(l->out, WPK_DIRECTIVE_PARALLEL, id, false);
        if (parallel != NULL) {
            operand(parallel, stage->axes[0].name);
        }
    }
}

/* ---- the boundary and the target */

static wpk_err describe_boundary(struct lowering *l)
{
    const struct wpk_program *original = &l->space->program;
    for (int t = 0; t < original->tensor_count; t++) {
        const struct wpk_tensor *tensor = &original->tensors[t];
        if (tensor->role != WPK_ROLE_INPUT && tensor->role != WPK_ROLE_CONSTANT &&
            tensor->role != WPK_ROLE_OUTPUT) {
            continue;
        }
        struct wpk_boundary *boundary = &l->out->boundary[l->out->boundary_count++];
        snprintf(boundary->name, WPK_NAME_MAX, "%s", tensor->name);
        wpk_err err = wpk_variant_boundary(l->variant, original, t, &boundary->type);
        if (err != WPK_OK) {
            return err;
        }
    }
    return WPK_OK;
}

static void describe_target(const struct wpk_device *device, char *out)
{
    static const char *const features[WPK_ISA_COUNT] = {
        [WPK_ISA_SSE41] = "sse41",
        [WPK_ISA_AVX] = "sse41-avx",
        [WPK_ISA_AVX2] = "sse41-avx-avx2-f16c-fma",
        [WPK_ISA_AVX512] = "sse41-avx-avx2-f16c-fma-avx512-avx512_skylake",
    };
    bool newest = device->isa == WPK_ISA_AVX512 && device->bf16 && device->vnni;
    snprintf(out, WPK_TARGET_MAX, "x86-64-linux-%s%s", features[device->isa],
             newest ? "-avx512_cannonlake-avx512_zen4" : "");
}

wpk_err wpk_lower(const struct wpk_space *space, const struct wpk_candidate *candidate,
                  struct wpk_schedule *out, struct wpk_diag *diag)
{
    struct packed_names names = {.count = 0};
    struct lowering *l = calloc(1, sizeof(*l));
    memset(out, 0, sizeof(*out));
    if (l == NULL) {
        return WPK_ENOMEM;
    }
    l->space = space;
    l->variant = &space->variants[candidate->variant];
    l->structure = l->variant->plan;
    l->out = out;
    int group_count = l->structure->plan.group_count;
    if (!wpk_space_is_legal(space, candidate)) {
        wpk_diag_set(diag, "the candidate breaks a rule of its space");
        free(l);
        return WPK_EINVAL;
    }
    for (int g = 0; g < group_count; g++) {
        wpk_genes_read(l->variant, candidate, g, &l->decisions[g]);
    }
    out->threads = space->options.threads;
    describe_target(&space->options.device, out->target);
    l->err = wpk_program_copy(&l->variant->program, &out->program);
    if (l->err == WPK_OK) {
        l->err = describe_boundary(l);
    }
    if (l->err == WPK_OK) {
        l->err = pack_operands(l, &names);
    }
    if (l->err == WPK_OK) {
        l->err = wpk_schedule_split(out);
    }
    /* consumers first: where they are computed names loops that must exist */
    for (int g = group_count - 1; g >= 0 && l->err == WPK_OK; g--) {
        lower_group(l, g);
    }
    for (int i = 0; i < names.count && l->err == WPK_OK; i++) {
        lower_packed(l, names.name[i]);
    }
    wpk_err err = l->err;
    free(l);
    if (err != WPK_OK) {
        wpk_schedule_fini(out);
    }
    return err;
}
