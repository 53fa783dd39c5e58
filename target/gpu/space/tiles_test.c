/* SPDX-License-Identifier: Apache-2.0 */
/* A candidate's genes as numbers, and what follows from them alone. */
#include "target/gpu/space/tiles.h"

#include "common/cuda_machine.h"
#include "tests/cuda_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PRODUCT                                                                                    \
    "input A f32[256,64]\ninput B f32[64,256]\noutput Y f32[256,256]\n"                            \
    "Y[i,j] = sum(k:64) A[i,k] * B[k,j]\n"

/* Axes i, j, k of a contraction; operand 0 has rows of terms, operand 1 rows along j. */
static const struct wpk_cuda_group product = {
    .kind = WPK_CUDA_JOINED,
    .i = 0,
    .j = 1,
    .k = 2,
    .sum = 1,
    .operand_count = 2,
    .operand = {{.along = 2, .tiled = 0, .is_move = true},
                {.along = 1, .tiled = 1, .is_move = true}},
    .before_copy = 0,
    .before_along = 0};

static void few_neighbours_are_no_vector(void **state)
{
    (void)state;
    static const struct {
        int64_t extent, threads, vector;
    } cases[] = {{128, 32, 4}, {124, 32, 1}, {132, 32, 4}, {130, 32, 1},
                 {4, 1, 4},    {3, 1, 1},    {256, 64, 4}, {255, 1, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(wpk_cuda_vector(cases[i].extent, cases[i].threads), cases[i].vector);
    }
}

static void advancing_counts_through_all_choices(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(PRODUCT, false, &space);
    const struct wpk_variant *variant = &space.variants[0];
    int all = variant->genes[1].choice_count * variant->genes[2].choice_count, count = 1;
    struct wpk_candidate c = {.gene_count = variant->gene_count};
    while (wpk_cuda_advance(variant, 1, 2, &c)) {
        count++;
    }
    assert_int_equal(count, all);
    for (int i = 0; i < c.gene_count; i++) {
        assert_int_equal(c.gene[i], 0);
    }
    wpk_space_fini(&space);
}

static void at_most_1024_products_are_written_out(void **state)
{
    (void)state;
    const struct wpk_cuda_tiles large = {.thread = {8, 8}}, odd = {.thread = {5, 7}};
    assert_true(wpk_cuda_may_unroll(&large, 16));
    assert_false(wpk_cuda_may_unroll(&large, 17));
    assert_true(wpk_cuda_may_unroll(&odd, 29)); /* 1015 */
    assert_false(wpk_cuda_may_unroll(&odd, 30));
}

static void rows_of_terms_are_those_of_a_staged_operand(void **state)
{
    (void)state;
    struct wpk_cuda_tiles t = {.staged = {true, true}};
    assert_true(wpk_cuda_has_rows_of_terms(&product, &t, 0));
    assert_false(wpk_cuda_has_rows_of_terms(&product, &t, 1)); /* its rows are along j */
    t.staged[0] = false;
    assert_false(wpk_cuda_has_rows_of_terms(&product, &t, 0));
    t.staged[0] = t.box = true; /* operand 0 is read out of a box */
    assert_false(wpk_cuda_has_rows_of_terms(&product, &t, 0));
}

static void what_is_transformed_in_a_block_is_no_copy(void **state)
{
    (void)state;
    struct wpk_cuda_tiles t = {.staged = {true, true}};
    assert_true(wpk_cuda_is_copied(&product, &t, 0));
    assert_int_equal(wpk_cuda_along(&product, &t, 0), 2);
    t.before = true;
    assert_false(wpk_cuda_is_copied(&product, &t, 0));
    assert_true(wpk_cuda_is_copied(&product, &t, 1));
    assert_int_equal(wpk_cuda_along(&product, &t, 0), 0); /* as the transforms write it */
    assert_int_equal(wpk_cuda_along(&product, &t, 1), 1);
    t = (struct wpk_cuda_tiles){.staged = {false, true}};
    assert_false(wpk_cuda_is_copied(&product, &t, 0));
}

static void only_moves_may_be_asynchronous(void **state)
{
    (void)state;
    struct wpk_cuda_group group = product;
    assert_true(wpk_cuda_may_be_async(&group));
    group.operand[0].is_move = false;
    assert_true(wpk_cuda_may_be_async(&group));
    group.operand[1].is_move = false;
    assert_false(wpk_cuda_may_be_async(&group));
    group.operand[1].is_move = true;
    group.operand_count = 1; /* what lies behind the last operand is none */
    assert_false(wpk_cuda_may_be_async(&group));
}

static void a_thread_reads_as_many_words_as_lie_together(void **state)
{
    (void)state;
    static const struct {
        int operand;
        int64_t step, padding, unrolled, piece[2], width;
    } cases[] = {
        {0, 16, 4, 16, {1, 1}, 4}, {0, 16, 1, 16, {1, 1}, 1}, {0, 16, 0, 2, {4, 4}, 2},
        {0, 16, 2, 4, {1, 1}, 2},  {0, 8, 4, 1, {8, 8}, 1},   {1, 16, 4, 1, {1, 4}, 4},
        {1, 16, 1, 16, {4, 2}, 2}, {1, 16, 0, 16, {4, 7}, 1}, {1, 9, 0, 9, {1, 8}, 4},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wpk_cuda_tiles t = {.step = cases[i].step,
                                         .staged = {true, true},
                                         .padding = {cases[i].padding, cases[i].padding},
                                         .unrolled = cases[i].unrolled,
                                         .piece = {cases[i].piece[0], cases[i].piece[1]}};
        if (wpk_cuda_width(&product, &t, cases[i].operand) != cases[i].width) {
            fail_msg("case %zu: %d", i, (int)wpk_cuda_width(&product, &t, cases[i].operand));
        }
    }
    const struct wpk_cuda_tiles box = {.step = 16, .unrolled = 16, .piece = {4, 4}, .box = true};
    assert_int_equal(wpk_cuda_width(&product, &box, 0), 1); /* a window's words are single ones */
}

/* Lanes along the axis `whole` read on where those along j end: no two of a round in one bank. */
static void planes_are_spaced_so_that_their_lanes_meet_no_bank_twice(void **state)
{
    (void)state;
    struct wpk_cuda_group group = product;
    group.operand[0].planes = group.operand[1].planes = true;
    for (int64_t threads = 4; threads <= 16; threads *= 2) {
        for (int64_t block = threads; block <= 64; block *= 2) {
            const struct wpk_cuda_tiles t = {.block = {1, block},
                                             .thread = {1, block / threads},
                                             .step = 8,
                                             .staged = {true, true},
                                             .unrolled = 1,
                                             .piece = {1, 1},
                                             .together = 4};
            int64_t spacing = wpk_cuda_spacing(&group, &t, 1);
            int64_t plane = block * t.step + spacing;
            int used[WPK_CUDA_BANKS] = {0};
            assert_in_range(spacing, 0, WPK_CUDA_BANKS - 1);
            for (int64_t lane = 0; lane < WPK_CUDA_BANKS && lane < 4 * threads; lane++) {
                used[(lane % threads + lane / threads * plane) % WPK_CUDA_BANKS]++;
            }
            for (int b = 0; b < WPK_CUDA_BANKS; b++) {
                assert_true(used[b] <= 1);
            }
        }
    }
}

static void a_plane_alone_needs_no_spacing(void **state)
{
    (void)state;
    struct wpk_cuda_group group = product;
    struct wpk_cuda_tiles t = {.block = {4, 8},
                               .thread = {4, 2},
                               .step = 8,
                               .unrolled = 1,
                               .piece = {1, 1},
                               .together = 4};
    group.operand[1].planes = true;
    assert_true(wpk_cuda_spacing(&group, &t, 1) > 0); /* 4 + spacing - 64 */
    t.together = 1;
    assert_int_equal(wpk_cuda_spacing(&group, &t, 1), 0);
    t.together = 4;
    t.box = true;
    assert_int_equal(wpk_cuda_spacing(&group, &t, 1), 0);
    t.box = false;
    group.operand[1].planes = false;
    assert_int_equal(wpk_cuda_spacing(&group, &t, 1), 0);
    group.operand[1].planes = true;
    t.block[1] = 64; /* 32 threads: a warp has one plane */
    assert_int_equal(wpk_cuda_spacing(&group, &t, 1), 0);
}

static void the_guess_pads_rows_of_terms_and_unrolls_what_divides(void **state)
{
    (void)state;
    const struct wpk_stage root = {.rank = 2, .axes = {{.extent = 256}, {.extent = 256}}};
    static const struct {
        int64_t step, thread[2], depth;
        bool staged[2];
        int64_t padding, unrolled, virtual_threads[2];
        bool async;
    } cases[] = {
        {16, {8, 8}, 2, {true, true}, 4, 16, {8, 2}, true},
        {32, {8, 8}, 2, {true, true}, 4, 16, {8, 2}, true}, /* 32 would be 2048 products */
        {12, {8, 8}, 1, {true, true}, 4, 12, {8, 2}, false},
        {9, {4, 4}, 1, {true, true}, 0, 9, {4, 1}, false}, /* rows of nine begin anywhere */
        {16, {8, 8}, 2, {false, true}, 0, 1, {2, 2}, true},
        {16, {8, 8}, 2, {false, false}, 0, 1, {2, 2}, false}, /* there is nothing to copy */
        {24, {7, 7}, 1, {true, true}, 4, 12, {7, 7}, false},  /* 24 * 49 = 1176; odd pieces of 1 */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_cuda_tiles t = {.step = cases[i].step,
                                   .thread = {cases[i].thread[0], cases[i].thread[1]},
                                   .depth = cases[i].depth,
                                   .staged = {cases[i].staged[0], cases[i].staged[1]}};
        wpk_cuda_guess(&root, &product, &t);
        if (t.padding[0] != cases[i].padding || t.padding[1] != 0 ||
            t.unrolled != cases[i].unrolled || t.async != cases[i].async ||
            t.virtual_threads[0] != cases[i].virtual_threads[0] ||
            t.virtual_threads[1] != cases[i].virtual_threads[1]) {
            fail_msg("case %zu: padding %d, unrolled %d, async %d, virtual %d %d", i,
                     (int)t.padding[0], (int)t.unrolled, t.async, (int)t.virtual_threads[0],
                     (int)t.virtual_threads[1]);
        }
    }
}

static void a_candidates_genes_are_its_tiles(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_cuda_tiles t;
    wpk_cuda_space_derive(PRODUCT, false, &space);
    struct wpk_candidate c = wpk_cuda_space_candidate(
        &space, 0,
        "Y.block.i=64 Y.block.j=128 Y.thread.i=4 Y.thread.j=8 Y.step.k=16 Y.parts.k=2 Y.depth=3 "
        "Y.virtual.j=2 Y.unroll.k=4 Y.copies=async");
    wpk_cuda_tiles_read(&space.variants[0], &c, 0, &t);
    assert_int_equal(t.block[0], 64);
    assert_int_equal(t.block[1], 128);
    assert_int_equal(t.thread[0], 4);
    assert_int_equal(t.thread[1], 8);
    assert_int_equal(t.threads, 16 * 16);
    assert_int_equal(t.step, 16);
    assert_int_equal(t.parts, 2);
    assert_int_equal(t.depth, 3);
    assert_int_equal(t.share, 1);
    assert_int_equal(t.order, 1);
    assert_int_equal(t.piece[0], 4);
    assert_int_equal(t.piece[1], 4);
    assert_int_equal(t.unrolled, 4);
    assert_true(t.async);
    assert_false(t.staged[0] || t.staged[1] || t.vectors[0] || t.box || t.behind || t.before);
    assert_int_equal(wpk_cuda_joined_to(&space.variants[0], &c, 0), -1);
    wpk_space_fini(&space);
}

static void padding_belongs_to_staged_rows_of_terms_alone(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_cuda_tiles t;
    wpk_cuda_space_derive(PRODUCT, false, &space);
    const struct wpk_cuda_group *group = &wpk_cuda_kept_of(&space.variants[0])->groups.group[0];
    int a = group->operand[0].along == group->k ? 0 : 1; /* the operand made of A */
    struct wpk_candidate c =
        wpk_cuda_space_candidate(&space, 0, "Y.padding.A_t=4 Y.stage.A_t=no Y.stage.B_t=shared");
    wpk_cuda_tiles_read(&space.variants[0], &c, 0, &t);
    assert_int_equal(t.padding[a], 0);
    wpk_cuda_space_set(&space, "Y.stage.A_t=shared4", &c);
    wpk_cuda_tiles_read(&space.variants[0], &c, 0, &t);
    assert_int_equal(t.padding[a], 4);
    assert_int_equal(t.padding[1 - a], 0);
    assert_true(t.vectors[a] && t.staged[a] && t.staged[1 - a]);
    assert_false(t.vectors[1 - a]);
    wpk_space_fini(&space);
}

#define SOFTMAX                                                                                    \
    "input A f32[8,512]\nintermediate M f32[8]\nintermediate D f32[8]\noutput Y f32[8,512]\n"      \
    "M[i] = max(k:512) A[i,k]\nD[i] = sum(k:512) exp(A[i,k] - M[i])\n"                             \
    "Y[i,j] = exp(A[i,j] - M[i]) / D[i]\n"

static void rows_have_threads_of_their_own(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_cuda_tiles t;
    wpk_cuda_space_derive(SOFTMAX, false, &space);
    const struct wpk_variant *variant = &space.variants[0];
    const struct wpk_cuda_groups *groups = &wpk_cuda_kept_of(variant)->groups;
    int last = groups->count - 1;
    struct wpk_candidate c = wpk_cuda_space_candidate(&space, 0, "Y.rows=2 Y.threads=64");
    wpk_cuda_tiles_read(variant, &c, last, &t);
    assert_int_equal(t.rows, 2);
    assert_int_equal(t.share, 64);
    assert_int_equal(t.threads, 128);
    wpk_cuda_space_set(&space, "Y.rows=apart Y.block.i=1 Y.block.j=64 Y.thread.j=2", &c);
    wpk_cuda_tiles_read(variant, &c, last, &t);
    assert_int_equal(t.rows, 0);
    assert_int_equal(t.threads, 32);
    for (int g = 0; g < last; g++) { /* M and D: numbers of a row, whose terms its threads share */
        assert_true(wpk_cuda_is_in_registers(&variant->program, groups, &groups->group[last], g));
    }
    wpk_space_fini(&space);
}

static void threads_share_whole_vectors_of_terms(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    wpk_cuda_space_group("input A f32[8,512]\noutput Y f32[8]\nY[i] = sum(k:512) A[i,k]\n", false,
                         &program, &groups);
    static const struct {
        int64_t parts, share, vector;
    } cases[] = {{1, 32, 4}, {1, 128, 4}, {1, 256, 1}, {4, 32, 4}, {4, 64, 1}, {1, 1, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wpk_cuda_tiles t = {.parts = cases[i].parts, .share = cases[i].share};
        assert_int_equal(wpk_cuda_term_vector(&program, &groups.group[0], &t), cases[i].vector);
    }
    wpk_program_fini(&program);
}

#define CONVOLUTION                                                                                \
    "input X f32[1,16,28,28]\nconstant W f32[16,16,3,3]\noutput Y f32[1,16,28,28]\n"               \
    "Y[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n"

/* A block that transforms stages all operands, whatever their genes say. */
static void joined_transforms_belong_to_the_contraction(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_cuda_tiles t;
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    int v = wpk_cuda_space_variant(&space, "winograd(4)");
    const struct wpk_variant *variant = &space.variants[v];
    struct wpk_candidate c = wpk_cuda_space_candidate(&space, v, "Y_r_m.together.ab=6");
    for (int g = 0; g < 3; g++) {
        assert_int_equal(wpk_cuda_joined_to(variant, &c, g), -1);
    }
    wpk_cuda_tiles_read(variant, &c, 1, &t);
    assert_int_equal(t.together, 1); /* each is a block's */
    wpk_cuda_space_set(&space, "Y_r_m.at=Y", &c);
    wpk_cuda_tiles_read(variant, &c, 1, &t);
    assert_int_equal(wpk_cuda_joined_to(variant, &c, 2), 1);
    assert_int_equal(wpk_cuda_joined_to(variant, &c, 0), -1);
    assert_true(t.behind && !t.before && t.staged[0] && t.staged[1]);
    assert_int_equal(t.together, 6);
    wpk_cuda_space_set(&space, "Y_r_v.at=Y_r_m", &c);
    wpk_cuda_tiles_read(variant, &c, 1, &t);
    assert_int_equal(wpk_cuda_joined_to(variant, &c, 0), 1);
    assert_int_equal(t.together, 36); /* all that the transforms leave */
    wpk_space_fini(&space);
}

static void a_step_of_a_box_has_all_of_a_window(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_cuda_tiles t;
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    int v = wpk_cuda_space_variant(&space, "direct");
    const struct wpk_variant *variant = &space.variants[v];
    const struct wpk_cuda_group *group = &wpk_cuda_kept_of(variant)->groups.group[0];
    struct wpk_candidate c =
        wpk_cuda_space_candidate(&space, v, "Y.step.c=8 Y.stage.X_b_t=box Y.together.y=4");
    wpk_cuda_tiles_read(variant, &c, 0, &t);
    assert_true(t.box);
    assert_int_equal(t.together, 4);
    assert_int_equal(wpk_cuda_step_terms(&variant->program, group, &t), 8 * 3 * 3);
    wpk_cuda_space_set(&space, "Y.stage.X_b_t=no", &c);
    wpk_cuda_tiles_read(variant, &c, 0, &t);
    assert_false(t.box);
    assert_int_equal(t.together, 1);
    assert_int_equal(wpk_cuda_step_terms(&variant->program, group, &t), 8);
    wpk_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_neighbours_are_no_vector),
        cmocka_unit_test(advancing_counts_through_all_choices),
        cmocka_unit_test(at_most_1024_products_are_written_out),
        cmocka_unit_test(rows_of_terms_are_those_of_a_staged_operand),
        cmocka_unit_test(what_is_transformed_in_a_block_is_no_copy),
        cmocka_unit_test(only_moves_may_be_asynchronous),
        cmocka_unit_test(a_thread_reads_as_many_words_as_lie_together),
        cmocka_unit_test(planes_are_spaced_so_that_their_lanes_meet_no_bank_twice),
        cmocka_unit_test(a_plane_alone_needs_no_spacing),
        cmocka_unit_test(the_guess_pads_rows_of_terms_and_unrolls_what_divides),
        cmocka_unit_test(a_candidates_genes_are_its_tiles),
        cmocka_unit_test(padding_belongs_to_staged_rows_of_terms_alone),
        cmocka_unit_test(rows_have_threads_of_their_own),
        cmocka_unit_test(threads_share_whole_vectors_of_terms),
        cmocka_unit_test(joined_transforms_belong_to_the_contraction),
        cmocka_unit_test(a_step_of_a_box_has_all_of_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
