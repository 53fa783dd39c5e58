/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move blocks or borders, against loops. */
#include "tests/model_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX 256

/* Y[n, c, h*B + i, w*B + j] = X[n, channel(c, i, j), h, w], both ways. */
static void blocks_move_between_depth_and_space(void **state)
{
    (void)state;
    enum { N = 2, C = 3, H = 2, W = 3, B = 2 };
    for (int columns_first = 0; columns_first < 2; columns_first++) {
        double deep[MAX], wide[MAX], found[MAX];
        char attributes[64];
        wpk_model_case_draw(3, deep, (int64_t)N * C * B * B * H * W);
        for (int n = 0; n < N; n++) {
            for (int c = 0; c < C; c++) {
                for (int y = 0; y < H * B; y++) {
                    for (int x = 0; x < W * B; x++) {
                        int block = y % B * B + x % B;
                        int channel = columns_first ? c * B * B + block : block * C + c;
                        wide[((n * C + c) * H * B + y) * W * B + x] =
                            deep[((n * C * B * B + channel) * H + y / B) * W + x / B];
                    }
                }
            }
        }
        snprintf(attributes, sizeof(attributes), "blocksize:i=2 mode:s=%s",
                 columns_first ? "CRD" : "DCR");
        const struct wpk_model_input from = {.type = "f64[2,12,2,3]", .data = deep};
        const struct wpk_model_input back = {.type = "f64[2,3,4,6]", .data = wide};
        int64_t count =
            wpk_model_case_compute("DepthToSpace", 13, attributes, &from, 1, 0, found, MAX);
        assert_int_equal(count, N * C * B * B * H * W);
        wpk_model_case_compare("DepthToSpace", found, wide, count);
        if (!columns_first) {
            count = wpk_model_case_compute("SpaceToDepth", 13, "blocksize:i=2", &back, 1, 0, found,
                                           MAX);
            wpk_model_case_compare("SpaceToDepth", found, deep, count);
        }
    }
}

static void blocks_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"DepthToSpace", ":f32[1,6,2,2]", "blocksize:i=2", "!does not divide its input"},
        {"DepthToSpace", ":f32[4,2,2]", "blocksize:i=2", "!has not four axes"},
        {"DepthToSpace", ":f32[1,4,2,2]", "blocksize:i=0", "!its blocksize is no extent"},
        {"SpaceToDepth", ":f32[1,1,2,3]", "blocksize:i=2", "!does not divide its input"},
        {"SpaceToDepth", ":f32[1,1,4,4]", "blocksize:i=4097", "!its blocksize is no extent"},
        {"DepthToSpace", ":f32[1,4,1,1]", "blocksize:i=1", "f32[1,4,1,1] 1,2,3,4"},
    };
    WPK_MODEL_CASES(cases);
}

static void tiles_repeat_the_whole(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Tile", ":f32[2,2] 1,2:i64[2]", "", "f32[2,4] 1,2,1,2,3,4,3,4"},
        {"Tile", ":f32[2,1] 2,3:i64[2]", "", "f32[4,3] 1,1,1,2,2,2,1,1,1,2,2,2"},
        {"Tile", ":f32[2] 1:i64[1]", "", "f32[2] 1,2"},
        {"Tile", ":f32[2,2] 2:i64[1]", "", "!its repeats are not one for each axis"},
        {"Tile", ":f32[2] 0:i64[1]", "", "!one of its repeats is no extent"},
        {"Tile", ":f32[2] -1:i64[1]", "", "!one of its repeats is no extent"},
        {"Tile", ":f32[2] 8589934592:i64[1]", "", "!one of its repeats is no extent"},
    };
    WPK_MODEL_CASES(cases);
}

/* Odd differences: one element more behind when cropped, and when padded. */
static void a_crop_or_pad_is_centered(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"CenterCropPad", ":f32[5] 3:i64[1]", "", "f32[3] 2,3,4"},
        {"CenterCropPad", ":f32[5] 2:i64[1]", "", "f32[2] 2,3"},
        {"CenterCropPad", ":f32[2] 5:i64[1]", "", "f32[5] 0,1,2,0,0"},
        {"CenterCropPad", ":f32[2,2] 4:i64[1]", "axes:I=-1", "f32[2,4] 0,1,2,0,0,3,4,0"},
        {"CenterCropPad", ":f32[1,3] 3,1:i64[2]", "", "f32[3,1] 0,2,0"},
        {"CenterCropPad", ":f32[2,2] 4:i64[1]", "", "!its shape is not one extent for each axis"},
        {"CenterCropPad", ":f32[2,2] 4:i64[1]", "axes:I=2", "!axis 2 of 2"},
    };
    WPK_MODEL_CASES(cases);
}

/* The index in [0, extent) that position `at` of a padded axis has. */
static int64_t source(const char *mode, int64_t at, int64_t extent)
{
    if (strcmp(mode, "edge") == 0) {
        return at < 0 ? 0 : at >= extent ? extent - 1 : at;
    }
    if (strcmp(mode, "wrap") == 0) {
        return (at % extent + extent) % extent;
    }
    while (at < 0 || at >= extent) { /* reflected, again and again */
        at = at < 0 ? -at : 2 * (extent - 1) - at;
    }
    return at;
}

static void borders_follow_their_mode(void **state)
{
    (void)state;
    static const struct {
        int64_t extent[2], before[2], after[2];
    } cases[] = {
        {{3, 4}, {1, 2}, {2, 0}}, {{2, 2}, {3, 5}, {4, 2}}, /* reflects several times */
        {{3, 3}, {0, 0}, {0, 1}}, {{4, 1}, {2, 0}, {0, 0}}, {{3, 2}, {3, 0}, {0, 2}},
    };
    static const char *const modes[] = {"edge", "reflect", "wrap"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int m = 0; m < 3; m++) {
            double x[MAX], found[MAX], expected[MAX];
            char type[32], pads[64], attributes[32];
            const int64_t *e = cases[i].extent, *b = cases[i].before, *a = cases[i].after;
            int64_t count = 0;
            wpk_model_case_draw(9, x, e[0] * e[1]);
            for (int64_t y = -b[0]; y < e[0] + a[0]; y++) {
                for (int64_t z = -b[1]; z < e[1] + a[1]; z++) {
                    expected[count++] =
                        x[source(modes[m], y, e[0]) * e[1] + source(modes[m], z, e[1])];
                }
            }
            snprintf(type, sizeof(type), "f64[%d,%d]", (int)e[0], (int)e[1]);
            snprintf(pads, sizeof(pads), "%d,%d,%d,%d", (int)b[0], (int)b[1], (int)a[0], (int)a[1]);
            snprintf(attributes, sizeof(attributes), "mode:s=%s", modes[m]);
            const struct wpk_model_input inputs[] = {{.type = type, .data = x},
                                                     {.type = "i64[4]", .values = pads}};
            assert_int_equal(
                wpk_model_case_compute("Pad", 19, attributes, inputs, 2, 0, found, MAX), count);
            wpk_model_case_compare(modes[m], found, expected, count);
        }
    }
}

static void negative_pads_take_elements_away(void **state)
{
    (void)state;
    static const struct wpk_model_case cases[] = {
        {"Pad", ":f32[4] -1,1:i64[2]", "mode:s=edge", "f32[4] 2,3,4,4"},
        {"Pad", ":f32[4] -1,2:i64[2]", "mode:s=wrap", "f32[5] 2,3,4,2,3"},
        {"Pad", ":f32[4] -2,-1:i64[2]", "", "f32[1] 3"},
        {"Pad", ":f32[4] -2,-2:i64[2]", "", "!no elements"},
        {"Pad", ":f32[4] 1,1:i64[2] 7:f32[]", "", "f32[6] 7,1,2,3,4,7"},
        {"Pad", ":f32[2,2] 1,0:i64[2] - 1:i64[1]", "", "f32[2,3] 0,1,2,0,3,4"}, /* of one axis */
        {"Pad", ":f32[2,2] 1,0:i64[2]", "", "!2 pads for 2 axes"},
        {"Pad@2", ":f32[2]", "pads:I=1,1 value:f=3", "f32[4] 3,1,2,3"},
    };
    WPK_MODEL_CASES(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_move_between_depth_and_space),
        cmocka_unit_test(blocks_that_do_not_fit_are_refused),
        cmocka_unit_test(tiles_repeat_the_whole),
        cmocka_unit_test(a_crop_or_pad_is_centered),
        cmocka_unit_test(borders_follow_their_mode),
        cmocka_unit_test(negative_pads_take_elements_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
