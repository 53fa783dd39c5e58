/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/space.h"

#include "ir/derive/derive.h"
#include "search/gene_list.h"
#include "search/genes.h"
#include "target/gpu/space/cost.h"
#include "target/gpu/space/moves.h"
#include "target/gpu/space/transforms.h"

#include <math.h>
#include <stdlib.h>

#define STEP_LEAST 8
#define STEP_MOST 32
#define ROWS_MAX 8 /* of a block */
#define ROW_THREADS_LEAST 16
#define SHARE_LEAST 4 /* threads that share terms, if any do */
#define SHARE_MAX 1024
#define ORDER_LEAST 4 /* blocks along i that precede the next ones along j, if several do */
#define ORDER_MAX 16
#define DEPTH_MAX 3    /* buffers of operands */
#define PARTS_MAX 16   /* blocks that share a tile's terms */
#define BOX_ROWS_MAX 8 /* of a block */
#define SHORT_ROW 128  /* elements: a block may have all of it */
#define TILES_MAX 128  /* of a block, along an axis of transforms */

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
            if (choice->late == (late != 0)) {
                err = wpk_site_apply(program, site, variant->choice[i]);
            }
        }
    }
    return err;
}

/* ---- genes */

/* The axis is one of rows of an image that windows move along, and few threads have a row. */
static bool has_short_rows(const struct wpk_cuda_group *group, const struct wpk_stage *root,
                           int axis)
{
    return group->box >= 0 && axis == group->tiled[group->box_copy] &&
           root->axes[axis].extent <= SHORT_ROW;
}

/* Elements of a thread's tile, or pieces of it: powers of two, and what divides an odd extent, such
 * as the 49 points of an image of 7 x 7, or a short row into whole tiles. */
static void add_thread_sizes(struct wpk_gene_list *list, const char *of, const char *name,
                             const struct wpk_axis *axis, bool is_short, int64_t most)
{
    int gene = wpk_gene_list_add(list, true, "%s.%s.%s", of, name, axis->name);
    for (int64_t size = 1; size <= most; size++) {
        bool divides = axis->extent % size == 0 && (axis->extent % 2 != 0 || is_short);
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
    int64_t most = root->axes[group->row_axes - 1].extent, threads = 1;
    int64_t longest = (int64_t)wpk_stage_points_of(root, group->row_axes, root->rank);
    wpk_gene_list_choice(list, gene, 0, "apart");
    for (int64_t rows = 1; rows <= ROWS_MAX; rows *= 2) {
        wpk_gene_list_number(list, gene, rows < most ? rows : most);
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
                                struct wpk_gene_list *list, struct wpk_cuda_guessed_genes *genes)
{
    const int axis[] = {group->i, group->j};
    for (int a = group->sum < 0; a < 2 && !group->shares; a++) {
        if (axis[a] >= 0) {
            genes->virtual_threads[a] = list->variant->gene_count;
            add_thread_sizes(list, of, "virtual", &root->axes[axis[a]],
                             has_short_rows(group, root, axis[a]), sizes->thread[a]);
        }
    }
}

/* The choices are the numbers of terms that divide some choice of the gene `step`. */
static int add_unroll(const char *of, const struct wpk_axis *terms, int step,
                      struct wpk_gene_list *list)
{
    int gene = wpk_gene_list_add(list, true, "%s.unroll.%s", of, terms->name);
    for (int64_t unrolled = 1; unrolled <= STEP_MOST; unrolled++) {
        const struct wpk_gene *steps = &list->variant->genes[step];
        bool divides = false;
        for (int i = 0; i < steps->choice_count; i++) {
            divides = divides || steps->choice[i].value % unrolled == 0;
        }
        if (divides) {
            wpk_gene_list_number(list, gene, unrolled);
        }
    }
    return gene;
}

static const int64_t paddings[] = {0, 1, 4}; /* elements behind a row of terms */

/* Add the genes of copying and reading the operands of a reduction, if its threads have tiles of
 * their own. */
static void add_copying(const struct wpk_program *program, struct wpk_cuda_kept *kept, int g,
                        const struct wpk_cuda_machine *machine, struct wpk_gene_list *list)
{
    const struct wpk_cuda_group *group = &kept->groups.group[g];
    const char *of = program->tensors[program->stages[group->root].output].name;
    struct wpk_cuda_guessed_genes *genes = &kept->guessed[g];
    if (group->sum < 0 || group->shares) {
        return;
    }
    for (int c = 0; c < group->copy_count; c++) {
        bool before = group->before >= 0 && c == group->before_copy;
        if (group->along[c] == group->k || (before && group->before_along == group->k)) {
            int operand = program->stages[group->copy[c]].output;
            int gene =
                wpk_gene_list_add(list, true, "%s.padding.%s", of, program->tensors[operand].name);
            for (int i = 0; i < (int)(sizeof(paddings) / sizeof(*paddings)); i++) {
                wpk_gene_list_number(list, gene, paddings[i]);
            }
            genes->padding[c] = gene;
        }
    }
    genes->unroll = add_unroll(of, &program->stages[group->sum].axes[group->k],
                               kept->first[g] + WPK_CUDA_STEP, list);
    if (machine->copies_ahead && wpk_cuda_may_be_async(group)) {
        genes->copies = wpk_gene_list_add(list, false, "%s.copies", of);
        wpk_gene_list_choice(list, genes->copies, 0, "load");
        wpk_gene_list_choice(list, genes->copies, 1, "async");
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
        wpk_gene_list_choice(list, gene, WPK_CUDA_STAGE_NO, "no");
        wpk_gene_list_choice(list, gene, WPK_CUDA_STAGE_SHARED, "shared");
        if (group->box >= 0 && c == group->box_copy) {
            wpk_gene_list_choice(list, gene, WPK_CUDA_STAGE_BOX, "box");
        }
        if (group->is_vector_move[c]) {
            wpk_gene_list_choice(list, gene, WPK_CUDA_VECTOR_ELEMENTS, "shared4");
        }
    }
}

/* The tiles of a block along i or j: powers of two, and those of whole tiles of the transforms
 * behind the contraction. */
static void add_block_sizes(struct wpk_gene_list *list, const char *of, const struct wpk_axis *axis,
                            const struct wpk_cuda_group *group, int along_j, const int64_t *limit)
{
    int gene = list->variant->gene_count;
    add_sizes(list, of, "block", axis, limit[0], limit[1]);
    for (int i = 0; group->behind >= 0 && i < group->fit_count[along_j]; i++) {
        wpk_gene_list_number(list, gene, group->fit[along_j][i]);
    }
    if (group->behind >= 0) {
        wpk_gene_list_sort(list, gene);
    }
}

/* Whether the block computes what is transformed behind and before the products, and of how many
 * elements of the axis that the transforms need whole it has the products at a time; or of how many
 * rows it has the box of a window. */
static void add_joins(const struct wpk_program *program, const struct wpk_cuda_groups *all, int g,
                      struct wpk_gene_list *list, struct wpk_cuda_join_genes *genes)
{
    const struct wpk_cuda_group *group = &all->group[g];
    const struct wpk_stage *root = &program->stages[group->root];
    const char *of = program->tensors[root->output].name;
    bool rows = group->box >= 0 && group->whole >= 0;
    if (group->behind >= 0 || rows) {
        /* Elements of the axis `whole` that a block has at a time: of those that transforms
         * need, so many as divide them; of the rows of a window's box some, or those that divide
         * few. */
        const struct wpk_axis *axis = &root->axes[group->whole];
        int gene = wpk_gene_list_add(list, true, "%s.together.%s", of, axis->name);
        for (int64_t size = 1; size <= axis->extent && (!rows || size <= BOX_ROWS_MAX); size++) {
            bool divides = axis->extent % size == 0, power = (size & (size - 1)) == 0;
            bool wanted = power || size * size == axis->extent || size == axis->extent;
            if (rows ? power || divides : divides && wanted) {
                wpk_gene_list_number(list, gene, size);
            }
        }
        genes->together = gene;
    }
    if (group->behind >= 0) {
        int reader = program->stages[all->group[group->behind].root].output;
        genes->behind = wpk_gene_list_add(list, false, "%s.at", of);
        wpk_gene_list_choice(list, genes->behind, 0, "root");
        wpk_gene_list_choice(list, genes->behind, 1, program->tensors[reader].name);
    }
    if (group->before >= 0) {
        int written = program->stages[all->group[group->before].root].output;
        genes->before = wpk_gene_list_add(list, false, "%s.at", program->tensors[written].name);
        wpk_gene_list_choice(list, genes->before, 0, "root");
        wpk_gene_list_choice(list, genes->before, 1, of);
    }
}

static void add_genes(const struct wpk_program *program, struct wpk_cuda_kept *kept, int g,
                      const struct wpk_cuda_machine *machine, bool strict,
                      struct wpk_gene_list *list)
{
    const struct wpk_cuda_group *group = &kept->groups.group[g];
    struct wpk_cuda_guessed_genes *guessed = &kept->guessed[g];
    const struct wpk_stage *root = &program->stages[group->root];
    const struct sizes *sizes = group->shares     ? &shared_out
                                : group->sum >= 0 ? &with_sum
                                                  : &pointwise;
    const char *of = program->tensors[root->output].name;
    static const struct wpk_axis none[] = {{.name = "none", .extent = 1},
                                           {.name = "one", .extent = 1}};
    const struct wpk_axis *axis[] = {group->i < 0 ? &none[0] : &root->axes[group->i],
                                     group->j < 0 ? &none[1] : &root->axes[group->j]};
    *guessed = (struct wpk_cuda_guessed_genes){
        .padding = {-1, -1}, .unroll = -1, .copies = -1, .virtual_threads = {-1, -1}};
    kept->join[g] = (struct wpk_cuda_join_genes){.together = -1, .behind = -1, .before = -1};
    if (group->transforms) {
        add_tile_counts(list, of, root, group, group->i, 1, TILES_MAX / 4);
        add_tile_counts(list, of, root, group, group->j, WPK_CUDA_THREADS_LEAST, TILES_MAX);
        add_stages(program, group, list);
        return;
    }
    for (int a = 0; a < 2; a++) {
        add_block_sizes(list, of, axis[a], group, a, sizes->block[a]);
    }
    for (int a = 0; a < 2; a++) {
        int tiled = a == 0 ? group->i : group->j;
        add_thread_sizes(list, of, "thread", axis[a],
                         tiled >= 0 && has_short_rows(group, root, tiled), sizes->thread[a]);
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
    kept->staged[g] = list->variant->gene_count;
    add_stages(program, group, list);
    if (group->copy_count > 0 && !group->shares) {
        int gene = wpk_gene_list_add(list, true, "%s.depth", of);
        for (int64_t depth = 1; depth <= DEPTH_MAX; depth++) {
            wpk_gene_list_number(list, gene, depth);
        }
    }
    add_joins(program, &kept->groups, g, list, &kept->join[g]);
    int first = list->variant->gene_count;
    add_copying(program, kept, g, machine, list);
    add_virtual_threads(of, root, group, sizes, list, guessed);
    guessed->count = list->variant->gene_count - first;
}

/* Seconds of transforms in a launch of their own, with the genes that are best by the model. */
static double find_apart(const struct wpk_variant *variant, int g,
                         const struct wpk_cuda_machine *machine)
{
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    const struct wpk_cuda_group *group = &kept->groups.group[g];
    struct wpk_candidate one = {.gene_count = variant->gene_count};
    double least = INFINITY;
    int gene = kept->first[g];
    while (gene < kept->first[g + 1]) {
        struct wpk_cuda_tiles t;
        wpk_cuda_tiles_read(variant, &one, g, &t);
        if (t.threads <= machine->block_threads_max) {
            least = fmin(least, wpk_cuda_transform_bound(&variant->program.stages[group->root],
                                                         group, &t, machine));
        }
        gene = kept->first[g];
        while (gene < kept->first[g + 1] && ++one.gene[gene] == variant->genes[gene].choice_count) {
            one.gene[gene++] = 0;
        }
    }
    return least;
}

wpk_err wpk_cuda_variant_derive(const struct wpk_space *space, struct wpk_variant *variant)
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
        add_genes(program, kept, g, &machine, space->options.strict, &list);
        kept->first[g + 1] = variant->gene_count;
        err = list.err;
        if (err == WPK_OK && kept->groups.group[g].transforms) {
            kept->apart[g] = find_apart(variant, g, &machine);
        }
    }
    err = err == WPK_OK ? wpk_accesses_init(program, &structure->accesses) : err;
    return err == WPK_OK ? wpk_genes_derive_back_end(variant, &space->options) : err;
}
