/* SPDX-License-Identifier: Apache-2.0 */
/* What is believed of a worker, and of a history that another wpkd wrote. */
#include "tests/rig.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "common/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void expect_trials(struct wpk_rig *f, const char *wanted)
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
    struct wpk_rig *f = *state;
    char candidate[256];
    wpk_rig_start(f);
    wpk_rig_request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
    assert_int_equal(f->status, 201);
    uint64_t session = wpk_rig_hello(f, "", WPK_OK);
    /* It cannot be its search's anchor, and so its time compares with nothing: it runs again. */
    wpk_work_id work = wpk_rig_take_work(f, session, candidate);
    assert_int_equal(wpk_rig_result(f, session, work, false, WPK_RIG_HASH), WPK_ACK_UNKNOWN);
    expect_trials(f, " ");
    wpk_rig_take_work(f, session, candidate);
}

/* What cannot be read might be there: made again, it would fail the whole batch. */
static void a_key_that_cannot_be_read(void **state)
{
    struct wpk_rig *f = *state;
    char path[64];
    char id[32];
    wpk_rig_start(f);
    f->key = "once";
    wpk_rig_request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
    assert_int_equal(f->status, 201);
    const char *at = strstr(wpk_buf_text(&f->body), "\"id\":\"");
    assert_non_null(at);
    snprintf(id, sizeof id, "%.17s", at + 6);
    snprintf(path, sizeof path, "/v1/jobs/%s:cancel", id);
    wpk_rig_request(f, "POST", path, "");
    assert_int_equal(wpk_coordinator_job_count(wpk_performer_coordinator(f->performer)), 0);
    wpk_store_fail(f->store, WPK_EIO, &(struct wpk_diag){.text = "the disk"});
    wpk_rig_request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
    assert_int_equal(f->status, 507);
    assert_int_equal(wpk_performer_degraded(f->performer, NULL), WPK_OK);
    wpk_rig_request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
    assert_int_equal(f->status, 201);
    assert_non_null(strstr(wpk_buf_text(&f->body), id));
}

/* A's candidate is measured and verified: the job goes on with B. */
static void end_first_op(struct wpk_rig *f)
{
    struct wpk_message back = {0};
    char candidate[256];
    char code[WPK_SHA256_HEX_SIZE];
    uint64_t session = wpk_rig_hello(f, "", WPK_OK);
    wpk_work_id work = wpk_rig_take_work(f, session, candidate);
    wpk_crypto_sha256_hex("code", 4, code);
    wpk_rig_artifact(f, session, work, "code", &back);
    wpk_message_fini(&back);
    wpk_rig_result(f, session, work, false, code);
    wpk_rig_ask(f, &(struct wpk_message){.kind = WPK_MESSAGE_POLL, .session = session, .want = 1},
                &back);
    assert_int_equal(back.work_count, 1);
    assert_int_equal(back.work[0].id.kind, WPK_WORK_VERIFY);
    work = back.work[0].id;
    wpk_message_fini(&back);
    wpk_rig_result(f, session, work, false, code);
}

/* What is said of an operator that has ended, from `from` on. */
static void get_first_op(struct wpk_rig *f, const char *path, const char *from, char out[4096])
{
    wpk_rig_request(f, "GET", path, "");
    const char *at = strstr(wpk_buf_text(&f->body), "\"ops\":[");
    assert_non_null(at);
    at = strstr(at, from);
    assert_non_null(at);
    snprintf(out, 4096, "%.*s", (int)(strstr(at, "\"name\":\"b\"") - at), at);
}

static void an_operator_that_ended_before_a_restart(void **state)
{
    struct wpk_rig *f = *state;
    char path[64];
    char before[4096];
    char after[4096];
    wpk_rig_start(f);
    wpk_rig_request(f, "POST", "/v1/jobs",
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
    wpk_performer_free(f->performer);
    wpk_rig_start(f);
    get_first_op(f, path, "\"candidates\"", after);
    assert_string_equal(after, before);
    get_first_op(f, path, "\"device\":", after);
    assert_non_null(strstr(after, "\"device\":\"cpu/none"));
}

static int64_t read_int(struct wpk_rig *f, const char *sql)
{
    struct wpk_rows *rows = wpk_store_query(f->store, sql, "");
    int64_t value = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : -1;
    wpk_rows_close(rows);
    return value;
}

/* The candidate fails, the plain kernel works: it is stored as what the class serves. */
static void the_plain_kernel_is_served(void **state)
{
    struct wpk_rig *f = *state;
    struct wpk_message back = {0};
    char candidate[256];
    char code[WPK_SHA256_HEX_SIZE];
    wpk_rig_start(f);
    wpk_rig_request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
    uint64_t session = wpk_rig_hello(f, "", WPK_OK);
    wpk_rig_ask(f, &(struct wpk_message){.kind = WPK_MESSAGE_POLL, .session = session, .want = 1},
                &back);
    assert_int_equal(back.work[0].id.kind, WPK_WORK_PLAIN);
    wpk_work_id plain = back.work[0].id;
    wpk_message_fini(&back);
    wpk_crypto_sha256_hex("plain", 5, code);
    wpk_rig_artifact(f, session, plain, "plain", &back);
    wpk_message_fini(&back);
    wpk_rig_result(f, session, plain, false, code);
    struct wpk_result failed = {.id = wpk_rig_take_work(f, session, candidate),
                                .attempt = 1,
                                .failure = "",
                                .record = {.outcome = WPK_OUTCOME_RUN_CRASH}};
    wpk_rig_ask(
        f,
        &(struct wpk_message){
            .kind = WPK_MESSAGE_RESULTS, .session = session, .results = &failed, .result_count = 1},
        &back);
    wpk_message_fini(&back);
    assert_int_equal(read_int(f, "SELECT COUNT(*) = 1 AND served = 1 AND provider = 'plain' AND"
                                 " plain_sha256 = artifact_sha256 FROM kernel"),
                     1);
    wpk_rig_request(f, "GET", "/v1/jobs", "");
    assert_non_null(strstr(wpk_buf_text(&f->body), "only the plain kernel can be served: 1 of 1"));
}

struct artifact_order {
    struct wpk_order order;
    struct wpk_rig *fixture;
    wpk_err err;
    bool done;
};

static void perform_order(struct wpk_order *order, struct wpk_store *store)
{
    (void)order;
    wpk_history_put_artifact(store, WPK_RIG_HASH, 5);
}

/* Answers the request that the order came from. */
static void on_done(struct wpk_order *order, wpk_err err, const struct wpk_diag *diag)
{
    struct artifact_order *mine = (struct artifact_order *)order;
    struct wpk_api_answer answer = {0};
    mine->err = err;
    mine->done = true;
    wpk_api_problem(&answer, 418, err != WPK_OK ? err : WPK_EEXIST, diag);
    wpk_performer_answer(mine->fixture->performer, 7, &answer);
}

static void an_order_of_a_handler(void **state)
{
    struct wpk_rig *f = *state;
    wpk_rig_start(f);
    struct artifact_order mine = {.order = {.perform = perform_order, .done = on_done},
                                  .fixture = f};
    wpk_performer_order(f->performer, &mine.order);
    assert_false(mine.done);
    assert_int_equal(wpk_performer_commit(f->performer, NULL), WPK_OK);
    wpk_performer_poll(f->performer);
    assert_true(mine.done);
    assert_int_equal(mine.err, WPK_OK);
    assert_int_equal(f->status, 418);
    assert_true(wpk_history_has_artifact(f->store, WPK_RIG_HASH));
}

/* A token for workers, made as clients make it: its id and its secret. */
static void make_token(struct wpk_rig *f, const char *body, char id[WPK_TOKEN_ID_SIZE],
                       char secret[WPK_TOKEN_TEXT_SIZE])
{
    wpk_rig_request(f, "POST", "/v1/tokens", body);
    assert_int_equal(f->status, 201);
    const char *text = wpk_buf_text(&f->body);
    assert_int_equal(sscanf(strstr(text, "\"id\":") + 5, " \"%16[^\"]", id), 1);
    assert_int_equal(sscanf(strstr(text, "\"secret\":") + 9, " \"%64[^\"]", secret), 1);
}

static void expect_error(struct wpk_rig *f, uint64_t session, wpk_err want, const char *why)
{
    struct wpk_message poll = {.kind = WPK_MESSAGE_POLL, .session = session};
    struct wpk_message back = {0};
    wpk_rig_ask(f, &poll, &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ERROR);
    assert_int_equal(back.err, want);
    assert_non_null(strstr(back.text, why));
    wpk_message_fini(&back);
}

#define WORKER_ROLES "\"owner\":\"anna\",\"roles\":[\"build\",\"measure\"]"

/* Revoked: the poll that waits is answered with the reason, its work is another's, and the session
 * is none any more. */
static void a_session_ends_with_its_token(void **state)
{
    struct wpk_rig *f = *state;
    char id[WPK_TOKEN_ID_SIZE];
    char other_id[WPK_TOKEN_ID_SIZE];
    char secret[WPK_TOKEN_TEXT_SIZE];
    char other[WPK_TOKEN_TEXT_SIZE];
    char path[64];
    assert_int_equal(wpk_auth_new(&f->auth), WPK_OK);
    wpk_rig_start(f);
    make_token(f, "{" WORKER_ROLES "}", id, secret);
    make_token(f, "{" WORKER_ROLES ",\"seconds\":60}", other_id, other);
    uint64_t session = wpk_rig_hello(f, secret, WPK_OK);
    wpk_rig_request(f, "POST", "/v1/jobs", WPK_RIG_JOB("1"));
    char candidate[256];
    wpk_work_id held = wpk_rig_take_work(f, session, candidate);
    struct wpk_message poll = {.kind = WPK_MESSAGE_POLL,
                               .session = session,
                               .want = 1,
                               .wait_ms = 5000,
                               .holding = &held,
                               .holding_count = 1};
    struct wpk_message back = {0};
    wpk_rig_put(f, &poll);
    snprintf(path, sizeof path, "/v1/tokens/%s", id);
    wpk_rig_request(f, "DELETE", path, "");
    assert_int_equal(f->status, 200);
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_message_decode(f->reply.data, f->reply.size, &back, &diag), WPK_OK);
    assert_int_equal(back.err, WPK_EACCES);
    assert_string_equal(back.text, "the token was revoked");
    wpk_message_fini(&back);
    assert_int_equal(wpk_rig_worker_count(f), 0);
    expect_error(f, session, WPK_ENOENT, "say hello");
    wpk_rig_hello(f, secret, WPK_EACCES);
    session = wpk_rig_hello(f, other, WPK_OK);
    wpk_rig_take_work(f, session, candidate); /* unblamed: it is there for the next one */
    wpk_clock_fake_advance(&f->clock, 61 * WPK_NS_PER_S);
    expect_error(f, session, WPK_EACCES, "expired");
    assert_int_equal(wpk_rig_worker_count(f), 0);
}

/* Expiry is found without a word of the worker. */
static void a_session_ends_in_silence(void **state)
{
    struct wpk_rig *f = *state;
    char id[WPK_TOKEN_ID_SIZE];
    char secret[WPK_TOKEN_TEXT_SIZE];
    assert_int_equal(wpk_auth_new(&f->auth), WPK_OK);
    wpk_rig_start(f);
    make_token(f, "{" WORKER_ROLES ",\"seconds\":1}", id, secret);
    wpk_rig_hello(f, secret, WPK_OK);
    wpk_rig_tick(f, 0);
    assert_int_equal(wpk_rig_worker_count(f), 1);
    wpk_rig_tick(f, 2);
    assert_int_equal(wpk_rig_worker_count(f), 0);
}

/* A session is of the connection that said hello, a name of the token that did. */
static void nobody_takes_a_session_over(void **state)
{
    struct wpk_rig *f = *state;
    char id[WPK_TOKEN_ID_SIZE];
    char secret[WPK_TOKEN_TEXT_SIZE];
    char other[WPK_TOKEN_TEXT_SIZE];
    assert_int_equal(wpk_auth_new(&f->auth), WPK_OK);
    wpk_rig_start(f);
    make_token(f, "{" WORKER_ROLES "}", id, secret);
    make_token(f, "{" WORKER_ROLES "}", id, other);
    uint64_t session = wpk_rig_hello(f, secret, WPK_OK);
    f->peer++;
    expect_error(f, session, WPK_ENOENT, "say hello");
    wpk_rig_hello(f, other, WPK_EBUSY);
    wpk_rig_hello(f, secret, WPK_OK); /* the worker itself, which has connected again */
    assert_int_equal(wpk_rig_worker_count(f), 1);
}

int main(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("performer", WPK_LOG_ERROR, null);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_artifact_that_was_never_sent, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(a_key_that_cannot_be_read, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(an_operator_that_ended_before_a_restart, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(the_plain_kernel_is_served, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(an_order_of_a_handler, wpk_rig_set_up, wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(a_session_ends_with_its_token, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(a_session_ends_in_silence, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(nobody_takes_a_session_over, wpk_rig_set_up,
                                        wpk_rig_tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
