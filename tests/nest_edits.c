/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule that is edited by hand is refused with a position, or its kernel computes what the
 * reference does and touches nothing outside of its arguments. Schedules of random programs are
 * edited at random: steps, tails, bindings, places, extents, alignment, storage. WPK_TEST_SEED
 * draws others, WPK_TEST_EDITS sets how many are built. */
#include "target/codegen.h"
#include "tests/kernel_check.h"
#include "tests/random_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEED 20261123
#define EDITS 48
#define DRAWS 3                       /* candidates of one program */
#define TRIES 4                       /* edited versions of one candidate */
#define CHANGES_MAX 3                 /* of one version */
#define REFUSED_MAX(n) ((n) / 10 + 2) /* of n edits, by the compiler: faults of Halide's own */

/* ---- edits */

static int64_t between(struct wpk_rng *rng, int64_t low, int64_t high)
{
    return wpk_rng_between(rng, low, high);
}

static void edit_loop(struct wpk_rng *rng, struct wpk_nest *nest)
{
    if (nest->loop_count == 0) {
        return;
    }
    struct wpk_nest_loop *loop = &nest->loop[between(rng, 0, nest->loop_count - 1)];
    int64_t what = between(rng, 0, 9);
    if (what < 6) {
        loop->tail = (enum wpk_tail)between(rng, 0, WPK_TAIL_COUNT - 1);
    } else if (what < 8) {
        static const int64_t steps[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 64};
        loop->step = steps[between(rng, 0, sizeof(steps) / sizeof(steps[0]) - 1)];
    } else if (what == 8) {
        loop->binding = (enum wpk_loop_binding)between(rng, 0, WPK_BIND_PARALLEL);
    } else {
        loop->whole = !loop->whole;
    }
}

static void edit_place(struct wpk_rng *rng, struct wpk_nest *nest, struct wpk_nest_entry *entry)
{
    if (entry->place.entry < 0 || wpk_rng_chance(rng, 0.2)) {
        entry->place = (struct wpk_nest_place){.entry = -1};
        entry->bounded = false;
        return;
    }
    const struct wpk_nest_entry *reader = &nest->entry[entry->place.entry];
    const struct wpk_nest_loops *loops = entry->place.update ? &reader->update : &reader->pure;
    entry->place.loop = (int)between(rng, 0, loops->count - 1);
}

static void edit_entry(struct wpk_rng *rng, struct wpk_nest *nest)
{
    struct wpk_nest_entry *entry = &nest->entry[between(rng, 0, nest->entry_count - 1)];
    int rank = wpk_nest_stage(nest, entry)->rank;
    if (entry->inlined) {
        return;
    }
    switch (between(rng, 0, 4)) {
    case 0:
        if (rank > 0) {
            int64_t align = between(rng, 2, 8);
            entry->align[between(rng, 0, rank - 1)] = align;
        }
        break;
    case 1:
        entry->bounded = !entry->bounded;
        break;
    case 2:
        edit_place(rng, nest, entry);
        break;
    case 3:
        entry->scope = (enum wpk_scope)between(rng, WPK_SCOPE_ANY, WPK_SCOPE_OUTPUT);
        break;
    default:
        entry->slides = entry->place.entry >= 0 && entry->place.loop > 0 && !entry->slides;
        entry->slide = entry->slides ? (int)between(rng, 0, entry->place.loop - 1) : 0;
    }
}

static void edit(struct wpk_rng *rng, struct wpk_schedule *schedule)
{
    int64_t changes = between(rng, 1, CHANGES_MAX);
    for (int64_t i = 0; i < changes; i++) {
        if (wpk_rng_chance(rng, 0.6)) {
            edit_loop(rng, schedule->nest);
        } else {
            edit_entry(rng, schedule->nest);
        }
    }
    if (wpk_rng_chance(rng, 0.3)) {
        snprintf(schedule->by, sizeof(schedule->by), "c");
    }
}

/* ---- subjects */

struct counts {
    int edited, unread, refused, accepted;
};

/* Put the edited schedule into the batch, as its text is read, unless it is refused. */
static void add_edited(struct wpk_kernels *batch, const struct wpk_schedule *schedule,
                       struct counts *counts)
{
    struct wpk_kernel_case *subject = &batch->subject[batch->count];
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_schedule_print(schedule, &text), WPK_OK);
    counts->edited++;
    if (wpk_schedule_parse(wpk_buf_text(&text), &subject->schedule, &diag) != WPK_OK) {
        counts->unread++;
    } else if (wpk_codegen_check(&subject->schedule, &diag) != WPK_OK) {
        wpk_schedule_fini(&subject->schedule);
        counts->refused++;
    } else {
        snprintf(subject->words, sizeof(subject->words), "edited");
        batch->count++;
        counts->accepted++;
        wpk_buf_fini(&text);
        return;
    }
    if (diag.line == 0 || diag.text[0] == '\0') {
        fail_msg("no position: %s\n%s", diag.text, wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
}

static void add_program(struct wpk_kernels *batch, struct wpk_rng *rng, int most,
                        struct counts *counts)
{
    const struct wpk_random_options kind = {.smooth = true, .products = wpk_rng_chance(rng, 0.5)};
    struct wpk_space_options options = {.layouts = wpk_rng_chance(rng, 0.5) ? "any" : "fixed",
                                        .threads = (int)between(rng, 1, 2)};
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_candidate candidate;
    struct wpk_diag diag = {0};
    options.device.cpu.flags = batch->flags;
    options.device.cpu.vector_bytes = 32;
    options.device.cpu.vector_registers = 16;
    wpk_random_program(rng, &kind, &program);
    if (wpk_space_derive(&program, &options, &space, &diag) != WPK_OK) {
        wpk_program_fini(&program);
        return;
    }
    for (int i = 0; i < DRAWS * TRIES && counts->accepted < most; i++) {
        struct wpk_schedule schedule;
        if (i % TRIES == 0 && wpk_space_draw(&space, rng, &candidate) != WPK_OK) {
            break;
        }
        assert_int_equal(wpk_lower(&space, &candidate, &schedule, &diag), WPK_OK);
        if (wpk_codegen_check(&schedule, &diag) != WPK_OK) {
            fail_msg("a candidate is refused: %s", diag.text);
        }
        edit(rng, &schedule);
        if (batch->count < WPK_KERNELS_MAX) {
            add_edited(batch, &schedule, counts);
        }
        wpk_schedule_fini(&schedule);
    }
    wpk_space_fini(&space);
    wpk_program_fini(&program);
}

/* ---- by hand: what is computed passes the ends of the axes */

#define HEAD "wpk-schedule 2\ntarget x86-64-linux-sse41-avx-avx2-f16c-fma threads 1\nby "
#define ROW                                                                                        \
    "layout X f32[21] 0\nlayout Y f32[21] 0\nprogram\ninput X f32[21]\nintermediate T f32[21]\n"   \
    "output Y f32[21]\nT[i] = exp(X[i])\nY[i] = T[i] * 2\nend\n"
#define PADDED                                                                                     \
    "layout X f32[21] 0 pad 2:3\nlayout Y f32[21] 0\nprogram\ninput X f32[21] pad 2:3\n"           \
    "intermediate T f32[21]\noutput Y f32[21]\nT[i] = exp(X[i+3 | 0])\nY[i] = T[i] * 2\nend\n"
#define PART                                                                                       \
    "layout X f32[21] 0\nlayout Y f32[9] 0\nprogram\ninput X f32[21]\nintermediate T f32[21]\n"    \
    "output Y f32[9]\nT[i] = exp(X[i])\nY[i] = T[i+12] * 2\nend\n"
#define WINDOW                                                                                     \
    "layout X f32[21,5] 0,1\nlayout Y f32[17] 0\nprogram\ninput X f32[21,5]\n"                     \
    "intermediate U f32[21]\nintermediate T f32[19]\noutput Y f32[17]\nU[i] = X[i,i%5] + 1\n"      \
    "T[i] = U[i] * U[i+2]\nY[i] = T[i] - T[i+2]\nend\n"
#define PRODUCT                                                                                    \
    "layout A f32[12,30] 0,1\nlayout B f32[30,32] 0,1\nlayout Y f32[12,32] 0,1\nprogram\n"         \
    "input A f32[12,30]\ninput B f32[30,32]\nintermediate P f32[30,32]\n"                          \
    "intermediate T f32[12,32]\noutput Y f32[12,32]\nP[k,j] = B[k,j] * 2\n"                        \
    "T[i,j] = sum.f32(k:30) A[i,k] * P[k,j]\nY[i,j] = max(T[i,j], 0)\nend\n"
#define TERMS                                                                                      \
    "layout X f32[21] 0\nlayout Y f32[21] 0\nprogram\ninput X f32[21]\nintermediate T f32[21]\n"   \
    "output Y f32[21]\nT[j] = sum.f32(r:3) X[j+r-1 | 0]\nY[i] = T[i] * 2\nend\n"
#define PAIR                                                                                       \
    "layout X f32[16] 0\nlayout Y f32[9] 0\nprogram\ninput X f32[16]\nintermediate T f32[16]\n"    \
    "output Y f32[9]\nT[k] = exp(X[k])\nY[i] = T[i] + T[i+7]\nend\n"
#define WRAPPED                                                                                    \
    "layout X f32[8] 0\nlayout Y f32[12] 0\nprogram\ninput X f32[8]\nintermediate T f32[8]\n"      \
    "output Y f32[12]\nT[k] = exp(X[k])\nY[i] = T[i%8] * 2\nend\n"
/* A product reads by one axis what a window writes by two. */
#define FLAT                                                                                       \
    "layout X f32[3,9,14] 0,1,2\nlayout W f32[3,5] 0,1\nlayout Y f32[5,84] 0,1\nprogram\n"         \
    "input X f32[3,9,14]\ninput W f32[3,5]\nintermediate D f32[3,7,12]\n"                          \
    "intermediate T f32[5,84]\noutput Y f32[5,84]\n"                                               \
    "D[c,y,x] = X[c,y,x] - X[c,y+2,x+2]\n"                                                         \
    "T[k,q] = sum.f32(c:3) D[c,q/12,q%12] * W[c,k]\nY[k,q] = max(T[k,q], 0)\nend\n"
/* The region of T that is read begins at 1: no tile of 3 begins at a multiple of 3 unless T is
 * aligned. */
#define LATE                                                                                       \
    "layout X f32[7] 0\nlayout Y f32[12] 0\nprogram\ninput X f32[7]\nintermediate U f32[7]\n"      \
    "intermediate T f32[13]\noutput Y f32[12]\nU[l] = X[l] * 2\nT[j] = U[j/3] + 1\n"               \
    "Y[i] = T[i+1] * 2\nend\n"
#define LATE_NEST "serial j step 3 guard\nunroll j.1\nstage U in T j\nextent l 1\nserial l\n"
/* A remainder that is always 0, of which Halide knows that it is below 5. */
#define REMAINDER                                                                                  \
    "layout X f32[2] 0\nlayout T f32[2] 0\nlayout Y f32[8] 0\nprogram\ninput X f32[2]\n"           \
    "intermediate C f32[2]\nintermediate S f32[8]\noutput T f32[2]\noutput Y f32[8]\n"             \
    "T[i] = X[i] * 2\nC[i] = T[i] + 1\nS[k] = sum.f32(r:1) C[(r+1)/2%5] * 3\nY[k] = S[k]\nend\n"
/* A window over a copy with a border, and one over padding, dilated. */
#define BORDERED                                                                                   \
    "layout X f32[3,7] 0,1\nlayout W f32[3,5] 0,1\nlayout Y f32[8,7] 0,1\nprogram\n"               \
    "input X f32[3,7]\ninput W f32[3,5]\nintermediate B f32[3,11]\nintermediate T f32[8,7]\n"      \
    "output Y f32[8,7]\nB[c,x] = X[c,x-2 | 0]\n"                                                   \
    "T[k,x] = sum.f32(c:3,s:5) B[c,x+s] * W[c,s]\nY[k,x] = T[k,x] + k\nend\n"
#define DILATED                                                                                    \
    "layout X f32[3,9] 0,1 pad 0:0,4:4\nlayout W f32[3,3] 0,1\nlayout Y f32[8,9] 0,1\nprogram\n"   \
    "input X f32[3,9] pad 0:0,4:4\ninput W f32[3,3]\nintermediate T f32[8,9]\n"                    \
    "output Y f32[8,9]\nT[k,x] = sum.f32(c:3,s:3) X[c,x+4*s-4] * W[c,s]\n"                         \
    "Y[k,x] = T[k,x] + k\nend\n"
#define INSIDE(places)                                                                             \
    "stage Y root\nserial x\nserial k step 8 exact\nlanes k.1\nstage T in Y x\nextent k 8 x 1\n"   \
    "init\nlanes k\nupdate\nserial s inside\nserial c\nlanes k\n" places
#define OF_PIXELS "init\nunroll k\nlanes q\nupdate\nserial c\nunroll k\nlanes q\nstage D in Y "
#define ROWS "serial c\nserial y\nserial x step 4 guard\nlanes x.1\n"
#define GUARDED "stage Y root\nserial i step 8 guard\nlanes i.1\n"
#define SHIFTED "stage Y root\nserial i step 8 shift\nlanes i.1\n"
#define SUM                                                                                        \
    "stage Y root\nserial i step 4 exact\nserial j step 16 exact\nunroll i.1\nlanes j.1\n"         \
    "stage T in Y j\nextent i 4 j 16\ninit\nunroll i\nlanes j\nupdate\nserial k step 8 guard\n"    \
    "serial k.1\nunroll i\nlanes j\n"

static const struct by_hand {
    const char *program, *nest;
} by_hand[] = {
    {ROW, "stage Y root\nserial i\nstage T root\nserial i step 8 round\nlanes i.1\n"},
    {ROW, "stage Y root\nserial i\nstage T root\nserial i step 64 shift\nlanes i.1\n"},
    {ROW, GUARDED "stage T in Y i\nserial i step 4 round\nlanes i.1\n"},
    {ROW, SHIFTED "stage T in Y i\nserial i step 5 round\nlanes i.1\n"},
    {ROW, GUARDED "stage T in Y i\nextent i 8\nlanes i\n"},
    {ROW, GUARDED "stage T in Y i\nalign i 16\nserial i step 8 guard\nlanes i.1\n"},
    {ROW, SHIFTED "stage T in Y i\nextent i 8\nalign i 8\nserial i\n"},
    {ROW, SHIFTED "stage T in Y i\nextent i 8\nalign i 4\nserial i step 4 exact\nlanes i.1\n"},
    {PADDED, "stage Y root\nserial i\nstage T root\nserial i step 8 round\nlanes i.1\n"},
    {PADDED, GUARDED "stage T in Y i\nextent i 8\nlanes i\n"},
    {PART, "stage Y root\nserial i\nstage T root\nserial i step 7 exact\nlanes i.1\n"},
    {PART,
     "stage Y root\nserial i step 2 guard\nserial i.1\nstage T in Y i\nalign i 8\nserial i\n"},
    {WINDOW, GUARDED "stage T in Y i\nextent i 10\nserial i step 5 exact\nserial i.1\n"
                     "stage U in T i\nserial i step 2 round\nunroll i.1\n"},
    {WINDOW, GUARDED "stage T in Y i\nextent i 10\nserial i\nstage U inline\n"},
    {WINDOW, "stage Y root\nserial i step 4 guard\nserial i.1\nstage T in Y i.1\nslide i\n"
             "serial i step 3 exact\nunroll i.1\nstage U root\nserial i step 4 round\nlanes i.1\n"},
    {TERMS, GUARDED "stage T in Y i\nextent j 8\nexpanded\nlanes j\n"},
    {PAIR, "stage Y root\nserial i step 4 guard\nserial i.1\nstage T in Y i\n"
           "serial k step 8 round\nlanes k.1\n"},
    {WRAPPED, "stage Y root\nserial i step 3 exact\nserial i.1\nstage T in Y i\n"
              "serial k step 5 round\nlanes k.1\n"},
    {PRODUCT, SUM "stage P in T k\nextent k 8 j 16\nserial k\nlanes j\n"},
    {PRODUCT, SUM "stage P in T k\nserial k step 4 round\nunroll k.1\nlanes j\n"},
    {PRODUCT, SUM "stage P in T k\nalign k 16\nserial k\nlanes j\n"},
    {FLAT, "stage Y root\nserial k step 5 exact\nserial q step 8 shift\nunroll k.1\nlanes q.1\n"
           "stage T in Y q\nextent k 5 q 8\ninit\nunroll k\nlanes q\nupdate\nserial c\n"
           "unroll k\nlanes q\nstage D root\n" ROWS},
    {FLAT, "stage Y root\nserial q step 24 guard\nserial k\nserial q.1 step 8 guard\nlanes q.2\n"
           "stage T in Y q.1\nextent k 1 q 8\n" OF_PIXELS "q\n" ROWS},
    {FLAT, "stage Y root\nserial q step 16 guard\nserial k\nserial q.1 step 8 guard\nlanes q.2\n"
           "stage T in Y q.1\nextent k 1 q 8\n" OF_PIXELS "q\n" ROWS},
    {FLAT, "stage Y root\nserial q step 12 exact\nserial k\nlanes q.1\n"
           "stage T in Y k\nextent k 1 q 12\n" OF_PIXELS "q\nstored x y c\n" ROWS},
    {LATE, "stage Y root\nserial i\nstage T root\nalign j 3\n" LATE_NEST},
    {REMAINDER, "stage Y root\nserial k\nstage S in Y k\nextent k 1\ninit\nserial k\nupdate\n"
                "serial r\nserial k\nstage C root\nserial i\nstage T root\nserial i\n"},
    {BORDERED, INSIDE("stage B root\nserial c\nserial x\n")},
    {BORDERED, INSIDE("stage B in T c\nextent c 1 x 1\nserial c\n")},
    {DILATED, INSIDE("")},
    /* more than one element: nothing is left out */
    {DILATED, "stage Y root\nserial x step 3 exact\nserial k step 8 exact\nunroll x.1\nlanes k.1\n"
              "stage T in Y x\nextent k 8 x 3\ninit\nunroll x\nlanes k\nupdate\n"
              "serial s inside\nserial c\nunroll x\nlanes k\n"},
    /* tiles of an update */
    {PRODUCT, "stage Y root\nserial i\nserial j\nstage T root\ninit\nserial i\nserial j\nupdate\n"
              "serial i\nserial j step 16 exact\nserial k\nunroll j.1 step 8 exact\nlanes j.2\n"
              "stage P inline\n"},
};

#define BY_HAND ((int)(sizeof(by_hand) / sizeof(by_hand[0])))

static void add_by_hand(struct wpk_kernels *batch, const struct by_hand *row, const char *by)
{
    struct wpk_kernel_case *subject = &batch->subject[batch->count];
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    wpk_buf_printf(&text, HEAD "%s\n%s%s", by, row->program, row->nest);
    if (wpk_schedule_parse(wpk_buf_text(&text), &subject->schedule, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    if (wpk_codegen_check(&subject->schedule, &diag) == WPK_OK) {
        snprintf(subject->words, sizeof(subject->words), "by hand");
        batch->count++;
    } else if (strcmp(by, "c") == 0 && strstr(diag.text, "the back end c ") != NULL) {
        wpk_schedule_fini(&subject->schedule); /* it has no align and no slide */
    } else {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
}

/* The values of inputs: numbers; numbers, a third of them -inf; numbers and NaN, as they are. */
enum values { NUMBERS, MASKED, EXACT };

/* By both back ends. */
static void check_by_hand(const struct by_hand *rows, int count, enum values values)
{
    static struct wpk_kernels batch; /* large */
    struct wpk_device here;
    struct wpk_rng rng;
    assert_int_equal(wpk_device_probe(WPK_CPU_SET_AVX2, &here), WPK_OK);
    if (!wpk_cpu_flags_fit(WPK_CPU_SET_AVX2, here.cpu.flags)) {
        skip();
    }
    wpk_rng_seed(&rng, 1);
    memset(&batch, 0, sizeof(batch)); /* of a test that failed */
    batch.flags = WPK_CPU_SET_AVX2;
    batch.emit = wpk_emit;
    batch.exact = values == EXACT;
    batch.masked = values == MASKED;
    for (int i = 0; i < count; i++) {
        add_by_hand(&batch, &rows[i], "halide-cpu");
        add_by_hand(&batch, &rows[i], "c");
    }
    wpk_check_kernels(&batch, &rng);
    assert_int_equal(batch.refused, 0);
}

static void test_nests_by_hand(void **state)
{
    (void)state;
    check_by_hand(by_hand, BY_HAND, NUMBERS);
}

static void expect_refused(const char *text, const char *says)
{
    struct wpk_schedule schedule;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_schedule_parse(text, &schedule, &diag), WPK_OK);
    assert_int_equal(wpk_codegen_check(&schedule, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, says));
    wpk_schedule_fini(&schedule);
}

static void test_wrong_nests_are_refused(void **state)
{
    (void)state;
    expect_refused(HEAD "halide-cpu\n" LATE "stage Y root\nserial i\nstage T root\n" LATE_NEST,
                   "stage U: iterations need parts of different sizes");
    expect_refused(HEAD "halide-cpu\n" DILATED "stage Y root\nserial x\nserial k\nstage T in Y k\n"
                        "extent k 1 x 1\ninit\nupdate\nserial c\nunroll s inside\n",
                   "inside is for a serial loop");
}

/* Numbers beside those halfway between two of a narrow type, nearer than f32 can tell. */
static void test_casts_round_once(void **state)
{
    (void)state;
#define CAST(type, least)                                                                          \
    "layout X f32[16] 0\nlayout Y " type "[64,16] 0,1\nprogram\ninput X f32[16]\n"                 \
    "output Y " type "[64,16]\nY[i,j] = " type "(f64(2 * i + " least                               \
    ") + f64(X[j]) * f64(1e-9))\nend\n"
#define CAST_OF(type, to, expression)                                                              \
    "layout X " type "[16] 0\nlayout Y " to "[64,16] 0,1\nprogram\ninput X " type                  \
    "[16]\noutput Y " to "[64,16]\nY[i,j] = " expression "\nend\n"
#define LANES "stage Y root\nserial i\nserial j step 8 exact\nlanes j.1\n"
#define SCALARS "stage Y root\nserial i\nserial j\n"
#define BOTH(program)                                                                              \
    {program, LANES},                                                                              \
    {                                                                                              \
        program, SCALARS                                                                           \
    }
    static const struct by_hand casts[] = {
        BOTH(CAST_OF("f64", "f16", "f16(X[j])")),
        BOTH(CAST_OF("f64", "bf16", "bf16(X[j])")),
        BOTH(CAST_OF("u8", "bf16", "bf16(i32(X[j]) * 131072 + 16842753)")),
        BOTH(CAST_OF("u8", "bf16", "bf16(i64(X[j]) * 131072 + 16842753)")),
        BOTH(CAST_OF("u8", "bf16", "bf16(131072 * i + 16842753)")),
        BOTH(CAST_OF("f32", "f16", "f16(f32(f64(2 * i + 2049) + f64(X[j]) * f64(1e-9)))")),
        BOTH(CAST_OF("f32", "bf16", "bf16(f32(f64(2 * i + 257) + f64(X[j]) * f64(1e-9)))")),
        BOTH(CAST_OF("u8", "bf16", "bf16(f32(i32(X[j]) * 131072 + 16842753))")),
        {CAST("f16", "2049"), "stage Y root\nserial i\nserial j step 8 exact\nlanes j.1\n"},
        {CAST("f16", "2049"), "stage Y root\nserial i\nserial j\n"},
        {CAST("bf16", "257"), "stage Y root\nserial i\nserial j step 8 exact\nlanes j.1\n"},
        {CAST("bf16", "257"), "stage Y root\nserial i\nserial j\n"},
    };
    check_by_hand(casts, (int)(sizeof(casts) / sizeof(casts[0])), EXACT);
}

/* From what is 0 to what is infinite; of that one divided by it is 0. */
static void test_exp_of_its_range(void **state)
{
    (void)state;
#define EXP(type, before, least, rows, after)                                                      \
    "layout X " type "[16] 0\nlayout Y " type "[" rows ",16] 0,1\nprogram\ninput X " type          \
    "[16]\noutput Y " type "[" rows ",16]\n"                                                       \
    "Y[i,j] = " before "(" type "(i - " least ") + X[j] * " type "(0.3))" after "\nend\n"
#define LANES "stage Y root\nserial i\nserial j step 8 exact\nlanes j.1\n"
    static const struct by_hand exps[] = {
        {EXP("f32", "exp", "110", "200", ""), LANES},
        {EXP("f32", "exp", "110", "200", ""), "stage Y root\nserial i\nserial j\n"},
        {EXP("f64", "exp", "760", "1470", ""), LANES},
        {EXP("f32", "exp", "1000000000", "2", ""), LANES},
        {EXP("f32", "sigmoid", "400", "800", ""), LANES},
        {EXP("f64", "sigmoid", "2000", "4000", ""), LANES},
        {EXP("f32", "f32(1) / (f32(1) + exp", "400", "800", ")"), LANES},
        {EXP("f64", "f64(1) / (f64(1) + exp", "2000", "4000", ")"), LANES},
        {EXP("f32", "f32(1) / (f32(1) + exp", "400", "800", ")"),
         "stage Y root\nserial i\nserial j\n"},
    };
    check_by_hand(exps, (int)(sizeof(exps) / sizeof(exps[0])), NUMBERS);
}

/* Of -inf, and of a NaN where a whole row is -inf. */
static void test_exp_of_masks(void **state)
{
    (void)state;
#define SOFT(type, loops)                                                                          \
    "layout X " type "[8,16] 0,1\nlayout Y " type "[8,16] 0,1\nprogram\ninput X " type             \
    "[8,16]\nintermediate M " type "[8]\noutput Y " type "[8,16]\nM[i] = max." type                \
    "(k:16) X[i,k]\nY[i,j] = exp(X[i,j] - M[i])\nend\n",                                           \
        "stage Y root\nserial i\n" loops                                                           \
        "stage M in Y i\ninit\nserial i\nupdate\nserial i\nserial k\n"
    static const struct by_hand exps[] = {
        {SOFT("f32", "serial j\n")},
        {SOFT("f32", "serial j step 8 exact\nlanes j.1\n")},
        {SOFT("f64", "serial j\n")},
        {SOFT("f64", "serial j step 4 exact\nlanes j.1\n")},
    };
    check_by_hand(exps, (int)(sizeof(exps) / sizeof(exps[0])), MASKED);
}

static int number_of(const char *variable, int otherwise)
{
    const char *given = getenv(variable);
    return given == NULL ? otherwise : (int)strtol(given, NULL, 10);
}

static void test_edited_nests(void **state)
{
    (void)state;
    static struct wpk_kernels batch; /* large */
    struct counts counts = {0};
    struct wpk_device here;
    struct wpk_rng rng;
    int seed = number_of("WPK_TEST_SEED", SEED), most = number_of("WPK_TEST_EDITS", EDITS);
    print_message("WPK_TEST_SEED=%d\n", seed);
    wpk_rng_seed(&rng, (uint64_t)seed);
    assert_int_equal(wpk_device_probe(WPK_CPU_SET_AVX2, &here), WPK_OK);
    batch.flags = here.cpu.flags;
    batch.emit = wpk_emit;
    while (counts.accepted < most) {
        while (counts.accepted < most && batch.count < WPK_KERNELS_MAX / 2) {
            add_program(&batch, &rng, most, &counts);
        }
        wpk_check_kernels(&batch, &rng);
    }
    print_message("%d edits: %d not read, %d refused, %d by the compiler, %d built\n",
                  counts.edited, counts.unread, counts.refused, batch.refused,
                  counts.accepted - batch.refused);
    assert_true(counts.refused > 0);
    assert_in_range(batch.refused, 0, REFUSED_MAX(counts.accepted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nests_by_hand),    cmocka_unit_test(test_wrong_nests_are_refused),
        cmocka_unit_test(test_casts_round_once), cmocka_unit_test(test_exp_of_its_range),
        cmocka_unit_test(test_exp_of_masks),     cmocka_unit_test(test_edited_nests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
