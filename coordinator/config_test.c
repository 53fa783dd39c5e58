/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/config.h"

#include "common/buf.h"
#include "common/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    assert_string_equal(config.data_dir, "/home/u/.local/share/woodpecker");
    assert_int_equal(config.http_count, 1);
    assert_string_equal(config.http[0].address, "unix:/home/u/.local/share/woodpecker/wpkd.sock");
    assert_int_equal(config.http[0].mode, 0600);
    assert_int_equal(config.worker_count, 1);
    assert_string_equal(config.workers[0].address,
                        "ipc:///home/u/.local/share/woodpecker/workers.sock");
    assert_int_equal(config.worker_connections_max, 16384);
    assert_int_equal(config.http_connections_max, 2048);
    assert_int_equal(config.idle_s, 0);
    assert_false(config.exit_on_failure);
    assert_int_equal(config.log_format, WPK_LOG_FORMAT_TEXT);
    wpk_config_fini(&config);
}

static void given(void **state)
{
    (void)state;
    struct wpk_config config;
    assert_int_equal(PARSE(&config, NULL, (char *)"--data=/d", (char *)"--http",
                           (char *)"127.0.0.1:8080", (char *)"--listen",
                           (char *)"tcp://127.0.0.1:1", (char *)"--exit-when-idle", (char *)"7",
                           (char *)"--exit-on-failure", (char *)"--log-level=debug",
                           (char *)"--log=postgres://h/w", (char *)"--standby"),
                     WPK_OK);
    assert_string_equal(config.data_dir, "/d");
    assert_string_equal(config.http[0].address, "127.0.0.1:8080");
    assert_string_equal(config.workers[0].address, "tcp://127.0.0.1:1");
    assert_int_equal(config.idle_s, 7);
    assert_string_equal(config.log, "postgres://h/w");
    assert_true(config.standby);
    assert_true(config.exit_on_failure);
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
    diag = (struct wpk_diag){0};
    assert_int_equal(PARSE(&config, &diag, (char *)"--standby"), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "needs --log"));
    wpk_config_fini(&config);
    assert_int_equal(PARSE(&config, NULL, (char *)"surplus"), WPK_EINVAL);
    wpk_config_fini(&config);
    assert_int_equal(PARSE(&config, NULL, (char *)"--nonsense"), WPK_EINVAL);
    wpk_config_fini(&config);
}

/* A worker may deliver code to others, so the workers' port accepts local addresses only. */
static void workers_are_local(void **state)
{
    static const char *const refused[] = {
        "tcp://0.0.0.0:1",       "tcp://*:1", "tcp://10.0.0.1:1", "tcp://127.0.0.1.x",    "ipc://",
        "tcp://127.0.0.1:1@x:2", "ws://x:1",  "nonsense",         "tls+tcp://127.0.0.1:1"};
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

/* ---- the file */

static char path[64];

static int start(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/wpkd-config-%d.json", (int)getpid());
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static wpk_err parse_text(const char *text, struct wpk_config *config, struct wpk_diag *diag)
{
    assert_int_equal(wpk_fs_write(path, text, strlen(text), 0600, NULL), WPK_OK);
    return PARSE(config, diag, (char *)"--log-level", (char *)"warn", (char *)"--config", path);
}

static void file_is_read(void **state)
{
    (void)state;
    struct wpk_config config;
    struct wpk_diag diag = {0};
    wpk_err err = parse_text(
        "{ // all of it\n"
        "\"data\": \"/d\",\n"
        "\"http\": {\"listen\": [{\"address\": \"unix:/s\", \"mode\": \"0666\"},\n"
        "  {\"address\": \"0.0.0.0:8443\", \"certificate\": \"/c\", \"key\": \"/k\"},\n"
        "  {\"address\": \"10.0.0.1:80\", \"insecure\": true}],\n"
        "  \"hosts\": [\"tuner\", \"tuner.lan\"], \"connections_max\": 9},\n"
        "\"workers\": {\"listen\": [{\"address\": \"tls+tcp://[::]:7400\",\n"
        "  \"certificate\": \"/c\", \"key\": \"/k\"}], \"connections_max\": 8},\n"
        "\"peers\": {\"root\": [\"read\", \"submit\"], \"1234\": [], \"*\": [\"read\"]},\n"
        "\"owners\": {\"ann\": {\"weight\": 25}, \"*\": {\"jobs_max\": 7}},\n"
        "\"artifacts\": {\"bytes_max\": 5000000000, \"kept_per_problem\": 3},\n"
        "\"log\": {\"level\": \"debug\", \"format\": \"json\"},\n"
        "\"drain_s\": 5, \"exit_when_idle_s\": 60}\n",
        &config, &diag);
    assert_string_equal(diag.text, "");
    assert_int_equal(err, WPK_OK);
    assert_string_equal(config.data_dir, "/d");
    assert_int_equal(config.http_count, 3);
    assert_int_equal(config.http[0].mode, 0666);
    assert_string_equal(config.http[1].certificate, "/c");
    assert_string_equal(config.http[1].key, "/k");
    assert_true(config.http[2].insecure);
    assert_int_equal(config.host_count, 2);
    assert_string_equal(config.hosts[1], "tuner.lan");
    assert_int_equal(config.http_connections_max, 9);
    assert_string_equal(config.workers[0].address, "tls+tcp://[::]:7400");
    assert_int_equal(config.worker_connections_max, 8);
    assert_int_equal(config.peer_count, 3);
    assert_int_equal(config.peers[0].uid, 0);
    assert_int_equal(config.peers[0].roles, WPK_ROLE_READ | WPK_ROLE_SUBMIT);
    assert_int_equal(config.peers[1].uid, 1234);
    assert_int_equal(config.peers[1].roles, 0);
    assert_int_equal(config.peers[2].uid, WPK_HTTP_OTHERS);
    assert_int_equal(config.owner_count, 1);
    assert_string_equal(config.owners[0].name, "ann");
    assert_int_equal(config.owners[0].weight, 25);
    assert_int_equal(config.owners[0].jobs_max, 7);
    assert_int_equal(config.owner_default.weight, 1);
    assert_int_equal(config.artifact_bytes_max, INT64_C(5000000000));
    assert_int_equal(config.artifacts_per_problem, 3);
    assert_int_equal(config.log_level, WPK_LOG_WARN); /* the command line's word */
    assert_int_equal(config.log_format, WPK_LOG_FORMAT_JSON);
    assert_int_equal(config.drain_s, 5);
    assert_int_equal(config.idle_s, 60);
    wpk_config_fini(&config);

    assert_int_equal(parse_text("{}", &config, NULL), WPK_OK);
    assert_string_equal(config.data_dir, "/home/u/.local/share/woodpecker");
    wpk_config_fini(&config);
}

static void file_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *expected; /* after the file's name */
    } cases[] = {
        {"{\n \"dada\": 1}", ":2:2: dada: unknown field"},
        {"{\"log\": {\"level\": \"loud\"}}", ":1:19: log.level: must be one of: debug"},
        {"{\"drain_s\": \"soon\"}", ":1:13: drain_s: must be a number"},
        {"{\"drain_s\": -1}", ":1:13: drain_s: must be between"},
        {"{\"http\": {\"listen\": [{\"address\": \"0.0.0.0:80\"}]}}",
         "reached from other machines"},
        {"{\"http\": {\"listen\": [{\"address\": \"localhost:80\"}]}}", "not localhost:80"},
        {"{\"http\": {\"listen\": [{\"address\": \"1.2.3.4:99999\"}]}}", "not 1.2.3.4:99999"},
        {"{\"http\": {\"listen\": [{\"address\": \"unix:/s\", \"mode\": \"666\"}]}}",
         "like \"0660\""},
        {"{\"http\": {\"listen\": [{\"address\": \"[::]:1\", \"key\": \"/k\"}]}}", "go together"},
        {"{\"http\": {\"listen\": []}}", "fewer than 1 items"},
        {"{\"workers\": {\"listen\": [{\"address\": \"tcp://[fe80::1]:1\"}]}}", "needs tls+tcp://"},
        {"{\"workers\": {\"listen\": [{\"address\": \"tls+tcp://1.2.3.4:1\"}]}}",
         "needs a certificate"},
        {"{\"peers\": {\"no such user\": []}}", "peers.no such user: there is no such user"},
        {"{\"peers\": {\"root\": [\"king\"]}}", "peers.root[0]: "},
        {"{\"owners\": {\"ann\": {\"weight\": 0}}}", "owners.ann.weight: must be between"},
        {"{\"owners\": {\"ann\": {\"jobs_max\": 1025}}}", "owners.ann.jobs_max: must be between"},
        {"{\"owners\": {\"ann\": {\"jobs\": 1}}}", "owners.ann.jobs: unknown field"},
        {"{\"http\": {\"connections_max\": 2049}}", "http.connections_max: must be between"},
        {"{\"workers\": {\"connections_max\": 32513}}", "workers.connections_max: must be between"},
        {"{\"data\": \"\"}", "data: must not be empty"},
        {"{\"data\": \"/d\", }", ":1:"},
        {"[]", ":1:1: an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wpk_config config;
        struct wpk_diag diag = {0};
        char text[1024];
        if (parse_text(cases[i].text, &config, &diag) == WPK_OK) {
            fail_msg("%s was taken", cases[i].text);
        }
        wpk_diag_format(&diag, text, sizeof text);
        assert_memory_equal(text, path, strlen(path));
        if (strstr(text, cases[i].expected) == NULL) {
            fail_msg("'%s' is not in '%s'", cases[i].expected, text);
        }
        wpk_config_fini(&config);
    }
}

/* As many as that are taken, and one more is not. */
static void lists_have_an_end(void **state)
{
    (void)state;
    static const struct {
        const char *begin;
        const char *item;
        const char *end;
        int max;
        const char *expected;
    } cases[] = {
        {"{\"http\": {\"listen\": [", "{\"address\": \"unix:/s%d\"}", "]}}", 8,
         "more than 8 items"},
        {"{\"workers\": {\"listen\": [", "{\"address\": \"ipc:///s%d\"}", "]}}", 8,
         "more than 8 items"},
        {"{\"peers\": {", "\"%d\": [\"read\"]", "}}", 64, "more than 64 peers"},
        {"{\"owners\": {", "\"o%d\": {}", "}}", 1024, "more than 1024 owners"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int more = 0; more <= 1; more++) {
            struct wpk_config config;
            struct wpk_diag diag = {0};
            struct wpk_buf text = {0};
            wpk_buf_append_text(&text, cases[i].begin);
            for (int n = 0; n < cases[i].max + more; n++) {
                wpk_buf_append_text(&text, n > 0 ? "," : "");
                wpk_buf_printf(&text, cases[i].item, n);
            }
            wpk_buf_append_text(&text, cases[i].end);
            assert_int_equal(parse_text(wpk_buf_text(&text), &config, &diag) == WPK_OK, !more);
            assert_int_equal(strstr(diag.text, cases[i].expected) != NULL, more);
            wpk_buf_fini(&text);
            wpk_config_fini(&config);
        }
    }
}

static void changes_that_need_a_restart(void **state)
{
    (void)state;
    static const struct {
        const char *next;
        const char *expected; /* NULL: none */
    } cases[] = {
        {"{\"data\": \"/d\", \"log\": {\"level\": \"debug\"}, \"owners\": {\"a\": {}}}", NULL},
        {"{\"data\": \"/e\"}", "data"},
        {"{\"data\": \"/d\", \"http\": {\"connections_max\": 3}}", "http.connections_max"},
        {"{\"data\": \"/d\", \"http\": {\"listen\": [{\"address\": \"unix:/x\"}]}}", "http.listen"},
        {"{\"data\": \"/d\", \"workers\": {\"listen\": [{\"address\": \"ipc:///x\"}]}}",
         "workers.listen"},
    };
    struct wpk_config now;
    assert_int_equal(parse_text("{\"data\": \"/d\"}", &now, NULL), WPK_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wpk_config next;
        assert_int_equal(parse_text(cases[i].next, &next, NULL), WPK_OK);
        const char *change = wpk_config_fixed_change(&now, &next);
        assert_string_equal(change != NULL ? change : "none",
                            cases[i].expected != NULL ? cases[i].expected : "none");
        wpk_config_keep_fixed(&now, &next);
        assert_null(wpk_config_fixed_change(&now, &next));
        assert_string_equal(next.http[0].address, now.http[0].address);
        assert_ptr_not_equal(next.data_dir, now.data_dir);
        wpk_config_fini(&next);
    }
    wpk_config_fini(&now);
}

static void a_certificate_may_move(void **state)
{
    (void)state;
    static const char before[] =
        "{\"data\": \"/d\", \"http\": {\"listen\": [{\"address\": \"127.0.0.1:1\","
        " \"certificate\": \"/c\", \"key\": \"/k\"}]}, \"workers\": {\"listen\": ["
        "{\"address\": \"tls+tcp://127.0.0.1:2\", \"certificate\": \"/c\", \"key\": \"/k\"}]}}";
    static const char after[] =
        "{\"data\": \"/d\", \"http\": {\"listen\": [{\"address\": \"127.0.0.1:1\","
        " \"certificate\": \"/c2\", \"key\": \"/k2\"}]}, \"workers\": {\"listen\": ["
        "{\"address\": \"tls+tcp://127.0.0.1:2\", \"certificate\": \"/c3\", \"key\": \"/k3\"}]}}";
    struct wpk_config now;
    struct wpk_config next;
    assert_int_equal(parse_text(before, &now, NULL), WPK_OK);
    assert_int_equal(parse_text(after, &next, NULL), WPK_OK);
    assert_null(wpk_config_fixed_change(&now, &next));
    wpk_config_keep_fixed(&now, &next);
    assert_string_equal(next.http[0].certificate, "/c2");
    assert_string_equal(next.http[0].key, "/k2");
    assert_string_equal(next.workers[0].certificate, "/c3");
    assert_string_equal(next.workers[0].key, "/k3");
    wpk_config_fini(&next);
    wpk_config_fini(&now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(given),
        cmocka_unit_test(wrong),
        cmocka_unit_test(workers_are_local),
        cmocka_unit_test(file_is_read),
        cmocka_unit_test(file_is_checked),
        cmocka_unit_test(lists_have_an_end),
        cmocka_unit_test(changes_that_need_a_restart),
        cmocka_unit_test(a_certificate_may_move),
    };
    return cmocka_run_group_tests(tests, start, end);
}
