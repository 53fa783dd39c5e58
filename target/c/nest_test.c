/* SPDX-License-Identifier: Apache-2.0 */
/* Nests written by hand: each tail, each place, loads that leave their tensor. */
#include "target/c/print.h"
#include "target/codegen.h"
#include "tests/kernel_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TARGET "target x86-64-linux-sse41-avx-avx2-f16c-fma threads 2\nby c\n"
#define HEAD "wpk-schedule 2\n" TARGET
#define STAGES 40

static void add_text(struct wpk_kernels *batch, const char *head, const char *nest)
{
    struct wpk_kernel_case *subject = &batch->subject[batch->count++];
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    assert_true(batch->count <= WPK_KERNELS_MAX);
    wpk_buf_printf(&text, "%s%s", head, nest);
    if (wpk_schedule_parse(wpk_buf_text(&text), &subject->schedule, &diag) != WPK_OK ||
        wpk_codegen_check(&subject->schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    snprintf(subject->words, sizeof(subject->words), "by hand");
    wpk_buf_fini(&text);
}

static void expect_nests(const char *head, const char *const *nests, int count, bool exact,
                         wpk_cpu_flags flags)
{
    static struct wpk_kernels batch; /* large */
    struct wpk_device here;
    struct wpk_rng rng;
    assert_int_equal(wpk_device_probe(WPK_CPU_FLAGS_ALL, &here), WPK_OK);
    if (!wpk_cpu_flags_fit(flags, here.cpu.flags)) {
        skip();
    }
    wpk_rng_seed(&rng, 1);
    batch.count = 0;
    batch.flags = flags;
    batch.exact = exact;
    for (int i = 0; i < count; i++) {
        add_text(&batch, head, nests[i]);
    }
    wpk_check_kernels(&batch, &rng);
}

#define EXPECT_NESTS(head, nests)                                                                  \
    expect_nests(head, nests, sizeof(nests) / sizeof(nests[0]), false, WPK_CPU_SET_AVX2)

#define PLANE                                                                                      \
    HEAD "layout X f32[13,21] 0,1\nlayout Y f32[13,21] 0,1\nprogram\ninput X f32[13,21]\n"         \
         "output Y f32[13,21]\nY[i,j] = X[i,j] * 3 - X[i,j] / 2\nend\nstage Y root\n"

/* 13 rows of 21: no step divides. */
static void test_tails(void **state)
{
    (void)state;
    static const char *const nests[] = {
        "serial i step 4 guard\nserial j step 8 guard\nunroll i.1\nlanes j.1\n",
        "serial i step 4 predicate\nserial j step 8 predicate\nunroll i.1\nlanes j.1\n",
        "serial i step 4 shift\nserial j step 8 shift whole\nunroll i.1\nlanes j.1\n",
        "serial i\nunroll j step 8 guard\nlanes j.1\n",
        "serial i step 6 guard whole\nserial j step 16 guard whole\nserial i.1 step 3 shift\n"
        "serial j.1 step 8 shift\nunroll i.2\nlanes j.2\n",
        "serial i step 6 shift\nserial j step 16 shift\nserial i.1 step 2 guard\n"
        "serial j.1 step 4 guard\nunroll i.2\nlanes j.2\n",
        "parallel i step 4 guard\nparallel j step 8 shift\nunroll i.1\nlanes j.1\n",
        "parallel i step 4 shift\nserial j\nserial i.1\n",
        "serial i\nlanes j\n", /* 21 lanes */
    };
    EXPECT_NESTS(PLANE, nests);
}

#define PRODUCT                                                                                    \
    HEAD "layout A f32[12,40] 0,1\nlayout B f32[40,32] 0,1\nlayout Y f32[12,32] 0,1\nprogram\n"    \
         "input A f32[12,40]\ninput B f32[40,32]\nintermediate P f32[40,32]\n"                     \
         "intermediate T f32[12,32]\noutput Y f32[12,32]\nP[k,j] = B[k,j] * 2\n"                   \
         "T[i,j] = sum.f32(k:40) A[i,k] * P[k,j]\nY[i,j] = max(T[i,j], 0)\nend\n"
#define TILES                                                                                      \
    "stage Y root\nserial i step 4 exact\nserial j step 16 exact\nunroll i.1\n"                    \
    "unroll j.1 step 8 exact\nlanes j.2\n"
#define SUMS "init\nunroll i\nunroll j step 8 exact\nlanes j.1\nupdate\n"
#define TERMS "unroll i\nunroll j step 8 exact\nlanes j.1\n"

/* The operand P at each loop that there is, those of the reduction included. */
static void test_places(void **state)
{
    (void)state;
    static const char *const nests[] = {
        TILES "stage T in Y j\nextent i 4 j 16\n" SUMS "serial k\n" TERMS
              "stage P root\nserial k\nserial j step 8 exact\nlanes j.1\n",
        TILES "stage T in Y j\nextent i 4 j 16\n" SUMS "serial k\n" TERMS
              "stage P in Y i\nserial k\nserial j step 8 exact\nlanes j.1\n",
        TILES "stage T in Y j\nextent i 4 j 16\n" SUMS "serial k\n" TERMS
              "stage P in Y j\nstored j k\nserial k\nserial j step 8 shift\nlanes j.1\n",
        TILES "stage T in Y j\nextent i 4 j 16\n" SUMS "serial k step 10 exact\nserial k.1\n" TERMS
              "stage P in T k\nserial k\nserial j step 8 exact\nlanes j.1\n",
        TILES "stage T in Y j\nextent i 4 j 16\n" SUMS "serial k step 16 guard\nserial k.1\n" TERMS
              "stage P in T k\nscope heap\nserial k\nserial j step 4 guard\nlanes j.1\n",
        TILES "stage T in Y j\nextent i 4 j 16\n" SUMS "serial k\n" TERMS
              "stage P in T k\nextent k 1 j 16\nunroll j step 8 exact\nlanes j.1\n",
        TILES "stage T in Y j\nextent i 4 j 16\n" SUMS "serial k step 3 guard\nunroll k.1\n" TERMS
              "stage P inline\n",
        TILES "stage T root\ninit\nserial i\nserial j step 8 exact\nlanes j.1\nupdate\n"
              "parallel i step 4 exact\nparallel j step 16 exact\nserial k\nunroll i.1\n"
              "unroll j.1 step 8 exact\nlanes j.2\nstage P inline\n",
        ("stage Y root\nparallel i\nserial j\nstage T in Y j\nextent i 1 j 1\ninit\n"
         "update atomic\nserial k step 8 exact\nlanes k.1\nstage P in Y i\nserial k\nlanes j\n"),
    };
    EXPECT_NESTS(PRODUCT, nests);
}

#define SOFTMAX                                                                                    \
    HEAD "layout X f32[12,40] 0,1\nlayout Y f32[12,40] 0,1\nprogram\ninput X f32[12,40]\n"         \
         "intermediate M f32[12]\nintermediate E f32[12,40]\nintermediate S f32[12]\n"             \
         "output Y f32[12,40]\nM[i] = max.f32(k:40) X[i,k]\nE[i,j] = exp(X[i,j] - M[i])\n"         \
         "S[i] = sum.f32(k:40) E[i,k]\nY[i,j] = E[i,j] / S[i]\nend\n"
#define OF_ROWS "init\nserial i\nupdate\nserial i\nserial k\n"

/* The exponentials in the output. */
static void test_kept_in_the_output(void **state)
{
    (void)state;
    static const char *const nests[] = {
        "stage Y root\nserial i\nserial j step 8 exact\nlanes j.1\nstage S in Y i\n" OF_ROWS
        "stage E in Y i\nscope output\nserial i\nserial j step 8 exact\nlanes j.1\n"
        "stage M in Y i\n" OF_ROWS,
        "stage Y root\nparallel i step 3 exact\nserial i.1\nserial j step 16 guard\nlanes j.1\n"
        "stage S in Y i\n" OF_ROWS
        "stage E in Y i\nscope output\nserial j step 16 shift\nserial i\nlanes j.1\n"
        "stage M in Y i\n" OF_ROWS,
        "stage Y root\nserial i step 6 exact\nserial j\nserial i.1 step 2 exact\nunroll i.2\n"
        "stage S in Y i\n" OF_ROWS "stage E in Y i\nscope output\nserial i step 4 predicate\n"
        "serial j\nlanes i.1\nstage M root\n" OF_ROWS,
    };
    EXPECT_NESTS(SOFTMAX, nests);
}

#define WINDOW                                                                                     \
    HEAD "layout X f32[9,11] 0,1\nlayout Y f32[7,23] 0,1\nprogram\ninput X f32[9,11]\n"            \
         "intermediate S f32[9,11]\nintermediate T f32[7,23]\noutput Y f32[7,23]\n"                \
         "S[i,j] = abs(X[i,j]) + 1\n"                                                              \
         "T[i,j] = max.f32(r:3,s:3) S[2*i+r-3,(j+1)/2+s-1 | -0.5] * X[i+r,j%4+s]\n"                \
         "Y[i,j] = select(i < j, T[i,j], T[i,j] * f32(j))\nend\n"                                  \
         "stage Y root\nserial i step 2 shift\nserial j step 8 shift\nunroll i.1\nlanes j.1\n"

/* Loads that leave their tensor, along lanes and across them; indices with quotients. */
static void test_loads_outside(void **state)
{
    (void)state;
    static const char *const nests[] = {
        "stage T in Y j\nextent i 2 j 8\ninit\nunroll i\nlanes j\nupdate\nserial r\nserial s\n"
        "unroll i\nlanes j\nstage S inline\n",
        "stage T in Y j\nextent i 2 j 8\ninit\nunroll i\nlanes j\nupdate\nserial r\nunroll s\n"
        "unroll i\nlanes j\nstage S root\nserial i\nlanes j\n",
        "stage T in Y i\ninit\nserial i\nlanes j\nupdate\nserial r\nserial s\nserial i\n"
        "lanes j\nstage S in Y i\nserial i\nserial j step 4 guard\nlanes j.1\n",
        "stage T root\ninit\nserial i\nlanes j\nupdate\nserial i\nserial j\nunroll r\nunroll s\n"
        "stage S in T j\nserial i\nserial j\n",
    };
    EXPECT_NESTS(WINDOW, nests);
}

#define BORDER                                                                                     \
    HEAD "layout X f32[7,8,5] 0,1,2\nlayout W f32[3,3,5,16] 0,1,2,3\nlayout Y f32[7,4,16] 0,1,2\n" \
         "program\ninput X f32[7,8,5]\ninput W f32[3,3,5,16]\nintermediate T f32[7,4,16]\n"        \
         "output Y f32[7,4,16]\nT[y,x,k] = sum.f32(r:3,s:3,c:5) X[y+r-1,2*x+2*s-2,c | 0] * "       \
         "W[r,s,c,k]\nY[y,x,k] = T[y,x,k] + 1\nend\nstage Y root\nserial y\nserial x\n"            \
         "unroll k step 8 exact\nlanes k.1\nstage T in Y x\nextent y 1 x 1 k 16\ninit\n"           \
         "unroll k step 8 exact\nlanes k.1\nupdate\n"
#define CHANNELS "serial c\nunroll k step 8 exact\nlanes k.1\n"

/* Rows outside of X are left out; columns go by two and are multiplied by zeros. */
static void test_terms_of_a_border(void **state)
{
    (void)state;
    static const char *const nests[] = {
        "serial r inside\nserial s inside\n" CHANNELS,
        "serial s\nserial r inside\n" CHANNELS,
        "serial r\nserial s\n" CHANNELS,
    };
    EXPECT_NESTS(BORDER, nests);
}

#define STEPS                                                                                      \
    HEAD "layout X f32[9] 0\nlayout W f32[3,2,16] 0,1,2\nlayout Y f32[9,16] 0,1\nprogram\n"        \
         "input X f32[9]\ninput W f32[3,2,16]\nintermediate T f32[9,16]\noutput Y f32[9,16]\n"     \
         "T[y,k] = sum.f32(a:3,b:2) X[y+2*a+b-3 | 0] * W[a,b,k]\nY[y,k] = T[y,k] + 1\nend\n"       \
         "stage Y root\nserial y\nunroll k step 8 exact\nlanes k.1\nstage T in Y y\nextent y 1 k " \
         "16\ninit\nunroll k step 8 exact\nlanes k.1\nupdate\n"
#define COLUMNS "unroll k step 8 exact\nlanes k.1\n"

/* An index of two axes of the sum: the outer one's bounds would depend on the inner one. */
static void test_borders_of_two_axes(void **state)
{
    (void)state;
    static const char *const nests[] = {
        "serial b inside\nserial a\n" COLUMNS,
        "serial a\nserial b inside\n" COLUMNS,
        "serial b inside\nserial a inside\n" COLUMNS,
    };
    EXPECT_NESTS(STEPS, nests);
}

/* Names of variables are no names of tensors, and bools in lanes are 1. */
static void test_names_and_bools(void **state)
{
    (void)state;
    static const char head[] =
        HEAD "layout s2_T f32[12,40] 0,1\nlayout T_s2_0 f32[12] 0\nlayout t1 bool[12] 0\n"
             "program\ninput s2_T f32[12,40]\ninput T_s2_0 f32[12]\nintermediate T f32[12]\n"
             "intermediate n0_i bool[12]\noutput t1 bool[12]\n"
             "T[i] = sum.f32(k:40) s2_T[i,k]\n"
             "n0_i[i] = max.bool(k:40) (T_s2_0[i] < s2_T[i,k])\n"
             "t1[i] = n0_i[i] && T[i] < T_s2_0[i] + 2\nend\n";
    static const char *const nests[] = {
        "stage t1 root\nserial i step 4 exact\nlanes i.1\nstage n0_i in t1 i\nextent i 4\n"
        "init\nlanes i\nupdate atomic\nserial i\nlanes k\nstage T in t1 i\nextent i 4\n"
        "init\nlanes i\nupdate\nserial k\nlanes i\n",
        "stage t1 root\nserial i\nstage n0_i root\ninit\nserial i\nupdate atomic\nserial i\n"
        "serial k step 20 exact\nlanes k.1\nstage T root\nscope heap\ninit\nserial i\n"
        "update atomic\nserial i\nserial k step 8 exact\nlanes k.1\n",
    };
    EXPECT_NESTS(head, nests);
}

/* Each stage calls the function of integers whose name its axis has. The loop of one of them is
 * variable 32: its number must not make it the function i32_min. */
static void test_axes_named_as_functions(void **state)
{
    (void)state;
    struct wpk_buf head = {0}, nest = {0};
    wpk_buf_append_text(&head, HEAD "layout X i32[100] 0\nlayout Y i32[100] 0\nprogram\n"
                                    "input X i32[100]\nintermediate T0 i32[100]\n");
    for (int i = 1; i < STAGES; i++) {
        wpk_buf_printf(&head, "intermediate T%d i32[100]\n", i);
    }
    wpk_buf_append_text(&head, "output Y i32[100]\nT0[min] = X[min]\n");
    for (int i = 1; i < STAGES; i++) {
        wpk_buf_printf(&head, "T%d[min] = min(T%d[min], %d)\n", i, i - 1, 50 - i);
    }
    wpk_buf_printf(&head, "Y[i] = T%d[i]\nend\n", STAGES - 1);
    wpk_buf_append_text(&nest, "stage Y root\nserial i\n");
    for (int i = STAGES - 1; i >= 0; i--) {
        wpk_buf_printf(&nest, "stage T%d root\nserial min\n", i);
    }
    const char *nests[] = {wpk_buf_text(&nest)};
    EXPECT_NESTS(wpk_buf_text(&head), nests);
    struct wpk_schedule schedule;
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    wpk_buf_append(&head, nest.data, nest.size);
    assert_int_equal(wpk_schedule_parse(wpk_buf_text(&head), &schedule, &diag), WPK_OK);
    assert_int_equal(wpk_c_print(&schedule, "k", &text, &diag), WPK_OK);
    assert_non_null(strstr(wpk_buf_text(&text), " n32_min ="));
    wpk_schedule_fini(&schedule);
    wpk_buf_fini(&text);
    wpk_buf_fini(&head);
    wpk_buf_fini(&nest);
}

#define ROWS                                                                                       \
    HEAD "layout X f32[14,16] 0,1\nlayout Y f32[14,16] 0,1\nprogram\ninput X f32[14,16]\n"         \
         "intermediate T f32[14,16]\noutput Y f32[14,16]\nT[i,j] = X[i,j] * 3\n"                   \
         "Y[i,j] = T[i,j] + 1\nend\n"
#define SHORTER                                                                                    \
    "stage Y root\nserial i step 10 guard\nserial i.1 step 5 guard\nserial j step 8 exact\n"       \
    "unroll i.2\nlanes j.1\nstage T in Y i\nserial i\nserial j step 8 exact\nlanes j.1\n"

/* In a last iteration that is shorter, no more is computed than it needs: 10 rows, then 4. */
static void test_shorter_iterations(void **state)
{
    (void)state;
    static const char *const nests[] = {SHORTER};
    struct wpk_schedule schedule;
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_schedule_parse(ROWS SHORTER, &schedule, &diag), WPK_OK);
    assert_int_equal(wpk_c_print(&schedule, "k", &text, &diag), WPK_OK);
    assert_non_null(strstr(wpk_buf_text(&text), "_i < 10;"));
    assert_non_null(strstr(wpk_buf_text(&text), "_i < 4;"));
    wpk_buf_fini(&text);
    wpk_schedule_fini(&schedule);
    EXPECT_NESTS(ROWS, nests);
}

/* Terms of an expanded sum that leave their tensor in no point of the stage, but past its end. */
static void test_expanded_terms(void **state)
{
    (void)state;
    static const char head[] =
        HEAD "layout X f32[6,4] 0,1\nlayout Y f32[9] 0\nprogram\ninput X f32[6,4]\n"
             "intermediate T f32[5]\noutput Y f32[9]\n"
             "T[j] = sum.f32(r:5) X[j,r]\nY[j] = T[j-2] * 2\nend\n";
    static const char *const nests[] = {
        "stage Y root\nserial j\nstage T in Y j\nexpanded\nserial j\n",
        "stage Y root\nserial j step 4 guard\nlanes j.1\nstage T in Y j\nexpanded\nlanes j\n",
    };
    EXPECT_NESTS(head, nests);
}

/* Halves round to even, what is beyond a byte becomes its end, and bytes are read again. */
static void test_quantizers(void **state)
{
    (void)state;
    static const char head[] =
        HEAD "layout X i32[13,21] 0,1\nlayout Z u8[] \nlayout V i8[13,21] 0,1\n"
             "layout Y f32[13,21] 0,1\nprogram\ninput X i32[13,21]\ninput Z u8[]\n"
             "input V i8[13,21]\noutput Y f32[13,21]\n"
             "Y[i,j] = f32(i32(u8(f32(Z[]) + round(f32(X[i,j]) * 0.5))) - i32(Z[])) * 0.25 + "
             "f32(i8(round(f32(i32(V[i,j]) * X[i,j]) / 4))) + f32(u8(round(f32(X[i,j]) * 1.5)))\n"
             "end\nstage Y root\n";
    static const char *const nests[] = {
        "serial i\nserial j\n",
        "serial i\nserial j step 8 guard\nlanes j.1\n",
        "serial i\nserial j step 16 guard\nunroll j.1 step 4 guard\nlanes j.2\n",
        "serial i\nserial j step 16 guard\nlanes j.1\n",
    };
    expect_nests(head, nests, sizeof(nests) / sizeof(nests[0]), true, WPK_CPU_SET_AVX2);
}

/* Numbers of 4 bits as floats: with AVX-512 each is picked out of a register. */
static void test_halves_as_floats(void **state)
{
    (void)state;
    static const char head[] =
        "wpk-schedule 2\ntarget x86-64-linux-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake "
        "threads 1\nby c\nlayout X u8[13,48] 0,1\nlayout Y f32[13,48] 0,1\nprogram\n"
        "input X u8[13,48]\noutput Y f32[13,48]\nY[i,j] = f32(i32(X[i,j]) % 16 - 8) + "
        "f32(i32(X[i,j]) / 16 + 3) * 0.25 + f32(i32(X[i,j]) / 16)\nend\nstage Y root\n";
    static const char *const nests[] = {
        "serial i\nserial j step 16 exact\nlanes j.1\n",
        "serial i\nserial j step 8 exact\nlanes j.1\n",
        "serial i\nserial j\n",
    };
    expect_nests(head, nests, sizeof(nests) / sizeof(nests[0]), true, WPK_CPU_SET_AVX512);
}

#define BLOCKS                                                                                     \
    HEAD "layout X f32[6,5,8] 0,1,2\nlayout W f32[5,8,32] 0,1,2\nlayout S f32[5,32] 0,1\n"         \
         "layout Y f32[6,32] 0,1\nprogram\ninput X f32[6,5,8]\ninput W f32[5,8,32]\n"              \
         "input S f32[5,32]\nintermediate P f32[6,5,32]\nintermediate T f32[6,32]\n"               \
         "output Y f32[6,32]\nP[i,b,j] = sum.f32(k:8) (X[i,b,k] * W[b,k,j] + X[i,b,7-k] * 0.5)\n"  \
         "T[i,j] = sum.f32(b:5) P[i,b,j] * S[b,j]\nY[i,j] = T[i,j]\nend\nstage Y root\n"           \
         "serial i step 2 exact\nserial j step 16 exact\nunroll i.1\nunroll j.1 step 8 exact\n"    \
         "lanes j.2\nstage T in Y j\nextent i 2 j 16\ninit\nunroll i\nunroll j step 8 exact\n"     \
         "lanes j.1\nupdate\n"
#define OF_BLOCK "unroll i\nunroll j step 8 exact\nlanes j.1\n"

/* A sum inside the loops of a sum. */
static void test_sums_of_blocks(void **state)
{
    (void)state;
    static const char *const nests[] = {
        "serial b\n" OF_BLOCK "stage P in T b\nextent i 2 b 1 j 16\ninit\n" OF_BLOCK
        "update\nserial k step 2 exact\nunroll k.1\n" OF_BLOCK,
        "serial b step 2 guard\nunroll b.1\n" OF_BLOCK "stage P in T b\ninit\nserial b\n" OF_BLOCK
        "update\nserial b\nserial k\n" OF_BLOCK,
    };
    EXPECT_NESTS(BLOCKS, nests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tails),
        cmocka_unit_test(test_quantizers),
        cmocka_unit_test(test_halves_as_floats),
        cmocka_unit_test(test_sums_of_blocks),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_kept_in_the_output),
        cmocka_unit_test(test_loads_outside),
        cmocka_unit_test(test_terms_of_a_border),
        cmocka_unit_test(test_borders_of_two_axes),
        cmocka_unit_test(test_names_and_bools),
        cmocka_unit_test(test_axes_named_as_functions),
        cmocka_unit_test(test_shorter_iterations),
        cmocka_unit_test(test_expanded_terms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
