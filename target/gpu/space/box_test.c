/* SPDX-License-Identifier: Apache-2.0 */
/* The box that windows are read out of: its sizes, its rows in memory, and the banks. */
#include "target/gpu/space/moves.h"

#include "common/cuda_machine.h"
#include "tests/cuda_space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct convolution {
    int channels, image, kernel, stride, pad, extent; /* of the image's and the result's rows */
};

/* A block with so many elements along i, j and rows, whose threads have a piece each. */
#define BOX(i, j, rows, thread_i, thread_j)                                                        \
    {                                                                                              \
        .block = {i, j}, .thread = {thread_i, thread_j}, .piece = {thread_i, thread_j},            \
        .together = rows, .step = 4                                                                \
    }

static void find(const struct convolution *c, struct wpk_program *program,
                 struct wpk_cuda_groups *groups)
{
    char text[512], window[32] = "", pad[16] = "";
    if (c->stride > 1) {
        snprintf(window, sizeof(window), "%d*", c->stride);
    }
    if (c->pad > 0) {
        snprintf(pad, sizeof(pad), "-%d", c->pad);
    }
    snprintf(text, sizeof(text),
             "input X f32[2,%d,%d,%d]\nconstant W f32[24,%d,%d,%d]\noutput Y f32[2,24,%d,%d]\n"
             "Y[n,k,y,x] = sum(c:%d,r:%d,s:%d) X[n,c,%sy+r%s,%sx+s%s | 0] * W[k,c,r,s]\n",
             c->channels, c->image, c->image, c->channels, c->kernel, c->kernel, c->extent,
             c->extent, c->channels, c->kernel, c->kernel, window, pad, window, pad);
    wpk_cuda_space_group(text, false, program, groups);
}

static const struct convolution same = {16, 28, 3, 1, 1, 28};
static const struct convolution strided = {16, 57, 3, 2, 0, 28};

static void a_convolution_with_windows_has_a_box(void **state)
{
    (void)state;
    static const struct {
        struct convolution c;
        bool has;
    } cases[] = {
        {{16, 28, 3, 1, 1, 28}, true},
        {{16, 28, 1, 1, 0, 28}, false}, /* windows of one element are none */
        {{16, 57, 3, 2, 0, 28}, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        struct wpk_cuda_groups groups;
        find(&cases[i].c, &program, &groups);
        const struct wpk_cuda_group *group = &groups.group[groups.count - 1];
        if ((group->kind == WPK_CUDA_WINDOWS) != cases[i].has) {
            fail_msg("case %zu: template %d", i, group->kind);
        }
        wpk_program_fini(&program);
    }
}

static void windows_move_along_rows_and_columns_only(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    find(&same, &program, &groups);
    const struct wpk_cuda_group *group = &groups.group[0];
    /* Y[n,k,y,x]: the windowed operand depends on n, y, x and on all terms */
    assert_true(wpk_cuda_is_windowed(&program, group->sum, 0));
    assert_false(wpk_cuda_is_windowed(&program, group->sum, 1));
    assert_true(wpk_cuda_is_windowed(&program, group->sum, 2));
    assert_true(wpk_cuda_is_windowed(&program, group->sum, 3));
    assert_int_equal(group->i, 1);
    assert_int_equal(group->j, 3);
    assert_int_equal(group->whole, 2); /* rows of the box */
    wpk_program_fini(&program);
}

/* Elements along a dimension of X that windows of a tile touch: a plain loop over them. */
static int64_t count_touched(const struct convolution *c, int64_t results)
{
    bool touched[256] = {false};
    int64_t count = 0;
    for (int64_t y = 0; y < results; y++) {
        for (int64_t r = 0; r < c->kernel; r++) {
            touched[c->stride * y + r] = true;
        }
    }
    for (int64_t first = 0, last = 255; last >= first; last--) {
        if (touched[last]) {
            return last + 1; /* what lies between is copied, too */
        }
    }
    return count;
}

static void a_box_has_all_that_windows_of_a_tile_touch(void **state)
{
    (void)state;
    const struct convolution *const cases[] = {&same, &strided};
    for (int i = 0; i < 2; i++) {
        struct wpk_program program;
        struct wpk_cuda_groups groups;
        find(cases[i], &program, &groups);
        const struct wpk_cuda_group *group = &groups.group[0];
        for (int64_t columns = 4; columns <= 16; columns *= 2) {
            for (int64_t rows = 1; rows <= 4; rows++) {
                const struct wpk_cuda_tiles box = BOX(8, columns, rows, 1, 1);
                int64_t row = 0, x = count_touched(cases[i], columns);
                assert_int_equal(wpk_cuda_box_align(&program, group, &box, &row), 1);
                assert_int_equal(row, x);
                for (int64_t padding = 0; padding < 3; padding++) {
                    assert_int_equal(wpk_cuda_box_elements(&program, group, &box, padding),
                                     4 * count_touched(cases[i], rows) * (x + padding));
                }
            }
        }
        wpk_program_fini(&program);
    }
}

/* 28 results of a row read 30 elements: 32 are hardly more, 57 of a strided one are not 64. */
static void whole_rows_that_are_nearly_a_power_of_two_are_filled_up(void **state)
{
    (void)state;
    static const struct {
        struct convolution c;
        int64_t align, row;
    } cases[] = {
        {{16, 28, 3, 1, 1, 28}, 32, 32}, {{16, 57, 3, 2, 0, 28}, 1, 57},
        {{16, 14, 3, 1, 1, 14}, 16, 16}, {{16, 13, 3, 1, 1, 13}, 16, 16}, /* 15 of 16 */
        {{16, 12, 3, 1, 1, 12}, 16, 16}, /* 14 of 16: an eighth is lost */
        {{16, 11, 3, 1, 1, 11}, 1, 13},  {{16, 6, 3, 1, 1, 6}, 8, 8},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wpk_program program;
        struct wpk_cuda_groups groups;
        find(&cases[i].c, &program, &groups);
        const struct wpk_cuda_tiles box = BOX(8, cases[i].c.extent, 1, 1, 1);
        int64_t row = 0, align = wpk_cuda_box_align(&program, &groups.group[0], &box, &row);
        if (align != cases[i].align || row != cases[i].row) {
            fail_msg("case %zu: %d, row %d", i, (int)align, (int)row);
        }
        wpk_program_fini(&program);
    }
}

/* The rounds of a warp's read, word by word. */
static int64_t count_rounds(const struct wpk_cuda_tiles *box, int64_t row_elements, int64_t stride)
{
    bool read[WPK_CUDA_BANKS][4096] = {{false}};
    const int64_t threads[] = {box->block[0] / box->thread[0], box->block[1] / box->thread[1]};
    int64_t most = 1;
    for (int64_t lane = 0; lane < WPK_CUDA_WARP; lane++) {
        int64_t j = lane % threads[1];
        int64_t rows = lane / (threads[0] * threads[1]);
        int64_t word = j * box->piece[1] * stride + rows * stride * row_elements;
        if (rows < box->together) {
            read[word % WPK_CUDA_BANKS][word / WPK_CUDA_BANKS] = true;
        }
    }
    for (int b = 0; b < WPK_CUDA_BANKS; b++) {
        int64_t rounds = 0;
        for (int i = 0; i < 4096; i++) {
            rounds += read[b][i];
        }
        most = rounds > most ? rounds : most;
    }
    return most;
}

static void the_padding_is_the_least_with_the_fewest_rounds(void **state)
{
    (void)state;
    static const struct wpk_cuda_tiles boxes[] = {
        BOX(8, 32, 1, 8, 1), /* neighbours */
        BOX(8, 32, 4, 8, 4), /* four rows of eight threads */
        BOX(8, 16, 4, 8, 2),   BOX(8, 8, 8, 8, 2),
        BOX(32, 16, 1, 1, 16), /* all lanes read one word */
    };
    const struct convolution *const cases[] = {&same, &strided};
    for (int c = 0; c < 2; c++) {
        struct wpk_program program;
        struct wpk_cuda_groups groups;
        find(cases[c], &program, &groups);
        const struct wpk_cuda_group *group = &groups.group[0];
        for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
            int64_t rounds = 0, row = 0, best = 0, least;
            (void)wpk_cuda_box_align(&program, group, &boxes[i], &row);
            least = count_rounds(&boxes[i], row, cases[c]->stride);
            for (int64_t padding = 1; padding <= 8; padding++) {
                int64_t found = count_rounds(&boxes[i], row + padding, cases[c]->stride);
                best = found < least ? padding : best;
                least = found < least ? found : least;
            }
            int64_t padding = wpk_cuda_box_padding(&program, group, &boxes[i], &rounds);
            if (rounds != least || padding != best) {
                fail_msg("convolution %d, box %zu: padding %d, %d rounds; not %d, %d", c, i,
                         (int)padding, (int)rounds, (int)best, (int)least);
            }
        }
        wpk_program_fini(&program);
    }
}

/* Rows of X are eight sectors; the window begins one element before one. */
static void long_rows_of_whole_sectors_begin_at_sectors(void **state)
{
    (void)state;
    struct wpk_program program;
    struct wpk_cuda_groups groups;
    const struct convolution wide = {16, 64, 3, 1, 1, 64};
    find(&wide, &program, &groups);
    const struct wpk_cuda_group *group = &groups.group[0];
    int64_t row = 0;
    struct wpk_cuda_tiles box = BOX(8, 64, 1, 4, 4);
    assert_true(group->box_sectored);
    assert_int_equal(wpk_cuda_box_align(&program, group, &box, &row), WPK_CUDA_SECTOR_ELEMENTS);
    assert_int_equal(row % WPK_CUDA_SECTOR_ELEMENTS, 0);
    assert_true(row >= 66);
    box.block[1] = 32; /* a part of a row begins anywhere: up to seven elements before */
    assert_int_equal(wpk_cuda_box_align(&program, group, &box, &row), WPK_CUDA_SECTOR_ELEMENTS);
    assert_true(row >= 34 + 7);
    box.block[1] = 8; /* a short row: no sectors */
    assert_int_equal(wpk_cuda_box_align(&program, group, &box, &row), 1);
    assert_int_equal(row, 10);
    wpk_program_fini(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_convolution_with_windows_has_a_box),
        cmocka_unit_test(windows_move_along_rows_and_columns_only),
        cmocka_unit_test(a_box_has_all_that_windows_of_a_tile_touch),
        cmocka_unit_test(whole_rows_that_are_nearly_a_power_of_two_are_filled_up),
        cmocka_unit_test(the_padding_is_the_least_with_the_fewest_rounds),
        cmocka_unit_test(long_rows_of_whole_sectors_begin_at_sectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
