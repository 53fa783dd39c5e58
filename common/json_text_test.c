/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_accepts_what_is_json(void **state)
{
    (void)state;
    static const char *const good[] = {
        "0",
        "-0",
        "1.5e-10",
        "1E+2",
        " \t\r\n{ } ",
        "[]",
        "[1,\t2 , 3]",
        "\"\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uD83D\\uDE00\"",
        "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"",
        "{\"a\":{\"b\":[true,false,null]}}",
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct wpk_diag diag = {0};
        if (wpk_json_check(good[i], strlen(good[i]), 64, &diag) != WPK_OK) {
            fail_msg("rejected: %s: %s", good[i], diag.text);
        }
    }
}

static void test_rejects_and_says_where(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line;
        int column;
    } wrong[] = {
        {"", 1, 1},
        {"  ", 1, 3},
        {"01", 1, 2},
        {"-", 1, 2},
        {"+1", 1, 1},
        {".5", 1, 1},
        {"1.", 1, 3},
        {"1.e", 1, 3},
        {"1e", 1, 3},
        {"0x10", 1, 2},
        {"nul", 1, 1},
        {"NaN", 1, 1},
        {"True", 1, 1},
        {"[1,]", 1, 4},
        {"[1 2]", 1, 4},
        {"[1", 1, 3},
        {"{\"a\" 1}", 1, 6},
        {"{a:1}", 1, 2},
        {"{\"a\":1,}", 1, 8},
        {"{\"a\":}", 1, 6},
        {"\"abc", 1, 5},
        {"\"abc\\", 1, 6},
        {"\"a\nb\"", 1, 3},
        {"\"\\x\"", 1, 2},
        {"\"\\u12g4\"", 1, 2},
        {"\"\\u0000\"", 1, 2},
        {"\"\\ud800\"", 1, 2},
        {"\"\\ud800\\u0041\"", 1, 2},
        {"\"\\udc00\"", 1, 2},
        {"\"\xc3\xa4\xff\"", 1, 3},
        {"\"\xc3", 1, 2},
        {"{} x", 1, 4},
        {"\xef\xbb\xbf{}", 1, 1},
        {"\v1", 1, 1},
        {"{\n  \"a\": 1,\n  \"\xc3\xa4\": oh\n}", 3, 8},
        {"// no comments\n1", 1, 1},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct wpk_diag diag = {0};
        wpk_err err = wpk_json_check(wrong[i].text, strlen(wrong[i].text), 64, &diag);
        if (err != WPK_EPARSE || diag.line != wrong[i].line || diag.column != wrong[i].column) {
            fail_msg("%s: %s at %d:%d: %s", wrong[i].text, wpk_err_name(err), diag.line,
                     diag.column, diag.text);
        }
    }
    assert_int_equal(wpk_json_check("\"a\0b\"", 5, 64, NULL), WPK_EPARSE);
    assert_int_equal(wpk_json_check("1\0", 2, 64, NULL), WPK_EPARSE);
}

static void test_depth_is_bounded(void **state)
{
    (void)state;
    static char text[20001];
    struct wpk_diag diag = {0};

    memset(text, '[', 10000);
    memset(text + 10000, ']', 10000);
    assert_int_equal(wpk_json_check(text, 20000, 64, &diag), WPK_ERANGE);
    assert_int_equal(diag.column, 65);
    assert_int_equal(wpk_json_check(text + 10000 - 64, 128, 64, NULL), WPK_OK);
    assert_int_equal(wpk_json_check(text + 10000 - 65, 130, 64, NULL), WPK_ERANGE);
    /* Side by side is not deep. */
    assert_int_equal(wpk_json_check("[[],[],[{}]]", 12, 3, NULL), WPK_OK);
}

static void test_every_prefix_is_rejected_in_bounds(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[1.5e3,\"\\ud83d\\ude00\xe2\x82\xac\",null],\"b\":{}}";

    for (size_t size = 0; size + 1 < sizeof(text); size++) {
        /* An exact copy, so that reading past its end is seen by the address sanitizer. */
        char *copy = malloc(size + (size == 0));
        assert_non_null(copy);
        memcpy(copy, text, size);
        assert_int_equal(wpk_json_check(copy, size, 64, NULL), WPK_EPARSE);
        free(copy);
    }
}

static const char located[] = "{ \"ops\": [\n"
                              "    {\"x\": 1},\n"
                              "    {\"t\\u0065nsors\": {\"X\": \"f32[1]\", \"\xc3\xa4\": 2,\n"
                              "      \"X\": 3}}\n"
                              "  ] }";

static void expect_place(const struct wpk_json_step *steps, size_t step_count, const char *value,
                         int line, int column, int key_line, int key_column)
{
    struct wpk_json_place place;

    assert_true(wpk_json_locate(located, strlen(located), steps, step_count, &place));
    assert_int_equal(place.size, strlen(value));
    assert_memory_equal(located + place.offset, value, place.size);
    assert_int_equal(place.line, line);
    assert_int_equal(place.column, column);
    assert_int_equal(place.key_line, key_line);
    assert_int_equal(place.key_column, key_column);
}

static void test_locate(void **state)
{
    (void)state;
    struct wpk_json_step steps[] = {
        {.key = "ops"}, {.index = 1}, {.key = "tensors"}, {.key = "\xc3\xa4"}};

    assert_int_equal(wpk_json_check(located, strlen(located), 64, NULL), WPK_OK);
    expect_place(steps, 0, located, 1, 1, 1, 1);
    expect_place(steps, 4, "2", 3, 43, 3, 38);
    steps[3].key = "X";
    expect_place(steps, 4, "3", 4, 12, 4, 7);
    steps[1].index = 0;
    expect_place(steps, 2, "{\"x\": 1}", 2, 5, 2, 5);
}

static void test_locate_stops_where_the_path_ends(void **state)
{
    (void)state;
    struct wpk_json_place place;
    const struct wpk_json_step no_item[] = {{.key = "ops"}, {.index = 2}, {.key = "x"}};
    const struct wpk_json_step not_object[] = {{.key = "ops"}, {.key = "x"}};
    const struct wpk_json_step longer_key[] = {{.key = "ops2"}};
    const struct wpk_json_step shorter_key[] = {{.key = "op"}};

    assert_false(wpk_json_locate(located, strlen(located), no_item, 3, &place));
    assert_int_equal(located[place.offset], '[');
    assert_int_equal(place.column, 10);
    assert_false(wpk_json_locate(located, strlen(located), longer_key, 1, &place));
    assert_false(wpk_json_locate(located, strlen(located), shorter_key, 1, &place));
    assert_int_equal(place.offset, 0);
    assert_false(wpk_json_locate(located, strlen(located), not_object, 2, &place));
    assert_int_equal(located[place.offset], '[');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts_what_is_json),
        cmocka_unit_test(test_rejects_and_says_where),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_every_prefix_is_rejected_in_bounds),
        cmocka_unit_test(test_locate),
        cmocka_unit_test(test_locate_stops_where_the_path_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
