/* SPDX-License-Identifier: Apache-2.0 */
/* Which stages only move elements, and where neighbours lie in memory. */
#include "target/gpu/space/moves.h"

#include "ir/derive/extract.h"
#include "tests/cuda_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Parse; every stage but those that write R or an output is inlined. */
static int parse(const char *text, struct wpk_program *program, struct wpk_cuda_groups *groups)
{
    wpk_cuda_space_parse(text, program);
    memset(groups, 0, sizeof(*groups));
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_tensor *t = &program->tensors[program->stages[s].output];
        bool kept = t->role == WPK_ROLE_OUTPUT || strcmp(t->name, "R") == 0;
        groups->group_of[s] = kept ? 0 : WPK_CUDA_INLINED;
    }
    return wpk_cuda_space_stage(program, "R");
}

#define COPY(in, out, index)                                                                       \
    "input A f32" in "\nintermediate R f32" out "\noutput Y f32" out "\n" index                    \
    "\nY[i,k] = R[i,k] + R[i,k]\n"

static void only_copies_of_f32_are_moves(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool move, vector;
    } cases[] = {
        {COPY("[8,16]", "[8,16]", "R[i,k] = A[i,k]"), true, true},
        {COPY("[16,8]", "[8,16]", "R[i,k] = A[k,i]"), true, false},   /* rows across */
        {COPY("[8,20]", "[8,16]", "R[i,k] = A[i,k+4]"), true, true},  /* from 16 bytes on */
        {COPY("[8,20]", "[8,16]", "R[i,k] = A[i,k+2]"), true, false}, /* from 8 bytes on */
        {COPY("[8,18]", "[8,16]", "R[i,k] = A[i,k]"), true, false},   /* odd rows lie at 8 bytes */
        {COPY("[8,18]", "[8,18]", "R[i,k] = A[i,k]"), true, false},   /* a row is no fours */
        {COPY("[8,16]", "[8,24]", "R[i,k] = A[i,k-4 | 0]"), true, true}, /* whole fours outside */
        {COPY("[8,16]", "[8,20]", "R[i,k] = A[i,k-2 | 0]"), true, false},
        {COPY("[8,16]", "[8,24]", "R[i,k] = A[i,k-4 | 1]"), false, false}, /* no zeros */
        {COPY("[8,16]", "[8,16]", "R[i,k] = 2 * A[i,k]"), false, false},
        {COPY("[8,32]", "[8,16]", "R[i,k] = A[i,2*k]"), true, false},
        {COPY("[128]", "[8,16]", "R[i,k] = A[16*i+k]"), true, true},
        {"input A i32[8,16]\nintermediate R i32[8,16]\noutput Y i32[8,16]\nR[i,k] = A[i,k]\n"
         "Y[i,k] = R[i,k] + R[i,k]\n",
         false, false},
        {"input A i32[8,16]\nintermediate R f32[8,16]\noutput Y f32[8,16]\nR[i,k] = f32(A[i,k])\n"
         "Y[i,k] = R[i,k] + R[i,k]\n",
         false, false},
        {"literal A f32[4] = 1,2,3,4\nintermediate R f32[8,4]\noutput Y f32[8,4]\nR[i,k] = A[k]\n"
         "Y[i,k] = R[i,k] + R[i,k]\n",
         false, false}, /* a literal is code */
        {"input A f32[8,16,4]\nintermediate R f32[8,16]\noutput Y f32[8,16]\n"
         "R[i,k] = sum(l:4) A[i,k,l]\nY[i,k] = R[i,k] + R[i,k]\n",
         false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        struct wpk_cuda_groups groups;
        int stage = parse(cases[i].text, &program, &groups);
        if (wpk_cuda_is_move(&program, &groups, stage) != cases[i].move ||
            (cases[i].move &&
             wpk_cuda_is_vector_move(&program, &groups, stage) != cases[i].vector)) {
            fail_msg("case %zu:\n%s", i, cases[i].text);
        }
        wpk_program_fini(&program);
    }
}

/* B is shifted by four rows; what R reads of it is known through both. */
static void inlined_stages_are_looked_through(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    static const char *const inner[] = {"B[i,k] = A[i-4,k | 0]", "B[i,k] = exp(A[i,k])"};
    for (int computes = 0; computes < 2; computes++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "input A f32[8,16]\nintermediate B f32[8,16]\nintermediate R f32[8,16]\n"
                 "output Y f32[8,16]\n%s\nR[i,k] = B[i,k]\nY[i,k] = R[i,k] + R[i,k]\n",
                 inner[computes]);
        int stage = parse(text, &program, &groups);
        assert_int_equal(wpk_cuda_is_move(&program, &groups, stage), !computes);
        groups.group_of[0] = 1; /* B lies in memory: it is moved from there */
        assert_true(wpk_cuda_is_move(&program, &groups, stage));
        assert_true(wpk_cuda_is_vector_move(&program, &groups, stage));
        wpk_program_fini(&program);
    }
}

static int first_load(const struct wpk_program *program, int stage)
{
    struct wpk_loads load = wpk_loads_of(program, &program->stages[stage]);
    assert_true(wpk_loads_next(&load));
    return load.id;
}

static void neighbours_in_memory_are_found_along_an_axis(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int axis;        /* that is contiguous */
        double apart[2]; /* elements from neighbour to neighbour along i and k, at most 8 */
        bool runs[2];    /* along i and k */
        double tolerance;
    } cases[] = {
        {COPY("[8,16]", "[8,16]", "R[i,k] = A[i,k]"), 1, {8, 1}, {false, true}, 0},
        {COPY("[16,8]", "[8,16]", "R[i,k] = A[k,i]"), 0, {1, 8}, {true, false}, 0},
        {COPY("[8,32]", "[8,16]", "R[i,k] = A[i,2*k]"), -1, {8, 2}, {false, false}, 0},
        {COPY("[8,3]", "[8,16]", "R[i,k] = A[i,k/8]"), -1, {3, 1}, {false, false}, 0},
        /* runs of four, and then another element */
        {COPY("[8,4,5]", "[8,16]", "R[i,k] = A[i,k/4,k%4]"), 1, {8, 1.25}, {false, false}, 0.2},
        /* runs of 60 of 61 */
        {COPY("[8,2,31]", "[8,60]", "R[i,k] = A[i,k/30,k%30]"), 1, {8, 1}, {false, true}, 0.1},
        {COPY("[1,16]", "[1,16]", "R[i,k] = A[i,k]"), 1, {1, 1}, {false, true}, 0}, /* one row */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        struct wpk_cuda_groups groups;
        int stage = parse(cases[i].text, &program, &groups), load = first_load(&program, stage);
        if (wpk_cuda_contiguous_axis(&program, stage, load) != cases[i].axis) {
            fail_msg("case %zu: axis %d", i, wpk_cuda_contiguous_axis(&program, stage, load));
        }
        for (int a = 0; a < 2; a++) {
            double apart = wpk_cuda_apart(&program, stage, load, a);
            if (apart < cases[i].apart[a] - cases[i].tolerance ||
                apart > cases[i].apart[a] + cases[i].tolerance) {
                fail_msg("case %zu, axis %d: %g apart", i, a, apart);
            }
            if (wpk_cuda_has_runs(&program, stage, load, a) != cases[i].runs[a]) {
                fail_msg("case %zu, axis %d: runs", i, a);
            }
        }
        wpk_program_fini(&program);
    }
}

/* A copy that is no group yet is looked through; what is computed is not. */
static void a_load_of_a_computed_tensor_is_where_it_is_written(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    int stage = parse("input A f32[16,8]\nintermediate B f32[8,16]\nintermediate R f32[8,16]\n"
                      "output Y f32[8,16]\nB[i,k] = A[k,i]\nR[i,k] = B[i,k]\n"
                      "Y[i,k] = R[i,k] + R[i,k]\n",
                      &program, &groups);
    assert_int_equal(wpk_cuda_contiguous_axis(&program, stage, first_load(&program, stage)), 0);
    wpk_program_fini(&program);
    stage = parse("input A f32[16,8]\nintermediate B f32[8,16]\nintermediate R f32[8,16]\n"
                  "output Y f32[8,16]\nB[i,k] = A[k,i] + 1\nR[i,k] = B[i,k]\n"
                  "Y[i,k] = R[i,k] + R[i,k]\n",
                  &program, &groups);
    assert_int_equal(wpk_cuda_contiguous_axis(&program, stage, first_load(&program, stage)), 1);
    wpk_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_copies_of_f32_are_moves),
        cmocka_unit_test(inlined_stages_are_looked_through),
        cmocka_unit_test(neighbours_in_memory_are_found_along_an_axis),
        cmocka_unit_test(a_load_of_a_computed_tensor_is_where_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
