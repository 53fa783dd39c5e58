/* SPDX-License-Identifier: Apache-2.0 */
#include "search/cuda_nest_transforms.h"

#include "search/cuda_deal.h"

/* Name the loops over blocks and those over threads: the last ones are x, those before them y, all
 * others z. */
static void name_loops(struct wpk_nest *nest, const struct wpk_nest_loops *loops, int first_thread)
{
    int count = loops->count;
    for (int i = 0; i < count; i++) {
        int left = (i < first_thread ? first_thread : count) - 1 - i;
        bool block = i < first_thread;
        nest->loop[loops->first + i].binding =
            left == 0   ? (block ? WPK_BIND_BLOCK_X : WPK_BIND_THREAD_X)
            : left == 1 ? (block ? WPK_BIND_BLOCK_Y : WPK_BIND_THREAD_Y)
                        : (block ? WPK_BIND_BLOCK_Z : WPK_BIND_THREAD_Z);
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
    if (loops->count == 0) {
        wpk_cuda_add_loop(b->nest, loops, 0, WPK_BIND_BLOCK_X, root->axes[0].extent,
                          WPK_TAIL_EXACT);
    }
}

void wpk_cuda_add_tiled_root(struct wpk_cuda_build *b, int g)
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
    name_loops(nest, &entry->pure, blocks);
    b->block_loop[g] = entry->pure.count - 1;
    for (int a = 0; a < root->rank; a++) {
        if (group->tile[a] > 1) {
            wpk_cuda_add_loop(nest, &entry->pure, a, WPK_BIND_UNROLL, 1, WPK_TAIL_EXACT);
        }
    }
}

void wpk_cuda_add_transform(struct wpk_cuda_build *b, int g, int s)
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

void wpk_cuda_add_transform_copy(struct wpk_cuda_build *b, int g, int s)
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

int64_t wpk_cuda_copied_bytes(const struct wpk_space *space, const struct wpk_candidate *candidate,
                              int g)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    struct wpk_nest nest = {.program = &variant->program};
    struct wpk_cuda_build b = {.nest = &nest, .groups = &wpk_cuda_kept_of(variant)->groups};
    const struct wpk_cuda_group *group = &b.groups->group[g];
    int64_t bytes = sizeof(float);
    wpk_cuda_tiles_read(variant, candidate, g, &b.tiles[g]);
    for (int s = variant->program.stage_count - 1; s >= 0; s--) {
        b.entry_of[s] = nest.entry_count;
        if (b.groups->group_of[s] == WPK_CUDA_INLINED) {
            wpk_nest_add(&nest, WPK_NEST_STAGE, s)->inlined = true;
        } else if (b.groups->group_of[s] == g && group->root == s) {
            wpk_cuda_add_tiled_root(&b, g);
        } else if (b.groups->group_of[s] == g && group->copy[0] != s) {
            wpk_cuda_add_transform(&b, g, s);
        } else if (b.groups->group_of[s] == g) {
            wpk_cuda_add_transform_copy(&b, g, s);
            const struct wpk_nest_entry *entry = &nest.entry[b.entry_of[s]];
            int rank = variant->program.stages[s].rank;
            for (int a = 0; a < rank; a++) {
                bytes *= entry->extent[a] + (a == rank - 1 ? entry->row_padding : 0);
            }
        }
    }
    return bytes;
}
