/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct wpk_config_environment home = {.home = "/home/u"};

#define PARSE(config, diag, ...)                                                                   \
    wpk_config_parse((int)(sizeof((char *[]){"wpkd", __VA_ARGS__}) / sizeof(char *)),              \
                     (char *[]){"wpkd", __VA_ARGS__, NULL}, &home, config, diag)

static void defaults(void **state)
{
    (void)state;
    struct wpk_config config;
    char *argv[] = {(char *)"wpkd", NULL};
    assert_int_equal(wpk_config_parse(1, argv, &home, &config, NULL), WPK_OK);
    assert_string_equal(config.data_dir.data, "/home/u/.local/share/woodpecker");
    assert_string_equal(config.http.data, "unix:/home/u/.local/share/woodpecker/wpkd.sock");
    assert_string_equal(config.listen.data, "ipc:///home/u/.local/share/woodpecker/workers.sock");
    assert_int_equal(config.idle_s, 0);
    wpk_config_fini(&config);
}

static void given(void **state)
{
    (void)state;
    struct wpk_config config;
    assert_int_equal(PARSE(&config, NULL, (char *)"--data=/d", (char *)"--http",
                           (char *)"127.0.0.1:8080", (char *)"--listen",
                           (char *)"tcp://127.0.0.1:1", (char *)"--exit-when-idle", (char *)"7",
                           (char *)"--log-level=debug"),
                     WPK_OK);
    assert_string_equal(config.data_dir.data, "/d");
    assert_string_equal(config.http.data, "127.0.0.1:8080");
    assert_string_equal(config.listen.data, "tcp://127.0.0.1:1");
    assert_int_equal(config.idle_s, 7);
    assert_int_equal(config.log_level, WPK_LOG_DEBUG);
    wpk_config_fini(&config);
}

static void wrong(void **state)
{
    (void)state;
    struct wpk_config config;
    struct wpk_diag diag = {0};
    assert_int_equal(PARSE(&config, &diag, (char *)"--exit-when-idle", (char *)"soon"), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "soon"));
    wpk_config_fini(&config);
    assert_int_equal(PARSE(&config, NULL, (char *)"--log-level", (char *)"loud"), WPK_EINVAL);
    wpk_config_fini(&config);
    assert_int_equal(PARSE(&config, NULL, (char *)"surplus"), WPK_EINVAL);
    wpk_config_fini(&config);
    assert_int_equal(PARSE(&config, NULL, (char *)"--nonsense"), WPK_EINVAL);
    wpk_config_fini(&config);
}

/* Whoever may be a worker may hand out code: nobody from outside may. */
static void workers_are_local(void **state)
{
    static const char *const refused[] = {
        "tcp://0.0.0.0:1",       "tcp://*:1", "tcp://10.0.0.1:1", "tcp://127.0.0.1.x",
        "tcp://127.0.0.1:1@x:2", "ws://x:1",  "nonsense"};
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct wpk_config config;
        struct wpk_diag diag = {0};
        if (PARSE(&config, &diag, (char *)"--listen", (char *)(uintptr_t)refused[i]) !=
            WPK_EINVAL) {
            fail_msg("%s was taken", refused[i]);
        }
        assert_non_null(strstr(diag.text, refused[i]));
        wpk_config_fini(&config);
    }
    struct wpk_config config;
    assert_int_equal(PARSE(&config, NULL, (char *)"--listen", (char *)"tcp://[::1]:0"), WPK_OK);
    wpk_config_fini(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(given),
        cmocka_unit_test(wrong),
        cmocka_unit_test(workers_are_local),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
