/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_appends_grow_and_terminate(void **state)
{
    (void)state;
    struct wpk_buf buf = {0};

    assert_string_equal(wpk_buf_text(&buf), "");
    for (int i = 0; i < 1000; i++) {
        wpk_buf_append_text(&buf, "abc");
        wpk_buf_append_byte(&buf, ',');
    }
    assert_int_equal(wpk_buf_status(&buf), WPK_OK);
    assert_int_equal(buf.size, 4000);
    assert_int_equal(strlen(wpk_buf_text(&buf)), 4000);
    wpk_buf_truncate(&buf, 3);
    assert_string_equal(wpk_buf_text(&buf), "abc");
    wpk_buf_reset(&buf);
    assert_string_equal(wpk_buf_text(&buf), "");
    wpk_buf_fini(&buf);
    wpk_buf_fini(&buf);
    wpk_buf_fini(NULL);
}

static void test_printf_short_and_long(void **state)
{
    (void)state;
    struct wpk_buf buf = {0};
    char wide[600];

    memset(wide, 'w', sizeof(wide) - 1);
    wide[sizeof(wide) - 1] = '\0';
    wpk_buf_printf(&buf, "%d-", 42);
    wpk_buf_printf(&buf, "%s%d", wide, 7);
    assert_int_equal(buf.size, 3 + 599 + 1);
    assert_memory_equal(buf.data, "42-www", 6);
    assert_string_equal(buf.data + buf.size - 2, "w7");
    wpk_buf_fini(&buf);
}

static void test_printf_around_the_small_size(void **state)
{
    (void)state;
    /* The first attempt goes to 256 bytes on the stack: lengths around that come out whole. */
    for (int width = 250; width < 262; width++) {
        struct wpk_buf buf = {0};
        wpk_buf_printf(&buf, "%*d", width, 5);
        assert_int_equal(buf.size, width);
        assert_int_equal(buf.data[width - 1], '5');
        wpk_buf_fini(&buf);
    }
}

static void test_maximum_is_exact_and_sticks(void **state)
{
    (void)state;
    struct wpk_buf buf;

    wpk_buf_init(&buf, 8);
    wpk_buf_append(&buf, "12345678", 8);
    assert_int_equal(wpk_buf_status(&buf), WPK_OK);
    wpk_buf_append_byte(&buf, '9');
    assert_int_equal(wpk_buf_status(&buf), WPK_ENOSPC);
    assert_string_equal(wpk_buf_text(&buf), "12345678");
    wpk_buf_truncate(&buf, 0);
    wpk_buf_append_byte(&buf, 'a');
    assert_int_equal(wpk_buf_status(&buf), WPK_ENOSPC);
    assert_string_equal(wpk_buf_text(&buf), "");
    wpk_buf_reset(&buf);
    wpk_buf_append_byte(&buf, 'a');
    assert_int_equal(wpk_buf_status(&buf), WPK_OK);
    assert_null(wpk_buf_reserve(&buf, SIZE_MAX));
    assert_int_equal(wpk_buf_status(&buf), WPK_ENOSPC);
    wpk_buf_fini(&buf);
}

static void test_take_moves_the_content(void **state)
{
    (void)state;
    struct wpk_buf buf;
    char *data = NULL;
    size_t size = 0;

    wpk_buf_init(&buf, 100);
    wpk_buf_append_text(&buf, "mine");
    assert_int_equal(wpk_buf_take(&buf, &data, &size), WPK_OK);
    assert_string_equal(data, "mine");
    assert_int_equal(size, 4);
    assert_null(buf.data);
    assert_int_equal(buf.size_max, 100);
    free(data);

    assert_int_equal(wpk_buf_take(&buf, &data, NULL), WPK_OK);
    assert_string_equal(data, "");
    free(data);

    char *untouched = NULL;
    wpk_buf_append(&buf, NULL, 0);
    assert_null(wpk_buf_reserve(&buf, 101));
    assert_int_equal(wpk_buf_take(&buf, &untouched, NULL), WPK_ENOSPC);
    assert_null(untouched);
    assert_int_equal(wpk_buf_status(&buf), WPK_OK);
}

static void test_reserve_and_commit(void **state)
{
    (void)state;
    struct wpk_buf buf = {0};
    char *room = wpk_buf_reserve(&buf, 10);

    assert_non_null(room);
    memcpy(room, "abcdef", 6);
    wpk_buf_commit(&buf, 3);
    assert_string_equal(wpk_buf_text(&buf), "abc");
    wpk_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends_grow_and_terminate),
        cmocka_unit_test(test_printf_short_and_long),
        cmocka_unit_test(test_printf_around_the_small_size),
        cmocka_unit_test(test_maximum_is_exact_and_sticks),
        cmocka_unit_test(test_take_moves_the_content),
        cmocka_unit_test(test_reserve_and_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
