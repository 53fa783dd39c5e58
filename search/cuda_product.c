/* SPDX-License-Identifier: Apache-2.0 */
#include "search/cuda_product.h"

#include "common/cuda_machine.h"
#include "op/derive.h"
#include "search/gene_list.h"

#include <math.h>
#include <string.h>

#define THREADS_LEAST 32 /* a warp, unless each thread has one result */
#define EXPOSED 0.2      /* of what is not the slowest: it overlaps, but not all of it */
#define FEW_REGISTERS 40 /* of a thread, beside its tile and operands */
#define REGISTERS_MAX 255

/* The genes, in the order in which they are listed. */
enum { BLOCK_I, BLOCK_J, THREAD_I, THREAD_J, STEP, STAGED };

/* A program that is a product: its result, its sum, and the copies of the operands. */
struct product {
    const struct wpk_stage *root, *sum;
    int sum_stage, root_stage;
    int i, j;                        /* axes of both */
    int k;                           /* of the sum: the longest of its reduction */
    int copy[WPK_CUDA_OPERANDS_MAX]; /* stages */
    int copy_count;
};

/* What a candidate decides. */
struct tiles {
    int64_t block[2], thread[2]; /* of i, of j */
    int64_t step;
    bool staged[WPK_CUDA_OPERANDS_MAX];
    int64_t threads;
};

/* ---- the program */

static int find_sum(const struct wpk_program *program)
{
    int found = -1, count = 0;
    for (int s = 0; s < program->stage_count; s++) {
        bool sum = program->stages[s].reduction == WPK_REDUCE_SUM;
        count += program->stages[s].reduction != WPK_REDUCE_NONE;
        found = sum ? s : found;
    }
    return count == 1 ? found : -1;
}

/* True if the stage reads the tensor at axes alone, and no other one reads it. */
static bool reads_alone(const struct wpk_program *program, int stage, int tensor)
{
    bool found = false;
    for (int s = 0; s < program->stage_count; s++) {
        int loads[WPK_LOADS_MAX];
        int count = wpk_stage_loads(program, &program->stages[s], loads, WPK_LOADS_MAX);
        for (int l = 0; l < count; l++) {
            const struct wpk_node *load = &program->nodes[loads[l]];
            bool plain = s == stage && !found;
            if (load->tensor != tensor) {
                continue;
            }
            for (int d = 0; d < program->tensors[tensor].rank; d++) {
                plain = plain && wpk_index_axis(program, load->index[d]) >= 0;
            }
            if (!plain) {
                return false;
            }
            found = true;
        }
    }
    return found;
}

/* The next input that is not copied so far and that the sum alone reads; -1: none. */
static int find_operand(const struct wpk_program *program, int sum)
{
    for (int t = 0; t < program->tensor_count; t++) {
        if (program->tensors[t].role == WPK_ROLE_INPUT && program->tensors[t].rank >= 2 &&
            reads_alone(program, sum, t)) {
            return t;
        }
    }
    return -1;
}

/* The root reads the sum at its own point. */
static bool is_pointwise(const struct wpk_program *program, const struct wpk_stage *root,
                         const struct wpk_stage *sum)
{
    int loads[WPK_LOADS_MAX];
    int count = wpk_stage_loads(program, root, loads, WPK_LOADS_MAX);
    bool reads = false;
    for (int l = 0; l < count; l++) {
        const struct wpk_node *load = &program->nodes[loads[l]];
        for (int d = 0; load->tensor == sum->output && d < sum->rank; d++) {
            if (wpk_index_axis(program, load->index[d]) != d) {
                return false;
            }
        }
        reads = reads || load->tensor == sum->output;
    }
    return reads && root->rank == sum->rank && root->reduction == WPK_REDUCE_NONE;
}

/* False: the program is no product. */
static bool find_product(const struct wpk_program *program, struct product *out)
{
    int wide = 0;
    *out = (struct product){.sum_stage = find_sum(program), .root_stage = program->stage_count - 1};
    if (out->sum_stage < 0 || out->sum_stage + 1 != out->root_stage ||
        out->sum_stage > WPK_CUDA_OPERANDS_MAX) {
        return false;
    }
    out->sum = &program->stages[out->sum_stage];
    out->root = &program->stages[out->root_stage];
    if (out->sum->rank < 2 || !is_pointwise(program, out->root, out->sum)) {
        return false;
    }
    for (int s = 0; s < out->sum_stage; s++) {
        if (program->stages[s].reduction != WPK_REDUCE_NONE ||
            !reads_alone(program, out->sum_stage, program->stages[s].output)) {
            return false;
        }
        out->copy[out->copy_count++] = s;
    }
    for (int a = 0; a < out->sum->rank - 2; a++) {
        wide += out->sum->axes[a].extent > 1;
    }
    out->i = out->sum->rank - 2;
    out->j = out->sum->rank - 1;
    out->k = out->sum->rank;
    for (int a = out->k; a < out->sum->axis_count; a++) {
        out->k = out->sum->axes[a].extent > out->sum->axes[out->k].extent ? a : out->k;
    }
    return wide <= 1 && program->tensors[out->sum->output].dtype == WPK_F32;
}

/* A last stage computes the result of the sum, and operands are copied. */
static wpk_err rewrite(struct wpk_program *program)
{
    int sum = find_sum(program);
    wpk_err err = sum < 0 ? WPK_EUNSUPPORTED : WPK_OK;
    if (err == WPK_OK && program->tensors[program->stages[sum].output].role == WPK_ROLE_OUTPUT) {
        err = wpk_derive_copy_after(program, sum, NULL);
    }
    for (int i = 0; i < WPK_CUDA_OPERANDS_MAX && err == WPK_OK; i++) {
        int operand = find_operand(program, find_sum(program));
        err = operand < 0 ? WPK_OK : wpk_derive_stage_input(program, operand, NULL, -1);
    }
    return err;
}

/* ---- genes */

static void add_sizes(struct wpk_gene_list *list, const char *name, const struct wpk_axis *axis,
                      int64_t least, int64_t most, const char *of)
{
    int gene = wpk_gene_list_add(list, true, "%s.%s.%s", of, name, axis->name);
    for (int64_t size = least; size <= most; size *= 2) {
        wpk_gene_list_number(list, gene, size < axis->extent ? size : axis->extent);
    }
}

static wpk_err derive(const struct wpk_space *space, struct wpk_variant *variant)
{
    struct wpk_program *program = &variant->program;
    struct wpk_gene_list list = {.variant = variant};
    struct product p;
    (void)space;
    wpk_err err = rewrite(program);
    if (err == WPK_OK && !find_product(program, &p)) {
        err = WPK_EUNSUPPORTED;
    }
    if (err != WPK_OK) {
        return err;
    }
    const char *of = program->tensors[p.root->output].name;
    add_sizes(&list, "block", &p.sum->axes[p.i], 16, 128, of);
    add_sizes(&list, "block", &p.sum->axes[p.j], 16, 128, of);
    add_sizes(&list, "thread", &p.sum->axes[p.i], 1, 8, of);
    add_sizes(&list, "thread", &p.sum->axes[p.j], 1, 8, of);
    add_sizes(&list, "step", &p.sum->axes[p.k], 8, 32, of);
    for (int c = 0; c < p.copy_count; c++) {
        const char *name = program->tensors[program->stages[p.copy[c]].output].name;
        int gene = wpk_gene_list_add(&list, false, "%s.stage.%s", of, name);
        wpk_gene_list_choice(&list, gene, 0, "no");
        wpk_gene_list_choice(&list, gene, 1, "shared");
    }
    return list.err;
}

static void read_tiles(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                       struct product *p, struct tiles *out)
{
    bool is_product = find_product(&variant->program, p);
    WPK_ASSERT(is_product);
    int64_t value[WPK_CUDA_OPERANDS_MAX + STAGED] = {0};
    WPK_ASSERT(candidate->gene_count == STAGED + p->copy_count);
    for (int i = 0; i < candidate->gene_count; i++) {
        value[i] = variant->genes[i].choice[candidate->gene[i]].value;
    }
    *out = (struct tiles){.block = {value[BLOCK_I], value[BLOCK_J]},
                          .thread = {value[THREAD_I], value[THREAD_J]},
                          .step = value[STEP]};
    for (int c = 0; c < p->copy_count; c++) {
        out->staged[c] = value[STAGED + c] != 0;
    }
    out->threads = out->block[0] / out->thread[0] * (out->block[1] / out->thread[1]);
}

/* ---- rules and ranks */

/* The elements of an operand that a step of a block reads; one of either operand. */
static int64_t staged_bytes(const struct wpk_variant *variant, const struct product *p,
                            const struct tiles *t, int c)
{
    const struct wpk_program *program = &variant->program;
    int loads[WPK_LOADS_MAX], tensor = program->stages[p->copy[c]].output;
    int count = wpk_stage_loads(program, p->sum, loads, WPK_LOADS_MAX);
    int64_t elements = 1;
    for (int l = 0; l < count; l++) {
        const struct wpk_node *load = &program->nodes[loads[l]];
        for (int d = 0; load->tensor == tensor && d < program->tensors[tensor].rank; d++) {
            int axis = wpk_index_axis(program, load->index[d]);
            elements *= axis == p->i ? t->block[0] : axis == p->j ? t->block[1] : 1;
            elements *= axis == p->k ? t->step : 1;
        }
    }
    return elements * (int64_t)sizeof(float);
}

static int64_t shared_bytes(const struct wpk_variant *variant, const struct product *p,
                            const struct tiles *t)
{
    int64_t bytes = 0;
    for (int c = 0; c < p->copy_count; c++) {
        bytes += t->staged[c] ? staged_bytes(variant, p, t, c) : 0;
    }
    return bytes;
}

static int64_t registers_of(const struct tiles *t)
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

static bool legal(const struct wpk_space *space, const struct wpk_candidate *candidate,
                  const char **why)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    struct wpk_cuda_machine machine;
    struct product p;
    struct tiles t;
    wpk_cuda_machine(space->options.device.cuda.capability, space->options.device.cuda.sm_count,
                     &machine);
    read_tiles(variant, candidate, &p, &t);
    bool least = t.thread[0] * t.thread[1] == 1;
    if (t.block[0] % t.thread[0] != 0 || t.block[1] % t.thread[1] != 0) {
        return no(why, "a thread's tile does not divide its block's");
    }
    if (t.threads > machine.block_threads_max || (t.threads < THREADS_LEAST && !least)) {
        return no(why, "too many threads in a block, or less than a warp");
    }
    if (registers_of(&t) > REGISTERS_MAX || registers_of(&t) * t.threads > machine.registers_max) {
        return no(why, "the tiles do not fit the registers");
    }
    return shared_bytes(variant, &p, &t) <= machine.block_shared_max ||
           no(why, "the operands do not fit the shared memory");
}

static double ceiling(double a, double b)
{
    return ceil(a / b);
}

/* Blocks that a multiprocessor has at a time. */
static double resident(const struct wpk_cuda_machine *m, const struct tiles *t, int64_t shared)
{
    double most = fmin(m->blocks_max, floor((double)m->threads_max / (double)t->threads));
    most = fmin(most, floor((double)m->registers_max / (double)(registers_of(t) * t->threads)));
    return fmax(1, shared == 0 ? most : fmin(most, floor((double)m->shared_max / (double)shared)));
}

/* Waves times a block's time: the slowest of arithmetic, shared memory and what comes from outside,
 * for all blocks of a multiprocessor together, or one block's latencies.
 *   source  a roofline with latencies; ours, and not compared with times */
static double bound(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    struct wpk_cuda_machine m;
    struct product p;
    struct tiles t;
    wpk_cuda_machine(space->options.device.cuda.capability, space->options.device.cuda.sm_count,
                     &m);
    read_tiles(variant, candidate, &p, &t);
    double blocks = 1, terms = 1, bytes = 0;
    for (int a = 0; a < p.sum->axis_count; a++) {
        double extent = (double)p.sum->axes[a].extent;
        blocks *= a == p.i          ? ceiling(extent, (double)t.block[0])
                  : a == p.j        ? ceiling(extent, (double)t.block[1])
                  : a < p.sum->rank ? extent
                                    : 1;
        terms *= a < p.sum->rank ? 1 : extent;
    }
    double together = resident(&m, &t, shared_bytes(variant, &p, &t));
    double share = fmin(together, ceiling(blocks, m.sm_count));
    double waves = ceiling(blocks, m.sm_count * together);
    double steps = ceiling(terms, (double)t.step), reads = 0;
    for (int c = 0; c < p.copy_count; c++) {
        double staged = (double)staged_bytes(variant, &p, &t, c);
        bytes += t.staged[c] ? staged : staged * (double)t.threads / THREADS_LEAST;
        reads += t.staged[c] ? 1 : 4; /* an operand that is not staged comes from the first cache */
    }
    double points = (double)(t.block[0] * t.block[1]) * terms;
    double arithmetic = points / m.multiply_adds;
    double words = (double)t.threads * (double)(t.thread[0] + t.thread[1]) * terms * reads / 2;
    double part[] = {arithmetic, words / m.shared_words, steps * bytes / m.l2_bytes};
    double inner = fmax(part[0], part[1]), slowest = fmax(inner, part[2]);
    double all = slowest + EXPOSED * (part[0] + part[1] + part[2] - slowest);
    double block = fmax(share * all, inner + steps * m.latency);
    return (waves * block + m.launch) / m.hertz;
}

/* ---- the nest */

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
static void add_tile(struct wpk_nest *nest, struct wpk_nest_loops *loops, const struct product *p,
                     const struct tiles *t)
{
    const int axis[] = {p->i, p->j};
    for (int a = 0; a < 2; a++) {
        if (t->thread[a] > 1) {
            add(nest, loops, axis[a], WPK_BIND_UNROLL, 1, WPK_TAIL_EXACT);
        }
    }
}

static void add_root(struct wpk_nest *nest, const struct product *p, const struct tiles *t)
{
    const struct wpk_axis *axes = p->root->axes;
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, p->root_stage);
    const int axis[] = {p->i, p->j};
    entry->place = (struct wpk_nest_place){.entry = -1, .loop = -1};
    wpk_nest_find_region(nest);
    for (int a = 0; a < p->i; a++) {
        if (axes[a].extent > 1) {
            add(nest, &entry->pure, a, WPK_BIND_BLOCK_Z, 1, WPK_TAIL_EXACT);
        }
    }
    for (int a = 0; a < 2; a++) {
        add(nest, &entry->pure, axis[a], a == 0 ? WPK_BIND_BLOCK_Y : WPK_BIND_BLOCK_X, t->block[a],
            tail_of(axes[axis[a]].extent, t->block[a], WPK_TAIL_SHIFT));
    }
    for (int a = 0; a < 2; a++) {
        add(nest, &entry->pure, axis[a], a == 0 ? WPK_BIND_THREAD_Y : WPK_BIND_THREAD_X,
            t->thread[a], tail_of(axes[axis[a]].extent, t->thread[a], WPK_TAIL_SHIFT));
    }
    add_tile(nest, &entry->pure, p, t);
}

static void add_threads(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                        const struct product *p, const struct tiles *t)
{
    add(nest, loops, p->i, WPK_BIND_THREAD_Y, t->thread[0], WPK_TAIL_EXACT);
    add(nest, loops, p->j, WPK_BIND_THREAD_X, t->thread[1], WPK_TAIL_EXACT);
}

/* Returns the loop of the update that steps over the terms that are staged. */
static int add_sum(struct wpk_nest *nest, const struct product *p, const struct tiles *t)
{
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, p->sum_stage);
    int64_t extent = p->sum->axes[p->k].extent;
    entry->place = (struct wpk_nest_place){.entry = 0, .loop = 1}; /* the last one over blocks */
    entry->scope = WPK_SCOPE_REGISTER;
    entry->bounded = true;
    for (int a = 0; a < p->i; a++) {
        entry->place.loop += p->root->axes[a].extent > 1;
    }
    wpk_nest_find_region(nest);
    add_threads(nest, &entry->pure, p, t);
    add_tile(nest, &entry->pure, p, t);
    for (int a = p->sum->rank; a < p->sum->axis_count; a++) {
        if (a != p->k) {
            add(nest, &entry->update, a, WPK_BIND_SERIAL, 1, WPK_TAIL_EXACT);
        }
    }
    int loop = entry->update.count;
    add(nest, &entry->update, p->k, WPK_BIND_SERIAL, t->step,
        tail_of(extent, t->step, WPK_TAIL_GUARD));
    add_threads(nest, &entry->update, p, t);
    if (t->step > 1) {
        add(nest, &entry->update, p->k, WPK_BIND_SERIAL, 1, WPK_TAIL_EXACT);
    }
    add_tile(nest, &entry->update, p, t);
    return loop;
}

/* Neighbours in memory are copied by neighbours among the threads. */
static void add_copy(struct wpk_nest *nest, const struct product *p, const struct tiles *t, int c,
                     int loop)
{
    struct wpk_nest_entry *entry = wpk_nest_add(nest, WPK_NEST_STAGE, p->copy[c]);
    if (!t->staged[c]) {
        entry->inlined = true;
        return;
    }
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
    int x = stage->rank - 1, y = 0;
    entry->place = (struct wpk_nest_place){.entry = 1, .update = true, .loop = loop};
    entry->scope = WPK_SCOPE_SHARED;
    wpk_nest_find_region(nest);
    for (int a = 1; a < x; a++) {
        y = entry->extent[a] > entry->extent[y] ? a : y;
    }
    int64_t width = entry->extent[x] < t->threads ? entry->extent[x] : t->threads;
    int64_t rows = t->threads / width;
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

static wpk_err nest(const struct wpk_space *space, const struct wpk_candidate *candidate,
                    struct wpk_nest *out)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    struct product p;
    struct tiles t;
    read_tiles(variant, candidate, &p, &t);
    memset(out, 0, sizeof(*out));
    out->program = &variant->program;
    add_root(out, &p, &t);
    int loop = add_sum(out, &p, &t);
    for (int c = p.copy_count - 1; c >= 0; c--) {
        add_copy(out, &p, &t, c, loop);
    }
    return out->full ? WPK_ENOSPC : WPK_OK;
}

const struct wpk_space_kind wpk_space_cuda = {
    .version = "cuda-1",
    .back_end = "cuda",
    .derive = derive,
    .legal = legal,
    .bound = bound,
    .nest = nest,
};
