/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules that the back ends accept, and those that they refuse with a position; flags of CPUs
 * that kernels need. */
#include "target/codegen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct subject {
    const char *by;
    const char *layouts, *program;
    const char *nest;
    int line, column;  /* in the nest, from 1 */
    const char *words; /* NULL: it is accepted */
};

static int count_lines(const char *text)
{
    int count = 0;
    for (; *text != '\0'; text++) {
        count += *text == '\n';
    }
    return count;
}

static void expect(const struct subject *s)
{
    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    struct wpk_buf text = {0};
    wpk_buf_printf(&text,
                   "wpk-schedule 2\ntarget x86-64-linux-sse41 threads 2\nby %s\n%sprogram\n%send\n",
                   s->by, s->layouts, s->program);
    int head = count_lines(wpk_buf_text(&text));
    wpk_buf_append_text(&text, s->nest);
    if (wpk_schedule_parse(wpk_buf_text(&text), &schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    wpk_err err = wpk_codegen_check(&schedule, &diag);
    bool as_wanted = s->words == NULL
                         ? err == WPK_OK
                         : err == WPK_EINVAL && diag.line == head + s->line &&
                               diag.column == s->column && strstr(diag.text, s->words) != NULL;
    if (!as_wanted) {
        fail_msg("%d:%d: %s, not %s\n%s", diag.line - head, diag.column, diag.text,
                 s->words == NULL ? "accepted" : s->words, s->nest);
    }
    wpk_schedule_fini(&schedule);
    wpk_buf_fini(&text);
}

/* by, layouts, program, nest, and where and why it is refused */
#define EXPECT(...) expect(&(struct subject){__VA_ARGS__})
#define ACCEPTED 0, 0, NULL

/* ---- 21 elements */

#define ROW "halide-cpu", ROW_TEXT
#define ROW_C "c", ROW_TEXT
#define ROW_TEXT                                                                                   \
    "layout X f32[21] 0\nlayout Y f32[21] 0\n",                                                    \
        "input X f32[21]\nintermediate T f32[21]\noutput Y f32[21]\nT[i] = exp(X[i])\n"            \
        "Y[i] = T[i] * 2\n"
#define GUARDED "stage Y root\n  serial i step 8 guard\n  lanes i.1\n"

static void test_tails_of_outputs(void **state)
{
    (void)state;
    EXPECT(ROW, "stage Y root\n  serial i step 64 shift\n  lanes i.1\nstage T inline\n", 2, 3,
           "stage Y loop i: the step is larger than 21: write guard for shift");
    EXPECT(ROW,
           "stage Y root\n  serial i step 16 shift\n  serial i.1 step 8 shift\n  lanes i.2\n"
           "stage T inline\n",
           ACCEPTED);
    EXPECT(ROW,
           "stage Y root\n  serial i step 32 shift\n  serial i.1 step 8 shift\n  lanes i.2\n"
           "stage T inline\n",
           2, 3, "the step is larger than 21");
    EXPECT(ROW, "stage Y root\n  serial i step 64 guard\n  lanes i.1\nstage T inline\n", ACCEPTED);
    EXPECT(ROW, GUARDED "stage T in Y i\n  serial i step 8 shift\n  lanes i.1\n", ACCEPTED);
}

/* ---- reductions */

static void test_what_varies_is_cut(void **state)
{
    (void)state;
    EXPECT(ROW, GUARDED "stage T in Y i\n  lanes i\n", 5, 3,
           "stage T loop i: iterations around it need more or less: write serial i step N guard "
           "around it, or extent");
    EXPECT(ROW, GUARDED "stage T in Y i\n  unroll i step 4 guard\n  lanes i.1\n", 5, 3, "loop i:");
    EXPECT(ROW, GUARDED "stage T in Y i\n  serial i step 4 guard\n  lanes i.1\n", ACCEPTED);
    EXPECT(ROW, GUARDED "stage T in Y i\n  extent i 8\n  lanes i\n", ACCEPTED);
    EXPECT(ROW, GUARDED "stage T in Y i\n  extent i 8\n  align i 8\n  lanes i\n", 7, 3, "no align");
    EXPECT(ROW, GUARDED "stage T in Y i\n  extent i 8\n  align i 16\n  serial i\n", 4, 1,
           "an extent of 8 of i is no multiple of 16: leave align out");
    EXPECT(ROW, "stage Y root\n  align i 7\n  serial i\nstage T inline\n", 1, 1,
           "an output has the caller's storage");
    EXPECT(ROW_C, GUARDED "stage T in Y i\n  lanes i\n", ACCEPTED);
}

#define PRODUCT                                                                                    \
    "halide-cpu", "layout A f32[12,30] 0,1\nlayout B f32[30,32] 0,1\nlayout Y f32[12,32] 0,1\n",   \
        "input A f32[12,30]\ninput B f32[30,32]\nintermediate P f32[30,32]\n"                      \
        "intermediate T f32[12,32]\noutput Y f32[12,32]\nP[k,j] = B[k,j] * 2\n"                    \
        "T[i,j] = sum.f32(k:30) A[i,k] * P[k,j]\nY[i,j] = max(T[i,j], 0)\n"
#define WHOLE_SUM                                                                                  \
    "stage Y root\n  serial i\n  serial j\nstage T root\n  init\n    serial i\n    serial j\n"     \
    "  update\n"

static void test_tiles_of_an_update(void **state)
{
    (void)state;
    EXPECT(PRODUCT,
           WHOLE_SUM "    serial i\n    serial j step 16 exact\n    serial k\n"
                     "    unroll j.1 step 8 exact\n    lanes j.2\nstage P inline\n",
           ACCEPTED);
    EXPECT(PRODUCT,
           WHOLE_SUM "    serial i\n    serial j step 16 exact\n    serial k\n"
                     "    unroll j.1 step 5 round\n    lanes j.2\nstage P inline\n",
           12, 5, "stage T update loop j.1: rounded inside a tile, an update adds terms twice");
}

/* ---- parallel loops run as one */

#define PLANE                                                                                      \
    "halide-cpu", "layout X f32[12,32] 0,1\nlayout Y f32[12,32] 0,1\n",                            \
        "input X f32[12,32]\nintermediate T f32[12,32]\noutput Y f32[12,32]\n"                     \
        "T[i,j] = exp(X[i,j])\nY[i,j] = T[i,j] * 2\n"
#define PARALLEL "stage Y root\n  parallel i\n  parallel j step 8 exact\n  serial j.1\n"

static void test_places_at_parallel_loops(void **state)
{
    (void)state;
    EXPECT(PLANE, PARALLEL "stage T in Y i\n  serial j\n", 5, 1,
           "stage T: the parallel loops of Y run as one, of which j is further in: choose that, or "
           "make it serial");
    EXPECT(PLANE, PARALLEL "stage T in Y j\n  serial j\n", ACCEPTED);
    EXPECT(PLANE, PARALLEL "stage T in Y j.1\n  slide i\n", 5, 1, "are serial");
    EXPECT(PLANE, PARALLEL "stage T in Y j.1\n  slide j\n", ACCEPTED);
}

/* ---- how much code there is */

#define LARGE                                                                                      \
    "halide-cpu", "layout X f32[130,1024] 0,1\nlayout Y f32[130,1024] 0,1\n",                      \
        "input X f32[130,1024]\nintermediate T f32[130,1024]\noutput Y f32[130,1024]\n"            \
        "T[i,j] = exp(X[i,j])\nY[i,j] = T[i,j] * 2\n"

static void test_sizes(void **state)
{
    (void)state;
    EXPECT(LARGE, "stage Y root\n  unroll i\n  lanes j\nstage T inline\n", 1, 1,
           "133120 elements are unrolled or in lanes, more than 65536");
    EXPECT(LARGE,
           "stage Y root\n  serial i step 65 exact\n  unroll i.1\n  lanes j\n"
           "stage T inline\n",
           1, 1, "66560 elements");
    EXPECT(LARGE,
           "stage Y root\n  serial i step 26 exact\n  unroll i.1\n  lanes j\n"
           "stage T inline\n",
           ACCEPTED);
    EXPECT(LARGE, "stage Y root\n  serial j\n  unroll i\nstage T in Y i\n  extent i 1 j 1\n",
           ACCEPTED);
    EXPECT(LARGE,
           "stage Y root\n  serial j step 128 exact\n  unroll i\n  unroll j.1 step 4 exact\n"
           "  lanes j.2\nstage T in Y i\n  unroll j\n",
           6, 1, "16640 statements are unrolled, more than 8192");
    EXPECT(LARGE,
           "stage Y root\n  serial i step 27 guard\n  serial j step 300 guard\n  unroll i.1\n"
           "  unroll j.1\nstage T inline\n",
           ACCEPTED);
    EXPECT(LARGE,
           "stage Y root\n  serial i step 27 guard\n  serial j step 300 guard\n  serial i.1\n"
           "  serial j.1\nstage T in Y j\n  serial i step 14 guard\n  serial j step 299 guard\n"
           "  unroll i.1\n  unroll j.1\n",
           6, 1, "66976 statements are unrolled, with the copies for tails, more than 65536");
}

/* ---- c */

#define CUBE                                                                                       \
    "halide-cpu", "layout X f32[2,2,64] 0,1,2\nlayout Y f32[2,2,64] 0,1,2\n",                      \
        "input X f32[2,2,64]\nintermediate T f32[2,2,64]\noutput Y f32[2,2,64]\n"                  \
        "T[i,j,k] = exp(X[i,j,k])\nY[i,j,k] = T[i,j,k] * 2\n"
#define T_LOOPS "  serial i\n  serial j\n  serial k\n"
#define CUBE_LOOPS "stage Y root\n" T_LOOPS
#define PAIR                                                                                       \
    "c", "layout X f32[40000] 0\nlayout Y f32[40000] 0\n",                                         \
        "input X f32[40000]\nintermediate T f32[40000]\nintermediate U f32[40000]\n"               \
        "output Y f32[40000]\nT[i] = exp(X[i])\nU[i] = T[i] * 2\nY[i] = U[i] + 1\n"
#define SLIDE                                                                                      \
    "halide-cpu", "layout X f32[100000] 0\nlayout Y f32[100000] 0\n",                              \
        "input X f32[100000]\nintermediate T f32[100000]\noutput Y f32[100000]\n"                  \
        "T[i] = exp(X[i])\nY[i] = T[i] + T[i-1]\n"
#define SLIDE_LOOPS "stage Y root\n  serial i step 100000 exact\n  serial i.1\n"

static void test_stack(void **state)
{
    (void)state;
    EXPECT(LARGE,
           "stage Y root\n  serial i\n  serial j\nstage T root\n  scope stack\n  serial i\n"
           "  serial j\n",
           4, 1, "532480 bytes do not fit on the stack: write scope heap");
    EXPECT(LARGE,
           "stage Y root\n  serial i\n  serial j\nstage T in Y i\n  scope stack\n"
           "  serial j\n",
           ACCEPTED);
    /* what align and tails add */
    EXPECT(CUBE, CUBE_LOOPS "stage T root\n  scope stack\n  align i 1024 j 1024 k 1024\n" T_LOOPS,
           5, 1, "4294967296 bytes do not fit on the stack: write scope heap");
    EXPECT(CUBE, CUBE_LOOPS "stage T root\n  scope stack\n  align i 8 j 8\n" T_LOOPS, ACCEPTED);
    for (int tail = 0; tail < 2; tail++) {
        char nest[512];
        snprintf(nest, sizeof(nest),
                 CUBE_LOOPS "stage T root\n  scope stack\n  serial i step 64 %s\n"
                            "  serial j step 64 %s\n  serial i.1\n  serial j.1\n  serial k\n",
                 tail == 0 ? "round" : "shift", tail == 0 ? "round" : "shift");
        EXPECT(CUBE, nest, 5, 1, "1048576 bytes do not fit on the stack");
    }
    EXPECT(CUBE,
           CUBE_LOOPS "stage T root\n  scope stack\n  serial i step 64 guard\n  serial i.1\n"
                      "  serial j\n  serial k\n",
           ACCEPTED);
    /* a begin that is not known */
    EXPECT(ROW, GUARDED "stage T in Y i\n  scope stack\n  align i 1024\n  serial i\n", ACCEPTED);
    /* several stages at once, each of 160000 bytes */
    EXPECT(PAIR,
           "stage Y root\n  serial i\nstage U root\n  serial i\nstage T root\n"
           "  scope stack\n  serial i\n",
           ACCEPTED);
    EXPECT(PAIR,
           "stage Y root\n  serial i\nstage U root\n  scope stack\n  serial i\n"
           "stage T root\n  scope stack\n  serial i\n",
           6, 1, "320000 bytes of this stage and those above do not fit on the stack");
    /* what slides stays for all iterations inside the loop that it slides in */
    EXPECT(SLIDE, SLIDE_LOOPS "stage T in Y i.1\n  scope stack\n  slide i\n  serial i\n", 4, 1,
           "400000 bytes do not fit on the stack");
    EXPECT(SLIDE, SLIDE_LOOPS "stage T in Y i.1\n  scope stack\n  serial i\n", ACCEPTED);
}

static void test_scopes_of_c(void **state)
{
    (void)state;
    EXPECT(ROW_C, GUARDED "stage T in Y i\n  scope shared\n  lanes i\n", 4, 1,
           "T: the back end c has no scope shared: write stack or heap");
    EXPECT(ROW_C, GUARDED "stage T in Y i\n  scope heap\n  lanes i\n", ACCEPTED);
    EXPECT(ROW_C, GUARDED "stage T in Y i\n  align i 3\n  lanes i\n", ACCEPTED);
}

#define SOFT_OF(read) "c", SOFT_TEXT(read)
#define SOFT_TEXT(read)                                                                            \
    "layout X f32[12,40] 0,1\nlayout Y f32[12,40] 0,1\n",                                          \
        "input X f32[12,40]\nintermediate E f32[12,40]\nintermediate S f32[12]\n"                  \
        "output Y f32[12,40]\nE[i,j] = exp(X[i,j])\nS[i] = sum.f32(k:40) E[i,k]\nY[i,j] = " read   \
        " / S[i]\n"
#define SOFT SOFT_OF("E[i,j]")
#define IN_ROW "  init\n    serial i\n  update\n    serial i\n    serial k\n"
#define KEPT "  scope output\n  serial i\n  serial j\n"
#define REFUSED(line, what) line, 1, what

/* Elements of the output that are not there yet, or no longer. */
static void test_scope_output(void **state)
{
    (void)state;
    static const char rows[] =
        "stage Y root\n  serial i\n  serial j\nstage S in Y i\n" IN_ROW "stage E in Y i\n" KEPT;
    EXPECT(SOFT, rows, ACCEPTED);
    EXPECT(SOFT_OF("E[i,39-j]"), rows, REFUSED(10, "the output reads it at other points than"));
    EXPECT(SOFT_OF("S[i]"), rows, REFUSED(10, "the output does not read it itself"));
    EXPECT(SOFT,
           "stage Y root\n  serial i\n  serial j\nstage S in Y j\n" IN_ROW "stage E in Y i\n" KEPT,
           REFUSED(10, "a stage reads it while the output is computed"));
    EXPECT(SOFT,
           "stage Y root\n  serial i\n  serial j\nstage S in Y i\n" IN_ROW "stage E root\n" KEPT,
           REFUSED(10, "it is not computed in an output"));
    EXPECT(SOFT,
           "stage Y root\n  serial i\n  serial j\nstage S in Y j\n" IN_ROW "stage E in Y j\n" KEPT,
           REFUSED(10, "more of it is computed in an iteration than of the output"));
    EXPECT(
        SOFT,
        "stage Y root\n  parallel i step 5 shift\n  serial i.1\n  serial j\nstage S in Y i\n" IN_ROW
        "stage E in Y i\n" KEPT,
        REFUSED(11, "the output's loops need exact steps up to its place"));
    EXPECT(
        SOFT,
        "stage Y root\n  serial i\n  serial j step 16 shift\n  serial j.1\nstage S in Y i\n" IN_ROW
        "stage E in Y i\n" KEPT,
        REFUSED(11, "the output's loops need exact steps up to its place, and no shift inside"));
    EXPECT(SOFT,
           "stage Y root\n  serial i\n  serial j\nstage S in Y i\n" IN_ROW
           "stage E in Y i\n  scope output\n  serial i\n  serial j step 16 round\n  serial j.1\n",
           REFUSED(10, "extent, slide, stored, expanded and round need storage of their own"));
    EXPECT("halide-cpu", SOFT_TEXT("E[i,j]"), rows, 10, 1,
           "scope output needs the back end c: write by c, or scope heap");
}

/* ---- flags */

/* The back end c compiles for no flag beside those it uses, whatever machine it runs on. */
static void test_needs(void **state)
{
    (void)state;
    static const struct {
        const char *by;
        enum wpk_cpu_level builder, runs_on; /* the least that has what the kernel needs */
    } cases[] = {
        {"halide-cpu", WPK_CPU_LEVEL_ZEN4, WPK_CPU_LEVEL_ZEN4},
        {"halide-cpu", WPK_CPU_LEVEL_AVX512, WPK_CPU_LEVEL_AVX512},
        {"c", WPK_CPU_LEVEL_ZEN4, WPK_CPU_LEVEL_AVX512},
        {"c", WPK_CPU_LEVEL_AVX2, WPK_CPU_LEVEL_AVX2},
        {"c", WPK_CPU_LEVEL_SSE41, WPK_CPU_LEVEL_SSE41},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_schedule schedule = {0};
        struct wpk_device device = {0}, needed = {0};
        snprintf(schedule.by, sizeof(schedule.by), "%s", cases[i].by);
        wpk_device_claim(wpk_cpu_level_flags(cases[i].builder), &device);
        wpk_target_print(&device, false, schedule.target);
        wpk_codegen_needs(&schedule, &needed);
        wpk_cpu_flags has = wpk_cpu_level_flags(cases[i].runs_on);
        wpk_cpu_flags less = wpk_cpu_level_flags((enum wpk_cpu_level)(cases[i].runs_on - 1));
        assert_true(wpk_cpu_flags_fit(needed.cpu.flags, has));
        assert_false(wpk_cpu_flags_fit(needed.cpu.flags, less));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tails_of_outputs),
        cmocka_unit_test(test_what_varies_is_cut),
        cmocka_unit_test(test_tiles_of_an_update),
        cmocka_unit_test(test_places_at_parallel_loops),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_scopes_of_c),
        cmocka_unit_test(test_scope_output),
        cmocka_unit_test(test_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
