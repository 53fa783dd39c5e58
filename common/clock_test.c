/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/clock_fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_system_clock_moves_forward(void **state)
{
    (void)state;
    const struct wpk_clock *clock = wpk_clock_system();
    uint64_t last = wpk_clock_now_ns(clock);

    for (int i = 0; i < 1000; i++) {
        uint64_t now = wpk_clock_now_ns(clock);
        assert_true(now >= last);
        last = now;
    }
    /* 2020-01-01: a machine whose clock is before that is not set. */
    assert_true(wpk_clock_wall_ns(clock) > UINT64_C(1577836800) * WPK_NS_PER_S);
}

static void test_fake_clock_stands_until_moved(void **state)
{
    (void)state;
    struct wpk_clock_fake fake;

    wpk_clock_fake_init(&fake, 5, 1000);
    assert_int_equal(wpk_clock_now_ns(&fake.clock), 5);
    assert_int_equal(wpk_clock_now_ns(&fake.clock), 5);
    wpk_clock_fake_advance(&fake, 10);
    assert_int_equal(wpk_clock_now_ns(&fake.clock), 15);
    assert_int_equal(wpk_clock_wall_ns(&fake.clock), 1010);
}

static void expect_text(uint64_t wall_ns, const char *expected)
{
    char text[WPK_CLOCK_TEXT_SIZE];

    wpk_clock_format(wall_ns, text);
    assert_string_equal(text, expected);
}

static void test_format(void **state)
{
    (void)state;
    expect_text(0, "1970-01-01T00:00:00.000Z");
    expect_text(UINT64_C(951827696789999999), "2000-02-29T12:34:56.789Z");
    expect_text(UINT64_MAX, "2554-07-21T23:34:33.709Z");
}

static void expect_time(const char *text, uint64_t expected)
{
    uint64_t wall_ns = 1;

    assert_int_equal(wpk_clock_parse(text, &wall_ns), WPK_OK);
    assert_true(wall_ns == expected);
}

static void test_parse(void **state)
{
    (void)state;
    expect_time("1970-01-01T00:00:00Z", 0);
    expect_time("2000-02-29T12:34:56.789Z", UINT64_C(951827696789000000));
    expect_time("2000-02-29T14:34:56.789000001+02:00", UINT64_C(951827696789000001));
    expect_time("1970-01-01T00:00:00-00:30", 1800 * WPK_NS_PER_S);
    expect_time("2016-12-31T23:59:60Z", UINT64_C(1483228800) * WPK_NS_PER_S);
}

static void test_parse_rejects(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "2026",
        "2026-11-21",
        "2026-11-21T03:52:00",
        "2026-11-21T03:52:00Zx",
        "2026-13-21T03:52:00Z",
        "2026-02-29T03:52:00Z",
        "2026-02-29T00:00:00Z",
        "2024-04-31T00:00:00Z",
        "2026-11-00T03:52:00Z",
        "2026-11-21T24:00:00Z",
        "2026-11-21T03:60:00Z",
        "2026-11-21T03:52:00.Z",
        "2026-11-21T03:52:00.1234567890Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+00:01",
        "9999-11-21T03:52:00Z",
        "2026-11-21T03:52:00+2:00",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint64_t untouched = 7;
        if (wpk_clock_parse(wrong[i], &untouched) != WPK_EPARSE) {
            fail_msg("accepted: %s", wrong[i]);
        }
        assert_int_equal(untouched, 7);
    }
}

static void test_format_and_parse_agree(void **state)
{
    (void)state;
    char text[WPK_CLOCK_TEXT_SIZE];

    /* A bit more than a month at a time, in whole milliseconds, to the end of 2553. */
    for (uint64_t ns = 0; ns < UINT64_C(18429292800000000000); ns += UINT64_C(2777777777000000)) {
        uint64_t again = 0;
        wpk_clock_format(ns, text);
        assert_int_equal(wpk_clock_parse(text, &again), WPK_OK);
        assert_true(again == ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system_clock_moves_forward),
        cmocka_unit_test(test_fake_clock_stands_until_moved),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_rejects),
        cmocka_unit_test(test_format_and_parse_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
