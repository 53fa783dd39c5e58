/* SPDX-License-Identifier: Apache-2.0 */
#include "common/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *suggest_of(const char *word)
{
    static const char *const names[] = {"status", "watch", "kernels", "workers", "get", "tune"};
    static struct wpk_suggest suggest;

    suggest = (struct wpk_suggest){.word = word};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        wpk_suggest_offer(&suggest, names[i]);
    }
    return wpk_suggest_text(&suggest);
}

static void test_near_names(void **state)
{
    (void)state;
    assert_string_equal(suggest_of("kernals"), "; did you mean 'kernels'?");
    assert_string_equal(suggest_of("sttaus"), "; did you mean 'status'?");
    assert_string_equal(suggest_of("tun"), "; did you mean 'tune'?");
    assert_string_equal(suggest_of("work"), "; did you mean 'workers'?");
    assert_string_equal(suggest_of("egt"), "; did you mean 'get'?");
}

static void test_nothing_is_near(void **state)
{
    char word[2 * WPK_SUGGEST_SIZE];

    (void)state;
    assert_string_equal(suggest_of("lookup"), "");
    assert_string_equal(suggest_of("g"), "");
    assert_string_equal(suggest_of(""), "");
    memset(word, 'k', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    assert_string_equal(suggest_of(word), "");
    struct wpk_suggest suggest = {.word = "kk"};
    wpk_suggest_offer(&suggest, word);
    assert_string_equal(wpk_suggest_text(&suggest), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_names),
        cmocka_unit_test(test_nothing_is_near),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
