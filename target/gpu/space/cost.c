/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/template.h"

#include "ir/derive/extract.h"
#include "target/gpu/space/moves.h"

#include <math.h>

#define EXPOSED 0.2         /* of what is not the slowest: it overlaps, but not all of it */
#define PART_LATENCIES 3    /* of a block whose part joins others: stores, the ticket, loads */
#define COPY_INSTRUCTIONS 2 /* for each element, or each four, that is copied, each way */
#define LOOP_INSTRUCTIONS 2 /* of an iteration of a loop over terms */
#define FEWER_FIRST 1e-3    /* of instructions, where they are not what takes the time */
#define TRANSFORM_ISSUED 25 /* instructions of a warp for an element of its tiles, as emulated */
#define UNSTAGED 4          /* a word of the first cache, in words of shared memory */
#define LOADS_AHEAD 4       /* iterations of a loop whose loads are on their way */
#define ROW_INSTRUCTIONS 6  /* for an element of a row, in each pass */
#define SECTOR ((double)WPK_CUDA_SECTOR_ELEMENTS)
#define FEW_REGISTERS 40 /* of a thread, beside its tile and operands */
#define TICKET_BYTES 32  /* of a block whose part joins others, with those to a multiple of 16 */

void wpk_cuda_read_machine(const struct wpk_space *space, struct wpk_cuda_machine *out)
{
    const struct wpk_device_cuda *cuda = &space->options.device.cuda;
    wpk_cuda_machine(cuda->capability, cuda->sm_count, out);
}

/* ---- what a block has */

/* Bytes of an operand that a step of a block reads, with `padding` elements behind the terms of a
 * row. */
static int64_t staged_bytes(const struct wpk_program *program, const struct wpk_cuda_group *group,
                            const struct wpk_cuda_tiles *t, int c, int64_t padding)
{
    int tensor = program->stages[group->operand[c].stage].output;
    const struct wpk_node *load = &program->nodes[group->operand[c].load];
    int64_t elements = 1, terms = wpk_cuda_step_terms(program, group, t) / t->step;
    if (t->box && c == group->box_copy) {
        int64_t rounds, behind = wpk_cuda_box_padding(program, group, t, &rounds);
        return wpk_cuda_box_elements(program, group, t, behind) * (int64_t)sizeof(float);
    }
    for (int d = 0; d < program->tensors[tensor].rank; d++) {
        int axis = wpk_index_axis(program, load->index[d]);
        elements *= axis == group->i ? t->block[0] : axis == group->j ? t->block[1] : 1;
        elements *= axis == group->k ? t->step + padding : 1;
        elements *= axis == group->whole ? t->together : 1;
    }
    elements *= terms;
    return elements * (int64_t)wpk_dtype_size(program->tensors[tensor].dtype);
}

int64_t wpk_cuda_shared_bytes(const struct wpk_program *program, const struct wpk_cuda_group *group,
                              const struct wpk_cuda_tiles *t)
{
    int64_t bytes = 0;
    for (int c = 0; c < group->operand_count; c++) {
        int64_t padding = t->padding[c];
        bytes += t->staged[c]
                     ? staged_bytes(program, group, t, c, padding) +
                           t->together * wpk_cuda_spacing(group, t, c) * (int64_t)sizeof(float)
                     : 0;
    }
    bytes *= t->depth;
    if (t->behind) { /* the products, for what is transformed behind them */
        const struct wpk_axis *whole = &program->stages[group->root].axes[group->whole];
        bytes += t->block[0] * t->block[1] * whole->extent * (int64_t)sizeof(float);
    }
    return bytes + (t->parts > 1 ? TICKET_BYTES : 0);
}

int64_t wpk_cuda_registers(const struct wpk_cuda_tiles *t)
{
    return t->thread[0] * t->thread[1] + t->thread[0] + t->thread[1] + FEW_REGISTERS;
}

/* Bytes of what a block's rows read that the block computes. */
int64_t wpk_cuda_row_bytes(const struct wpk_variant *variant, const struct wpk_cuda_group *group,
                           const struct wpk_cuda_tiles *t)
{
    const struct wpk_cuda_groups *all = &wpk_cuda_kept_of(variant)->groups;
    int64_t bytes = 0;
    for (int g = 0; g < all->count && group->kind == WPK_CUDA_ROWS; g++) {
        const struct wpk_stage *root = &variant->program.stages[all->group[g].root];
        double elements = wpk_stage_points_of(root, group->row_axes, root->rank);
        bytes += group->in_row[g] ? t->rows * (int64_t)elements * (int64_t)sizeof(float) : 0;
    }
    return bytes;
}

/* A thread has a tile of what it transforms, and of the result. */
int64_t wpk_cuda_tile_registers(const struct wpk_stage *root, const struct wpk_cuda_group *group)
{
    int64_t elements = 1;
    for (int a = 0; a < root->rank; a++) {
        elements *= group->tile[a];
    }
    return 2 * elements + FEW_REGISTERS;
}

/* Terms of the reduction; 1 without one. */
double wpk_cuda_terms(const struct wpk_program *program, const struct wpk_cuda_group *group)
{
    return group->sum >= 0 ? wpk_stage_terms(&program->stages[group->sum]) : 1;
}

/* ---- ranks */

static double ceiling(double a, double b)
{
    return ceil(a / b);
}

/* Blocks that a multiprocessor has at a time. */
static double resident(const struct wpk_cuda_machine *m, const struct wpk_cuda_tiles *t,
                       int64_t shared)
{
    double most = fmin(m->blocks_max, floor((double)m->threads_max / (double)t->threads));
    most =
        fmin(most, floor((double)m->registers_max / (double)(wpk_cuda_registers(t) * t->threads)));
    return fmax(1, shared == 0 ? most : fmin(most, floor((double)m->shared_max / (double)shared)));
}

static double blocks_of(const struct wpk_program *program, const struct wpk_cuda_group *group,
                        const struct wpk_cuda_tiles *t)
{
    const struct wpk_stage *root = &program->stages[group->root];
    bool joined = t->behind || t->before;
    double blocks = 1;
    if (t->behind) { /* the last blocks of a row of tiles overlap others */
        int i = wpk_cuda_find_fit(group, t, 0), j = wpk_cuda_find_fit(group, t, 1);
        blocks = i < 0 ? 1 : (double)group->fit_blocks[0][i];
        blocks *= j < 0 ? 1 : (double)group->fit_blocks[1][j];
        return blocks / (double)group->fit_blocks[1][0]; /* the least ones are counted in both */
    }
    for (int a = 0; a < root->rank; a++) {
        int64_t block = a == group->i                 ? t->block[0]
                        : a == group->j               ? t->block[1]
                        : joined && a == group->whole ? root->axes[a].extent
                        : a == group->whole           ? t->together
                                                      : 1;
        blocks *= ceiling((double)root->axes[a].extent, (double)block);
    }
    return blocks;
}

/* Cycles in which a multiprocessor does what all of its blocks want of it, and those that a block
 * waits for. */
struct work {
    double issued;   /* instructions of threads */
    double requests; /* cycles of the first cache */
    double bytes;    /* from the second one */
    double wait;
};

/* Seconds of blocks that do this work each. */
static double seconds_of(const struct wpk_cuda_machine *m, const struct work *work, double blocks,
                         double threads, double together)
{
    double share = fmin(together, ceiling(blocks, m->sm_count));
    double waves = ceiling(blocks, m->sm_count * together);
    double busy = ceiling(threads, WPK_CUDA_WARP) / WPK_CUDA_SCHEDULERS;
    double issued = work->issued * WPK_CUDA_WARP * ceiling(threads, WPK_CUDA_WARP) / threads;
    double part[] = {issued / (m->multiply_adds * fmin(1, share * busy)), work->requests,
                     work->bytes / m->l2_bytes};
    double slowest = fmax(fmax(part[0], part[1]), part[2]);
    double inner = fmax(issued / (m->multiply_adds * fmin(1, busy)), part[1]);
    double all = slowest + EXPOSED * (part[0] + part[1] + part[2] - slowest + work->wait / share);
    return (waves * fmax(share * all, inner + work->wait) + m->launch) / m->hertz;
}

/* Cycles until threads that share terms have the total: exchanges, and if they are in several warps
 * a barrier and others. */
static double join_cycles(const struct wpk_cuda_machine *m, double share, bool neighbours)
{
    double one = log2(fmin(share, WPK_CUDA_WARP)) * WPK_CUDA_EXCHANGE_CYCLES;
    return share == 1 ? 0 : neighbours && share <= WPK_CUDA_WARP ? one : 2 * one + m->barrier;
}

/* A thread has so many loads of a pass over a row on their way at a time. */
static double pass_wait(const struct wpk_cuda_machine *m, double elements, double threads,
                        double vector)
{
    return m->latency * ceiling(ceiling(elements, threads * vector), LOADS_AHEAD);
}

/* A block of rows reads them once for each group that it computes. It saves the launches of those,
 * and what they read: their bounds are counted all the same. */
double wpk_cuda_bound_rows(const struct wpk_cuda_decided *d)
{
    const struct wpk_program *program = &d->variant->program;
    const struct wpk_cuda_group *group = d->group;
    const struct wpk_cuda_tiles *t = &d->t;
    const struct wpk_cuda_machine *m = &d->m;
    const struct wpk_stage *root = &program->stages[group->root];
    if (t->rows == 0) {
        return wpk_cuda_bound_tile(d);
    }
    double rows = 1, row = 1, saved = 0, threads = (double)t->threads, share = (double)t->share;
    struct work work = {0};
    for (int a = 0; a < root->rank; a++) {
        *(a < group->row_axes ? &rows : &row) *= (double)root->axes[a].extent;
    }
    for (int g = 0; g <= d->all->count; g++) {
        bool last = g == d->all->count; /* the root itself */
        if (!last && !group->in_row[g]) {
            continue;
        }
        bool own = !last && wpk_cuda_is_in_registers(program, d->all, group, g);
        double elements = own || last ? row : wpk_cuda_terms(program, &d->all->group[g]);
        double vector = (double)wpk_cuda_vector((int64_t)elements, t->share);
        double bytes = elements * (double)t->rows * sizeof(float);
        work.issued += elements * (double)t->rows * (ROW_INSTRUCTIONS + 1 / vector);
        work.bytes += bytes;
        work.wait += pass_wait(m, elements, own || last ? share : 1, vector) +
                     join_cycles(m, own ? share : 1, true);
        saved += last ? 0 : m->launch + bytes * rows / (double)t->rows / m->l2_bytes / m->sm_count;
    }
    double together = fmin(m->blocks_max, floor(m->threads_max / threads));
    double blocks = ceiling(rows, (double)t->rows);
    return seconds_of(m, &work, blocks, threads, together) - saved / m->hertz;
}

/* Lanes of a warp along an axis, of those that are left. */
static double take_lanes(double *left, double threads)
{
    double lanes = fmin(*left, threads);
    *left = fmax(1, floor(*left / threads));
    return lanes;
}

/* Sectors that a warp's request of a stream reads, if each thread has `vector` neighbours. */
static double sectors_of(const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t,
                         const struct wpk_cuda_stream *stream, double vector)
{
    double share = (double)t->share, left = WPK_CUDA_WARP, sectors = 1;
    double i = (double)(t->block[0] / t->thread[0]), j = (double)(t->block[1] / t->thread[1]);
    const int axis[] = {group->rows ? group->k : group->j, group->rows ? group->j : group->i,
                        group->rows ? group->i : group->k};
    const double threads[] = {group->rows ? share : j, group->rows ? j : i,
                              group->rows ? i : share};
    for (int d = 0; d < 3; d++) {
        double lanes = take_lanes(&left, threads[d]);
        if (axis[d] >= 0 && (stream->axes >> axis[d] & 1) != 0) {
            sectors *= axis[d] == stream->along ? fmax(1, lanes * vector / SECTOR) : lanes;
        }
    }
    return sectors;
}

/* The loads of a tile whose threads may share its terms. */
double wpk_cuda_bound_shared(const struct wpk_cuda_decided *d)
{
    const struct wpk_program *program = &d->variant->program;
    const struct wpk_cuda_group *group = d->group;
    const struct wpk_cuda_tiles *t = &d->t;
    const struct wpk_cuda_machine *m = &d->m;
    double parts = (double)t->parts, threads = (double)t->threads, share = (double)t->share;
    double terms = wpk_cuda_terms(program, group) / parts;
    double own = ceil(terms / share), points = (double)(t->block[0] * t->block[1]);
    struct work work = {.issued = threads * own * (double)(t->thread[0] * t->thread[1])};
    double along = (double)wpk_cuda_term_vector(program, group, t);
    for (int l = 0; l < group->stream_count; l++) {
        const struct wpk_cuda_stream *stream = &group->stream[l];
        bool i = group->i >= 0 && (stream->axes >> group->i & 1) != 0;
        bool j = (stream->axes >> group->j & 1) != 0;
        double vector = stream->along == group->k && group->rows ? along
                        : stream->along == group->j              ? (double)t->thread[1]
                                                                 : 1;
        double loads = own * (double)((i ? t->thread[0] : 1) * (j ? t->thread[1] : 1)) / vector;
        double sectors = sectors_of(group, t, stream, vector);
        double block = terms * (double)((i ? t->block[0] : 1) * (j ? t->block[1] : 1));
        bool whole = stream->along >= program->stages[group->sum].rank || stream->along < 0;
        work.issued += threads * loads;
        work.requests +=
            ceiling(threads, WPK_CUDA_WARP) * loads * fmax(1, sectors / WPK_CUDA_SECTORS_A_CYCLE);
        work.bytes += block * sizeof(float) *
                      (whole ? 1 : fmax(1, SECTOR / (double)t->block[stream->along == group->j]));
    }
    work.wait = m->latency * ceiling(own / along, LOADS_AHEAD) +
                join_cycles(m, share, group->rows) +
                (double)(t->thread[0] * t->thread[1]) * log2(fmax(share, 2));
    if (t->parts > 1) {
        work.wait +=
            PART_LATENCIES * m->latency + (parts + 1) * points * sizeof(float) / m->l2_bytes;
    }
    return seconds_of(m, &work, blocks_of(program, group, t) * parts, threads, resident(m, t, 0));
}

/* Transforms read and write each element about once; the rest is latency. */
double wpk_cuda_transform_bound(const struct wpk_stage *root, const struct wpk_cuda_group *group,
                                const struct wpk_cuda_tiles *t, const struct wpk_cuda_machine *m)
{
    double tiles = 1, elements = 1;
    for (int a = 0; a < root->rank; a++) {
        tiles *= (double)wpk_cuda_tiles_along(root, group, a);
        elements *= (double)group->tile[a];
    }
    double threads = (double)t->threads, blocks = ceiling(tiles, threads);
    double together = fmax(1, floor((double)m->registers_max /
                                    ((double)wpk_cuda_tile_registers(root, group) * threads)));
    double waves = ceiling(blocks, m->sm_count * together);
    double warps = WPK_CUDA_WARP * ceiling(threads, WPK_CUDA_WARP);
    /* a row of a tile begins anywhere; read by a thread alone each of its elements is a sector */
    double reads = group->operand_count == 0 || !group->operand[0].gathers ? 1
                   : t->staged[0]                                          ? 2
                                                                           : SECTOR;
    double bytes = fmin(together, ceiling(blocks, m->sm_count)) * warps * elements * (reads + 1) *
                   (double)sizeof(float);
    double share = fmin(together, ceiling(blocks, m->sm_count)) * ceiling(threads, WPK_CUDA_WARP);
    double issued = elements * TRANSFORM_ISSUED * fmax(1, share / WPK_CUDA_SCHEDULERS);
    double wait = 2 * m->latency + (t->staged[0] ? m->barrier : 0);
    return (waves * (bytes / m->l2_bytes + issued + wait) + m->launch) / m->hertz;
}

double wpk_cuda_bound_transforms(const struct wpk_cuda_decided *d)
{
    const struct wpk_stage *root = &d->variant->program.stages[d->group->root];
    return wpk_cuda_joined_to(d->variant, d->candidate, d->number) >= 0
               ? wpk_cuda_kept_of(d->variant)
                     ->apart[d->number] /* which the contraction has saved */
               : wpk_cuda_transform_bound(root, d->group, &d->t, &d->m);
}

static int64_t common(int64_t a, int64_t b)
{
    return b == 0 ? a : common(b, a % b);
}

/* Rounds in which the banks serve a read of a staged operand: so many lanes at a time as read all
 * banks once. Those of different addresses are apart by a piece, or by its rows of terms. */
static double rounds_of(const struct wpk_program *program, const struct wpk_cuda_group *group,
                        const struct wpk_cuda_tiles *t, int c, int64_t width)
{
    int64_t row = t->step + t->padding[c], lanes = WPK_CUDA_BANKS / width;
    if (t->box && c == group->box_copy) {
        int64_t rounds;
        (void)wpk_cuda_box_padding(program, group, t, &rounds);
        return (double)rounds;
    }
    int64_t threads = t->block[1] / t->thread[1], along_j = group->operand[c].tiled == group->j;
    bool terms = wpk_cuda_along(group, t, c) == group->k;
    int64_t stride = t->piece[along_j] * (terms ? row : 1) / width;
    int64_t places = lanes / common(lanes, stride);
    lanes = along_j ? (threads < lanes ? threads : lanes) : threads < lanes ? lanes / threads : 1;
    return ceiling((double)lanes, (double)places);
}

/* Sectors of a run of neighbours over the least, if each run begins at a multiple of its length. */
static double spread(int64_t neighbours)
{
    int64_t sector = WPK_CUDA_SECTOR_ELEMENTS;
    return (double)(neighbours + sector - common(neighbours, sector)) / (double)neighbours;
}

/* Bytes of the sectors that a block stores. If windows read boxes, few threads have a row: those
 * along j have neighbours, single ones or four that are stored together, or else every so many.
 * Others have pieces that are first chosen for the banks. */
static double stored_bytes(const struct wpk_stage *root, const struct wpk_cuda_group *group,
                           const struct wpk_cuda_tiles *t)
{
    double bytes = (double)(t->block[0] * t->block[1] * t->together) * sizeof(float);
    if (t->behind || !t->box) {
        return t->behind ? 0 : bytes / (double)t->parts;
    }
    bool last = group->j == root->rank - 1;
    bool four = last && t->piece[1] % WPK_CUDA_VECTOR_ELEMENTS == 0 &&
                root->axes[group->j].extent % WPK_CUDA_VECTOR_ELEMENTS == 0;
    double piece = (double)t->piece[1];
    double waste = four ? 1 : piece > 1 ? piece : spread(t->block[1] / t->thread[1]);
    return bytes / (double)t->parts * fmin(SECTOR, waste);
}

/* The share of an operand's elements that lie in memory: a gathered one has some several times. */
static double stored_share(const struct wpk_program *program, const struct wpk_stage *copy)
{
    double stored = 0;
    for (struct wpk_loads load = wpk_loads_of(program, copy); wpk_loads_next(&load);) {
        stored += (double)wpk_tensor_elements(&program->tensors[load.node->tensor]);
    }
    return fmin(1, stored / wpk_stage_points(copy));
}

/* Cycles until memory has handed out what the blocks of a wave read, each row and column of a tile
 * once. None if all of it stays in the second cache from wave to wave. */
static double dram_cycles(const struct wpk_program *program, const struct wpk_cuda_group *group,
                          const struct wpk_cuda_tiles *t, const struct wpk_cuda_machine *m,
                          double together)
{
    const struct wpk_stage *root = &program->stages[group->root];
    double bytes = 0, all = 0, terms = wpk_cuda_terms(program, group) / (double)t->parts;
    double count[] = {1, 1}, order = (double)t->order;
    const int axis[] = {group->i, group->j};
    for (int a = 0; a < 2 && axis[a] >= 0; a++) {
        count[a] = ceiling((double)root->axes[axis[a]].extent, (double)t->block[a]);
    }
    double wave = fmin(count[0] * count[1], together * m->sm_count), rows = fmin(count[0], order);
    double columns = fmin(count[1], ceiling(wave, rows));
    rows = fmin(count[0], rows * ceiling(wave, rows * columns));
    for (int c = 0; c < group->operand_count; c++) {
        const struct wpk_stage *copy = &program->stages[group->operand[c].stage];
        const struct wpk_node *load = &program->nodes[group->operand[c].load];
        double share = sizeof(float) * stored_share(program, copy), read = terms * share;
        read *= wpk_contraction_uses_axis(program, load, group->i) ? rows * (double)t->block[0] : 1;
        read *=
            wpk_contraction_uses_axis(program, load, group->j) ? columns * (double)t->block[1] : 1;
        bytes += read;
        all += share * wpk_stage_points(copy);
    }
    if (t->parts > 1) { /* each block leaves its part, which the last one reads */
        bytes += wave * 2 * (double)(t->block[0] * t->block[1]) * sizeof(float);
    }
    return all > (double)m->l2_size ? bytes / (m->dram_bytes * m->sm_count) : 0;
}

/* The work of a block beside the products, whose steps are `steps`: the threads transform the
 * operands that they read, in each step, and their sums. The transforms' own launches are saved. */
struct joined {
    double issued, words, bytes, wait; /* as of a block's products */
    double saved;                      /* seconds */
};

static void find_joined(const struct wpk_variant *variant, const struct wpk_cuda_group *group,
                        const struct wpk_cuda_tiles *t, const struct wpk_cuda_machine *m,
                        double steps, struct joined *out)
{
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    *out = (struct joined){.saved = 0};
    if (t->before) {
        double elements = (double)(t->block[group->operand[group->before_copy].tiled == group->j] *
                                   t->step * t->together);
        out->issued += steps * elements * TRANSFORM_ISSUED;
        out->bytes += steps * elements * sizeof(float);
        out->wait += steps * m->latency;
        out->saved += kept->apart[group->before];
    }
    if (t->behind) {
        const struct wpk_cuda_group *behind = &kept->groups.group[group->behind];
        const struct wpk_stage *root = &variant->program.stages[group->root];
        double tiles = (double)(t->block[0] * t->block[1]), elements = tiles;
        for (int a = 0; a < variant->program.stages[behind->root].rank; a++) {
            elements *= (double)behind->tile[a];
        }
        out->issued += elements * TRANSFORM_ISSUED;
        out->words += 2 * tiles * (double)root->axes[group->whole].extent;
        out->bytes += 2 * elements * sizeof(float); /* stored in pieces of sectors */
        out->wait += 2 * m->barrier + m->latency;
        out->saved += kept->apart[group->behind];
    }
}

/* Terms in an iteration of the innermost loop over terms: those that are written out. */
static double written_out(const struct wpk_program *program, const struct wpk_cuda_group *group,
                          const struct wpk_cuda_tiles *t)
{
    const struct wpk_stage *sum = group->sum < 0 ? NULL : &program->stages[group->sum];
    double last = t->box ? (double)sum->axes[sum->axis_count - 1].extent : 1;
    return t->box ? (last <= WPK_CUDA_WINDOW_UNROLLED ? last : 1) : fmax(1, (double)t->unrolled);
}

/* Waves times a block's time: the slowest of arithmetic, shared memory and what comes from outside,
 * for all blocks of a multiprocessor together, or one block's latencies.
 *   source  a roofline with latencies; ours, and not compared with times */
double wpk_cuda_bound_tile(const struct wpk_cuda_decided *d)
{
    const struct wpk_program *program = &d->variant->program;
    const struct wpk_cuda_group *group = d->group;
    const struct wpk_cuda_tiles *t = &d->t;
    const struct wpk_cuda_machine *m = &d->m;
    double blocks = blocks_of(program, group, t) * (double)t->parts;
    double terms = wpk_cuda_terms(program, group) / (double)t->parts;
    double together = resident(m, t, wpk_cuda_shared_bytes(program, group, t));
    double share = fmin(together, ceiling(blocks, m->sm_count));
    double waves = ceiling(blocks, m->sm_count * together);
    double rounds =
        t->behind && !t->before
            ? (double)(program->stages[group->root].axes[group->whole].extent / t->together)
            : 1;
    double steps = group->sum < 0
                       ? 1
                       : ceiling(terms, (double)wpk_cuda_step_terms(program, group, t)) * rounds;
    double words = 0;
    double points = (double)(t->block[0] * t->block[1] * t->together), copied = 0, loads = 0,
           bytes = 0;
    struct joined joined;
    for (int c = 0; c < group->operand_count; c++) {
        double staged = (double)staged_bytes(program, group, t, c, 0);
        double wide = t->vectors[c] ? WPK_CUDA_VECTOR_ELEMENTS : 1,
               apart = t->box ? 1 : group->operand[c].apart;
        bytes += t->staged[c] ? staged * apart : staged * (double)t->threads / WPK_CUDA_WARP;
        int64_t width = t->staged[c] ? wpk_cuda_width(group, t, c) : 1;
        double tile = (double)t->thread[group->operand[c].tiled == group->j];
        /* an operand that is not staged comes from the first cache */
        words += tile * (t->staged[c] ? rounds_of(program, group, t, c, width) : UNSTAGED);
        loads += tile / (double)width;
        bool copies = t->staged[c] && !(t->before && c == group->before_copy);
        bool async = t->async && wpk_cuda_is_copied(group, t, c);
        copied += copies
                      ? (async ? 1 : 2) * COPY_INSTRUCTIONS * staged / (double)sizeof(float) / wide
                      : 0;
    }
    if (group->operand_count == 0) {
        bytes = points * terms / steps * (double)sizeof(float);
    }
    find_joined(d->variant, group, t, m, steps, &joined);
    words = words * (double)t->threads * terms * rounds + joined.words;
    double issued = (points + (double)t->threads *
                                  (loads + LOOP_INSTRUCTIONS / written_out(program, group, t))) *
                        terms * rounds +
                    steps * copied + joined.issued;
    /* Each warp issues by one of the schedulers: few warps leave the others idle. */
    double busy = ceiling((double)t->threads, WPK_CUDA_WARP) / WPK_CUDA_SCHEDULERS;
    double part[] = {
        issued / (m->multiply_adds * fmin(1, share * busy)), words / m->shared_words,
        (steps * bytes + joined.bytes + stored_bytes(&program->stages[group->root], group, t)) /
            m->l2_bytes};
    double slowest = fmax(fmax(part[0], part[1]), part[2]);
    double inner = fmax(issued / (m->multiply_adds * fmin(1, busy)), part[1]);
    /* While an asynchronous copy is on its way, the steps before it compute: as many steps take its
     * latency. A copy by loads is waited for. */
    double ahead = (double)(t->depth - 1), step = inner / steps + m->barrier;
    double wait = steps * (t->async && ahead > 0 ? fmax(step, m->latency / ahead) - inner / steps
                                                 : m->latency) +
                  joined.wait;
    double all = slowest + EXPOSED * (part[0] + part[1] + part[2] - slowest + wait / share);
    double block = fmax(share * all, inner + wait) + FEWER_FIRST * part[0];
    if (t->parts > 1) { /* a part is left, a ticket taken, and the last block reads all parts */
        block += PART_LATENCIES * m->latency +
                 (double)(t->parts + 1) * points * (double)sizeof(float) / m->l2_bytes;
    }
    if (group->ordered) { /* some of it overlaps with what is computed */
        double memory = dram_cycles(program, group, t, m, together);
        block = fmax(block, memory) + EXPOSED * fmin(block, memory);
    }
    return (waves * block + m->launch) / m->hertz - joined.saved;
}
