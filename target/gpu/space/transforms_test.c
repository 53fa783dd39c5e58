/* SPDX-License-Identifier: Apache-2.0 */
/* Short sums over a literal's axes, and what reads them. */
#include "target/gpu/space/transforms.h"

#include "tests/cuda_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* T is a sum over `terms` of a literal [rows, terms] and what `read` says; its reader follows. */
static void parse_sum(int rows, int terms, const char *head, const char *read, const char *reader,
                      struct wpk_program *out)
{
    struct wpk_buf text = {0};
    wpk_buf_printf(&text, "%s\nliteral G f32[%d,%d] = ", head, rows, terms);
    for (int i = 0; i < rows * terms; i++) {
        wpk_buf_printf(&text, "%s%d", i > 0 ? "," : "", i % 5 - 2);
    }
    wpk_buf_printf(&text,
                   "\nintermediate T f32[%d,8]\noutput Y f32[%d,8]\nT[a,j] = sum(i:%d) G[a,i] * %s"
                   "\n%s\n",
                   rows, rows, terms, read, reader);
    wpk_cuda_space_parse(wpk_buf_text(&text), out);
    wpk_buf_fini(&text);
}

#define READ_ONCE "Y[a,j] = T[a,j]"

static void a_transform_is_a_short_sum_over_a_literal(void **state)
{
    (void)state;
    static const struct {
        int terms;
        const char *head, *read;
        bool is;
    } cases[] = {
        {4, "input X f32[4,8]", "X[i,j]", true},
        {16, "input X f32[16,8]", "X[i,j]", true},
        {17, "input X f32[17,8]", "X[i,j]", false}, /* too long */
        {1, "input X f32[1,8]", "X[i,j]", true},
        {4, "constant X f32[4,8]", "X[i,j]", false},   /* prepared once */
        {4, "input X f32[4,8]", "(X[i,j] + 1)", true}, /* of any value */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        parse_sum(3, cases[i].terms, cases[i].head, cases[i].read, READ_ONCE, &program);
        if (wpk_cuda_is_transform(&program, 0) != cases[i].is) {
            fail_msg("case %zu", i);
        }
        assert_int_equal(wpk_cuda_transform_of(&program, 1, NULL), cases[i].is ? 0 : -1);
        assert_int_equal(wpk_cuda_transform_root(&program, 0), cases[i].is ? 1 : -1);
        wpk_program_fini(&program);
    }
}

static void other_reductions_are_no_transforms(void **state)
{
    (void)state;
    static const char *const sums[] = {
        "T[a,j] = max(i:4) G[a,i] * X[i,j]",     /* no sum */
        "T[a,j] = sum(i:4) X[i,j] * X[a,j]",     /* no literal */
        "T[a,j] = sum(i:4,l:8) G[a,i] * X[i,l]", /* an axis that is none of the literal's */
        "T[a,j] = G[a,0] * X[a,j]",              /* no reduction */
    };
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        struct wpk_program program;
        char text[512];
        snprintf(text, sizeof(text),
                 "input X f32[4,8]\nliteral G f32[3,4] = 1,2,3,4,5,6,7,8,9,10,11,12\n"
                 "intermediate T f32[3,8]\noutput Y f32[3,8]\n%s\nY[a,j] = T[a,j]\n",
                 sums[i]);
        wpk_cuda_space_parse(text, &program);
        if (wpk_cuda_is_transform(&program, 0) || wpk_cuda_transform_root(&program, 0) >= 0) {
            fail_msg("%s", sums[i]);
        }
        wpk_program_fini(&program);
    }
}

static void a_transform_that_is_read_twice_has_no_root(void **state)
{
    (void)state;
    struct wpk_program program;
    parse_sum(3, 4, "input X f32[4,8]", "X[i,j]", "Y[a,j] = T[a,j] + T[2-a,j]", &program);
    assert_true(wpk_cuda_is_transform(&program, 0));
    assert_int_equal(wpk_cuda_transform_root(&program, 0), -1);
    assert_int_equal(wpk_cuda_transform_of(&program, 1, NULL), -1);
    wpk_program_fini(&program);
    parse_sum(3, 4, "input X f32[4,8]", "X[i,j]", "Y[a,j] = T[a-1,j | 0]", &program);
    assert_int_equal(wpk_cuda_transform_root(&program, 0), -1); /* nor one read outside */
    wpk_program_fini(&program);
}

/* Both transforms of a tile: A = G X, B = A G^T, of a literal [n, 4]. */
static void parse_tile(int n, struct wpk_program *out)
{
    struct wpk_buf text = {0};
    wpk_buf_printf(&text, "input X f32[4,4,5]\nliteral G f32[%d,4] = ", n);
    for (int i = 0; i < 4 * n; i++) {
        wpk_buf_printf(&text, "%s%d", i > 0 ? "," : "", i % 3);
    }
    wpk_buf_printf(&text,
                   "\nintermediate A f32[%d,4,5]\nintermediate B f32[%d,%d,5]\n"
                   "output Y f32[5,%d,%d]\nA[a,j,c] = sum(i:4) G[a,i] * X[i,j,c]\n"
                   "B[a,b,c] = sum(j:4) G[b,j] * A[a,j,c]\nY[c,a,b] = B[a,b,c]\n",
                   n, n, n, n, n);
    wpk_cuda_space_parse(wpk_buf_text(&text), out);
    wpk_buf_fini(&text);
}

static void a_thread_has_the_axes_that_transforms_need_whole(void **state)
{
    (void)state;
    struct wpk_program program;
    int64_t tile[WPK_AXES_MAX];
    parse_tile(6, &program);
    assert_int_equal(wpk_cuda_transform_of(&program, 2, tile), 1);
    assert_int_equal(wpk_cuda_transform_root(&program, 0), 2); /* through the second one */
    assert_int_equal(wpk_cuda_transform_root(&program, 1), 2);
    assert_int_equal(tile[0], 1); /* c */
    assert_int_equal(tile[1], 6);
    assert_int_equal(tile[2], 6);
    wpk_program_fini(&program);
}

static void a_tile_has_at_most_64_elements(void **state)
{
    (void)state;
    for (int n = 7; n <= 9; n++) {
        struct wpk_program program;
        parse_tile(n, &program);
        assert_int_equal(wpk_cuda_transform_of(&program, 2, NULL), n * n <= 64 ? 1 : -1);
        wpk_program_fini(&program);
    }
}

/* Tiles lie side by side in the root: index i is tile i / 3, element i % 3. */
static void a_tile_may_be_a_period_of_the_root(void **state)
{
    (void)state;
    static const char *const roots[] = {"Y[i,j] = T[i%3,j,i/3]", "Y[i,j] = T[i/4,j,i%4]",
                                        "Y[i,j] = T[(i+1)%3,j,i/3]"};
    for (int r = 0; r < 3; r++) {
        struct wpk_program program;
        int64_t tile[WPK_AXES_MAX];
        char text[512];
        snprintf(text, sizeof(text),
                 "input X f32[4,8,4]\nliteral G f32[3,4] = 1,2,3,4,5,6,7,8,9,10,11,12\n"
                 "intermediate T f32[3,8,4]\noutput Y f32[12,8]\n"
                 "T[a,j,t] = sum(i:4) G[a,i] * X[i,j,t]\n%s\n",
                 roots[r]);
        wpk_cuda_space_parse(text, &program);
        assert_int_equal(wpk_cuda_transform_of(&program, 1, tile), r == 0 ? 0 : -1);
        if (r == 0) {
            assert_int_equal(tile[0], 3);
            assert_int_equal(tile[1], 1);
        }
        wpk_program_fini(&program);
    }
}

static void a_stage_that_only_moves_values_is_part_of_the_chain(void **state)
{
    (void)state;
    struct wpk_program program;
    wpk_cuda_space_parse("input X f32[4,8]\nliteral G f32[3,4] = 1,2,3,4,5,6,7,8,9,10,11,12\n"
                         "intermediate T f32[3,8]\nintermediate M f32[8,3]\noutput Y f32[8,3]\n"
                         "T[a,j] = sum(i:4) G[a,i] * X[i,j]\nM[j,a] = T[a,j]\n"
                         "Y[j,a] = M[j,a] + 1\n",
                         &program);
    int64_t tile[WPK_AXES_MAX];
    assert_int_equal(wpk_cuda_transform_root(&program, 0), 2);
    assert_int_equal(wpk_cuda_transform_root(&program, 1), 2);
    assert_int_equal(wpk_cuda_transform_of(&program, 2, tile), 1);
    assert_int_equal(tile[0], 1);
    assert_int_equal(tile[1], 3);
    wpk_program_fini(&program);
}

static void a_load_that_may_leave_its_tensor_wants_a_copy(void **state)
{
    (void)state;
    struct wpk_program program;
    parse_sum(3, 4, "input X f32[4,8]", "X[i-1,j | 0]", READ_ONCE, &program);
    int load = wpk_cuda_transform_operand(&program, 0);
    assert_true(load >= 0);
    assert_true(program.nodes[load].outside >= 0);
    assert_int_equal(wpk_cuda_transform_operand(&program, 1), -1); /* no transform */
    wpk_program_fini(&program);
    parse_sum(3, 4, "input X f32[4,8]", "X[i,j]", READ_ONCE, &program);
    assert_int_equal(wpk_cuda_transform_operand(&program, 0), -1);
    wpk_program_fini(&program);
}

static void a_copy_for_a_transform_takes_zeros_from_outside(void **state)
{
    (void)state;
    static const struct {
        const char *copy, *read;
        bool is;
    } cases[] = {
        {"C[i,j] = X[i-1,j | 0]", "C[i,j]", true},
        {"C[i,j] = X[i,j]", "C[i,j]", false},           /* nothing is outside */
        {"C[i,j] = X[i-1,j | 0] + 1", "C[i,j]", false}, /* it computes */
        {"C[i,j] = X[i-1,j | 0]", "C[3-i,j]", false},   /* not read at axes */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        char text[512];
        snprintf(text, sizeof(text),
                 "input X f32[4,8]\nliteral G f32[3,4] = 1,2,3,4,5,6,7,8,9,10,11,12\n"
                 "intermediate C f32[4,8]\nintermediate T f32[3,8]\noutput Y f32[3,8]\n%s\n"
                 "T[a,j] = sum(i:4) G[a,i] * %s\nY[a,j] = T[a,j]\n",
                 cases[i].copy, cases[i].read);
        wpk_cuda_space_parse(text, &program);
        assert_int_equal(wpk_cuda_is_transform_copy(&program, 0), cases[i].is);
        assert_false(wpk_cuda_is_transform_copy(&program, 1));
        wpk_program_fini(&program);
    }
}

static void loads_of_a_tensor_are_counted_and_described(void **state)
{
    (void)state;
    static const struct {
        const char *readers;
        int loads, stage;
        bool own_point, at_axes;
    } cases[] = {
        {"Y[i,j] = A[i,j]\nZ[i,j] = X[i,j]", 1, 1, true, true},
        {"Y[i,j] = A[j,i]\nZ[i,j] = X[i,j]", 1, 1, false, true},
        {"Y[i,j] = A[i,j] * A[j,i]\nZ[i,j] = X[i,j]", 2, 1, false, true},
        {"Y[i,j] = A[i,j]\nZ[i,j] = A[i,3-j]", 2, 2, false, false},
        {"Y[i,j] = A[i,j+1 | 0]\nZ[i,j] = X[i,j]", 1, 1, false, false},
        {"Y[i,j] = X[i,j]\nZ[i,j] = A[i,j]", 1, 2, true, true},
        {"Y[i,j] = sum(k:4) A[i,k]\nZ[i,j] = X[i,j]", 1, 1, false, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        char text[512];
        snprintf(text, sizeof(text),
                 "input X f32[4,4]\nintermediate A f32[4,4]\noutput Y f32[4,4]\noutput Z f32[4,4]\n"
                 "A[i,j] = X[i,j] + 1\n%s\n",
                 cases[i].readers);
        wpk_cuda_space_parse(text, &program);
        struct wpk_cuda_reading found =
            wpk_cuda_read(&program, wpk_program_find_tensor(&program, "A"));
        if (found.loads != cases[i].loads || found.stage != cases[i].stage ||
            found.own_point != cases[i].own_point || found.at_axes != cases[i].at_axes) {
            fail_msg("case %zu: %d loads, stage %d, %d, %d", i, found.loads, found.stage,
                     found.own_point, found.at_axes);
        }
        wpk_program_fini(&program);
    }
}

static void a_tensor_that_nothing_reads_has_no_reader(void **state)
{
    (void)state;
    struct wpk_program program;
    wpk_cuda_space_parse("input X f32[4]\noutput Y f32[4]\nY[i] = X[i]\n", &program);
    struct wpk_cuda_reading found = wpk_cuda_read(&program, wpk_program_find_tensor(&program, "Y"));
    assert_int_equal(found.loads, 0);
    assert_int_equal(found.stage, -1);
    assert_int_equal(found.load, -1);
    wpk_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transform_is_a_short_sum_over_a_literal),
        cmocka_unit_test(other_reductions_are_no_transforms),
        cmocka_unit_test(a_transform_that_is_read_twice_has_no_root),
        cmocka_unit_test(a_thread_has_the_axes_that_transforms_need_whole),
        cmocka_unit_test(a_tile_has_at_most_64_elements),
        cmocka_unit_test(a_tile_may_be_a_period_of_the_root),
        cmocka_unit_test(a_stage_that_only_moves_values_is_part_of_the_chain),
        cmocka_unit_test(a_load_that_may_leave_its_tensor_wants_a_copy),
        cmocka_unit_test(a_copy_for_a_transform_takes_zeros_from_outside),
        cmocka_unit_test(loads_of_a_tensor_are_counted_and_described),
        cmocka_unit_test(a_tensor_that_nothing_reads_has_no_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
