/* SPDX-License-Identifier: Apache-2.0 */
/* The property that every derivation stands on: the derived program's reference equals the
 * original's. Over random shapes of known operators and over random programs; WPK_TEST_SEED draws
 * others, a failure prints both programs. */
#include "ir/derive/derive.h"

#include "ir/derive/extract.h"
#include "ir/derive/rewriting.h"
#include "ir/notation/notation.h"
#include "tests/derive_check.h"
#include "tests/derive_fixture.h"
#include "tests/random_program.h"
#include "tests/share.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED 20240611
#define ROUNDS wpk_test_share(36)
#define RANDOM_PROGRAMS wpk_test_share(600)

/* ---- the derivations */

/* Names of the inputs in the programs of these tests. */
static const char *const inputs[] = {"X", "A", "B", "C"};

static int find_input(const struct wpk_program *program, const char *name)
{
    int t = wpk_program_find_tensor(program, name);
    return t >= 0 && program->tensors[t].role == WPK_ROLE_INPUT ? t : -1;
}

static void draw_order(struct wpk_rng *rng, int rank, int *order)
{
    for (int d = 0; d < rank; d++) {
        order[d] = d;
    }
    for (int d = rank - 1; d > 0; d--) {
        int other = (int)wpk_rng_below(rng, (uint64_t)d + 1);
        int kept = order[d];
        order[d] = order[other];
        order[other] = kept;
    }
}

/* Arguments of a derivation, and what it leaves behind. */
struct derivation {
    struct wpk_program *program;
    struct wpk_rng *rng;
    const int64_t *m; /* tile sizes of minimal filtering, one for each pair */
    int order[WPK_RANK_MAX];
    bool permuted; /* the boundary now lies in `order` */
};

typedef wpk_err (*derive)(struct derivation *d);

static wpk_err derive_permute(struct derivation *d)
{
    int rank = d->program->tensors[wpk_program_output(d->program)].rank;
    draw_order(d->rng, rank, d->order);
    d->permuted = true;
    return wpk_derive_permute(d->program, d->order, rank);
}

static wpk_err derive_halo(struct derivation *d)
{
    return wpk_derive_halo(d->program, NULL);
}

static wpk_err derive_bare_halo(struct derivation *d)
{
    int rank = d->program->tensors[wpk_program_output(d->program)].rank;
    int last = rank - 1 - (int)wpk_rng_below(d->rng, 2);
    int bare[WPK_TENSORS_MAX];
    for (int t = 0; t < d->program->tensor_count; t++) {
        bare[t] = last < 0 ? rank - 1 : last;
    }
    return wpk_derive_halo(d->program, bare);
}

static wpk_err derive_borders(struct derivation *d)
{
    int before = d->program->stage_count;
    wpk_err err = wpk_derive_borders(d->program);
    return err == WPK_OK && d->program->stage_count == before ? WPK_EUNSUPPORTED : err;
}

static wpk_err derive_stages(struct derivation *d, int bare)
{
    int rank = d->program->tensors[wpk_program_output(d->program)].rank;
    char output[WPK_NAME_MAX];
    snprintf(output, sizeof(output), "%s",
             d->program->tensors[wpk_program_output(d->program)].name);
    draw_order(d->rng, rank, d->order);
    wpk_err err = wpk_derive_permute(d->program, d->order, rank);
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]) && err == WPK_OK; i++) {
        int x = find_input(d->program, inputs[i]);
        if (x >= 0) {
            bool moved = d->program->tensors[x].rank == rank;
            err = wpk_derive_stage_input(d->program, x, moved ? d->order : NULL, bare);
        }
    }
    if (err == WPK_OK) {
        int y = wpk_program_find_tensor(d->program, output);
        err = wpk_derive_stage_output(d->program, y, d->order);
    }
    return err;
}

static wpk_err derive_staged(struct derivation *d)
{
    return derive_stages(d, -1);
}

static wpk_err derive_bare_staged(struct derivation *d)
{
    return derive_stages(d, d->program->tensors[wpk_program_output(d->program)].rank - 1);
}

/* Some contraction of the program, or -1. */
static int draw_contraction(struct derivation *d)
{
    int found[WPK_STAGES_MAX], count = 0;
    for (int s = 0; s < d->program->stage_count; s++) {
        if (wpk_contraction_is(d->program, s)) {
            found[count++] = s;
        }
    }
    return count == 0 ? -1 : found[wpk_rng_below(d->rng, (uint64_t)count)];
}

static wpk_err derive_winograd(struct derivation *d)
{
    int stage = draw_contraction(d);
    return stage < 0 ? WPK_EUNSUPPORTED : wpk_derive_winograd(d->program, stage, d->m);
}

/* As the variants of a space do it: another order, Winograd, then copies at the boundary. */
static wpk_err derive_winograd_staged(struct derivation *d)
{
    int rank = d->program->tensors[wpk_program_output(d->program)].rank;
    draw_order(d->rng, rank, d->order);
    d->permuted = true;
    wpk_err err = wpk_derive_permute(d->program, d->order, rank);
    err = err == WPK_OK ? derive_winograd(d) : err;
    return err == WPK_OK ? wpk_derive_halo(d->program, NULL) : err;
}

static wpk_err derive_phases(struct derivation *d)
{
    const int64_t tile[] = {wpk_rng_between(d->rng, 1, 6), wpk_rng_between(d->rng, 1, 6)};
    int stage = draw_contraction(d);
    return stage < 0 ? WPK_EUNSUPPORTED : wpk_derive_phases(d->program, stage, tile);
}

static wpk_err derive_dilated(struct derivation *d)
{
    const int64_t tile[] = {wpk_rng_between(d->rng, 1, 6), wpk_rng_between(d->rng, 1, 6)};
    char name[WPK_NAME_MAX];
    int stage = draw_contraction(d);
    return stage < 0 ? WPK_EUNSUPPORTED : wpk_derive_dilated(d->program, stage, tile, name);
}

/* Minimal filtering of a strided or dilated window, which phases make possible. */
static wpk_err filter_phases(struct derivation *d, bool dilated)
{
    const int64_t m[] = {4, wpk_rng_between(d->rng, 0, 3) > 0 ? 4 : 2};
    int stage = draw_contraction(d);
    if (stage < 0) {
        return WPK_EUNSUPPORTED;
    }
    char name[WPK_NAME_MAX];
    memcpy(name, d->program->tensors[d->program->stages[stage].output].name, sizeof(name));
    wpk_err err = dilated ? wpk_derive_dilated(d->program, stage, m, name)
                          : wpk_derive_phases(d->program, stage, m);
    if (err == WPK_OK) {
        stage = wpk_program_writer(d->program, wpk_program_find_tensor(d->program, name));
        err = wpk_derive_winograd(d->program, stage, m);
    }
    return err == WPK_OK ? wpk_derive_halo(d->program, NULL) : err;
}

static wpk_err derive_phases_winograd(struct derivation *d)
{
    return filter_phases(d, false);
}

static wpk_err derive_dilated_winograd(struct derivation *d)
{
    return filter_phases(d, true);
}

static wpk_err derive_im2col(struct derivation *d)
{
    int stage = draw_contraction(d);
    return stage < 0 ? WPK_EUNSUPPORTED : wpk_derive_im2col(d->program, stage);
}

static wpk_err derive_im2col_halo(struct derivation *d)
{
    return derive_im2col(d) == WPK_OK ? wpk_derive_halo(d->program, NULL) : WPK_EUNSUPPORTED;
}

static wpk_err derive_collapse(struct derivation *d)
{
    uint64_t stage = wpk_rng_below(d->rng, (uint64_t)d->program->stage_count);
    return wpk_derive_collapse(d->program, (int)stage);
}

/* Every choice of every site, as a space combines them: two stages may take different ones. */
static wpk_err derive_sites(struct derivation *d)
{
    static const struct wpk_parallelism parallelism = {.threads = 2, .tile = 4096, .work_min = 1};
    struct wpk_sites sites;
    wpk_err err = wpk_sites_find(d->program, &parallelism, &sites);
    int rewritten = 0;
    for (int i = 0; i < sites.count && err == WPK_OK; i++) {
        int choice = (int)wpk_rng_below(d->rng, (uint64_t)sites.site[i].choice_count);
        err = wpk_site_apply(d->program, &sites.site[i], choice);
        rewritten += choice > 0;
    }
    err = err == WPK_OK && rewritten == 0 ? WPK_EUNSUPPORTED : err;
    return err == WPK_OK ? wpk_derive_halo(d->program, NULL) : err;
}

static wpk_err derive_residues(struct derivation *d)
{
    int stage = draw_contraction(d);
    return stage < 0 ? WPK_EUNSUPPORTED : wpk_derive_residues(d->program, stage);
}

/* Copies whose rows are longer than what anybody reads. */
static wpk_err derive_whole_rows(struct derivation *d)
{
    wpk_err err = derive_stages(d, -1);
    int stage = draw_contraction(d);
    if (err == WPK_OK && stage >= 0) {
        err = wpk_derive_residues(d->program, stage);
    }
    int before = d->program->node_count;
    err = err == WPK_EUNSUPPORTED ? WPK_OK : err;
    for (int64_t m = 2; m < 6 && err == WPK_OK && d->program->node_count == before; m++) {
        err = wpk_derive_whole_rows(d->program, m);
    }
    return err == WPK_OK && d->program->node_count == before ? WPK_EUNSUPPORTED : err;
}

static wpk_err derive_separated(struct derivation *d)
{
    uint64_t stage = wpk_rng_below(d->rng, (uint64_t)d->program->stage_count);
    return wpk_derive_separated(d->program, (int)stage);
}

static wpk_err derive_split(struct derivation *d)
{
    static const int64_t lanes[] = {2, 4, 8};
    for (int s = 0; s < d->program->stage_count; s++) {
        const struct wpk_stage *stage = &d->program->stages[s];
        if (stage->reduction != WPK_REDUCE_NONE) {
            int axis = (int)wpk_rng_between(d->rng, stage->rank, stage->axis_count - 1);
            return wpk_derive_split_reduction(d->program, s, axis,
                                              wpk_fixture_pick(d->rng, 3, lanes));
        }
    }
    return WPK_EUNSUPPORTED;
}

static wpk_err derive_blocks(struct derivation *d)
{
    static const int64_t blocks[] = {1, 2, 4, 8};
    for (int s = 0; s < d->program->stage_count; s++) {
        const struct wpk_stage *stage = &d->program->stages[s];
        if (stage->reduction != WPK_REDUCE_NONE) {
            char name[WPK_NAME_MAX];
            int axis = (int)wpk_rng_between(d->rng, stage->rank, stage->axis_count - 1);
            return wpk_derive_block_reduction(d->program, s, axis,
                                              wpk_fixture_pick(d->rng, 4, blocks), name);
        }
    }
    return WPK_EUNSUPPORTED;
}

static wpk_err derive_copy(struct derivation *d)
{
    uint64_t stage = wpk_rng_below(d->rng, (uint64_t)d->program->stage_count);
    return wpk_derive_copy_after(d->program, (int)stage, NULL);
}

/* Some dimensions cut into quotient and remainder, in any order. */
static wpk_err derive_pack(struct derivation *d)
{
    static const int64_t blocks[] = {1, 2, 3, 4, 8, 16};
    static const char *const names[] = {"W", "X", "A", "B"};
    struct wpk_packing packing = {.tensor = -1};
    for (int tries = 0; tries < 8 && packing.tensor < 0; tries++) {
        packing.tensor = wpk_program_find_tensor(d->program, names[wpk_rng_below(d->rng, 4)]);
    }
    if (packing.tensor < 0) {
        return WPK_EUNSUPPORTED;
    }
    const struct wpk_tensor *tensor = &d->program->tensors[packing.tensor];
    int rank = tensor->rank, order[WPK_RANK_MAX], dims[2 * WPK_RANK_MAX], count = 0;
    int64_t size[2 * WPK_RANK_MAX];
    for (int dim = 0; dim < rank; dim++) {
        int64_t block = wpk_fixture_pick(d->rng, 6, blocks);
        bool cut = count + 1 + rank - dim < WPK_RANK_MAX && wpk_rng_chance(d->rng, 0.5);
        dims[count] = dim;
        size[count++] = cut ? -block : 0;
        if (cut) {
            dims[count] = dim;
            size[count++] = block;
        }
    }
    draw_order(d->rng, count, order);
    packing.dim_count = count;
    for (int i = 0; i < count; i++) {
        packing.dim[i] = dims[order[i]];
        packing.block[i] = size[order[i]];
    }
    return wpk_derive_pack(d->program, &packing, NULL);
}

static const struct {
    const char *name;
    derive derive;
    int64_t m[WPK_WINOGRAD_PAIRS_MAX];
} derivations[] = {
    {"permute", derive_permute, {0}},
    {"halo", derive_halo, {0}},
    {"halo, bare", derive_bare_halo, {0}},
    {"borders", derive_borders, {0}},
    {"staged", derive_staged, {0}},
    {"staged, bare", derive_bare_staged, {0}},
    {"winograd 2", derive_winograd, {2, 2}},
    {"winograd 3", derive_winograd, {3, 3}},
    {"winograd 4", derive_winograd, {4, 4}},
    {"winograd 6", derive_winograd, {6, 6}},
    {"winograd 4, 2", derive_winograd, {4, 2}},
    {"winograd 3, 5", derive_winograd, {3, 5}},
    {"winograd 4, permuted, halo", derive_winograd_staged, {4, 4}},
    {"phases", derive_phases, {0}},
    {"phases, winograd, halo", derive_phases_winograd, {0}},
    {"dilated", derive_dilated, {0}},
    {"dilated, winograd, halo", derive_dilated_winograd, {0}},
    {"im2col", derive_im2col, {0}},
    {"im2col, halo", derive_im2col_halo, {0}},
    {"collapse", derive_collapse, {0}},
    {"sites, halo", derive_sites, {0}},
    {"residues", derive_residues, {0}},
    {"whole rows", derive_whole_rows, {0}},
    {"separated", derive_separated, {0}},
    {"split reduction", derive_split, {0}},
    {"block reduction", derive_blocks, {0}},
    {"copy after", derive_copy, {0}},
    {"pack", derive_pack, {0}},
};

enum { DERIVATIONS = sizeof(derivations) / sizeof(derivations[0]) };

static bool try_one(const struct wpk_program *original, int which, struct wpk_rng *rng)
{
    struct wpk_program derived = {0};
    assert_int_equal(wpk_program_copy(original, &derived), WPK_OK);
    struct derivation d = {.program = &derived, .rng = rng, .m = derivations[which].m};
    wpk_err err = derivations[which].derive(&d);
    if (err == WPK_OK) {
        wpk_check_whole(&derived);
        wpk_check_derived(original, &derived, d.permuted ? d.order : NULL, rng);
    } else {
        assert_true(err == WPK_EUNSUPPORTED || err == WPK_ERANGE);
    }
    wpk_program_fini(&derived);
    return err == WPK_OK;
}

static void try_all(const struct wpk_program *original, struct wpk_rng *rng, int *applied)
{
    for (int which = 0; which < DERIVATIONS; which++) {
        applied[which] += try_one(original, which, rng);
    }
}

/* Returns how often any did. */
static int expect_applied(const int *applied, int least)
{
    int total = 0;
    for (int which = 0; which < DERIVATIONS; which++) {
        print_message("%-28s %d\n", derivations[which].name, applied[which]);
        assert_true(applied[which] >= least);
        total += applied[which];
    }
    return total;
}

static void seed_rng(struct wpk_rng *rng)
{
    const char *given = getenv("WPK_TEST_SEED");
    uint64_t seed = given == NULL ? SEED : strtoull(given, NULL, 10);
    wpk_rng_seed(rng, seed);
    print_message("WPK_TEST_SEED=%llu\n", (unsigned long long)seed);
}

static void test_derived_equals_original(void **state)
{
    (void)state;
    struct wpk_rng rng;
    int applied[DERIVATIONS] = {0};
    seed_rng(&rng);
    for (int i = 0; i < ROUNDS * WPK_FIXTURE_COUNT; i++) {
        struct wpk_fixture_conv conv = wpk_fixture_draw(&rng);
        struct wpk_buf text = {0};
        struct wpk_program original = {0};
        struct wpk_diag diag = {0};
        wpk_fixture_write((enum wpk_fixture_shape)(i % WPK_FIXTURE_COUNT), &conv, &text);
        if (wpk_program_parse(wpk_buf_text(&text), &original, &diag) != WPK_OK) {
            fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
        }
        try_all(&original, &rng, applied);
        wpk_program_fini(&original);
        wpk_buf_fini(&text);
    }
    assert_true(expect_applied(applied, ROUNDS > 9 ? 8 : 1) >= wpk_test_share(200));
}

static void test_random_programs(void **state)
{
    (void)state;
    struct wpk_rng rng;
    struct wpk_random_options options = {.smooth = true, .products = true};
    int applied[DERIVATIONS] = {0};
    seed_rng(&rng);
    for (int i = 0; i < RANDOM_PROGRAMS; i++) {
        struct wpk_program original;
        options.data = i % 4 == 0;
        wpk_random_program(&rng, &options, &original);
        try_all(&original, &rng, applied);
        wpk_program_fini(&original);
    }
    /* some apply to one program in hundreds, and compilers draw them in different orders */
    assert_true(expect_applied(applied, 0) >= 5 * RANDOM_PROGRAMS);
}

/* ---- what must be refused, and what must not */

static void test_im2col_is_for_windows(void **state)
{
    (void)state;
    const struct wpk_fixture_conv conv = {.n = 1,
                                          .c = 2,
                                          .k = 3,
                                          .h = 7,
                                          .w = 9,
                                          .r = 3,
                                          .s = 3,
                                          .stride = 2,
                                          .dilation = 1,
                                          .pad = 1};
    struct wpk_buf text = {0};
    struct wpk_program program = {0};
    struct wpk_diag diag = {0};
    wpk_fixture_write(WPK_FIXTURE_MATMUL, &conv, &text);
    assert_int_equal(wpk_program_parse(wpk_buf_text(&text), &program, &diag), WPK_OK);
    int stage = wpk_contraction_find(&program);
    assert_int_equal(wpk_derive_im2col(&program, stage), WPK_EUNSUPPORTED);
    wpk_program_fini(&program);
    wpk_buf_fini(&text);
}

/* Between two windows, which read along rows and columns, a product's pixels are one axis. The
 * first window's epilogue keeps rows and columns apart, the product's epilogue does not. */
static void test_one_stage_collapses(void **state)
{
    (void)state;
    static const char text[] = "input X f32[1,4,7,9]\nconstant V f32[4,3,3]\nconstant W f32[5,4]\n"
                               "intermediate D f32[1,4,7,9]\nintermediate R f32[1,4,7,9]\n"
                               "intermediate T f32[1,5,7,9]\nintermediate Q f32[1,5,7,9]\n"
                               "output Y f32[1,5,6,9]\n"
                               "D[n,c,y,x] = sum(r:3,s:3) X[n,c,y+r-1,x+s-1] * V[c,r,s]\n"
                               "R[n,c,y,x] = max(D[n,c,y,x], 0)\n"
                               "T[n,k,y,x] = sum(c:4) R[n,c,y,x] * W[k,c]\n"
                               "Q[n,k,y,x] = T[n,k,y,x] * 0.5\n"
                               "Y[n,k,y,x] = max(r:2) Q[n,k,y+r,x]\n";
    static const char *const lines[] = {
        "R[n,c,y,x] = max(D[n,c,y,x], 0)\n", "T[n,k,yx] = sum.f32(c:4) R[n,c,yx/9,yx%9] * W[k,c]\n",
        "Q[n,k,yx] = T[n,k,yx] * 0.5\n",     "[i0,i1,i2,i3] = Q[i0,i1,9*i2+i3]\n",
        "Y[n,k,y,x] = max.f32(r:2) ",
    };
    struct wpk_program program = {0};
    struct wpk_buf out = {0};
    assert_int_equal(wpk_program_parse(text, &program, NULL), WPK_OK);
    int window = wpk_program_writer(&program, wpk_program_find_tensor(&program, "D"));
    struct wpk_program copy = {0};
    assert_int_equal(wpk_program_copy(&program, &copy), WPK_OK);
    assert_int_equal(wpk_derive_collapse(&copy, window), WPK_EUNSUPPORTED);
    wpk_program_fini(&copy);
    int product = wpk_program_writer(&program, wpk_program_find_tensor(&program, "T"));
    assert_int_equal(wpk_derive_collapse(&program, product), WPK_OK);
    assert_int_equal(wpk_program_validate(&program, NULL), WPK_OK);
    assert_int_equal(wpk_program_print(&program, &out), WPK_OK);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (strstr(wpk_buf_text(&out), lines[i]) == NULL) {
            fail_msg("no %s in\n%s", lines[i], wpk_buf_text(&out));
        }
    }
    wpk_buf_fini(&out);
    wpk_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_im2col_is_for_windows),
        cmocka_unit_test(test_one_stage_collapses),
        cmocka_unit_test(test_derived_equals_original),
        cmocka_unit_test(test_random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
