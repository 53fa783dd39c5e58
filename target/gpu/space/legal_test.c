/* SPDX-License-Identifier: Apache-2.0 */
/* Which candidates are legal, and the reason of those that are not. */
#include "target/gpu/space/template.h"

#include "search/genes.h"
#include "tests/cuda_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

struct sample {
    const char *genes, *why; /* NULL: it is legal */
};

static void check(const char *program, const char *algorithm, int group,
                  const struct sample *samples, size_t count)
{
    struct wpk_space space;
    wpk_cuda_space_derive(program, false, &space);
    int v = wpk_cuda_space_variant(&space, algorithm);
    for (size_t i = 0; i < count; i++) {
        struct wpk_candidate c = wpk_cuda_space_candidate(&space, v, samples[i].genes);
        const char *why = "legal";
        bool legal = wpk_cuda_is_legal(&space, &c, group, &why);
        if (legal != (samples[i].why == NULL) || (!legal && strstr(why, samples[i].why) == NULL)) {
            fail_msg("%s\n%s, not %s", samples[i].genes, why,
                     samples[i].why != NULL ? samples[i].why : "legal");
        }
        assert_true(legal == wpk_cuda_is_legal(&space, &c, group, NULL)); /* nobody asks why */
    }
    wpk_space_fini(&space);
}

#define CHECK(program, algorithm, group, samples)                                                  \
    check(program, algorithm, group, samples, sizeof(samples) / sizeof(samples[0]))

static void the_tiles_of_a_product_have_limits(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"Y.block.i=32 Y.block.j=32", NULL}, /* 1024 threads */
        {"Y.block.i=64 Y.block.j=32", "too many threads"},
        {"Y.block.i=64 Y.block.j=32 Y.thread.j=2", NULL},
        {"Y.block.i=16 Y.block.j=16 Y.thread.i=2 Y.thread.j=4", NULL}, /* one warp */
        {"Y.block.i=16 Y.block.j=16 Y.thread.i=4 Y.thread.j=4", "less than a warp"},
        {"Y.block.i=128 Y.block.j=128 Y.thread.i=4 Y.thread.j=4 Y.virtual.i=8",
         "virtual threads do not divide"},
        {"Y.block.i=128 Y.block.j=64 Y.thread.i=8 Y.thread.j=8", NULL},
        {"Y.block.i=128 Y.block.j=128 Y.thread.i=4 Y.thread.j=4", NULL}, /* 1024 * 64 registers */
        {"Y.block.i=128 Y.block.j=128 Y.thread.i=2 Y.thread.j=8", "do not fit the registers"},
    };
    CHECK(PRODUCT, "direct", 0, samples);
}

static void parts_and_depths_have_whole_steps(void **state)
{
    (void)state;
#define TILE "Y.block.i=64 Y.block.j=64 Y.thread.i=4 Y.thread.j=4 "
    static const struct sample samples[] = {
        {TILE "Y.step.k=32 Y.parts.k=2", NULL},
        {TILE "Y.step.k=32 Y.parts.k=4", "the steps do not divide a part's terms"},
        {TILE "Y.step.k=8 Y.parts.k=8", NULL},
        {TILE "Y.depth=2", "no operand is staged"},
        {TILE "Y.depth=2 Y.stage.A_t=shared", NULL},
        {TILE "Y.step.k=32 Y.depth=3 Y.stage.A_t=shared", "fewer than the depth"},
        {TILE "Y.step.k=16 Y.depth=3 Y.stage.A_t=shared", NULL},
        {TILE "Y.step.k=16 Y.parts.k=2 Y.depth=3 Y.stage.A_t=shared", "fewer than the depth"},
    };
    CHECK(PRODUCT, "direct", 0, samples);
}

static void copies_keep_to_16_bytes(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {TILE "Y.stage.A_t=shared Y.padding.A_t=1", NULL},
        {TILE "Y.stage.A_t=shared4 Y.padding.A_t=1", "no multiples of 16 bytes"},
        {TILE "Y.stage.A_t=shared4 Y.padding.A_t=4", NULL},
        {TILE "Y.copies=async", "no operand is copied as it is"},
        {TILE "Y.copies=async Y.stage.B_t=shared", NULL},
        {TILE "Y.step.k=16 Y.unroll.k=16 Y.stage.B_t=shared", NULL},
        {TILE "Y.step.k=8 Y.unroll.k=16 Y.stage.B_t=shared", "do not divide a step"},
        {"Y.block.i=64 Y.block.j=64 Y.thread.i=8 Y.thread.j=8 Y.step.k=32 Y.unroll.k=32 "
         "Y.stage.B_t=shared",
         "too much code"},
    };
    CHECK(PRODUCT, "direct", 0, samples);
}

static void a_block_has_48_kib_of_shared_memory(void **state)
{
    (void)state;
#define LARGE                                                                                      \
    "Y.block.i=128 Y.block.j=128 Y.thread.i=8 Y.thread.j=8 Y.stage.A_t=shared Y.stage.B_t=shared "
    static const struct sample samples[] = {
        {LARGE "Y.step.k=16 Y.depth=3", NULL}, /* 3 * 256 * 16 * 4 is just that */
        {LARGE "Y.step.k=16 Y.depth=3 Y.padding.A_t=1", "do not fit the shared memory"},
        {LARGE "Y.step.k=32", NULL},
        {LARGE "Y.step.k=32 Y.depth=2", "do not fit the shared memory"},
    };
    CHECK(PRODUCT, "direct", 0, samples);
}

static void a_box_stands_beside_a_staged_operand(void **state)
{
    (void)state;
#define BOX "Y.block.k=16 Y.block.x=28 Y.thread.k=2 Y.thread.x=7 Y.stage.X_b_t=box "
    static const struct sample samples[] = {
        {BOX, "beside a window's box the other operand is staged"},
        {BOX "Y.stage.W_t_t=shared", NULL},
        {BOX "Y.stage.W_t_t=shared Y.together.y=4", NULL},
        {BOX "Y.stage.W_t_t=shared Y.depth=2", NULL},
        {BOX "Y.stage.W_t_t=shared Y.step.c=16 Y.depth=2", "fewer than the depth"},
    };
    CHECK(CONVOLUTION, "direct", 0, samples);
}

static void rows_share_their_threads_alike(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"Y.rows=1 Y.threads=512", NULL},
        {"Y.rows=2 Y.threads=512", NULL},
        {"Y.rows=4 Y.threads=512", "too many threads"},
        {"Y.rows=4 Y.threads=16", NULL},
        {"Y.rows=8 Y.threads=128", NULL},
    };
    CHECK(SOFTMAX, "direct", 2, samples);
}

/* A row of 48 terms has 32 threads of one each; 64 of them would be idle. */
static void threads_share_no_more_terms_than_there_are(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"Y.share.k=32 Y.parts.k=1", NULL},
        {"Y.share.k=16 Y.parts.k=2", "do not divide them"}, /* 24 terms, 16 threads */
        {"Y.share.k=8 Y.parts.k=2 Y.block.j=4", NULL},
        {"Y.share.k=32 Y.parts.k=2", "do not divide them"},
    };
    CHECK("input A f32[48,16]\noutput Y f32[16]\nY[j] = sum(k:48) A[k,j]\n", "direct", 0, samples);
}

static void blocks_that_transform_have_whole_tiles(void **state)
{
    (void)state;
#define JOINED "Y_r_m.at=Y Y_r_m.block.k=8 "
    static const struct sample samples[] = {
        {JOINED "Y_r_m.block.tytx=14 Y_r_m.thread.tytx=2", NULL},
        {JOINED "Y_r_m.block.tytx=16 Y_r_m.thread.tytx=2", "no whole tiles"},
        {JOINED "Y_r_m.block.tytx=14 Y_r_m.thread.tytx=2 Y_r_m.parts.c=2",
         "all products at a time"},
        {"Y_r_v.at=Y_r_m Y_r_m.block.k=8 Y_r_m.block.tytx=14 Y_r_m.depth=2 "
         "Y_r_m.thread.k=8 Y_r_m.thread.tytx=7",
         "transformed, not copied"},
        {"Y_r_v.at=Y_r_m Y_r_m.block.k=8 Y_r_m.block.tytx=14", "too many threads"}, /* 36 * 112 */
    };
    CHECK(CONVOLUTION, "winograd(4)", 1, samples);
}

static void transforms_have_a_warp_or_all_of_an_axis(void **state)
{
    (void)state;
    static const struct sample samples[] = {
        {"Y.block.k=16 Y.block.x=28", NULL}, /* 16 * 7 threads */
        {"Y.block.k=1 Y.block.x=28", NULL},  /* seven threads have all of x */
    };
    CHECK(CONVOLUTION, "winograd(4)", 2, samples);
}

static void halide_takes_neither_parts_nor_copies_ahead(void **state)
{
    (void)state;
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    struct wpk_program program;
    struct wpk_space space;
    static const struct {
        const char *genes;
        bool ours, halides;
    } cases[] = {
        {TILE "by=%s", true, true},
        {TILE "Y.parts.k=2 by=%s", true, false},
        {TILE "Y.stage.A_t=shared by=%s", true, true},
        {TILE "Y.stage.A_t=shared Y.depth=2 by=%s", true, false},
        {TILE "Y.stage.A_t=shared Y.copies=async by=%s", true, false},
    };
    wpk_cuda_space_parse(PRODUCT, &program);
    assert_int_equal(wpk_device_emulate("sm_90", 132, &options.device, NULL), WPK_OK);
    options.back_ends = 1U << WPK_BACK_END_cuda | 1U << WPK_BACK_END_halide_cuda;
    assert_int_equal(wpk_space_derive(&program, &options, &space, NULL), WPK_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int halide = 0; halide < 2; halide++) {
            struct wpk_buf genes = {0};
            const char *why = NULL;
            wpk_buf_append(&genes, cases[i].genes, strlen(cases[i].genes) - 2);
            wpk_buf_append_text(&genes, halide ? "halide-cuda" : "cuda");
            struct wpk_candidate c = wpk_cuda_space_candidate(&space, 0, wpk_buf_text(&genes));
            bool legal = wpk_cuda_is_legal(&space, &c, 0, &why);
            if (legal != (halide ? cases[i].halides : cases[i].ours)) {
                fail_msg("%s: %s", wpk_buf_text(&genes), legal ? "legal" : why);
            }
            wpk_buf_fini(&genes);
        }
    }
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

/* A gene that decides nothing needs its first choice only: if it has another one, its number in its
 * group is told. */
static void candidates_with_idle_genes_are_skipped(void **state)
{
    (void)state;
    struct wpk_space space;
    wpk_cuda_space_derive(CONVOLUTION, false, &space);
    static const struct {
        const char *algorithm;
        int group;
        const char *genes, *gene; /* NULL: nothing is skipped */
    } cases[] = {
        {"direct", 0, "", NULL},
        {"direct", 0, "Y.together.y=2", "Y.stage.X_b_t"}, /* no box has the rows */
        {"direct", 0, BOX, "Y.stage.W_t_t"},
        {"direct", 0, BOX "Y.stage.W_t_t=shared Y.together.y=2", NULL},
        {"winograd(4)", 1, "Y_r_m.together.ab=2", "Y_r_m.together.ab"},
        {"winograd(4)", 1, "Y_r_m.together.ab=2 Y_r_m.at=Y", NULL},
        {"winograd(4)", 1, "Y_r_m.stage.Y_r_v_t=shared Y_r_m.at=Y", "Y_r_m.stage.Y_r_v_t"},
        {"winograd(4)", 1, "Y_r_m.stage.Y_r_v_t=shared", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int v = wpk_cuda_space_variant(&space, cases[i].algorithm);
        const struct wpk_variant *variant = &space.variants[v];
        struct wpk_candidate c = wpk_cuda_space_candidate(&space, v, cases[i].genes);
        int skipped = wpk_cuda_skip(&space, &c, cases[i].group);
        int gene = wpk_cuda_kept_of(variant)->first[cases[i].group] + skipped;
        if ((skipped > 0) != (cases[i].gene != NULL) ||
            (skipped > 0 && strcmp(variant->genes[gene].name, cases[i].gene) != 0)) {
            fail_msg("%s: %d, %s", cases[i].genes, skipped, variant->genes[gene].name);
        }
    }
    wpk_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tiles_of_a_product_have_limits),
        cmocka_unit_test(parts_and_depths_have_whole_steps),
        cmocka_unit_test(copies_keep_to_16_bytes),
        cmocka_unit_test(a_block_has_48_kib_of_shared_memory),
        cmocka_unit_test(a_box_stands_beside_a_staged_operand),
        cmocka_unit_test(rows_share_their_threads_alike),
        cmocka_unit_test(threads_share_no_more_terms_than_there_are),
        cmocka_unit_test(blocks_that_transform_have_whole_tiles),
        cmocka_unit_test(transforms_have_a_warp_or_all_of_an_axis),
        cmocka_unit_test(halide_takes_neither_parts_nor_copies_ahead),
        cmocka_unit_test(candidates_with_idle_genes_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
