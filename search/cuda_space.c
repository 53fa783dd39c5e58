/* SPDX-License-Identifier: Apache-2.0 */
#include "search/cuda_space.h"

#include "common/cuda_machine.h"
#include "op/derive.h"
#include "search/cuda_moves.h"
#include "search/cuda_nest.h"
#include "search/cuda_transforms.h"
#include "search/gene_list.h"
#include "search/genes.h"
#include "search/variant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_LEAST 32    /* a warp, unless each thread has one result */
#define EXPOSED 0.2         /* of what is not the slowest: it overlaps, but not all of it */
#define SCHEDULERS 4        /* of a multiprocessor: every one since sm_50 */
#define PART_LATENCIES 3    /* of a block whose part joins others: stores, the ticket, loads */
#define COPY_INSTRUCTIONS 2 /* for each element, or each four, that is copied, each way */
#define FEW_REGISTERS 40    /* of a thread, beside its tile and operands */
#define REGISTERS_MAX 255
#define STEP_LEAST 8
#define STEP_MOST 32
#define ROWS_MAX 8    /* of a block */
#define DEPTH_MAX 3   /* buffers of operands */
#define PARTS_MAX 16  /* blocks that share a tile's terms */
#define TILES_MAX 128 /* of a block, along an axis of transforms */

/* Sizes of a tile: of roots that read a reduction, and of those that do not. */
struct sizes {
    int64_t block[2][2], thread[2]; /* least and most of i and j; most of both */
};

static const struct sizes with_sum = {.block = {{16, 128}, {16, 128}}, .thread = {8, 8}};
static const struct sizes pointwise = {.block = {{1, 8}, {32, 256}}, .thread = {2, 4}};

static void read_machine(const struct wpk_space *space, struct wpk_cuda_machine *out)
{
    const struct wpk_device_cuda *cuda = &space->options.device.cuda;
    wpk_cuda_machine(cuda->capability, cuda->sm_count, out);
}

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

static void add_genes(const struct wpk_program *program, const struct wpk_cuda_group *group,
                      const struct wpk_cuda_machine *machine, bool strict,
                      struct wpk_gene_list *list)
{
    const struct wpk_stage *root = &program->stages[group->root];
    const struct sizes *sizes = group->sum >= 0 ? &with_sum : &pointwise;
    const char *of = program->tensors[root->output].name;
    static const struct wpk_axis none = {.name = "none", .extent = 1};
    const struct wpk_axis *axis[] = {group->i < 0 ? &none : &root->axes[group->i],
                                     group->j < 0 ? &none : &root->axes[group->j]};
    if (group->transforms) {
        add_tile_counts(list, of, root, group, group->i, 1, TILES_MAX / 4);
        add_tile_counts(list, of, root, group, group->j, THREADS_LEAST, TILES_MAX);
        return;
    }
    for (int a = 0; a < 2; a++) {
        add_sizes(list, of, "block", axis[a], sizes->block[a][0], sizes->block[a][1]);
    }
    for (int a = 0; a < 2; a++) {
        add_sizes(list, of, "thread", axis[a], 1, sizes->thread[a]);
    }
    if (group->sum >= 0) {
        add_sizes(list, of, "step", &program->stages[group->sum].axes[group->k], STEP_LEAST,
                  STEP_MOST);
        add_parts(program, group, strict, list);
    }
    if (group->row_axes > 0) {
        int gene = wpk_gene_list_add(list, true, "%s.rows", of);
        wpk_gene_list_choice(list, gene, 0, "apart");
        for (int64_t rows = 1; rows <= ROWS_MAX; rows *= 2) {
            int64_t most = root->axes[group->row_axes - 1].extent;
            wpk_gene_list_number(list, gene, rows < most ? rows : most);
        }
    }
    for (int c = 0; c < group->copy_count; c++) {
        const char *name = program->tensors[program->stages[group->copy[c]].output].name;
        int gene = wpk_gene_list_add(list, false, "%s.stage.%s", of, name);
        wpk_gene_list_choice(list, gene, 0, "no");
        wpk_gene_list_choice(list, gene, 1, "shared");
        if (group->is_vector_move[c]) {
            wpk_gene_list_choice(list, gene, WPK_CUDA_VECTOR_ELEMENTS, "shared4");
        }
    }
    if (machine->copies_ahead && wpk_cuda_may_be_ahead(group)) {
        int gene = wpk_gene_list_add(list, true, "%s.depth", of);
        for (int64_t depth = 1; depth <= DEPTH_MAX; depth++) {
            wpk_gene_list_number(list, gene, depth);
        }
    }
}

static wpk_err derive(const struct wpk_space *space, struct wpk_variant *variant)
{
    struct wpk_structure *structure = variant->plan;
    struct wpk_program *program = &variant->program;
    struct wpk_gene_list list = {.variant = variant};
    struct wpk_cuda_kept *kept = calloc(1, sizeof(*kept));
    struct wpk_cuda_machine machine;
    read_machine(space, &machine);
    structure->kind = kept;
    wpk_err err = kept == NULL ? WPK_ENOMEM : apply_choices(space, variant, program);
    err = err == WPK_OK ? collapse(program) : err;
    err = err == WPK_OK ? wpk_cuda_groups_normalize(program) : err;
    err = err == WPK_OK ? wpk_cuda_groups_find(program, space->options.strict, &kept->groups) : err;
    for (int g = 0; err == WPK_OK && g < kept->groups.count; g++) {
        kept->first[g] = variant->gene_count;
        add_genes(program, &kept->groups.group[g], &machine, space->options.strict, &list);
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

/* ---- rules and ranks */

static bool loads_tensor(const struct wpk_program *program, const struct wpk_cuda_group *group,
                         int tensor, const struct wpk_node **out)
{
    int loads[WPK_LOADS_MAX];
    int count = wpk_stage_loads(program, &program->stages[group->sum], loads, WPK_LOADS_MAX);
    for (int l = 0; l < count && l < WPK_LOADS_MAX; l++) {
        if (program->nodes[loads[l]].tensor == tensor) {
            *out = &program->nodes[loads[l]];
            return true;
        }
    }
    return false;
}

/* Bytes of an operand that a step of a block reads, with `padding` elements behind the terms of a
 * row. */
static int64_t staged_bytes(const struct wpk_program *program, const struct wpk_cuda_group *group,
                            const struct wpk_cuda_tiles *t, int c, int64_t padding)
{
    int tensor = program->stages[group->copy[c]].output;
    const struct wpk_node *load = NULL;
    int64_t elements = 1;
    bool found = loads_tensor(program, group, tensor, &load);
    WPK_ASSERT(found);
    for (int d = 0; d < program->tensors[tensor].rank; d++) {
        int axis = wpk_index_axis(program, load->index[d]);
        elements *= axis == group->i ? t->block[0] : axis == group->j ? t->block[1] : 1;
        elements *= axis == group->k ? t->step + padding : 1;
    }
    return elements * (int64_t)wpk_dtype_size(program->tensors[tensor].dtype);
}

static int64_t shared_bytes(const struct wpk_program *program, const struct wpk_cuda_group *group,
                            const struct wpk_cuda_tiles *t)
{
    int64_t bytes = 0;
    for (int c = 0; c < group->copy_count; c++) {
        int64_t padding = wpk_cuda_row_padding(group, t, c);
        bytes += t->staged[c] ? staged_bytes(program, group, t, c, padding) : 0;
    }
    return bytes * t->depth;
}

static int64_t registers_of(const struct wpk_cuda_tiles *t)
{
    return t->thread[0] * t->thread[1] + t->thread[0] + t->thread[1] + FEW_REGISTERS;
}

static bool no(const char **why, const char *reason)
{
    if (why != NULL) {
        *why = reason;
    }
    return false;
}

/* Bytes of what a block's rows read that the block computes. */
static int64_t row_bytes(const struct wpk_variant *variant, const struct wpk_cuda_group *group,
                         const struct wpk_cuda_tiles *t)
{
    const struct wpk_cuda_groups *all = &wpk_cuda_kept_of(variant)->groups;
    int64_t bytes = 0;
    for (int g = 0; g < all->count; g++) {
        const struct wpk_stage *root = &variant->program.stages[all->group[g].root];
        int64_t elements = t->rows;
        for (int a = group->row_axes; a < root->rank && group->in_row[g]; a++) {
            elements *= root->axes[a].extent;
        }
        bytes += group->in_row[g] ? elements * (int64_t)sizeof(float) : 0;
    }
    return bytes;
}

/* A thread has a tile of what it transforms, and of the result. */
static int64_t tile_registers(const struct wpk_stage *root, const struct wpk_cuda_group *group)
{
    int64_t elements = 1;
    for (int a = 0; a < root->rank; a++) {
        elements *= group->tile[a];
    }
    return 2 * elements + FEW_REGISTERS;
}

static bool legal_transform(const struct wpk_stage *root, const struct wpk_cuda_group *group,
                            const struct wpk_cuda_tiles *t, const struct wpk_cuda_machine *machine,
                            const char **why)
{
    bool all = group->j < 0 || t->block[1] >= root->axes[group->j].extent;
    if (t->threads > machine->block_threads_max || (t->threads < THREADS_LEAST && !all)) {
        return no(why, "too many threads in a block, or less than a warp");
    }
    return tile_registers(root, group) * t->threads <= machine->registers_max ||
           no(why, "the tiles do not fit the registers");
}

/* Terms of the reduction; 1 without one. */
static double terms_of(const struct wpk_program *program, const struct wpk_cuda_group *group)
{
    double terms = 1;
    if (group->sum >= 0) {
        const struct wpk_stage *sum = &program->stages[group->sum];
        for (int a = sum->rank; a < sum->axis_count; a++) {
            terms *= (double)sum->axes[a].extent;
        }
    }
    return terms;
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
    double steps = terms_of(program, group) / (double)(t->step * t->parts);
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
    read_machine(space, &machine);
    wpk_cuda_tiles_read(variant, candidate, number, &t);
    bool least = t.thread[0] * t.thread[1] == 1;
    if (group->transforms) {
        return legal_transform(&variant->program.stages[group->root], group, &t, &machine, why);
    }
    if (t.rows > 0) {
        return row_bytes(variant, group, &t) <= machine.block_shared_max ||
               no(why, "what the rows read does not fit the shared memory");
    }
    if (t.block[0] % t.thread[0] != 0 || t.block[1] % t.thread[1] != 0) {
        return no(why, "a thread's tile does not divide its block's");
    }
    if (t.threads > machine.block_threads_max || (t.threads < THREADS_LEAST && !least)) {
        return no(why, "too many threads in a block, or less than a warp");
    }
    if (registers_of(&t) > REGISTERS_MAX || registers_of(&t) * t.threads > machine.registers_max) {
        return no(why, "the tiles do not fit the registers");
    }
    if (t.parts > 1 &&
        variant->program.stages[group->sum].axes[group->k].extent % (t.parts * t.step) != 0) {
        return no(why, "the steps do not divide a part's terms");
    }
    if (!legal_depth(&variant->program, group, &t, why)) {
        return false;
    }
    return shared_bytes(&variant->program, group, &t) <= machine.block_shared_max ||
           no(why, "the operands do not fit the shared memory");
}

static double ceiling(double a, double b)
{
    return ceil(a / b);
}

/* Blocks that a multiprocessor has at a time. */
static double resident(const struct wpk_cuda_machine *m, const struct wpk_cuda_tiles *t,
                       int64_t shared)
{
    double most = fmin(m->blocks_max, floor((double)m->threads_max / (double)t->threads));
    most = fmin(most, floor((double)m->registers_max / (double)(registers_of(t) * t->threads)));
    return fmax(1, shared == 0 ? most : fmin(most, floor((double)m->shared_max / (double)shared)));
}

static double blocks_of(const struct wpk_program *program, const struct wpk_cuda_group *group,
                        const struct wpk_cuda_tiles *t)
{
    const struct wpk_stage *root = &program->stages[group->root];
    double blocks = 1;
    for (int a = 0; a < root->rank; a++) {
        int64_t block = a == group->i ? t->block[0] : a == group->j ? t->block[1] : 1;
        blocks *= ceiling((double)root->axes[a].extent, (double)block);
    }
    return blocks;
}

/* A block of rows reads them once for each group that it computes, and saves the launches of those:
 * their bounds are counted all the same. */
static double row_bound(const struct wpk_variant *variant, const struct wpk_cuda_group *group,
                        const struct wpk_cuda_tiles *t, const struct wpk_cuda_machine *m)
{
    const struct wpk_stage *root = &variant->program.stages[group->root];
    double rows = 1, row = 1, groups = 1;
    for (int a = 0; a < root->rank; a++) {
        *(a < group->row_axes ? &rows : &row) *= (double)root->axes[a].extent;
    }
    for (int g = 0; g < WPK_CUDA_GROUPS_MAX; g++) {
        groups += group->in_row[g];
    }
    double blocks = ceiling(rows, (double)t->rows);
    double waves = ceiling(blocks, m->sm_count * floor(m->threads_max / (double)t->threads));
    double cycles = (double)t->rows * row * groups * sizeof(float) / m->l2_bytes +
                    groups * m->latency * (1 + row * (double)t->rows / (double)t->threads / 8);
    return (waves * cycles - (groups - 1) * m->launch) / m->hertz;
}

/* Transforms read and write each element about once; the rest is latency. */
static double transform_bound(const struct wpk_stage *root, const struct wpk_cuda_group *group,
                              const struct wpk_cuda_tiles *t, const struct wpk_cuda_machine *m)
{
    double tiles = 1, elements = 1;
    for (int a = 0; a < root->rank; a++) {
        tiles *= (double)wpk_cuda_tiles_along(root, group, a);
        elements *= (double)group->tile[a];
    }
    double threads = (double)t->threads, blocks = ceiling(tiles, threads);
    double together =
        fmax(1, floor((double)m->registers_max / ((double)tile_registers(root, group) * threads)));
    double waves = ceiling(blocks, m->sm_count * together);
    double warps = THREADS_LEAST * ceiling(threads, THREADS_LEAST);
    double bytes =
        fmin(together, ceiling(blocks, m->sm_count)) * warps * elements * 2 * (double)sizeof(float);
    return (waves * (bytes / m->l2_bytes + 2 * m->latency) + m->launch) / m->hertz;
}

/* Load instructions of a thread for the terms of one product each: those of four neighbours are
 * one. */
static double loads_of(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t, int c)
{
    int along = group->along[c];
    double tile = (double)(along == group->i ? t->thread[0] : t->thread[1]);
    double other = (double)t->thread[0]; /* of an operand with rows of terms: i, or j */
    bool wide =
        along == group->k
            ? t->unrolled % WPK_CUDA_VECTOR_ELEMENTS == 0
            : (along == group->i ? t->piece[0] : t->piece[1]) % WPK_CUDA_VECTOR_ELEMENTS == 0;
    tile = along == group->k ? other : tile;
    return t->staged[c] && wide ? tile / WPK_CUDA_VECTOR_ELEMENTS : tile;
}

/* Waves times a block's time: the slowest of arithmetic, shared memory and what comes from outside,
 * for all blocks of a multiprocessor together, or one block's latencies.
 *   source  a roofline with latencies; ours, and not compared with times */
static double bound(const struct wpk_space *space, const struct wpk_candidate *candidate,
                    int number)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_program *program = &variant->program;
    const struct wpk_cuda_group *group = &wpk_cuda_kept_of(variant)->groups.group[number];
    struct wpk_cuda_machine m;
    struct wpk_cuda_tiles t;
    read_machine(space, &m);
    wpk_cuda_tiles_read(variant, candidate, number, &t);
    if (t.rows > 0) {
        return row_bound(variant, group, &t, &m);
    }
    if (group->transforms) {
        return transform_bound(&program->stages[group->root], group, &t, &m);
    }
    double blocks = blocks_of(program, group, &t) * (double)t.parts;
    double terms = terms_of(program, group) / (double)t.parts;
    double together = resident(&m, &t, shared_bytes(program, group, &t));
    double share = fmin(together, ceiling(blocks, m.sm_count));
    double waves = ceiling(blocks, m.sm_count * together);
    double steps = group->sum < 0 ? 1 : ceiling(terms, (double)t.step), reads = 0, bytes = 0;
    double points = (double)(t.block[0] * t.block[1]), copied = 0, loads = 0;
    for (int c = 0; c < group->copy_count; c++) {
        double staged = (double)staged_bytes(program, group, &t, c, 0);
        double wide = t.vectors[c] ? WPK_CUDA_VECTOR_ELEMENTS : 1;
        bytes += t.staged[c] ? staged : staged * (double)t.threads / THREADS_LEAST;
        reads += t.staged[c] ? 1 : 4; /* an operand that is not staged comes from the first cache */
        copied += t.staged[c] ? (t.depth > 1 ? 1 : 2) * COPY_INSTRUCTIONS * staged /
                                    (double)sizeof(float) / wide
                              : 0;
        loads += loads_of(group, &t, c);
    }
    if (group->copy_count == 0) {
        bytes = points * terms / steps * (double)sizeof(float);
    }
    double words = (double)t.threads * (double)(t.thread[0] + t.thread[1]) * terms * reads / 2;
    double issued = (points + (double)t.threads * loads) * terms + steps * copied;
    /* Each warp issues by one of the schedulers: few warps leave the others idle. */
    double busy = ceiling((double)t.threads, THREADS_LEAST) / SCHEDULERS;
    double part[] = {issued / (m.multiply_adds * fmin(1, share * busy)), words / m.shared_words,
                     steps * bytes / m.l2_bytes};
    double slowest = fmax(fmax(part[0], part[1]), part[2]);
    double inner = fmax(issued / (m.multiply_adds * fmin(1, busy)), part[1]);
    /* While a copy is on its way, the steps before it compute. */
    double ahead = (double)(t.depth - 1) * inner / steps;
    double wait = steps * (t.depth == 1 ? m.latency : fmax(m.barrier, m.latency - ahead));
    double all = slowest + EXPOSED * (part[0] + part[1] + part[2] - slowest + wait / share);
    double block = fmax(share * all, inner + wait);
    if (t.parts > 1) { /* a part is left, a ticket taken, and the last block reads all parts */
        block += PART_LATENCIES * m.latency +
                 (double)(t.parts + 1) * points * (double)sizeof(float) / m.l2_bytes;
    }
    return (waves * block + m.launch) / m.hertz;
}

const struct wpk_space_kind wpk_space_cuda = {
    .version = "cuda-5",
    .back_end = "cuda",
    .derive = derive,
    .part_count = part_count,
    .part = part,
    .legal = legal,
    .bound = bound,
    .nest = wpk_cuda_nest,
};
