/* SPDX-License-Identifier: Apache-2.0 */
#include "client/schedule_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_round_trip(void **state)
{
    static const char op[] = "input X f32[4]\noutput Y f32[4]\nY[i] = X[i]\n";
    static const char schedule[] = "wpk-schedule 2\ntarget x86-64-linux-avx2 threads 3\nend\n";
    struct wpk_buf file = {0};
    struct wpk_buf got = {0};
    const char *layouts = "fixed";
    int threads = 1;

    (void)state;
    wpk_schedule_file_print(op, "any", schedule, &file);
    assert_string_equal(wpk_buf_text(&file), "#layouts any\n"
                                             "#op input X f32[4]\n"
                                             "#op output Y f32[4]\n"
                                             "#op Y[i] = X[i]\n"
                                             "wpk-schedule 2\n"
                                             "target x86-64-linux-avx2 threads 3\n"
                                             "end\n");
    assert_int_equal(wpk_schedule_file_read(wpk_buf_text(&file), &got, &layouts, &threads, NULL),
                     WPK_OK);
    assert_string_equal(wpk_buf_text(&got), op);
    assert_string_equal(layouts, "any");
    assert_int_equal(threads, 3);
    wpk_buf_fini(&file);
    wpk_buf_fini(&got);
}

static void test_rejected(void **state)
{
    struct wpk_buf got = {0};
    struct wpk_diag diag = {0};
    const char *layouts = "fixed";
    int threads = 1;

    (void)state;
    assert_int_equal(wpk_schedule_file_read("wpk-schedule 2", &got, &layouts, &threads, &diag),
                     WPK_EPARSE);
    assert_true(diag.text[0] != '\0');
    diag = (struct wpk_diag){0};
    assert_int_equal(
        wpk_schedule_file_read("#op Y[i]=X[i]\n#layouts nhwc\n", &got, &layouts, &threads, &diag),
        WPK_EPARSE);
    assert_int_equal(diag.line, 2);
    assert_int_equal(diag.column, 10);
    assert_string_equal(layouts, "fixed");
    assert_int_equal(threads, 1);
    wpk_buf_fini(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_rejected),
    };

    return cmocka_run_group_tests_name("schedule_file", tests, NULL, NULL);
}
