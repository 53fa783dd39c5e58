/* SPDX-License-Identifier: Apache-2.0 */
#include "search/cuda_space.h"

#include "op/derive.h"
#include "search/cuda_cost.h"
#include "search/cuda_moves.h"
#include "search/cuda_nest.h"
#include "search/cuda_nest_transforms.h"
#include "search/cuda_transforms.h"
#include "search/gene_list.h"
#include "search/genes.h"
#include "search/variant.h"

#include <stdlib.h>
#include <string.h>

#define THREADS_LEAST 32 /* a warp, unless each thread has one result */
#define REGISTERS_MAX 255
#define STEP_LEAST 8
#define STEP_MOST 32
#define ROWS_MAX 8 /* of a block */
#define ROW_THREADS_LEAST 16
#define SHARE_LEAST 4 /* threads that share terms, if any do */
#define SHARE_MAX 1024
#define ORDER_LEAST 4 /* blocks along i that precede the next ones along j, if several do */
#define ORDER_MAX 16
#define DEPTH_MAX 3   /* buffers of operands */
#define PARTS_MAX 16  /* blocks that share a tile's terms */
#define TILES_MAX 128 /* of a block, along an axis of transforms */

/* Sizes of a tile: of roots that read a reduction, of those whose threads may share its terms, and
 * of those that read none. */
struct sizes {
    int64_t block[2][2], thread[2]; /* least and most of i and j; most of both */
};

static const struct sizes with_sum = {.block = {{16, 128}, {16, 128}}, .thread = {8, 8}};
static const struct sizes shared_out = {.block = {{1, 128}, {1, 128}}, .thread = {4, 4}};
static const struct sizes pointwise = {.block = {{1, 8}, {32, 256}}, .thread = {2, 4}};

/* ---- the program */

/* Make one axis of axes that a contraction's tensors address as one; without them, change
 * nothing. */
static wpk_err collapse(struct wpk_program *program)
{
    wpk_err err = WPK_OK;
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        struct wpk_program attempt = {0};
        if (program->stages[s].reduction == WPK_REDUCE_NONE || wpk_cuda_is_transform(program, s)) {
            continue;
        }
        err = wpk_program_copy(program, &attempt);
        wpk_err collapsed = err == WPK_OK ? wpk_derive_collapse(&attempt, s) : err;
        if (collapsed == WPK_OK) {
            wpk_program_fini(program);
            wpk_program_move(&attempt, program);
            s = -1; /* stages have moved, and there may be more axes */
        }
        wpk_program_fini(&attempt);
    }
    return err;
}

static wpk_err apply_choices(const struct wpk_space *space, const struct wpk_variant *variant,
                             struct wpk_program *program)
{
    wpk_err err = WPK_OK;
    for (int late = 0; late < 2; late++) {
        for (int i = 0; i < space->sites->count && err == WPK_OK; i++) {
            const struct wpk_site *site = &space->sites->site[i];
            const struct wpk_site_choice *choice = &site->choice[variant->choice[i]];
            if (choice->late == (late != 0) && choice->rewriting != NULL) {
                err = wpk_site_apply(program, site, variant->choice[i]);
            }
        }
    }
    return err;
}

/* ---- genes */

/* Elements of a thread's tile, or pieces of it: powers of two, and what divides an odd extent, such
 * as the 49 points of an image of 7 x 7, into whole tiles. */
static void add_thread_sizes(struct wpk_gene_list *list, const char *of, const char *name,
                             const struct wpk_axis *axis, int64_t most)
{
    int gene = wpk_gene_list_add(list, true, "%s.%s.%s", of, name, axis->name);
    for (int64_t size = 1; size <= most; size++) {
        bool divides = axis->extent % 2 != 0 && axis->extent % size == 0;
        if (divides || (size & (size - 1)) == 0) {
            wpk_gene_list_number(list, gene, size < axis->extent ? size : axis->extent);
        }
    }
}

static void add_sizes(struct wpk_gene_list *list, const char *of, const char *name,
                      const struct wpk_axis *axis, int64_t least, int64_t most)
{
    int gene = wpk_gene_list_add(list, true, "%s.%s.%s", of, name, axis->name);
    for (int64_t size = least; size <= most; size *= 2) {
        wpk_gene_list_number(list, gene, size < axis->extent ? size : axis->extent);
    }
}

/* The tiles of a block along an axis of transforms, in elements. An axis whose last tile is not
 * whole stays whole: a block that moved inwards would have no whole tiles. */
static void add_tile_counts(struct wpk_gene_list *list, const char *of,
                            const struct wpk_stage *root, const struct wpk_cuda_group *group,
                            int axis, int64_t least, int64_t most)
{
    const char *name = axis < 0 ? "none" : root->axes[axis].name;
    int gene = wpk_gene_list_add(list, true, "%s.block.%s", of, name);
    int64_t tile = axis < 0 ? 1 : group->tile[axis];
    int64_t tiles = axis < 0 ? 1 : wpk_cuda_tiles_along(root, group, axis);
    least = axis >= 0 && root->axes[axis].extent % tile != 0 ? tiles : least;
    for (int64_t count = least; count <= most || count == least; count *= 2) {
        wpk_gene_list_number(list, gene, (count < tiles ? count : tiles) * tile);
    }
}

/* Parts of whole steps. Strict sums have the terms in their order: one part. */
static void add_parts(const struct wpk_program *program, const struct wpk_cuda_group *group,
                      bool strict, struct wpk_gene_list *list)
{
    const struct wpk_axis *axis = &program->stages[group->sum].axes[group->k];
    const char *of = program->tensors[program->stages[group->root].output].name;
    int gene = wpk_gene_list_add(list, true, "%s.parts.%s", of, axis->name);
    bool tiled = group->i >= 0 || group->j >= 0;
    for (int64_t parts = 1; parts <= (strict || !tiled ? 1 : PARTS_MAX); parts *= 2) {
        if (axis->extent % (parts * STEP_LEAST) == 0 || parts == 1) {
            wpk_gene_list_number(list, gene, parts);
        }
    }
}

/* Threads that share the terms of an element; all of them are powers of two. */
static void add_shares(const char *of, const struct wpk_cuda_group *group,
                       const struct wpk_axis *terms, struct wpk_gene_list *list)
{
    int gene = group->shares ? wpk_gene_list_add(list, true, "%s.share.%s", of, terms->name) : -1;
    for (int64_t share = 1; share <= SHARE_MAX && share <= terms->extent; share *= 2) {
        if (share == 1 || share >= SHARE_LEAST) {
            wpk_gene_list_number(list, gene, share);
        }
    }
}

static void add_order(const char *of, const struct wpk_cuda_group *group,
                      struct wpk_gene_list *list)
{
    int gene = group->ordered ? wpk_gene_list_add(list, true, "%s.order", of) : -1;
    for (int64_t rows = 1; rows <= ORDER_MAX; rows *= 2) {
        if (rows == 1 || rows >= ORDER_LEAST) {
            wpk_gene_list_number(list, gene, rows);
        }
    }
}

/* Rows of a block, and threads of one. */
static void add_rows(const char *of, const struct wpk_stage *root,
                     const struct wpk_cuda_group *group, struct wpk_gene_list *list)
{
    int gene = wpk_gene_list_add(list, true, "%s.rows", of);
    int64_t most = root->axes[group->row_axes - 1].extent, longest = 1, threads = 1;
    wpk_gene_list_choice(list, gene, 0, "apart");
    for (int64_t rows = 1; rows <= ROWS_MAX; rows *= 2) {
        wpk_gene_list_number(list, gene, rows < most ? rows : most);
    }
    for (int a = group->row_axes; a < root->rank; a++) {
        longest *= root->axes[a].extent;
    }
    gene = wpk_gene_list_add(list, true, "%s.threads", of);
    while (2 * threads <= longest && threads < ROW_THREADS_LEAST) {
        threads *= 2;
    }
    for (; threads <= SHARE_MAX && threads <= longest; threads *= 2) {
        wpk_gene_list_number(list, gene, threads);
    }
}

/* Pieces of a thread's tile, of groups whose threads have tiles of their own. A tile of results
 * that are not summed up is stored only: the axis along which neighbours lie has the gene. */
static void add_virtual_threads(const char *of, const struct wpk_stage *root,
                                const struct wpk_cuda_group *group, const struct sizes *sizes,
                                struct wpk_gene_list *list, int *genes)
{
    const int axis[] = {group->i, group->j};
    for (int a = group->sum < 0; a < 2 && !group->shares; a++) {
        if (axis[a] >= 0) {
            genes[a] = list->variant->gene_count;
            add_thread_sizes(list, of, "virtual", &root->axes[axis[a]], sizes->thread[a]);
        }
    }
}

/* Where each operand lies while it is read. */
static void add_stages(const struct wpk_program *program, const struct wpk_cuda_group *group,
                       struct wpk_gene_list *list)
{
    const char *of = program->tensors[program->stages[group->root].output].name;
    for (int c = 0; c < group->copy_count; c++) {
        const char *name = program->tensors[program->stages[group->copy[c]].output].name;
        int gene = wpk_gene_list_add(list, false, "%s.stage.%s", of, name);
        wpk_gene_list_choice(list, gene, 0, "no");
        wpk_gene_list_choice(list, gene, 1, "shared");
        if (group->is_vector_move[c]) {
            wpk_gene_list_choice(list, gene, WPK_CUDA_VECTOR_ELEMENTS, "shared4");
        }
    }
}

static void add_genes(const struct wpk_program *program, const struct wpk_cuda_group *group,
                      const struct wpk_cuda_machine *machine, bool strict,
                      struct wpk_gene_list *list, int *virtual_threads)
{
    const struct wpk_stage *root = &program->stages[group->root];
    const struct sizes *sizes = group->shares     ? &shared_out
                                : group->sum >= 0 ? &with_sum
                                                  : &pointwise;
    const char *of = program->tensors[root->output].name;
    static const struct wpk_axis none[] = {{.name = "none", .extent = 1},
                                           {.name = "one", .extent = 1}};
    const struct wpk_axis *axis[] = {group->i < 0 ? &none[0] : &root->axes[group->i],
                                     group->j < 0 ? &none[1] : &root->axes[group->j]};
    virtual_threads[0] = virtual_threads[1] = -1;
    if (group->transforms) {
        add_tile_counts(list, of, root, group, group->i, 1, TILES_MAX / 4);
        add_tile_counts(list, of, root, group, group->j, THREADS_LEAST, TILES_MAX);
        add_stages(program, group, list);
        return;
    }
    for (int a = 0; a < 2; a++) {
        add_sizes(list, of, "block", axis[a], sizes->block[a][0], sizes->block[a][1]);
    }
    for (int a = 0; a < 2; a++) {
        add_thread_sizes(list, of, "thread", axis[a], sizes->thread[a]);
    }
    if (group->sum >= 0) {
        const struct wpk_axis *terms = &program->stages[group->sum].axes[group->k];
        add_sizes(list, of, "step", terms, STEP_LEAST, group->shares ? STEP_LEAST : STEP_MOST);
        add_parts(program, group, strict, list);
        add_shares(of, group, terms, list);
        add_order(of, group, list);
    }
    if (group->row_axes > 0) {
        add_rows(of, root, group, list);
    }
    add_stages(program, group, list);
    if (machine->copies_ahead && wpk_cuda_may_be_ahead(group)) {
        int gene = wpk_gene_list_add(list, true, "%s.depth", of);
        for (int64_t depth = 1; depth <= DEPTH_MAX; depth++) {
            wpk_gene_list_number(list, gene, depth);
        }
    }
    add_virtual_threads(of, root, group, sizes, list, virtual_threads);
}

static wpk_err derive(const struct wpk_space *space, struct wpk_variant *variant)
{
    struct wpk_structure *structure = variant->plan;
    struct wpk_program *program = &variant->program;
    struct wpk_gene_list list = {.variant = variant};
    struct wpk_cuda_kept *kept = calloc(1, sizeof(*kept));
    struct wpk_cuda_machine machine;
    wpk_cuda_read_machine(space, &machine);
    structure->kind = kept;
    wpk_err err = kept == NULL ? WPK_ENOMEM : apply_choices(space, variant, program);
    err = err == WPK_OK ? collapse(program) : err;
    err = err == WPK_OK ? wpk_cuda_groups_normalize(program, space->options.strict) : err;
    err = err == WPK_OK ? wpk_cuda_groups_find(program, space->options.strict, &kept->groups) : err;
    for (int g = 0; err == WPK_OK && g < kept->groups.count; g++) {
        kept->first[g] = variant->gene_count;
        add_genes(program, &kept->groups.group[g], &machine, space->options.strict, &list,
                  kept->virtual_threads[g]);
        kept->first[g + 1] = variant->gene_count;
        err = list.err;
    }
    return err;
}

static int part_count(const struct wpk_variant *variant)
{
    return wpk_cuda_kept_of(variant)->groups.count;
}

static void part(const struct wpk_variant *variant, int number, int *first, int *count)
{
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    *first = kept->first[number];
    *count = kept->first[number + 1] - kept->first[number];
}

/* Set the virtual threads of the part to those that a thread's tile has at first. */
static int guess(const struct wpk_space *space, int number, struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    const struct wpk_cuda_group *group = &kept->groups.group[number];
    const struct wpk_stage *root = &variant->program.stages[group->root];
    int count = wpk_cuda_count_virtual_threads(kept, number);
    struct wpk_cuda_tiles t = {0};
    if (count > 0) {
        wpk_cuda_tiles_read(variant, candidate, number, &t);
    }
    for (int a = 0; a < 2; a++) {
        int gene = kept->virtual_threads[number][a];
        int64_t first = gene < 0 ? 1 : wpk_cuda_first_virtual_threads(root, group, &t, a);
        int choice = gene < 0 ? -1 : wpk_gene_find(&variant->genes[gene], first);
        if (choice >= 0) {
            candidate->gene[gene] = (uint8_t)choice;
        }
    }
    return count;
}

/* ---- rules and ranks */

static bool no(const char **why, const char *reason)
{
    if (why != NULL) {
        *why = reason;
    }
    return false;
}

static bool legal_transform(const struct wpk_space *space, const struct wpk_candidate *candidate,
                            int number, const struct wpk_cuda_tiles *t,
                            const struct wpk_cuda_machine *machine, const char **why)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_cuda_group *group = &wpk_cuda_kept_of(variant)->groups.group[number];
    const struct wpk_stage *root = &variant->program.stages[group->root];
    bool all = group->j < 0 || t->block[1] >= root->axes[group->j].extent;
    if (t->threads > machine->block_threads_max || (t->threads < THREADS_LEAST && !all)) {
        return no(why, "too many threads in a block, or less than a warp");
    }
    if (wpk_cuda_tile_registers(root, group) * t->threads > machine->registers_max) {
        return no(why, "the tiles do not fit the registers");
    }
    return !t->staged[0] ||
           wpk_cuda_copied_bytes(space, candidate, number) <= machine->block_shared_max ||
           no(why, "what is transformed does not fit the shared memory");
}

/* The axis inside of a row, or the only one that its reduction runs over, is as long as the row has
 * threads. */
static bool has_threads(const struct wpk_stage *stage, int first, int64_t threads)
{
    return stage->axis_count == first + 1 && stage->axes[first].extent >= threads;
}

/* Several rows of a block have threads of their own. What a row has in registers has to be dealt
 * out alike then: either all that it reads is there, or all lies in shared memory. */
static bool legal_rows(const struct wpk_variant *variant, const struct wpk_cuda_group *group,
                       const struct wpk_cuda_tiles *t, const struct wpk_cuda_machine *machine,
                       const char **why)
{
    const struct wpk_program *program = &variant->program;
    const struct wpk_cuda_groups *all = &wpk_cuda_kept_of(variant)->groups;
    bool alike = has_threads(&program->stages[group->root], group->row_axes, t->share);
    int registers = 0, shared = 0;
    for (int g = 0; g < all->count; g++) {
        const struct wpk_cuda_group *part = &all->group[g];
        bool own = group->in_row[g] && wpk_cuda_is_in_registers(program, all, group, g);
        registers += own;
        shared += group->in_row[g] && !own;
        alike = alike && (!own || part->sum < 0 ||
                          has_threads(&program->stages[part->sum], group->row_axes, t->share));
    }
    alike = alike && (registers == 0 || shared == 0);
    if (t->threads > machine->block_threads_max) {
        return no(why, "too many threads in a block");
    }
    if (t->rows > 1 && !alike) {
        return no(why, "a block of several rows has each along one axis, whose threads it has");
    }
    return wpk_cuda_row_bytes(variant, group, t) <= machine->block_shared_max ||
           no(why, "what the rows read does not fit the shared memory");
}

/* In parts over blocks the threads' steps divide the terms: a part ends where the next begins. */
static bool legal_share(const struct wpk_program *program, const struct wpk_cuda_group *group,
                        const struct wpk_cuda_tiles *t, const char **why)
{
    if (t->share == 1) {
        return true;
    }
    int64_t terms = program->stages[group->sum].axes[group->k].extent / t->parts;
    return (t->share <= terms &&
            (t->parts == 1 || terms % (t->share * wpk_cuda_term_vector(program, group, t)) == 0)) ||
           no(why, "the threads that share terms do not divide them");
}

/* A depth above 1 is legal only if all operands are staged, and whole steps make up the terms. */
static bool legal_depth(const struct wpk_program *program, const struct wpk_cuda_group *group,
                        const struct wpk_cuda_tiles *t, const char **why)
{
    int staged = 0;
    if (t->depth == 1) {
        return true;
    }
    for (int c = 0; c < group->copy_count; c++) {
        staged += t->staged[c];
        if (t->staged[c] && !group->is_move[c]) {
            return no(why, "an operand is computed, not copied");
        }
    }
    if (staged == 0 || (group->i < 0 && group->j < 0)) {
        return no(why, "no operand is staged in blocks");
    }
    double steps = wpk_cuda_terms(program, group) / (double)(t->step * t->parts);
    return (program->stages[group->sum].axes[group->k].extent % t->step == 0 &&
            steps >= (double)t->depth) ||
           no(why, "the steps do not divide the terms, or are fewer than the depth");
}

static bool legal(const struct wpk_space *space, const struct wpk_candidate *candidate, int number,
                  const char **why)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_cuda_group *group = &wpk_cuda_kept_of(variant)->groups.group[number];
    struct wpk_cuda_machine machine;
    struct wpk_cuda_tiles t;
    wpk_cuda_read_machine(space, &machine);
    wpk_cuda_tiles_read(variant, candidate, number, &t);
    bool least = t.thread[0] * t.thread[1] == 1;
    if (group->transforms) {
        return legal_transform(space, candidate, number, &t, &machine, why);
    }
    if (t.rows > 0) {
        return legal_rows(variant, group, &t, &machine, why);
    }
    if (t.block[0] % t.thread[0] != 0 || t.block[1] % t.thread[1] != 0) {
        return no(why, "a thread's tile does not divide its block's");
    }
    if (t.thread[0] % t.virtual_threads[0] != 0 || t.thread[1] % t.virtual_threads[1] != 0) {
        return no(why, "virtual threads do not divide a thread's tile");
    }
    if (t.threads > machine.block_threads_max || (t.threads < THREADS_LEAST && !least)) {
        return no(why, "too many threads in a block, or less than a warp");
    }
    if (wpk_cuda_registers(&t) > REGISTERS_MAX ||
        wpk_cuda_registers(&t) * t.threads > machine.registers_max) {
        return no(why, "the tiles do not fit the registers");
    }
    if (t.parts > 1 &&
        variant->program.stages[group->sum].axes[group->k].extent % (t.parts * t.step) != 0) {
        return no(why, "the steps do not divide a part's terms");
    }
    if (t.order > 1 &&
        variant->program.stages[group->root].axes[group->i].extent % (t.order * t.block[0]) != 0) {
        return no(why, "groups of blocks do not divide the rows");
    }
    if (!legal_share(&variant->program, group, &t, why)) {
        return false;
    }
    if (!legal_depth(&variant->program, group, &t, why)) {
        return false;
    }
    return wpk_cuda_shared_bytes(&variant->program, group, &t) <= machine.block_shared_max ||
           no(why, "the operands do not fit the shared memory");
}

const struct wpk_space_kind wpk_space_cuda = {
    .version = "cuda-8",
    .back_end = "cuda",
    .derive = derive,
    .part_count = part_count,
    .part = part,
    .guess = guess,
    .legal = legal,
    .bound = wpk_cuda_bound,
    .settle = wpk_cuda_settle,
    .nest = wpk_cuda_nest,
};
