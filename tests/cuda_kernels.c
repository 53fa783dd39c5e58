/* SPDX-License-Identifier: Apache-2.0 */
/* Nests written by hand become CUDA C, which NVRTC compiles, and which computes on the emulator
 * what the reference does, without a fault. */
#include "search/mask.h"
#include "tests/cuda_check.h"
#include "tests/cuda_programs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD WPK_CUDA_HEAD

/* ---- products */

#define PRODUCT_OF(m, k, n)                                                                        \
    HEAD "layout A f32[" m "," k "] 0,1\nlayout B f32[" k "," n "] 0,1\nlayout Y f32[" m "," n     \
         "] 0,1\nprogram\ninput A f32[" m "," k "]\ninput B f32[" k "," n                          \
         "]\nintermediate R f32[" m "," k "]\nintermediate S f32[" k "," n                         \
         "]\nintermediate T f32[" m "," n "]\noutput Y f32[" m "," n                               \
         "]\nR[i,k] = A[i,k]\nS[k,j] = B[k,j]\nT[i,j] = sum.f32(k:" k                              \
         ") R[i,k] * S[k,j]\nY[i,j] = max(T[i,j], 0)\nend\n"

/* A block of 64 threads has 32 x 32 results, a thread 4 x 4; 8 terms of both are staged. */
#define STAGED(tail, terms)                                                                        \
    "stage Y root\nblock.y i step 32 " tail "\nblock.x j step 32 " tail                            \
    "\nthread.y i.1 step 4 " tail "\nthread.x j.1 step 4 " tail "\nunroll i.2\nunroll j.2\n"       \
    "stage T in Y j\nscope register\nextent i 32 j 32\n"                                           \
    "init\nthread.y i step 4 exact\nthread.x j step 4 exact\nunroll i.1\nunroll j.1\n"             \
    "update\nserial k step 8 " terms "\nthread.y i step 4 exact\nthread.x j step 4 exact\n"        \
    "serial k.1\nunroll i.1\nunroll j.1\n"                                                         \
    "stage S in T k\nscope shared\nthread.y k\nthread.x j step 4 exact\nunroll j.1\n"              \
    "stage R in T k\nscope shared\nthread.y i step 4 exact\nthread.x k\nunroll i.1\n"

static void test_product(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    wpk_cuda_expect(PRODUCT_OF("128", "128", "64"), STAGED("exact", "exact"), 0, &counts);
    /* Each thread has 16 products for 8 loads, and stores nothing twice. */
    assert_true(counts.thread_instructions < (uint64_t)128 * 128 * 64 * 3);
    assert_true(counts.global_sectors < 40000);
}

/* The last blocks move inwards; the last terms are fewer, so that some threads have none. */
static void test_tails(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    wpk_cuda_expect(PRODUCT_OF("49", "37", "70"), STAGED("shift", "guard"), 0, &counts);
}

/* The sums begin in one launch, grow in another, and end in a third: they lie in global memory. */
static void test_launches(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    wpk_cuda_expect(PRODUCT_OF("9", "24", "21"),
                    "stage Y root\nblock.x i\nthread.x j step 4 guard\nunroll j.1\n"
                    "stage T root\ninit\nserial i\nserial j\n"
                    "update\nblock.x i step 3 exact\nthread.x j\nserial k\nserial i.1\n"
                    "stage S root\nscope global\nblock.y k step 8 exact\nblock.x j\n"
                    "thread.x k.1\nstage R inline\n",
                    0, &counts);
}

/* ---- parts over blocks */

/* As STAGED, in `parts` blocks a tile of `terms` each. */
#define PARTS(tail, terms, step)                                                                   \
    "stage Y root\nblock.y i step 32 " tail "\nblock.x j step 32 " tail                            \
    "\nthread.y i.1 step 4 " tail "\nthread.x j.1 step 4 " tail "\nunroll i.2\nunroll j.2\n"       \
    "stage T in Y j\nscope register\nextent i 32 j 32\n"                                           \
    "init\nthread.y i step 4 exact\nthread.x j step 4 exact\nunroll i.1\nunroll j.1\n"             \
    "update atomic\nblock.x k step " terms " exact\nserial k.1 step 8 " step                       \
    "\nthread.y i step 4 exact\nthread.x j step 4 exact\nserial k.2\nunroll i.1\nunroll j.1\n"     \
    "stage S in T k.1\nscope shared\nthread.y k\nthread.x j step 4 exact\nunroll j.1\n"            \
    "stage R in T k.1\nscope shared\nthread.y i step 4 exact\nthread.x k\nunroll i.1\n"

/* Of numbers whose sums are rounded, the bits of the output in one order of blocks and warps. */
static void run_in_order(const struct wpk_cuda_nvrtc *nvrtc, enum wpk_launch_order order,
                         struct wpk_cuda_subject *k, float *bits, int count)
{
    struct wpk_kernel_fault_report report;
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 5);
    wpk_cuda_subject_parse(PRODUCT_OF("40", "128", "70"), PARTS("shift", "32", "exact"),
                           &k->schedule);
    wpk_cuda_subject_print(k);
    wpk_cuda_subject_compile(nvrtc, k);
    wpk_cuda_subject_fill(k, &rng);
    k->order = order;
    for (int i = 0; i < 40 * 128 + 128 * 70; i++) {
        float *values = (float *)(uintptr_t)k->address[i >= 40 * 128]; // NOLINT: a host's address
        values[i >= 40 * 128 ? i - 40 * 128 : i] = (float)wpk_rng_between(&rng, -999, 999) / 7;
    }
    for (int again = 0; again < 2; again++) { /* tickets are 0 again after a launch */
        assert_int_equal(wpk_cuda_subject_launch(k, &report), WPK_OK);
        assert_int_equal(report.fault, WPK_KERNEL_FAULT_NONE);
    }
    memcpy(bits, (void *)(uintptr_t)k->address[2], // NOLINT: a host's address
           (size_t)count * sizeof(*bits));
    wpk_cuda_subject_fini(k);
}

static void test_parts(void **state)
{
    (void)state;
    enum { COUNT = 40 * 70 };
    static struct wpk_cuda_subject k; /* large */
    static float first[COUNT], other[COUNT];
    struct wpk_launch_counts counts = {0};
    struct wpk_cuda_nvrtc nvrtc;
    wpk_cuda_expect(PRODUCT_OF("128", "128", "64"), PARTS("exact", "16", "exact"), 0, &counts);
    assert_non_null(
        strstr(wpk_cuda_expected, "% 8], 7u);")); /* 8 tiles of 8 parts, in one launch */
    wpk_cuda_expect(PRODUCT_OF("49", "72", "70"), PARTS("shift", "24", "exact"), 0, &counts);
    wpk_cuda_expect(PRODUCT_OF("49", "72", "70"), PARTS("shift", "72", "exact"), 0, &counts);
    assert_null(strstr(wpk_cuda_expected, "tickets"));
    wpk_cuda_subject_open(&nvrtc);
    run_in_order(&nvrtc, WPK_LAUNCH_ASCENDING, &k, first, COUNT);
    for (int order = 1; order < WPK_LAUNCH_ORDERS; order++) {
        run_in_order(&nvrtc, (enum wpk_launch_order)order, &k, other, COUNT);
        assert_memory_equal(first, other, sizeof(first));
    }
    wpk_cuda_nvrtc_close(&nvrtc);
}

/* ---- copies ahead */

/* As STAGED, but a thread's tile is in pieces, and both operands are copied 16 bytes at a time
 * while the steps before are computed. */
#define AHEAD(tail, depth)                                                                         \
    "stage Y root\nblock.y i step 32 " tail "\nblock.x j step 32 " tail                            \
    "\nunroll i.1 step 8 exact\nunroll j.1 step 16 exact\nthread.y i.2\nthread.x j.2 step 2 " tail \
    "\nunroll j.3\nstage T in Y j\nscope register\nextent i 32 j 32\ninit\nunroll i step 8 "       \
    "exact\n"                                                                                      \
    "unroll j step 16 exact\nthread.y i.1\nthread.x j.1 step 2 exact\nunroll j.2\n"                \
    "update\nserial k step 8 exact\nserial k.1 step 4 exact\nunroll k.2\nunroll i step 8 exact\n"  \
    "unroll j step 16 exact\nthread.y i.1\nthread.x j.1 step 2 exact\nunroll j.2\n"                \
    "stage S in T k\nscope shared\ndepth " depth                                                   \
    "\nthread.y k\nthread.x j step 4 exact\nlanes j.1\n"                                           \
    "stage R in T k\nscope shared\npadded 4\ndepth " depth                                         \
    "\nthread.y i\nthread.x k step 4 exact\nlanes k.1\n"

/* Of the kernel's text, how often it has `word`. */
static int count_words(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        count++;
    }
    return count;
}

static void test_ahead(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    wpk_cuda_expect(PRODUCT_OF("64", "64", "96"), AHEAD("exact", "2"), 0, &counts);
    assert_int_equal(count_words(wpk_cuda_expected, "wpk_ahead16(&"),
                     4); /* before the loop, and in it */
    assert_int_equal(count_words(wpk_cuda_expected, "wpk_ahead4"), 2); /* their definitions */
    wpk_cuda_expect(PRODUCT_OF("64", "64", "96"), AHEAD("exact", "3"), 0, &counts);
    /* as many steps as buffers; last blocks move inwards by a multiple of 16 bytes */
    wpk_cuda_expect(PRODUCT_OF("36", "24", "44"), AHEAD("shift", "3"), 0, &counts);
    /* rows of B begin anywhere: its elements are copied one by one */
    wpk_cuda_expect(PRODUCT_OF("36", "24", "42"), AHEAD("shift", "2"), 0, &counts);
    assert_int_equal(count_words(wpk_cuda_expected, "wpk_ahead16(&"), 2);
    assert_int_equal(count_words(wpk_cuda_expected, "wpk_ahead4(&"), 8);
}

/* Three loops run as one; what is outside of X is zero. */
static void test_ahead_window(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    wpk_cuda_expect(
        HEAD "layout X f32[4,9,16] 0,1,2\nlayout W f32[8,4,3,3] 0,1,2,3\n"
             "layout Y f32[8,9,16] 0,1,2\nprogram\ninput X f32[4,9,16]\nconstant W f32[8,4,3,3]\n"
             "intermediate S f32[4,3,3,9,16]\nintermediate T f32[8,9,16]\noutput Y f32[8,9,16]\n"
             "S[c,r,s,y,x] = X[c,y+r-1,x+s-1]\n"
             "T[k,y,x] = sum.f32(c:4,r:3,s:3) S[c,r,s,y,x] * W[k,c,r,s]\n"
             "Y[k,y,x] = max(T[k,y,x], 0)\nend\n",
        "stage Y root\nblock.z y\nblock.y k step 4 exact\nblock.x x step 16 exact\n"
        "thread.y k.1 step 2 exact\nthread.x x.1 step 4 exact\nunroll k.2\nunroll x.2\n"
        "stage T in Y x\nscope register\nextent k 4 y 1 x 16\ninit\nthread.y k step 2 exact\n"
        "thread.x x step 4 exact\nunroll k.1\nunroll x.1\nupdate\nserial c step 2 exact\n"
        "serial r\nserial s\nserial c.1\nthread.y k step 2 exact\nthread.x x step 4 exact\n"
        "unroll k.1\nunroll x.1\n"
        "stage S in T s\nscope shared\ndepth 2\nserial c\nthread.x x\n",
        0, &counts);
}

#define SOFTMAX                                                                                    \
    HEAD "layout X f32[5,40] 0,1 pad 0:0,1:2\nlayout Y f32[5,40] 1,0\nprogram\n"                   \
         "input X f32[5,40] pad 0:0,1:2\nintermediate M f32[5]\nintermediate E f32[5,40]\n"        \
         "intermediate S f32[5]\noutput Y f32[40,5]\nM[i] = max.f32(k:40) X[i,k]\n"                \
         "E[i,j] = exp(X[i,j] - M[i])\nS[i] = sum.f32(k:40) E[i,k]\nY[j,i] = E[i,j] / S[i]\nend\n"

/* A block a row: one thread adds up, and 10 of 16 threads compute exponentials; then of two rows,
 * where each thread has a maximum for itself. */
static void test_rows(void **state)
{
    (void)state;
    struct wpk_launch_counts counts = {0};
    wpk_cuda_expect(SOFTMAX,
                    "stage Y root\nblock.x i\nthread.x j step 3 guard\nunroll j.1\n"
                    "stage S in Y i\nscope shared\ninit\nserial i\nupdate\nserial i\nserial k\n"
                    "stage E in Y i\nscope shared\nthread.x j step 4 exact\nserial j.1\n"
                    "stage M in Y i\nscope shared\ninit\nserial i\nupdate\nserial i\nserial k\n",
                    1e-5, &counts);
    wpk_cuda_expect(
        SOFTMAX,
        "stage Y root\nblock.x i step 2 shift\nthread.x i.1\nserial j\n"
        "stage S in Y i.1\nscope register\ninit\nserial i\nupdate\nserial k\nserial i\n"
        "stage E inline\n"
        "stage M in Y i.1\nscope register\ninit\nserial i\nupdate\nserial k\nserial i\n",
        1e-5, &counts);
}

static void test_barriers(void **state)
{
    (void)state;
    /* before and after the copies, in the loop and in its tail */
    wpk_cuda_expect_barriers(PRODUCT_OF("64", "40", "32"), STAGED("exact", "exact"), 2);
    wpk_cuda_expect_barriers(PRODUCT_OF("64", "37", "32"), STAGED("exact", "guard"), 4);
    /* before the ticket, and before its readers, too */
    wpk_cuda_expect_barriers(PRODUCT_OF("64", "40", "32"), PARTS("exact", "8", "exact"), 3);
}

/* ---- spaces */

/* Of a program; `make test-all` has WPK_TEST_GPU_CANDIDATES of each, in all orders of blocks. */
#define CANDIDATES 8
#define CANDIDATES_PINNED 5 /* of a pinned algorithm */
#define CANDIDATES_MAX 1000
#define CANDIDATES_VARIABLE "WPK_TEST_GPU_CANDIDATES"
#define CONSTRUCTED 4

/* Launch again in another order; what is written is the same. */
static void expect_same_bits(struct wpk_cuda_subject *k, enum wpk_launch_order order)
{
    struct wpk_kernel_fault_report report;
    int last = k->plan.argument_count - 1;
    while (k->schedule.main.tensors[k->plan.argument[last]].role != WPK_ROLE_OUTPUT) {
        last--;
    }
    size_t size = wpk_cuda_subject_bytes(k, last);
    void *first = malloc(size);
    assert_non_null(first);
    memcpy(first, (void *)(uintptr_t)k->address[last], size); // NOLINT: a host's address
    wpk_cuda_subject_erase(k);
    k->order = order;
    assert_int_equal(wpk_cuda_subject_launch(k, &report), WPK_OK);
    assert_int_equal(report.fault, WPK_KERNEL_FAULT_NONE);
    assert_memory_equal(first, (void *)(uintptr_t)k->address[last], size); // NOLINT: as above
    free(first);
}

/* Candidates that are constructed, drawn, and made gene by gene. */
static void test_candidates(void **state)
{
    (void)state;
    static struct wpk_cuda_subject k; /* large */
    struct wpk_cuda_nvrtc nvrtc;
    struct wpk_rng rng;
    wpk_cuda_subject_open(&nvrtc);
    wpk_rng_seed(&rng, 2);
    const char *many = getenv(CANDIDATES_VARIABLE);
    for (size_t p = 0; p < PROGRAMS; p++) {
        struct wpk_space space;
        static struct wpk_candidate made[CANDIDATES_MAX]; /* large */
        bool allowed[WPK_CHOICES_MAX];
        bool pinned = programs[p].algorithm[0] != '\0';
        int count = 0, wanted = many != NULL ? (int)strtol(many, NULL, 10)
                                : pinned     ? CANDIDATES_PINNED
                                             : CANDIDATES;
        assert_in_range(wanted, CONSTRUCTED + 1, CANDIDATES_MAX);
        wpk_cuda_derive(programs[p].text, false, &space);
        if (pinned) {
            struct wpk_diag diag = {0};
            if (wpk_space_pin(&space, "algorithm", programs[p].algorithm, &diag) != WPK_OK) {
                fail_msg("%s: %s", programs[p].text, diag.text);
            }
        }
        assert_int_equal(wpk_space_construct(&space, made, CONSTRUCTED, &count), WPK_OK);
        assert_true(count > 0);
        for (; count < wanted - 1; count++) {
            assert_int_equal(wpk_space_draw(&space, &rng, &made[count]), WPK_OK);
        }
        assert_int_equal(wpk_mask_begin(&space, made[0].variant, &made[count]), WPK_OK);
        for (int g = 0; g < made[count].gene_count; g++) {
            int left = wpk_mask_values(&space, &made[count], g, allowed), choice = 0;
            assert_true(left > 0);
            for (int at = (int)wpk_rng_below(&rng, (uint64_t)left); at > 0 || !allowed[choice];) {
                at -= allowed[choice++];
            }
            wpk_mask_decide(&space, &made[count], g, choice);
        }
        for (int i = 0; i < wanted; i++) {
            wpk_cuda_lower(&space, &made[i], &k.schedule);
            if (getenv("WPK_TEST_SHOW") != NULL) {
                char text[WPK_CANDIDATE_TEXT_MAX];
                (void)wpk_candidate_encode(&space, &made[i], text, sizeof(text));
                fprintf(stderr, "program %zu, candidate %d: %s\n", p, i, text);
            }
            k.order = (enum wpk_launch_order)(i % WPK_LAUNCH_ORDERS);
            k.assembles = many != NULL || i < CONSTRUCTED;
            wpk_cuda_subject_run(&nvrtc, &k, &rng, programs[p].tolerance);
            for (int more = 1; many != NULL && more < WPK_LAUNCH_ORDERS; more++) {
                expect_same_bits(&k, (enum wpk_launch_order)((i + more) % WPK_LAUNCH_ORDERS));
            }
            wpk_cuda_subject_fini(&k);
        }
        wpk_space_fini(&space);
    }
    wpk_cuda_nvrtc_close(&nvrtc);
}

/* Operators whose first kernels access memory and its banks as well as they can: an aligned product
 * with results stored 16 bytes at a time, convolutions that leave every second element out, or read
 * windows that are apart, a constant whose rows are no multiples of 16 bytes. */
static const struct {
    const char *text, *word, *algorithm;
    double most; /* sectors over the least */
    bool apart;  /* transforms are launches of their own */
} counted[] = {
    {"input A f32[512,64]\ninput B f32[64,512]\noutput Y f32[512,512]\n"
     "Y[i,j] = sum.f32(k:64) A[i,k] * B[k,j]\n",
     "*(float4 *)&s2_Y[", "", 1.1, false},
    {"input X f32[1,32,32,32]\nconstant W f32[32,32,1,1]\noutput Y f32[1,32,16,16]\n"
     "Y[n,k,y,x] = sum.f32(c:32,r:1,s:1) X[n,c,2*y+r,2*x+s] * W[k,c,r,s]\n",
     "", "im2col", 1.1, false},
    {WPK_CUDA_CONVOLUTION("1", "32", "12", "32"), "shared", "winograd(4)", 1.2, true},
    /* each thread reads tiles for itself, which overlap */
    {WPK_CUDA_CONVOLUTION("1", "32", "12", "32"), "shared", "winograd(4)", 2.1, false},
    {"input X f32[1,3,64,64]\nconstant W f32[32,3,7,7]\noutput Y f32[1,32,32,32]\n"
     "Y[n,k,y,x] = sum.f32(c:3,r:7,s:7) X[n,c,2*y+r-3,2*x+s-3] * W[k,c,r,s]\n",
     "", "im2col", 1.1, false},
    {"input X f32[1,3,64,64]\nconstant W f32[32,3,7,7]\noutput Y f32[1,32,32,32]\n"
     "Y[n,k,y,x] = sum.f32(c:3,r:7,s:7) X[n,c,2*y+r-3,2*x+s-3] * W[k,c,r,s]\n",
     "", "direct", 1.01, false}, /* rows of its box begin at sectors */
};

static void test_counts(void **state)
{
    (void)state;
    static struct wpk_cuda_subject k; /* large */
    struct wpk_cuda_nvrtc nvrtc;
    struct wpk_rng rng;
    wpk_cuda_subject_open(&nvrtc);
    wpk_rng_seed(&rng, 4);
    for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
        struct wpk_traffic traffic = {0};
        struct wpk_space space;
        struct wpk_candidate best;
        struct wpk_diag diag = {0};
        struct wpk_kernel_fault_report report;
        int count = 0;
        double sectors = 0, least = 0;
        wpk_cuda_derive(counted[i].text, false, &space);
        if (counted[i].algorithm[0] != '\0') {
            assert_int_equal(wpk_space_pin(&space, "algorithm", counted[i].algorithm, &diag),
                             WPK_OK);
            assert_int_equal(wpk_space_pin(&space, "layout", "asis", &diag), WPK_OK);
        }
        if (counted[i].apart) {
            assert_int_equal(wpk_space_pin(&space, "T_m.at", "root", &diag), WPK_OK);
            assert_int_equal(wpk_space_pin(&space, "T_v.at", "root", &diag), WPK_OK);
            assert_int_equal(wpk_space_pin(&space, "T_m.block.k", "16", &diag), WPK_OK);
        }
        assert_int_equal(wpk_space_construct(&space, &best, 1, &count), WPK_OK);
        wpk_cuda_lower(&space, &best, &k.schedule);
        wpk_cuda_subject_print(&k);
        assert_int_equal(k.plan.step_count, counted[i].apart ? 3 : 1);
        wpk_cuda_subject_compile(&nvrtc, &k);
        wpk_cuda_subject_fill(&k, &rng);
        assert_int_equal(wpk_traffic_init(&traffic, &k.memory), WPK_OK);
        k.traffic = &traffic;
        assert_int_equal(wpk_cuda_subject_launch(&k, &report), WPK_OK);
        assert_int_equal(report.fault, WPK_KERNEL_FAULT_NONE);
        for (size_t r = 0; r < traffic.range_count; r++) {
            sectors += (double)traffic.range[r].sectors;
            least += wpk_traffic_least(&traffic.range[r]);
        }
        assert_true(sectors == (double)k.counts.global_sectors);
        if (sectors > counted[i].most * least ||
            (double)k.counts.shared_wavefronts > 1.1 * (double)k.counts.shared_least) {
            fail_msg("%s: %.0f sectors, least %.0f; %llu wavefronts, least %llu", counted[i].text,
                     sectors, least, (unsigned long long)k.counts.shared_wavefronts,
                     (unsigned long long)k.counts.shared_least);
        }
        assert_non_null(strstr(wpk_buf_text(&k.text), counted[i].word));
        wpk_traffic_fini(&traffic);
        wpk_cuda_subject_fini(&k);
        wpk_space_fini(&space);
    }
    wpk_cuda_nvrtc_close(&nvrtc);
}

/* With free layouts a convolution's tensors may have their channels last, beside those as written.
 */
static void test_layouts(void **state)
{
    (void)state;
    static struct wpk_cuda_subject k; /* large */
    struct wpk_cuda_nvrtc nvrtc;
    struct wpk_space space;
    struct wpk_candidate made[8];
    struct wpk_diag diag = {0};
    struct wpk_rng rng;
    int count = 0;
    wpk_cuda_subject_open(&nvrtc);
    wpk_rng_seed(&rng, 6);
    static const char *const layouts[] = {"asis", "last1"};
    for (int i = 0; i < 2; i++) {
        wpk_cuda_derive(WPK_CUDA_CONVOLUTION("1", "16", "12", "24"), false, &space);
        assert_int_equal(wpk_space_pin(&space, "layout", layouts[i], &diag), WPK_OK);
        assert_int_equal(wpk_space_construct(&space, made, 8, &count), WPK_OK);
        assert_true(count > 1);
        for (int c = 0; c < count; c++) {
            wpk_cuda_lower(&space, &made[c], &k.schedule);
            const struct wpk_program *program = &k.schedule.main;
            const struct wpk_tensor *y = &program->tensors[wpk_program_output(program)];
            assert_int_equal(y->extent[y->rank - 1] == 24, i == 1);
            wpk_cuda_subject_run(&nvrtc, &k, &rng, 0);
            wpk_cuda_subject_fini(&k);
        }
        wpk_space_fini(&space);
    }
    wpk_cuda_nvrtc_close(&nvrtc);
}

#define PINS_MAX 5

/* Candidates with these genes. Winograd in two launches, of both kinds, and in one: the products of
 * a block are of whole rows of tiles, or of all; at a time some of the points, or all, in parts
 * over blocks; with channels last, too; of phases. Boxes of windows: in groups, the last blocks of
 * rows move inwards, strides, steps that do not divide the channels, copies ahead, parts, and
 * without a row axis. */
static const struct {
    const char *text;
    const char *pins[PINS_MAX][2];
    int launches;
} chosen[] = {
    {"input X f32[2,6,4,9,9]\nconstant W f32[4,5,6,3,3]\noutput Y f32[2,4,5,7,7]\n"
     "Y[n,g,k,y,x] = sum.f32(c:6,r:3,s:3) X[n,c,g,y+r,x+s] * W[g,k,c,r,s]\n",
     {{"algorithm", "direct"}, {"Y.stage.X_b_t", "box"}},
     1},
    {WPK_CUDA_CONVOLUTION("1", "32", "7", "32"),
     {{"algorithm", "winograd(2)"}, {"T_m.at", "Y"}, {"T_v.at", "root"}, {"T_m.parts.c", "4"}},
     2},
    {WPK_CUDA_CONVOLUTION("2", "16", "12", "16"),
     {{"algorithm", "winograd(2)"}, {"T_m.at", "Y"}, {"T_v.at", "root"}, {"T_m.together.ab", "4"}},
     2},
    {WPK_CUDA_CONVOLUTION("1", "16", "12", "24"),
     {{"algorithm", "winograd(4)"}, {"T_m.at", "root"}, {"T_v.at", "T_m"}, {"T_m.parts.c", "2"}},
     2},
    {WPK_CUDA_CONVOLUTION("2", "16", "12", "16"),
     {{"algorithm", "winograd(4)"}, {"T_m.at", "Y"}, {"T_v.at", "T_m"}},
     1},
    {WPK_CUDA_CONVOLUTION("1", "32", "7", "8"), /* one block, without parts */
     {{"algorithm", "winograd(2)"}, {"T_m.at", "Y"}, {"T_v.at", "T_m"}, {"T_m.parts.c", "4"}},
     1},
    {"input X f32[1,12,12,8]\nconstant W f32[3,3,8,16]\nintermediate T f32[1,12,12,16]\n"
     "output Y f32[1,12,12,16]\n"
     "T[n,y,x,k] = sum.f32(c:8,r:3,s:3) X[n,y+r-1,x+s-1,c] * W[r,s,c,k]\n"
     "Y[n,y,x,k] = max(T[n,y,x,k], 0)\n",
     {{"algorithm", "winograd(4)"}, {"T_m.at", "Y"}, {"T_v.at", "T_m"}},
     1},
    {"input X f32[2,12,13,20]\nconstant W f32[20,12,3,3]\nintermediate T f32[2,20,7,10]\n"
     "output Y f32[2,20,7,10]\n"
     "T[n,k,y,x] = sum.f32(c:12,r:3,s:3) X[n,c,2*y+r-1,2*x+s-1] * W[k,c,r,s]\n"
     "Y[n,k,y,x] = max(T[n,k,y,x], 0)\n",
     {{"algorithm", "phased-winograd(4,2)"},
      {"layout", "asis"},
      {"T_m.at", "Y"},
      {"T_v.at", "T_m"},
      {"T_m.block.k", "16"}},
     1},
    {WPK_CUDA_CONVOLUTION("2", "12", "13", "20"),
     {{"algorithm", "direct"}, {"Y.stage.X_b_t", "box"}, {"Y.together.y", "8"}},
     1},
    {"input X f32[1,32,15,15]\nconstant W f32[20,32,3,3]\noutput Y f32[1,20,8,8]\n"
     "Y[n,k,y,x] = sum.f32(c:32,r:3,s:3) X[n,c,2*y+r-1,2*x+s-1] * W[k,c,r,s]\n",
     {{"algorithm", "direct"},
      {"Y.stage.X_b_t", "box"},
      {"Y.parts.c", "2"},
      {"Y.step.c", "8"},
      {"Y.depth", "2"}},
     1},
    {"input X f32[1,10,14,9]\nconstant W f32[10,3,3]\noutput Y f32[1,10,14,9]\n"
     "Y[n,c,y,x] = sum.f32(r:3,s:3) X[n,c,y+r-1,x+s-1] * W[c,r,s]\n",
     {{"algorithm", "direct"}, {"Y.stage.X_b_t", "box"}},
     1},
};

static void test_chosen(void **state)
{
    (void)state;
    static struct wpk_cuda_subject k; /* large */
    struct wpk_cuda_nvrtc nvrtc;
    struct wpk_rng rng;
    wpk_cuda_subject_open(&nvrtc);
    wpk_rng_seed(&rng, 8);
    for (size_t i = 0; i < sizeof(chosen) / sizeof(chosen[0]); i++) {
        struct wpk_space space;
        struct wpk_candidate best;
        struct wpk_diag diag = {0};
        int count = 0;
        wpk_cuda_derive(chosen[i].text, false, &space);
        for (int p = 0; p < PINS_MAX && chosen[i].pins[p][0] != NULL; p++) {
            if (wpk_space_pin(&space, chosen[i].pins[p][0], chosen[i].pins[p][1], &diag) !=
                WPK_OK) {
                fail_msg("%s: %s", chosen[i].text, diag.text);
            }
        }
        assert_int_equal(wpk_space_construct(&space, &best, 1, &count), WPK_OK);
        wpk_cuda_lower(&space, &best, &k.schedule);
        wpk_cuda_subject_run(&nvrtc, &k, &rng, 0);
        assert_int_equal(k.plan.step_count, chosen[i].launches);
        wpk_cuda_subject_fini(&k);
        wpk_space_fini(&space);
    }
    wpk_cuda_nvrtc_close(&nvrtc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product),    cmocka_unit_test(test_tails),
        cmocka_unit_test(test_launches),   cmocka_unit_test(test_rows),
        cmocka_unit_test(test_ahead),      cmocka_unit_test(test_ahead_window),
        cmocka_unit_test(test_parts),      cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_candidates), cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_counts),     cmocka_unit_test(test_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
