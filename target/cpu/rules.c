/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs. Rows of the table are matched from the top: by the flags, and by the model's name
 * where it tells the generation. Numbers are per core.
 *
 *   source  ports, latencies and caches: Intel 64 and IA-32 Architectures Optimization Reference
 *           Manual; AMD Software Optimization Guides for Zen 2, 4 and 5; of L3 a core counts on
 *           its share */
#include "target/cpu/rules.h"

#include <fnmatch.h>
#include <math.h>

#define KB INT64_C(1024)
#define MB (KB * KB)

/* Seconds that a group's tile may take to build. */
#define BUILD_MAX 0.9
#define COPIES_MAX 16        /* in a group that only copies or maps: borders multiply it */
#define UNROLLED_FMA_MAX 256 /* in the body of the contraction's innermost loop */

#define LOOP 3           /* instructions of a loop's end */
#define LINE_ELEMENTS 16 /* f32 in a cache line */
#define EXPOSED 0.3      /* share of the shorter of computing and moving that is not hidden */

struct row {
    wpk_cpu_flags flags;
    const char *model; /* a pattern */
    struct wpk_machine machine;
};

static const struct row rows[] = {
    {WPK_CPU_SET_AVX512,
     "@(AMD EPYC 9??5|*family 26)*", /* Zen 5 */
     {.l1i_bytes = 32 * KB,
      .latency = 4,
      .multiply_adds = 2,
      .loads = 2,
      .stores = 1,
      .issued = 8,
      .hertz = 3.7e9,
      .cache_bytes = {48 * KB, 1 * MB, 16 * MB},
      .cache_bytes_per_cycle = {64, 24, 6}}},
    {WPK_CPU_SET_AVX512,
     "AMD*", /* Zen 4: 512 bits pass in two halves */
     {.l1i_bytes = 32 * KB,
      .latency = 4,
      .multiply_adds = 1,
      .loads = 1,
      .stores = 0.5,
      .issued = 6,
      .hertz = 3.7e9,
      .cache_bytes = {32 * KB, 1 * MB, 16 * MB},
      .cache_bytes_per_cycle = {32, 20, 4}}},
    {WPK_CPU_SET_AVX512,
     "*",
     {.l1i_bytes = 32 * KB,
      .latency = 4,
      .multiply_adds = 2,
      .loads = 2,
      .stores = 1,
      .issued = 5,
      .hertz = 3e9,
      .cache_bytes = {32 * KB, 1 * MB, 16 * MB},
      .cache_bytes_per_cycle = {48, 10, 4}}},
    {WPK_CPU_SET_AVX2,
     "*",
     {.l1i_bytes = 32 * KB,
      .latency = 5,
      .multiply_adds = 2,
      .loads = 2,
      .stores = 1,
      .issued = 4,
      .hertz = 3.2e9,
      .cache_bytes = {32 * KB, 256 * KB, 8 * MB},
      .cache_bytes_per_cycle = {32, 10, 4}}},
    {WPK_CPU_SET_SSE41, /* a product, then a sum; AVX has vectors of 8, too */
     "*",
     {.l1i_bytes = 32 * KB,
      .latency = 8,
      .multiply_adds = 1,
      .loads = 2,
      .stores = 1,
      .issued = 4,
      .hertz = 3e9,
      .cache_bytes = {32 * KB, 256 * KB, 8 * MB},
      .cache_bytes_per_cycle = {16, 8, 4}}},
};

void wpk_cpu_describe(const struct wpk_device *device, struct wpk_machine *out)
{
    int i = 0;
    while (i + 1 < (int)(sizeof(rows) / sizeof(rows[0])) &&
           (!wpk_cpu_flags_fit(rows[i].flags, device->cpu.flags) ||
            fnmatch(rows[i].model, device->model, FNM_EXTMATCH) != 0)) {
        i++;
    }
    *out = rows[i].machine;
    out->lanes_max = device->cpu.vector_bytes / 4;
    out->lanes_min = 4;
    out->registers = device->cpu.vector_registers;
    out->row_vectors = 4; /* hides the latency of the combine */
    out->row_max = 64;
    out->recomputed_max = 4;
    out->strip_vectors = 4;
    /* A strip that is longer than the second cache comes from the third one in time: a product of
     * 4096 took 1.30 s without panels and 1.36 to 1.42 with, on a core of Zen 4. */
    out->strip_bytes_max = out->cache_bytes[WPK_CACHES - 1];
    out->code_bytes_max = out->l1i_bytes / 2; /* tails and other groups have code, too */
}

/* Bytes of a tile's instructions, and the time that Halide and LLVM take for them on a core of
 * Zen 4: least squares of the logarithms over 694 builds of matrix products, convolutions that are
 * none of the bench's, depthwise ones, pools, rows and pointwise operators, for SSE4.1, AVX2 and
 * AVX-512. On 429 more builds the rank correlations with the truth are 0.92 and 0.89 (those of the
 * number of statements 0.76 and 0.83), and half of the predictions are within -29 and +36 %. */
static double code_bytes(const struct wpk_tile *tile)
{
    return 7.4 * tile->arithmetic + 10 * tile->moves + 8.6 * tile->gathered + 25 * tile->scattered +
           67 * tile->definitions;
}

static double build_seconds(const struct wpk_tile *tile)
{
    return 5e-5 * tile->arithmetic + 1.1e-3 * tile->moves + 2.1e-4 * tile->gathered +
           1.4e-3 * tile->scattered + 3.3e-3 * tile->definitions;
}

bool wpk_tile_is_legal(const struct wpk_machine *machine, const struct wpk_tile *tile,
                       const char **why)
{
    bool least = tile->statements <= tile->least && tile->copies;
    if (code_bytes(tile) > (double)machine->code_bytes_max && !least) {
        return wpk_illegal(why, "more code than a loop should have");
    }
    if (build_seconds(tile) > BUILD_MAX && !least) {
        return wpk_illegal(why, "it would take too long to build");
    }
    if (tile->copies && tile->statements > COPIES_MAX && !least) {
        return wpk_illegal(why, "too many unrolled copies");
    }
    if (tile->reuses && tile->accumulators + tile->vectors + 1 > machine->registers) {
        return wpk_illegal(why, "the accumulators do not fit the registers");
    }
    return tile->unrolled <= UNROLLED_FMA_MAX ||
           wpk_illegal(why, "the innermost reduction loop is unrolled too far");
}

/* Every step of a reduction loads `vectors` vectors of one operand and broadcasts `points` elements
 * of the other for as many multiply-adds as there are accumulators. A window's vectors are loaded
 * once for all its results, and take registers beside the accumulators until the last one.
 *
 *   source  the usual model of register blocking (Goto & van de Geijn 2008, section 6); the weights
 *           were set on the twelve convolutions of the bench */
double wpk_tile_score(const struct wpk_machine *machine, const struct wpk_tile *tile)
{
    double lanes_used = (double)tile->lanes / machine->lanes_max;
    double accumulators = (double)(tile->points * tile->vectors);
    if (!tile->reuses) {
        return tile->covered * lanes_used / (1 + 0.05 * fabs(accumulators - 2));
    }
    /* a vector that crosses the end of a cache line is loaded twice */
    double twice = (double)tile->unaligned * (double)(tile->lanes - 1) / LINE_ELEMENTS;
    double busy = accumulators / fmax(accumulators, (double)tile->loads + twice);
    double hidden = fmin(1, accumulators / 8);            /* 4 cycles of latency on two units */
    double amortized = accumulators / (accumulators + 2); /* loop overhead */
    double live = accumulators + (double)(tile->held > 0 ? tile->held : tile->live);
    double fits = fmin(1, machine->registers / live);
    return tile->covered * lanes_used * busy * hidden * amortized * fits;
}

/* Narrow vectors pass two in a cycle where wide ones pass one. */
static double in_a_cycle(const struct wpk_machine *machine, double widest, double lanes)
{
    return fmin(widest * machine->lanes_max / lanes, fmax(widest, 2));
}

/* Cycles of one run of a body: its busiest port, the front end, or the chain of additions to one
 * accumulator. Elements that are moved one by one pass the port of shuffles, too. Accumulators that
 * do not fit the registers are stored and loaded again. */
static double body_cycles(const struct wpk_machine *machine, const struct wpk_body *body)
{
    double spilled = fmax(0, body->accumulators + 1 - machine->registers);
    double loads = body->loads + spilled, stores = body->stores + spilled;
    double computed =
        body->arithmetic / in_a_cycle(machine, machine->multiply_adds, body->lanes) + body->singles;
    double loaded = loads / in_a_cycle(machine, machine->loads, body->lanes);
    double stored = stores / in_a_cycle(machine, machine->stores, body->lanes);
    double issued = (body->arithmetic + loads + stores + body->singles + LOOP) / machine->issued;
    double chain = body->accumulators > 0 ? body->terms * machine->latency : 0;
    return fmax(fmax(fmax(computed, loaded), fmax(stored, issued)), chain);
}

double wpk_features_seconds(const struct wpk_machine *machine, const struct wpk_features *features,
                            int threads)
{
    double cycles = 0;
    for (int b = 0; b < features->body_count; b++) {
        const struct wpk_body *body = &features->body[b];
        double share = body->parallel / threads, moved = 0;
        double computed = body->runs * body_cycles(machine, body);
        for (int i = 0; i < WPK_CACHES; i++) {
            bool warm = features->bytes <= (double)machine->cache_bytes[i];
            moved =
                fmax(moved, warm ? 0 : body->traffic_bytes[i] / machine->cache_bytes_per_cycle[i]);
        }
        cycles += (fmax(computed, moved) + EXPOSED * fmin(computed, moved)) * ceil(share) / share /
                  threads;
    }
    return cycles / machine->hertz;
}

/* Single elements, then each width of vectors. */
int wpk_mask_width(const struct wpk_machine *machine, int multiple)
{
    int next = multiple <= 1 ? multiple == 0 ? 1 : machine->lanes_min : 2 * multiple;
    return next <= machine->lanes_max ? next : 0;
}
