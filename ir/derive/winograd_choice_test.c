/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/derive/winograd.h"

#include "common/buf.h"
#include "ir/derive/extract.h"
#include "ir/notation/notation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int choices_of(int channels, int size, int kernel, int stride,
                      struct wpk_winograd_choice *out)
{
    struct wpk_buf text = {0};
    struct wpk_program program = {0};
    int wide = stride * size;
    wpk_buf_printf(&text, "input X f32[1,%d,%d,%d]\nconstant W f32[%d,%d,%d,3]\n", channels, wide,
                   wide, channels, channels, kernel);
    wpk_buf_printf(&text, "output Y f32[1,%d,%d,%d]\n", channels, size, size);
    wpk_buf_printf(&text, "Y[n,k,y,x] = sum(c:%d,r:%d,s:3) X[n,c,%d*y+r-1,%d*x+s-1] * W[k,c,r,s]\n",
                   channels, kernel, stride, stride);
    assert_int_equal(wpk_program_parse(wpk_buf_text(&text), &program, NULL), WPK_OK);
    int count = wpk_winograd_choices(&program, wpk_contraction_find(&program), out);
    wpk_program_fini(&program);
    wpk_buf_fini(&text);
    return count;
}

static bool has(const struct wpk_winograd_choice *choices, int count, int64_t a, int64_t b)
{
    for (int i = 0; i < count; i++) {
        if ((choices[i].m[0] == a && choices[i].m[1] == b) ||
            (choices[i].m[0] == b && choices[i].m[1] == a)) {
            return true;
        }
    }
    return false;
}

static void test_each_choice_pays(void **state)
{
    (void)state;
    static const int layers[][2] = {{64, 56}, {128, 28}, {256, 14}, {512, 7}, {16, 17}};
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
        struct wpk_winograd_choice out[WPK_WINOGRAD_CHOICES_MAX];
        int count = choices_of(layers[i][0], layers[i][1], 3, 1, out);
        assert_in_range(count, 1, WPK_WINOGRAD_CHOICES_MAX);
        assert_true(out[0].operations < 1);
        for (int k = 1; k < count; k++) {
            assert_true(out[k].error > out[k - 1].error);
            assert_true(out[k].operations < 0.96 * out[k - 1].operations);
        }
    }
}

/* 14 is 3 tiles of 5 and 4 of 4; 28 is 7 tiles of 4 and 5 of 6; 7 is 2 tiles of 4. */
static void test_sizes_fit_the_image(void **state)
{
    (void)state;
    struct wpk_winograd_choice out[WPK_WINOGRAD_CHOICES_MAX];
    int count = choices_of(128, 28, 3, 1, out);
    assert_true(has(out, count, 2, 2) && has(out, count, 3, 3) && has(out, count, 4, 4) &&
                has(out, count, 6, 6) && has(out, count, 4, 2));
    count = choices_of(256, 14, 3, 1, out);
    assert_true(has(out, count, 5, 5) && !has(out, count, 6, 6));
    count = choices_of(512, 7, 3, 1, out);
    assert_true(has(out, count, 4, 4) && !has(out, count, 5, 5) && !has(out, count, 6, 6));
}

static void test_refused(void **state)
{
    (void)state;
    struct wpk_winograd_choice out[WPK_WINOGRAD_CHOICES_MAX];
    assert_int_equal(choices_of(16, 28, 3, 2, out), 0); /* strided */
    int count = choices_of(16, 28, 1, 1, out);          /* one axis: both numbers are alike */
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        assert_true(out[i].m[0] == out[i].m[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_choice_pays),
        cmocka_unit_test(test_sizes_fit_the_image),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
