/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes follow from an axis: no extent has fewer than its neighbours. */
#include "search/gene_list.h"
#include "search/genes.h"

#include "ir/notation/notation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct sizes {
    int tiles, blocks;
    struct wpk_gene tile, block; /* their choices are the space's */
};

/* A product with rows of `extent`, along which one operand is used again. */
static void derive(int extent, struct wpk_program *program, struct wpk_space *space,
                   struct sizes *out)
{
    struct wpk_space_options options = {.layouts = "fixed", .threads = 1};
    struct wpk_diag diag = {0};
    char text[256];
    snprintf(text, sizeof(text),
             "input A f32[%d,64]\ninput B f32[64,96]\noutput Y f32[%d,96]\n"
             "Y[i,j] = sum(k:64) A[i,k] * B[k,j]\n",
             extent, extent);
    assert_int_equal(wpk_program_parse(text, program, &diag), WPK_OK);
    assert_int_equal(wpk_device_of_class("cpu/any/avx512", &options.device), WPK_OK);
    assert_int_equal(wpk_space_derive(program, &options, space, &diag), WPK_OK);
    const struct wpk_variant *variant = &space->variants[0];
    *out = (struct sizes){0};
    for (int i = 0; i < variant->gene_count; i++) {
        const struct wpk_gene *gene = &variant->genes[i];
        if (strcmp(gene->name, "Y.tile.i") == 0) {
            out->tile = *gene;
        } else if (strcmp(gene->name, "Y.block.i") == 0) {
            out->block = *gene;
        }
    }
    out->tiles = out->tile.choice_count;
    out->blocks = out->block.choice_count;
}

static void every_extent_has_sizes(void **state)
{
    static const struct {
        int extent, tiles, blocks;         /* tiles with those of whole vectors along the axis */
        int tile_parts[3], block_parts[3]; /* sizes of equal parts, which no list has; 0: no more */
    } cases[] = {
        {28, 23, 15, {14, 28}, {7, 14}},
        {26, 22, 17, {13, 26}, {9, 13}},
        {38, 26, 19, {13, 19}, {13, 19}},
        {13, 14, 11, {7, 13}, {5, 7}},
        {14, 15, 11, {7, 14}, {5, 7}},
        {7, 10, 7, {4, 7}, {4}},
        {53, 27, 21, {14, 18, 27}, {11, 18, 27}},
        {1, 0, 0, {0}, {0}}, /* there is nothing to decide */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        struct wpk_space space;
        struct sizes sizes;
        derive(cases[i].extent, &program, &space, &sizes);
        if (sizes.tiles != cases[i].tiles || sizes.blocks != cases[i].blocks) {
            fail_msg("%d: %d tiles, %d blocks", cases[i].extent, sizes.tiles, sizes.blocks);
        }
        for (int k = 0; k < 3; k++) {
            int tile = cases[i].tile_parts[k], block = cases[i].block_parts[k];
            assert_true(tile == 0 || wpk_gene_find(&sizes.tile, tile) >= 0);
            assert_true(block == 0 || wpk_gene_find(&sizes.block, block) >= 0);
        }
        for (int k = 1; k < sizes.tiles; k++) {
            assert_true(sizes.tile.choice[k - 1].value < sizes.tile.choice[k].value);
        }
        wpk_space_fini(&space);
        wpk_program_fini(&program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_extent_has_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
