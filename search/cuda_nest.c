/* SPDX-License-Identifier: Apache-2.0 */
/* The nest of a candidate on a GPU. */
#include "search/cuda_nest.h"

#include <string.h>

/* A nest while it is built. */
struct build {
    struct wpk_nest *nest;
    const struct wpk_cuda_groups *groups;
    struct wpk_cuda_tiles tiles[WPK_CUDA_GROUPS_MAX];
    int entry_of[WPK_STAGES_MAX];
    int block_loop[WPK_CUDA_GROUPS_MAX]; /* the root's last loop over blocks; -1: none */
    int step_loop[WPK_CUDA_GROUPS_MAX];  /* the reduction's loop that operands are staged in */
};

static void add(struct wpk_nest *nest, struct wpk_nest_loops *loops, int axis,
                enum wpk_loop_binding binding, int64_t step, enum wpk_tail tail)
{
    wpk_nest_add_loop(
        nest, loops,
        &(struct wpk_nest_loop){.axis = axis, .binding = binding, .step = step, .tail = tail});
}

static enum wpk_tail tail_of(int64_t extent, int64_t step, enum wpk_tail tail)
{
    return extent % step == 0 ? WPK_TAIL_EXACT : tail;
}

/* The tile of a thread, written out. */
static void add_tile(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                     const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    const int axis[] = {group->i, group->j};
    for (int a = 0; a < 2; a++) {
        if (axis[a] >= 0 && t->thread[a] > 1) {
            add(nest, loops, axis[a], WPK_BIND_UNROLL, 1, WPK_TAIL_EXACT);
        }
    }
}

static void add_root(struct build *b, int g)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_tiles *t = &b->tiles[g];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, group->root);
    const struct wpk_stage *root = wpk_nest_stage(nest, entry);
    const int axis[] = {group->i, group->j};
    entry->place = (struct wpk_nest_place){.entry = -1, .loop = -1};
    wpk_nest_find_region(nest);
    for (int a = 0; a < root->rank; a++) {
        if (a != group->i && a != group->j && root->axes[a].extent > 1) {
            add(nest, &entry->pure, a, WPK_BIND_BLOCK_Z, 1, WPK_TAIL_EXACT);
        }
    }
    for (int a = 0; a < 2; a++) {
        if (axis[a] >= 0) {
            add(nest, &entry->pure, axis[a], a == 0 ? WPK_BIND_BLOCK_Y : WPK_BIND_BLOCK_X,
                t->block[a], tail_of(root->axes[axis[a]].extent, t->block[a], WPK_TAIL_SHIFT));
        }
    }
    b->block_loop[g] = entry->pure.count - 1;
    for (int a = 0; a < 2; a++) {
        if (axis[a] >= 0) {
            add(nest, &entry->pure, axis[a], a == 0 ? WPK_BIND_THREAD_Y : WPK_BIND_THREAD_X,
                t->thread[a], tail_of(root->axes[axis[a]].extent, t->thread[a], WPK_TAIL_SHIFT));
        }
    }
    add_tile(nest, &entry->pure, group, t);
}

static void add_threads(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                        const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    if (group->i >= 0) {
        add(nest, loops, group->i, WPK_BIND_THREAD_Y, t->thread[0], WPK_TAIL_EXACT);
    }
    if (group->j >= 0) {
        add(nest, loops, group->j, WPK_BIND_THREAD_X, t->thread[1], WPK_TAIL_EXACT);
    }
}

/* Terms are added in the order in which they are written, but for those of a step. The reduction of
 * a root without axes is computed by one thread, before everything. */
static void add_sum(struct build *b, int g)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_tiles *t = &b->tiles[g];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, group->sum);
    const struct wpk_stage *sum = wpk_nest_stage(nest, entry);
    int64_t extent = sum->axes[group->k].extent;
    bool placed = b->block_loop[g] >= 0;
    entry->place = (struct wpk_nest_place){.entry = placed ? b->entry_of[group->root] : -1,
                                           .loop = b->block_loop[g]};
    entry->scope = placed ? WPK_SCOPE_REGISTER : WPK_SCOPE_ANY;
    entry->bounded = placed;
    wpk_nest_find_region(nest);
    if (placed) {
        add_threads(nest, &entry->pure, group, t);
        add_tile(nest, &entry->pure, group, t);
    }
    for (int a = sum->rank; a < sum->axis_count; a++) {
        int64_t step = a == group->k ? t->step : 1;
        add(nest, &entry->update, a, WPK_BIND_SERIAL, step,
            a == group->k ? tail_of(extent, step, WPK_TAIL_GUARD) : WPK_TAIL_EXACT);
    }
    b->step_loop[g] = entry->update.count - 1;
    if (placed) {
        add_threads(nest, &entry->update, group, t);
    }
    if (t->step > 1) {
        add(nest, &entry->update, group->k, WPK_BIND_SERIAL, 1, WPK_TAIL_EXACT);
    }
    if (placed) {
        add_tile(nest, &entry->update, group, t);
    }
}

/* Neighbours in memory are copied by neighbours among the threads. */
static void add_copy(struct build *b, int g, int c)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_tiles *t = &b->tiles[g];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, group->copy[c]);
    if (!t->staged[c]) {
        entry->inlined = true;
        return;
    }
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
    int x = stage->rank - 1, y = 0;
    entry->place = (struct wpk_nest_place){
        .entry = b->entry_of[group->sum], .update = true, .loop = b->step_loop[g]};
    entry->scope = WPK_SCOPE_SHARED;
    wpk_nest_find_region(nest);
    for (int a = 1; a < x; a++) {
        y = entry->extent[a] > entry->extent[y] ? a : y;
    }
    int64_t width = entry->extent[x] < t->threads ? entry->extent[x] : t->threads;
    int64_t rows = x > 0 ? t->threads / width : 1;
    rows = rows < entry->extent[y] ? rows : entry->extent[y];
    for (int a = 0; a < x; a++) {
        int64_t step = a == y ? rows : 1;
        if (entry->extent[a] > step) {
            add(nest, &entry->pure, a, WPK_BIND_SERIAL, step,
                tail_of(entry->extent[a], step, WPK_TAIL_GUARD));
        }
    }
    if (entry->extent[x] > width) {
        add(nest, &entry->pure, x, WPK_BIND_SERIAL, width,
            tail_of(entry->extent[x], width, WPK_TAIL_GUARD));
    }
    if (rows > 1) {
        add(nest, &entry->pure, y, WPK_BIND_THREAD_Y, 1, WPK_TAIL_EXACT);
    }
    add(nest, &entry->pure, x, WPK_BIND_THREAD_X, 1, WPK_TAIL_EXACT);
}

/* The stage's number among the operands of its group, or -1. */
static int find_copy(const struct wpk_cuda_group *group, int stage)
{
    int found = -1;
    for (int c = 0; c < group->copy_count; c++) {
        found = group->copy[c] == stage ? c : found;
    }
    return found;
}

/* Readers come after what they read in a program, and before it in a nest. */
wpk_err wpk_cuda_nest(const struct wpk_space *space, const struct wpk_candidate *candidate,
                      struct wpk_nest *out)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    struct build b = {.nest = out, .groups = &wpk_cuda_kept_of(variant)->groups};
    for (int g = 0; g < b.groups->count; g++) {
        wpk_cuda_tiles_read(variant, candidate, g, &b.tiles[g]);
    }
    memset(out, 0, sizeof(*out));
    out->program = &variant->program;
    for (int s = variant->program.stage_count - 1; s >= 0 && !out->full; s--) {
        int g = b.groups->group_of[s];
        const struct wpk_cuda_group *group = g < 0 ? NULL : &b.groups->group[g];
        b.entry_of[s] = out->entry_count;
        if (g == WPK_CUDA_PREPARED) {
            continue;
        }
        if (group == NULL) {
            wpk_nest_add(out, WPK_NEST_STAGE, s)->inlined = true;
        } else if (group->root == s) {
            add_root(&b, g);
        } else if (group->sum == s) {
            add_sum(&b, g);
        } else {
            add_copy(&b, g, find_copy(group, s));
        }
    }
    return out->full ? WPK_ENOSPC : WPK_OK;
}
