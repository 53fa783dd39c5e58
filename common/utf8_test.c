/* SPDX-License-Identifier: Apache-2.0 */
#include "common/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_every_code_point_goes_round(void **state)
{
    (void)state;
    char bytes[4];

    for (unsigned code = 0; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code <= 0xdfff) {
            continue;
        }
        size_t length = wpk_utf8_encode(code, bytes);
        size_t expected = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        if (length != expected || wpk_utf8_length(bytes, length) != length) {
            fail_msg("U+%04X: %zu bytes", code, length);
        }
        if (length > 1) {
            assert_int_equal(wpk_utf8_length(bytes, length - 1), 0);
        }
    }
    assert_int_equal(wpk_utf8_encode(0x20ac, bytes), 3);
    assert_memory_equal(bytes, "\xe2\x82\xac", 3);
}

static void test_ill_formed(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "\x80",             /* a continuation byte alone */
        "\xc0\x80",         /* overlong NUL */
        "\xc1\xbf",         /* overlong DEL */
        "\xe0\x9f\xbf",     /* overlong U+07FF */
        "\xf0\x8f\xbf\xbf", /* overlong U+FFFF */
        "\xed\xa0\x80",     /* surrogate */
        "\xf4\x90\x80\x80", /* past U+10FFFF */
        "\xf5\x80\x80\x80",
        "\xff",
        "\xfe",
        "\xe2\x82", /* cut */
        "\xe2\x28\xa1",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (wpk_utf8_length(wrong[i], strlen(wrong[i])) != 0) {
            fail_msg("accepted: number %zu", i);
        }
    }
    assert_int_equal(wpk_utf8_length("", 0), 0);
}

static void test_check_finds_the_first(void **state)
{
    (void)state;
    assert_int_equal(wpk_utf8_check("abc", 3), 3);
    assert_int_equal(wpk_utf8_check("a\xc3\xa4\xff", 4), 3);
    assert_int_equal(wpk_utf8_check("\xff", 1), 0);
    assert_int_equal(wpk_utf8_check(NULL, 0), 0);
}

static void test_controls(void **state)
{
    (void)state;
    assert_true(wpk_utf8_is_control("\x1b[2J"));
    assert_true(wpk_utf8_is_control("\n"));
    assert_true(wpk_utf8_is_control(""));
    assert_true(wpk_utf8_is_control("\x7f"));
    assert_true(wpk_utf8_is_control("\xc2\x9b"
                                    "2J"));
    assert_false(wpk_utf8_is_control(" "));
    assert_false(wpk_utf8_is_control("\xc2\xa0"));
    assert_false(wpk_utf8_is_control("\xc2"));
    assert_false(wpk_utf8_is_control("\xc3\x9b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point_goes_round),
        cmocka_unit_test(test_ill_formed),
        cmocka_unit_test(test_check_finds_the_first),
        cmocka_unit_test(test_controls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
