/* SPDX-License-Identifier: Apache-2.0 */
/* Operands in shared memory: copied by loads or asynchronously, now or ahead, in rows with and
 * without padding. */
#include "tests/cuda_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- nests by hand */

/* A product of which R is `operand`. */
#define HEAD_OF(target, operand)                                                                   \
    "wpk-schedule 2\ntarget cuda-" target " threads 1\nby cuda\n"                                  \
    "layout A f32[64,48] 0,1\nlayout B f32[48,64] 0,1\nlayout Y f32[64,64] 0,1\nprogram\n"         \
    "input A f32[64,48]\ninput B f32[48,64]\nintermediate R f32[64,48]\n"                          \
    "intermediate S f32[48,64]\nintermediate T f32[64,64]\noutput Y f32[64,64]\n"                  \
    "R[i,k] = " operand "\nS[k,j] = B[k,j]\nT[i,j] = sum.f32(k:48) R[i,k] * S[k,j]\n"              \
    "Y[i,j] = max(T[i,j], 0)\nend\n"
#define HEAD HEAD_OF("sm_90", "A[i,k]")
#define TILE "thread.y i step 4 exact\nthread.x j step 4 exact\nunroll i.1\nunroll j.1\n"

/* The lines of S and of R that say how they are copied. */
static const char *nest_of(const char *s, const char *r)
{
    static char nest[2048];
    snprintf(nest, sizeof(nest),
             "stage Y root\nblock.y i step 32 exact\nblock.x j step 32 exact\n"
             "thread.y i.1 step 4 exact\nthread.x j.1 step 4 exact\nunroll i.2\nlanes j.2\n"
             "stage T in Y j\nscope register\nextent i 32 j 32\ninit\n" TILE
             "update\nserial k step 8 exact\nserial k.1 step 2 exact\nunroll k.2\n" TILE
             "stage S in T k\nscope shared\n%sthread.y k\nthread.x j step 4 exact\nlanes j.1\n"
             "stage R in T k\nscope shared\npadded 4\n%sthread.y i step 4 exact\nthread.x k\n"
             "serial i.1\n",
             s, r);
    return nest;
}

static bool prints(const char *words)
{
    return strstr(wpk_cuda_expected, words) != NULL;
}

static void test_words(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    wpk_cuda_expect(HEAD, nest_of("", ""), 0, &counts);
    assert_false(prints("cp.async"));
    wpk_cuda_expect(HEAD, nest_of("by load\n", "by load\n"), 0, &counts);
    assert_false(prints("cp.async"));
    wpk_cuda_expect(HEAD, nest_of("by async\n", ""), 0, &counts);
    assert_true(prints("wpk_ahead16(") && prints("wait_all") && !prints("wpk_ahead4(&shared"));
    wpk_cuda_expect(HEAD, nest_of("depth 3\n", "depth 3\n"), 0, &counts);
    assert_true(prints("wait_group 1") && !prints("wait_all"));
    wpk_cuda_expect(HEAD, nest_of("depth 3\nby load\n", "depth 3\nby load\n"), 0, &counts);
    assert_false(prints("cp.async"));
    wpk_cuda_expect(HEAD, nest_of("depth 2\nby async\n", "depth 2\nby load\n"), 0, &counts);
    assert_true(prints("wait_group 0") && !prints("wpk_ahead4(&shared"));
    /* a value is computed ahead, too, but by no copy */
    wpk_cuda_expect(HEAD_OF("sm_90", "max(A[i,k], 0)"),
                    nest_of("depth 2\nby async\n", "depth 2\nby load\n"), 0, &counts);
}

/* One barrier a step is enough ahead, and asynchronous copies need no other ones than loads. */
static void test_barriers(void **state)
{
    (void)state;
    wpk_cuda_expect_barriers(HEAD, nest_of("", ""), 2);
    wpk_cuda_expect_barriers(HEAD, nest_of("by async\n", "by async\n"), 2);
    wpk_cuda_expect_barriers(HEAD, nest_of("depth 2\nby load\n", "depth 2\nby load\n"), 1);
    wpk_cuda_expect_barriers(HEAD, nest_of("depth 2\nby async\n", "depth 2\nby load\n"), 1);
}

/* The message of a refusal; "" if there is none. */
static const char *print(const char *head, const char *nest)
{
    static struct wpk_cuda_plan plan; /* large */
    static struct wpk_diag diag;
    struct wpk_schedule schedule;
    struct wpk_buf text = {0};
    diag = (struct wpk_diag){0};
    wpk_cuda_subject_parse(head, nest, &schedule);
    if (wpk_cuda_print(&schedule, "k", &text, &plan, &diag) == WPK_OK) {
        snprintf(wpk_cuda_expected, 1 << 20, "%s", wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
    wpk_schedule_fini(&schedule);
    return diag.text;
}

static void test_devices_without(void **state)
{
    (void)state;
    const char *old = HEAD_OF("sm_75", "A[i,k]");
    assert_string_equal(print(old, nest_of("depth 2\n", "depth 2\n")), "");
    assert_false(prints("cp.async"));
    assert_non_null(strstr(print(old, nest_of("by async\n", "")), "from sm_80 on: write by load"));
    assert_non_null(strstr(print(HEAD_OF("sm_90", "max(A[i,k], 0)"), nest_of("", "by async\n")),
                           "are copied by async"));
}

/* ---- genes */

#define PRODUCT                                                                                    \
    "input A f32[64,32]\ninput B f32[32,64]\noutput Y f32[64,64]\n"                                \
    "Y[i,j] = sum.f32(k:32) A[i,k] * B[k,j]\n"

static wpk_err read(const struct wpk_space *space, const char *stage, int depth, int padding,
                    int unroll, const char *copies, struct wpk_candidate *out)
{
    char text[WPK_CANDIDATE_TEXT_MAX];
    struct wpk_diag diag = {0};
    snprintf(text, sizeof(text),
             "cuda-13 algorithm=direct layout=asis Y.block.i=64 Y.block.j=64 Y.thread.i=8 "
             "Y.thread.j=8 Y.step.k=8 Y.parts.k=1 Y.stage.B_t=no Y.stage.A_t=%s Y.depth=%d "
             "Y.padding.A_t=%d Y.unroll.k=%d Y.copies=%s Y.virtual.i=8 Y.virtual.j=2",
             stage, depth, padding, unroll, copies);
    return wpk_candidate_decode(space, text, out, &diag);
}

/* Each value of the genes is a nest of its own, and computes the program. */
static void test_genes(void **state)
{
    (void)state;
    static struct wpk_cuda_subject k; /* large */
    static const char *const copies[] = {"load", "async"};
    static const int padding[] = {0, 1, 4}, unroll[] = {1, 4, 8};
    struct wpk_cuda_nvrtc nvrtc;
    struct wpk_space space;
    struct wpk_rng rng;
    uint64_t hash[12];
    int count = 0;
    wpk_cuda_subject_open(&nvrtc);
    wpk_rng_seed(&rng, 5);
    wpk_cuda_derive(PRODUCT, false, &space);
    for (int i = 0; i < 12; i++) {
        struct wpk_candidate candidate;
        assert_int_equal(read(&space, "shared", 1 + i % 2, padding[i % 3], unroll[i / 4],
                              copies[i / 2 % 2], &candidate),
                         WPK_OK);
        wpk_cuda_lower(&space, &candidate, &k.schedule);
        hash[count] = wpk_nest_hash(k.schedule.nest);
        for (int other = 0; other < count; other++) {
            assert_true(hash[other] != hash[count]);
        }
        count++;
        wpk_cuda_subject_run(&nvrtc, &k, &rng, 0);
        wpk_cuda_subject_fini(&k);
    }
    wpk_space_fini(&space);
    wpk_cuda_nvrtc_close(&nvrtc);
}

/* Rows that are moved four elements at a time begin at multiples of 16 bytes; where no operand is
 * staged none is copied, and terms that are written out divide a step. */
static void test_rules(void **state)
{
    (void)state;
    static const struct {
        const char *stage;
        int padding, unroll;
        const char *copies, *why;
    } wrong[] = {
        {"shared4", 1, 8, "load", "multiples of 16 bytes"},
        {"no", 0, 1, "async", "copied as it is"},
        {"shared", 0, 16, "load", "do not divide a step"},
    };
    struct wpk_space space;
    wpk_cuda_derive(PRODUCT, false, &space);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct wpk_candidate candidate;
        const char *why = "";
        assert_int_equal(read(&space, wrong[i].stage, 1, wrong[i].padding, wrong[i].unroll,
                              wrong[i].copies, &candidate),
                         WPK_OK);
        assert_false(wpk_target_cuda.legal(&space, &candidate, &why));
        assert_non_null(strstr(why, wrong[i].why));
    }
    wpk_space_fini(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),           cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_devices_without), cmocka_unit_test(test_genes),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
