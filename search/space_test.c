/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces of programs, known and unheard of: whatever is constructed, drawn or repaired is legal and
 * survives its text, on every kind of device. */
#include "search/space.h"

#include "ir/notation/notation.h"
#include "search/genes.h"
#include "search/mask.h"
#include "search/variant.h"
#include "target/cpu/rules.h"
#include "tests/fake_target.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CONSTRUCT_MAX 64
#define DRAWS wpk_test_share(24)

static const struct {
    const char *name;
    const char *text;
} programs[] = {
    {"conv", "input X f32[1,12,14,14]\nconstant W f32[20,12,3,3]\nconstant B f32[20]\n"
             "intermediate T f32[1,20,14,14]\noutput Y f32[1,20,14,14]\n"
             "T[n,k,y,x] = sum(c:12,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n"
             "Y[n,k,y,x] = max(T[n,k,y,x] + B[k], 0)\n"},
    {"conv stride 2", "input X f32[2,6,15,15]\nconstant W f32[7,6,3,3]\noutput Y f32[2,7,8,8]\n"
                      "Y[n,k,y,x] = sum(c:6,r:3,s:3) X[n,c,2*y+r-1,2*x+s-1] * W[k,c,r,s]\n"},
    {"matmul", "input A f32[31,40]\nconstant B f32[40,53]\noutput Y f32[31,53]\n"
               "Y[i,j] = sum(k:40) A[i,k] * B[k,j]\n"},
    {"softmax", "input X f32[13,48]\nintermediate M f32[13]\nintermediate D f32[13]\n"
                "output S f32[13,48]\nM[i] = max(j:48) X[i,j]\n"
                "D[i] = sum(j:48) exp(X[i,j] - M[i])\nS[i,j] = exp(X[i,j] - M[i]) / D[i]\n"},
    {"two sums of one tensor", "input X f32[9,64]\nintermediate M f32[9]\nintermediate V f32[9]\n"
                               "output Y f32[9,64]\nM[i] = sum(j:64) X[i,j]\n"
                               "V[i] = sum(j:64) (X[i,j] - M[i]) * (X[i,j] - M[i])\n"
                               "Y[i,j] = (X[i,j] - M[i]) * rsqrt(V[i])\n"},
    {"gram", "input X f32[24,17]\noutput Y f32[24,24]\nY[i,j] = sum(k:17) X[i,k] * X[j,k]\n"},
    {"max pool", "input X f32[1,20,15,15]\noutput Y f32[1,20,8,8]\n"
                 "Y[n,c,y,x] = max(r:3,s:3) X[n,c,2*y+r-1,2*x+s-1 | -inf]\n"},
    {"l1 distance", "input A f32[14,22]\ninput B f32[18,22]\noutput Y f32[14,18]\n"
                    "Y[i,j] = sum(k:22) abs(A[i,k] - B[j,k])\n"},
    {"stencil", "input X f32[7,9,18]\noutput Y f32[7,9,18]\n"
                "Y[a,b,c] = 6 * X[a,b,c] - X[a-1,b,c] - X[a,b+1,c] - X[a,b,c-1]\n"},
    {"outer product", "input A f32[19]\ninput B f32[43]\noutput Y f32[19,43]\n"
                      "Y[i,j] = A[i] * B[j]\n"},
    {"product", "input X f32[11,9]\noutput Y f32[11]\nY[i] = prod(j:9) X[i,j]\n"},
    {"scalar", "input X f32[96]\noutput Y f32[]\nY[] = sum(i:96) X[i] * X[i]\n"},
    {"scalar copy", "input X f32[]\noutput Y f32[]\nY[] = exp(X[])\n"},
    {"one of each", "input X f32[1,1,1,1]\nconstant W f32[1,1]\noutput Y f32[1,1,1,1]\n"
                    "Y[n,k,y,x] = sum(c:1) X[n,c,y,x] * W[k,c]\n"},
    {"primes", "input A f32[7,13]\ninput B f32[13,11]\noutput Y f32[7,11]\n"
               "Y[i,j] = sum(k:13) A[i,k] * B[k,j]\n"},
    {"reshape", "input X f32[6,20]\noutput Y f32[4,30]\nY[i,j] = X[(i*30+j)/20,(i*30+j)%20]\n"},
    {"transposition", "input X f32[5,18,23]\noutput Y f32[23,5,18]\nY[c,a,b] = X[a,b,c]\n"},
    {"long rows", "input X f32[3,70000]\noutput Y f32[3,70000]\nY[i,j] = tanh(X[i,j])\n"},
    {"doubles", "input A f64[9,16]\ninput B f64[16,21]\noutput Y f64[9,21]\n"
                "Y[i,j] = sum(k:16) A[i,k] * B[k,j]\n"},
    {"bytes", "input A u8[18,32]\nconstant B i8[32,24]\noutput Y i32[18,24]\n"
              "Y[i,j] = sum(k:32) i32(A[i,k]) * i32(B[k,j])\n"},
    {"separable", "input X f32[1,20,14,14]\nconstant V f32[20,3,3]\nconstant W f32[24,20]\n"
                  "intermediate D f32[1,20,14,14]\nintermediate R f32[1,20,14,14]\n"
                  "intermediate T f32[1,24,14,14]\noutput Y f32[1,24,14,14]\n"
                  "D[n,c,y,x] = sum(r:3,s:3) X[n,c,y+r-1,x+s-1] * V[c,r,s]\n"
                  "R[n,c,y,x] = max(D[n,c,y,x], 0)\n"
                  "T[n,k,y,x] = sum(c:20) R[n,c,y,x] * W[k,c]\n"
                  "Y[n,k,y,x] = max(T[n,k,y,x], 0)\n"},
};

#define PROGRAMS ((int)(sizeof(programs) / sizeof(programs[0])))

static const struct {
    wpk_cpu_flags flags;
    int vector_bytes, registers;
} devices[] = {{WPK_CPU_SET_AVX512, 64, 32},
               {WPK_CPU_SET_AVX2, 32, 16},
               {WPK_CPU_SET_AVX, 32, 16},
               {WPK_CPU_SET_SSE41, 16, 16},
               {WPK_CPU_SET_NONE, 0, 0}}; /* the fake target */

#define DEVICES ((int)(sizeof(devices) / sizeof(devices[0])))

static struct wpk_space_options options_for(int device, const char *layouts, int threads)
{
    struct wpk_space_options options = {.layouts = layouts, .threads = threads};
    if (devices[device].flags == WPK_CPU_SET_NONE) {
        return wpk_target_fake_options(layouts, threads);
    }
    snprintf(options.device.kind, sizeof(options.device.kind), "cpu");
    options.device.cpu.flags = devices[device].flags;
    options.device.cpu.vector_bytes = devices[device].vector_bytes;
    options.device.cpu.vector_registers = devices[device].registers;
    options.device.core_count = 2;
    options.device.cpu.l1_bytes = 32 << 10;
    options.device.cpu.l2_bytes = 1 << 20;
    options.device.cpu.l3_bytes = 32 << 20;
    return options;
}

static void derive(int program, int device, const char *layouts, int threads,
                   struct wpk_space *space)
{
    struct wpk_program parsed = {0};
    struct wpk_diag diag = {0};
    const struct wpk_space_options options = options_for(device, layouts, threads);
    if (wpk_program_parse(programs[program].text, &parsed, &diag) != WPK_OK) {
        fail_msg("%s: %d:%d: %s", programs[program].name, diag.line, diag.column, diag.text);
    }
    if (wpk_space_derive(&parsed, &options, space, &diag) != WPK_OK) {
        fail_msg("%s: %s", programs[program].name, diag.text);
    }
    wpk_program_fini(&parsed);
}

/* A register tile keeps to the vectors and the registers of the target, unless none can. */
static void expect_tile(const struct wpk_space *space, const struct wpk_variant *variant, int g,
                        const struct wpk_decisions *d)
{
    const struct wpk_machine *machine = &space->options.target.machine;
    const struct wpk_structure *structure = variant->plan;
    struct wpk_tile tile;
    wpk_decisions_tile(variant, &space->options, g, d, &tile);
    assert_true(d->lanes <= machine->lanes_max);
    assert_true(!tile.reuses || structure->tight[g] || tile.accumulators < machine->registers);
}

/* Legal, within the device, and equal to what its text says. */
static void expect_good(const struct wpk_space *space, const struct wpk_candidate *candidate,
                        const char *name)
{
    char text[WPK_CANDIDATE_TEXT_MAX];
    struct wpk_candidate read;
    struct wpk_diag diag = {0};
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    assert_int_equal(wpk_candidate_encode(space, candidate, text, sizeof(text)), WPK_OK);
    const char *why = NULL;
    if (!space->options.target.rules->legal(space, candidate, &why)) {
        fail_msg("%s: %s: %s", name, why, text);
    }
    if (wpk_candidate_decode(space, text, &read, &diag) != WPK_OK) {
        fail_msg("%s: %s: %s", name, diag.text, text);
    }
    double seconds = 0;
    assert_int_equal(wpk_space_bound(space, candidate, &seconds), WPK_OK);
    assert_true(seconds > 0 && seconds < 3600);
    assert_true(wpk_candidate_equal(candidate, &read));
    assert_int_equal(wpk_candidate_hash(candidate), wpk_candidate_hash(&read));
    for (int g = 0; g < structure->plan.group_count; g++) {
        struct wpk_decisions d;
        wpk_genes_read(variant, candidate, g, &d);
        expect_tile(space, variant, g, &d);
        assert_true(d.par == 0 || space->options.threads > 1);
    }
}

/* A tile that covers an axis whole may need more registers than the fake target has. */
static bool may_be_empty(const struct wpk_space *space, int variant)
{
    struct wpk_candidate neutral;
    return strcmp(space->options.device.kind, "fake") == 0 &&
           wpk_mask_begin(space, variant, &neutral) != WPK_OK;
}

static void expect_constructed(const struct wpk_space *space, const char *name)
{
    struct wpk_candidate made[CONSTRUCT_MAX];
    int of_variant[WPK_VARIANTS_MAX] = {0};
    int count = 0;
    assert_int_equal(wpk_space_construct(space, made, CONSTRUCT_MAX, &count), WPK_OK);
    assert_true(count > 0);
    double first = 0;
    assert_int_equal(wpk_space_bound(space, &made[0], &first), WPK_OK);
    for (int i = 0; i < count; i++) {
        expect_good(space, &made[i], name);
        double seconds = 0;
        assert_int_equal(wpk_space_bound(space, &made[i], &seconds), WPK_OK);
        assert_true(first > 0 && first <= seconds);
        of_variant[made[i].variant]++;
        for (int k = 0; k < i; k++) {
            assert_false(wpk_candidate_equal(&made[i], &made[k]));
        }
    }
    for (int v = 0; v < space->variant_count; v++) {
        if (of_variant[v] == 0 && !may_be_empty(space, v) && !wpk_variant_is_short(space, v)) {
            fail_msg("%s: none constructed for %s %s", name, space->variants[v].algorithm,
                     space->variants[v].layout);
        }
    }
}

static void expect_drawn(const struct wpk_space *space, const char *name)
{
    struct wpk_rng rng, same;
    wpk_rng_seed(&rng, 7);
    wpk_rng_seed(&same, 7);
    for (int i = 0; i < DRAWS; i++) {
        struct wpk_candidate one, other;
        if (wpk_space_draw(space, &rng, &one) != WPK_OK) {
            fail_msg("%s: draw %d found nothing", name, i);
        }
        expect_good(space, &one, name);
        assert_int_equal(wpk_space_draw(space, &same, &other), WPK_OK);
        assert_true(wpk_candidate_equal(&one, &other));
        /* corrupted, repaired: legal again, and near where it was */
        other = one;
        for (int broken = 0; broken < 4 && one.gene_count > 0; broken++) {
            other.gene[wpk_rng_below(&rng, (uint64_t)one.gene_count)] =
                (uint8_t)wpk_rng_below(&rng, 256);
        }
        if (wpk_space_repair(space, &rng, &other) == WPK_OK) {
            expect_good(space, &other, name);
        }
        wpk_rng_seed(&rng, 100 + (uint64_t)i);
        wpk_rng_seed(&same, 100 + (uint64_t)i);
    }
}

/* No variant is a dead end: some draw of it can be repaired. */
static void expect_each_variant_drawn(const struct wpk_space *space, const char *name)
{
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 3);
    for (int v = 0; v < space->variant_count; v++) {
        const struct wpk_variant *variant = &space->variants[v];
        wpk_err err = WPK_EEXHAUSTED;
        for (int tries = 0; tries < 20 && err != WPK_OK; tries++) {
            struct wpk_candidate one = {.variant = v, .gene_count = variant->gene_count};
            for (int i = 0; i < one.gene_count; i++) {
                int choices = variant->genes[i].choice_count;
                one.gene[i] = (uint8_t)wpk_rng_below(&rng, (uint64_t)choices);
            }
            err = wpk_space_repair(space, &rng, &one);
        }
        if (err != WPK_OK && !may_be_empty(space, v)) {
            fail_msg("%s: nothing drawn of %s %s", name, variant->algorithm, variant->layout);
        }
    }
}

/* A group with panels is computed at the root, and keeps that place while others are repaired. */
static void test_repair_keeps_groups_with_panels_legal(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_rng rng;
    derive(1, DEVICES - 1, "any", 2, &space);
    wpk_rng_seed(&rng, 1);
    for (int i = 0; i < 40 * DRAWS; i++) {
        struct wpk_candidate one;
        assert_int_equal(wpk_space_draw(&space, &rng, &one), WPK_OK);
        expect_good(&space, &one, programs[1].name);
    }
    wpk_space_fini(&space);
}

static void test_every_program_has_a_usable_space(void **state)
{
    (void)state;
    for (int p = 0; p < PROGRAMS; p++) {
        for (int device = 0; device < DEVICES; device++) {
            for (int any = 0; any < 2; any++) {
                struct wpk_space space;
                derive(p, device, any == 0 ? "fixed" : "any", 1 + (p + device) % 2, &space);
                assert_true(space.variant_count > 0 && space.size_log2 >= 0);
                expect_constructed(&space, programs[p].name);
                expect_drawn(&space, programs[p].name);
                expect_each_variant_drawn(&space, programs[p].name);
                wpk_space_fini(&space);
            }
        }
    }
}

/* A convolution wide enough that the tiles of its first vector axis alone are hundreds: those of
 * the others must be found too. */
static const char wide[] =
    "input X f32[1,64,56,56]\nconstant W f32[128,64,3,3]\noutput Y f32[1,128,28,28]\n"
    "Y[n,k,y,x] = sum(c:64,r:3,s:3) X[n,c,2*y+r-1,2*x+s-1] * W[k,c,r,s]\n";

/* Constructed candidates read whole vectors, if any tile does. */
static void test_constructed_tiles_do_not_gather(void **state)
{
    (void)state;
    static struct wpk_candidate out[CONSTRUCT_MAX];
    struct wpk_program program = {0};
    struct wpk_space space = {0};
    const struct wpk_space_options options = options_for(0, "fixed", 1);
    assert_int_equal(wpk_program_parse(wide, &program, NULL), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, NULL), WPK_OK);
    int count = 0, seen = 0;
    assert_int_equal(wpk_space_construct(&space, out, CONSTRUCT_MAX, &count), WPK_OK);
    for (int i = 0; i < count; i++) {
        const struct wpk_variant *variant = &space.variants[out[i].variant];
        const struct wpk_plan *plan = &((struct wpk_structure *)variant->plan)->plan;
        const struct wpk_group *group = &plan->group[plan->group_count - 1];
        if (strncmp(variant->layout, "staged-last", 11) != 0 || group->contraction < 0) {
            continue;
        }
        const struct wpk_member *member = &group->member[group->contraction];
        struct wpk_decisions d;
        wpk_genes_read(variant, &out[i], plan->group_count - 1, &d);
        for (int a = 0; a < wpk_contraction_of(variant, group)->rank; a++) {
            if (member->root_axis[a] == d.vec) {
                assert_false(wpk_stage_is_strided(variant, wpk_contraction_of(variant, group), a));
                seen++;
            }
        }
    }
    assert_true(seen > 0);
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

static bool has_algorithm(const struct wpk_space *space, const char *algorithm)
{
    for (int v = 0; v < space->variant_count; v++) {
        if (strcmp(space->variants[v].algorithm, algorithm) == 0) {
            return true;
        }
    }
    return false;
}

static void test_algorithms_apply_where_they_may(void **state)
{
    (void)state;
    struct wpk_space space;
    derive(0, 0, "any", 1, &space);
    assert_true(has_algorithm(&space, "direct"));
    assert_true(has_algorithm(&space, "winograd(2)"));
    assert_true(has_algorithm(&space, "winograd(2,3)")); /* tiles of 2 rows and 3 columns */
    assert_false(has_algorithm(&space, "winograd(6)"));  /* 14 is no multiple: does not pay */
    assert_true(has_algorithm(&space, "im2col"));
    wpk_space_fini(&space);
    derive(1, 0, "any", 1, &space); /* stride 2 */
    assert_true(has_algorithm(&space, "direct"));
    assert_true(has_algorithm(&space, "im2col"));
    assert_false(has_algorithm(&space, "winograd(2)"));
    wpk_space_fini(&space);
    derive(2, 0, "fixed", 1, &space); /* a matrix product is one already */
    assert_false(has_algorithm(&space, "im2col"));
    assert_false(has_algorithm(&space, "collapsed"));
    wpk_space_fini(&space);
}

/* The rows and columns of a product for each pixel are one axis, in the order in which they are
 * given as well; the boundary's types stay. */
static void test_pixels_collapse(void **state)
{
    (void)state;
    struct wpk_program program = {0};
    struct wpk_space space;
    const struct wpk_space_options options = options_for(0, "fixed", 1);
    const char *text = "input X f32[1,20,7,9]\nconstant W f32[36,20,1,1]\n"
                       "output Y f32[1,36,7,9]\n"
                       "Y[n,k,y,x] = sum(c:20,r:1,s:1) X[n,c,y+r,x+s] * W[k,c,r,s]\n";
    assert_int_equal(wpk_program_parse(text, &program, NULL), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, NULL), WPK_OK);
    int found = 0;
    for (int v = 0; v < space.variant_count; v++) {
        const struct wpk_variant *variant = &space.variants[v];
        struct wpk_tensor_type type;
        int y = wpk_program_find_tensor(&variant->program, "Y");
        if (strcmp(variant->algorithm, "collapsed") == 0 &&
            strcmp(variant->layout, "staged") == 0) {
            assert_int_equal(variant->program.tensors[y].rank, 3);
            assert_int_equal(variant->program.tensors[y].extent[2], 63);
            int output = wpk_program_find_tensor(&program, "Y");
            assert_int_equal(wpk_variant_boundary(variant, &program, output, &type), WPK_OK);
            assert_int_equal(type.rank, 4);
            found++;
        }
    }
    assert_int_equal(found, 1);
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

/* A layer of few channels with a stride, as written: the rows of the copy by residues are whole
 * vectors, and the loop over rows of tiles is outside of that over channels: the first cache holds
 * the weights. */
static void test_first_layer_reads_rows_once(void **state)
{
    (void)state;
    static struct wpk_candidate out[CONSTRUCT_MAX];
    struct wpk_program program = {0};
    struct wpk_space space = {0};
    const struct wpk_space_options options = options_for(0, "fixed", 1);
    assert_int_equal(
        wpk_program_parse("input X f32[1,3,160,160]\nconstant W f32[32,3,3,3]\n"
                          "output Y f32[1,32,80,80]\n"
                          "Y[n,k,y,x] = sum(c:3,r:3,s:3) X[n,c,2*y+r-1,2*x+s-1] * W[k,c,r,s]\n",
                          &program, NULL),
        WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, NULL), WPK_OK);
    int count = 0, rows = 0, channels = 0, lanes = space.options.target.machine.lanes_max;
    assert_int_equal(wpk_space_construct(&space, out, CONSTRUCT_MAX, &count), WPK_OK);
    for (int i = 0; i < count; i++) {
        const struct wpk_variant *variant = &space.variants[out[i].variant];
        const struct wpk_plan *plan = &((struct wpk_structure *)variant->plan)->plan;
        int copy = wpk_program_find_tensor(&variant->program, "X_x");
        struct wpk_decisions d;
        if (strcmp(variant->algorithm, "residues") != 0) {
            continue;
        }
        assert_true(copy >= 0);
        const struct wpk_tensor *tensor = &variant->program.tensors[copy];
        assert_int_equal(tensor->extent[tensor->rank - 1] % lanes, 0);
        wpk_genes_read(variant, &out[i], plan->group_count - 1, &d);
        if (d.vec == 3 && d.inner[0] != 3) {
            rows += d.inner[0] == 2;
            channels += d.inner[0] == 1;
        }
    }
    assert_true(rows > 0);
    assert_int_equal(channels, 0);
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

/* A product for each pixel that reads what a window writes: its pixels are one axis there as well,
 * with rows of pixels side by side, and whole vectors of them are read. The window's loop that
 * shares vectors between rows is written out in what is constructed. */
static void test_pixels_collapse_behind_a_window(void **state)
{
    (void)state;
    static struct wpk_candidate out[CONSTRUCT_MAX];
    struct wpk_space space;
    int count = 0, flat = 0, shared = 0;
    derive(PROGRAMS - 1, 0, "any", 1, &space);
    assert_int_equal(wpk_space_construct(&space, out, CONSTRUCT_MAX, &count), WPK_OK);
    for (int i = 0; i < count; i++) {
        const struct wpk_variant *variant = &space.variants[out[i].variant];
        const struct wpk_structure *structure = variant->plan;
        if (strcmp(variant->algorithm, "D=direct T=collapsed") != 0 ||
            strcmp(variant->layout, "asis") != 0) {
            continue;
        }
        assert_int_equal(structure->plan.group_count, 2);
        struct wpk_decisions window, product;
        struct wpk_tile tile;
        wpk_genes_read(variant, &out[i], 0, &window);
        wpk_genes_read(variant, &out[i], 1, &product);
        wpk_decisions_tile(variant, &space.options, 1, &product, &tile);
        flat += product.vec == 2 && product.tile[2] % 14 != 0 && tile.gathered == 0;
        shared += window.unroll == 3;
    }
    assert_true(flat > 0);
    assert_true(shared > 0);
    wpk_space_fini(&space);
}

/* Every boundary tensor of every variant has a layout that holds the whole tensor. */
static void test_boundaries(void **state)
{
    (void)state;
    for (int p = 0; p < PROGRAMS; p++) {
        struct wpk_space space;
        derive(p, 0, "any", 1, &space);
        for (int v = 0; v < space.variant_count; v++) {
            for (int t = 0; t < space.program.tensor_count && wpk_space_variant(&space, v) != NULL;
                 t++) {
                struct wpk_tensor_type type;
                const struct wpk_tensor *tensor = &space.program.tensors[t];
                if (tensor->role == WPK_ROLE_INTERMEDIATE) {
                    continue;
                }
                assert_int_equal(wpk_variant_boundary(&space.variants[v], &space.program, t, &type),
                                 WPK_OK);
                assert_int_equal(type.rank, tensor->rank);
                assert_int_equal(wpk_tensor_type_elements(&type), wpk_tensor_elements(tensor));
            }
        }
        wpk_space_fini(&space);
    }
}

/* Inputs and outputs lie as the variant says, whatever its layout is called. */
static void test_order_at_the_boundary(void **state)
{
    (void)state;
    for (int any = 0; any < 2; any++) {
        struct wpk_space space;
        int moved = 0;
        derive(0, 0, any == 0 ? "fixed" : "any", 1, &space);
        for (int v = 0; v < space.variant_count; v++) {
            struct wpk_variant *variant = &space.variants[v];
            const char *const names[] = {"X", "Y", "W", "B"};
            int last = variant->last < 0 || variant->staged ? 3 : variant->last;
            const int dims[] = {last, last, 3, 0};
            snprintf(variant->layout, sizeof(variant->layout), "no matter");
            moved += variant->last >= 0 && !variant->staged;
            for (int i = 0; i < 4; i++) {
                struct wpk_tensor_type type;
                int t = wpk_program_find_tensor(&space.program, names[i]);
                assert_int_equal(wpk_variant_boundary(variant, &space.program, t, &type), WPK_OK);
                assert_int_equal(type.layout.axis[type.rank - 1], dims[i]);
            }
        }
        assert_true(any == 0 ? moved == 0 : moved > 0);
        wpk_space_fini(&space);
    }
}

static void test_text_of_candidates_is_strict(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_candidate one, read;
    struct wpk_rng rng;
    char text[WPK_CANDIDATE_TEXT_MAX], changed[2 * WPK_CANDIDATE_TEXT_MAX];
    derive(2, 0, "fixed", 1, &space);
    wpk_rng_seed(&rng, 1);
    assert_int_equal(wpk_space_draw(&space, &rng, &one), WPK_OK);
    assert_int_equal(wpk_candidate_encode(&space, &one, text, sizeof(text)), WPK_OK);
    assert_int_equal(wpk_candidate_encode(&space, &one, text, 20), WPK_ENOSPC);
    assert_int_equal(wpk_candidate_encode(&space, &one, text, sizeof(text)), WPK_OK);
    const char *rest = strchr(text, ' ');
    snprintf(changed, sizeof(changed), "cpu-0%s", rest);
    assert_int_equal(wpk_candidate_decode(&space, changed, &read, NULL), WPK_EMISMATCH);
    snprintf(changed, sizeof(changed), "%s magic=1", text);
    assert_int_equal(wpk_candidate_decode(&space, changed, &read, NULL), WPK_ENOENT);
    snprintf(changed, sizeof(changed), "%s magic", text);
    assert_int_equal(wpk_candidate_decode(&space, changed, &read, NULL), WPK_EPARSE);
    *strrchr(text, ' ') = '\0';
    assert_int_equal(wpk_candidate_decode(&space, text, &read, NULL), WPK_EPARSE);
    assert_int_equal(wpk_candidate_decode(&space, "", &read, NULL), WPK_EMISMATCH);
    assert_int_equal(
        wpk_candidate_decode(&space, WPK_SPACE_VERSION " algorithm=x layout=y", &read, NULL),
        WPK_ENOENT);
    wpk_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_program_has_a_usable_space),
        cmocka_unit_test(test_repair_keeps_groups_with_panels_legal),
        cmocka_unit_test(test_constructed_tiles_do_not_gather),
        cmocka_unit_test(test_first_layer_reads_rows_once),
        cmocka_unit_test(test_algorithms_apply_where_they_may),
        cmocka_unit_test(test_pixels_collapse),
        cmocka_unit_test(test_pixels_collapse_behind_a_window),
        cmocka_unit_test(test_boundaries),
        cmocka_unit_test(test_order_at_the_boundary),
        cmocka_unit_test(test_text_of_candidates_is_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
