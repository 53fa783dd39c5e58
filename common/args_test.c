/* SPDX-License-Identifier: Apache-2.0 */
#include "common/args.h"

#include "common/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

static struct {
    bool json;
    const char *data;
    int64_t threads;
    struct wpk_option_u64 seed;
    struct wpk_option_list pins;
    int slots;
    enum wpk_log_level level;
    enum wpk_log_format format;
} got;

static const struct wpk_option options[] = {
    WPK_ARGS_FLAG("json", "as JSON", &got.json),
    WPK_ARGS_ROW("data", 'd', "DIR", "where", TEXT, &got.data, 0, 8),
    WPK_ARGS_INT("threads", "N", "how many", &got.threads, -2, 1024),
    WPK_ARGS_U64("seed", "N", "seed", &got.seed),
    WPK_ARGS_LIST("pin", "GENE=VALUE", "fix", &got.pins),
    WPK_ARGS_COUNT("slots", "N", "at a time", &got.slots, 1, 64),
    WPK_ARGS_LOG_ROWS(&got.level, &got.format),
    WPK_ARGS_END,
};

static wpk_err parse(struct wpk_args *args, struct wpk_diag *diag, int argc, char **argv)
{
    memset(&got, 0, sizeof(got));
    memset(diag, 0, sizeof(*diag));
    return wpk_args_parse(options, argc, argv, args, diag);
}

static void test_accepted(void **state)
{
    char *words[] = {
        "job.json", "--json", "--data=/a=b", "--threads", "-2", "--seed", "18446744073709551615",
        "--pin",    "a=b",    "--pin",       "c=d",       "--", "--json"};
    char *letter[] = {"-d", "x", "-"};
    struct wpk_args args;
    struct wpk_diag diag;

    (void)state;
    assert_int_equal(parse(&args, &diag, COUNT_OF(words), words), WPK_OK);
    assert_int_equal(args.operand_count, 2);
    assert_string_equal(args.operands[0], "job.json");
    assert_string_equal(args.operands[1], "--json");
    assert_true(got.json);
    assert_string_equal(got.data, "/a=b");
    assert_int_equal(got.threads, -2);
    assert_true(got.seed.given);
    assert_true(got.seed.value == UINT64_MAX);
    assert_int_equal(got.pins.count, 2);
    assert_string_equal(got.pins.items[1], "c=d");

    assert_int_equal(parse(&args, &diag, COUNT_OF(letter), letter), WPK_OK);
    assert_string_equal(got.data, "x");
    assert_string_equal(args.operands[0], "-");
}

static void test_help(void **state)
{
    char *words[] = {"--json", "--help", "--nonsense"};
    struct wpk_args args;
    struct wpk_diag diag;

    (void)state;
    assert_int_equal(parse(&args, &diag, COUNT_OF(words), words), WPK_OK);
    assert_true(args.help);
}

static void test_rejected(void **state)
{
    static const struct {
        char *words[6];
        int count;
        wpk_err err;
    } cases[] = {
        {{"--nonsense"}, 1, WPK_EINVAL},
        {{"-x"}, 1, WPK_EINVAL},
        {{"--jso"}, 1, WPK_EINVAL},
        {{"--json=1"}, 1, WPK_EINVAL},
        {{"--data"}, 1, WPK_EINVAL},
        {{"--threads", "two"}, 2, WPK_EINVAL},
        {{"--threads", "1x"}, 2, WPK_EINVAL},
        {{"--threads", "1025"}, 2, WPK_ERANGE},
        {{"--threads", "-3"}, 2, WPK_ERANGE},
        {{"--seed", "-1"}, 2, WPK_EINVAL},
        {{"--seed", "18446744073709551616"}, 2, WPK_EINVAL},
        {{"a", "b", "c", "d", "e"}, 5, WPK_EINVAL},
    };

    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct wpk_args args;
        struct wpk_diag diag;
        char *words[6];
        memcpy(words, cases[i].words, sizeof(words));
        if (parse(&args, &diag, cases[i].count, words) != cases[i].err || diag.text[0] == '\0') {
            fail_msg("case %d: %s", i, diag.text);
        }
    }
}

/* Values that functions take, and those of a file. */
static void test_functions_and_files(void **state)
{
    char *words[] = {(char *)"--slots", (char *)"3", (char *)"--log-level=debug"};
    char *wrong[][2] = {{(char *)"--log-level", (char *)"loud"},
                        {(char *)"--slots", (char *)"65"},
                        {(char *)"--data", (char *)"/123456789"},
                        {(char *)"--data", (char *)""}};
    struct wpk_args args;
    struct wpk_diag diag;

    (void)state;
    assert_int_equal(parse(&args, &diag, COUNT_OF(words), words), WPK_OK);
    assert_int_equal(got.slots, 3);
    assert_int_equal(got.level, WPK_LOG_DEBUG);
    for (int i = 0; i < COUNT_OF(wrong); i++) {
        assert_true(parse(&args, &diag, 2, wrong[i]) != WPK_OK && diag.text[0] != '\0');
    }
    assert_int_equal(wpk_args_set(options, "log_format", "json", &diag), WPK_OK);
    assert_int_equal(got.format, WPK_LOG_FORMAT_JSON);
    assert_int_equal(wpk_args_set(options, "json", NULL, &diag), WPK_OK);
    assert_true(got.json);
    assert_int_equal(wpk_args_set(options, "log-format", "json", &diag), WPK_ENOENT);
    assert_int_equal(wpk_args_set(options, "log_forma", "json", &diag), WPK_ENOENT);
}

/* A value that is read before all others: the last one that is given. */
static void test_value(void **state)
{
    char *words[] = {(char *)"--data",     (char *)"/a", (char *)"--data=/b",
                     (char *)"--datum=/c", (char *)"--", (char *)"--data=/d"};

    (void)state;
    assert_string_equal(wpk_args_value("data", COUNT_OF(words), words), "/b");
    assert_string_equal(wpk_args_value("data", 2, words), "/a");
    assert_null(wpk_args_value("data", 1, words));
    assert_null(wpk_args_value("seed", COUNT_OF(words), words));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted), cmocka_unit_test(test_help),
        cmocka_unit_test(test_rejected), cmocka_unit_test(test_functions_and_files),
        cmocka_unit_test(test_value),
    };

    return cmocka_run_group_tests_name("args", tests, NULL, NULL);
}
