/* SPDX-License-Identifier: Apache-2.0 */
#include "common/markup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *value, const char *markup)
{
    struct wpk_buf out = {0};
    wpk_markup(&out, "<b title=\"%s\">", value);
    assert_int_equal(wpk_buf_status(&out), WPK_OK);
    assert_memory_equal(wpk_buf_text(&out), "<b title=\"", 10);
    wpk_buf_truncate(&out, out.size - 2);
    assert_string_equal(wpk_buf_text(&out) + 10, markup);
    wpk_buf_fini(&out);
}

static void test_escapes_what_begins_or_ends_markup(void **state)
{
    (void)state;
    expect("<script>alert('1')</script>", "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;");
    expect("\" onload=\"x", "&quot; onload=&quot;x");
    expect("&lt;", "&amp;lt;");
    expect("ä 木 👍", "ä 木 👍");
}

static void test_replaces_what_no_reader_shows(void **state)
{
    (void)state;
    expect("a\xff\xc3", "a\xef\xbf\xbd\xef\xbf\xbd");
    expect("a\x1b[31m\x7f\tb\n", "a\xef\xbf\xbd[31m\xef\xbf\xbd\tb\n");
    expect("gnp.\xe2\x80\xae<", "gnp.\xef\xbf\xbd&lt;");
    expect("\xe2\x81\xa6\xd8\x9c", "\xef\xbf\xbd\xef\xbf\xbd");
}

static void test_cuts_long_values_between_characters(void **state)
{
    (void)state;
    char text[65537];
    struct wpk_buf out = {0};
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text + WPK_MARKUP_VALUE_MAX - 1, "木", 3);
    wpk_markup(&out, "%s", text);
    assert_int_equal(out.size, WPK_MARKUP_VALUE_MAX - 1 + strlen("…"));
    wpk_buf_fini(&out);
}

static void test_prints_numbers(void **state)
{
    (void)state;
    struct wpk_buf out = {0};
    wpk_markup(&out, "%d %u %lld %llu %.1f %.3g 5%%", -1, 2u, -3LL, 4ULL, 0.25, 1e6);
    assert_string_equal(wpk_buf_text(&out), "-1 2 -3 4 0.2 1e+06 5%");
    wpk_buf_reset(&out);
    wpk_markup_url(&out, "a b/\"ä");
    assert_string_equal(wpk_buf_text(&out), "a%20b%2F%22%C3%A4");
    wpk_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escapes_what_begins_or_ends_markup),
        cmocka_unit_test(test_replaces_what_no_reader_shows),
        cmocka_unit_test(test_cuts_long_values_between_characters),
        cmocka_unit_test(test_prints_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
