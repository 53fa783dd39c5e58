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

/* It is this worker's trouble, and passes: nobody else hears of it. */
static void an_artifact_that_cannot_be_written(void **state)
{
    struct wpk_rig *f = *state;
    struct wpk_message back = {0};
    char in_the_way[96];
    char sha256[WPK_SHA256_HEX_SIZE];
    snprintf(in_the_way, sizeof in_the_way, "%s/artifacts", f->directory);
    assert_int_equal(wpk_fs_write(in_the_way, "x", 1, 0644, NULL), WPK_OK);
    wpk_rig_start(f);
    uint64_t session = wpk_rig_hello(f, "", WPK_OK);
    wpk_crypto_sha256_hex("code", 4, sha256);
    wpk_rig_artifact(f, session, "code", &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ERROR);
    assert_int_equal(back.err, WPK_EIO);
    assert_true(back.retry_ms > 0);
    wpk_message_fini(&back);
    assert_int_equal(wpk_performer_degraded(f->performer, NULL), WPK_OK);
    assert_false(wpk_history_has_artifact(f->store, sha256));
    assert_int_equal(unlink(in_the_way), 0);
    wpk_rig_artifact(f, session, "code", &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ACK);
    wpk_message_fini(&back);
    assert_true(wpk_history_has_artifact(f->store, sha256));
}

/* Who asks for it hears so, and it is not said to be there any more: it can be made once more. */
static void an_artifact_whose_file_is_gone(void **state)
{
    struct wpk_rig *f = *state;
    struct wpk_message back = {0};
    struct wpk_message get = {.kind = WPK_MESSAGE_GET_ARTIFACT};
    char path[192];
    wpk_rig_start(f);
    get.session = wpk_rig_hello(f, "", WPK_OK);
    wpk_rig_artifact(f, get.session, "code", &back);
    wpk_message_fini(&back);
    wpk_crypto_sha256_hex("code", 4, get.sha256);
    snprintf(path, sizeof path, "%s/artifacts/%.2s/%s.so", f->directory, get.sha256, get.sha256);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(wpk_history_artifact_bytes(f->store), 4);
    wpk_rig_ask(f, &get, &back);
    assert_int_equal(back.err, WPK_ECORRUPT);
    wpk_message_fini(&back);
    assert_false(wpk_history_has_artifact(f->store, get.sha256));
    assert_int_equal(wpk_history_artifact_bytes(f->store), 0);
    wpk_rig_artifact(f, get.session, "code", &back);
    wpk_message_fini(&back);
    wpk_rig_ask(f, &get, &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ARTIFACT);
    wpk_message_fini(&back);
}

/* However long ago it was built, and however little room there is. */
static void what_a_live_search_may_end_with_stays(void **state)
{
    struct wpk_rig *f = *state;
    struct wpk_message back = {0};
    struct wpk_event tick = {.kind = WPK_EVENT_TICK};
    char candidate[256];
    char best[WPK_SHA256_HEX_SIZE];
    char other[WPK_SHA256_HEX_SIZE];
    f->artifact_bytes_max = 1;
    wpk_rig_start(f);
    wpk_rig_request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
    uint64_t session = wpk_rig_hello(f, "", WPK_OK);
    wpk_work_id work = wpk_rig_take_work(f, session, candidate);
    wpk_crypto_sha256_hex("best", 4, best);
    wpk_crypto_sha256_hex("other", 5, other);
    wpk_rig_artifact(f, session, "best", &back);
    wpk_message_fini(&back);
    wpk_rig_artifact(f, session, "other", &back);
    wpk_message_fini(&back);
    wpk_rig_result(f, session, work, false, best);
    wpk_clock_fake_advance(&f->clock, 2 * 3600 * WPK_NS_PER_S);
    wpk_performer_step(f->performer, &tick);
    assert_int_equal(wpk_performer_commit(f->performer, NULL), WPK_OK);
    assert_int_equal(wpk_coordinator_job_count(wpk_performer_coordinator(f->performer)), 1);
    assert_true(wpk_history_has_artifact(f->store, best));
    assert_false(wpk_history_has_artifact(f->store, other));
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
    wpk_rig_artifact(f, session, "code", &back);
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
    wpk_rig_artifact(f, session, "plain", &back);
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

/* A piece of work that a builder or a runner gets, and its result. */
static void do_one(struct wpk_rig *f, uint64_t session, const char *code, enum wpk_outcome outcome)
{
    struct wpk_message back = {0};
    wpk_rig_poll(f, session, &back);
    assert_int_equal(back.work_count, 1);
    struct wpk_result result = {.id = back.work[0].id,
                                .lease = back.work[0].lease,
                                .stage = back.work[0].stage,
                                .attempt = 1,
                                .failure = "",
                                .record = {.outcome = outcome}};
    wpk_message_fini(&back);
    if (code != NULL) {
        assert_int_equal(result.stage, WPK_STAGE_BUILD);
        wpk_rig_artifact(f, session, code, &back);
        wpk_message_fini(&back);
        wpk_crypto_sha256_hex(code, strlen(code), result.record.artifact_sha256);
    }
    struct wpk_message message = {
        .kind = WPK_MESSAGE_RESULTS, .session = session, .results = &result, .result_count = 1};
    wpk_rig_ask(f, &message, &back);
    assert_int_equal(back.acks[0], WPK_ACK_RECORDED);
    wpk_message_fini(&back);
}

static bool is_told(const struct wpk_rig *f, enum wpk_message_kind kind, uint32_t work_count)
{
    struct wpk_message back = {0};
    bool told = wpk_message_decode(f->reply.data, f->reply.size, &back, NULL) == WPK_OK &&
                back.kind == kind && back.work_count == work_count;
    wpk_message_fini(&back);
    return told;
}

/* What is built and waits for its run counts in the quota, and nothing of it can go: a farm of
 * builders waits, until a run has made room at once. */
static void builds_wait_for_room(void **state)
{
    struct wpk_rig *f = *state;
    f->artifact_bytes_max = 8;
    wpk_rig_start(f);
    wpk_rig_request(f, "POST", "/v1/jobs",
                    "{\"name\":\"three\",\"ops\":[{\"name\":\"a\",\"op\":\"Y[i] = X[i] + X[i]\","
                    "\"tensors\":{\"X\":\"f32[64]\",\"Y\":\"f32[64]\"}}],"
                    "\"search\":{\"strategy\":\"random\",\"seed\":1},"
                    "\"budget\":{\"candidates\":3,\"seconds\":3600}}");
    assert_int_equal(f->status, 201);
    f->roles = WPK_WORKER_RUNS;
    uint64_t runner = wpk_rig_hello(f, "", WPK_OK);
    f->peer = 1;
    f->name = "b";
    f->roles = WPK_WORKER_BUILDS;
    uint64_t builder = wpk_rig_hello(f, "", WPK_OK);
    do_one(f, builder, "12345", WPK_OUTCOME_OK);
    do_one(f, builder, "67890", WPK_OUTCOME_OK);
    wpk_rig_tick(f, 3);
    struct wpk_message poll = {
        .kind = WPK_MESSAGE_POLL, .session = builder, .want = 1, .wait_ms = 10000};
    wpk_buf_reset(&f->reply);
    wpk_rig_put(f, &poll);
    assert_int_equal(f->reply.size, 0); /* it waits */
    f->peer = 0;
    do_one(f, runner, NULL, WPK_OUTCOME_WRONG_RESULT);
    assert_true(is_told(f, WPK_MESSAGE_ACK, 0));
    wpk_rig_tick(f, 3); /* the one goes, and that is enough */
    assert_int_equal(wpk_history_artifact_bytes(f->store), 5);
    assert_true(is_told(f, WPK_MESSAGE_WORK, 1));
}

/* What one turn takes in has an end, before its memory has one. */
static void one_turn_takes_in_so_much(void **state)
{
    struct wpk_rig *f = *state;
    struct wpk_net_address address = {.peer = 1};
    struct wpk_buf frame = {0};
    int count = 0;
    wpk_rig_start(f);
    uint64_t session = wpk_rig_hello(f, "", WPK_OK);
    char *bytes = calloc(1, WPK_ARTIFACT_SIZE_MAX);
    assert_non_null(bytes);
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .session = session,
                                  .sha256 = WPK_RIG_HASH,
                                  .bytes = bytes,
                                  .bytes_size = WPK_ARTIFACT_SIZE_MAX};
    assert_int_equal(wpk_message_encode(&message, &frame), WPK_OK);
    for (; count < 64 && !wpk_performer_is_full(f->performer); count++) {
        wpk_performer_frame(f->performer, &address, frame.data, frame.size, 99);
    }
    assert_in_range(count, 2, 16); /* 64 MiB, the frame and what is in it */
    assert_int_equal(wpk_performer_commit(f->performer, NULL), WPK_OK);
    assert_false(wpk_performer_is_full(f->performer));
    wpk_buf_fini(&frame);
    free(bytes);
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

static void a_quota_that_is_lowered(void **state)
{
    struct wpk_rig *f = *state;
    wpk_rig_start(f);
    struct artifact_order mine = {.order = {.perform = perform_order, .done = on_done},
                                  .fixture = f};
    wpk_performer_order(f->performer, &mine.order);
    assert_int_equal(wpk_performer_commit(f->performer, NULL), WPK_OK);
    wpk_rig_tick(f, 7200); /* old enough to go */
    assert_true(wpk_history_has_artifact(f->store, WPK_RIG_HASH));
    wpk_performer_limit_artifacts(f->performer, 5, 4);
    wpk_rig_tick(f, 1);
    assert_true(wpk_history_has_artifact(f->store, WPK_RIG_HASH));
    wpk_performer_limit_artifacts(f->performer, 4, 4);
    wpk_rig_tick(f, 1);
    assert_false(wpk_history_has_artifact(f->store, WPK_RIG_HASH));
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
        cmocka_unit_test_setup_teardown(an_artifact_that_cannot_be_written, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(an_artifact_whose_file_is_gone, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(what_a_live_search_may_end_with_stays, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(an_operator_that_ended_before_a_restart, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(the_plain_kernel_is_served, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(builds_wait_for_room, wpk_rig_set_up, wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(one_turn_takes_in_so_much, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(an_order_of_a_handler, wpk_rig_set_up, wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(a_quota_that_is_lowered, wpk_rig_set_up, wpk_rig_tear_down),
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
