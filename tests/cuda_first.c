/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates that a GPU's space begins with. None of them is run. */
#include "ir/notation/notation.h"
#include "tests/cuda_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CANDIDATES 16
#define DRAWS 100

/* Of a large product the first guess stages both operands and has larger tiles than one result a
 * thread; of a small one the blocks are smaller, so that there are more of them. */
static void test_first_guess(void **state)
{
    (void)state;
    static const char large[] = "input A f32[4096,4096]\ninput B f32[4096,4096]\n"
                                "output Y f32[4096,4096]\n"
                                "Y[i,j] = sum.f32(k:4096) A[i,k] * B[k,j]\n";
    static const char small[] = "input A f32[64,48]\ninput B f32[48,96]\noutput Y f32[64,96]\n"
                                "Y[i,j] = sum.f32(k:48) A[i,k] * B[k,j]\n";
    struct wpk_schedule schedule;
    struct wpk_space space;
    struct wpk_candidate best;
    struct wpk_rng rng;
    char text[WPK_CANDIDATE_TEXT_MAX];
    int count = 0;
    wpk_cuda_derive(large, false, &space);
    assert_int_equal(wpk_space_construct(&space, &best, 1, &count), WPK_OK);
    assert_int_equal(wpk_candidate_encode(&space, &best, text, sizeof(text)), WPK_OK);
    assert_non_null(strstr(text, "Y.block.i=128 Y.block.j=128 Y.thread.i=8 Y.thread.j=8"));
    assert_non_null(strstr(text, "Y.stage.A_t=shared4 Y.depth=2")); /* all genes are tried */
    /* rows that are neighbours, and four neighbours of a row: no conflicts of banks, moves of 16 */
    assert_non_null(strstr(text, "Y.virtual.i=8 Y.virtual.j=2"));
    assert_non_null(strstr(text, "Y.order=16")); /* a wave of blocks is as high as it is wide */
    wpk_rng_seed(&rng, 9);
    for (int i = 0; i < CANDIDATES; i++) {
        assert_int_equal(wpk_space_draw(&space, &rng, &best), WPK_OK);
        wpk_cuda_lower(&space, &best, &schedule);
        wpk_schedule_fini(&schedule);
    }
    wpk_space_fini(&space);
    wpk_cuda_derive(small, false, &space);
    assert_int_equal(wpk_space_construct(&space, &best, 1, &count), WPK_OK);
    assert_int_equal(wpk_candidate_encode(&space, &best, text, sizeof(text)), WPK_OK);
    assert_non_null(strstr(text, "Y.block.i=16 Y.block.j=16"));
    wpk_space_fini(&space);
}

/* Random candidates are different ones: few draws end as the neutral candidate, because no redrawn
 * gene made them legal. */
static void test_draws(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_candidate drawn[DRAWS];
    struct wpk_rng rng;
    int distinct = 0;
    wpk_rng_seed(&rng, 7);
    wpk_cuda_derive("input A f32[33,40]\nconstant B f32[40,24]\noutput Y f32[33,24]\n"
                    "Y[i,j] = sum.f32(k:40) A[i,k] * B[k,j]\n",
                    false, &space);
    for (int i = 0; i < DRAWS; i++) {
        bool is_new = true;
        assert_int_equal(wpk_space_draw(&space, &rng, &drawn[i]), WPK_OK);
        for (int other = 0; other < i; other++) {
            is_new = is_new && !wpk_candidate_equal(&drawn[i], &drawn[other]);
        }
        distinct += is_new;
    }
    assert_true(distinct >= DRAWS * 9 / 10);
    wpk_space_fini(&space);
}

/* Genes that decide nothing beside others make no further candidates. */
static void expect_different(const struct wpk_space *space)
{
    struct wpk_candidate made[CANDIDATES];
    uint64_t hash[CANDIDATES];
    int count = 0;
    assert_int_equal(wpk_space_construct(space, made, CANDIDATES, &count), WPK_OK);
    for (int i = 0; i < count; i++) {
        struct wpk_schedule schedule;
        wpk_cuda_lower(space, &made[i], &schedule);
        hash[i] = wpk_nest_hash(schedule.nest);
        for (int other = 0; other < i; other++) {
            assert_true(hash[other] != hash[i]);
        }
        wpk_schedule_fini(&schedule);
    }
}

/* The first kernel of rows is one launch whose threads share the terms, 16 bytes at a time; strict
 * sums have their terms in the order in which they are written. */
static void test_first_rows(void **state)
{
    (void)state;
    static const struct {
        const char *text, *word;
    } rows[] = {
        {"input X f32[4096,1024]\nintermediate M f32[4096]\nintermediate E f32[4096,1024]\n"
         "intermediate D f32[4096]\noutput Y f32[4096,1024]\nM[i] = max.f32(k:1024) X[i,k]\n"
         "E[i,k] = exp(X[i,k] - M[i])\nD[i] = sum.f32(k:1024) E[i,k]\nY[i,k] = E[i,k] / D[i]\n",
         "Y.rows=1 Y.threads=64"},
        {"input A f32[4096,4096]\ninput V f32[4096]\noutput Y f32[4096]\n"
         "Y[i] = sum.f32(k:4096) A[i,k] * V[k]\n",
         "Y.share.k=8"},
        {"input X f32[16,7,7,2048]\noutput Y f32[16,2048]\nY[n,c] = sum.f32(h:7,w:7) X[n,h,w,c]\n",
         "Y.share.hw=16"},
    };
    static struct wpk_cuda_subject k; /* large */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wpk_space space;
        struct wpk_candidate best;
        char text[WPK_CANDIDATE_TEXT_MAX];
        int count = 0;
        wpk_cuda_derive(rows[i].text, false, &space);
        assert_int_equal(wpk_space_construct(&space, &best, 1, &count), WPK_OK);
        assert_int_equal(wpk_candidate_encode(&space, &best, text, sizeof(text)), WPK_OK);
        if (strstr(text, rows[i].word) == NULL) {
            fail_msg("%s lacks %s", text, rows[i].word);
        }
        wpk_cuda_lower(&space, &best, &k.schedule);
        wpk_cuda_subject_print(&k);
        assert_int_equal(k.plan.step_count, 1);
        assert_non_null(strstr(wpk_buf_text(&k.text), "= *(const float4 *)&s0_"));
        wpk_cuda_subject_fini(&k);
        expect_different(&space);
        wpk_space_fini(&space);
        wpk_cuda_derive(rows[i].text, true, &space);
        assert_int_equal(wpk_space_construct(&space, &best, 1, &count), WPK_OK);
        assert_int_equal(wpk_candidate_encode(&space, &best, text, sizeof(text)), WPK_OK);
        assert_null(strstr(text, ".share."));
        wpk_space_fini(&space);
    }
}

/* Winograd, which the model puts first, leaves a place to the implicit product. */
static void test_algorithms(void **state)
{
    (void)state;
    static const char convolution[] =
        "input X f32[1,64,56,56]\nconstant W f32[64,64,3,3]\ninput Z f32[1,64,56,56]\n"
        "intermediate T f32[1,64,56,56]\noutput Y f32[1,64,56,56]\n"
        "T[n,k,y,x] = sum.f32(c:64,r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n"
        "Y[n,k,y,x] = max(T[n,k,y,x] + Z[n,k,y,x], 0)\n";
    struct wpk_space space;
    struct wpk_candidate made[12];
    int count = 0, products = 0, winograd = 0;
    wpk_cuda_derive(convolution, false, &space);
    assert_int_equal(wpk_space_construct(&space, made, 12, &count), WPK_OK);
    assert_int_equal(count, 12);
    for (int i = 0; i < count; i++) {
        char text[WPK_CANDIDATE_TEXT_MAX];
        assert_int_equal(wpk_candidate_encode(&space, &made[i], text, sizeof(text)), WPK_OK);
        products += strstr(text, "algorithm=im2col") != NULL;
        winograd += strstr(text, "algorithm=winograd") != NULL;
    }
    assert_true(products > 0 && winograd > 0);
    wpk_space_fini(&space);
}

#define CONVOLUTION(c, size, k)                                                                    \
    "input X f32[1," c "," size "," size "]\nconstant W f32[" k "," c                              \
    ",3,3]\nintermediate T f32[1," k "," size "," size "]\noutput Y f32[1," k "," size "," size    \
    "]\nT[n,k,y,x] = sum.f32(c:" c ",r:3,s:3) X[n,c,y+r-1,x+s-1] * W[k,c,r,s]\n"                   \
    "Y[n,k,y,x] = max(T[n,k,y,x], 0)\n"

/* The first candidate of an algorithm, whose text has the word. */
static void expect_first(const char *program, const char *algorithm, const char *word)
{
    struct wpk_space space;
    struct wpk_candidate best;
    struct wpk_diag diag = {0};
    char text[WPK_CANDIDATE_TEXT_MAX];
    int count = 0;
    wpk_cuda_derive(program, false, &space);
    assert_int_equal(wpk_space_pin(&space, "algorithm", algorithm, &diag), WPK_OK);
    assert_int_equal(wpk_space_pin(&space, "layout", "asis", &diag), WPK_OK);
    assert_int_equal(wpk_space_construct(&space, &best, 1, &count), WPK_OK);
    assert_int_equal(wpk_candidate_encode(&space, &best, text, sizeof(text)), WPK_OK);
    if (strstr(text, word) == NULL) {
        fail_msg("%s lacks %s", text, word);
    }
    wpk_space_fini(&space);
}

#define WINDOWS_OF_SEVEN                                                                           \
    "input X f32[1,3,224,224]\nconstant W f32[64,3,7,7]\noutput Y f32[1,64,112,112]\n"             \
    "Y[n,k,y,x] = sum.f32(c:3,r:7,s:7) X[n,c,2*y+r-3,2*x+s-3 | 0] * "                              \
    "W[k,c,r,s]\n"

/* Windows of small images are read out of a box, unless terms have to be added in the order in
 * which they are written. Threads with neighbours of a row store whole sectors: eight have 64 of
 * its 112 elements, where 14 would have all. Winograd with tiles of 2 x 2 is one launch, with tiles
 * of 6 x 6 three: a block has no memory for 64 points of 25 tiles. */
static void test_first_windows(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_diag diag = {0};
    expect_first(CONVOLUTION("512", "7", "512"), "direct", "Y.stage.X_b_t=box");
    expect_first(WINDOWS_OF_SEVEN, "direct", "Y.block.x=64 Y.thread.k=8 Y.thread.x=8");
    expect_first(CONVOLUTION("64", "56", "64"), "winograd(2)", "T_m.at=Y T_v.at=T_m");
    expect_first(CONVOLUTION("128", "28", "128"), "winograd(6)", "T_m.at=root T_v.at=root");
    wpk_cuda_derive(CONVOLUTION("512", "7", "512"), true, &space);
    assert_int_equal(wpk_space_pin(&space, "Y.stage.X_b_t", "shared", &diag), WPK_OK);
    wpk_space_fini(&space);
    wpk_cuda_derive(CONVOLUTION("512", "7", "512"), true, &space);
    assert_int_not_equal(wpk_space_pin(&space, "Y.stage.X_b_t", "box", &diag), WPK_OK);
    wpk_space_fini(&space);
}

/* Both operands of a gradient of weights are transformed, and one has the points inside of its
 * terms: what the rules take for the memory of a block is what it has. */
static void test_joined_memory(void **state)
{
    (void)state;
    static struct wpk_cuda_subject k; /* large */
    struct wpk_space space;
    struct wpk_candidate best;
    struct wpk_diag diag = {0};
    int count = 0;
    wpk_cuda_derive("input X f32[4,6,10,10]\ninput D f32[4,5,8,8]\noutput G f32[5,6,3,3]\n"
                    "G[k,c,r,s] = sum.f32(n:4,y:8,x:8) X[n,c,y+r,x+s] * D[n,k,y,x]\n",
                    false, &space);
    assert_int_equal(wpk_space_pin(&space, "algorithm", "winograd(3)", &diag), WPK_OK);
    assert_int_equal(wpk_space_pin(&space, "layout", "asis", &diag), WPK_OK);
    assert_int_equal(wpk_space_pin(&space, "G_r_m.at", "G", &diag), WPK_OK);
    assert_int_equal(wpk_space_construct(&space, &best, 1, &count), WPK_OK);
    wpk_cuda_lower(&space, &best, &k.schedule);
    wpk_cuda_subject_print(&k);
    wpk_cuda_subject_fini(&k);
    wpk_space_fini(&space);
}

/* An operand that is read through a window is staged, too, and a constant; types that the back end
 * does not compute with have no space. */
static void test_other_programs(void **state)
{
    (void)state;
    static const char window[] = "input X f32[18,16]\nconstant W f32[8,16,3]\noutput Y f32[8,16]\n"
                                 "Y[c,x] = sum.f32(k:16,r:3) X[x+r,k] * W[c,k,r]\n";
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_device_emulate("sm_90", 132, &options.device, &diag), WPK_OK);
    assert_int_equal(
        wpk_program_parse("input X f64[8]\noutput Y f64[8]\nY[i] = exp(X[i])\n", &program, &diag),
        WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, &diag), WPK_EUNSUPPORTED);
    wpk_program_fini(&program);
    wpk_cuda_derive(window, false, &space);
    assert_int_equal(wpk_space_variant(&space, 0)->gene_count, 14);
    wpk_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_guess),    cmocka_unit_test(test_draws),
        cmocka_unit_test(test_first_rows),     cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_first_windows),  cmocka_unit_test(test_joined_memory),
        cmocka_unit_test(test_other_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
