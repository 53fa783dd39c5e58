/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms in the blocks of the contraction beside them: Winograd's algorithm. */
#include "target/gpu/space/transforms.h"

#include "tests/cuda_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* The groups of a convolution by winograd(4): transforms, products, transforms. */
struct joined {
    struct wpk_space space;
    const struct wpk_program *program;
    const struct wpk_cuda_groups *groups;
    int contraction;
};

static void derive(const char *algorithm, int image, struct joined *out)
{
    char text[512];
    snprintf(text, sizeof(text),
             "input X f32[1,16,%d,%d]\nconstant W f32[%d,16,3,3]\noutput Y f32[1,%d,%d,%d]\n"
             "Y[n,k,y,x] = sum(c:16,r:3,s:3) X[n,c,y+r-1,x+s-1 | 0] * W[k,c,r,s]\n",
             image, image, 16, 16, image, image);
    wpk_cuda_space_derive(text, false, &out->space);
    int v = wpk_cuda_space_variant(&out->space, algorithm);
    out->program = &out->space.variants[v].program;
    out->groups = &wpk_cuda_kept_of(&out->space.variants[v])->groups;
    out->contraction = -1;
    for (int g = 0; g < out->groups->count; g++) {
        out->contraction = out->groups->group[g].sum >= 0 ? g : out->contraction;
    }
    assert_true(out->contraction >= 0);
}

static void products_know_the_transforms_beside_them(void **state)
{
    (void)state;
    struct joined j;
    derive("winograd(4)", 28, &j);
    const struct wpk_cuda_group *group = &j.groups->group[j.contraction];
    assert_int_equal(j.groups->count, 3);
    assert_int_equal(group->kind, WPK_CUDA_JOINED);
    assert_int_equal(group->before, 0);
    assert_int_equal(group->behind, 2);
    assert_int_equal(j.groups->group[0].kind, WPK_CUDA_TRANSFORMS);
    assert_int_equal(j.groups->group[2].kind, WPK_CUDA_TRANSFORMS);
    /* all 6 x 6 elements of a tile are needed together */
    assert_int_equal(j.program->stages[group->root].axes[group->whole].extent, 36);
    assert_true(group->operand[0].planes && group->operand[1].planes);
    /* what is transformed before is the operand that depends on the tiles */
    const struct wpk_stage *copy = &j.program->stages[group->operand[group->before_copy].stage];
    assert_int_equal(group->operand[group->before_copy].tiled, group->j);
    assert_int_equal(copy->rank, 4);
    wpk_space_fini(&j.space);
}

/* The least elements of a row of tiles and the blocks of the launch, by hand. */
static void fits_are_whole_tiles_of_the_result(void **state)
{
    (void)state;
    struct joined j;
    derive("winograd(4)", 28, &j); /* 7 x 7 tiles of 4 x 4 */
    const struct wpk_cuda_group *group = &j.groups->group[j.contraction];
    static const struct {
        int along_j;
        int64_t size, blocks;
    } fits[] = {
        {1, 14, 16 * 4},             /* two rows of tiles: 8 of 28 rows */
        {1, 28, 16 * 2},             /* four: 16 of 28 */
        {1, 49, 16},                 /* all */
        {0, 8, 2 * 4},   {0, 16, 4}, /* channels, beside two rows of tiles */
    };
    int found[2] = {0, 0};
    for (size_t i = 0; i < sizeof(fits) / sizeof(fits[0]); i++) {
        int a = fits[i].along_j, n = found[a]++;
        assert_int_equal(group->fit[a][n], fits[i].size);
        assert_int_equal(group->fit_blocks[a][n], fits[i].blocks);
    }
    assert_int_equal(group->fit_count[0], found[0]);
    assert_int_equal(group->fit_count[1], found[1]);
    wpk_space_fini(&j.space);
}

static void a_block_has_the_largest_box_of_whole_tiles(void **state)
{
    (void)state;
    struct joined j;
    derive("winograd(4)", 28, &j);
    const struct wpk_cuda_group *group = &j.groups->group[j.contraction];
    static const struct {
        int64_t block[2], extent[4]; /* of Y[n,k,y,x] */
    } cases[] = {
        {{16, 49}, {1, 16, 28, 28}}, {{8, 14}, {1, 8, 8, 28}}, {{1, 7}, {1, 1, 4, 28}},
        {{4, 1}, {1, 4, 4, 4}},      {{1, 3}, {1, 1, 4, 12}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t extent[WPK_AXES_MAX] = {0};
        assert_true(wpk_cuda_fit(j.program, j.groups, group, cases[i].block, extent));
        for (int a = 0; a < 4; a++) {
            if (extent[a] != cases[i].extent[a]) {
                fail_msg("case %zu, axis %d: %d", i, a, (int)extent[a]);
            }
        }
    }
    wpk_space_fini(&j.space);
}

static void parts_of_rows_of_tiles_do_not_fit(void **state)
{
    (void)state;
    struct joined j;
    derive("winograd(4)", 28, &j);
    const struct wpk_cuda_group *group = &j.groups->group[j.contraction];
    static const int64_t blocks[][2] = {{1, 10}, {16, 48}, {3, 8}, {1, 50}};
    for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
        int64_t extent[WPK_AXES_MAX] = {0};
        assert_false(wpk_cuda_fit(j.program, j.groups, group, blocks[i], extent));
    }
    wpk_space_fini(&j.space);
}

/* 29 = 5 tiles of 5 and 4 elements: rows and columns stay whole, of 6 x 6 tiles. */
static void an_axis_whose_last_tile_is_not_whole_stays_whole(void **state)
{
    (void)state;
    struct joined j;
    int64_t extent[WPK_AXES_MAX] = {0};
    derive("winograd(5)", 29, &j);
    const struct wpk_cuda_group *group = &j.groups->group[j.contraction];
    assert_true(wpk_cuda_fit(j.program, j.groups, group, (const int64_t[]){4, 36}, extent));
    assert_int_equal(extent[1], 4);
    assert_int_equal(extent[2], 29);
    assert_int_equal(extent[3], 29);
    assert_false(wpk_cuda_fit(j.program, j.groups, group, (const int64_t[]){4, 12}, extent));
    assert_int_equal(group->fit_count[1], 1);
    assert_int_equal(group->fit[1][0], 36);
    assert_int_equal(group->fit_blocks[1][0], 16); /* a block each channel */
    wpk_space_fini(&j.space);
}

static void products_alone_have_nothing_beside_them(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    wpk_cuda_space_group("input A f32[6,64,48]\ninput B f32[6,48,96]\noutput Y f32[6,64,96]\n"
                         "Y[b,i,j] = sum(k:48) A[b,i,k] * B[b,k,j]\n",
                         false, &program, &groups);
    assert_int_equal(groups.group[0].kind, WPK_CUDA_PRODUCTS);
    assert_int_equal(groups.group[0].whole, -1);
    wpk_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_know_the_transforms_beside_them),
        cmocka_unit_test(fits_are_whole_tiles_of_the_result),
        cmocka_unit_test(a_block_has_the_largest_box_of_whole_tiles),
        cmocka_unit_test(parts_of_rows_of_tiles_do_not_fit),
        cmocka_unit_test(an_axis_whose_last_tile_is_not_whole_stays_whole),
        cmocka_unit_test(products_alone_have_nothing_beside_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
