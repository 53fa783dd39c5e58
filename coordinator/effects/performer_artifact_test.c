/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts: who may upload them, how many there may be, and what happens to lost ones. */
#include "tests/rig.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "common/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* An artifact of 5 bytes that nobody needs. */
static void put_row(struct wpk_rig *f)
{
    wpk_store_begin(f->store);
    wpk_history_put_artifact(f->store, WPK_RIG_HASH, 5);
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
}

/* One job, and a worker who has a piece of its work; returns the worker's session. */
static uint64_t start_with_work(struct wpk_rig *f, wpk_work_id *work)
{
    char candidate[256];
    wpk_rig_start(f);
    wpk_rig_request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
    uint64_t session = wpk_rig_hello(f, "", WPK_OK);
    *work = wpk_rig_take_work(f, session, candidate);
    return session;
}

/* It is this worker's trouble, and passes: nobody else hears of it. */
static void an_artifact_that_cannot_be_written(void **state)
{
    struct wpk_rig *f = *state;
    struct wpk_message back = {0};
    char in_the_way[96];
    char sha256[WPK_SHA256_HEX_SIZE];
    wpk_work_id work;
    snprintf(in_the_way, sizeof in_the_way, "%s/artifacts", f->directory);
    assert_int_equal(wpk_fs_write(in_the_way, "x", 1, 0644, NULL), WPK_OK);
    uint64_t session = start_with_work(f, &work);
    wpk_crypto_sha256_hex("code", 4, sha256);
    wpk_rig_artifact(f, session, work, "code", &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ERROR);
    assert_int_equal(back.err, WPK_EIO);
    assert_true(back.retry_ms > 0);
    wpk_message_fini(&back);
    assert_int_equal(wpk_performer_degraded(f->performer, NULL), WPK_OK);
    assert_false(wpk_history_has_artifact(f->store, sha256));
    assert_int_equal(unlink(in_the_way), 0);
    wpk_rig_artifact(f, session, work, "code", &back);
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
    wpk_work_id work;
    get.session = start_with_work(f, &work);
    wpk_rig_artifact(f, get.session, work, "code", &back);
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
    wpk_rig_artifact(f, get.session, work, "code", &back);
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
    char best[WPK_SHA256_HEX_SIZE];
    wpk_work_id work;
    uint64_t session = start_with_work(f, &work);
    wpk_crypto_sha256_hex("best", 4, best);
    wpk_rig_artifact(f, session, work, "best", &back);
    wpk_message_fini(&back);
    put_row(f);
    wpk_rig_result(f, session, work, false, best);
    wpk_performer_limit_artifacts(f->performer, 1, 4);
    wpk_rig_tick(f, 2 * 3600);
    wpk_rig_tick(f, 3);
    assert_int_equal(wpk_coordinator_job_count(wpk_performer_coordinator(f->performer)), 1);
    assert_true(wpk_history_has_artifact(f->store, best));
    assert_false(wpk_history_has_artifact(f->store, WPK_RIG_HASH));
}

#define JOB_OF_THREE                                                                               \
    "{\"name\":\"three\",\"ops\":[{\"name\":\"a\",\"op\":\"Y[i] = X[i] + X[i]\","                  \
    "\"tensors\":{\"X\":\"f32[64]\",\"Y\":\"f32[64]\"}}],"                                         \
    "\"search\":{\"strategy\":\"random\",\"seed\":1},"                                             \
    "\"budget\":{\"candidates\":3,\"seconds\":3600}}"

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
        wpk_rig_artifact(f, session, result.id, code, &back);
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

/* One piece of work is leased to be built, and its artifact is uploaded. */
static void expect_refused(struct wpk_rig *f, uint64_t session, const char *code, wpk_work_id *work)
{
    struct wpk_message back = {0};
    wpk_rig_poll(f, session, &back);
    assert_int_equal(back.work_count, 1);
    *work = back.work[0].id;
    wpk_message_fini(&back);
    wpk_rig_artifact(f, session, *work, code, &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ERROR);
    assert_int_equal(back.err, WPK_ENOSPC);
    assert_int_equal(back.retry_ms, 0); /* it need not come again */
    assert_non_null(strstr(back.text, "the artifacts have reached their quota of 8"));
    wpk_message_fini(&back);
}

/* What is built and waits for its run counts in the quota, and nothing of it can go: what comes
 * above it is refused, and nothing more is built, until a run has made room at once. What was
 * refused is given back by its worker, and is no attempt. */
static void builds_wait_for_room(void **state)
{
    struct wpk_rig *f = *state;
    f->artifact_bytes_max = 8;
    wpk_rig_start(f);
    wpk_rig_request(f, "POST", "/v1/jobs", JOB_OF_THREE);
    assert_int_equal(f->status, 201);
    f->roles = WPK_WORKER_RUNS;
    uint64_t runner = wpk_rig_hello(f, "", WPK_OK);
    f->peer = 1;
    f->name = "b";
    f->roles = WPK_WORKER_BUILDS;
    uint64_t builder = wpk_rig_hello(f, "", WPK_OK);
    do_one(f, builder, "12345", WPK_OUTCOME_OK);
    wpk_work_id refused;
    expect_refused(f, builder, "67890", &refused);
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
    assert_int_equal(wpk_history_artifact_bytes(f->store), 0);
    struct wpk_message back = {0};
    assert_int_equal(wpk_message_decode(f->reply.data, f->reply.size, &back, NULL), WPK_OK);
    assert_int_equal(back.kind, WPK_MESSAGE_WORK);
    assert_true(wpk_work_id_equal(back.work[0].id, refused));
    assert_int_equal(back.work[0].attempt, 1);
    wpk_message_fini(&back);
}

/* ---- without waiting for files */

static atomic_bool hanging; /* the disk, for artifacts */

__attribute__((visibility("default"))) int fsync(int fd)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    char link[32];
    char path[256];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    while (strstr(path, "/artifacts") != NULL && atomic_load(&hanging)) {
        nanosleep(&moment, NULL);
    }
    return (int)syscall(SYS_fsync, fd);
}

static void put_upload(struct wpk_rig *f, uint64_t session, wpk_work_id work, const char *code)
{
    struct wpk_net_address address = {.peer = 1};
    struct wpk_buf frame = {0};
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .session = session,
                                  .made_for = work,
                                  .bytes = code,
                                  .bytes_size = strlen(code)};
    wpk_crypto_sha256_hex(code, strlen(code), message.sha256);
    assert_int_equal(wpk_message_encode(&message, &frame), WPK_OK);
    wpk_performer_frame(f->performer, &address, frame.data, frame.size, 99);
    wpk_buf_fini(&frame);
}

/* Before the first has its row the second one is refused; the same one again needs no room. */
static void uploads_on_the_way_count(void **state)
{
    struct wpk_rig *f = *state;
    struct wpk_message back = {0};
    wpk_work_id work[2];
    f->artifact_bytes_max = 8;
    wpk_rig_start(f);
    wpk_rig_request(f, "POST", "/v1/jobs", JOB_OF_THREE);
    uint64_t session = wpk_rig_hello(f, "", WPK_OK);
    wpk_rig_poll(f, session, &back);
    work[0] = back.work[0].id;
    wpk_message_fini(&back);
    struct wpk_message poll = {.kind = WPK_MESSAGE_POLL,
                               .session = session,
                               .want = 1,
                               .holding = work,
                               .holding_count = 1};
    wpk_rig_ask(f, &poll, &back);
    assert_int_equal(back.work_count, 1);
    work[1] = back.work[0].id;
    wpk_message_fini(&back);
    put_upload(f, session, work[0], "12345");
    put_upload(f, session, work[1], "67890");
    assert_true(is_told(f, WPK_MESSAGE_ERROR, 0));
    assert_int_equal(wpk_performer_commit(f->performer, NULL), WPK_OK);
    assert_true(is_told(f, WPK_MESSAGE_ACK, 0));
    wpk_rig_artifact(f, session, work[0], "12345", &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ACK);
    wpk_message_fini(&back);
    assert_int_equal(wpk_history_artifact_bytes(f->store), 5);
}

/* Whatever it is that a hostile worker sends, nothing of it is written. */
static void what_is_refused_leaves_no_file(void **state)
{
    struct wpk_rig *f = *state;
    struct wpk_message back = {0};
    char path[96];
    wpk_work_id work;
    uint64_t session = start_with_work(f, &work);
    wpk_rig_artifact(f, session, (wpk_work_id){work.search, WPK_WORK_TRIAL, 7}, "code", &back);
    assert_int_equal(back.err, WPK_EINVAL);
    wpk_message_fini(&back);
    wpk_rig_request(f, "POST", "/v1/workers:quarantine", "{\"name\":\"w\"}");
    assert_int_equal(f->status, 200);
    wpk_rig_artifact(f, session, work, "code", &back);
    assert_int_equal(back.err, WPK_EACCES);
    wpk_message_fini(&back);
    snprintf(path, sizeof path, "%s/artifacts", f->directory);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* An upload whose file takes for ever: others' transactions go on, and nobody is told that it is
 * there. */
static void a_file_that_hangs_holds_nobody_up(void **state)
{
    struct wpk_rig *f = *state;
    struct wpk_message back = {0};
    f->threads = 1;
    wpk_rig_start(f);
    wpk_rig_request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
    assert_int_equal(f->status, 201);
    uint64_t session = wpk_rig_hello(f, "", WPK_OK);
    struct wpk_message poll = {.kind = WPK_MESSAGE_POLL, .session = session, .want = 1};
    for (int i = 0; back.work_count == 0 && i < 30000; i++) { /* its search is being opened */
        wpk_message_fini(&back);
        wpk_rig_ask(f, &poll, &back);
    }
    assert_int_equal(back.work_count, 1);
    wpk_work_id work = back.work[0].id;
    wpk_message_fini(&back);
    wpk_buf_reset(&f->reply);
    atomic_store(&hanging, true);
    put_upload(f, session, work, "code");
    wpk_rig_request(f, "POST", "/v1/jobs", WPK_RIG_JOB("6"));
    int status = f->status;
    bool acknowledged = f->reply.size > 0;
    atomic_store(&hanging, false);
    assert_int_equal(status, 201);
    assert_false(acknowledged);
    for (int i = 0; f->reply.size == 0 && i < 30000; i++) {
        wpk_rig_turn(f);
    }
    assert_true(is_told(f, WPK_MESSAGE_ACK, 0));
}

/* What one turn takes in has an end, before its memory has one. */
static void one_turn_takes_in_so_much(void **state)
{
    struct wpk_rig *f = *state;
    struct wpk_net_address address = {.peer = 1};
    struct wpk_buf frame = {0};
    int count = 0;
    wpk_work_id work;
    uint64_t session = start_with_work(f, &work);
    char *bytes = calloc(1, WPK_ARTIFACT_SIZE_MAX);
    assert_non_null(bytes);
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .session = session,
                                  .made_for = work,
                                  .sha256 = WPK_RIG_HASH,
                                  .bytes = bytes,
                                  .bytes_size = WPK_ARTIFACT_SIZE_MAX};
    assert_int_equal(wpk_message_encode(&message, &frame), WPK_OK);
    for (; count < 64 && !wpk_performer_is_full(f->performer); count++) {
        wpk_performer_frame(f->performer, &address, frame.data, frame.size, 99);
    }
    assert_in_range(count, 2, 17); /* 64 MiB of frames */
    assert_int_equal(wpk_performer_commit(f->performer, NULL), WPK_OK);
    assert_false(wpk_performer_is_full(f->performer));
    wpk_buf_fini(&frame);
    free(bytes);
}

static void a_quota_that_is_lowered(void **state)
{
    struct wpk_rig *f = *state;
    wpk_rig_start(f);
    put_row(f);
    wpk_rig_tick(f, 7200); /* old enough to go */
    assert_true(wpk_history_has_artifact(f->store, WPK_RIG_HASH));
    wpk_performer_limit_artifacts(f->performer, 5, 4);
    wpk_rig_tick(f, 1);
    assert_true(wpk_history_has_artifact(f->store, WPK_RIG_HASH));
    wpk_performer_limit_artifacts(f->performer, 4, 4);
    wpk_rig_tick(f, 1);
    assert_false(wpk_history_has_artifact(f->store, WPK_RIG_HASH));
}

int main(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("performer_artifact", WPK_LOG_ERROR, null);
#define CASE(name) cmocka_unit_test_setup_teardown(name, wpk_rig_set_up, wpk_rig_tear_down)
    const struct CMUnitTest tests[] = {
        CASE(an_artifact_that_cannot_be_written),
        CASE(an_artifact_whose_file_is_gone),
        CASE(what_a_live_search_may_end_with_stays),
        CASE(builds_wait_for_room),
        CASE(uploads_on_the_way_count),
        CASE(what_is_refused_leaves_no_file),
        CASE(a_file_that_hangs_holds_nobody_up),
        CASE(one_turn_takes_in_so_much),
        CASE(a_quota_that_is_lowered),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
