/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: text and back, and what the check of nests refuses. */
#include "nest/schedule.h"

#include "nest/nest.h"
#include "target/codegen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define INLINED 80 /* stages of a chain */

#define HEAD                                                                                       \
    "wpk-schedule 2\ntarget x86-64-linux-sse41-avx threads 1\nby halide-cpu\n"                     \
    "layout X f32[12,20] 0,1\nlayout Y f32[12] 0\nprogram\n"                                       \
    "input X f32[12,20]\nintermediate T f32[12]\noutput Y f32[12]\n"                               \
    "T[i] = sum.f32(j:20) X[i,j]\nY[i] = T[i] * 2\nend\n"

#define FIRST_LINE 13 /* of the nest */

/* The simplest nest of each stage. */
#define Y_SIMPLE "stage Y root\n  serial i\n"
#define T_SIMPLE "stage T root\n  init\n    serial i\n  update\n    serial i\n    serial j\n"

static wpk_err parse(const char *nest, struct wpk_schedule *out, struct wpk_diag *diag)
{
    char text[4096];
    snprintf(text, sizeof(text), "%s%s", HEAD, nest);
    memset(diag, 0, sizeof(*diag));
    return wpk_schedule_parse(text, out, diag);
}

/* ---- text */

/* The text `nest`, parsed and printed again, is `printed`. */
static void expect_text(const char *nest, const char *printed)
{
    struct wpk_schedule schedule;
    struct wpk_buf text = {0};
    struct wpk_diag diag;
    if (parse(nest, &schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line - FIRST_LINE + 1, diag.column, diag.text, nest);
    }
    assert_int_equal(wpk_schedule_print(&schedule, &text), WPK_OK);
    assert_string_equal(strstr(wpk_buf_text(&text), "end\n") + 4, printed);
    wpk_buf_fini(&text);
    wpk_schedule_fini(&schedule);
}

static void expect_same_text(const char *nest)
{
    expect_text(nest, nest);
}

static void test_every_word_survives_its_text(void **state)
{
    (void)state;
    expect_same_text(Y_SIMPLE T_SIMPLE);
    expect_same_text("stage Y root\n  parallel i step 5 guard\n  serial i.1 step 1 shift whole\n"
                     "  unroll i.2 step 2 predicate\n  lanes i.3\n"
                     "stage T in Y i.1\n  scope stack\n  extent i 1\n  align i 4\n  stored i\n"
                     "  init\n    unroll i\n  update atomic\n    serial j step 4 round whole\n"
                     "    lanes j.1\n");
    expect_same_text("stage Y root\n  serial i\nstage T in Y i\n  scope register\n  expanded\n");
    expect_same_text("stage Y root\n  serial i step 4 exact\n  serial i.1\nstage T in Y i.1\n"
                     "  slide i\n  expanded\n");
    expect_same_text("stage Y root\nstage T inline\n");
    /* comments and blanks are not kept */
    expect_text("# nothing\n\n  stage  Y root # all\nserial i\n" T_SIMPLE, Y_SIMPLE T_SIMPLE);
}

static void expect_error_at(const char *nest, wpk_err err, int line, int column, const char *words)
{
    struct wpk_schedule schedule;
    struct wpk_diag diag;
    assert_int_equal(parse(nest, &schedule, &diag), err);
    if (diag.line != FIRST_LINE + line || diag.column != column ||
        strstr(diag.text, words) == NULL) {
        fail_msg("%d:%d: %s, not %s\n%s", diag.line - FIRST_LINE, diag.column, diag.text, words,
                 nest);
    }
}

static void test_errors_have_positions(void **state)
{
    (void)state;
    /* stages and places */
    expect_error_at("serial i\n", WPK_EPARSE, 0, 1, "expected stage NAME PLACE");
    expect_error_at("stage T root\n", WPK_EPARSE, 0, 7, "expected stage Y");
    expect_error_at("stage Y\n", WPK_EPARSE, 0, 1, "root, inline, or in STAGE LOOP");
    expect_error_at("stage Y at root\n", WPK_EPARSE, 0, 9, "root, inline, or in STAGE LOOP");
    expect_error_at(Y_SIMPLE, WPK_EPARSE, 1, 1, "stage T is missing");
    expect_error_at(Y_SIMPLE T_SIMPLE "stage Z root\n", WPK_EPARSE, 8, 1, "no more stages");
    expect_error_at(Y_SIMPLE "stage T in Z i\n", WPK_EPARSE, 2, 12, "a stage that reads T");
    expect_error_at("stage Y root\n  serial i step 4 exact\n  lanes i.1\nstage T in Y k\n",
                    WPK_EPARSE, 3, 14, "one of its loops: i i.1");
    expect_error_at(Y_SIMPLE "stage T root\n  serial i\n", WPK_EPARSE, 3, 3, "below 'init'");
    expect_error_at(Y_SIMPLE "stage T root\n", WPK_EPARSE, 2, 1, "write 'init' and 'update'");
    expect_error_at(Y_SIMPLE "stage T root\n  update\n", WPK_EPARSE, 3, 3, "after 'init'");
    expect_error_at(Y_SIMPLE "stage T inline\n  serial i\n", WPK_EPARSE, 3, 3, "no loops");
    expect_error_at("stage Y root\n  update\n", WPK_EPARSE, 1, 3, "'update' comes after");
    expect_error_at("stage Y root\n  init\n", WPK_EPARSE, 1, 3, "below a reduction");
    /* loops */
    expect_error_at("stage Y root\n  vectorize i\n", WPK_EPARSE, 1, 3, "expected a binding");
    expect_error_at("stage Y root\n  serial j\n", WPK_EPARSE, 1, 10, "an axis of Y");
    expect_error_at(Y_SIMPLE "stage T root\n  init\n    serial j\n", WPK_EPARSE, 4, 12,
                    "an axis of T that it does not reduce");
    expect_error_at("stage Y root\n  serial i.1\n", WPK_EPARSE, 1, 10, "write i:");
    expect_error_at("stage Y root\n  serial i step 4 exact\n  lanes i\n", WPK_EPARSE, 2, 9,
                    "write i.1:");
    expect_error_at("stage Y root\n  serial i step four exact\n", WPK_EPARSE, 1, 17, "number");
    expect_error_at("stage Y root\n  serial i step +4 guard\n", WPK_EPARSE, 1, 17, "without +");
    expect_error_at("stage Y root\n  serial i step 04 guard\n", WPK_EPARSE, 1, 17, "leading zeros");
    expect_error_at("stage Y root\n  serial i step -0 guard\n", WPK_EPARSE, 1, 17, "number");
    expect_error_at("stage Y root\n  serial i step 0 guard\n", WPK_ERANGE, 1, 17, "1 ... 1024");
    expect_error_at("stage Y root\n  serial i step 1 exact\n", WPK_ERANGE, 1, 17, "2 ... 1024");
    expect_error_at("stage Y root\n  serial i step 4 about\n", WPK_EPARSE, 1, 19, "TAIL exact");
    expect_error_at("stage Y root\n  serial i whole 4\n", WPK_EPARSE, 1, 18, "end of the line");
    /* properties */
    expect_error_at("stage Y root\n  scope moon\n", WPK_EPARSE, 1, 9,
                    "expected scope register, stack, heap, output, shared or global");
    expect_error_at("stage Y root\n  slide i\n", WPK_EPARSE, 1, 3, "below a stage in a loop");
    expect_error_at(Y_SIMPLE "stage T in Y i\n  slide i.1\n", WPK_EPARSE, 3, 9,
                    "one of its loops: i");
    expect_error_at("stage Y root\n  extent j 4\n", WPK_EPARSE, 1, 10, "each axis of Y");
    expect_error_at("stage Y root\n  extent i 13\n", WPK_ERANGE, 1, 12, "1 ... 12");
    expect_error_at("stage Y root\n  align i 1\n", WPK_ERANGE, 1, 11, "2 ...");
    expect_error_at("stage Y root\n  stored j\n", WPK_EPARSE, 1, 10, "each axis of Y");
    expect_error_at("stage Y root\n  stored i\n  scope heap\n", WPK_EPARSE, 2, 3, "comes earlier");
    expect_error_at("stage Y root\n  serial i\n  scope heap\n", WPK_EPARSE, 2, 3, "comes earlier");
    expect_error_at("stage Y root\n  expanded\n", WPK_EPARSE, 1, 3, "below a reduction");
}

static void expect_head_error(const char *text, int line, int column, const char *words)
{
    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    assert_int_not_equal(wpk_schedule_parse(text, &schedule, &diag), WPK_OK);
    if (diag.line != line || diag.column != column || strstr(diag.text, words) == NULL) {
        fail_msg("%d:%d: %s, not %s", diag.line, diag.column, diag.text, words);
    }
}

static void test_heads(void **state)
{
    (void)state;
    expect_head_error("", 0, 0, "expected: wpk-schedule 2");
    expect_head_error("wpk-schedule 3\n", 1, 1, "expected: wpk-schedule 2");
    expect_head_error("wpk-schedule 1\ntarget x threads 1\n", 1, 14,
                      "wpk-schedule 1 is no longer read: tune the operator again");
    expect_head_error("wpk-schedule 2\n", 1, 1, "no target");
    expect_head_error("wpk-schedule 2\ntarget x threads 1\n", 2, 1, "no back end");
    expect_head_error("wpk-schedule 2\ntarget x threads 1\nprogram\n", 3, 1,
                      "expected: by BACKEND, halide-cpu or c");
    expect_head_error("wpk-schedule 2\ntarget x threads 1\nby nobody\n", 3, 4,
                      "expected: by BACKEND, halide-cpu");
    expect_head_error("wpk-schedule 2\ntarget x threads 1\nby halide-cpu\n", 3, 1, "no program");
    expect_head_error("wpk-schedule 2\ntarget x threads 1\nby halide-cpu\nprogram\ninput X f32[2]\n"
                      "output Y f32[2]\nY[i] = X[k]\nend\n",
                      7, 10, "");
}

/* ---- validity */

/* Refused with a text that has these words, in this line of the nest; NULL: accepted. */
static void expect_refused(const char *nest, int line, const char *words)
{
    struct wpk_schedule schedule;
    struct wpk_diag diag;
    if (parse(nest, &schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line - FIRST_LINE, diag.column, diag.text, nest);
    }
    wpk_err err = wpk_codegen_check(&schedule, &diag);
    if (words == NULL ? err != WPK_OK
                      : err != WPK_EINVAL || strstr(diag.text, words) == NULL ||
                            diag.line != FIRST_LINE + line) {
        fail_msg("%s%d: %s, not %s", nest, diag.line - FIRST_LINE, diag.text,
                 words == NULL ? "accepted" : words);
    }
    wpk_schedule_fini(&schedule);
}

static void test_loops_are_checked(void **state)
{
    (void)state;
    expect_refused(Y_SIMPLE T_SIMPLE, 0, NULL);
    expect_refused("stage Y root\n" T_SIMPLE, 0, "no loop over the axis i: write serial i");
    expect_refused("stage Y root\n  serial i step 5 exact\n  lanes i.1\n" T_SIMPLE, 1,
                   "stage Y loop i: the step 5 does not divide 12: write guard or shift");
    expect_refused("stage Y root\n  serial i step 4 exact\n  unroll i.1 step 3 exact\n"
                   "  lanes i.2\n" T_SIMPLE,
                   2, "the step 3 does not divide 4");
    expect_refused("stage Y root\n  serial i step 4 exact\n" T_SIMPLE, 1, "has a step of 1");
    expect_refused("stage Y root\n  serial i step 2 exact\n  serial i.1 step 4 exact\n"
                   "  lanes i.2\n" T_SIMPLE,
                   1, "larger step");
    expect_refused("stage Y root\n  serial i step 3 exact\n  serial i.1 step 2 exact\n"
                   "  lanes i.2\n" T_SIMPLE,
                   1, "no multiple of 2");
    /* blocks of two tiles of five: three tiles are no multiple of two */
    expect_refused("stage Y root\n  serial i step 10 exact\n  serial i.1 step 5 guard\n"
                   "  lanes i.2\n" T_SIMPLE,
                   1, "does not divide");
    expect_refused("stage Y root\n  lanes i step 4 exact\n  unroll i.1\n" T_SIMPLE, 1,
                   "lanes are not cut");
    expect_refused("stage Y root\n  unroll i step 4 exact\n  serial i.1\n" T_SIMPLE, 1,
                   "around a loop over the same axis");
    /* reductions */
    expect_refused(Y_SIMPLE "stage T root\n  init\n    serial i\n  update\n    lanes i\n"
                            "    serial j\n",
                   6, "lanes are the innermost loop");
    expect_refused(Y_SIMPLE "stage T root\n  init\n    lanes i\n  update\n    serial j\n"
                            "    lanes i\n",
                   0, NULL);
    expect_refused(Y_SIMPLE "stage T root\n  init\n    serial i\n  update\n    unroll i\n"
                            "    serial j\n",
                   7, "stage T update loop j: it is inside a loop that is unrolled");
    expect_refused(Y_SIMPLE "stage T root\n  init\n    serial i\n  update\n    serial i\n"
                            "    lanes j\n",
                   7, "only below 'update atomic'");
    expect_refused(Y_SIMPLE "stage T root\n  init\n    serial i\n  update atomic\n"
                            "    serial i\n    lanes j\n",
                   0, NULL);
    expect_refused(Y_SIMPLE "stage T root\n  init\n    serial i\n  update\n    serial i\n"
                            "    parallel j\n",
                   7, "do not run in parallel");
    expect_refused(Y_SIMPLE "stage T root\n  init\n    serial i\n  update\n    serial i\n"
                            "    serial j step 3 shift\n    unroll j.1\n",
                   7, "cannot be shifted");
    expect_refused(Y_SIMPLE "stage T root\n  init\n    serial i\n  update\n    serial i\n", 2,
                   "no loop over the axis j");
    expect_refused(Y_SIMPLE "stage T root\n  expanded\n  lanes i\n", 0, NULL);
    expect_refused("stage Y root\n  serial i step 5 round\n  lanes i.1\n" T_SIMPLE, 1,
                   "nothing past its end");
}

/* A back end names each loop, and has room for so many. */
static void test_loops_are_counted(void **state)
{
    (void)state;
    struct wpk_buf text = {0};
    wpk_buf_append_text(&text, "stage Y root\n  serial i step 1 guard\n");
    for (int i = 1; i < 32; i++) {
        wpk_buf_printf(&text, "  serial i.%d step 1 guard\n", i);
    }
    wpk_buf_append_text(&text, "  serial i.32\n" T_SIMPLE);
    expect_refused(wpk_buf_text(&text), 33, "more than 32 loops");
    wpk_buf_fini(&text);
}

static void test_places_are_checked(void **state)
{
    (void)state;
#define Y_TILES "stage Y root\n  serial i step 4 exact\n  lanes i.1\n"
#define T_LOOPS "  init\n    lanes i\n  update\n    serial j\n    lanes i\n"
    expect_refused(Y_TILES "stage T in Y i\n  extent i 4\n" T_LOOPS, 0, NULL);
    expect_refused(Y_TILES "stage T in Y i\n  extent i 5\n" T_LOOPS, 3,
                   "an extent of 4 of i is needed there, not 5");
    expect_refused(Y_TILES "stage T in Y i\n  extent i 3\n" T_LOOPS, 3, "not 3");
    expect_refused(Y_TILES "stage T in Y i.1\n" T_LOOPS, 3, "inside lanes");
    expect_refused(Y_SIMPLE "stage T inline\n", 2, "a reduction cannot be inline");
    expect_refused("stage Y inline\n" T_SIMPLE, 0, "an output or a reduction cannot be inline");
    expect_refused("stage Y root\n  scope heap\n  serial i\n" T_SIMPLE, 0,
                   "an output has the caller's storage");
    expect_refused(Y_TILES "stage T in Y i\n  slide i\n  expanded\n  serial i\n", 3,
                   "choose one further out");
#undef Y_TILES
#undef T_LOOPS
    expect_refused("stage Y root\n  serial i step 4 exact\n  serial i.1\nstage T in Y i.1\n"
                   "  slide i\n  expanded\n  serial i\n",
                   0, NULL);
    expect_refused("stage Y root\n  serial i step 4 exact\n  unroll i.1\nstage T in Y i.1\n"
                   "  slide i\n  expanded\n  serial i\n",
                   3, "are serial");
    expect_refused("stage Y root\n  serial i step 4 exact\n  serial i.1\nstage T in Y i.1\n"
                   "  slide i\n  extent i 1\n  expanded\n",
                   3, "has no extent");
}

static void test_blocks_and_threads_are_checked(void **state)
{
    (void)state;
#define Y_GRID "stage Y root\n  block.x i step 4 exact\n  thread.x i.1\n"
    expect_same_text(Y_GRID T_SIMPLE);
    expect_refused(Y_GRID T_SIMPLE, 1, "block.x needs a target of a GPU: write parallel");
    expect_refused(Y_SIMPLE "stage T in Y i\n  scope shared\n  extent i 1\n  init\n  update\n"
                            "    serial j\n",
                   2, "scope shared needs a target of a GPU: write stack");
    static const struct {
        const char *loops, *words;
        int line;
    } grids[] = {
        {"  thread.x i\n", "blocks stand around", 1},
        {"  thread.x i step 4 exact\n  block.x i.1\n", "blocks stand around", 1},
        {"  block.x i step 4 exact\n  block.y i.1\n", "z around y", 2},
        {"  block.y i step 4 exact\n  thread.x i.1\n", "z around y", 2},
        {"  block.x i step 4 exact\n  thread.z i.1\n", "stand around block.x and thread.x", 0},
    };
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), "stage Y root\n%s" T_SIMPLE, grids[i].loops);
        expect_refused(text, grids[i].line, grids[i].words);
    }
    expect_refused(Y_SIMPLE "stage T root\n  init\n    serial i\n  update\n    serial i\n"
                            "    block.x j\n",
                   7, "do not run in parallel");
    expect_refused(Y_SIMPLE "stage T root\n  init\n    serial i\n  update atomic\n    block.x j\n"
                            "    serial i\n",
                   6, "parts over blocks are");
#undef Y_GRID
}

/* T is read by both Y and, through the inlined U, Y again. */
static void test_places_enclose_all_readers(void **state)
{
    (void)state;
    static const char head[] =
        "wpk-schedule 2\ntarget x threads 1\nby halide-cpu\nlayout X f32[12] 0\nlayout Y f32[12] "
        "0\nprogram\n"
        "input X f32[12]\nintermediate T f32[12]\nintermediate U f32[12]\noutput Y f32[12]\n"
        "T[i] = exp(X[i])\nU[i] = T[i] * 2\nY[i] = T[i] + U[i]\nend\nstage Y root\n  serial i\n";
    static const struct {
        const char *nest, *words;
    } cases[] = {
        {"stage U inline\nstage T in Y i\n  extent i 1\n", NULL},
        {"stage U in Y i\n  extent i 1\nstage T in Y i\n  extent i 1\n", NULL},
        {"stage U root\n  serial i\nstage T in Y i\n  serial i\n",
         "stage T: U reads it outside of that loop"},
        {"stage U root\n  serial i\nstage T in U i\n  extent i 1\n", "Y reads it outside"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[1024];
        struct wpk_schedule schedule;
        struct wpk_diag diag = {0};
        snprintf(text, sizeof(text), "%s%s", head, cases[i].nest);
        if (wpk_schedule_parse(text, &schedule, &diag) != WPK_OK) {
            fail_msg("%s\n%s", diag.text, text);
        }
        wpk_err err = wpk_codegen_check(&schedule, &diag);
        bool refused = err == WPK_EINVAL;
        if (refused != (cases[i].words != NULL) ||
            (refused && strstr(diag.text, cases[i].words) == NULL)) {
            fail_msg("%s\n%s", diag.text, text);
        }
        wpk_schedule_fini(&schedule);
    }
}

/* T0 is read through chains of inlined stages, of which there are more than could be followed one
 * by one. */
static void test_inlined_readers_are_followed_once(void **state)
{
    (void)state;
    struct wpk_buf text = {0};
    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    wpk_buf_append_text(&text, "wpk-schedule 2\ntarget x threads 1\nby c\nlayout X f32[8] 0\n"
                               "layout Y f32[8] 0\nprogram\ninput X f32[8]\n");
    for (int i = 0; i < INLINED; i++) {
        wpk_buf_printf(&text, "intermediate T%d f32[8]\n", i);
    }
    wpk_buf_append_text(&text, "output Y f32[8]\nT0[i] = exp(X[i])\nT1[i] = T0[i] * 2\n");
    for (int i = 2; i < INLINED; i++) {
        wpk_buf_printf(&text, "T%d[i] = T%d[i] + T%d[i]\n", i, i - 1, i - 2);
    }
    wpk_buf_printf(&text, "Y[i] = T%d[i] + T%d[i]\nend\nstage Y root\nserial i\n", INLINED - 1,
                   INLINED - 2);
    for (int i = INLINED - 1; i > 0; i--) {
        wpk_buf_printf(&text, "stage T%d inline\n", i);
    }
    wpk_buf_append_text(&text, "stage T0 in Y i\nserial i\n");
    if (wpk_schedule_parse(wpk_buf_text(&text), &schedule, &diag) != WPK_OK ||
        wpk_nest_check(schedule.nest, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    wpk_schedule_fini(&schedule);
    wpk_buf_fini(&text);
}

#define AHEAD_HEAD                                                                                 \
    "wpk-schedule 2\ntarget x threads 1\nby halide-cpu\nlayout X f32[12,20] 0,1\n"                 \
    "layout Y f32[12] 0\nprogram\ninput X f32[12,20]\nintermediate V f32[12,20]\n"                 \
    "intermediate T f32[12]\noutput Y f32[12]\nV[i,j] = X[i,j]\n"                                  \
    "T[i] = sum.f32(j:20) V[i,j]\nY[i] = T[i] * 2\nend\n"
#define AHEAD_NEST(step, place, lines)                                                             \
    "stage Y root\n  block.x i step 4 exact\n  thread.x i.1\nstage T in Y i\n  init\n"             \
    "    thread.x i\n  update\n    serial j step " step "\n    thread.x i\n    serial j.1\n"       \
    "stage V in T " place "\n" lines "  thread.x i\n  serial j\n"

static void expect_ahead(const char *nest, const char *words)
{
    struct wpk_schedule schedule;
    struct wpk_buf text = {0}, again = {0};
    struct wpk_diag diag = {0};
    wpk_buf_printf(&text, "%s%s", AHEAD_HEAD, nest);
    assert_int_equal(wpk_schedule_parse(wpk_buf_text(&text), &schedule, &diag), WPK_OK);
    assert_int_equal(wpk_schedule_print(&schedule, &again), WPK_OK);
    assert_string_equal(strstr(wpk_buf_text(&again), "end\n") + 4, nest);
    bool checked = wpk_nest_check(schedule.nest, &diag) == WPK_OK;
    assert_int_equal(checked, words == NULL);
    if (words != NULL && strstr(diag.text, words) == NULL) {
        fail_msg("%s\n%s", diag.text, words);
    }
    /* a CPU computes nothing ahead */
    assert_true(!checked || !wpk_codegen_at(0)->accepts(&schedule, &diag));
    wpk_buf_fini(&text);
    wpk_buf_fini(&again);
    wpk_schedule_fini(&schedule);
}

static void test_what_may_be_ahead(void **state)
{
    (void)state;
    expect_ahead(AHEAD_NEST("5 exact", "j", "  scope shared\n  padded 3\n  depth 4\n"), NULL);
    expect_ahead(AHEAD_NEST("5 exact", "j", "  scope shared\n  depth 5\n"), "4 iterations");
    expect_ahead(AHEAD_NEST("8 guard", "j", "  scope shared\n  depth 2\n"), "their steps divide");
    expect_ahead(AHEAD_NEST("5 exact", "j", "  depth 2\n"), "write scope shared");
    expect_ahead(AHEAD_NEST("5 exact", "j", "  padded 2\n"), "write scope shared");
    expect_ahead(AHEAD_NEST("5 exact", "j", "  scope shared\n  spaced j 3\n"), NULL);
    expect_ahead(AHEAD_NEST("5 exact", "j", "  spaced j 2\n"), "write scope shared");
    expect_ahead(AHEAD_NEST("5 exact", "j.1", "  scope shared\n  depth 2\n"), "are serial");
    expect_ahead(AHEAD_NEST("5 exact", "j", "  scope shared\n  depth 2\n  by load\n"), NULL);
    expect_ahead(AHEAD_NEST("5 exact", "j", "  scope shared\n  by async\n"), NULL);
    expect_ahead(AHEAD_NEST("5 exact", "j", "  by load\n"), "write scope shared");
}

static void test_few_statements_are_unrolled(void **state)
{
    (void)state;
    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    const char *text =
        "wpk-schedule 2\ntarget x threads 1\nby halide-cpu\nlayout X f32[90,100] 0,1\n"
        "layout Y f32[90,100] 0,1\nprogram\ninput X f32[90,100]\n"
        "output Y f32[90,100]\nY[i,j] = X[i,j]\nend\nstage Y root\n"
        "  unroll i\n  unroll j\n";
    assert_int_equal(wpk_schedule_parse(text, &schedule, &diag), WPK_OK);
    assert_int_equal(wpk_codegen_check(&schedule, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "9000 statements are unrolled"));
    wpk_schedule_fini(&schedule);
}

/* The nest is valid, but the program that a back end prints has 64 terms of 200 erf each. */
static void test_expansion_is_bounded(void **state)
{
    (void)state;
    static char text[16384];
    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    struct wpk_program program;
    int size = snprintf(text, sizeof(text),
                        "wpk-schedule 2\ntarget x threads 1\nby c\nlayout X f32[4,64] 0,1\n"
                        "layout Y f32[4] 0\nprogram\ninput X f32[4,64]\n"
                        "intermediate T f32[4]\noutput Y f32[4]\n"
                        "T[i] = sum(k:64) (X[i,k]");
    for (int i = 0; i < 200; i++) {
        size += snprintf(text + size, sizeof(text) - (size_t)size, " + erf(X[i,k])");
    }
    snprintf(text + size, sizeof(text) - (size_t)size,
             ")\nY[i] = T[i] * 2\nend\nstage Y root\n  serial i\nstage T root\n  expanded\n"
             "  serial i\n");
    if (wpk_schedule_parse(text, &schedule, &diag) != WPK_OK ||
        wpk_codegen_check(&schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s", diag.line, diag.column, diag.text);
    }
    assert_int_equal(wpk_schedule_expand(&schedule, &program), WPK_ERANGE);
    wpk_schedule_fini(&schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_word_survives_its_text),
        cmocka_unit_test(test_errors_have_positions),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_loops_are_checked),
        cmocka_unit_test(test_loops_are_counted),
        cmocka_unit_test(test_places_are_checked),
        cmocka_unit_test(test_places_enclose_all_readers),
        cmocka_unit_test(test_blocks_and_threads_are_checked),
        cmocka_unit_test(test_inlined_readers_are_followed_once),
        cmocka_unit_test(test_what_may_be_ahead),
        cmocka_unit_test(test_few_statements_are_unrolled),
        cmocka_unit_test(test_expansion_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
