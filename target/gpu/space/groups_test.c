/* SPDX-License-Identifier: Apache-2.0 */
/* The launches of a program: which stages are computed together. */
#include "target/gpu/space/groups.h"

#include "tests/cuda_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int group_of(const struct wpk_program *program, const struct wpk_cuda_groups *groups,
                    const char *tensor)
{
    return groups->group_of[wpk_cuda_space_stage(program, tensor)];
}

static void a_product_is_one_launch_with_two_operands(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    wpk_cuda_space_group("input A f32[64,48]\ninput B f32[48,96]\noutput Y f32[64,96]\n"
                         "Y[i,j] = sum(k:48) A[i,k] * B[k,j]\n",
                         false, &program, &groups);
    const struct wpk_cuda_group *group = &groups.group[0];
    assert_int_equal(groups.count, 1);
    assert_int_equal(group->root, wpk_cuda_space_stage(&program, "Y"));
    assert_int_not_equal(group->sum, group->root); /* the reduction got a reader */
    assert_int_equal(program.stages[group->sum].reduction, WPK_REDUCE_SUM);
    assert_int_equal(group->i, 0);
    assert_int_equal(group->j, 1);
    assert_int_equal(group->k, 2);
    assert_int_equal(group->operand_count, 2);
    assert_int_equal(group->kind, WPK_CUDA_PRODUCTS);
    for (int c = 0; c < 2; c++) {
        const struct wpk_stage *copy = &program.stages[group->operand[c].stage];
        assert_true(group->operand[c].is_move);
        assert_true(group->operand[c].is_vector_move);
        /* A's rows are terms, B's are elements along j */
        bool of_a = copy->axes[0].extent == 64;
        assert_int_equal(group->operand[c].along, of_a ? group->k : group->j);
        assert_int_equal(group->operand[c].tiled, of_a ? group->i : group->j);
    }
    wpk_program_fini(&program);
}

/* B is computed `times` times for each of its elements. */
static void a_stage_that_is_computed_twice_is_inlined(void **state)
{
    (void)state;
    static const struct {
        const char *stages, *extents; /* those that B and Y have */
        bool inlined;
    } cases[] = {
        {"B[i,j] = exp(A[i,j])\nY[i,j] = B[i,j] + 1", "[8,40]", true},
        {"B[i,j] = exp(A[i,j])\nY[i,j] = B[i,j] + B[7-i,j]", "[8,40]", true},
        {"B[i,j] = exp(A[i,j])\nY[i,j] = B[i,j] + B[7-i,j] + B[i,39-j]", "[8,40]", false},
        {"B[i,j] = exp(A[i,j])\nY[i,j] = B[i,0] + 1", "[8,40]", true},
        {"B[i] = exp(A[i,0])\nY[i,j] = B[i] + 1", "[8]", false}, /* 40 times */
        {"B[i] = A[i,0]\nY[i,j] = B[i] + 1", "[8]", true},       /* it only says where */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        struct wpk_cuda_groups groups;
        char text[512];
        snprintf(text, sizeof(text),
                 "input A f32[8,40]\nintermediate B f32%s\noutput Y f32[8,40]\n%s\n",
                 cases[i].extents, cases[i].stages);
        wpk_cuda_space_group(text, false, &program, &groups);
        if ((group_of(&program, &groups, "B") == WPK_CUDA_INLINED) != cases[i].inlined) {
            fail_msg("%s", text);
        }
        assert_int_equal(groups.count, cases[i].inlined ? 1 : 2);
        wpk_program_fini(&program);
    }
}

static void what_depends_on_constants_alone_is_prepared(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    wpk_cuda_space_group("constant W f32[40]\ninput A f32[8,40]\nintermediate V f32[40]\n"
                         "output Y f32[8,40]\nV[j] = exp(W[j])\nY[i,j] = A[i,j] * V[j]\n",
                         false, &program, &groups);
    assert_int_equal(group_of(&program, &groups, "V"), WPK_CUDA_PREPARED);
    assert_int_equal(groups.count, 1);
    wpk_program_fini(&program);
}

static void types_that_are_not_computed_with_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *role, *type;
        wpk_err err;
    } cases[] = {
        {"input", "f32", WPK_OK},
        {"input", "i32", WPK_OK},
        {"input", "bool", WPK_OK},
        {"input", "f64", WPK_EUNSUPPORTED},
        {"input", "i64", WPK_EUNSUPPORTED},
        {"input", "f16", WPK_EUNSUPPORTED},
        {"constant", "f64", WPK_EUNSUPPORTED},
        {"input", "u8", WPK_EUNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        static struct wpk_cuda_groups groups;
        char text[256];
        snprintf(text, sizeof(text), "%s A %s[8]\noutput Y f32[8]\nY[i] = f32(A[i])\n",
                 cases[i].role, cases[i].type);
        wpk_cuda_space_parse(text, &program);
        assert_int_equal(wpk_cuda_groups_normalize(&program, false), WPK_OK);
        if (wpk_cuda_groups_find(&program, false, &groups) != cases[i].err) {
            fail_msg("%s %s", cases[i].role, cases[i].type);
        }
        wpk_program_fini(&program);
    }
}

/* One row of terms for each result: threads share them, those of a row are neighbours. */
static void long_sums_with_few_results_are_shared_by_threads(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool strict, shares, rows;
    } cases[] = {
        {"input A f32[64,512]\noutput Y f32[64]\nY[i] = sum(k:512) A[i,k]\n", false, true, true},
        {"input A f32[512,64]\noutput Y f32[64]\nY[i] = sum(k:512) A[k,i]\n", false, true, false},
        {"input A f32[64,512]\noutput Y f32[64]\nY[i] = sum(k:512) A[i,k]\n", true, false, false},
        {"input A f32[64,31]\noutput Y f32[64]\nY[i] = sum(k:31) A[i,k]\n", false, false, true},
        {"input A f32[64,32]\noutput Y f32[64]\nY[i] = sum(k:32) A[i,k]\n", false, true, true},
        /* four rows read B hardly more often than a tile does, five are worth one */
        {"input A f32[4,512]\ninput B f32[512,64]\noutput Y f32[4,64]\n"
         "Y[i,j] = sum(k:512) A[i,k] * B[k,j]\n",
         false, true, false},
        {"input A f32[5,512]\ninput B f32[512,64]\noutput Y f32[5,64]\n"
         "Y[i,j] = sum(k:512) A[i,k] * B[k,j]\n",
         false, false, false},
        {"input A f32[4,512]\ninput B f32[64,512]\noutput Y f32[4,64]\n"
         "Y[i,j] = sum(k:512) A[i,k] * B[j,k]\n",
         false, true, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        struct wpk_cuda_groups groups;
        wpk_cuda_space_group(cases[i].text, cases[i].strict, &program, &groups);
        const struct wpk_cuda_group *group = &groups.group[groups.count - 1];
        bool shares = group->kind == WPK_CUDA_SHARED;
        if (shares != cases[i].shares ||
            (shares && (group->rows != cases[i].rows || group->operand_count != 0))) {
            fail_msg("case %zu: shares %d, rows %d, copies %d", i, shares, group->rows,
                     group->operand_count);
        }
        wpk_program_fini(&program);
    }
}

static void streams_know_the_axes_of_their_loads(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    wpk_cuda_space_group("input A f32[3,512]\ninput B f32[64,512]\noutput Y f32[3,64]\n"
                         "Y[i,j] = sum(k:512) A[i,k] * B[j,k]\n",
                         false, &program, &groups);
    const struct wpk_cuda_group *group = &groups.group[0];
    assert_int_equal(group->stream_count, 2);
    unsigned of_a = (1U << 0) | (1U << 2), of_b = (1U << 1) | (1U << 2);
    for (int l = 0; l < 2; l++) {
        assert_int_equal(group->stream[l].along, 2);
        assert_true(group->stream[l].axes == of_a || group->stream[l].axes == of_b);
    }
    assert_int_not_equal(group->stream[0].axes, group->stream[1].axes);
    wpk_program_fini(&program);
}

/* How many terms of the sum a thread has: those of the innermost reduction before its parts. */
static int64_t terms_of_parts(const char *text, bool strict, int *reductions)
{
    struct wpk_program program;
    int64_t most = 0;
    wpk_cuda_space_parse(text, &program);
    assert_int_equal(wpk_cuda_groups_normalize(&program, strict), WPK_OK);
    assert_int_equal(wpk_program_validate(&program, NULL), WPK_OK);
    *reductions = 0;
    for (int s = 0; s < program.stage_count; s++) {
        const struct wpk_stage *stage = &program.stages[s];
        for (int a = stage->rank; a < stage->axis_count; a++) {
            most = stage->axes[a].extent > most ? stage->axes[a].extent : most;
        }
        *reductions += stage->reduction != WPK_REDUCE_NONE;
    }
    wpk_program_fini(&program);
    return most;
}

static void long_sums_without_threads_are_cut_into_parts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool strict;
        int reductions;
        int64_t terms;
    } cases[] = {
        /* a number: 16 parts, that are joined by one thread; strict ones have 256 */
        {"input A f32[4096]\noutput Y f32[]\nY[] = sum(k:4096) A[k]\n", false, 2, 256},
        {"input A f32[8192]\noutput Y f32[]\nY[] = sum(k:8192) A[k]\n", true, 2, 256},
        {"input A f32[63]\noutput Y f32[]\nY[] = sum(k:63) A[k]\n", false, 1, 63},
        {"input A f32[72]\noutput Y f32[]\nY[] = sum(k:72) A[k]\n", false, 2, 9},  /* 8 parts */
        {"input A f32[97]\noutput Y f32[]\nY[] = sum(k:97) A[k]\n", false, 1, 97}, /* prime */
        {"input A f32[8,4096]\noutput Y f32[8]\nY[i] = sum(k:4096) A[i,k]\n", false, 1, 4096},
        {"input A f32[64,4096]\noutput Y f32[64]\nY[i] = sum(k:4096) A[i,k]\n", true, 2, 128},
        /* enough results keep all threads busy */
        {"input A f32[20000,64]\noutput Y f32[20000]\nY[i] = sum(k:64) A[i,k]\n", true, 1, 64},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int reductions;
        int64_t terms = terms_of_parts(cases[i].text, cases[i].strict, &reductions);
        if (terms != cases[i].terms || reductions != cases[i].reductions) {
            fail_msg("case %zu: %d sums of %d terms", i, reductions, (int)terms);
        }
    }
}

#define SOFTMAX(rows, columns)                                                                     \
    "input A f32[" rows "," columns "]\nintermediate M f32[" rows "]\nintermediate D f32[" rows    \
    "]\noutput Y f32[" rows "," columns "]\nM[i] = max(k:" columns                                 \
    ") A[i,k]\nD[i] = sum(k:" columns ") exp(A[i,k] - M[i])\nY[i,j] = exp(A[i,j] - M[i]) / D[i]\n"

static void a_block_of_rows_computes_what_its_rows_read(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    wpk_cuda_space_group(SOFTMAX("8", "512"), false, &program, &groups);
    const struct wpk_cuda_group *root = &groups.group[groups.count - 1];
    assert_int_equal(groups.count, 3);
    assert_int_equal(root->row_axes, 1);
    assert_true(root->in_row[0] && root->in_row[1]);
    assert_false(root->in_row[2]);
    assert_int_not_equal(groups.group[0].kind, WPK_CUDA_ROWS);
    wpk_program_fini(&program);
}

static void what_others_read_too_is_not_computed_in_a_row(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    wpk_cuda_space_group("input A f32[8,512]\noutput M f32[8]\noutput Y f32[8,512]\n"
                         "M[i] = max(k:512) A[i,k]\nY[i,j] = A[i,j] - M[i]\n",
                         false, &program, &groups);
    assert_int_not_equal(groups.group[groups.count - 1].kind, WPK_CUDA_ROWS); /* M is an output */
    wpk_program_fini(&program);
    wpk_cuda_space_group("input A f32[8,512]\nintermediate M f32[8]\noutput Y f32[8,512]\n"
                         "M[i] = max(k:512) A[i,k]\nY[i,j] = A[i,j] - M[7-i]\n",
                         false, &program, &groups);
    assert_int_not_equal(groups.group[groups.count - 1].kind,
                         WPK_CUDA_ROWS); /* it is of another row */
    wpk_program_fini(&program);
}

static void many_blocks_have_an_order(void **state)
{
    (void)state;
    static const struct {
        int rows;
        bool ordered;
    } cases[] = {{2048, true}, {2047, false}};
    for (int i = 0; i < 2; i++) {
        struct wpk_program program;
        struct wpk_cuda_groups groups;
        char text[256];
        snprintf(text, sizeof(text),
                 "input A f32[%d,64]\ninput B f32[64,2048]\noutput Y f32[%d,2048]\n"
                 "Y[i,j] = sum(k:64) A[i,k] * B[k,j]\n",
                 cases[i].rows, cases[i].rows);
        wpk_cuda_space_group(text, false, &program, &groups);
        assert_int_equal(groups.group[0].ordered, cases[i].ordered);
        wpk_program_fini(&program);
    }
}

static void strict_sums_are_cut_along_their_last_axis(void **state)
{
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        struct wpk_program program;
        struct wpk_cuda_groups groups;
        wpk_cuda_space_group("input A f32[64,40,3]\ninput B f32[40,3,96]\noutput Y f32[64,96]\n"
                             "Y[i,j] = sum(k:40,r:3) A[i,k,r] * B[k,r,j]\n",
                             strict != 0, &program, &groups);
        const struct wpk_cuda_group *group = &groups.group[0];
        const struct wpk_axis *axis = &program.stages[group->sum].axes[group->k];
        assert_int_equal(axis->extent, strict ? 3 : 40);
        wpk_program_fini(&program);
    }
}

/* Axes of one element are not tiled: neighbours run along the last one that has several. */
static void axes_of_one_element_are_not_tiled(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    wpk_cuda_space_group("input A f32[1,6,1]\noutput Y f32[1,6,1]\nY[i,j,k] = exp(A[i,j,k])\n",
                         false, &program, &groups);
    assert_int_equal(groups.group[0].j, 1);
    assert_int_equal(groups.group[0].i, -1);
    wpk_program_fini(&program);
    wpk_cuda_space_group("input A f32[]\noutput Y f32[]\nY[] = exp(A[])\n", false, &program,
                         &groups);
    assert_int_equal(groups.group[0].j, -1);
    assert_int_equal(groups.group[0].i, -1);
    wpk_program_fini(&program);
}

/* Each stage is read three times, so that it is a launch. */
static void there_are_at_most_48_launches(void **state)
{
    (void)state;
    for (int count = WPK_CUDA_GROUPS_MAX; count <= WPK_CUDA_GROUPS_MAX + 1; count++) {
        struct wpk_program program;
        static struct wpk_cuda_groups groups;
        struct wpk_buf text = {0};
        wpk_buf_append_text(&text, "input B0 f32[8]\n");
        for (int i = 1; i <= count; i++) {
            wpk_buf_printf(&text, "%s B%d f32[8]\n", i == count ? "output" : "intermediate", i);
        }
        for (int i = 1; i <= count; i++) {
            wpk_buf_printf(&text, "B%d[i] = exp(B%d[i]) + B%d[7-i] * B%d[(i+1)%%8]\n", i, i - 1,
                           i - 1, i - 1);
        }
        wpk_cuda_space_parse(wpk_buf_text(&text), &program);
        assert_int_equal(wpk_cuda_groups_normalize(&program, false), WPK_OK);
        assert_int_equal(wpk_cuda_groups_find(&program, false, &groups),
                         count > WPK_CUDA_GROUPS_MAX ? WPK_ENOSPC : WPK_OK);
        wpk_program_fini(&program);
        wpk_buf_fini(&text);
    }
}

static void launches_are_in_the_order_of_their_roots(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    wpk_cuda_space_group(SOFTMAX("8", "512"), false, &program, &groups);
    for (int g = 0; g < groups.count; g++) {
        assert_int_equal(groups.group_of[groups.group[g].root], g);
        assert_true(g == 0 || groups.group[g - 1].root < groups.group[g].root);
    }
    wpk_program_fini(&program);
}

static void the_last_tile_of_an_axis_counts(void **state)
{
    (void)state;
    const struct wpk_stage root = {.rank = 3,
                                   .axes = {{.extent = 12}, {.extent = 13}, {.extent = 3}}};
    const struct wpk_cuda_group group = {.tile = {4, 4, 4}};
    assert_int_equal(wpk_cuda_tiles_along(&root, &group, 0), 3);
    assert_int_equal(wpk_cuda_tiles_along(&root, &group, 1), 4);
    assert_int_equal(wpk_cuda_tiles_along(&root, &group, 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_is_one_launch_with_two_operands),
        cmocka_unit_test(a_stage_that_is_computed_twice_is_inlined),
        cmocka_unit_test(what_depends_on_constants_alone_is_prepared),
        cmocka_unit_test(types_that_are_not_computed_with_are_refused),
        cmocka_unit_test(long_sums_with_few_results_are_shared_by_threads),
        cmocka_unit_test(streams_know_the_axes_of_their_loads),
        cmocka_unit_test(long_sums_without_threads_are_cut_into_parts),
        cmocka_unit_test(a_block_of_rows_computes_what_its_rows_read),
        cmocka_unit_test(what_others_read_too_is_not_computed_in_a_row),
        cmocka_unit_test(many_blocks_have_an_order),
        cmocka_unit_test(strict_sums_are_cut_along_their_last_axis),
        cmocka_unit_test(axes_of_one_element_are_not_tiled),
        cmocka_unit_test(there_are_at_most_48_launches),
        cmocka_unit_test(launches_are_in_the_order_of_their_roots),
        cmocka_unit_test(the_last_tile_of_an_axis_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
