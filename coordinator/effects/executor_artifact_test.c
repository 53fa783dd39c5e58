/* SPDX-License-Identifier: Apache-2.0 */
/* Artifacts: who may upload them, and what happens to lost ones. */
#include "tests/fixture.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "common/metrics.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* One job, and a worker who has one of its work items. */
static int start_with_work(struct wpk_fixture *f, wpk_work_id *work)
{
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    wpk_fixture_take(f, w);
    *work = f->workers[w].held[0].id;
    return w;
}

/* It is this worker's trouble, and passes: nobody else hears of it. */
static void an_artifact_that_cannot_be_written(void **state)
{
    struct wpk_fixture *f = *state;
    char in_the_way[96];
    char sha256[WPK_SHA256_HEX_SIZE];
    wpk_work_id work;
    snprintf(in_the_way, sizeof in_the_way, "%s/artifacts", f->directory);
    assert_int_equal(wpk_fs_write(in_the_way, "x", 1, 0644, NULL), WPK_OK);
    int w = start_with_work(f, &work);
    wpk_crypto_sha256_hex("code", 4, sha256);
    assert_false(wpk_fixture_upload(f, w, work, "code"));
    assert_int_equal(f->workers[w].told, WPK_MESSAGE_ERROR);
    assert_int_equal(f->workers[w].err, WPK_EIO);
    assert_int_equal(f->workers[w].retry_ms, 5000);
    assert_true(wpk_fixture_logged(" error fixture artifact_not_written error="));
    assert_int_equal(wpk_executor_degraded(f->executor, NULL), WPK_OK);
    assert_false(wpk_history_has_artifact(f->store, sha256));
    assert_int_equal(unlink(in_the_way), 0);
    assert_true(wpk_fixture_upload(f, w, work, "code"));
    assert_true(wpk_history_has_artifact(f->store, sha256));
}

/* A worker that asks for the artifact is told so; the row goes, and it can be built again. */
static void an_artifact_whose_file_is_gone(void **state)
{
    struct wpk_fixture *f = *state;
    struct wpk_message get = {.kind = WPK_MESSAGE_GET_ARTIFACT};
    char path[192];
    wpk_work_id work;
    int w = start_with_work(f, &work);
    assert_true(wpk_fixture_upload(f, w, work, "code"));
    wpk_crypto_sha256_hex("code", 4, get.sha256);
    snprintf(path, sizeof path, "%s/artifacts/%.2s/%s.so", f->directory, get.sha256, get.sha256);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(wpk_history_artifact_bytes(f->store), 4);
    wpk_fixture_say(f, w, &get);
    assert_int_equal(f->workers[w].err, WPK_ECORRUPT);
    assert_false(wpk_history_has_artifact(wpk_executor_reader(f->executor), get.sha256));
    assert_int_equal(wpk_history_artifact_bytes(f->store), 0);
    assert_true(wpk_fixture_upload(f, w, work, "code"));
    wpk_fixture_say(f, w, &get);
    assert_int_equal(f->workers[w].told, WPK_MESSAGE_ARTIFACT);
}

/* It is read twice before its row goes, and once more before its file is replaced. */
static void a_damaged_file_is_counted_once(void **state)
{
    struct wpk_fixture *f = *state;
    struct wpk_message get = {.kind = WPK_MESSAGE_GET_ARTIFACT};
    char path[192];
    wpk_work_id work;
    int w = start_with_work(f, &work);
    uint64_t before = wpk_metric_counted(WPK_COUNTER_ARTIFACTS_CORRUPT, 0);
    assert_true(wpk_fixture_upload(f, w, work, "code"));
    wpk_crypto_sha256_hex("code", 4, get.sha256);
    snprintf(path, sizeof path, "%s/artifacts/%.2s/%s.so", f->directory, get.sha256, get.sha256);
    assert_int_equal(truncate(path, 3), 0);
    wpk_fixture_say(f, w, &get);
    assert_int_equal(f->workers[w].err, WPK_ECORRUPT);
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_ARTIFACTS_CORRUPT, 0) - before, 1);
    assert_true(wpk_fixture_upload(f, w, work, "code"));
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_ARTIFACTS_CORRUPT, 0) - before, 1);
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

static void put_upload(struct wpk_fixture *f, int worker, wpk_work_id work, const char *code)
{
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .made_for = work,
                                  .bytes = code,
                                  .bytes_size = strlen(code)};
    wpk_crypto_sha256_hex(code, strlen(code), message.sha256);
    wpk_fixture_put(f, worker, &message);
}

/* Before the first has its row the second one is refused; the same one again needs no room. */
static void uploads_on_the_way_count(void **state)
{
    struct wpk_fixture *f = *state;
    f->artifact_bytes_max = 8;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB_OF_THREE("3600"));
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    const struct wpk_fixture_worker *worker = &f->workers[w];
    wpk_fixture_take(f, w);
    assert_int_equal(wpk_fixture_poll(f, w, 1), 1);
    put_upload(f, w, worker->held[0].id, "12345");
    put_upload(f, w, worker->held[1].id, "67890");
    assert_int_equal(worker->told, WPK_MESSAGE_ERROR);
    assert_int_equal(wpk_executor_commit(f->executor, NULL), WPK_OK);
    assert_int_equal(worker->told, WPK_MESSAGE_ACK);
    assert_true(wpk_fixture_upload(f, w, worker->held[0].id, "12345"));
    assert_int_equal(wpk_history_artifact_bytes(f->store), 5);
}

/* The same artifact again and again: it needs no room in the quota, but memory. */
static void one_worker_has_so_many_on_the_way(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB_OF_THREE("3600"));
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    int v = wpk_fixture_join(f, "v", WPK_WORKER_ROLES_ALL);
    const struct wpk_fixture_worker *worker = &f->workers[w];
    wpk_fixture_take(f, w);
    wpk_fixture_take(f, v);
    for (int i = 0; i < 4; i++) {
        put_upload(f, w, worker->held[0].id, "12345");
        assert_false(worker->answered);
    }
    put_upload(f, w, worker->held[0].id, "12345");
    assert_int_equal(worker->told, WPK_MESSAGE_ERROR);
    assert_int_equal(worker->err, WPK_EBUSY);
    assert_true(worker->retry_ms > 0);
    put_upload(f, v, f->workers[v].held[0].id, "67890");
    assert_false(f->workers[v].answered); /* it is written */
    assert_int_equal(wpk_executor_commit(f->executor, NULL), WPK_OK);
    assert_int_equal(f->workers[v].told, WPK_MESSAGE_ACK);
    assert_true(wpk_fixture_upload(f, w, worker->held[0].id, "12345"));
}

/* Start, and join workers that each have a work item of a job of their own. */
static void start_with_workers(struct wpk_fixture *f, int count)
{
    wpk_fixture_start(f);
    for (int w = 0; w < count; w++) {
        char name[16];
        char job[512];
        snprintf(name, sizeof name, "w%d", w);
        snprintf(job, sizeof job, WPK_FIXTURE_JOB("%d"), w);
        wpk_fixture_request(f, "POST", "/v1/jobs", job);
        assert_int_equal(wpk_fixture_join(f, name, WPK_WORKER_ROLES_ALL), w);
        wpk_fixture_take(f, w);
    }
}

/* 64 MiB of five workers, none of whom has too many. */
static void all_workers_have_so_much_on_the_way(void **state)
{
    struct wpk_fixture *f = *state;
    start_with_workers(f, 5);
    char *bytes = calloc(1, WPK_ARTIFACT_SIZE_MAX);
    assert_non_null(bytes);
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .sha256 = WPK_FIXTURE_HASH,
                                  .bytes = bytes,
                                  .bytes_size = WPK_ARTIFACT_SIZE_MAX};
    for (int i = 0; i < 17; i++) {
        message.made_for = f->workers[i / 4].held[0].id;
        wpk_fixture_put(f, i / 4, &message);
        assert_int_equal(f->workers[i / 4].answered, i == 16);
    }
    assert_int_equal(f->workers[4].err, WPK_EBUSY);
    assert_int_equal(f->workers[4].retry_ms, 1000);
    free(bytes);
}

/* 256 small ones, four of each worker. */
static void all_workers_have_so_many_on_the_way(void **state)
{
    struct wpk_fixture *f = *state;
    start_with_workers(f, 65);
    for (int i = 0; i < 257; i++) {
        put_upload(f, i / 4, f->workers[i / 4].held[0].id, "12345");
        assert_int_equal(f->workers[i / 4].answered, i == 256);
    }
    assert_int_equal(f->workers[64].err, WPK_EBUSY);
    assert_int_equal(f->workers[64].retry_ms, 1000);
}

/* An upload of a hostile worker is refused, and none of it is written. */
static void what_is_refused_leaves_no_file(void **state)
{
    struct wpk_fixture *f = *state;
    char path[96];
    wpk_work_id work;
    int w = start_with_work(f, &work);
    const wpk_work_id another = {work.search, WPK_WORK_TRIAL, 7};
    assert_false(wpk_fixture_upload(f, w, another, "code"));
    assert_int_equal(f->workers[w].err, WPK_EINVAL);
    wpk_fixture_request(f, "POST", "/v1/workers:quarantine", "{\"name\":\"w\"}");
    assert_int_equal(f->status, 200);
    assert_false(wpk_fixture_upload(f, w, work, "code"));
    assert_int_equal(f->workers[w].err, WPK_EACCES);
    snprintf(path, sizeof path, "%s/artifacts", f->directory);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* An upload whose file takes for ever: others' transactions go on, and nobody is told that it is
 * there. */
static void a_file_that_hangs_holds_nobody_up(void **state)
{
    struct wpk_fixture *f = *state;
    f->threads = 1;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    assert_int_equal(f->status, 201);
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(f, w, 1), 1);
    const struct wpk_fixture_worker *worker = &f->workers[w];
    atomic_store(&hanging, true);
    put_upload(f, w, worker->held[0].id, "code");
    int status = wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("6"));
    bool acknowledged = worker->answered;
    atomic_store(&hanging, false);
    assert_int_equal(status, 201);
    assert_false(acknowledged);
    for (int i = 0; !worker->answered && i < 30000; i++) {
        (void)wpk_fixture_turn(f);
    }
    assert_int_equal(worker->told, WPK_MESSAGE_ACK);
}

/* Uploads of an earlier session count as well: a worker can begin sessions at will. */
static void another_session_has_no_more_on_the_way(void **state)
{
    struct wpk_fixture *f = *state;
    f->threads = 1;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    struct wpk_fixture_worker *worker = &f->workers[w];
    assert_int_equal(wpk_fixture_poll(f, w, 1), 1);
    uint64_t session = worker->session;
    atomic_store(&hanging, true);
    for (int i = 0; i < 4; i++) {
        put_upload(f, w, worker->held[0].id, "code");
    }
    worker->hello.roles = WPK_WORKER_BUILDS; /* another hello is another session */
    wpk_err joined = (wpk_err)wpk_fixture_hello(f, w);
    wpk_fixture_poll(f, w, 0); /* it still holds its work item */
    put_upload(f, w, worker->held[0].id, "code");
    bool refused = worker->answered && worker->err == WPK_EBUSY;
    atomic_store(&hanging, false);
    assert_int_equal(joined, WPK_OK);
    assert_true(worker->session != session);
    assert_true(refused);
}

/* Open the pipe to write, once there is somebody who reads it. */
static int open_to_write(const char *pipe)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    int fd = -1;
    for (int i = 0; fd < 0 && i < 30000; i++) { /* until there is a reader */
        fd = open(pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        nanosleep(&moment, NULL);
    }
    assert_true(fd >= 0);
    return fd;
}

/* A read that finds its file damaged, and an upload that has replaced that before the loop hears of
 * it: the artifact is there. */
static void a_file_that_is_replaced_while_it_is_read(void **state)
{
    struct wpk_fixture *f = *state;
    struct wpk_message get = {.kind = WPK_MESSAGE_GET_ARTIFACT};
    char path[192];
    f->threads = 1;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    int reader = wpk_fixture_join(f, "reader", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(f, w, 1), 1);
    const wpk_work_id work = f->workers[w].held[0].id;
    assert_true(wpk_fixture_upload(f, w, work, "code"));
    wpk_crypto_sha256_hex("code", 4, get.sha256);
    snprintf(path, sizeof path, "%s/artifacts/%.2s/%s.so", f->directory, get.sha256, get.sha256);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    wpk_fixture_put(f, reader, &get);
    int pipe = open_to_write(path); /* the reader waits for it to say something */
    assert_int_equal(unlink(path), 0);
    assert_true(wpk_fixture_upload(f, w, work, "code"));
    assert_false(f->workers[reader].answered);
    close(pipe);
    for (int i = 0; !f->workers[reader].answered && i < 30000; i++) {
        (void)wpk_fixture_turn(f);
    }
    assert_int_equal(f->workers[reader].told, WPK_MESSAGE_ARTIFACT);
    assert_true(wpk_history_has_artifact(wpk_executor_reader(f->executor), get.sha256));
}

/* A job is done, and its kernel is served: of one artifact, at `path`. Returns its worker. */
static int end_a_job(struct wpk_fixture *f, char path[192])
{
    char sha256[WPK_SHA256_HEX_SIZE];
    wpk_crypto_sha256_hex("code", 4, sha256);
    snprintf(path, 192, "%s/artifacts/%.2s/%s.so", f->directory, sha256, sha256);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    wpk_fixture_take(f, w);
    assert_true(wpk_fixture_upload(f, w, f->workers[w].held[0].id, "code"));
    wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5);
    assert_int_equal(wpk_fixture_poll(f, w, 1), 1);
    assert_int_equal(f->workers[w].held[0].id.kind, WPK_WORK_VERIFY);
    wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5);
    for (int i = 0; wpk_executor_coordinator(f->executor)->live_count > 0; i++) {
        assert_in_range(i, 0, 30000);
        (void)wpk_fixture_turn(f);
    }
    return w;
}

/* The same job again has its answer from the history, while its file is there; else it is made
 * anew. */
static void a_search_whose_result_has_lost_its_file(void **state)
{
    struct wpk_fixture *f = *state;
    char path[192];
    wpk_fixture_start(f);
    int w = end_a_job(f, path);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    assert_int_equal(f->status, 201);
    assert_int_equal(wpk_executor_coordinator(f->executor)->live_count, 0);
    wpk_fixture_tick(f, 1); /* the search leaves the state */
    assert_int_equal(wpk_fs_write(path, "else", 4, 0644, NULL), WPK_OK);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    assert_int_equal(f->status, 201);
    assert_int_equal(wpk_executor_coordinator(f->executor)->live_count, 1);
    assert_int_equal(wpk_fixture_poll(f, w, 1), 1);
}

/* Searches that are not opened yet. */
static uint32_t count_closed(const struct wpk_fixture *f)
{
    const struct wpk_coordinator *c = wpk_executor_coordinator(f->executor);
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->search_count; i++) {
        count += c->searches[i]->id == 0;
    }
    return count;
}

#define SEARCHES 12 /* more than are checked at a time */

/* The file of a served kernel that takes for ever to be read, and searches of its problem that are
 * opened: others' transactions go on. */
static void a_search_that_waits_for_a_file_holds_nobody_up(void **state)
{
    struct wpk_fixture *f = *state;
    char path[192];
    char job[512];
    int status = 201;
    f->threads = 1;
    wpk_fixture_start(f);
    int w = end_a_job(f, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    for (int i = 0; i < SEARCHES && status == 201; i++) {
        snprintf(job, sizeof job, WPK_FIXTURE_JOB("%d"), 6 + i);
        status = wpk_fixture_request(f, "POST", "/v1/jobs", job);
    }
    int other = wpk_fixture_request(f, "POST", "/v1/jobs",
                                    "{\"name\":\"other\",\"ops\":[{\"name\":\"a\","
                                    "\"op\":\"Y[i] = X[i] + 1\",\"tensors\":{"
                                    "\"X\":\"f32[8]\",\"Y\":\"f32[8]\"}}]}");
    uint32_t taken = wpk_fixture_poll(f, w, 1);
    uint32_t closed = count_closed(f);
    int pipe = open_to_write(path); /* the reader waits for it to say something */
    assert_int_equal(unlink(path), 0);
    close(pipe);
    assert_int_equal(status, 201);
    assert_int_equal(other, 201);
    assert_int_equal(taken, 1); /* of the other */
    assert_int_equal(closed, SEARCHES);
    for (int i = 0; count_closed(f) > 0; i++) {
        assert_in_range(i, 0, 30000);
        (void)wpk_fixture_turn(f);
    }
}

/* The input of one turn is bounded, below the bound of its memory. */
static void one_turn_takes_in_so_much(void **state)
{
    struct wpk_fixture *f = *state;
    int count = 0;
    wpk_work_id work;
    int w = start_with_work(f, &work);
    char *bytes = calloc(1, WPK_ARTIFACT_SIZE_MAX);
    assert_non_null(bytes);
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT,
                                  .made_for = work,
                                  .sha256 = WPK_FIXTURE_HASH,
                                  .bytes = bytes,
                                  .bytes_size = WPK_ARTIFACT_SIZE_MAX};
    for (; count < 64 && !wpk_executor_is_full(f->executor); count++) {
        wpk_fixture_put(f, w, &message);
    }
    assert_in_range(count, 2, 17); /* 64 MiB of frames */
    assert_int_equal(wpk_executor_commit(f->executor, NULL), WPK_OK);
    assert_false(wpk_executor_is_full(f->executor));
    free(bytes);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, wpk_fixture_set_up, wpk_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        CASE(an_artifact_that_cannot_be_written),
        CASE(an_artifact_whose_file_is_gone),
        CASE(a_damaged_file_is_counted_once),
        CASE(uploads_on_the_way_count),
        CASE(one_worker_has_so_many_on_the_way),
        CASE(all_workers_have_so_much_on_the_way),
        CASE(all_workers_have_so_many_on_the_way),
        CASE(what_is_refused_leaves_no_file),
        CASE(a_file_that_hangs_holds_nobody_up),
        CASE(another_session_has_no_more_on_the_way),
        CASE(a_file_that_is_replaced_while_it_is_read),
        CASE(a_search_whose_result_has_lost_its_file),
        CASE(a_search_that_waits_for_a_file_holds_nobody_up),
        CASE(one_turn_takes_in_so_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
