/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"

#include "common/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static int start(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/wpk-config-%d.json", (int)getpid());
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static wpk_err open_text(const char *text, struct wpk_json_reader **reader, struct wpk_diag *diag)
{
    assert_int_equal(wpk_fs_write(path, text, strlen(text), 0600, NULL), WPK_OK);
    return wpk_config_file_open(path, reader, diag);
}

static void comments_are_blank(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"{} // all\n", "{}       \n"},
        {"{\"a\": \"http://x\"} //", "{\"a\": \"http://x\"}   "},
        {"\"\\\"//\" //x\n1", "\"\\\"//\"    \n1"},
        {"// \"\n\"a\"", "    \n\"a\""},
        {"\"unended // \n// b", "\"unended // \n    "},
        {"1 / 2", "1 / 2"},
        {"/", "/"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", cases[i].text);
        wpk_config_file_strip(text, strlen(text));
        assert_string_equal(text, cases[i].expected);
    }
}

static void reads_what_is_no_comment(void **state)
{
    (void)state;
    struct wpk_json_reader *reader = NULL;
    assert_int_equal(open_text("// head\n{\n  \"a\": 3 // three\n}\n", &reader, NULL), WPK_OK);
    assert_int_equal(wpk_json_get_int(reader, "a", 0, 9), 3);
    wpk_json_close(reader);
}

static void failures_have_file_line_and_field(void **state)
{
    (void)state;
    struct wpk_json_reader *reader = NULL;
    struct wpk_diag diag = {0};
    char text[512];
    char expected[256];
    assert_int_equal(open_text("// head\n{\n  \"a\": \"x\" // three\n}\n", &reader, &diag), WPK_OK);
    assert_int_equal(wpk_json_get_int(reader, "a", 0, 9), 0);
    assert_int_equal(wpk_json_status(reader), WPK_EINVAL);
    wpk_json_close(reader);
    wpk_diag_format(&diag, text, sizeof text);
    snprintf(expected, sizeof expected, "%s:3:8: a: must be a number", path);
    assert_string_equal(text, expected);

    diag = (struct wpk_diag){0};
    assert_int_equal(open_text("{} // fine\n}\n", &reader, &diag), WPK_EPARSE);
    wpk_diag_format(&diag, text, sizeof text);
    snprintf(expected, sizeof expected, "%s:2:1: ", path);
    assert_memory_equal(text, expected, strlen(expected));

    diag = (struct wpk_diag){0};
    assert_int_equal(open_text("[]", &reader, &diag), WPK_EINVAL);
    assert_int_equal(open_text("", &reader, NULL), WPK_EPARSE);
    diag = (struct wpk_diag){0};
    assert_int_equal(wpk_config_file_open("/nowhere/x.json", &reader, &diag), WPK_ENOENT);
    assert_non_null(strstr(diag.text, "/nowhere/x.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_are_blank),
        cmocka_unit_test(reads_what_is_no_comment),
        cmocka_unit_test(failures_have_file_line_and_field),
    };
    return cmocka_run_group_tests(tests, start, end);
}
