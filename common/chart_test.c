/* SPDX-License-Identifier: Apache-2.0 */
#include "common/chart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct wpk_chart_point points[] = {
    {1, 20, 0, "<i>"}, {2, 30, 1, NULL}, {3, 10, 0, NULL}};

static void draw(bool is_file, int count, struct wpk_buf *out)
{
    const struct wpk_chart chart = {.title = "a < b",
                                    .x_name = "asks",
                                    .points = points,
                                    .count = count,
                                    .x_most = 4,
                                    .vendor_us = 15,
                                    .series = {"direct", "</svg><script>"},
                                    .series_count = 2,
                                    .notes_title = "outcomes",
                                    .notes = {"2 ok"},
                                    .note_count = 1,
                                    .is_file = is_file};
    wpk_chart_draw(&chart, out);
    assert_int_equal(wpk_buf_status(out), WPK_OK);
}

static void test_a_file_has_its_style_and_a_part_has_none(void **state)
{
    (void)state;
    struct wpk_buf out = {0};
    draw(true, 3, &out);
    assert_non_null(strstr(wpk_buf_text(&out), "<style>"));
    wpk_buf_reset(&out);
    draw(false, 3, &out);
    assert_null(strstr(wpk_buf_text(&out), "style"));
    wpk_buf_fini(&out);
}

static void test_texts_are_escaped(void **state)
{
    (void)state;
    struct wpk_buf out = {0};
    draw(false, 3, &out);
    assert_non_null(strstr(wpk_buf_text(&out), "a &lt; b"));
    assert_non_null(strstr(wpk_buf_text(&out), "&lt;/svg&gt;&lt;script&gt;"));
    assert_non_null(strstr(wpk_buf_text(&out), "<title>&lt;i&gt;</title>"));
    assert_null(strstr(wpk_buf_text(&out), "<script"));
    wpk_buf_fini(&out);
}

/* One step down, from the first point to the third. */
static void test_the_best_so_far_only_falls(void **state)
{
    (void)state;
    struct wpk_buf out = {0};
    draw(false, 3, &out);
    const char *best = strstr(wpk_buf_text(&out), "class=\"best\" d=\"M");
    assert_non_null(best);
    size_t size = strcspn(best, ">");
    int steps = 0;
    for (size_t i = 0; i < size; i++) {
        steps += best[i] == 'V';
    }
    assert_int_equal(steps, 1);
    wpk_buf_reset(&out);
    draw(false, 0, &out);
    assert_non_null(strstr(wpk_buf_text(&out), "</svg>"));
    wpk_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_has_its_style_and_a_part_has_none),
        cmocka_unit_test(test_texts_are_escaped),
        cmocka_unit_test(test_the_best_so_far_only_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
