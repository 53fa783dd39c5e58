/* SPDX-License-Identifier: Apache-2.0 */
/* The nest of a candidate on a GPU. */
#include "target/gpu/space/template.h"

#include "target/gpu/space/moves.h"

#include <string.h>

/* Blocks along i around those along j, or groups of them around those along j, which are around
 * those of the group. */
static void add_blocks(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                       const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    const struct wpk_stage *root = &nest->program->stages[group->root];
    const int axis[] = {group->i, group->j, group->i};
    bool grouped = t->order > 1;
    for (int a = 0; a < 2 + grouped; a++) {
        if (axis[a] >= 0) {
            int64_t step = t->block[a % 2] * (a == 0 ? t->order : 1);
            wpk_cuda_add_loop(nest, loops, axis[a],
                              a == 1 + grouped ? WPK_BIND_BLOCK_X
                              : a == grouped   ? WPK_BIND_BLOCK_Y
                                               : WPK_BIND_BLOCK_Z,
                              step,
                              wpk_cuda_tail(root->axes[axis[a]].extent, step, WPK_TAIL_SHIFT));
        }
    }
}

static void add_root(struct wpk_cuda_build *b, int g)
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
        int64_t step = a == group->whole ? t->together : 1, extent = root->axes[a].extent;
        if (a != group->i && a != group->j && extent > step) {
            wpk_cuda_add_loop(nest, &entry->pure, a, WPK_BIND_BLOCK_Z, step,
                              wpk_cuda_tail(extent, step, WPK_TAIL_SHIFT));
        }
    }
    add_blocks(nest, &entry->pure, group, t);
    b->block_loop[g] = entry->pure.count - 1;
    wpk_cuda_add_pieces(nest, &entry->pure, group, t);
    if (t->together > 1) {
        wpk_cuda_add_loop(nest, &entry->pure, group->whole, WPK_BIND_THREAD_Z, 1, WPK_TAIL_EXACT);
    }
    for (int a = 0; a < 2; a++) {
        if (axis[a] >= 0) {
            wpk_cuda_add_loop(
                nest, &entry->pure, axis[a], wpk_cuda_thread_of(group, t, a), t->piece[a],
                wpk_cuda_tail(root->axes[axis[a]].extent, t->piece[a], WPK_TAIL_SHIFT));
        }
    }
    wpk_cuda_add_points(nest, &entry->pure, group, t);
    if (group->j >= 0 && group->j == root->rank - 1) {
        wpk_cuda_bind_lanes(nest, &entry->pure, group, t);
    }
}

/* Terms that threads share: neighbouring threads inside those of the tile have neighbours, or
 * threads around those of the tile have one each. */
static void add_shared_terms(struct wpk_cuda_build *b, int g, struct wpk_nest_loops *loops)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_tiles *t = &b->tiles[g];
    const struct wpk_stage *sum = &nest->program->stages[group->sum];
    int64_t terms = sum->axes[group->k].extent / t->parts;
    for (int a = sum->rank; a < sum->axis_count; a++) {
        if (a != group->k) {
            wpk_cuda_add_loop(nest, loops, a, WPK_BIND_SERIAL, 1, WPK_TAIL_EXACT);
        }
    }
    int64_t vector = wpk_cuda_term_vector(nest->program, group, t);
    if (group->rows) {
        wpk_cuda_add_threads(nest, loops, group, t);
        wpk_cuda_deal_along(nest, loops, group->k, terms, t->share, vector);
    } else {
        if (terms > t->share) {
            wpk_cuda_add_loop(nest, loops, group->k, WPK_BIND_SERIAL, t->share,
                              wpk_cuda_tail(terms, t->share, WPK_TAIL_GUARD));
        }
        wpk_cuda_add_loop(nest, loops, group->k,
                          group->i >= 0 ? WPK_BIND_THREAD_Z : WPK_BIND_THREAD_Y, 1, WPK_TAIL_EXACT);
        wpk_cuda_add_threads(nest, loops, group, t);
    }
    wpk_cuda_add_points(nest, loops, group, t);
    if (!group->rows) {
        wpk_cuda_bind_lanes(nest, loops, group, t);
    }
    wpk_cuda_deal_lanes(nest, loops, group->k, vector);
}

/* Terms of a window, whose box is copied for a step: in the order in which they are written, all of
 * those of each element of the step. Points of the last axis are written out, if they are few. */
static void add_window_terms(struct wpk_cuda_build *b, int g, struct wpk_nest_loops *loops)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_tiles *t = &b->tiles[g];
    const struct wpk_stage *sum = &nest->program->stages[group->sum];
    wpk_cuda_add_loop(nest, loops, group->k, WPK_BIND_SERIAL, t->step,
                      wpk_cuda_tail(sum->axes[group->k].extent, t->step, WPK_TAIL_GUARD));
    b->step_loop[g] = loops->count - 1;
    if (t->step > 1) {
        wpk_cuda_add_loop(nest, loops, group->k, WPK_BIND_SERIAL, 1, WPK_TAIL_EXACT);
    }
    int last = sum->axis_count - 1;
    for (int a = sum->rank; a < sum->axis_count; a++) {
        bool few = a == last && sum->axes[a].extent <= WPK_CUDA_WINDOW_UNROLLED;
        if (a != group->k) {
            wpk_cuda_add_loop(nest, loops, a, few ? WPK_BIND_UNROLL : WPK_BIND_SERIAL, 1,
                              WPK_TAIL_EXACT);
        }
    }
    wpk_cuda_add_tile(nest, loops, group, t);
}

/* Terms of one thread are added in the order in which they are written, but for those of a step. */
static void add_terms(struct wpk_cuda_build *b, int g, struct wpk_nest_loops *loops)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_tiles *t = &b->tiles[g];
    const struct wpk_stage *sum = &nest->program->stages[group->sum];
    int64_t extent = sum->axes[group->k].extent;
    if (t->box) {
        add_window_terms(b, g, loops);
        return;
    }
    for (int a = sum->rank; a < sum->axis_count; a++) {
        int64_t step = a == group->k ? t->step : 1;
        wpk_cuda_add_loop(nest, loops, a, WPK_BIND_SERIAL, step,
                          a == group->k ? wpk_cuda_tail(extent, step, WPK_TAIL_GUARD)
                                        : WPK_TAIL_EXACT);
    }
    b->step_loop[g] = loops->count - 1;
    if (t->step > t->unrolled) {
        wpk_cuda_add_loop(nest, loops, group->k, WPK_BIND_SERIAL, t->unrolled,
                          wpk_cuda_tail(extent, t->unrolled, WPK_TAIL_GUARD));
    }
    if (t->unrolled > 1) {
        wpk_cuda_add_loop(nest, loops, group->k, WPK_BIND_UNROLL, 1, WPK_TAIL_EXACT);
    }
    if (b->block_loop[g] >= 0) {
        wpk_cuda_add_tile(nest, loops, group, t);
    }
}

/* The reduction of a root without axes is computed by one thread, before everything. */
static void add_sum(struct wpk_cuda_build *b, int g)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_tiles *t = &b->tiles[g];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, group->sum);
    const struct wpk_stage *sum = wpk_nest_stage(nest, entry);
    bool placed = b->block_loop[g] >= 0;
    /* The place of the reduction: in the blocks of its root, or of the transforms behind it;
     * there, if the products are not all computed at a time, in the root's loop over those. */
    const struct wpk_stage *root = &b->nest->program->stages[group->root];
    int of = b->block_loop[g] >= 0 ? b->entry_of[group->root] : -1, loop = b->block_loop[g];
    if (b->tiles[g].behind && b->tiles[g].together == root->axes[group->whole].extent) {
        of = b->entry_of[b->groups->group[group->behind].root];
        loop = b->step_loop[group->behind];
    }
    entry->place = (struct wpk_nest_place){.entry = of, .loop = loop};
    entry->scope = placed ? WPK_SCOPE_REGISTER : WPK_SCOPE_ANY;
    entry->bounded = placed;
    wpk_nest_find_region(nest);
    if (placed) {
        wpk_cuda_add_tile(nest, &entry->pure, group, t);
    }
    entry->update.atomic = t->parts > 1 || t->share > 1;
    if (t->parts > 1) {
        wpk_cuda_add_loop(nest, &entry->update, group->k, WPK_BIND_BLOCK_X,
                          sum->axes[group->k].extent / t->parts, WPK_TAIL_EXACT);
    }
    if (t->share > 1) {
        add_shared_terms(b, g, &entry->update);
    } else {
        add_terms(b, g, &entry->update);
    }
}

/* Buffers of a staged operand, and how it comes there. */
static void set_copying(struct wpk_nest_entry *entry, const struct wpk_cuda_group *group,
                        const struct wpk_cuda_tiles *t, int c)
{
    bool async = t->async && wpk_cuda_is_copied(group, t, c);
    entry->depth = t->depth > 1 ? (int)t->depth : 0;
    entry->by = async ? WPK_COPY_ASYNC : t->depth > 1 ? WPK_COPY_LOAD : WPK_COPY_ANY;
}

static void add_copy(struct wpk_cuda_build *b, int g, int c)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_tiles *t = &b->tiles[g];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, group->operand[c].stage);
    if (!t->staged[c] || (t->before && c == group->before_copy) ||
        (t->box && c == group->box_copy)) {
        entry->inlined = true;
        return;
    }
    entry->place = (struct wpk_nest_place){
        .entry = b->entry_of[group->sum], .update = true, .loop = b->step_loop[g]};
    entry->scope = WPK_SCOPE_SHARED;
    entry->row_padding = t->padding[c];
    set_copying(entry, group, t, c);
    wpk_nest_find_region(nest);
    int rank = wpk_nest_stage(nest, entry)->rank;
    entry->spacing = wpk_cuda_spacing(group, t, c);
    const struct wpk_node *load = &nest->program->nodes[group->operand[c].load];
    for (int a = 0; a < rank && entry->spacing > 0; a++) {
        bool whole = wpk_index_axis(nest->program, load->index[a]) == group->whole;
        entry->spaced = whole ? a : entry->spaced;
    }
    bool whole_moves = entry->extent[rank - 1] % WPK_CUDA_VECTOR_ELEMENTS == 0;
    int64_t lanes = t->vectors[c] && whole_moves ? WPK_CUDA_VECTOR_ELEMENTS : 1;
    bool banked =
        entry->row_padding == WPK_CUDA_VECTOR_ELEMENTS && (lanes > 1 || group->operand[c].gathers);
    if (!banked ||
        !wpk_cuda_deal_rows(nest, &entry->pure, rank, entry->extent, t->threads, lanes)) {
        wpk_cuda_deal(nest, &entry->pure, rank, entry->extent, (struct wpk_cuda_cut){.axis = -1},
                      t->threads, lanes);
    }
}

void wpk_cuda_add_box(struct wpk_cuda_build *b, int g, int stage)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_tiles *t = &b->tiles[g];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, stage);
    entry->place = (struct wpk_nest_place){
        .entry = b->entry_of[b->groups->group[g].sum], .update = true, .loop = b->step_loop[g]};
    entry->scope = WPK_SCOPE_SHARED;
    set_copying(entry, &b->groups->group[g], t, b->groups->group[g].box_copy);
    int64_t rounds, row;
    entry->row_padding = wpk_cuda_box_padding(nest->program, &b->groups->group[g], t, &rounds);
    int rank = wpk_nest_stage(nest, entry)->rank;
    int64_t align = wpk_cuda_box_align(nest->program, &b->groups->group[g], t, &row);
    wpk_nest_find_region(nest);
    if (align > 1) {
        entry->align[rank - 1] = align;
        entry->extent[rank - 1] = row;
    }
    wpk_cuda_deal(nest, &entry->pure, rank, entry->extent, (struct wpk_cuda_cut){.axis = -1},
                  t->threads, 1);
}

/* ---- rows */

/* Rows of a block have threads of their own, around those of a row. */
static void add_rows(struct wpk_nest *nest, struct wpk_nest_loops *loops, int axis, int64_t rows)
{
    if (rows > 1) {
        wpk_cuda_add_loop(nest, loops, axis, WPK_BIND_THREAD_Y, 1, WPK_TAIL_EXACT);
    }
}

/* The root of a block's rows: the block has all of each row. */
static void add_row_root(struct wpk_cuda_build *b, int g)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g];
    const struct wpk_cuda_tiles *t = &b->tiles[g];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, group->root);
    const struct wpk_stage *root = wpk_nest_stage(nest, entry);
    int64_t extent[WPK_AXES_MAX];
    int last = group->row_axes - 1;
    entry->place = (struct wpk_nest_place){.entry = -1, .loop = -1};
    wpk_nest_find_region(nest);
    for (int a = 0; a < root->rank; a++) {
        extent[a] = a < last ? 1 : a == last ? t->rows : root->axes[a].extent;
        if (a < last && root->axes[a].extent > 1) {
            wpk_cuda_add_loop(nest, &entry->pure, a, WPK_BIND_BLOCK_Y, 1, WPK_TAIL_EXACT);
        }
    }
    wpk_cuda_add_loop(nest, &entry->pure, last, WPK_BIND_BLOCK_X, t->rows,
                      wpk_cuda_tail(root->axes[last].extent, t->rows, WPK_TAIL_SHIFT));
    b->block_loop[g] = entry->pure.count - 1;
    if (root->rank > last + 2) {
        wpk_cuda_deal(nest, &entry->pure, root->rank, extent,
                      (struct wpk_cuda_cut){last, root->axes[last].extent}, t->threads, 1);
        return;
    }
    add_rows(nest, &entry->pure, last, t->rows);
    int64_t vector = wpk_cuda_vector(extent[last + 1], t->share);
    wpk_cuda_deal_along(nest, &entry->pure, last + 1, extent[last + 1], t->share, vector);
    wpk_cuda_deal_lanes(nest, &entry->pure, last + 1, vector); /* stored together, if they can be */
}

/* Add a group that a block of rows computes for itself: numbers of each row in the registers of its
 * threads, all else in shared memory. */
static void add_row_part(struct wpk_cuda_build *b, int g, int host)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *of = &b->groups->group[host];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, b->groups->group[g].root);
    entry->place =
        (struct wpk_nest_place){.entry = b->entry_of[of->root], .loop = b->block_loop[host]};
    wpk_nest_find_region(nest);
    if (wpk_cuda_is_in_registers(nest->program, b->groups, of, g)) {
        entry->scope = WPK_SCOPE_REGISTER;
        add_rows(nest, &entry->pure, of->row_axes - 1, b->tiles[host].rows);
        return;
    }
    entry->scope = WPK_SCOPE_SHARED;
    wpk_cuda_deal(nest, &entry->pure, wpk_nest_stage(nest, entry)->rank, entry->extent,
                  (struct wpk_cuda_cut){.axis = -1}, b->tiles[host].threads, 1);
    b->block_loop[g] = entry->pure.count - 1; /* a thread's point */
}

/* A row's threads share the terms of a number of the row; others are of the thread that has the
 * point. */
static void add_row_sum(struct wpk_cuda_build *b, int g, int host)
{
    struct wpk_nest *nest = b->nest;
    const struct wpk_cuda_group *group = &b->groups->group[g], *of = &b->groups->group[host];
    const struct wpk_cuda_tiles *t = &b->tiles[host];
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, group->sum);
    const struct wpk_stage *sum = wpk_nest_stage(nest, entry);
    bool shares = wpk_cuda_is_in_registers(nest->program, b->groups, of, g);
    entry->place = (struct wpk_nest_place){.entry = b->entry_of[shares ? of->root : group->root],
                                           .loop = b->block_loop[shares ? host : g]};
    entry->scope = WPK_SCOPE_REGISTER;
    wpk_nest_find_region(nest);
    for (int a = sum->rank; a < sum->axis_count; a++) {
        if (!shares || a != group->k) {
            wpk_cuda_add_loop(nest, &entry->update, a, WPK_BIND_SERIAL, 1, WPK_TAIL_EXACT);
        }
    }
    if (shares) {
        int64_t extent = sum->axes[group->k].extent;
        entry->update.atomic = true;
        add_rows(nest, &entry->pure, of->row_axes - 1, t->rows);
        add_rows(nest, &entry->update, of->row_axes - 1, t->rows);
        int64_t vector = wpk_cuda_vector(extent, t->share);
        wpk_cuda_deal_along(nest, &entry->update, group->k, extent, t->share, vector);
        wpk_cuda_deal_lanes(nest, &entry->update, group->k, vector);
    }
}

int wpk_cuda_find_host(const struct wpk_cuda_build *b, int g)
{
    int host = -1;
    for (int h = g + 1; h < b->groups->count; h++) {
        host = b->tiles[h].rows > 0 && b->groups->group[h].in_row[g] ? h : host;
    }
    return host;
}

void wpk_cuda_nest_in_rows(struct wpk_cuda_build *b, int g, int host, int stage)
{
    if (stage == b->groups->group[g].root) {
        add_row_part(b, g, host);
    } else {
        add_row_sum(b, g, host);
    }
}

void wpk_cuda_nest_tile(struct wpk_cuda_build *b, int g, int stage)
{
    const struct wpk_cuda_group *group = &b->groups->group[g];
    if (group->root == stage) {
        add_root(b, g);
    } else if (group->sum == stage) {
        add_sum(b, g);
    } else {
        int c = 0;
        while (group->operand[c].stage != stage) {
            c++;
            WPK_ASSERT(c < group->operand_count);
        }
        add_copy(b, g, c);
    }
}

void wpk_cuda_nest_rows(struct wpk_cuda_build *b, int g, int stage)
{
    if (b->tiles[g].rows > 0) {
        add_row_root(b, g);
    } else {
        wpk_cuda_nest_tile(b, g, stage);
    }
}

void wpk_cuda_nest_joined(struct wpk_cuda_build *b, int g, int stage)
{
    if (b->groups->group[g].root == stage && b->tiles[g].behind) {
        wpk_cuda_add_products(b, g);
    } else {
        wpk_cuda_nest_tile(b, g, stage);
    }
}

/* Give the gene, if there is one, its first choice unless it decides something. */
static void settle_gene(struct wpk_candidate *candidate, int gene, bool decides)
{
    if (gene >= 0 && !decides) {
        candidate->gene[gene] = 0;
    }
}

void wpk_cuda_settle(const struct wpk_space *space, struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    struct wpk_cuda_build b = {.groups = &kept->groups};
    for (int g = 0; g < b.groups->count; g++) {
        wpk_cuda_tiles_read(variant, candidate, g, &b.tiles[g]);
    }
    for (int g = 0; g < b.groups->count; g++) {
        uint8_t *gene = &candidate->gene[kept->first[g]];
        const struct wpk_cuda_guessed_genes *guessed = &kept->guessed[g];
        const struct wpk_cuda_join_genes *join = &kept->join[g];
        bool joined = wpk_cuda_joined_to(variant, candidate, g) >= 0;
        if (b.tiles[g].behind || b.tiles[g].before) { /* all operands are copied */
            memset(&candidate->gene[kept->staged[g]], 0, WPK_CUDA_OPERANDS_MAX);
        }
        bool some = b.tiles[g].box || (b.tiles[g].behind && !b.tiles[g].before);
        settle_gene(candidate, join->together, some);
        for (int c = 0; c < b.groups->group[g].operand_count; c++) {
            bool padded = wpk_cuda_has_rows_of_terms(&b.groups->group[g], &b.tiles[g], c);
            settle_gene(candidate, guessed->padding[c], padded);
        }
        settle_gene(candidate, guessed->unroll, !b.tiles[g].box);
        if (wpk_cuda_find_host(&b, g) >= 0 || joined) {
            memset(gene, 0, (size_t)(kept->first[g + 1] - kept->first[g]));
        } else if (b.tiles[g].rows > 0) {
            memset(gene, 0, WPK_CUDA_BLOCK_ROWS);
            memset(&candidate->gene[kept->first[g + 1] - guessed->count], 0,
                   (size_t)guessed->count);
        } else if (b.groups->group[g].kind == WPK_CUDA_ROWS) {
            gene[WPK_CUDA_ROW_THREADS] = 0;
        }
    }
}
