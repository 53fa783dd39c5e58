/* SPDX-License-Identifier: Apache-2.0 */
/* Nests of candidates: the loops of some by hand, and of drawn ones what each nest has to keep. */
#include "target/gpu/space/template.h"

#include "common/cuda_machine.h"
#include "nest/nest.h"
#include "tests/cuda_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
#define ROWS "input A f32[37,300]\noutput Y f32[37]\nY[i] = sum(k:300) A[i,k]\n"

static struct wpk_nest *nest_of(const struct wpk_space *space, const struct wpk_candidate *c)
{
    struct wpk_nest *nest = malloc(sizeof(*nest));
    struct wpk_diag diag = {0};
    assert_non_null(nest);
    assert_int_equal(wpk_cuda_nest(space, c, nest), WPK_OK);
    if (wpk_nest_check(nest, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    return nest;
}

static struct wpk_nest *nest_by(const struct wpk_space *space, int v, const char *genes)
{
    struct wpk_candidate c = wpk_cuda_space_candidate(space, v, genes);
    return nest_of(space, &c);
}

static const struct wpk_nest_entry *entry_of(const struct wpk_nest *nest, const char *tensor)
{
    int stage = wpk_cuda_space_stage(nest->program, tensor);
    for (int e = 0; e < nest->entry_count; e++) {
        if (nest->entry[e].stage == stage) {
            return &nest->entry[e];
        }
    }
    fail_msg("no entry for %s", tensor);
    return NULL;
}

/* "block.y i 64, ...": binding, axis and step of each loop. */
static void expect_loops(const struct wpk_nest *nest, const char *tensor, bool update,
                         const char *expected)
{
    const struct wpk_nest_entry *entry = entry_of(nest, tensor);
    const struct wpk_nest_loops *loops = update ? &entry->update : &entry->pure;
    const struct wpk_stage *stage = wpk_nest_stage(nest, entry);
    struct wpk_buf text = {0};
    for (int i = 0; i < loops->count; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, loops, i);
        wpk_buf_printf(&text, "%s%s %s %d", i > 0 ? ", " : "", wpk_bind_name(loop->binding),
                       stage->axes[loop->axis].name, (int)loop->step);
    }
    assert_string_equal(wpk_buf_text(&text), expected);
    wpk_buf_fini(&text);
}

static void a_product_has_blocks_threads_and_points(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(PRODUCT, false, &space);
    struct wpk_nest *nest = nest_by(&space, 0,
                                    "Y.block.i=64 Y.block.j=32 Y.thread.i=4 Y.thread.j=4 "
                                    "Y.virtual.i=2 Y.step.k=16 Y.unroll.k=8 Y.stage.A_t=shared");
    expect_loops(nest, "Y", false,
                 "block.y i 64, block.x j 32, unroll i 32, thread.y i 2, thread.x j 4, unroll i 1, "
                 "lanes j 1");
    expect_loops(nest, "Y_r", true,
                 "serial k 16, serial k 8, unroll k 1, unroll i 32, thread.y i 2, thread.x j 4, "
                 "unroll i 1, unroll j 1");
    const struct wpk_nest_entry *sum = entry_of(nest, "Y_r"), *copy = entry_of(nest, "A_t");
    assert_int_equal(sum->scope, WPK_SCOPE_REGISTER);
    assert_int_equal(sum->place.loop, 1); /* in a block */
    assert_int_equal(copy->scope, WPK_SCOPE_SHARED);
    assert_true(copy->place.update);
    assert_int_equal(copy->place.loop, 0); /* in a step */
    assert_int_equal(copy->extent[0], 64);
    assert_int_equal(copy->extent[1], 16);
    assert_true(entry_of(nest, "B_t")->inlined);
    free(nest);
    wpk_space_fini(&space);
}

static void parts_and_depth_are_written_into_the_nest(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(PRODUCT, false, &space);
    struct wpk_nest *nest =
        nest_by(&space, 0,
                "Y.block.i=64 Y.block.j=64 Y.thread.i=4 Y.thread.j=4 Y.parts.k=2 Y.depth=2 "
                "Y.stage.A_t=shared Y.stage.B_t=shared4 Y.padding.A_t=4 Y.copies=async");
    const struct wpk_nest_entry *sum = entry_of(nest, "Y_r"), *copy = entry_of(nest, "A_t");
    const struct wpk_nest_loop *first = wpk_nest_at(nest, &sum->update, 0);
    assert_true(sum->update.atomic);
    assert_int_equal(first->binding, WPK_BIND_BLOCK_X);
    assert_int_equal(first->step, 32); /* terms of a part */
    assert_int_equal(copy->depth, 2);
    assert_int_equal(copy->by, WPK_COPY_ASYNC);
    assert_int_equal(copy->row_padding, 4);
    assert_int_equal(entry_of(nest, "B_t")->row_padding, 0);
    free(nest);
    nest = nest_by(&space, 0,
                   "Y.block.i=64 Y.block.j=64 Y.thread.i=4 Y.thread.j=4 Y.depth=2 "
                   "Y.stage.A_t=shared");
    assert_int_equal(entry_of(nest, "A_t")->by, WPK_COPY_LOAD);
    free(nest);
    wpk_space_fini(&space);
}

static void blocks_run_in_groups_of_rows(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive("input A f32[2048,64]\ninput B f32[64,2048]\noutput Y f32[2048,2048]\n"
                          "Y[i,j] = sum(k:64) A[i,k] * B[k,j]\n",
                          false, &space);
    struct wpk_nest *nest =
        nest_by(&space, 0, "Y.block.i=64 Y.block.j=64 Y.thread.i=8 Y.thread.j=8 Y.order=4");
    const struct wpk_nest_entry *root = entry_of(nest, "Y");
    static const int64_t steps[] = {256, 64, 64}; /* groups, along j, in a group */
    for (int i = 0; i < 3; i++) {
        const struct wpk_nest_loop *loop = wpk_nest_at(nest, &root->pure, i);
        assert_true(wpk_bind_is_block(loop->binding));
        assert_int_equal(loop->axis, i == 1);
        assert_int_equal(loop->step, steps[i]);
    }
    free(nest);
    wpk_space_fini(&space);
}

/* M and D are computed in the registers of a row's threads. */
static void rows_compute_what_they_read(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(SOFTMAX, false, &space);
    struct wpk_nest *nest = nest_by(&space, 0, "Y.rows=2 Y.threads=64");
    expect_loops(nest, "Y", false,
                 "block.x i 2, thread.y i 1, serial j 256, thread.x j 4, lanes j 1");
    expect_loops(nest, "D_r", true, "thread.y i 1, serial k 256, thread.x k 4, lanes k 1");
    const struct wpk_nest_entry *number = entry_of(nest, "D"), *sum = entry_of(nest, "D_r");
    assert_int_equal(number->scope, WPK_SCOPE_REGISTER);
    assert_int_equal(number->place.loop, 0); /* in the block of rows */
    assert_true(sum->update.atomic);
    free(nest);
    nest = nest_by(&space, 0, "Y.block.j=32"); /* apart: three launches */
    int launches = 0;
    for (int e = 0; e < nest->entry_count; e++) {
        launches += !nest->entry[e].inlined && nest->entry[e].place.entry < 0;
    }
    assert_int_equal(launches, 3);
    free(nest);
    wpk_space_fini(&space);
}

static void a_box_is_copied_for_a_step(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    int v = wpk_cuda_space_variant(&space, "direct");
    struct wpk_nest *nest =
        nest_by(&space, v,
                "Y.block.k=16 Y.block.x=28 Y.thread.k=4 Y.thread.x=7 Y.step.c=8 Y.stage.X_b_t=box "
                "Y.stage.W_t_t=shared Y.together.y=4");
    const struct wpk_nest_entry *box = entry_of(nest, "X_b");
    static const int64_t extent[] = {1, 8, 6, 32}; /* 30 elements, filled up */
    assert_int_equal(box->scope, WPK_SCOPE_SHARED);
    for (int a = 0; a < 4; a++) {
        assert_int_equal(box->extent[a], extent[a]);
    }
    assert_int_equal(box->align[3], 32);
    assert_true(entry_of(nest, "X_b_t")->inlined); /* read out of the box */
    expect_loops(nest, "Y", false,
                 "block.z y 4, block.y k 16, block.x x 28, thread.z y 1, thread.y k 4, "
                 "thread.x x 7, unroll k 1, unroll x 1");
    free(nest);
    wpk_space_fini(&space);
}

/* All 6 x 6 elements of the transforms for a block's 14 tiles and 8 terms of a step; what follows
 * an element of the tile's inner axis is a plane of its own. */
static void transforms_before_products_write_planes(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    int v = wpk_cuda_space_variant(&space, "winograd(4)");
    struct wpk_nest *nest =
        nest_by(&space, v,
                "Y_r_v.at=Y_r_m Y_r_m.block.k=8 Y_r_m.block.tytx=14 Y_r_m.thread.k=8 "
                "Y_r_m.thread.tytx=2");
    const struct wpk_nest_entry *written = entry_of(nest, "Y_r_v");
    static const int64_t extent[] = {6, 6, 1, 14, 8};
    assert_int_equal(written->scope, WPK_SCOPE_SHARED);
    assert_true(written->place.update); /* in a step of the products */
    for (int a = 0; a < 5; a++) {
        assert_int_equal(written->extent[a], extent[a]);
    }
    assert_int_equal(written->spaced, 1);
    assert_int_equal(entry_of(nest, "Y_r_v1")->scope, WPK_SCOPE_REGISTER);
    assert_true(entry_of(nest, "Y_r_v_t")->inlined); /* there is no copy beside it */
    free(nest);
    wpk_space_fini(&space);
}

/* The products of 8 x 14 results are all there before a thread transforms its tiles. */
static void transforms_behind_products_read_them_in_shared_memory(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    int v = wpk_cuda_space_variant(&space, "winograd(4)");
    struct wpk_nest *nest = nest_by(&space, v,
                                    "Y_r_m.at=Y Y_r_m.block.k=8 Y_r_m.block.tytx=14 "
                                    "Y_r_m.thread.tytx=2 Y_r_m.together.ab=4");
    const struct wpk_nest_entry *products = entry_of(nest, "Y_r_m");
    static const int64_t extent[] = {36, 1, 8, 14};
    assert_int_equal(products->scope, WPK_SCOPE_SHARED);
    assert_true(products->place.entry >= 0);
    for (int a = 0; a < 4; a++) {
        assert_int_equal(products->extent[a], extent[a]);
    }
    const struct wpk_nest_loop *first = wpk_nest_at(nest, &products->pure, 0);
    assert_int_equal(first->binding, WPK_BIND_SERIAL);
    assert_int_equal(first->step, 4); /* elements that are summed at a time */
    expect_loops(nest, "Y", false,
                 "block.y k 8, block.x y 8, thread.z k 1, thread.y y 4, thread.x x 4, unroll y 1, "
                 "lanes x 1");
    free(nest);
    wpk_space_fini(&space);
}

/* Threads of a block: of each definition their product. */
static int64_t count_threads(const struct wpk_nest *nest, const struct wpk_nest_entry *entry,
                             const struct wpk_nest_loops *loops)
{
    int64_t threads = 1;
    for (int i = 0; i < loops->count; i++) {
        bool is = wpk_bind_is_thread(wpk_nest_at(nest, loops, i)->binding);
        threads *= is ? wpk_nest_iterations(nest, entry, loops, i) : 1;
    }
    return threads;
}

static void check_drawn(const char *text, bool strict, uint64_t seed, int count)
{
    struct wpk_space space;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, seed);
    wpk_cuda_space_derive(text, strict, &space);
    for (int i = 0; i < count; i++) {
        struct wpk_candidate c, again;
        assert_int_equal(wpk_space_draw(&space, &rng, &c), WPK_OK);
        struct wpk_nest *nest = nest_of(&space, &c);
        for (int e = 0; e < nest->entry_count; e++) {
            const struct wpk_nest_entry *entry = &nest->entry[e];
            if (!entry->inlined) {
                assert_in_range(count_threads(nest, entry, &entry->pure), 1, 1024);
                assert_in_range(count_threads(nest, entry, &entry->update), 1, 1024);
            }
        }
        /* what is settled stays as it is, and the nest is the same one */
        again = c;
        wpk_cuda_settle(&space, &again);
        struct wpk_nest *same = nest_of(&space, &again);
        assert_true(wpk_nest_hash(nest) == wpk_nest_hash(same));
        struct wpk_candidate twice = again;
        wpk_cuda_settle(&space, &twice);
        assert_true(wpk_candidate_equal(&again, &twice));
        free(same);
        free(nest);
    }
    wpk_space_fini(&space);
}

static void drawn_candidates_have_nests(void **state)
{
    (void)state;
    check_drawn(PRODUCT, false, 1, 40);
    check_drawn(PRODUCT, true, 2, 20);
    check_drawn(CONVOLUTION, false, 3, 60);
    check_drawn(SOFTMAX, false, 4, 40);
    check_drawn(ROWS, false, 5, 40);
    check_drawn("input A f32[3,5,7]\noutput Y f32[3,5,7]\nY[a,b,c] = exp(A[a,b,c])\n", false, 6,
                20);
    check_drawn("input A f32[1]\noutput Y f32[1]\nY[a] = exp(A[a])\n", false, 7, 5);
    check_drawn("input A f32[]\noutput Y f32[]\nY[] = exp(A[])\n", false, 8, 5);
}

/* The blocks of a root meet each of its results: the loops of an axis cover it. */
static void blocks_cover_the_whole_root(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 9);
    wpk_cuda_space_derive("input A f32[45,31]\ninput B f32[31,83]\noutput Y f32[45,83]\n"
                          "Y[i,j] = sum(k:31) A[i,k] * B[k,j]\n",
                          false, &space);
    for (int i = 0; i < 30; i++) {
        struct wpk_candidate c;
        static const int64_t extent[] = {45, 83};
        int64_t left[2] = {45, 83}, met[2] = {1, 1};
        assert_int_equal(wpk_space_draw(&space, &rng, &c), WPK_OK);
        struct wpk_nest *nest = nest_of(&space, &c);
        const struct wpk_nest_entry *root = entry_of(nest, "Y");
        for (int l = 0; l < root->pure.count; l++) {
            const struct wpk_nest_loop *loop = wpk_nest_at(nest, &root->pure, l);
            int a = loop->axis;
            int64_t count = (left[a] + loop->step - 1) / loop->step;
            met[a] *= count;
            left[a] = loop->step;
        }
        for (int a = 0; a < 2; a++) {
            assert_int_equal(left[a], 1);
            assert_true(met[a] >= extent[a]);
        }
        free(nest);
    }
    wpk_space_fini(&space);
}

/* A gene that decides nothing in this candidate has its first choice. */
static void idle_genes_are_settled(void **state)
{
    (void)state;
    struct wpk_space space;
    static const struct {
        const char *program, *algorithm, *genes, *settled;
    } cases[] = {
        {PRODUCT, "direct", "Y.block.i=64 Y.padding.A_t=4", "Y.block.i=64"},
        {PRODUCT, "direct", "Y.stage.A_t=shared Y.padding.A_t=4",
         "Y.stage.A_t=shared Y.padding.A_t=4"},
        {CONVOLUTION, "direct", "Y.together.y=4", ""},
        {CONVOLUTION, "direct", "Y.stage.X_b_t=box Y.together.y=4 Y.unroll.c=8",
         "Y.stage.X_b_t=box Y.together.y=4"},
        {CONVOLUTION, "winograd(4)", "Y_r_m.at=Y Y.block.k=8 Y_r_m.stage.Y_r_v_t=shared",
         "Y_r_m.at=Y"},
        {CONVOLUTION, "winograd(4)", "Y.block.k=8 Y_r_m.together.ab=4", "Y.block.k=8"},
        {SOFTMAX, "direct", "Y.rows=2 Y.threads=64 M.share.k=16 D.block.i=2 Y.block.j=64",
         "Y.rows=2 Y.threads=64"},
        {SOFTMAX, "direct", "Y.threads=64 M.share.k=16", "M.share.k=16"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        wpk_cuda_space_derive(cases[i].program, false, &space);
        int v = wpk_cuda_space_variant(&space, cases[i].algorithm);
        struct wpk_candidate c = wpk_cuda_space_candidate(&space, v, cases[i].genes);
        struct wpk_candidate expected = wpk_cuda_space_candidate(&space, v, cases[i].settled);
        wpk_cuda_settle(&space, &c);
        if (!wpk_candidate_equal(&c, &expected)) {
            fail_msg("%s", cases[i].genes);
        }
        wpk_space_fini(&space);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_has_blocks_threads_and_points),
        cmocka_unit_test(parts_and_depth_are_written_into_the_nest),
        cmocka_unit_test(blocks_run_in_groups_of_rows),
        cmocka_unit_test(rows_compute_what_they_read),
        cmocka_unit_test(a_box_is_copied_for_a_step),
        cmocka_unit_test(transforms_before_products_write_planes),
        cmocka_unit_test(transforms_behind_products_read_them_in_shared_memory),
        cmocka_unit_test(drawn_candidates_have_nests),
        cmocka_unit_test(blocks_cover_the_whole_root),
        cmocka_unit_test(idle_genes_are_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
