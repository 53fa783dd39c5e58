/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/template.h"

#include "target/gpu/space/moves.h"
#include "target/gpu/space/transforms.h"

/* Name the loops over blocks, which begin with number `first`, or over threads: the last one is x,
 * that before it y, all others z. */
static void name_loops(struct wpk_nest *nest, const struct wpk_nest_loops *loops, int first,
                       bool block)
{
    for (int i = first; i < loops->count; i++) {
        int left = loops->count - 1 - i;
        nest->loop[loops->first + i].binding =
            left == 0   ? (block ? WPK_BIND_BLOCK_X : WPK_BIND_THREAD_X)
            : left == 1 ? (block ? WPK_BIND_BLOCK_Y : WPK_BIND_THREAD_Y)
                        : (block ? WPK_BIND_BLOCK_Z : WPK_BIND_THREAD_Z);
    }
}

/* If no axis is cut into blocks, the one block has all of an axis that has whole tiles. */
static void add_one_block(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                          const struct wpk_stage *root, const struct wpk_cuda_group *group)
{
    int axis = 0;
    for (int a = root->rank - 1; a >= 0; a--) {
        axis = root->axes[a].extent % group->tile[a] == 0 ? a : axis;
    }
    if (loops->count == 0) {
        wpk_cuda_add_loop(nest, loops, axis, WPK_BIND_BLOCK_X, root->axes[axis].extent,
                          WPK_TAIL_EXACT);
    }
}

/* Tiles of axes that are along neither i nor j are blocks of their own, unless the last one is not
 * whole: then the axis is one block, whose threads have its tiles. */
static void add_tile_blocks(struct wpk_cuda_build *b, int g, struct wpk_nest_loops *loops,
                            const struct wpk_stage *root)
{
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const int order[] = {group->i, group->j};
    for (int a = 0; a < root->rank; a++) {
        bool along = a == group->i || a == group->j;
        if (!along && root->axes[a].extent > group->tile[a] &&
            root->axes[a].extent % group->tile[a] == 0) {
            wpk_cuda_add_loop(b->nest, loops, a, WPK_BIND_BLOCK_Z, group->tile[a], WPK_TAIL_EXACT);
        }
    }
    for (int i = 0; i < 2; i++) {
        if (order[i] >= 0) {
            int64_t extent = root->axes[order[i]].extent, step = b->tiles[g].block[i];
            wpk_cuda_add_loop(b->nest, loops, order[i], WPK_BIND_BLOCK_X, step,
                              wpk_cuda_tail(extent, step, WPK_TAIL_SHIFT));
        }
    }
    add_one_block(b->nest, loops, root, group);
}

/* The elements of a thread's tile; four neighbours along the last axis are stored together, if they
 * can be. */
static void add_points(struct wpk_nest *nest, struct wpk_nest_loops *loops, int rank,
                       const int64_t *tile)
{
    for (int a = 0; a < rank; a++) {
        bool four = a == rank - 1 && tile[a] == WPK_CUDA_VECTOR_ELEMENTS;
        if (tile[a] > 1) {
            wpk_cuda_add_loop(nest, loops, a, four ? WPK_BIND_LANES : WPK_BIND_UNROLL, 1,
                              WPK_TAIL_EXACT);
        }
    }
}

/* The root of transforms. Blocks and threads deal out tiles; a thread has all of a tile. */
static void add_tiled_root(struct wpk_cuda_build *b, int g)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, group->root);
    const struct wpk_stage *root = wpk_nest_stage(nest, entry);
    const int order[] = {group->i, group->j};
    entry->place = (struct wpk_nest_place){.entry = -1, .loop = -1};
    wpk_nest_find_region(nest);
    add_tile_blocks(b, g, &entry->pure, root);
    int blocks = entry->pure.count;
    name_loops(nest, &entry->pure, 0, true);
    b->step_loop[g] = blocks - 1;
    for (int a = 0; a < root->rank; a++) {
        if (a != group->i && a != group->j && root->axes[a].extent % group->tile[a] != 0) {
            wpk_cuda_add_loop(nest, &entry->pure, a, WPK_BIND_THREAD_Z, group->tile[a],
                              WPK_TAIL_GUARD);
        }
    }
    for (int i = 0; i < 2; i++) {
        if (order[i] >= 0) {
            int64_t tile = group->tile[order[i]];
            wpk_cuda_add_loop(nest, &entry->pure, order[i], WPK_BIND_THREAD_X, tile,
                              wpk_cuda_tail(root->axes[order[i]].extent, tile, WPK_TAIL_GUARD));
        }
    }
    name_loops(nest, &entry->pure, blocks, false);
    b->block_loop[g] = entry->pure.count - 1;
    add_points(nest, &entry->pure, root->rank, group->tile);
}

/* ---- in a contraction's blocks */

/* The tail of a loop that stands inside of others: its step is to divide the axis, and all that is
 * needed of it where those end. */
static enum wpk_tail tail_of(const struct wpk_nest_entry *entry, int axis, int64_t step)
{
    bool divides = entry->extent[axis] % step == 0 && entry->least[axis] == entry->extent[axis];
    return divides ? WPK_TAIL_EXACT : WPK_TAIL_GUARD;
}

/* Deal out what a block has of each axis to so many threads, in whole tiles: the last axes in
 * `order` to neighbouring threads; what is left runs in loops around them. A thread's tile is
 * written out.
 *   shape   order, extent, tile [rank] */
static void deal_tiles(struct wpk_nest *nest, const int *order, const int64_t *extent,
                       const int64_t *tile, int64_t threads)
{
    struct wpk_nest_entry *entry = &nest->entry[nest->entry_count - 1];
    struct wpk_nest_loops *loops = &entry->pure;
    int rank = wpk_nest_stage(nest, entry)->rank;
    int64_t along[WPK_AXES_MAX];
    for (int i = rank - 1; i >= 0; i--) {
        int a = order[i];
        int64_t tiles = (extent[a] + tile[a] - 1) / tile[a];
        along[a] = tiles < threads ? tiles : threads;
        while (tiles % along[a] != 0) {
            along[a]--;
        }
        threads /= along[a];
        int64_t step = along[a] * tile[a];
        if (extent[a] > step) {
            wpk_cuda_add_loop(nest, loops, a, WPK_BIND_SERIAL, step, tail_of(entry, a, step));
        }
    }
    int first = loops->count;
    for (int i = 0; i < rank; i++) {
        int a = order[i];
        if (along[a] > 1 || i == rank - 1) {
            wpk_cuda_add_loop(nest, loops, a, WPK_BIND_THREAD_X, tile[a],
                              tail_of(entry, a, tile[a]));
        }
    }
    name_loops(nest, loops, first, false);
}

/* The root of transforms behind a contraction that the same blocks compute: a block's tiles are
 * dealt out to the threads of the products. */
static void add_root_behind(struct wpk_cuda_build *b, int g, int contraction)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_tiles *t = &b->tiles[contraction];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, group->root);
    const struct wpk_stage *root = wpk_nest_stage(nest, entry);
    int64_t extent[WPK_AXES_MAX];
    int order[WPK_AXES_MAX];
    bool fits =
        wpk_cuda_fit(nest->program, b->groups, &b->groups->group[contraction], t->block, extent);
    WPK_ASSERT(fits);
    entry->place = (struct wpk_nest_place){.entry = -1, .loop = -1};
    wpk_nest_find_region(nest);
    for (int a = 0; a < root->rank; a++) {
        int64_t whole = root->axes[a].extent;
        order[a] = a;
        if (whole > extent[a]) {
            wpk_cuda_add_loop(nest, &entry->pure, a, WPK_BIND_BLOCK_X, extent[a],
                              wpk_cuda_tail(whole, extent[a], WPK_TAIL_SHIFT));
        }
    }
    add_one_block(nest, &entry->pure, root, group);
    name_loops(nest, &entry->pure, 0, true);
    b->step_loop[g] = entry->pure.count - 1;
    deal_tiles(nest, order, extent, group->tile, t->threads);
    b->block_loop[g] = entry->pure.count - 1;
    add_points(nest, &entry->pure, root->rank, group->tile);
}

void wpk_cuda_add_products(struct wpk_cuda_build *b, int g)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_tiles *t = &b->tiles[g];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, group->root);
    const struct wpk_stage *root = wpk_nest_stage(nest, entry);
    entry->place =
        (struct wpk_nest_place){.entry = b->entry_of[b->groups->group[group->behind].root],
                                .loop = b->step_loop[group->behind]};
    entry->scope = WPK_SCOPE_SHARED;
    entry->bounded = true;
    wpk_nest_find_region(nest);
    b->block_loop[g] = 0;
    if (t->together < root->axes[group->whole].extent) {
        wpk_cuda_add_loop(nest, &entry->pure, group->whole, WPK_BIND_SERIAL, t->together,
                          WPK_TAIL_EXACT);
    }
    wpk_cuda_add_tile(nest, &entry->pure, group, t);
    if (group->j == root->rank - 1) {
        wpk_cuda_bind_lanes(nest, &entry->pure, group, t);
    }
}

/* The root of transforms before a contraction that the same blocks compute: in shared memory, what
 * a step of the products reads. */
static void add_root_before(struct wpk_cuda_build *b, int g, int contraction)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_group *of = &b->groups->group[contraction];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, group->root);
    int rank = wpk_nest_stage(nest, entry)->rank, count = 0;
    entry->place = (struct wpk_nest_place){
        .entry = b->entry_of[of->sum], .update = true, .loop = b->step_loop[contraction]};
    entry->scope = WPK_SCOPE_SHARED;
    wpk_nest_find_region(nest);
    for (int a = 0; a < rank; a++) {
        if (a != of->before_last) {
            entry->storage[count++] = a;
        }
    }
    entry->storage[count] = of->before_last;
    entry->reordered = of->before_last != rank - 1;
    entry->row_padding = b->tiles[contraction].padding[of->before_copy];
    entry->spacing = wpk_cuda_spacing(of, &b->tiles[contraction], of->before_copy);
    for (int a = 0; a < rank; a++) { /* the innermost one of those that a tile has whole */
        entry->spaced = group->tile[a] > 1 ? a : entry->spaced;
    }
    deal_tiles(nest, entry->storage, entry->extent, group->tile, b->tiles[contraction].threads);
    b->block_loop[g] = entry->pure.count - 1;
    add_points(nest, &entry->pure, rank, group->tile);
}

/* ---- transforms */

/* A transform, or what it copies, in the registers of a thread: all loops are unrolled. */
static void add_transform(struct wpk_cuda_build *b, int g, int s)
{
    struct wpk_nest *nest = b->nest;
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, s);
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
    entry->place = (struct wpk_nest_place){.entry = b->entry_of[b->groups->group[g].root],
                                           .loop = b->block_loop[g]};
    entry->scope = WPK_SCOPE_REGISTER;
    wpk_nest_find_region(nest);
    for (int update = 0; update <= (stage->reduction != WPK_REDUCE_NONE); update++) {
        struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
        for (int a = 0; a < (update ? stage->axis_count : stage->rank); a++) {
            if (a >= stage->rank || entry->extent[a] > 1) {
                wpk_cuda_add_loop(nest, loops, a, WPK_BIND_UNROLL, 1, WPK_TAIL_EXACT);
            }
        }
    }
}

/* Copy the operands of transforms to shared memory: neighbouring threads read neighbours there,
 * where each would read a row of its own tile in global memory. Rows of an odd number of elements
 * begin in banks of their own, those that are written together are as far apart as possible. */
static void add_transform_copy(struct wpk_cuda_build *b, int g, int s)
{
    struct wpk_nest *nest = b->nest;
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, s);
    int rank = wpk_nest_stage(nest, entry)->rank;
    entry->place = (struct wpk_nest_place){.entry = b->entry_of[b->groups->group[g].root],
                                           .loop = b->step_loop[g]};
    entry->scope = WPK_SCOPE_SHARED;
    wpk_nest_find_region(nest);
    int64_t width = entry->extent[rank - 1];
    entry->row_padding = 1 - width % 2;
    wpk_cuda_deal_apart(nest, &entry->pure, rank, entry->extent, b->tiles[g].threads);
}

void wpk_cuda_nest_transforms(struct wpk_cuda_build *b, int g, int stage)
{
    const struct wpk_cuda_group *group = &b->groups->group[g];
    if (group->root != stage && !(b->tiles[g].staged[0] && group->operand[0].stage == stage)) {
        add_transform(b, g, stage);
    } else if (group->root != stage) {
        add_transform_copy(b, g, stage);
    } else if (b->behind_of[g] >= 0) {
        add_root_behind(b, g, b->behind_of[g]);
    } else if (b->before_of[g] >= 0) {
        add_root_before(b, g, b->before_of[g]);
    } else {
        add_tiled_root(b, g);
    }
}

int64_t wpk_cuda_copied_bytes(const struct wpk_space *space, const struct wpk_candidate *candidate,
                              int g)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    struct wpk_nest nest = {.program = &variant->program};
    struct wpk_cuda_build b = {.nest = &nest, .groups = &wpk_cuda_kept_of(variant)->groups};
    int64_t bytes = sizeof(float);
    wpk_cuda_tiles_read(variant, candidate, g, &b.tiles[g]);
    b.behind_of[g] = b.before_of[g] = -1;
    for (int s = variant->program.stage_count - 1; s >= 0; s--) {
        b.entry_of[s] = nest.entry_count;
        if (b.groups->group_of[s] == WPK_CUDA_INLINED) {
            wpk_nest_add(&nest, WPK_NEST_STAGE, s)->inlined = true;
        } else if (b.groups->group_of[s] == g) {
            wpk_cuda_nest_transforms(&b, g, s);
        }
    }
    int copy = b.entry_of[b.groups->group[g].operand[0].stage];
    const struct wpk_nest_entry *entry = &nest.entry[copy];
    int rank = wpk_nest_stage(&nest, entry)->rank;
    for (int a = 0; a < rank; a++) {
        bytes *= entry->extent[a] + (a == rank - 1 ? entry->row_padding : 0);
    }
    return bytes;
}

void wpk_cuda_add_pieces(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                         const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    const int axis[] = {group->i, group->j};
    for (int a = 0; a < 2; a++) {
        if (axis[a] >= 0 && t->virtual_threads[a] > 1) {
            wpk_cuda_add_loop(nest, loops, axis[a], WPK_BIND_UNROLL,
                              t->block[a] / t->virtual_threads[a], WPK_TAIL_EXACT);
        }
    }
}

void wpk_cuda_add_points(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                         const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    const int axis[] = {group->i, group->j};
    for (int a = 0; a < 2; a++) {
        if (axis[a] >= 0 && t->piece[a] > 1) {
            wpk_cuda_add_loop(nest, loops, axis[a], WPK_BIND_UNROLL, 1, WPK_TAIL_EXACT);
        }
    }
}

enum wpk_loop_binding wpk_cuda_thread_of(const struct wpk_cuda_group *group,
                                         const struct wpk_cuda_tiles *t, int along_j)
{
    bool around = t->share > 1 && group->rows;
    return along_j ? (around ? WPK_BIND_THREAD_Y : WPK_BIND_THREAD_X)
                   : (around ? WPK_BIND_THREAD_Z : WPK_BIND_THREAD_Y);
}

void wpk_cuda_bind_lanes(struct wpk_nest *nest, const struct wpk_nest_loops *loops,
                         const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    struct wpk_nest_loop *last = &nest->loop[loops->first + loops->count - 1];
    if (t->piece[1] == WPK_CUDA_VECTOR_ELEMENTS && last->axis == group->j && last->step == 1) {
        last->binding = WPK_BIND_LANES;
    }
}

void wpk_cuda_add_threads(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                          const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    const int axis[] = {group->i, group->j};
    if (t->together > 1) {
        wpk_cuda_add_loop(nest, loops, group->whole, WPK_BIND_THREAD_Z, 1, WPK_TAIL_EXACT);
    }
    for (int a = 0; a < 2; a++) {
        if (axis[a] >= 0) {
            wpk_cuda_add_loop(nest, loops, axis[a], wpk_cuda_thread_of(group, t, a), t->piece[a],
                              WPK_TAIL_EXACT);
        }
    }
}

void wpk_cuda_add_tile(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                       const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    wpk_cuda_add_pieces(nest, loops, group, t);
    wpk_cuda_add_threads(nest, loops, group, t);
    wpk_cuda_add_points(nest, loops, group, t);
}
