/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of tiles: memory and registers by hand, seconds by what has to be slower. */
#include "target/gpu/space/template.h"

#include "tests/cuda_space.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PRODUCT                                                                                    \
    "input A f32[256,64]\ninput B f32[64,256]\noutput Y f32[256,256]\n"                            \
    "Y[i,j] = sum(k:64) A[i,k] * B[k,j]\n"
#define CONVOLUTION                                                                                \
    "input X f32[1,16,28,28]\nconstant W f32[16,16,3,3]\noutput Y f32[1,16,28,28]\n"               \
    "Y[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n"
#define SOFTMAX                                                                                    \
    "input A f32[8,512]\nintermediate M f32[8]\nintermediate D f32[8]\noutput Y f32[8,512]\n"      \
    "M[i] = max(k:512) A[i,k]\nD[i] = sum(k:512) exp(A[i,k] - M[i])\n"                             \
    "Y[i,j] = exp(A[i,j] - M[i]) / D[i]\n"

static int64_t shared_bytes(const struct wpk_space *space, int v, int g, const char *genes)
{
    const struct wpk_variant *variant = &space->variants[v];
    struct wpk_candidate c = wpk_cuda_space_candidate(space, v, genes);
    struct wpk_cuda_tiles t;
    wpk_cuda_tiles_read(variant, &c, g, &t);
    return wpk_cuda_shared_bytes(&variant->program, &wpk_cuda_kept_of(variant)->groups.group[g],
                                 &t);
}

#define TILE "Y.block.i=64 Y.block.j=32 Y.step.k=16 "

static void staged_operands_take_their_tiles(void **state)
{
    (void)state;
    struct wpk_space space;
    static const struct {
        const char *genes;
        int64_t bytes;
    } cases[] = {
        {TILE, 0},
        {TILE "Y.stage.A_t=shared", 64 * 16 * 4},
        {TILE "Y.stage.B_t=shared", 32 * 16 * 4},
        {TILE "Y.stage.A_t=shared Y.stage.B_t=shared4", (64 + 32) * 16 * 4},
        {TILE "Y.stage.A_t=shared Y.padding.A_t=1", 64 * 17 * 4},
        {TILE "Y.stage.B_t=shared Y.padding.A_t=4", 32 * 16 * 4}, /* A has no rows there */
        {TILE "Y.stage.A_t=shared Y.padding.A_t=4 Y.depth=3", 3 * 64 * 20 * 4},
        {TILE "Y.stage.B_t=shared Y.parts.k=2", 32 * 16 * 4 + 32}, /* and a ticket */
        {TILE "Y.parts.k=2", 32},
    };
    wpk_cuda_space_derive(PRODUCT, false, &space);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t bytes = shared_bytes(&space, 0, 0, cases[i].genes);
        if (bytes != cases[i].bytes) {
            fail_msg("%s: %d bytes", cases[i].genes, (int)bytes);
        }
    }
    wpk_space_fini(&space);
}

/* Of X for 28 x 4 results: 8 channels of 6 rows of 30 elements, filled up to 32. */
static void a_box_takes_what_its_windows_read(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    int v = wpk_cuda_space_variant(&space, "direct");
    int64_t bytes = shared_bytes(&space, v, 0,
                                 "Y.block.k=16 Y.block.x=28 Y.thread.x=7 Y.virtual.x=7 Y.step.c=8 "
                                 "Y.stage.X_b_t=box Y.together.y=4");
    assert_true(bytes >= 8 * 6 * 32 * 4 && bytes <= 8 * 6 * (32 + 8) * 4);
    int64_t both = shared_bytes(&space, v, 0,
                                "Y.block.k=16 Y.block.x=28 Y.thread.x=7 Y.virtual.x=7 Y.step.c=8 "
                                "Y.stage.X_b_t=box Y.together.y=4 Y.stage.W_t_t=shared");
    assert_int_equal(both - bytes, 16 * 8 * 9 * 4); /* all of the window's weights */
    wpk_space_fini(&space);
}

/* All 36 products of a tile of 8 x 14 results stay for the transforms behind them. */
static void products_before_transforms_stay_in_shared_memory(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    int v = wpk_cuda_space_variant(&space, "winograd(4)");
    static const char apart[] = "Y_r_m.block.k=8 Y_r_m.block.tytx=14 Y_r_m.stage.Y_r_v_t=shared "
                                "Y_r_m.stage.Y_r_u2_t_t=shared";
    static const char joined[] = "Y_r_m.block.k=8 Y_r_m.block.tytx=14 Y_r_m.at=Y";
    assert_int_equal(shared_bytes(&space, v, 1, apart), (8 + 14) * 8 * 4);
    assert_int_equal(shared_bytes(&space, v, 1, joined), (8 + 14) * 8 * 4 + 8 * 14 * 36 * 4);
    wpk_space_fini(&space);
}

static void a_threads_registers_are_its_tile_and_its_operands(void **state)
{
    (void)state;
    static const struct {
        int64_t thread[2], registers;
    } cases[] = {{{1, 1}, 43}, {{8, 8}, 120}, {{4, 8}, 84}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wpk_cuda_tiles t = {.thread = {cases[i].thread[0], cases[i].thread[1]}};
        assert_int_equal(wpk_cuda_registers(&t), cases[i].registers);
    }
    const struct wpk_stage root = {.rank = 3};
    const struct wpk_cuda_group group = {.tile = {6, 6, 1}};
    assert_int_equal(wpk_cuda_tile_registers(&root, &group), 2 * 36 + 40);
}

static void terms_are_those_of_all_reduction_axes(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    const struct wpk_variant *variant = &space.variants[wpk_cuda_space_variant(&space, "direct")];
    const struct wpk_cuda_group *group = &wpk_cuda_kept_of(variant)->groups.group[0];
    const struct wpk_cuda_group none = {.sum = -1};
    assert_true(wpk_cuda_terms(&variant->program, group) == 16 * 3 * 3);
    assert_true(wpk_cuda_terms(&variant->program, &none) == 1);
    wpk_space_fini(&space);
}

/* M and D are a number each row. */
static void rows_take_what_they_read(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_cuda_tiles t;
    wpk_cuda_space_derive(SOFTMAX, false, &space);
    const struct wpk_variant *variant = &space.variants[0];
    const struct wpk_cuda_groups *groups = &wpk_cuda_kept_of(variant)->groups;
    struct wpk_candidate c = wpk_cuda_space_candidate(&space, 0, "Y.rows=4 Y.threads=32");
    wpk_cuda_tiles_read(variant, &c, 2, &t);
    assert_int_equal(wpk_cuda_row_bytes(variant, &groups->group[2], &t), 2 * 4 * 4);
    assert_int_equal(wpk_cuda_row_bytes(variant, &groups->group[0], &t), 0);
    wpk_space_fini(&space);
}

static double bound(const struct wpk_space *space, int v, int g, const char *genes)
{
    struct wpk_candidate c = wpk_cuda_space_candidate(space, v, genes);
    return wpk_cuda_bound(space, &c, g);
}

#define GOOD                                                                                       \
    "Y.block.i=64 Y.block.j=64 Y.thread.i=4 Y.thread.j=4 Y.step.k=16 Y.stage.A_t=shared4 "         \
    "Y.stage.B_t=shared4 Y.padding.A_t=4 Y.unroll.k=16 "

static void what_has_to_be_slower_is_predicted_slower(void **state)
{
    (void)state;
    struct wpk_space space;
    static const struct {
        const char *faster, *slower;
    } pairs[] = {
        /* operands in shared memory are read once a block */
        {GOOD, GOOD "Y.stage.A_t=no Y.stage.B_t=no Y.padding.A_t=0"},
        /* moves of 16 bytes */
        {GOOD, GOOD "Y.stage.A_t=shared Y.stage.B_t=shared"},
        /* a loop for each term */
        {GOOD, GOOD "Y.unroll.k=1"},
        /* copies that are ahead of the products */
        {GOOD "Y.depth=2 Y.copies=async", GOOD},
        /* one result a thread: a load for each factor */
        {GOOD "Y.block.i=16 Y.block.j=16",
         GOOD "Y.block.i=16 Y.block.j=16 Y.thread.i=1 Y.thread.j=1 Y.stage.A_t=no Y.stage.B_t=no"},
    };
    wpk_cuda_space_derive(PRODUCT, false, &space);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        double faster = bound(&space, 0, 0, pairs[i].faster);
        double slower = bound(&space, 0, 0, pairs[i].slower);
        if (!(faster < slower)) {
            fail_msg("%s: %g\n%s: %g", pairs[i].faster, faster, pairs[i].slower, slower);
        }
    }
    wpk_space_fini(&space);
}

/* Threads along j read rows of 16 terms of B, which begin in two banks unless they are padded. */
static void rows_of_terms_are_read_with_conflicts_unless_padded(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive("input A f32[256,64]\ninput B f32[256,64]\noutput Y f32[256,256]\n"
                          "Y[i,j] = sum(k:64) A[i,k] * B[j,k]\n",
                          false, &space);
    double none = bound(&space, 0, 0, GOOD "Y.padding.B_t=0");
    double four = bound(&space, 0, 0, GOOD "Y.padding.B_t=4");
    assert_true(four < none);
    assert_true(bound(&space, 0, 0, GOOD "Y.padding.B_t=4 Y.padding.A_t=0") <= none);
    wpk_space_fini(&space);
}

/* 2 * 256 * 256 * 64 operations and the bytes of all tensors, on all multiprocessors. */
static void no_launch_is_faster_than_the_machine(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_cuda_machine m;
    wpk_cuda_space_derive(PRODUCT, false, &space);
    wpk_cuda_read_machine(&space, &m);
    assert_int_equal(m.sm_count, 132);
    double products = 256.0 * 256 * 64 / (m.multiply_adds * m.sm_count * m.hertz);
    double launch = m.launch / m.hertz;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 3);
    for (int i = 0; i < 200; i++) {
        struct wpk_candidate c;
        assert_int_equal(wpk_space_draw(&space, &rng, &c), WPK_OK);
        double seconds = wpk_cuda_bound(&space, &c, 0);
        assert_true(isfinite(seconds) && seconds >= launch + products);
    }
    wpk_space_fini(&space);
}

static void fewer_multiprocessors_take_longer(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(PRODUCT, false, &space);
    double before = 0;
    for (int count = 132; count >= 1; count /= 2) {
        space.options.device.cuda.sm_count = count;
        double seconds = bound(&space, 0, 0, GOOD);
        assert_true(seconds >= before);
        before = seconds;
    }
    space.options.device.cuda.sm_count = 132;
    assert_true(before > 4 * bound(&space, 0, 0, GOOD));
    wpk_space_fini(&space);
}

/* Neighbouring threads read neighbouring terms; shared by more threads a row's sum is faster, until
 * most of them wait for the others. */
static void shared_terms_are_faster_than_one_threads(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive("input A f32[8,4096]\noutput Y f32[8]\nY[i] = sum(k:4096) A[i,k]\n",
                          false, &space);
    double one = bound(&space, 0, 0, "Y.share.k=4"), many = bound(&space, 0, 0, "Y.share.k=128");
    assert_true(many < one);
    wpk_space_fini(&space);
}

/* A block that also transforms saves a launch: what it saves is predicted as that launch. */
static void joined_transforms_cost_what_their_contraction_saves(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    int v = wpk_cuda_space_variant(&space, "winograd(4)");
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(&space.variants[v]);
    static const char joined[] = "Y_r_m.block.k=8 Y_r_m.block.tytx=14 Y_r_m.at=Y";
    assert_true(bound(&space, v, 2, joined) == kept->apart[2]);
    assert_true(bound(&space, v, 0, joined) != kept->apart[0] ||
                kept->apart[0] <= bound(&space, v, 0, ""));
    for (int g = 0; g <= 2; g += 2) { /* the best of a launch of its own */
        assert_true(kept->apart[g] > 0 && isfinite(kept->apart[g]));
        assert_true(kept->apart[g] <= bound(&space, v, g, ""));
    }
    wpk_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(staged_operands_take_their_tiles),
        cmocka_unit_test(a_box_takes_what_its_windows_read),
        cmocka_unit_test(products_before_transforms_stay_in_shared_memory),
        cmocka_unit_test(a_threads_registers_are_its_tile_and_its_operands),
        cmocka_unit_test(terms_are_those_of_all_reduction_axes),
        cmocka_unit_test(rows_take_what_they_read),
        cmocka_unit_test(what_has_to_be_slower_is_predicted_slower),
        cmocka_unit_test(rows_of_terms_are_read_with_conflicts_unless_padded),
        cmocka_unit_test(no_launch_is_faster_than_the_machine),
        cmocka_unit_test(fewer_multiprocessors_take_longer),
        cmocka_unit_test(shared_terms_are_faster_than_one_threads),
        cmocka_unit_test(joined_transforms_cost_what_their_contraction_saves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
