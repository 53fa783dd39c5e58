/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/session/arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BASE "--cpu", "--coordinator", "ipc:///x"

static wpk_err parse(struct wpk_arguments *out, struct wpk_diag *diag, int count, char **given)
{
    char *argv[32] = {(char *)"wpk-worker"};
    memcpy(argv + 1, given, (size_t)count * sizeof *given);
    return wpk_arguments_parse(count + 1, argv, out, diag);
}

#define PARSE(out, diag, ...)                                                                      \
    parse(out, diag, (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)),                      \
          (char *[]){__VA_ARGS__})

static void check_refused(wpk_err err, const struct wpk_diag *diag, const char *why)
{
    assert_true(err == WPK_EINVAL || err == WPK_ERANGE);
    if (strstr(diag->text, why) == NULL) {
        fail_msg("%s", diag->text);
    }
}

static void a_whole_line(void **state)
{
    (void)state;
    struct wpk_arguments a;
    struct wpk_diag diag = {0};
    assert_int_equal(PARSE(&a, &diag, BASE, "--run-only", "--slots", "3", "--label", "zone=b",
                           "--label", "rack=7", "--label", "zone=c=d", "--isa-max", "avx2",
                           "--run-timeout", "7", "--exit-when-idle", "60", "--leave-after", "900"),
                     WPK_OK);
    assert_int_equal(a.idle_s, 60);
    assert_int_equal(a.leave_s, 900);
    assert_true(a.cpu && a.run_only && !a.build_only);
    assert_int_equal(a.run_timeout_s, 7);
    assert_string_equal(a.url, "ipc:///x");
    assert_int_equal(a.slot_count, 3);
    assert_int_equal(a.label_count, 2);
    assert_string_equal(a.labels[0].name, "zone");
    assert_string_equal(a.labels[0].value, "c=d"); /* the last one said */
    assert_int_equal(a.flags_max, WPK_CPU_SET_AVX2);
    wpk_arguments_fini(&a);
}

static void what_is_refused(void **state)
{
    (void)state;
    struct wpk_arguments a;
    struct wpk_diag diag = {0};
    check_refused(PARSE(&a, &diag, "--cpu"), &diag, "--coordinator");
    diag = (struct wpk_diag){0};
    check_refused(PARSE(&a, &diag, BASE, "--build-only", "--run-only"), &diag,
                  "nothing to be done");
    diag = (struct wpk_diag){0};
    check_refused(PARSE(&a, &diag, BASE, "--slots", "0"), &diag, "--slots must be");
    diag = (struct wpk_diag){0};
    check_refused(PARSE(&a, &diag, BASE, "--run-timeout", "0"), &diag, "--run-timeout must be");
    diag = (struct wpk_diag){0};
    check_refused(PARSE(&a, &diag, BASE, "--run-timeout", "3601"), &diag, "--run-timeout must be");
    diag = (struct wpk_diag){0};
    check_refused(PARSE(&a, &diag, BASE, "--exit-when-idle", "0"), &diag,
                  "--exit-when-idle must be");
    diag = (struct wpk_diag){0};
    check_refused(PARSE(&a, &diag, BASE, "--label", "Zone=b"), &diag, "'Zone=b' is no value");
    diag = (struct wpk_diag){0};
    check_refused(PARSE(&a, &diag, BASE, "--run-only", "--compiler", "nvrtc-12.9"), &diag,
                  "--run-only with --gpu");
    diag = (struct wpk_diag){0};
    check_refused(PARSE(&a, &diag, BASE, "--compiler", "nvrtc-12"), &diag,
                  "'nvrtc-12' is no value");
    diag = (struct wpk_diag){0};
    check_refused(PARSE(&a, &diag, BASE, "more"), &diag, "more: not an option");
    diag = (struct wpk_diag){0};
    check_refused(PARSE(&a, &diag, "--cpu", "--coordinator", "tcp://far:1", "--token-file", "/t"),
                  &diag, "tls+tcp");
    diag = (struct wpk_diag){0};
    check_refused(PARSE(&a, &diag, "--cpu", "--coordinator", "tcp://127.evil.example:1",
                        "--token-file", "/t"),
                  &diag, "tls+tcp");
    assert_int_equal(
        PARSE(&a, NULL, "--cpu", "--coordinator", "tcp://127.0.0.1:1", "--token-file", "/t"),
        WPK_OK);
    wpk_arguments_fini(&a);
    assert_int_equal(PARSE(&a, NULL, "--cpu", "--coordinator", "tcp://far:1", "--token-file", "/t",
                           "--insecure"),
                     WPK_OK);
    wpk_arguments_fini(&a);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void a_file_and_a_line(void **state)
{
    (void)state;
    char path[] = "/tmp/wpk-arguments-XXXXXX";
    close(mkstemp(path));
    write_file(path, "{ // what this machine is for\n"
                     "  \"cpu\": true, \"coordinator\": \"tls+tcp://host:7420\", \"slots\": 5,\n"
                     "  \"build_only\": false, \"label\": {\"zone\": \"b\", \"rack\": \"7\"}}\n");
    struct wpk_arguments a;
    struct wpk_diag diag = {0};
    assert_int_equal(PARSE(&a, &diag, "--slots", "2", "--config", path), WPK_OK);
    assert_string_equal(a.url, "tls+tcp://host:7420");
    assert_int_equal(a.slot_count, 2); /* the line counts more, wherever it names the file */
    assert_int_equal(a.label_count, 2);
    assert_false(a.build_only);
    wpk_arguments_fini(&a);

    write_file(path, "{\"cpu\": true, \"coordinatr\": \"ipc:///x\"}");
    check_refused(PARSE(&a, &diag, "--config", path), &diag, "no such option");
    assert_non_null(strstr(diag.field, "coordinatr"));
    wpk_arguments_fini(&a);
    write_file(path, "{\"slots\": \"many\"}");
    assert_int_equal(PARSE(&a, NULL, BASE, "--config", path), WPK_EINVAL);
    wpk_arguments_fini(&a);
    unlink(path);
    assert_int_equal(PARSE(&a, NULL, BASE, "--config", path), WPK_ENOENT);
    wpk_arguments_fini(&a);
}

static wpk_err read_token(const char *url, bool insecure, const char *path, const char *credentials,
                          char *token)
{
    struct wpk_arguments a = {.url = url, .token_file = path, .insecure = insecure};
    return wpk_arguments_read_token(&a, credentials, token, NULL);
}

static void tokens(void **state)
{
    (void)state;
    char path[] = "/tmp/wpk-arguments-XXXXXX";
    char token[WPK_TOKEN_MAX] = "old";
    close(mkstemp(path));
    assert_int_equal(read_token("ipc:///x", false, NULL, NULL, token), WPK_OK);
    assert_string_equal(token, "");
    write_file(path, "  wpk_abc\n\n");
    assert_int_equal(read_token("ipc:///x", false, path, NULL, token), WPK_OK);
    assert_string_equal(token, "wpk_abc");
    write_file(path, "\n");
    assert_int_equal(read_token("ipc:///x", false, path, NULL, token), WPK_EINVAL);
    write_file(path, "two words");
    assert_int_equal(read_token("ipc:///x", false, path, NULL, token), WPK_EINVAL);
    unlink(path);
    assert_int_equal(read_token("ipc:///x", false, path, NULL, token), WPK_ENOENT);
}

/* Wherever the token comes from, it does not go in clear to another machine. */
static void a_credential_is_not_exposed(void **state)
{
    static const char *const exposed[] = {"tcp://far:1", "tcp://127.evil.example:7400",
                                          "tcp://localhost.evil.example:1", "tcp4://far:1",
                                          "tls+tcp://far:1,tcp://far:1"};
    static const char *const fine[] = {"ipc:///x",          "tls+tcp://far:1",
                                       "tcp://127.0.0.1:1", "tcp://[::1]:1",
                                       "tcp://localhost:1", "tls+tcp://far:1,tcp://127.0.0.1:1"};
    (void)state;
    char directory[] = "/tmp/wpk-credentials-XXXXXX";
    char path[64];
    char token[WPK_TOKEN_MAX];
    assert_non_null(mkdtemp(directory));
    assert_int_equal(read_token("tcp://far:1", false, NULL, directory, token), WPK_OK);
    assert_string_equal(token, ""); /* the manager has none for us */
    snprintf(path, sizeof path, "%s/token", directory);
    write_file(path, "wpk_abc");
    for (size_t i = 0; i < sizeof exposed / sizeof exposed[0]; i++) {
        if (read_token(exposed[i], false, NULL, directory, token) != WPK_EINVAL) {
            fail_msg("%s would see the token", exposed[i]);
        }
        assert_int_equal(read_token(exposed[i], true, NULL, directory, token), WPK_OK);
    }
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        assert_int_equal(read_token(fine[i], false, NULL, directory, token), WPK_OK);
        assert_string_equal(token, "wpk_abc");
    }
    unlink(path);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_line),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(a_file_and_a_line),
        cmocka_unit_test(tokens),
        cmocka_unit_test(a_credential_is_not_exposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
