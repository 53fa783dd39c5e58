/* SPDX-License-Identifier: Apache-2.0 */
/* Nests written by hand whose threads share the terms of an element, or have tiles in pieces. */
#include "nest/nest.h"
#include "tests/cuda_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD WPK_CUDA_HEAD

/* ---- products with a vector: rows of terms */

#define ROWS_OF(m, k)                                                                              \
    HEAD "layout A f32[" m "," k "] 0,1\nlayout V f32[" k "] 0\nlayout Y f32[" m "] 0\nprogram\n"  \
         "input A f32[" m "," k "]\ninput V f32[" k "]\nintermediate W f32[" k                     \
         "]\nintermediate T f32[" m "]\noutput Y f32[" m "]\nW[k] = V[k]\nT[i] = sum.f32(k:" k     \
         ") A[i,k] * W[k]\nY[i] = max(T[i], 0)\nend\n"

/* Four rows a block, a warp or so many threads a row. */
#define WARP_A_ROW(threads, terms)                                                                 \
    "stage Y root\nblock.x i step 4 shift\nthread.y i.1\n"                                         \
    "stage T in Y i\nscope register\nextent i 4\ninit\nthread.y i\n"                               \
    "update atomic\nserial k step " threads " " terms "\nthread.y i\nthread.x k.1\n"               \
    "stage W inline\n"

#define BLOCK_A_ROW(threads, terms)                                                                \
    "stage Y root\nblock.x i\n"                                                                    \
    "stage T in Y i\nscope register\nextent i 1\ninit\n"                                           \
    "update atomic\nserial k step " threads " " terms "\nthread.x k.1\nstage W inline\n"

static void test_warps(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    wpk_cuda_expect(ROWS_OF("13", "200"), WARP_A_ROW("32", "guard"), 0, &counts);
    assert_null(strstr(wpk_cuda_expected, "__syncthreads"));
    assert_non_null(strstr(wpk_cuda_expected, "__shfl_xor_sync"));
    wpk_cuda_expect(ROWS_OF("13", "200"), WARP_A_ROW("8", "exact"), 0, &counts);
    assert_null(strstr(wpk_cuda_expected, "__syncthreads"));
    /* a thread has two rows, and two neighbouring terms of each */
    wpk_cuda_expect(ROWS_OF("16", "200"),
                    "stage Y root\nblock.x i step 8 exact\nthread.y i.1 step 2 exact\nunroll i.2\n"
                    "stage T in Y i\nscope register\nextent i 8\ninit\nthread.y i step 2 exact\n"
                    "unroll i.1\nupdate atomic\nserial k step 32 guard\nthread.y i step 2 exact\n"
                    "thread.x k.1 step 2 exact\nunroll k.2\nunroll i.1\nstage W inline\n",
                    0, &counts);
}

static void test_blocks(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    wpk_cuda_expect(ROWS_OF("3", "1000"), BLOCK_A_ROW("128", "guard"), 0, &counts);
    wpk_cuda_expect(ROWS_OF("3", "2100"), BLOCK_A_ROW("1024", "guard"), 0, &counts);
    /* two warps a row, and threads whose number is no power of two */
    wpk_cuda_expect(ROWS_OF("13", "200"), WARP_A_ROW("64", "guard"), 0, &counts);
    wpk_cuda_expect(ROWS_OF("13", "200"), WARP_A_ROW("24", "guard"), 0, &counts);
    /* rows one after the other: what threads leave is taken before the next row */
    wpk_cuda_expect_barriers(ROWS_OF("8", "256"),
                             "stage Y root\nblock.x i step 4 exact\nserial i.1\n"
                             "stage T in Y i.1\nscope register\nextent i 1\ninit\n"
                             "update atomic\nserial k step 64 exact\nthread.x k.1\n"
                             "stage W inline\n",
                             2);
    wpk_cuda_expect_barriers(ROWS_OF("8", "256"), BLOCK_A_ROW("64", "exact"), 1);
    /* an operand is staged for all rows */
    wpk_cuda_expect_barriers(ROWS_OF("8", "256"),
                             "stage Y root\nblock.x i step 4 exact\nthread.y i.1\n"
                             "stage T in Y i\nscope register\nextent i 4\ninit\nthread.y i\n"
                             "update atomic\nserial k step 64 exact\nthread.y i\nserial k.1 step "
                             "16 exact\nthread.x k.2\n"
                             "stage W in T k\nscope shared\nthread.x k\n",
                             2);
}

/* Eight blocks a row, of which each has its terms in 64 threads. */
static void test_blocks_and_threads(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    wpk_cuda_expect(ROWS_OF("5", "1024"),
                    "stage Y root\nblock.x i\n"
                    "stage T in Y i\nscope register\nextent i 1\ninit\nupdate atomic\n"
                    "block.x k step 128 exact\nserial k.1 step 64 exact\nthread.x k.2\n"
                    "stage W inline\n",
                    0, &counts);
    assert_non_null(strstr(wpk_cuda_expected, "% 5], 7u);"));
    wpk_cuda_expect_barriers(
        ROWS_OF("9", "1024"),
        "stage Y root\nblock.x i step 4 shift\nthread.y i.1\n"
        "stage T in Y i\nscope register\nextent i 4\ninit\nthread.y i\nupdate atomic\n"
        "block.x k step 128 exact\nserial k.1 step 64 guard\nthread.y i\nthread.x k.2\n"
        "stage W inline\n",
        3);
}

/* ---- boxes that begin and end at multiples */

#define MOVED                                                                                      \
    HEAD "layout X f32[6,%d] 0,1\nlayout Y f32[6,%d] 0,1\nprogram\ninput X f32[6,%d]\n"            \
         "intermediate S f32[6,%d]\noutput Y f32[6,%d]\nS[i,j] = X[i,j-3 | 0]\n"                   \
         "Y[i,j] = S[i,j+1] + S[i,j+4]\nend\n"

/* A block of 24 results reads 27 elements, from one behind a multiple of 8 on. The last block moves
 * inwards: its elements begin anywhere. */
static void test_aligned_boxes(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    static const struct {
        int extent;
        const char *shared;
    } cases[] = {{72, "shared1[32]"}, {70, "shared1[40]"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char head[512];
        int extent = cases[i].extent;
        snprintf(head, sizeof(head), MOVED, extent, extent, extent, extent + 8, extent);
        wpk_cuda_expect(head,
                        "stage Y root\nblock.y i\nblock.x j step 24 shift\nthread.x j.1\n"
                        "stage S in Y j\nscope shared\nalign j 8\nthread.x j\n",
                        0, &counts);
        if (strstr(wpk_cuda_expected, cases[i].shared) == NULL) {
            fail_msg("no %s in\n%s", cases[i].shared, wpk_cuda_expected);
        }
    }
}

/* ---- columns of terms */

static void test_columns(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    static const char columns[] =
        HEAD "layout X f32[70,40] 0,1\nlayout Y f32[70,40] 0,1\nprogram\ninput X f32[70,40]\n"
             "intermediate T f32[40]\nintermediate M f32[40]\noutput Y f32[70,40]\n"
             "T[j] = sum.f32(k:70) X[k,j]\nM[j] = T[j] * 0.5\nY[i,j] = X[i,j] - M[j]\nend\n";
    static const char head[] =
        "stage Y root\nblock.x j step 16 shift\nserial i step 8 guard\nthread.y i.1\n"
        "thread.x j.1\nstage M in Y j\nscope register\nthread.x j\n"
        "stage T in Y j\nscope register\nextent j 16\ninit\nthread.x j\nupdate atomic\n";
    char nest[512];
    snprintf(nest, sizeof(nest), "%sserial k step 8 guard\nthread.y k.1\nthread.x j\n", head);
    wpk_cuda_expect(columns, nest, 0, &counts);
    assert_non_null(strstr(wpk_cuda_expected, "__shfl_xor_sync"));
    /* threads that Y has not */
    snprintf(nest, sizeof(nest), "%sserial k step 64 guard\nthread.y k.1\nthread.x j\n", head);
    wpk_cuda_expect(columns, nest, 0, &counts);
}

/* ---- rows of several stages */

#define SOFTMAX                                                                                    \
    HEAD "layout X f32[5,40] 0,1 pad 0:0,1:2\nlayout Y f32[5,40] 0,1\nprogram\n"                   \
         "input X f32[5,40] pad 0:0,1:2\nintermediate M f32[5]\nintermediate E f32[5,40]\n"        \
         "intermediate S f32[5]\noutput Y f32[5,40]\nM[i] = max.f32(k:40) X[i,k]\n"                \
         "E[i,j] = exp(X[i,j] - M[i])\nS[i] = sum.f32(k:40) E[i,k]\nY[i,j] = E[i,j] / S[i]\nend\n"

/* Rows of `rows` warps' threads; exponentials are computed twice, or kept in shared memory. */
static void test_softmax(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    static const char twice[] =
        "stage Y root\nblock.x i step 2 shift\nthread.y i.1\nserial j step 32 guard\nthread.x j.1\n"
        "stage S in Y i\nscope register\ninit\nthread.y i\nupdate atomic\nthread.y i\n"
        "serial k step 32 guard\nthread.x k.1\nstage E inline\n"
        "stage M in Y i\nscope register\ninit\nthread.y i\nupdate atomic\nthread.y i\n"
        "serial k step 32 guard\nthread.x k.1\n";
    static const char kept[] = "stage Y root\nblock.x i\nthread.x j\n"
                               "stage S in Y i\nscope register\ninit\nupdate atomic\nthread.x k\n"
                               "stage E in Y i\nscope shared\nthread.x j step 4 exact\nserial j.1\n"
                               "stage M in Y i\nscope register\ninit\nupdate atomic\nthread.x k\n";
    wpk_cuda_expect(SOFTMAX, twice, 1e-5, &counts);
    assert_null(strstr(wpk_cuda_expected, "__syncthreads"));
    wpk_cuda_expect(SOFTMAX, kept, 1e-5, &counts);
}

/* ---- virtual threads */

/* Tiles of threads are in pieces: rows that are 8 apart, and four columns twice. Eight rows of a
 * padded copy are neighbours: neither they nor their readers have conflicts of banks. */
static void test_virtual(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    wpk_cuda_expect(
        HEAD "layout A f32[64,48] 0,1\nlayout B f32[48,64] 0,1\nlayout Y f32[64,64] 0,1\nprogram\n"
             "input A f32[64,48]\ninput B f32[48,64]\nintermediate R f32[64,48]\n"
             "intermediate S f32[48,64]\nintermediate T f32[64,64]\noutput Y f32[64,64]\n"
             "R[i,k] = A[i,k]\nS[k,j] = B[k,j]\nT[i,j] = sum.f32(k:48) R[i,k] * S[k,j]\n"
             "Y[i,j] = max(T[i,j], 0)\nend\n",
        "stage Y root\nblock.y i step 32 exact\nblock.x j step 32 exact\n"
        "unroll i.1 step 8 exact\nunroll j.1 step 16 exact\nthread.y i.2\nthread.x j.2 step 4 "
        "exact\nlanes j.3\nstage T in Y j\nscope register\nextent i 32 j 32\n"
        "init\nunroll i step 8 exact\nunroll j step 16 exact\nthread.y i.1\n"
        "thread.x j.1 step 4 exact\nunroll j.2\nupdate\nserial k step 8 exact\n"
        "unroll k.1\nunroll i step 8 exact\nunroll j step 16 exact\nthread.y i.1\n"
        "thread.x j.1 step 4 exact\nunroll j.2\n"
        "stage S in T k\nscope shared\ndepth 2\nserial k step 4 exact\nthread.y k.1\n"
        "thread.x j step 4 exact\nlanes j.1\n"
        "stage R in T k\nscope shared\npadded 4\ndepth 2\nserial i step 16 exact\n"
        "thread.z i.1 step 8 exact\nthread.y k step 4 exact\nthread.x i.2\nlanes k.1\n",
        0, &counts);
    assert_int_equal(counts.shared_wavefronts, counts.shared_least);
    assert_int_equal(counts.global_sectors, counts.global_least);
}

/* Candidates of a product and of a stage without a reduction, with virtual threads along i, j. */
#define PRODUCT                                                                                    \
    "input A f32[64,32]\ninput B f32[32,64]\noutput Y f32[64,64]\n"                                \
    "Y[i,j] = sum.f32(k:32) A[i,k] * B[k,j]\n"
#define PRODUCT_GENES                                                                              \
    "cuda-13 algorithm=direct layout=asis Y.block.i=64 Y.block.j=64 Y.thread.i=8 Y.thread.j=8 "    \
    "Y.step.k=16 Y.parts.k=1 Y.stage.B_t=shared4 Y.stage.A_t=shared4 Y.depth=2 "                   \
    "Y.padding.A_t=4 Y.unroll.k=16 Y.copies=async "
#define POINTS "input X f32[40,256]\noutput Y f32[40,256]\nY[i,j] = max(X[i,j], 0)\n"
#define POINTS_GENES                                                                               \
    "cuda-13 algorithm=direct layout=asis Y.block.i=4 Y.block.j=128 Y.thread.i=1 Y.thread.j=4 "

static const struct {
    const char *program, *genes;
    int64_t threads;
    const char *virtual_threads[6];
} virtual_subjects[] = {
    {PRODUCT,
     PRODUCT_GENES,
     64,
     {"Y.virtual.i=1 Y.virtual.j=8", "Y.virtual.i=2 Y.virtual.j=4", "Y.virtual.i=4 Y.virtual.j=2",
      "Y.virtual.i=8 Y.virtual.j=1"}},
    {POINTS, POINTS_GENES, 128, {"Y.virtual.j=1", "Y.virtual.j=2", "Y.virtual.j=4"}},
};

static void read_candidate(const struct wpk_space *space, const char *genes, const char *more,
                           struct wpk_candidate *out)
{
    char text[WPK_CANDIDATE_TEXT_MAX];
    struct wpk_diag diag = {0};
    snprintf(text, sizeof(text), "%s%s", genes, more);
    if (wpk_candidate_decode(space, text, out, &diag) != WPK_OK) {
        fail_msg("%s: %s", text, diag.text);
    }
}

/* Each value of the gene is a nest of its own, and computes the program. */
static void test_virtual_gene(void **state)
{
    (void)state;
    static struct wpk_cuda_subject k; /* large */
    struct wpk_cuda_nvrtc nvrtc;
    struct wpk_rng rng;
    wpk_cuda_subject_open(&nvrtc);
    wpk_rng_seed(&rng, 5);
    for (size_t s = 0; s < sizeof(virtual_subjects) / sizeof(virtual_subjects[0]); s++) {
        const char *const *values = virtual_subjects[s].virtual_threads;
        uint64_t hash[6];
        struct wpk_space space;
        wpk_cuda_derive(virtual_subjects[s].program, false, &space);
        for (int i = 0; values[i] != NULL; i++) {
            struct wpk_candidate candidate;
            read_candidate(&space, virtual_subjects[s].genes, values[i], &candidate);
            wpk_cuda_lower(&space, &candidate, &k.schedule);
            hash[i] = wpk_nest_hash(k.schedule.nest);
            for (int other = 0; other < i; other++) {
                assert_true(hash[other] != hash[i]);
            }
            wpk_cuda_subject_run(&nvrtc, &k, &rng, 0);
            assert_int_equal(k.plan.step[0].threads, virtual_subjects[s].threads);
            wpk_cuda_subject_fini(&k);
        }
        wpk_space_fini(&space);
    }
    wpk_cuda_nvrtc_close(&nvrtc);
}

/* Virtual threads divide a thread's tile; a repair takes those that fit it best. */
static void test_virtual_repair(void **state)
{
    (void)state;
    struct wpk_space space;
    struct wpk_candidate right, wrong;
    struct wpk_diag diag = {0};
    struct wpk_rng rng;
    char text[WPK_CANDIDATE_TEXT_MAX];
    wpk_rng_seed(&rng, 5);
    wpk_cuda_derive(PRODUCT, false, &space);
    read_candidate(&space, PRODUCT_GENES, "Y.virtual.i=8 Y.virtual.j=8", &right);
    assert_int_equal(wpk_candidate_encode(&space, &right, text, sizeof(text)), WPK_OK);
    memcpy(strstr(text, "Y.thread.j=8"), "Y.thread.j=4", strlen("Y.thread.j=4"));
    assert_int_equal(wpk_candidate_decode(&space, text, &wrong, &diag), WPK_OK);
    assert_false(wpk_space_is_legal(&space, &wrong));
    assert_int_equal(wpk_space_repair(&space, &rng, &wrong), WPK_OK);
    assert_int_equal(wpk_candidate_encode(&space, &wrong, text, sizeof(text)), WPK_OK);
    assert_non_null(strstr(text, "Y.thread.i=8 Y.thread.j=4"));
    assert_non_null(strstr(text, "Y.virtual.i=8 Y.virtual.j=1"));
    wpk_space_fini(&space);
}

/* ---- what is refused */

static void expect_refused(const char *nest, const char *why)
{
    struct wpk_schedule schedule;
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    wpk_buf_printf(&text, "%s%s", ROWS_OF("8", "256"), nest);
    wpk_err err = wpk_schedule_parse(wpk_buf_text(&text), &schedule, &diag);
    if (err == WPK_OK) {
        err = wpk_nest_check(schedule.nest, &diag);
        wpk_schedule_fini(&schedule);
    }
    if (err == WPK_OK || strstr(diag.text, why) == NULL) {
        fail_msg("%s: %s", nest, diag.text);
    }
    wpk_buf_fini(&text);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refused("stage Y root\nblock.x i\nstage T in Y i\nscope register\nextent i 1\ninit\n"
                   "update\nserial k step 64 exact\nthread.x k.1\nstage W inline\n",
                   "or block.x or thread.x below 'update atomic'");
    expect_refused("stage Y root\nblock.x i\nstage T in Y i\nscope shared\nextent i 1\ninit\n"
                   "update atomic\nserial k step 64 exact\nthread.x k.1\nstage W inline\n",
                   "write scope register");
    expect_refused("stage Y root\nblock.x i\nstage T root\ninit\nserial i\n"
                   "update atomic\nserial i\nthread.x k\nstage W inline\n",
                   "write scope register");
    expect_refused("stage Y root\nblock.x i step 4 exact\nthread.y i.1\nstage T in Y i\n"
                   "scope register\nextent i 4\ninit\nserial i\nupdate\nserial k\nserial i\n"
                   "stage W inline\n",
                   "block.y and thread.y stand around");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warps),        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_columns),      cmocka_unit_test(test_blocks_and_threads),
        cmocka_unit_test(test_softmax),      cmocka_unit_test(test_virtual),
        cmocka_unit_test(test_virtual_gene), cmocka_unit_test(test_virtual_repair),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_aligned_boxes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
