/* SPDX-License-Identifier: Apache-2.0 */
#include "common/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_ns(void **state)
{
    char text[WPK_FORMAT_SIZE];
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {
        {0, "-"},
        {999, "999 ns"},
        {1000, "1.000 µs"},
        {9999, "9.999 µs"},
        {590125, "590.1 µs"},
        {999960, "1.000 ms"},
        {1750000, "1.750 ms"},
        {12345678, "12.35 ms"},
        {UINT64_C(61000000000), "61.00 s"},
        {UINT64_MAX, "18446744074 s"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        wpk_format_ns(cases[i].ns, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_seconds(void **state)
{
    char text[WPK_FORMAT_SIZE];

    (void)state;
    wpk_format_seconds(48, text);
    assert_string_equal(text, "48 s");
    wpk_format_seconds(185, text);
    assert_string_equal(text, "3 min 05 s");
    wpk_format_seconds(7800, text);
    assert_string_equal(text, "2 h 10 min");
    wpk_format_seconds(-5, text);
    assert_string_equal(text, "0 s");
}

static void test_count(void **state)
{
    char text[WPK_FORMAT_SIZE];

    (void)state;
    wpk_format_count(12, text);
    assert_string_equal(text, "12 ");
    wpk_format_count(1500, text);
    assert_string_equal(text, "1.500 k");
    wpk_format_count(231211008, text);
    assert_string_equal(text, "231.2 M");
    wpk_format_count(0.5, text);
    assert_string_equal(text, "0.500");
}

static void test_table(void **state)
{
    struct wpk_arena arena = {0};
    static struct wpk_text_table table;
    struct wpk_buf out = {0};

    (void)state;
    table =
        (struct wpk_text_table){.arena = &arena, .column_count = 3, .right = {false, true, false}};
    wpk_text_table_add(&table, (const char *const[]){"op", "time", "by"});
    wpk_text_table_add(&table, (const char *const[]){"c6", "590.1 µs", "us"});
    wpk_text_table_print(&table, 0, &out);
    assert_string_equal(wpk_buf_text(&out), "op      time  by\n"
                                            "c6  590.1 µs  us\n");
    wpk_buf_fini(&out);
    wpk_arena_fini(&arena);
}

static void expect_table(const struct wpk_text_table *table, int width, const char *wanted)
{
    struct wpk_buf out = {0};

    wpk_text_table_print(table, width, &out);
    assert_string_equal(wpk_buf_text(&out), wanted);
    wpk_buf_fini(&out);
}

static void test_tables_fit(void **state)
{
    struct wpk_arena arena = {0};
    static struct wpk_text_table table;
    struct wpk_buf out = {0};

    (void)state;
    table = (struct wpk_text_table){
        .arena = &arena, .column_count = 3, .right = {[1] = true}, .rank = {[1] = 1, [2] = 2}};
    wpk_text_table_add(&table, (const char *const[]){"operator", "µs", "note"});
    wpk_text_table_add(&table, (const char *const[]){"convolution", "5", "a, \"b\""});
    expect_table(&table, 23,
                 "operator     µs  note\n"
                 "convolution   5  a, \"b\"\n");
    expect_table(&table, 22,
                 "operator     µs\n"
                 "convolution   5\n");
    expect_table(&table, 14,
                 "operator\n"
                 "convolution\n");
    expect_table(&table, 9,
                 "operator\n"
                 "convolut…\n");
    wpk_text_table_print_csv(&table, &out);
    assert_string_equal(wpk_buf_text(&out), "operator,µs,note\n"
                                            "convolution,5,\"a, \"\"b\"\"\"\n");
    wpk_buf_fini(&out);
    wpk_arena_fini(&arena);
}

/* Prose is cut before a number is. */
static void test_prose_is_cut_first(void **state)
{
    struct wpk_arena arena = {0};
    static struct wpk_text_table table;

    (void)state;
    table = (struct wpk_text_table){
        .arena = &arena, .column_count = 3, .rank = {[1] = 1}, .prose = {[2] = true}};
    wpk_text_table_add(&table, (const char *const[]){"ask", "median", "log"});
    wpk_text_table_add(&table,
                       (const char *const[]){"0", "5 µs", "it is uncertain: the machine was busy"});
    expect_table(&table, 38,
                 "ask  median  log\n"
                 "0    5 µs    it is uncertain: the mac…\n");
    expect_table(&table, 37,
                 "ask  median  log\n"
                 "0    5 µs    it is uncertain: the ma…\n");
    expect_table(&table, 36,
                 "ask  log\n"
                 "0    it is uncertain: the machine w…\n");
    wpk_arena_fini(&arena);
}

static void test_wrap(void **state)
{
    struct wpk_buf out = {0};

    (void)state;
    wpk_format_wrap("what a job  tried, and how", 4, 14, &out);
    assert_string_equal(wpk_buf_text(&out), "what a job\n    tried, and\n    how\n");
    wpk_buf_fini(&out);
}

static void test_words(void **state)
{
    static const struct {
        const char *word, *shown;
    } rows[] = {{"a/b-c_d.wpk", "a/b-c_d.wpk"},
                {"my plan.wpk", "'my plan.wpk'"},
                {"it's", "'it'\\''s'"},
                {"", "''"},
                {"$HOME", "'$HOME'"}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wpk_buf out = {0};
        wpk_format_word(rows[i].word, &out);
        assert_string_equal(wpk_buf_text(&out), rows[i].shown);
        wpk_buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_ns),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_tables_fit),
        cmocka_unit_test(test_prose_is_cut_first),
        cmocka_unit_test(test_wrap),
    };

    return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
