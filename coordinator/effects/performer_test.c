/* SPDX-License-Identifier: Apache-2.0 */
/* What is believed of a worker, and of a history that another wpkd wrote. */
#include "coordinator/effects/performer.h"

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

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* One candidate: what a strategy tries first does not depend on its seed. */
#define JOB(seed)                                                                                  \
    "{\"name\":\"one\",\"ops\":["                                                                  \
    "{\"name\":\"a\",\"op\":\"Y[i] = X[i]\","                                                      \
    "\"tensors\":{\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}],"                                           \
    "\"search\":{\"strategy\":\"ga\",\"seed\":" seed "},"                                          \
    "\"budget\":{\"candidates\":1,\"seconds\":3600}}"

struct fixture {
    char directory[64];
    struct wpk_clock_fake clock;
    struct wpk_store *store;
    struct wpk_performer *performer;
    uint64_t artifact_bytes_max;
    struct wpk_auth *auth; /* NULL: all are let in */
    uint32_t peer;         /* whom the next message is from */
    uint64_t random;       /* counts: for ids */
    const char *key;       /* of the next requests; NULL: none */
    struct wpk_buf reply;  /* the last frame to a worker */
    int status;            /* of the last answer to a request */
    struct wpk_buf body;
};

static void on_reply(void *user, const struct wpk_net_address *address, const void *frame,
                     size_t size)
{
    struct fixture *f = user;
    (void)address;
    wpk_buf_reset(&f->reply);
    wpk_buf_append(&f->reply, frame, size);
}

static void on_respond(void *user, uint64_t request, const struct wpk_api_answer *answer)
{
    struct fixture *f = user;
    (void)request;
    f->status = answer->status;
    wpk_buf_reset(&f->body);
    wpk_buf_append_text(&f->body, wpk_buf_text(&answer->body));
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->directory, sizeof f->directory, "/tmp/wpk-performer-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    wpk_clock_fake_init(&f->clock, 1000 * WPK_NS_PER_S, UINT64_C(1800000000) * WPK_NS_PER_S);
    assert_int_equal(wpk_store_open(f->directory, &f->clock.clock, &f->store, NULL), WPK_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    wpk_performer_free(f->performer);
    wpk_store_close(f->store);
    wpk_auth_free(f->auth);
    wpk_buf_fini(&f->reply);
    wpk_buf_fini(&f->body);
    wpk_err err = wpk_fs_remove_tree(f->directory, NULL);
    free(f);
    return err == WPK_OK ? 0 : -1;
}

static void start(struct fixture *f)
{
    struct wpk_diag diag = {0};
    struct wpk_performer_options options = {
        .store = f->store,
        .data_dir = f->directory,
        .auth = f->auth,
        .clock = &f->clock.clock,
        .artifact_bytes_max = f->artifact_bytes_max,
        .out = {.reply = on_reply, .respond = on_respond, .user = f},
    };
    if (wpk_performer_new(&options, &f->performer, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
}

static void request(struct fixture *f, const char *method, const char *path, const char *body)
{
    struct wpk_diag diag = {0};
    struct wpk_http_request request = {.id = 1,
                                       .identity = {.roles = WPK_ROLE_ALL},
                                       .method = method,
                                       .path = path,
                                       .body = body,
                                       .body_size = strlen(body),
                                       .content_type = "application/json",
                                       .idempotency_key = f->key};
    wpk_performer_request(f->performer, &request, ++f->random);
    assert_int_equal(wpk_performer_commit(f->performer, &diag), WPK_OK);
}

/* Send it; a poll may wait for its answer. */
static void put(struct fixture *f, const struct wpk_message *message)
{
    struct wpk_diag diag = {0};
    struct wpk_net_address address = {.peer = 1 + f->peer};
    struct wpk_buf frame = {0};
    assert_int_equal(wpk_message_encode(message, &frame), WPK_OK);
    wpk_performer_frame(f->performer, &address, frame.data, frame.size, 99);
    assert_int_equal(wpk_performer_commit(f->performer, &diag), WPK_OK);
    wpk_buf_fini(&frame);
}

/* Send it, and read the answer into `back`. */
static void ask(struct fixture *f, const struct wpk_message *message, struct wpk_message *back)
{
    struct wpk_diag diag = {0};
    put(f, message);
    assert_int_equal(wpk_message_decode(f->reply.data, f->reply.size, back, &diag), WPK_OK);
}

static uint64_t hello_with(struct fixture *f, const char *token, wpk_err want)
{
    struct wpk_hello hello = {
        .name = "w",
        .device = {.kind = "cpu",
                   .model = "none",
                   .isa = WPK_ISA_AVX2,
                   .core_count = 1,
                   .l1_bytes = 32768,
                   .l2_bytes = 1 << 20,
                   .l3_bytes = 1 << 25,
                   .vector_bytes = 32,
                   .vector_registers = 16,
                   .instance = "none/cpu0"},
        .environment = "none=1",
        .providers = {{.name = "halide-cpu"}},
        .provider_count = 1,
        .roles = WPK_WORKER_ROLES_ALL,
    };
    struct wpk_message message = {.kind = WPK_MESSAGE_HELLO, .hello = &hello};
    struct wpk_message back = {0};
    snprintf(hello.token, sizeof hello.token, "%s", token);
    ask(f, &message, &back);
    assert_int_equal(back.kind, want == WPK_OK ? WPK_MESSAGE_WELCOME : WPK_MESSAGE_ERROR);
    assert_int_equal(back.err, want);
    if (want == WPK_OK) {
        assert_string_equal(back.server, "wpkd " WPK_VERSION);
    }
    uint64_t session = back.session;
    wpk_message_fini(&back);
    return session;
}

static uint64_t say_hello(struct fixture *f)
{
    return hello_with(f, "", WPK_OK);
}

static void expect_trials(struct fixture *f, const char *wanted)
{
    struct wpk_rows *rows =
        wpk_store_query(f->store, "SELECT outcome || ' ' || artifact_sha256 FROM trial", "");
    assert_true(wpk_rows_next(rows));
    assert_string_equal(wpk_rows_text(rows, 0), wanted);
    assert_false(wpk_rows_next(rows));
    wpk_rows_close(rows);
}

/* Poll for one piece of work, whose candidate is copied. */
static wpk_work_id take_work(struct fixture *f, uint64_t session, char candidate[256])
{
    struct wpk_message back = {0};
    ask(f, &(struct wpk_message){.kind = WPK_MESSAGE_POLL, .session = session, .want = 1}, &back);
    assert_int_equal(back.kind, WPK_MESSAGE_WORK);
    assert_int_equal(back.work_count, 1);
    wpk_work_id id = back.work[0].id;
    assert_int_equal(id.kind, WPK_WORK_TRIAL);
    snprintf(candidate, 256, "%s", back.work[0].candidate);
    wpk_message_fini(&back);
    return id;
}

static void send_result(struct fixture *f, uint64_t session, wpk_work_id id, bool censored,
                        const char *artifact)
{
    struct wpk_result result = {
        .id = id,
        .attempt = 1,
        .failure = "",
        .record = {.timing = {.median_ns = 5,
                              .min_ns = 5,
                              .sample_count = 1,
                              .repeat_count = 1,
                              .censored = censored,
                              .sample_ns = {5}}},
    };
    snprintf(result.record.artifact_sha256, WPK_ID_MAX, "%s", artifact);
    struct wpk_message message = {
        .kind = WPK_MESSAGE_RESULTS, .session = session, .results = &result, .result_count = 1};
    struct wpk_message back = {0};
    ask(f, &message, &back);
    assert_int_equal(back.ack_count, 1);
    assert_int_equal(back.acks[0], WPK_ACK_RECORDED);
    wpk_message_fini(&back);
}

static void an_artifact_that_was_never_sent(void **state)
{
    struct fixture *f = *state;
    char candidate[256];
    start(f);
    request(f, "POST", "/v1/jobs", JOB("5"));
    assert_int_equal(f->status, 201);
    uint64_t session = say_hello(f);
    send_result(f, session, take_work(f, session, candidate), false, HASH);
    expect_trials(f, "ok ");
}

static void raced_out_is_given_out_again(void **state)
{
    struct fixture *f = *state;
    char first[256];
    char second[256];
    start(f);
    request(f, "POST", "/v1/jobs", JOB("5"));
    uint64_t session = say_hello(f);
    send_result(f, session, take_work(f, session, first), true, "");
    assert_int_equal(wpk_coordinator_job_count(wpk_performer_coordinator(f->performer)), 0);
    request(f, "POST", "/v1/jobs", JOB("6"));
    send_result(f, session, take_work(f, session, second), true, "");
    assert_string_equal(second, first);
    expect_trials(f, "ok ");
}

static void put_job(struct fixture *f, const char *source)
{
    wpk_store_begin(f->store);
    wpk_store_run(f->store,
                  "INSERT INTO job (number, id, name, owner, priority, source, state, reason,"
                  " document, created_at, started_at, finished_at, epoch) VALUES"
                  " (1, 'j0123456789abcdef', 'old', 'me', 3, ?, 'running', '', '', 1, 2, 0, 1)",
                  "t", source);
    wpk_store_run(f->store,
                  "INSERT INTO job_op (job_number, position, search_id, kernel_id, phase, reason,"
                  " from_history, epoch) VALUES (1, 0, NULL, NULL, 'searching', '', 0, 1)",
                  "");
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
}

static void a_job_that_is_not_understood_any_more(void **state)
{
    struct fixture *f = *state;
    put_job(f, "{\"name\":\"old\",\"what\":\"is this\"}");
    start(f);
    assert_int_equal(wpk_coordinator_job_count(wpk_performer_coordinator(f->performer)), 0);
    request(f, "GET", "/v1/jobs/j0123456789abcdef", "");
    assert_int_equal(f->status, 200);
    const char *body = wpk_buf_text(&f->body);
    assert_non_null(strstr(body, "\"state\":\"failed\""));
    assert_non_null(strstr(body, "\"reason\":\"this wpkd does not understand the job's file: "));
    assert_non_null(strstr(body, "\"owner\":\"me\""));
    struct wpk_rows *rows = wpk_store_query(
        f->store, "SELECT j.state, o.phase FROM job j JOIN job_op o ON o.job_number = j.number",
        "");
    assert_true(wpk_rows_next(rows));
    assert_string_equal(wpk_rows_text(rows, 0), "failed");
    assert_string_equal(wpk_rows_text(rows, 1), "failed");
    wpk_rows_close(rows);
}

static void a_job_that_is_goes_on(void **state)
{
    struct fixture *f = *state;
    put_job(f, JOB("5"));
    start(f);
    assert_int_equal(wpk_coordinator_job_count(wpk_performer_coordinator(f->performer)), 1);
    request(f, "GET", "/v1/jobs/j0123456789abcdef", "");
    assert_non_null(strstr(wpk_buf_text(&f->body), "\"state\":\"running\""));
}

/* What cannot be read might be there: made again, it would fail the whole batch. */
static void a_key_that_cannot_be_read(void **state)
{
    struct fixture *f = *state;
    char path[64];
    char id[32];
    start(f);
    f->key = "once";
    request(f, "POST", "/v1/jobs", JOB("5"));
    assert_int_equal(f->status, 201);
    const char *at = strstr(wpk_buf_text(&f->body), "\"id\":\"");
    assert_non_null(at);
    snprintf(id, sizeof id, "%.17s", at + 6);
    snprintf(path, sizeof path, "/v1/jobs/%s:cancel", id);
    request(f, "POST", path, "");
    assert_int_equal(wpk_coordinator_job_count(wpk_performer_coordinator(f->performer)), 0);
    wpk_store_fail(f->store, WPK_EIO, &(struct wpk_diag){.text = "the disk"});
    request(f, "POST", "/v1/jobs", JOB("5"));
    assert_int_equal(f->status, 507);
    assert_int_equal(wpk_performer_degraded(f->performer, NULL), WPK_OK);
    request(f, "POST", "/v1/jobs", JOB("5"));
    assert_int_equal(f->status, 201);
    assert_non_null(strstr(wpk_buf_text(&f->body), id));
}

static void send_artifact(struct fixture *f, uint64_t session, const char *bytes,
                          struct wpk_message *back)
{
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .session = session,
                                  .bytes = (void *)(uintptr_t)bytes,
                                  .bytes_size = strlen(bytes)};
    wpk_crypto_sha256_hex(bytes, strlen(bytes), message.sha256);
    ask(f, &message, back);
}

/* It is this worker's trouble, and passes: nobody else hears of it. */
static void an_artifact_that_cannot_be_written(void **state)
{
    struct fixture *f = *state;
    struct wpk_message back = {0};
    char in_the_way[96];
    char sha256[WPK_SHA256_HEX_SIZE];
    snprintf(in_the_way, sizeof in_the_way, "%s/artifacts", f->directory);
    assert_int_equal(wpk_fs_write(in_the_way, "x", 1, 0644, NULL), WPK_OK);
    start(f);
    uint64_t session = say_hello(f);
    wpk_crypto_sha256_hex("code", 4, sha256);
    send_artifact(f, session, "code", &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ERROR);
    assert_int_equal(back.err, WPK_EIO);
    assert_true(back.retry_ms > 0);
    wpk_message_fini(&back);
    assert_int_equal(wpk_performer_degraded(f->performer, NULL), WPK_OK);
    assert_false(wpk_history_has_artifact(f->store, sha256));
    assert_int_equal(unlink(in_the_way), 0);
    send_artifact(f, session, "code", &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ACK);
    wpk_message_fini(&back);
    assert_true(wpk_history_has_artifact(f->store, sha256));
}

/* However long ago it was built, and however little room there is. */
static void what_a_live_search_may_end_with_stays(void **state)
{
    struct fixture *f = *state;
    struct wpk_message back = {0};
    struct wpk_event tick = {.kind = WPK_EVENT_TICK};
    char candidate[256];
    char best[WPK_SHA256_HEX_SIZE];
    char other[WPK_SHA256_HEX_SIZE];
    f->artifact_bytes_max = 1;
    start(f);
    request(f, "POST", "/v1/jobs", JOB("5"));
    uint64_t session = say_hello(f);
    wpk_work_id work = take_work(f, session, candidate);
    wpk_crypto_sha256_hex("best", 4, best);
    wpk_crypto_sha256_hex("other", 5, other);
    send_artifact(f, session, "best", &back);
    wpk_message_fini(&back);
    send_artifact(f, session, "other", &back);
    wpk_message_fini(&back);
    send_result(f, session, work, false, best);
    wpk_clock_fake_advance(&f->clock, 2 * 3600 * WPK_NS_PER_S);
    wpk_performer_step(f->performer, &tick);
    assert_int_equal(wpk_performer_commit(f->performer, NULL), WPK_OK);
    assert_int_equal(wpk_coordinator_job_count(wpk_performer_coordinator(f->performer)), 1);
    assert_true(wpk_history_has_artifact(f->store, best));
    assert_false(wpk_history_has_artifact(f->store, other));
}

/* What one turn takes in has an end, before its memory has one. */
static void one_turn_takes_in_so_much(void **state)
{
    struct fixture *f = *state;
    struct wpk_net_address address = {.peer = 1};
    struct wpk_buf frame = {0};
    int count = 0;
    start(f);
    uint64_t session = say_hello(f);
    char *bytes = calloc(1, WPK_ARTIFACT_SIZE_MAX);
    assert_non_null(bytes);
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .session = session,
                                  .sha256 = HASH,
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
    struct fixture *fixture;
    wpk_err err;
    bool done;
};

static void perform_order(struct wpk_order *order, struct wpk_store *store)
{
    (void)order;
    wpk_history_put_artifact(store, HASH, 5);
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
    struct fixture *f = *state;
    start(f);
    struct artifact_order mine = {.order = {.perform = perform_order, .done = on_done},
                                  .fixture = f};
    wpk_performer_order(f->performer, &mine.order);
    assert_false(mine.done);
    assert_int_equal(wpk_performer_commit(f->performer, NULL), WPK_OK);
    wpk_performer_poll(f->performer);
    assert_true(mine.done);
    assert_int_equal(mine.err, WPK_OK);
    assert_int_equal(f->status, 418);
    assert_true(wpk_history_has_artifact(f->store, HASH));
}

static void tick(struct fixture *f, uint64_t seconds)
{
    struct wpk_event event = {.kind = WPK_EVENT_TICK};
    wpk_clock_fake_advance(&f->clock, seconds * WPK_NS_PER_S);
    wpk_performer_step(f->performer, &event);
    assert_int_equal(wpk_performer_commit(f->performer, NULL), WPK_OK);
    wpk_performer_poll(f->performer);
}

static void a_quota_that_is_lowered(void **state)
{
    struct fixture *f = *state;
    start(f);
    struct artifact_order mine = {.order = {.perform = perform_order, .done = on_done},
                                  .fixture = f};
    wpk_performer_order(f->performer, &mine.order);
    assert_int_equal(wpk_performer_commit(f->performer, NULL), WPK_OK);
    tick(f, 7200); /* old enough to go */
    assert_true(wpk_history_has_artifact(f->store, HASH));
    wpk_performer_limit_artifacts(f->performer, 5, 4);
    tick(f, 1);
    assert_true(wpk_history_has_artifact(f->store, HASH));
    wpk_performer_limit_artifacts(f->performer, 4, 4);
    tick(f, 1);
    assert_false(wpk_history_has_artifact(f->store, HASH));
}

/* A token for workers, made as clients make it: its id and its secret. */
static void make_token(struct fixture *f, const char *body, char id[WPK_TOKEN_ID_SIZE],
                       char secret[WPK_TOKEN_TEXT_SIZE])
{
    request(f, "POST", "/v1/tokens", body);
    assert_int_equal(f->status, 201);
    const char *text = wpk_buf_text(&f->body);
    assert_int_equal(sscanf(strstr(text, "\"id\":") + 5, " \"%16[^\"]", id), 1);
    assert_int_equal(sscanf(strstr(text, "\"secret\":") + 9, " \"%64[^\"]", secret), 1);
}

static void expect_error(struct fixture *f, uint64_t session, wpk_err want, const char *why)
{
    struct wpk_message poll = {.kind = WPK_MESSAGE_POLL, .session = session};
    struct wpk_message back = {0};
    ask(f, &poll, &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ERROR);
    assert_int_equal(back.err, want);
    assert_non_null(strstr(back.text, why));
    wpk_message_fini(&back);
}

static uint32_t worker_count(const struct fixture *f)
{
    return wpk_coordinator_worker_count(wpk_performer_coordinator(f->performer));
}

#define WORKER_ROLES "\"owner\":\"anna\",\"roles\":[\"build\",\"measure\"]"

/* Revoked: the poll that waits is answered with the reason, its work is another's, and the session
 * is none any more. */
static void a_session_ends_with_its_token(void **state)
{
    struct fixture *f = *state;
    char id[WPK_TOKEN_ID_SIZE];
    char other_id[WPK_TOKEN_ID_SIZE];
    char secret[WPK_TOKEN_TEXT_SIZE];
    char other[WPK_TOKEN_TEXT_SIZE];
    char path[64];
    assert_int_equal(wpk_auth_new(&f->auth), WPK_OK);
    start(f);
    make_token(f, "{" WORKER_ROLES "}", id, secret);
    make_token(f, "{" WORKER_ROLES ",\"seconds\":60}", other_id, other);
    uint64_t session = hello_with(f, secret, WPK_OK);
    request(f, "POST", "/v1/jobs", JOB("1"));
    char candidate[256];
    wpk_work_id held = take_work(f, session, candidate);
    struct wpk_message poll = {.kind = WPK_MESSAGE_POLL,
                               .session = session,
                               .want = 1,
                               .wait_ms = 5000,
                               .holding = &held,
                               .holding_count = 1};
    struct wpk_message back = {0};
    put(f, &poll);
    snprintf(path, sizeof path, "/v1/tokens/%s", id);
    request(f, "DELETE", path, "");
    assert_int_equal(f->status, 200);
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_message_decode(f->reply.data, f->reply.size, &back, &diag), WPK_OK);
    assert_int_equal(back.err, WPK_EACCES);
    assert_string_equal(back.text, "the token was revoked");
    wpk_message_fini(&back);
    assert_int_equal(worker_count(f), 0);
    expect_error(f, session, WPK_ENOENT, "say hello");
    hello_with(f, secret, WPK_EACCES);
    session = hello_with(f, other, WPK_OK);
    take_work(f, session, candidate); /* unblamed: it is there for the next one */
    wpk_clock_fake_advance(&f->clock, 61 * WPK_NS_PER_S);
    expect_error(f, session, WPK_EACCES, "expired");
    assert_int_equal(worker_count(f), 0);
}

/* Expiry is found without a word of the worker. */
static void a_session_ends_in_silence(void **state)
{
    struct fixture *f = *state;
    char id[WPK_TOKEN_ID_SIZE];
    char secret[WPK_TOKEN_TEXT_SIZE];
    assert_int_equal(wpk_auth_new(&f->auth), WPK_OK);
    start(f);
    make_token(f, "{" WORKER_ROLES ",\"seconds\":1}", id, secret);
    hello_with(f, secret, WPK_OK);
    tick(f, 0);
    assert_int_equal(worker_count(f), 1);
    tick(f, 2);
    assert_int_equal(worker_count(f), 0);
}

/* A session is of the connection that said hello, a name of the token that did. */
static void nobody_takes_a_session_over(void **state)
{
    struct fixture *f = *state;
    char id[WPK_TOKEN_ID_SIZE];
    char secret[WPK_TOKEN_TEXT_SIZE];
    char other[WPK_TOKEN_TEXT_SIZE];
    assert_int_equal(wpk_auth_new(&f->auth), WPK_OK);
    start(f);
    make_token(f, "{" WORKER_ROLES "}", id, secret);
    make_token(f, "{" WORKER_ROLES "}", id, other);
    uint64_t session = hello_with(f, secret, WPK_OK);
    f->peer++;
    expect_error(f, session, WPK_ENOENT, "say hello");
    hello_with(f, other, WPK_EBUSY);
    hello_with(f, secret, WPK_OK); /* the worker itself, which has connected again */
    assert_int_equal(worker_count(f), 1);
}

int main(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("performer", WPK_LOG_ERROR, null);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_artifact_that_was_never_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(raced_out_is_given_out_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_is_not_understood_any_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_is_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_key_that_cannot_be_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_artifact_that_cannot_be_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_live_search_may_end_with_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_turn_takes_in_so_much, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_order_of_a_handler, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_quota_that_is_lowered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_session_ends_with_its_token, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_session_ends_in_silence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_takes_a_session_over, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
