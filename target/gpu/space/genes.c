/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/template.h"

#include "target/gpu/space/moves.h"

#include <math.h>

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

/* The axis is one of rows of an image that windows move along, and few threads have a row. */
static bool has_short_rows(const struct wpk_cuda_adding *a, int axis)
{
    const struct wpk_cuda_group *group = a->group;
    return group->kind == WPK_CUDA_WINDOWS && axis >= 0 &&
           axis == group->operand[group->box_copy].tiled && a->root->axes[axis].extent <= SHORT_ROW;
}

/* Elements of a thread's tile, or pieces of it: powers of two, and what divides an odd extent, such
 * as the 49 points of an image of 7 x 7, or a short row into whole tiles. */
static void add_thread_sizes(const struct wpk_cuda_adding *a, const char *name,
                             const struct wpk_axis *axis, bool is_short, int64_t most)
{
    int gene = wpk_gene_list_add(a->list, true, "%s.%s.%s", a->of, name, axis->name);
    for (int64_t size = 1; size <= most; size++) {
        bool divides = axis->extent % size == 0 && (axis->extent % 2 != 0 || is_short);
        if (divides || (size & (size - 1)) == 0) {
            wpk_gene_list_number(a->list, gene, size < axis->extent ? size : axis->extent);
        }
    }
}

static int add_sizes(const struct wpk_cuda_adding *a, const char *name, const struct wpk_axis *axis,
                     int64_t least, int64_t most)
{
    int gene = wpk_gene_list_add(a->list, true, "%s.%s.%s", a->of, name, axis->name);
    for (int64_t size = least; size <= most; size *= 2) {
        wpk_gene_list_number(a->list, gene, size < axis->extent ? size : axis->extent);
    }
    return gene;
}

/* A gene of 1, and of powers of two from `least` to `most`. */
static void add_powers(const struct wpk_cuda_adding *a, int gene, int64_t least, int64_t most)
{
    for (int64_t value = 1; value <= most; value *= 2) {
        if (value == 1 || value >= least) {
            wpk_gene_list_number(a->list, gene, value);
        }
    }
}

/* The tiles of a block: powers of two, and those of whole tiles of the transforms behind the
 * contraction; then those of a thread. */
static void add_tile(const struct wpk_cuda_adding *a, const struct sizes *sizes)
{
    static const struct wpk_axis none[] = {{.name = "none", .extent = 1},
                                           {.name = "one", .extent = 1}};
    const struct wpk_cuda_group *group = a->group;
    const int axis[] = {group->i, group->j};
    const struct wpk_axis *of[2];
    for (int d = 0; d < 2; d++) {
        of[d] = axis[d] < 0 ? &none[d] : &a->root->axes[axis[d]];
        int gene = add_sizes(a, "block", of[d], sizes->block[d][0], sizes->block[d][1]);
        if (group->kind == WPK_CUDA_JOINED && group->behind >= 0) {
            for (int i = 0; i < group->fit_count[d]; i++) {
                wpk_gene_list_number(a->list, gene, group->fit[d][i]);
            }
            wpk_gene_list_sort(a->list, gene);
        }
    }
    for (int d = 0; d < 2; d++) {
        add_thread_sizes(a, "thread", of[d], has_short_rows(a, axis[d]), sizes->thread[d]);
    }
}

/* Terms that are staged at a time, and parts of whole steps. Strict sums have the terms in their
 * order: one part. */
static void add_terms(const struct wpk_cuda_adding *a, int64_t step_most)
{
    const struct wpk_axis *axis = &a->program->stages[a->group->sum].axes[a->group->k];
    bool tiled = a->group->i >= 0 || a->group->j >= 0;
    add_sizes(a, "step", axis, STEP_LEAST, step_most);
    int gene = wpk_gene_list_add(a->list, true, "%s.parts.%s", a->of, axis->name);
    for (int64_t parts = 1; parts <= (a->strict || !tiled ? 1 : PARTS_MAX); parts *= 2) {
        if (axis->extent % (parts * STEP_LEAST) == 0 || parts == 1) {
            wpk_gene_list_number(a->list, gene, parts);
        }
    }
}

/* Pieces of a thread's tile. A tile of results that are not summed up is stored only: the axis
 * along which neighbours lie has the gene. */
static void add_virtual_threads(const struct wpk_cuda_adding *a, const struct sizes *sizes)
{
    const int axis[] = {a->group->i, a->group->j};
    for (int d = a->group->sum < 0; d < 2; d++) {
        if (axis[d] >= 0) {
            a->kept->guessed[a->number].virtual_threads[d] = a->list->variant->gene_count;
            add_thread_sizes(a, "virtual", &a->root->axes[axis[d]], has_short_rows(a, axis[d]),
                             sizes->thread[d]);
        }
    }
}

/* The last genes of a root that reads no reduction. */
static void add_storing(const struct wpk_cuda_adding *a)
{
    int first = a->list->variant->gene_count;
    a->kept->staged[a->number] = first;
    add_virtual_threads(a, &pointwise);
    a->kept->guessed[a->number].count = a->list->variant->gene_count - first;
}

void wpk_cuda_genes_pointwise(const struct wpk_cuda_adding *a)
{
    add_tile(a, &pointwise);
    add_storing(a);
}

void wpk_cuda_genes_rows(const struct wpk_cuda_adding *a)
{
    int row_axes = a->group->row_axes;
    int64_t most = a->root->axes[row_axes - 1].extent, threads = 1;
    int64_t longest = (int64_t)wpk_stage_points_of(a->root, row_axes, a->root->rank);
    add_tile(a, &pointwise);
    int gene = wpk_gene_list_add(a->list, true, "%s.rows", a->of); /* of a block */
    wpk_gene_list_choice(a->list, gene, 0, "apart");
    for (int64_t rows = 1; rows <= ROWS_MAX; rows *= 2) {
        wpk_gene_list_number(a->list, gene, rows < most ? rows : most);
    }
    gene = wpk_gene_list_add(a->list, true, "%s.threads", a->of); /* of a row */
    while (2 * threads <= longest && threads < ROW_THREADS_LEAST) {
        threads *= 2;
    }
    for (; threads <= SHARE_MAX && threads <= longest; threads *= 2) {
        wpk_gene_list_number(a->list, gene, threads);
    }
    add_storing(a);
}

void wpk_cuda_genes_shared(const struct wpk_cuda_adding *a)
{
    const struct wpk_axis *terms = &a->program->stages[a->group->sum].axes[a->group->k];
    add_tile(a, &shared_out);
    add_terms(a, STEP_LEAST);
    int gene = wpk_gene_list_add(a->list, true, "%s.share.%s", a->of, terms->name);
    add_powers(a, gene, SHARE_LEAST, SHARE_MAX < terms->extent ? SHARE_MAX : terms->extent);
    a->kept->staged[a->number] = a->list->variant->gene_count;
}

/* Where each operand lies while it is read. */
static void add_stages(const struct wpk_cuda_adding *a)
{
    const struct wpk_cuda_group *group = a->group;
    for (int c = 0; c < group->operand_count; c++) {
        int tensor = a->program->stages[group->operand[c].stage].output;
        int gene = wpk_gene_list_add(a->list, false, "%s.stage.%s", a->of,
                                     a->program->tensors[tensor].name);
        wpk_gene_list_choice(a->list, gene, WPK_CUDA_STAGE_NO, "no");
        wpk_gene_list_choice(a->list, gene, WPK_CUDA_STAGE_SHARED, "shared");
        if (group->kind == WPK_CUDA_WINDOWS && c == group->box_copy) {
            wpk_gene_list_choice(a->list, gene, WPK_CUDA_STAGE_BOX, "box");
        }
        if (group->operand[c].is_vector_move) {
            wpk_gene_list_choice(a->list, gene, WPK_CUDA_VECTOR_ELEMENTS, "shared4");
        }
    }
}

/* The genes before those that are guessed, and before those of what its blocks do beside them. */
static void add_products(const struct wpk_cuda_adding *a)
{
    add_tile(a, &with_sum);
    add_terms(a, STEP_MOST);
    if (a->group->ordered) {
        int gene = wpk_gene_list_add(a->list, true, "%s.order", a->of);
        add_powers(a, gene, ORDER_LEAST, ORDER_MAX);
    }
    a->kept->staged[a->number] = a->list->variant->gene_count;
    add_stages(a);
    if (a->group->operand_count > 0) {
        int gene = wpk_gene_list_add(a->list, true, "%s.depth", a->of);
        for (int64_t depth = 1; depth <= DEPTH_MAX; depth++) {
            wpk_gene_list_number(a->list, gene, depth);
        }
    }
}

/* The choices are the numbers of terms that divide some choice of the gene of steps. */
static int add_unroll(const struct wpk_cuda_adding *a)
{
    const struct wpk_axis *terms = &a->program->stages[a->group->sum].axes[a->group->k];
    int step = a->kept->first[a->number] + WPK_CUDA_STEP;
    int gene = wpk_gene_list_add(a->list, true, "%s.unroll.%s", a->of, terms->name);
    for (int64_t unrolled = 1; unrolled <= STEP_MOST; unrolled++) {
        const struct wpk_gene *steps = &a->list->variant->genes[step];
        bool divides = false;
        for (int i = 0; i < steps->choice_count; i++) {
            divides = divides || steps->choice[i].value % unrolled == 0;
        }
        if (divides) {
            wpk_gene_list_number(a->list, gene, unrolled);
        }
    }
    return gene;
}

/* Add the genes of copying and reading operands, and of virtual threads. */
static void add_copying(const struct wpk_cuda_adding *a)
{
    static const int64_t paddings[] = {0, 1, 4}; /* elements behind a row of terms */
    const struct wpk_cuda_group *group = a->group;
    struct wpk_cuda_guessed_genes *genes = &a->kept->guessed[a->number];
    int first = a->list->variant->gene_count;
    for (int c = 0; c < group->operand_count; c++) {
        bool before =
            group->kind == WPK_CUDA_JOINED && group->before >= 0 && c == group->before_copy;
        if (group->operand[c].along == group->k || (before && group->before_along == group->k)) {
            int tensor = a->program->stages[group->operand[c].stage].output;
            int gene = wpk_gene_list_add(a->list, true, "%s.padding.%s", a->of,
                                         a->program->tensors[tensor].name);
            for (int i = 0; i < (int)(sizeof(paddings) / sizeof(*paddings)); i++) {
                wpk_gene_list_number(a->list, gene, paddings[i]);
            }
            genes->padding[c] = gene;
        }
    }
    genes->unroll = add_unroll(a);
    if (a->machine->copies_ahead && wpk_cuda_may_be_async(group)) {
        genes->copies = wpk_gene_list_add(a->list, false, "%s.copies", a->of);
        wpk_gene_list_choice(a->list, genes->copies, 0, "load");
        wpk_gene_list_choice(a->list, genes->copies, 1, "async");
    }
    add_virtual_threads(a, &with_sum);
    genes->count = a->list->variant->gene_count - first;
}

/* Elements of the axis `whole` that a block has at a time: of those that transforms need, so many
 * as divide them; of the rows of a window's box some, or those that divide few. */
static void add_together(const struct wpk_cuda_adding *a, bool rows)
{
    const struct wpk_axis *axis = &a->root->axes[a->group->whole];
    int gene = wpk_gene_list_add(a->list, true, "%s.together.%s", a->of, axis->name);
    for (int64_t size = 1; size <= axis->extent && (!rows || size <= BOX_ROWS_MAX); size++) {
        bool divides = axis->extent % size == 0, power = (size & (size - 1)) == 0;
        bool wanted = power || size * size == axis->extent || size == axis->extent;
        if (rows ? power || divides : divides && wanted) {
            wpk_gene_list_number(a->list, gene, size);
        }
    }
    a->kept->join[a->number].together = gene;
}

void wpk_cuda_genes_products(const struct wpk_cuda_adding *a)
{
    add_products(a);
    if (a->group->whole >= 0) { /* rows of windows */
        add_together(a, true);
    }
    add_copying(a);
}

/* Whether blocks of the group `reader` compute what is transformed beside it. */
static int add_place(const struct wpk_cuda_adding *a, const char *of, const char *reader)
{
    int gene = wpk_gene_list_add(a->list, false, "%s.at", of);
    wpk_gene_list_choice(a->list, gene, 0, "root");
    wpk_gene_list_choice(a->list, gene, 1, reader);
    return gene;
}

/* The name of what the group with this number leaves. */
static const char *name_of(const struct wpk_cuda_adding *a, int number)
{
    int root = a->kept->groups.group[number].root;
    return a->program->tensors[a->program->stages[root].output].name;
}

void wpk_cuda_genes_joined(const struct wpk_cuda_adding *a)
{
    struct wpk_cuda_join_genes *genes = &a->kept->join[a->number];
    add_products(a);
    if (a->group->behind >= 0) {
        add_together(a, false);
        genes->behind = add_place(a, a->of, name_of(a, a->group->behind));
    }
    if (a->group->before >= 0) {
        genes->before = add_place(a, name_of(a, a->group->before), a->of);
    }
    add_copying(a);
}

/* The tiles of a block along an axis of transforms, in elements. An axis whose last tile is not
 * whole stays whole: a block that moved inwards would have no whole tiles. */
static void add_tile_counts(const struct wpk_cuda_adding *a, int axis, int64_t least, int64_t most)
{
    const char *name = axis < 0 ? "none" : a->root->axes[axis].name;
    int gene = wpk_gene_list_add(a->list, true, "%s.block.%s", a->of, name);
    int64_t tile = axis < 0 ? 1 : a->group->tile[axis];
    int64_t tiles = axis < 0 ? 1 : wpk_cuda_tiles_along(a->root, a->group, axis);
    least = axis >= 0 && a->root->axes[axis].extent % tile != 0 ? tiles : least;
    for (int64_t count = least; count <= most || count == least; count *= 2) {
        wpk_gene_list_number(a->list, gene, (count < tiles ? count : tiles) * tile);
    }
}

/* Seconds of transforms in a launch of their own, with the genes that are best by the model. */
static double find_apart(const struct wpk_cuda_adding *a)
{
    const struct wpk_variant *variant = a->list->variant;
    struct wpk_candidate one = {.gene_count = variant->gene_count};
    double least = INFINITY;
    int first = a->kept->first[a->number];
    do {
        struct wpk_cuda_tiles t;
        wpk_cuda_tiles_read(variant, &one, a->number, &t);
        if (t.threads <= a->machine->block_threads_max) {
            least = fmin(least, wpk_cuda_transform_bound(a->root, a->group, &t, a->machine));
        }
    } while (wpk_cuda_advance(variant, first, variant->gene_count - first, &one));
    return least;
}

void wpk_cuda_genes_transforms(const struct wpk_cuda_adding *a)
{
    add_tile_counts(a, a->group->i, 1, TILES_MAX / 4);
    add_tile_counts(a, a->group->j, WPK_CUDA_THREADS_LEAST, TILES_MAX);
    add_stages(a);
    a->kept->first[a->number + 1] = a->list->variant->gene_count;
    a->kept->apart[a->number] = a->list->err == WPK_OK ? find_apart(a) : 0;
}
