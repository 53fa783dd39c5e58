/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of lowering: tails, and which loops run in parallel. The candidates here are ones
 * whose kernels read outside their inputs before a fix. Random programs get from a space to a
 * schedule; WPK_TEST_SEED draws others. */
#include "ir/notation/notation.h"
#include "target/codegen.h"
#include "tests/random_program.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a candidate's schedule, as text */

struct subject {
    const char *program;
    const char *candidate; /* without the version */
    int threads;
};

static wpk_err lower(const struct subject *subject, struct wpk_buf *text, struct wpk_diag *diag)
{
    struct wpk_space_options options = {.layouts = "fixed", .threads = subject->threads};
    struct wpk_program program;
    struct wpk_space space;
    struct wpk_candidate candidate;
    struct wpk_schedule schedule;
    char words[WPK_CANDIDATE_TEXT_MAX];
    options.device.cpu.flags = WPK_CPU_SET_AVX512;
    options.device.cpu.vector_bytes = 64;
    options.device.cpu.vector_registers = 32;
    snprintf(words, sizeof(words), "%s %s", WPK_SPACE_VERSION, subject->candidate);
    assert_int_equal(wpk_program_parse(subject->program, &program, diag), WPK_OK);
    assert_int_equal(wpk_space_derive(&program, &options, &space, diag), WPK_OK);
    if (wpk_candidate_decode(&space, words, &candidate, diag) != WPK_OK) {
        fail_msg("%s\n%s", diag->text, words);
    }
    wpk_err err = wpk_lower(&space, &candidate, &schedule, diag);
    if (err == WPK_OK) {
        assert_int_equal(wpk_codegen_check(&schedule, diag), WPK_OK);
        assert_int_equal(wpk_schedule_print(&schedule, text), WPK_OK);
        wpk_schedule_fini(&schedule);
    }
    wpk_space_fini(&space);
    wpk_program_fini(&program);
    return err;
}

static void expect_lines(const struct subject *subject, const char *const *lines, int count)
{
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    if (lower(subject, &text, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    for (int i = 0; i < count; i++) {
        if (strstr(wpk_buf_text(&text), lines[i]) == NULL) {
            fail_msg("no '%s' in\n%s", lines[i], wpk_buf_text(&text));
        }
    }
    wpk_buf_fini(&text);
}

/* ---- tails */

/* Rows are reduced at every second element, so that they are not cut into lanes.
 * Blocks of 6 rows of 10, the last tile shifted inwards: where A is computed inside them, the last
 * block needs only 4 rows of it, which tiles of 3 do not divide. */
#define ROWS                                                                                       \
    "input X f32[10,30]\nintermediate A f32[10,30]\nintermediate S f32[10]\noutput Y f32[10,30]\n" \
    "A[i,j] = exp(X[i,j])\nS[i] = sum(j:15) A[i,2*j]\nY[i,j] = A[i,j] / (1 + S[i])\n"
#define ROWS_CANDIDATE(rows, at)                                                                   \
    "algorithm=direct layout=staged A.vec=j A.lanes=16 A.tile.i=" rows " A.tile.j=16 "             \
    "A.inner=i,j A.at=" at " S.vec=i S.lanes=4 S.tile.i=4 S.split=all S.unroll=1 S.at=Y.block "    \
    "Y.vec=j Y.lanes=16 Y.tile.i=3 Y.block.i=2 Y.tile.j=16 Y.block.j=all Y.outer=i,j Y.inner=i,j"

static void test_producers_tail_is_that_of_its_least_part(void **state)
{
    (void)state;
    const struct subject inside = {ROWS, ROWS_CANDIDATE("3", "Y.block"), 1};
    const char *const shifted[] = {"\nstage A in Y i\n  serial i step 3 shift whole\n",
                                   "\nstage Y root\n  serial i step 6 exact whole\n"};
    expect_lines(&inside, shifted, 2);
    /* at root all of it is needed at once: what divides is exact */
    const struct subject root = {ROWS, ROWS_CANDIDATE("2", "root"), 1};
    const char *const exact[] = {"\nstage A root\n  serial i step 2 exact\n"};
    expect_lines(&root, exact, 1);
}

/* The maximum and the sum are computed for whole tiles of 4 rows, where the last block of 5 needs
 * fewer: reads of reductions cannot be guarded, so there is no such kernel. */
#define SOFTMAX                                                                                    \
    "input X f32[5,31]\nintermediate M f32[5]\nintermediate D f32[5]\noutput S f32[5,31]\n"        \
    "M[i] = max(j:15) X[i,2*j]\nD[i] = sum(j:15) exp(X[i,2*j] - M[i])\n"                           \
    "S[i,j] = exp(X[i,j] - M[i]) / D[i]\n"
#define SOFTMAX_CANDIDATE(at)                                                                      \
    "algorithm=direct layout=staged M.vec=i M.lanes=4 M.tile.i=4 M.split=all M.unroll=1 M.at=" at  \
    " D.vec=i D.lanes=4 D.tile.i=4 D.split=all D.unroll=1 D.at=" at " S.vec=j S.lanes=16 "         \
    "S.tile.i=2 S.block.i=2 S.tile.j=16 S.block.j=all S.outer=i,j S.inner=i,j"

static void test_members_past_a_tail_are_illegal(void **state)
{
    (void)state;
    struct wpk_buf text = {0};
    struct wpk_diag diag = {0};
    const struct subject inside = {SOFTMAX, SOFTMAX_CANDIDATE("S.block"), 1};
    assert_int_equal(lower(&inside, &text, &diag), WPK_EINVAL);
    const struct subject root = {SOFTMAX, SOFTMAX_CANDIDATE("root"), 1};
    assert_int_equal(lower(&root, &text, &diag), WPK_OK);
    wpk_buf_fini(&text);
}

/* ---- panels */

#define PANELS                                                                                     \
    "input A f32[1024,65536]\nconstant B f32[65536,1024]\noutput Y f32[1024,1024]\n"               \
    "Y[i,j] = sum(k:65536) A[i,k] * B[k,j]\n"

/* The totals of a block of Y; the terms of a panel for each tile of it; what they need of A, in the
 * order of use. */
static void test_panels(void **state)
{
    (void)state;
    const struct subject subject = {
        PANELS,
        "algorithm=direct layout=staged Y.vec=j Y.lanes=16 Y.tile.i=8 Y.block.i=32 Y.tile.j=32 "
        "Y.block.j=8 Y.outer=j,i Y.inner=j,i Y.split=all Y.sum=all Y.unroll=1 Y.panel=256 "
        "Y.pack.A=panel Y.pack.B=yes",
        1};
    const char *const lines[] = {
        "\nstage Y root\n  serial j step 256 exact\n  serial i step 256 exact\n"
        "  serial j.1 step 32 exact\n  serial i.1 step 8 exact\n",
        " in Y i\n  extent i 256 j 256\n",
        "  update\n    serial block\n    serial j step 32 exact\n    serial i step 8 exact\n"
        "    unroll i.1\n    unroll j.1 step 16 exact\n    lanes j.2\n",
        " i\n  extent block 1 i 8 j 32\n",
        " block\n  extent ",
    };
    expect_lines(&subject, lines, 5);
}

/* ---- parallel loops */

/* The copies of A and B are computed for a block of two matrices. Fused with the loop over columns,
 * the block's loop would be another one, of which each iteration needs other parts of them. */
#define BATCH                                                                                      \
    "input A f32[3,16,24]\ninput B f32[3,24,20]\noutput Y f32[3,16,20]\n"                          \
    "Y[b,i,j] = sum(k:24) A[b,i,k] * B[b,k,j]\n"
#define BATCH_CANDIDATE(at) BATCH_SUMMED(at, "all")
#define BATCH_SUMMED(at, sum)                                                                      \
    "algorithm=direct layout=staged-last0 A_t.vec=i1 A_t.lanes=16 A_t.tile.i0=2 A_t.tile.i1=16 "   \
    "A_t.tile.i2=1 A_t.inner=i1,i0,i2 A_t.at=" at " A_t.par=2 B_t.vec=i1 B_t.lanes=16 "            \
    "B_t.tile.i0=2 B_t.tile.i1=16 B_t.tile.i2=1 B_t.inner=i1,i0,i2 B_t.at=" at " B_t.par=2 "       \
    "Y.vec=j Y.lanes=8 Y.tile.b=1 Y.block.b=2 Y.tile.i=16 Y.block.i=all Y.tile.j=8 "               \
    "Y.block.j=all Y.outer=b,i,j Y.inner=j,b,i Y.split=all Y.sum=" sum " Y.unroll=1 Y.par=2"

static void test_blocks_with_producers_are_not_fused_with_tiles(void **state)
{
    (void)state;
    const struct subject inside = {BATCH, BATCH_CANDIDATE("Y.block"), 2};
    const char *const alone[] = {"\nstage Y root\n  parallel b step 2 shift whole\n  serial j",
                                 "\nstage A_t in Y b\n", "\nstage B_t in Y b\n"};
    expect_lines(&inside, alone, 3);
    /* with nothing inside them, two loops become one */
    const struct subject root = {BATCH, BATCH_CANDIDATE("root"), 2};
    const char *const fused[] = {"\n  parallel b step 2 shift whole\n  parallel j step 8 "};
    expect_lines(&root, fused, 1);
}

/* ---- sums in blocks */

/* The sum of 8 terms, which starts from nothing, has the registers and the loop over them; the
 * total has the loop over the blocks around it. */
static void test_blocks_are_summed_by_themselves(void **state)
{
    (void)state;
    const struct subject blocked = {BATCH, BATCH_SUMMED("root", "8"), 2};
    const char *const lines[] = {
        "\nY_t_b[block,i,j,b] = sum.f32(k:8) A_t[i,8*block+k,b] * B_t[8*block+k,j,b]\n",
        "\nY_t[i,j,b] = sum.f32(block:3) Y_t_b[block,i,j,b]\n",
        "\n  update\n    serial block\n    unroll i\n    lanes j\n",
        "\nstage Y_t_b in Y_t block\n  extent block 1 i 16 j 8 b 1\n",
        "\n  update\n    serial k\n    unroll i\n    lanes j\n",
    };
    expect_lines(&blocked, lines, 5);
    const struct subject whole = {BATCH, BATCH_SUMMED("root", "all"), 2};
    const char *const line[] = {"\n  update\n    serial k\n    unroll i\n    lanes j\n"};
    expect_lines(&whole, line, 1);
}

/* ---- storage */

/* The product is transposed: its vectors are along the first of its axes. */
#define PRODUCT                                                                                    \
    "input A f32[28,40]\nconstant B f32[40,64]\noutput Y f32[28,64]\n"                             \
    "Y[i,j] = sum(k:40) A[i,k] * B[k,j]\n"
#define PRODUCT_CANDIDATE(sum)                                                                     \
    "algorithm=direct layout=staged-last0 A_t.vec=i1 A_t.lanes=4 A_t.tile.i0=1 A_t.tile.i1=4 "     \
    "A_t.inner=i0,i1 A_t.at=root Y.vec=j Y.lanes=16 Y.tile.i=14 Y.block.i=all Y.tile.j=32 "        \
    "Y.block.j=all Y.outer=i,j Y.inner=i,j Y.split=all Y.sum=" sum " Y.unroll=1 Y.pack.B=yes"

static void test_lanes_of_accumulators_are_together(void **state)
{
    (void)state;
    const struct subject whole = {PRODUCT, PRODUCT_CANDIDATE("all"), 1};
    const char *const line[] = {"\n  extent j 32 i 14\n  stored i j\n  init\n    unroll i\n"
                                "    unroll j step 16 exact\n    lanes j.1\n"};
    expect_lines(&whole, line, 1);
    const struct subject blocked = {PRODUCT, PRODUCT_CANDIDATE("8"), 1};
    const char *const part[] = {"\n  extent block 1 j 32 i 14\n  stored block i j\n"};
    expect_lines(&blocked, part, 1);
}

/* ---- programs nobody thought of */

#define SEED 20240611
#define RANDOM_PROGRAMS wpk_test_share(150)
#define CANDIDATES 6 /* constructed, and as many drawn */

struct draft {
    struct wpk_program program;
    struct wpk_space space;
};

static void show(const struct draft *draft, const struct wpk_candidate *candidate)
{
    struct wpk_buf text = {0};
    char words[WPK_CANDIDATE_TEXT_MAX] = "";
    (void)wpk_program_print(&draft->program, &text);
    if (candidate != NULL) {
        (void)wpk_candidate_encode(&draft->space, candidate, words, sizeof(words));
    }
    print_error("layouts %s, threads %d\n%s%s\n", draft->space.options.layouts,
                draft->space.options.threads, wpk_buf_text(&text), words);
    wpk_buf_fini(&text);
}

/* Expect a schedule that passes its check and survives printing and parsing. True if it has a sum
 * in blocks. */
static bool expect_schedule(const struct draft *draft, const struct wpk_candidate *candidate)
{
    struct wpk_schedule schedule, parsed;
    struct wpk_buf text = {0}, again = {0};
    struct wpk_diag diag = {0};
    wpk_err err = wpk_lower(&draft->space, candidate, &schedule, &diag);
    if (err == WPK_OK) {
        err = wpk_codegen_check(&schedule, &diag);
    }
    if (err == WPK_OK) {
        err = wpk_program_validate(&schedule.program, &diag);
    }
    if (err != WPK_OK) {
        show(draft, candidate);
        fail_msg("%s: %s", wpk_err_name(err), diag.text);
    }
    assert_int_equal(wpk_schedule_print(&schedule, &text), WPK_OK);
    if (wpk_schedule_parse(wpk_buf_text(&text), &parsed, &diag) != WPK_OK) {
        fail_msg("%d:%d: %s\n%s", diag.line, diag.column, diag.text, wpk_buf_text(&text));
    }
    assert_int_equal(wpk_schedule_print(&parsed, &again), WPK_OK);
    assert_string_equal(wpk_buf_text(&text), wpk_buf_text(&again));
    bool blocked = strstr(wpk_buf_text(&text), " serial block\n") != NULL;
    wpk_schedule_fini(&parsed);
    wpk_schedule_fini(&schedule);
    wpk_buf_fini(&text);
    wpk_buf_fini(&again);
    return blocked;
}

static struct wpk_space_options draw_options(struct wpk_rng *rng)
{
    static const wpk_cpu_flags isas[] = {WPK_CPU_SET_SSE41, WPK_CPU_SET_AVX2, WPK_CPU_SET_AVX512};
    int width = (int)wpk_rng_below(rng, 3);
    struct wpk_space_options options = {.layouts = wpk_rng_chance(rng, 0.5) ? "any" : "fixed",
                                        .threads = (int)wpk_rng_between(rng, 1, 2)};
    options.device.cpu.flags = isas[width];
    options.device.cpu.vector_bytes = 16 << width;
    options.device.cpu.vector_registers = width == 2 ? 32 : 16;
    return options;
}

static int read_number(const char *variable, int otherwise)
{
    const char *given = getenv(variable);
    return given == NULL ? otherwise : (int)strtol(given, NULL, 10);
}

/* Draw a program and its space; false if it has none, since an input does not matter. */
static bool draw_draft(struct draft *draft, struct wpk_rng *rng,
                       const struct wpk_random_options *kind, int number)
{
    struct wpk_diag diag = {0};
    const struct wpk_space_options options = draw_options(rng);
    *draft = (struct draft){.space.options = options};
    wpk_random_program(rng, kind, &draft->program);
    wpk_err err = wpk_space_derive(&draft->program, &options, &draft->space, &diag);
    if (err == WPK_OK) {
        return true;
    }
    if (err != WPK_EUNSUPPORTED || strstr(diag.text, "does not depend on") == NULL) {
        show(draft, NULL);
        fail_msg("program %d: %s", number, diag.text);
    }
    wpk_program_fini(&draft->program);
    return false;
}

static void end_draft(struct draft *draft)
{
    wpk_space_fini(&draft->space);
    wpk_program_fini(&draft->program);
}

/* Construct candidates, and draw as many; returns how many there are.
 *   shape  candidate [2 * count] */
static int make_candidates(const struct draft *draft, struct wpk_rng *rng, int count,
                           struct wpk_candidate *candidate)
{
    int found = 0;
    assert_int_equal(wpk_space_construct(&draft->space, candidate, count, &found), WPK_OK);
    for (int k = 0; k < count; k++) {
        found += wpk_space_draw(&draft->space, rng, &candidate[found]) == WPK_OK;
    }
    return found;
}

/* Lower some candidates; returns how many of their schedules have a sum in blocks. */
static int try_candidates(const struct draft *draft, struct wpk_rng *rng, int count, int number)
{
    struct wpk_candidate candidate[2 * CANDIDATES];
    int found = make_candidates(draft, rng, count, candidate), blocked = 0;
    if (found == 0) {
        show(draft, NULL);
        fail_msg("program %d: no candidate", number);
    }
    for (int k = 0; k < found; k++) {
        blocked += expect_schedule(draft, &candidate[k]);
    }
    return blocked;
}

/* Programs of up to 40 stages, of which none is without a candidate. WPK_TEST_PROGRAMS: as many,
 * for instance 2000. */
static void test_long_programs(void **state)
{
    (void)state;
    int count = read_number("WPK_TEST_PROGRAMS", wpk_test_share(100)),
        first = read_number("WPK_TEST_SEED", 0);
    int idle = 0, several = 0, most = 0;
    for (int i = first; i < first + count; i++) {
        struct draft draft;
        struct wpk_rng rng;
        wpk_rng_seed(&rng, (uint64_t)i);
        const struct wpk_random_options kind = {.products = i % 2 == 0, .stages_max = 40};
        if (!draw_draft(&draft, &rng, &kind, i)) {
            idle++;
            continue;
        }
        (void)try_candidates(&draft, &rng, 2, i);
        several += draft.space.sites->count > 1;
        most = draft.program.stage_count > most ? draft.program.stage_count : most;
        end_draft(&draft);
    }
    print_message("%d idle, %d with several sites, at most %d stages\n", idle, several, most);
    assert_true(idle < count / 2);
    assert_true(count < 100 || (most == 40 && several > 5));
}

static void test_random_programs(void **state)
{
    (void)state;
    struct wpk_rng rng;
    int seed = read_number("WPK_TEST_SEED", SEED);
    wpk_rng_seed(&rng, (uint64_t)seed);
    print_message("WPK_TEST_SEED=%d\n", seed);
    int idle = 0, blocked = 0;
    for (int i = 0; i < RANDOM_PROGRAMS; i++) {
        struct draft draft;
        const struct wpk_random_options kind = {.products = i % 2 == 0, .data = i % 3 == 0};
        if (!draw_draft(&draft, &rng, &kind, i)) {
            idle++;
            continue;
        }
        blocked += try_candidates(&draft, &rng, CANDIDATES, i);
        end_draft(&draft);
    }
    assert_true(blocked > 0);
    assert_true(idle < RANDOM_PROGRAMS / 2);
    print_message("%d idle, %d summed in blocks\n", idle, blocked);
}

/* The stage of one output is not placed inside the loops of another: the caller needs all of it. */
static void test_several_outputs(void **state)
{
    (void)state;
    static const char text[] =
        "input A f32[24,40]\ninput B f32[40,32]\ninput C f32[32]\nintermediate T f32[24,32]\n"
        "output Y f32[24,32]\noutput Z f32[24,32]\nT[i,j] = sum(k:40) A[i,k] * B[k,j]\n"
        "Y[i,j] = max(T[i,j] + C[j], 0)\nZ[i,j] = exp(T[i,j])\n";
    struct wpk_rng rng;
    wpk_rng_seed(&rng, SEED);
    for (int i = 0; i < 8; i++) {
        struct draft draft;
        const struct wpk_space_options options = draw_options(&rng);
        assert_int_equal(wpk_program_parse(text, &draft.program, NULL), WPK_OK);
        assert_int_equal(wpk_space_derive(&draft.program, &options, &draft.space, NULL), WPK_OK);
        for (int k = 0; k < 25; k++) {
            struct wpk_candidate candidate;
            assert_int_equal(wpk_space_draw(&draft.space, &rng, &candidate), WPK_OK);
            (void)expect_schedule(&draft, &candidate);
        }
        end_draft(&draft);
    }
}

/* ---- keys */

static void print_schedule(const struct wpk_space *space, const struct wpk_candidate *candidate,
                           struct wpk_buf *text)
{
    struct wpk_schedule schedule;
    wpk_buf_reset(text);
    assert_int_equal(wpk_lower(space, candidate, &schedule, NULL), WPK_OK);
    assert_int_equal(wpk_schedule_print(&schedule, text), WPK_OK);
    wpk_schedule_fini(&schedule);
}

/* Steps one gene after the other, and counts the neighbours that have the same schedule. */
static void compare_neighbours(const struct wpk_space *space, const struct wpk_candidate *candidate,
                               int *same, int *other)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    struct wpk_buf here = {0}, there = {0};
    uint64_t key = wpk_space_key(space, candidate);
    print_schedule(space, candidate, &here);
    for (int g = 0; g < variant->gene_count; g++) {
        struct wpk_candidate neighbour = *candidate;
        neighbour.gene[g] =
            (uint8_t)((candidate->gene[g] + 1) %
                      (variant->genes[g].choice_count + (variant->genes[g].choice_count == 0)));
        if (!wpk_space_is_legal(space, &neighbour)) {
            continue;
        }
        print_schedule(space, &neighbour, &there);
        bool equal = strcmp(wpk_buf_text(&here), wpk_buf_text(&there)) == 0;
        if (equal != (key == wpk_space_key(space, &neighbour))) {
            fail_msg("%s: %s schedules\n%s\n%s", variant->genes[g].name,
                     equal ? "equal" : "different", wpk_buf_text(&here), wpk_buf_text(&there));
        }
        *same += equal;
        *other += !equal;
    }
    wpk_buf_fini(&here);
    wpk_buf_fini(&there);
}

/* Sums long enough for panels. */
static void compare_panels(int *same, int *other)
{
    struct draft draft;
    struct wpk_candidate candidate[12];
    struct wpk_rng rng;
    const struct wpk_space_options options = {
        .layouts = "fixed",
        .threads = 2,
        .device = {.cpu = {.flags = WPK_CPU_SET_AVX2, .vector_bytes = 32, .vector_registers = 16}}};
    assert_int_equal(wpk_program_parse("input A f32[24,65536]\ninput B f32[65536,40]\n"
                                       "output Y f32[24,40]\n"
                                       "Y[i,j] = sum(k:65536) A[i,k] * B[k,j]\n",
                                       &draft.program, NULL),
                     WPK_OK);
    assert_int_equal(wpk_space_derive(&draft.program, &options, &draft.space, NULL), WPK_OK);
    wpk_rng_seed(&rng, SEED);
    int count = 0;
    assert_int_equal(wpk_space_construct(&draft.space, candidate, 6, &count), WPK_OK);
    for (int i = 0; i < 12; i++) {
        if (i >= count) {
            assert_int_equal(wpk_space_draw(&draft.space, &rng, &candidate[i]), WPK_OK);
        }
        (void)expect_schedule(&draft, &candidate[i]);
        compare_neighbours(&draft.space, &candidate[i], same, other);
    }
    end_draft(&draft);
}

/* Two candidates have the same key exactly when they have the same schedule. */
static void test_keys(void **state)
{
    (void)state;
    struct wpk_rng rng;
    int same = 0, other = 0;
    compare_panels(&same, &other);
    wpk_rng_seed(&rng, SEED);
    for (int i = 0; i < RANDOM_PROGRAMS / 4; i++) {
        struct draft draft;
        const struct wpk_random_options kind = {.products = i % 2 == 0};
        const struct wpk_space_options options = draw_options(&rng);
        wpk_random_program(&rng, &kind, &draft.program);
        if (wpk_space_derive(&draft.program, &options, &draft.space, NULL) == WPK_OK) {
            struct wpk_candidate candidate[4];
            int count = 0;
            assert_int_equal(wpk_space_construct(&draft.space, candidate, 3, &count), WPK_OK);
            count += wpk_space_draw(&draft.space, &rng, &candidate[count]) == WPK_OK;
            for (int k = 0; k < count; k++) {
                compare_neighbours(&draft.space, &candidate[k], &same, &other);
            }
            wpk_space_fini(&draft.space);
        }
        wpk_program_fini(&draft.program);
    }
    print_message("%d neighbours with the same schedule, %d with another\n", same, other);
    assert_true(same > 100 && other > 100);
}

/* ---- names */

#define NAME40 "abcdefghijklmnopqrstuvwxyzabcdefghijklmno"
#define NAME47 NAME40 "pqrstu"

/* Axes named like the parts of other axes, like axes that are added, and as long as may be. */
static void test_names_of_axes(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "input A f32[24,64]\nconstant B f32[64,48]\noutput Y f32[24,48]\n"
        "Y[kT,kTI] = sum(k:64) A[kT,k] * B[k,kTI]\n",
        "input A f32[24,64]\nconstant B f32[64,48]\noutput jobs f32[24,48]\n"
        "jobs[jobs,jobs2] = sum(jobs3:64) A[jobs,jobs3] * B[jobs3,jobs2]\n",
        "input X f32[6,256]\nintermediate S f32[6]\noutput Y f32[6,256]\n"
        "S[lane2] = sum(lane:256) X[lane2,lane]\nY[lane,q] = X[lane,q] * S[lane]\n",
        "input X f32[16,24,20]\noutput " NAME40 " f32[16,24,20]\n" NAME40 "[" NAME40 "1," NAME40
        "2," NAME40 "3] = exp(X[" NAME40 "1," NAME40 "2," NAME40 "3])\n",
        "input A f32[24,64,8]\nconstant B f32[64,48,8]\noutput " NAME47 " f32[24,48]\n" NAME47
        "[" NAME47 "," NAME40 "1] = sum(" NAME40 "2:64," NAME40 "3:8) A[" NAME47 "," NAME40
        "2," NAME40 "3] * B[" NAME40 "2," NAME40 "1," NAME40 "3]\n",
    };
    struct wpk_rng rng;
    wpk_rng_seed(&rng, 3);
    for (int i = 0; i < (int)(2 * sizeof texts / sizeof texts[0]); i++) {
        struct draft draft;
        struct wpk_candidate candidate[2 * CANDIDATES];
        struct wpk_diag diag = {0};
        struct wpk_space_options options = draw_options(&rng);
        options.threads = 1 + i % 2;
        if (wpk_program_parse(texts[i / 2], &draft.program, &diag) != WPK_OK ||
            wpk_space_derive(&draft.program, &options, &draft.space, &diag) != WPK_OK) {
            fail_msg("%s\n%s", texts[i / 2], diag.text);
        }
        int count = make_candidates(&draft, &rng, CANDIDATES, candidate);
        assert_true(count > CANDIDATES);
        for (int k = 0; k < count; k++) {
            char words[WPK_CANDIDATE_TEXT_MAX];
            struct wpk_candidate again;
            assert_int_equal(wpk_candidate_encode(&draft.space, &candidate[k], words, sizeof words),
                             WPK_OK);
            if (wpk_candidate_decode(&draft.space, words, &again, &diag) != WPK_OK) {
                fail_msg("%s\n%s", words, diag.text);
            }
            assert_true(wpk_candidate_equal(&candidate[k], &again));
            (void)expect_schedule(&draft, &candidate[k]);
        }
        end_draft(&draft);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_producers_tail_is_that_of_its_least_part),
        cmocka_unit_test(test_members_past_a_tail_are_illegal),
        cmocka_unit_test(test_panels),
        cmocka_unit_test(test_blocks_with_producers_are_not_fused_with_tiles),
        cmocka_unit_test(test_blocks_are_summed_by_themselves),
        cmocka_unit_test(test_lanes_of_accumulators_are_together),
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_long_programs),
        cmocka_unit_test(test_several_outputs),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_names_of_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
