/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session.h"

#include "common/fs.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct scene {
    char home[64];
    char token_a[96], token_b[96];
    struct wpk_command_context context;
};

static void write_text(const char *path, const char *text)
{
    assert_int_equal(wpk_fs_write(path, text, strlen(text), 0600, NULL), WPK_OK);
}

static void write_config(const struct scene *s, const char *text)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/.config/woodpecker", s->home);
    assert_int_equal(wpk_fs_make_dirs(path, NULL), WPK_OK);
    snprintf(path, sizeof(path), "%s/.config/woodpecker/wpkctl.json", s->home);
    write_text(path, text);
}

static int begin(void **state)
{
    static struct scene s;
    s = (struct scene){0};
    snprintf(s.home, sizeof(s.home), "%s/wpk_access_XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(s.home));
    snprintf(s.token_a, sizeof(s.token_a), "%s/a", s.home);
    snprintf(s.token_b, sizeof(s.token_b), "%s/b", s.home);
    write_text(s.token_a, "aaaa\n");
    write_text(s.token_b, "bbbb");
    s.context.home = s.home;
    *state = &s;
    return 0;
}

static int end(void **state)
{
    const struct scene *s = *state;
    return wpk_fs_remove_tree(s->home, NULL) == WPK_OK ? 0 : -1;
}

static void nothing_is_given(void **state)
{
    const struct scene *s = *state;
    struct wpk_server_access_given given = {0};
    struct wpk_server_access access;
    assert_int_equal(wpk_server_access_find(&s->context, &given, &access, NULL), WPK_OK);
    assert_string_equal(access.server, "");
    assert_string_equal(access.token, "");
    assert_string_equal(access.ca, "");
}

static void the_nearest_counts(void **state)
{
    struct scene *s = *state;
    struct wpk_server_access_given given = {0};
    struct wpk_server_access access;
    char config[512];
    snprintf(config, sizeof(config),
             "{\"server\": \"https://file\", \"token_file\": \"%s\", \"ca\": \"/ca.pem\"}",
             s->token_a);
    write_config(s, config);
    assert_int_equal(wpk_server_access_find(&s->context, &given, &access, NULL), WPK_OK);
    assert_string_equal(access.server, "https://file");
    assert_string_equal(access.token, "aaaa");
    assert_string_equal(access.ca, "/ca.pem");
    s->context.url = "https://environment";
    s->context.token_file = s->token_b;
    assert_int_equal(wpk_server_access_find(&s->context, &given, &access, NULL), WPK_OK);
    assert_string_equal(access.server, "https://environment");
    assert_string_equal(access.token, "bbbb");
    assert_string_equal(access.ca, "");
    given.server = "https://option";
    given.ca = "/other.pem";
    assert_int_equal(wpk_server_access_find(&s->context, &given, &access, NULL), WPK_OK);
    assert_string_equal(access.server, "https://option");
    assert_string_equal(access.ca, "/other.pem");
    s->context.url = "";
    s->context.token_file = "";
    given.server = "https://file"; /* named, but the file's own */
    assert_int_equal(wpk_server_access_find(&s->context, &given, &access, NULL), WPK_OK);
    assert_string_equal(access.token, "aaaa");
}

/* A token of the file is for the file's server. */
static void no_secret_for_other_servers(void **state)
{
    struct scene *s = *state;
    struct wpk_server_access_given given = {.server = "http://elsewhere:80"};
    struct wpk_server_access access;
    char config[512];
    snprintf(config, sizeof(config), "{\"server\": \"https://file\", \"token_file\": \"%s\"}",
             s->token_a);
    write_config(s, config);
    assert_int_equal(wpk_server_access_find(&s->context, &given, &access, NULL), WPK_OK);
    assert_string_equal(access.token, "");
}

static void what_is_wrong_is_named(void **state)
{
    const struct scene *s = *state;
    struct wpk_server_access_given given = {0};
    struct wpk_server_access access;
    struct wpk_diag diag = {0};
    write_config(s, "{\"sever\": \"https://file\"}");
    assert_int_equal(wpk_server_access_find(&s->context, &given, &access, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.field, "sever"));
    assert_non_null(strstr(diag.file, "wpkctl.json"));
    write_config(s, "{}");
    given.token_file = "/nowhere/token";
    assert_int_equal(wpk_server_access_find(&s->context, &given, &access, NULL), WPK_EINVAL);
    static const char *const tokens[] = {"", "\n", "two words", "two\nlines", "\x80"};
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        write_text(s->token_a, tokens[i]);
        given.token_file = s->token_a;
        assert_int_equal(wpk_server_access_find(&s->context, &given, &access, NULL), WPK_EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_given, begin, end),
        cmocka_unit_test_setup_teardown(the_nearest_counts, begin, end),
        cmocka_unit_test_setup_teardown(no_secret_for_other_servers, begin, end),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_named, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
