/* SPDX-License-Identifier: Apache-2.0 */
/* Features by hand, of a product and of a convolution, and what holds for every nest. */
#include "search/feature.h"

#include "common/format.h"
#include "ir/notation/notation.h"
#include "search/candidate_nest.h"
#include "tests/random_program.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct subject {
    struct wpk_program program;
    struct wpk_accesses accesses;
    struct wpk_nest nest;
    struct wpk_features features;
};

static struct subject *set_up(const char *text)
{
    struct wpk_diag diag = {0};
    struct subject *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    if (wpk_program_parse(text, &s->program, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    assert_int_equal(wpk_accesses_init(&s->program, &s->accesses), WPK_OK);
    s->nest = (struct wpk_nest){.program = &s->program, .tile.place.entry = -1};
    return s;
}

static void tear_down(struct subject *s)
{
    wpk_accesses_fini(&s->accesses);
    wpk_program_fini(&s->program);
    free(s);
}

static struct wpk_nest_entry *add(struct subject *s, int stage, int at, int loop)
{
    struct wpk_nest_entry *entry = wpk_nest_add(&s->nest, WPK_NEST_STAGE, stage);
    entry->place = (struct wpk_nest_place){.entry = at, .loop = loop};
    entry->bounded = at >= 0;
    wpk_nest_find_region(&s->nest);
    return entry;
}

static void loop(struct subject *s, struct wpk_nest_loops *loops, int axis,
                 enum wpk_loop_binding binding, int64_t step, enum wpk_tail tail)
{
    const struct wpk_nest_loop made = {
        .axis = axis, .binding = binding, .step = step, .tail = tail};
    wpk_nest_add_loop(&s->nest, loops, &made);
}

static void assert_same(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-12 * fabs(expected))) {
        fail_msg("%.9g, not %.9g", value, expected);
    }
}

#define SERIAL WPK_BIND_SERIAL
#define UNROLL WPK_BIND_UNROLL
#define LANES WPK_BIND_LANES

/* ---- a product: tiles of 4 x 32, vectors of 16; A, B and Y have 16 KB each */

#define PRODUCT                                                                                    \
    "input A f32[64,64]\ninput B f32[64,64]\nintermediate T f32[64,64]\noutput Y f32[64,64]\n"     \
    "T[i,j] = sum.f32(k:64) A[i,k] * B[k,j]\nY[i,j] = T[i,j]\n"

static void add_tile(struct subject *s, struct wpk_nest_loops *loops)
{
    loop(s, loops, 0, UNROLL, 1, WPK_TAIL_EXACT);
    loop(s, loops, 1, UNROLL, 16, WPK_TAIL_EXACT);
    loop(s, loops, 1, LANES, 1, WPK_TAIL_EXACT);
}

/* The sum adds `unroll` terms in a step; i is cut into blocks of 32 if `blocks`. */
static struct subject *make_product(enum wpk_loop_binding outermost, bool blocks, int64_t unroll)
{
    struct subject *s = set_up(PRODUCT);
    struct wpk_nest_entry *y = add(s, 1, -1, -1);
    if (blocks) {
        loop(s, &y->pure, 0, SERIAL, 32, WPK_TAIL_EXACT);
    }
    loop(s, &y->pure, 0, outermost, 4, WPK_TAIL_EXACT);
    loop(s, &y->pure, 1, SERIAL, 32, WPK_TAIL_EXACT);
    add_tile(s, &y->pure);
    struct wpk_nest_entry *t = add(s, 0, 0, blocks ? 2 : 1);
    add_tile(s, &t->pure);
    loop(s, &t->update, 2, SERIAL, unroll, WPK_TAIL_EXACT);
    if (unroll > 1) {
        loop(s, &t->update, 2, UNROLL, 1, WPK_TAIL_EXACT);
    }
    add_tile(s, &t->update);
    return s;
}

static void test_a_product(void **state)
{
    (void)state;
    struct subject *s = make_product(SERIAL, false, 1);
    struct wpk_machine machine = {.cache_bytes = {8 << 10, 32 << 10, 64 << 10}, .registers = 32};
    struct wpk_features *f = &s->features;
    wpk_features(&s->accesses, &s->nest, &machine, 1, f);
    assert_same(f->flops, 2 * 64 * 64 * 64);
    assert_same(f->recomputed, 1);
    /* a step of the sum: 4 elements of A, 2 vectors of B, 8 multiply-adds */
    const struct wpk_body *update = &f->body[2];
    assert_int_equal(f->body_count, 3);
    assert_true(update->update && update->multiply_add);
    assert_same(update->runs, 16 * 2 * 64);
    assert_same(update->loads, 4 + 2);
    assert_same(update->arithmetic, 8);
    assert_same(update->stores, 0);
    assert_same(update->terms, 1);
    assert_same(f->accumulators, 8);
    assert_same(f->loads_per_multiply_add, 6.0 / 8);
    assert_same(f->stores, 16 * 2 * 8);
    assert_same(f->loads, 16 * 2 * 64 * 6);
    assert_same(f->bytes, 48 << 10);
    /* the sum of one tile reads 4 rows of A and 32 columns of B: 9 KB, more than 8 */
    const double kb = 1024;
    assert_same(f->traffic_bytes[0], 32 * (1 * kb + 8 * kb) + 16 * kb);
    assert_same(f->footprint_bytes[0], (4 + 32) * 4);
    /* a row of tiles reads all of B, which stays, and 4 rows of A */
    assert_same(f->traffic_bytes[1], 48 * kb);
    assert_same(f->footprint_bytes[1], (1 + 16 + 1) * kb);
    assert_same(f->traffic_bytes[2], 48 * kb);
    assert_same(f->footprint_bytes[2], 48 * kb);
    assert_same(f->tails, 0);
    assert_same(f->balance, 1);
    assert_same(f->parallel, 0);
    /* 8 accumulators do not fit 4 registers: each step loads and stores them */
    machine.registers = 4;
    wpk_features(&s->accesses, &s->nest, &machine, 1, f);
    assert_same(f->body[2].loads, 6 + 8);
    assert_same(f->body[2].stores, 8);
    tear_down(s);
}

/* B stays while all rows of tiles pass, those of both blocks. */
static void test_a_product_in_blocks(void **state)
{
    (void)state;
    struct subject *s = make_product(SERIAL, true, 2);
    const struct wpk_machine machine = {.cache_bytes = {24 << 10, 40 << 10, 64 << 10},
                                        .registers = 32};
    struct wpk_features *f = &s->features;
    wpk_features(&s->accesses, &s->nest, &machine, 1, f);
    assert_same(f->footprint_bytes[0], (1 + 16 + 1) << 10);
    assert_same(f->traffic_bytes[0], 48 << 10);
    assert_same(f->footprint_bytes[1], (8 + 16 + 8) << 10);
    assert_same(f->body[2].terms, 2);
    assert_same(f->body[2].accumulators, 8);
    assert_same(f->body[2].loads, 2 * 6);
    tear_down(s);
}

/* A copied into the order of its use: 4 rows side by side. */
static void test_a_copy(void **state)
{
    (void)state;
    struct subject *s = make_product(SERIAL, false, 1);
    struct wpk_nest_entry *copy = wpk_nest_add(&s->nest, WPK_NEST_COPY, -1);
    copy->packing =
        (struct wpk_packing){.tensor = 0, .dim_count = 3, .dim = {0, 1, 0}, .block = {-4, 0, 4}};
    copy->extent[0] = 16;
    copy->extent[1] = 64;
    copy->extent[2] = 4;
    loop(s, &copy->pure, 0, SERIAL, 1, WPK_TAIL_EXACT);
    loop(s, &copy->pure, 1, SERIAL, 1, WPK_TAIL_EXACT);
    loop(s, &copy->pure, 2, LANES, 1, WPK_TAIL_EXACT);
    const struct wpk_machine machine = {.cache_bytes = {8 << 10, 32 << 10, 64 << 10},
                                        .registers = 32};
    struct wpk_features *f = &s->features;
    wpk_features(&s->accesses, &s->nest, &machine, 1, f);
    assert_int_equal(f->body_count, 4);
    assert_same(f->body[3].runs, 16 * 64);
    assert_same(f->body[3].loads, 4);
    assert_same(f->body[3].stores, 1);
    assert_same(f->body[3].traffic_bytes[2], 2 * 16 << 10);
    tear_down(s);
}

static void test_threads(void **state)
{
    (void)state;
    struct subject *s = make_product(WPK_BIND_PARALLEL, false, 1);
    struct wpk_machine machine = {.cache_bytes = {8 << 10, 32 << 10, 64 << 10}, .registers = 32};
    wpk_features(&s->accesses, &s->nest, &machine, 3, &s->features);
    assert_same(s->features.parallel, 1);
    assert_same(s->features.balance, 16.0 / (3 * 6));
    tear_down(s);
}

/* ---- a convolution of stride 2 in one dimension, 25 outputs in tiles of 4, computed in blocks of
 * a consumer that reads two of its elements */

#define CONVOLUTION                                                                                \
    "input X f32[53]\ninput W f32[3]\nintermediate T f32[26]\noutput Y f32[25]\n"                  \
    "T[x] = sum.f32(s:3) X[2*x+s] * W[s]\nY[x] = T[x] + T[x+1]\n"

static void test_a_convolution(void **state)
{
    (void)state;
    struct subject *s = set_up(CONVOLUTION);
    struct wpk_nest_entry *y = add(s, 1, -1, -1);
    loop(s, &y->pure, 0, SERIAL, 4, WPK_TAIL_SHIFT);
    loop(s, &y->pure, 0, LANES, 1, WPK_TAIL_EXACT);
    struct wpk_nest_entry *t = add(s, 0, 0, 0);
    loop(s, &t->pure, 0, UNROLL, 1, WPK_TAIL_EXACT);
    loop(s, &t->update, 1, SERIAL, 1, WPK_TAIL_EXACT);
    loop(s, &t->update, 0, UNROLL, 1, WPK_TAIL_EXACT);
    const struct wpk_machine machine = {.cache_bytes = {64, 1 << 10, 1 << 20}, .registers = 32};
    struct wpk_features *f = &s->features;
    wpk_features(&s->accesses, &s->nest, &machine, 1, f);
    /* 7 tiles of 5 elements in place of 26, and 28 outputs in place of 25 */
    assert_same(f->flops, 7 * 5 * 3 * 2 + 28);
    assert_same(f->flops_needed, 26 * 3 * 2 + 25);
    /* the last of 7 tiles is a partial one */
    assert_same(f->tails, 1.0 / 7);
    /* one step of a sum: an element of W, 5 of X */
    assert_same(f->body[2].loads, 6);
    assert_same(f->body[2].runs, 7 * 3);
    /* T is in registers: X, W and Y are touched */
    assert_same(f->bytes, (53 + 3 + 25) * 4);
    /* a tile touches 11 elements of X, all of W and 4 of Y: 72 bytes, more than 64; one step 9 of
     * X and one of W */
    assert_same(f->footprint_bytes[0], (9 + 1) * 4);
    assert_same(f->footprint_bytes[1], (53 + 3 + 25) * 4);
    assert_same(f->traffic_bytes[0], 7 * 11 * 4 + 7 * 3 * 4 + 25 * 4);
    /* all three steps at once: windows overlap, and each element is loaded once */
    s->nest.loop[t->update.first].binding = UNROLL;
    wpk_features(&s->accesses, &s->nest, &machine, 1, f);
    assert_same(f->body[2].loads, 11 + 3);
    assert_same(f->body[2].runs, 7);
    tear_down(s);
}

/* ---- a window over rows that are computed in blocks: 8 rows of Y need 11 of A */

#define WINDOW                                                                                     \
    "input X f32[64,32]\nintermediate A f32[64,32]\noutput Y f32[61,32]\n"                         \
    "A[i,j] = abs(X[i,j]) * 2\nY[i,j] = A[i,j] + A[i+3,j]\n"

static void test_a_window(void **state)
{
    (void)state;
    struct subject *s = set_up(WINDOW);
    struct wpk_nest_entry *y = add(s, 1, -1, -1);
    loop(s, &y->pure, 0, SERIAL, 8, WPK_TAIL_GUARD);
    loop(s, &y->pure, 0, SERIAL, 2, WPK_TAIL_EXACT);
    loop(s, &y->pure, 1, SERIAL, 16, WPK_TAIL_EXACT);
    loop(s, &y->pure, 0, UNROLL, 1, WPK_TAIL_EXACT);
    loop(s, &y->pure, 1, LANES, 1, WPK_TAIL_EXACT);
    struct wpk_nest_entry *a = add(s, 0, 0, 0);
    loop(s, &a->pure, 0, SERIAL, 1, WPK_TAIL_EXACT);
    loop(s, &a->pure, 1, SERIAL, 16, WPK_TAIL_EXACT);
    loop(s, &a->pure, 1, LANES, 1, WPK_TAIL_EXACT);
    const struct wpk_machine machine = {.cache_bytes = {4 << 10, 32 << 10, 64 << 10},
                                        .registers = 32};
    struct wpk_features *f = &s->features;
    wpk_features(&s->accesses, &s->nest, &machine, 1, f);
    assert_same(f->flops, 61.0 / 8 * 11 * 32 * 2 + 61 * 32);
    assert_same(f->flops_needed, 64 * 32 * 2 + 61 * 32);
    /* rows 0, 1 of a step and the same three rows further on */
    assert_same(f->body[0].loads, 2 * 2);
    assert_same(f->body[0].stores, 2);
    assert_same(f->body[0].copies, 2);
    assert_same(f->body[1].loads, 1);
    assert_same(f->body[1].stores, 1);
    assert_same(f->body[1].copies, 2);
    /* the buffer of A stays: it is written and read once from beyond; X and Y pass */
    assert_same(f->footprint_bytes[0], (11 + 11 + 8) * 32 * 4);
    assert_same(f->traffic_bytes[0], (64 + 11 + 11 + 61) * 32 * 4);
    tear_down(s);
}

/* ---- a transform by a literal of which half is 0, of values that another stage makes */

#define TRANSFORM                                                                                  \
    "input X f32[6,16]\nliteral L f32[2,3] = 1,0,0,0,0.5,1\n"                                      \
    "intermediate E f32[3,16]\nintermediate T f32[2,16]\noutput Y f32[2,16]\n"                     \
    "E[k,j] = abs(X[2*k,j])\nT[i,j] = sum.f32(k:3) L[i,k] * E[k,j]\nY[i,j] = T[i,j]\n"

static void test_a_transform(void **state)
{
    (void)state;
    struct subject *s = set_up(TRANSFORM);
    struct wpk_nest_entry *y = add(s, 2, -1, -1);
    loop(s, &y->pure, 1, SERIAL, 16, WPK_TAIL_EXACT);
    loop(s, &y->pure, 0, UNROLL, 1, WPK_TAIL_EXACT);
    loop(s, &y->pure, 1, LANES, 1, WPK_TAIL_EXACT);
    struct wpk_nest_entry *t = add(s, 1, 0, 0);
    t->expanded = true;
    loop(s, &t->pure, 0, UNROLL, 1, WPK_TAIL_EXACT);
    loop(s, &t->pure, 1, LANES, 1, WPK_TAIL_EXACT);
    add(s, 0, 0, 0)->inlined = true;
    const struct wpk_machine machine = {.cache_bytes = {4 << 10, 32 << 10, 64 << 10},
                                        .registers = 32};
    struct wpk_features *f = &s->features;
    wpk_features(&s->accesses, &s->nest, &machine, 1, f);
    assert_int_equal(f->body_count, 3);
    assert_same(f->recomputed, 1);
    assert_same(f->body[0].loads, 0);
    assert_same(f->body[0].stores, 2);
    assert_same(f->body[1].arithmetic, 2 * 3 * 0.5);
    assert_same(f->body[1].loads, 0);
    assert_same(f->body[2].values, 3);
    assert_same(f->body[2].arithmetic, 3);
    assert_same(f->body[2].loads, 3);
    assert_same(f->stores, 2);
    assert_same(f->bytes, (5 + 2) * 16 * 4);
    tear_down(s);
}

/* ---- a window without a border, whose unrolled axes fold the products by zeros */

static void test_terms_of_a_border(void **state)
{
    (void)state;
    struct subject *s = set_up("input X f32[5,64]\ninput W f32[5,64]\nintermediate T f32[5]\n"
                               "output Y f32[5]\nT[y] = sum.f32(c:64,r:5) X[y+r-2,c | 0] * W[r,c]\n"
                               "Y[y] = T[y]\n");
    assert_same(s->accesses.stage[0].density, (3 + 4 + 5 + 4 + 3) / 25.0);
    assert_same(s->accesses.stage[1].density, 1);
    tear_down(s);
}

/* ---- random nests */

struct subjects {
    int nests, exact, whole;
};

static double tensor_bytes(const struct wpk_program *program)
{
    double bytes = 0;
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        double size = (double)wpk_dtype_size(tensor->dtype);
        for (int d = 0; d < tensor->rank; d++) {
            size *= (double)(tensor->extent[d] + tensor->pad_before[d] + tensor->pad_after[d]);
        }
        bytes += tensor->role == WPK_ROLE_LITERAL ? 0 : size;
    }
    return bytes;
}

/* True if the tiles of an entry, together, have more elements than its stage: some are computed
 * twice. */
static bool overlaps(const struct wpk_nest *nest, const struct wpk_nest_entry *entry)
{
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
    const struct wpk_nest_entry *at = &nest->entry[entry->place.entry];
    int64_t computed = 1, needed = 1;
    for (int i = 0; i <= entry->place.loop; i++) {
        computed *= wpk_nest_iterations(nest, at, &at->pure, i);
    }
    for (int a = 0; a < stage->rank; a++) {
        computed *= entry->extent[a];
        needed *= stage->axes[a].extent;
    }
    return computed > needed;
}

/* True if some load may read outside the tensor that the entry's stage writes. */
static bool is_left(const struct wpk_nest *nest, const struct wpk_nest_entry *entry)
{
    const struct wpk_program *program = nest->program;
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        int loads[WPK_LOADS_MAX];
        int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
        for (int i = 0; i < count; i++) {
            if (program->nodes[loads[i]].tensor == program->stages[entry->stage].output &&
                wpk_load_may_leave(program, stage, loads[i])) {
                return true;
            }
        }
    }
    return false;
}

/* True if every loop's step divides its span and every element is computed once. A stage inside
 * another that is read outside its tensor counts as not exact: surplus elements are computed
 * there. */
static bool is_exact(const struct wpk_nest *nest)
{
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        bool inside = entry->inlined || entry->place.entry >= 0;
        if (entry->kind == WPK_NEST_STAGE && inside && is_left(nest, entry)) {
            return false;
        }
        const struct wpk_nest_loops *definitions[] = {&entry->pure, &entry->update};
        if (entry->kind == WPK_NEST_STAGE && entry->place.entry >= 0 &&
            (!entry->bounded || overlaps(nest, entry))) {
            return false;
        }
        for (int d = 0; d < 2; d++) {
            for (int i = 0; i < definitions[d]->count; i++) {
                const struct wpk_nest_loop *l = wpk_nest_at(nest, definitions[d], i);
                int64_t span = wpk_nest_covered(nest, entry, definitions[d], i - 1, l->axis);
                if (span % l->step != 0) {
                    return false;
                }
            }
        }
    }
    return true;
}

static void check_nest(const struct wpk_accesses *accesses, const struct wpk_nest *nest,
                       const struct wpk_machine *machine, int threads, struct subjects *seen)
{
    static struct wpk_features f;
    const double eps = 1 + 1e-9;
    wpk_features(accesses, nest, machine, threads, &f);
    double all = tensor_bytes(nest->program);
    assert_true(f.bytes > 0 && f.bytes <= all);
    double outer = 0;
    for (int level = WPK_CACHES - 1; level >= 0; level--) {
        assert_true(f.footprint_bytes[level] <= (double)machine->cache_bytes[level]);
        assert_true(f.footprint_bytes[level] <= f.bytes);
        assert_true(f.traffic_bytes[level] * eps >= outer);
        outer = f.traffic_bytes[level];
    }
    assert_true(f.footprint_bytes[0] <= f.footprint_bytes[1] * eps);
    assert_true(f.tails >= -1e-12 && f.tails <= eps);
    assert_true(f.parallel >= 0 && f.parallel <= eps);
    assert_true(f.balance > 0 && f.balance <= eps);
    assert_true(f.flops > 0 || f.flops_needed == 0);
    seen->nests++;
    if (is_exact(nest)) {
        seen->exact++;
        seen->whole += f.recomputed > 1 / eps;
        assert_true(f.recomputed <= eps);
        assert_true(f.tails == 0);
    }
}

static void test_random_nests(void **state)
{
    (void)state;
    struct subjects seen = {0};
    struct wpk_rng rng;
    static struct wpk_nest nest;
    wpk_rng_seed(&rng, 11);
    for (int i = 0; i < 200; i++) {
        struct wpk_program program;
        struct wpk_space space;
        struct wpk_space_options options = {.layouts = "any", .threads = 1 + i % 3};
        const struct wpk_random_options kind = {.products = i % 2 == 0};
        assert_int_equal(
            wpk_device_of_class(i % 4 < 2 ? "cpu/any/avx512" : "cpu/any/sse41", &options.device),
            WPK_OK);
        const struct wpk_machine machine = {.cache_bytes = {256 << i % 5, 4 << 10, 1 << 20},
                                            .registers = options.device.cpu.vector_registers};
        wpk_random_program(&rng, &kind, &program);
        if (wpk_space_derive(&program, &options, &space, NULL) == WPK_OK) {
            for (int k = 0; k < 10; k++) {
                struct wpk_candidate candidate;
                struct wpk_accesses accesses;
                if (wpk_space_draw(&space, &rng, &candidate) != WPK_OK) {
                    continue;
                }
                assert_int_equal(wpk_candidate_nest(&space, &candidate, &nest), WPK_OK);
                assert_int_equal(wpk_accesses_init(nest.program, &accesses), WPK_OK);
                check_nest(&accesses, &nest, &machine, options.threads, &seen);
                wpk_accesses_fini(&accesses);
            }
            wpk_space_fini(&space);
        }
        wpk_program_fini(&program);
    }
    print_message("%d nests, %d exact, %d of them compute all there is\n", seen.nests, seen.exact,
                  seen.whole);
    assert_true(seen.whole > 100);
}

/* Times on an emulated GPU are a model's; no other model's predictions are mixed into them. */
static void test_predictions(void **state)
{
    static const struct {
        const char *class;
        bool predicted;
    } cases[] = {{"cuda/NVIDIA H100/sm_90/132", true}, {"cuda/emulated/sm_90/132", false}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
        struct wpk_program program;
        struct wpk_space space;
        struct wpk_candidate candidate;
        struct wpk_rng rng;
        double seconds = 0, predicted = -1, features[WPK_FEATURES];
        wpk_rng_seed(&rng, 1);
        assert_int_equal(wpk_program_parse("input A f32[64,64]\ninput B f32[64,64]\n"
                                           "output Y f32[64,64]\n"
                                           "Y[i,j] = sum(k:64) A[i,k] * B[k,j]\n",
                                           &program, NULL),
                         WPK_OK);
        assert_int_equal(wpk_device_of_class(cases[i].class, &options.device), WPK_OK);
        assert_int_equal(wpk_space_derive(&program, &options, &space, NULL), WPK_OK);
        assert_int_equal(wpk_space_draw(&space, &rng, &candidate), WPK_OK);
        assert_int_equal(wpk_space_bound(&space, &candidate, &seconds), WPK_OK);
        assert_int_equal(wpk_space_predict(&space, &candidate, &predicted), WPK_OK);
        assert_int_equal(wpk_space_features(&space, &candidate, features), WPK_OK);
        assert_true(predicted == (cases[i].predicted ? wpk_real_log(seconds) : 0));
        assert_true(features[0] == predicted);
        wpk_space_fini(&space);
        wpk_program_fini(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_product),     cmocka_unit_test(test_a_product_in_blocks),
        cmocka_unit_test(test_a_copy),        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_a_convolution), cmocka_unit_test(test_a_window),
        cmocka_unit_test(test_a_transform),   cmocka_unit_test(test_terms_of_a_border),
        cmocka_unit_test(test_random_nests),  cmocka_unit_test(test_predictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
