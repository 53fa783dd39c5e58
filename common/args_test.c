/* SPDX-License-Identifier: Apache-2.0 */
#include "common/args.h"

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
} got;

static const struct wpk_option options[] = {
    WPK_ARGS_FLAG("json", "as JSON", &got.json),
    {"data", 'd', "DIR", "where", WPK_OPTION_TEXT, &got.data, 0, 0},
    WPK_ARGS_INT("threads", "N", "how many", &got.threads, -2, 1024),
    WPK_ARGS_U64("seed", "N", "seed", &got.seed),
    WPK_ARGS_LIST("pin", "GENE=VALUE", "fix", &got.pins),
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_rejected),
    };

    return cmocka_run_group_tests_name("args", tests, NULL, NULL);
}
