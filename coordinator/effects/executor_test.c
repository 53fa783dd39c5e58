/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: which claims of a worker, and of a history that another wpkd wrote, are believed. */
#include "tests/fixture.h"

#include "common/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void expect_trials(struct wpk_fixture *f, const char *wanted)
{
    struct wpk_rows *rows = wpk_store_query(f->store,
                                            "SELECT outcome || ' ' || artifact_sha256 FROM trial"
                                            " WHERE provider <> '" WPK_PLAIN_PROVIDER "'",
                                            "");
    assert_true(wpk_rows_next(rows));
    assert_string_equal(wpk_rows_text(rows, 0), wanted);
    assert_false(wpk_rows_next(rows));
    wpk_rows_close(rows);
}

static void an_artifact_that_was_never_sent(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    assert_int_equal(f->status, 201);
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    assert_string_equal(f->workers[w].text, "wpkd " WPK_VERSION);
    snprintf(f->workers[w].made, WPK_ID_MAX, "%s", WPK_FIXTURE_HASH);
    /* It cannot be its search's anchor, and so its time compares with nothing: it runs again. */
    wpk_fixture_take(f, w);
    const wpk_work_id work = f->workers[w].held[0].id;
    assert_int_equal(wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5), WPK_ACK_UNKNOWN);
    expect_trials(f, " ");
    wpk_fixture_take(f, w);
    assert_true(wpk_work_id_equal(f->workers[w].held[0].id, work));
}

/* A key that cannot be read may exist: writing it again would fail the whole batch. */
static void a_key_that_cannot_be_read(void **state)
{
    struct wpk_fixture *f = *state;
    char path[64];
    char id[32];
    wpk_fixture_start(f);
    f->key = "once";
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    assert_int_equal(f->status, 201);
    const char *at = strstr(wpk_buf_text(&f->body), "\"id\":\"");
    assert_non_null(at);
    snprintf(id, sizeof id, "%.17s", at + 6);
    snprintf(path, sizeof path, "/v1/jobs/%s:cancel", id);
    wpk_fixture_request(f, "POST", path, "");
    assert_int_equal(wpk_executor_coordinator(f->executor)->live_count, 0);
    wpk_store_fail(f->store, WPK_EIO, &(struct wpk_diag){.text = "the disk"});
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    assert_int_equal(f->status, 507);
    assert_int_equal(wpk_executor_degraded(f->executor, NULL), WPK_OK);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    assert_int_equal(f->status, 201);
    assert_non_null(strstr(wpk_buf_text(&f->body), id));
}

/* A's candidate is measured and verified: the job goes on with B. */
static void end_first_op(struct wpk_fixture *f)
{
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    wpk_fixture_take(f, w);
    assert_true(wpk_fixture_upload(f, w, f->workers[w].held[0].id, "code"));
    wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5);
    assert_int_equal(wpk_fixture_poll(f, w, 1), 1);
    assert_int_equal(f->workers[w].held[0].id.kind, WPK_WORK_VERIFY);
    wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5);
}

/* Copy the report on an operator that has ended, from the text `from` on. */
static void get_first_op(struct wpk_fixture *f, const char *path, const char *from, char out[4096])
{
    wpk_fixture_request(f, "GET", path, "");
    const char *at = strstr(wpk_buf_text(&f->body), "\"ops\":[");
    assert_non_null(at);
    at = strstr(at, from);
    assert_non_null(at);
    snprintf(out, 4096, "%.*s", (int)(strstr(at, "\"name\":\"b\"") - at), at);
}

static void an_operator_that_ended_before_a_restart(void **state)
{
    struct wpk_fixture *f = *state;
    char path[64];
    char before[4096];
    char after[4096];
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs",
                        "{\"name\":\"two\",\"ops\":["
                        "{\"name\":\"a\",\"op\":\"Y[i] = X[i]\","
                        "\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}},"
                        "{\"name\":\"b\",\"op\":\"Y[i] = X[i] + 1\","
                        "\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}],"
                        "\"search\":{\"strategy\":\"ga\",\"seed\":5},"
                        "\"budget\":{\"candidates\":1,\"seconds\":3600}}");
    const char *id = strstr(wpk_buf_text(&f->body), "\"id\":\"");
    snprintf(path, sizeof path, "/v1/jobs/%.17s", id + strlen("\"id\":\""));
    end_first_op(f);
    get_first_op(f, path, "\"candidates\"", before);
    assert_non_null(strstr(before, "\"measured\":1,"));
    assert_non_null(strstr(before, "\"best\":{"));
    wpk_executor_free(f->executor);
    wpk_fixture_start(f);
    get_first_op(f, path, "\"candidates\"", after);
    assert_string_equal(after, before);
    get_first_op(f, path, "\"device\":", after);
    assert_non_null(strstr(after, "\"device\":\"cpu/model"));
}

static int set_up_threaded(void **state)
{
    static int threads = 1;
    *state = &threads;
    return wpk_fixture_set_up(state);
}

/* An event that the last batch brings about is not stepped: here a search that was opened. */
static void an_end_with_a_batch_on_its_way(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    wpk_fixture_begin_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    assert_int_equal(wpk_executor_commit(f->executor, NULL), WPK_OK);
    assert_int_equal(f->status, 0);
    wpk_executor_free(f->executor);
    assert_int_equal(f->status, 201);
    wpk_fixture_start(f);
    assert_int_equal(wpk_executor_coordinator(f->executor)->live_count, 1);
}

static int64_t read_int(struct wpk_fixture *f, const char *sql)
{
    struct wpk_rows *rows = wpk_store_query(f->store, sql, "");
    int64_t value = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : -1;
    wpk_rows_close(rows);
    return value;
}

/* The candidate fails, the plain kernel works: it is stored as what the class serves. */
static void the_plain_kernel_is_served(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(f, w, 1), 1);
    assert_int_equal(f->workers[w].held[0].id.kind, WPK_WORK_PLAIN);
    assert_true(wpk_fixture_upload(f, w, f->workers[w].held[0].id, "plain"));
    wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5);
    wpk_fixture_take(f, w);
    wpk_fixture_result(f, w, WPK_OUTCOME_RUN_CRASH, 0);
    assert_int_equal(read_int(f, "SELECT COUNT(*) = 1 AND served = 1 AND provider = 'plain' AND"
                                 " plain_sha256 = artifact_sha256 FROM kernel"),
                     1);
    wpk_fixture_request(f, "GET", "/v1/jobs", "");
    assert_non_null(strstr(wpk_buf_text(&f->body), "only the plain kernel can be served: 1 of 1"));
}

/* The time for which work of an operator was out is not left any more. */
static void the_time_that_is_left(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(f, w, 1), 1);
    wpk_fixture_tick(f, 5);
    wpk_fixture_request(f, "GET", "/v1/jobs", "");
    const char *left = strstr(wpk_buf_text(&f->body), "\"seconds_left\":");
    assert_non_null(left);
    long seconds = strtol(left + strlen("\"seconds_left\":"), NULL, 10);
    assert_in_range(seconds, 3500, 3596);
}

struct artifact_write {
    struct wpk_store_write write;
    struct wpk_fixture *fixture;
    wpk_err err;
    bool done;
};

static void perform_write(struct wpk_store_write *write, struct wpk_store *store)
{
    (void)write;
    wpk_history_put_artifact(store, WPK_FIXTURE_HASH, 5);
}

/* Answers the request that the write came from. */
static void on_done(struct wpk_store_write *write, wpk_err err, const struct wpk_diag *diag)
{
    struct artifact_write *mine = (struct artifact_write *)write;
    struct wpk_api_answer answer = {0};
    mine->err = err;
    mine->done = true;
    wpk_api_problem(&answer, 418, err != WPK_OK ? err : WPK_EEXIST, diag);
    wpk_executor_answer(mine->fixture->executor, 7, &answer);
}

static void a_store_write_of_a_handler(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    struct artifact_write mine = {.write = {.perform = perform_write, .done = on_done},
                                  .fixture = f};
    wpk_executor_add_write(f->executor, &mine.write);
    assert_false(mine.done);
    assert_int_equal(wpk_executor_commit(f->executor, NULL), WPK_OK);
    wpk_executor_poll(f->executor);
    assert_true(mine.done);
    assert_int_equal(mine.err, WPK_OK);
    assert_int_equal(f->status, 418);
    assert_true(wpk_history_has_artifact(f->store, WPK_FIXTURE_HASH));
}

/* A token for workers, made as clients make it: its id and its secret. */
static void make_token(struct wpk_fixture *f, const char *body, char id[WPK_TOKEN_ID_SIZE],
                       char secret[WPK_TOKEN_TEXT_SIZE])
{
    wpk_fixture_request(f, "POST", "/v1/tokens", body);
    assert_int_equal(f->status, 201);
    const char *text = wpk_buf_text(&f->body);
    assert_int_equal(sscanf(strstr(text, "\"id\":") + 5, " \"%16[^\"]", id), 1);
    assert_int_equal(sscanf(strstr(text, "\"secret\":") + 9, " \"%64[^\"]", secret), 1);
}

static wpk_err say_hello(struct wpk_fixture *f, int worker, const char *secret)
{
    snprintf(f->workers[worker].hello.token, sizeof f->workers[worker].hello.token, "%s", secret);
    return (wpk_err)wpk_fixture_hello(f, worker);
}

static void expect_error(struct wpk_fixture *f, int worker, wpk_err want, const char *why)
{
    wpk_fixture_poll(f, worker, 0);
    assert_int_equal(f->workers[worker].told, WPK_MESSAGE_ERROR);
    assert_int_equal(f->workers[worker].err, want);
    assert_non_null(strstr(f->workers[worker].text, why));
}

#define WORKER_ROLES "\"owner\":\"anna\",\"roles\":[\"build\",\"measure\"]"

/* Revoked: the poll that waits is answered with the reason, its work is another's, and the session
 * is none any more. */
static void a_session_ends_with_its_token(void **state)
{
    struct wpk_fixture *f = *state;
    char id[WPK_TOKEN_ID_SIZE];
    char other_id[WPK_TOKEN_ID_SIZE];
    char secret[WPK_TOKEN_TEXT_SIZE];
    char other[WPK_TOKEN_TEXT_SIZE];
    char path[64];
    f->auth = wpk_auth_new();
    wpk_fixture_start(f);
    make_token(f, "{" WORKER_ROLES "}", id, secret);
    make_token(f, "{" WORKER_ROLES ",\"seconds\":60}", other_id, other);
    int w = wpk_fixture_worker(f, "w");
    struct wpk_fixture_worker *worker = &f->workers[w];
    assert_int_equal(say_hello(f, w, secret), WPK_OK);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("1"));
    wpk_fixture_take(f, w);
    assert_int_equal(wpk_fixture_poll(f, w, 1), 0);
    assert_false(worker->answered);
    snprintf(path, sizeof path, "/v1/tokens/%s", id);
    wpk_fixture_request(f, "DELETE", path, "");
    assert_int_equal(f->status, 200);
    assert_int_equal(worker->err, WPK_EACCES);
    assert_string_equal(worker->text, "the token was revoked");
    assert_int_equal(wpk_fixture_session_count(f), 0);
    expect_error(f, w, WPK_ENOENT, "say hello");
    assert_int_equal(say_hello(f, w, secret), WPK_EACCES);
    assert_int_equal(say_hello(f, w, other), WPK_OK);
    worker->held_count = 0;
    wpk_fixture_take(f, w); /* unblamed: it is there for the next one */
    wpk_clock_fake_advance(&f->clock, 61 * WPK_NS_PER_S);
    expect_error(f, w, WPK_EACCES, "expired");
    assert_int_equal(wpk_fixture_session_count(f), 0);
}

/* Those that are good count: one that is revoked makes room for one. */
static void there_is_a_most_of_tokens(void **state)
{
    struct wpk_fixture *f = *state;
    char id[WPK_TOKEN_ID_SIZE];
    char secret[WPK_TOKEN_TEXT_SIZE];
    char path[64];
    wpk_store_begin(f->store);
    wpk_store_run(f->store,
                  "INSERT INTO token WITH RECURSIVE n(i) AS"
                  " (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                  " SELECT printf('%016x', i), 'anna', 'read',"
                  " printf('%08x%056x', i * 2654435761 & 4294967295, i), '', 1, 0, 0, 1 FROM n",
                  "i", (int64_t)WPK_AUTH_TOKENS_MAX - 1);
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
    f->auth = wpk_auth_new();
    wpk_fixture_start(f);
    make_token(f, "{" WORKER_ROLES "}", id, secret);
    wpk_fixture_request(f, "POST", "/v1/tokens", "{" WORKER_ROLES "}");
    assert_int_equal(f->status, 507);
    assert_non_null(strstr(wpk_buf_text(&f->body), "65536 tokens are good: revoke one first"));
    snprintf(path, sizeof path, "/v1/tokens/%s", id);
    assert_int_equal(wpk_fixture_request(f, "DELETE", path, ""), 200);
    make_token(f, "{" WORKER_ROLES "}", id, secret);
    assert_int_equal(say_hello(f, wpk_fixture_worker(f, "w"), secret), WPK_OK);
}

/* Expiry is found without a word of the worker. */
static void a_session_ends_in_silence(void **state)
{
    struct wpk_fixture *f = *state;
    char id[WPK_TOKEN_ID_SIZE];
    char secret[WPK_TOKEN_TEXT_SIZE];
    f->auth = wpk_auth_new();
    wpk_fixture_start(f);
    make_token(f, "{" WORKER_ROLES ",\"seconds\":1}", id, secret);
    assert_int_equal(say_hello(f, wpk_fixture_worker(f, "w"), secret), WPK_OK);
    wpk_fixture_tick(f, 0);
    assert_int_equal(wpk_fixture_session_count(f), 1);
    wpk_fixture_tick(f, 2);
    assert_int_equal(wpk_fixture_session_count(f), 0);
}

/* A session is of the connection that said hello, a name of the token that did. */
static void nobody_takes_a_session_over(void **state)
{
    struct wpk_fixture *f = *state;
    char id[WPK_TOKEN_ID_SIZE];
    char secret[WPK_TOKEN_TEXT_SIZE];
    char other[WPK_TOKEN_TEXT_SIZE];
    f->auth = wpk_auth_new();
    wpk_fixture_start(f);
    make_token(f, "{" WORKER_ROLES "}", id, secret);
    make_token(f, "{" WORKER_ROLES "}", id, other);
    int w = wpk_fixture_worker(f, "w");
    assert_int_equal(say_hello(f, w, secret), WPK_OK);
    f->workers[w].peer++;
    expect_error(f, w, WPK_ENOENT, "say hello");
    assert_int_equal(say_hello(f, w, other), WPK_EBUSY);
    assert_int_equal(say_hello(f, w, secret), WPK_OK); /* itself, which has connected again */
    assert_int_equal(wpk_fixture_session_count(f), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_artifact_that_was_never_sent, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(a_key_that_cannot_be_read, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(an_operator_that_ended_before_a_restart, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(an_end_with_a_batch_on_its_way, set_up_threaded,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(the_time_that_is_left, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(the_plain_kernel_is_served, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(a_store_write_of_a_handler, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(a_session_ends_with_its_token, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(there_is_a_most_of_tokens, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(a_session_ends_in_silence, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(nobody_takes_a_session_over, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
