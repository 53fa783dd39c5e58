/* SPDX-License-Identifier: Apache-2.0 */
/* A store that fails under a wpkd at work, and is well again later: with threads, as it is used,
 * and without. Nothing is promised meanwhile, reads go on, and no result is lost. */
#include "coordinator/store/history.h"

#include "common/crypto.h"
#include "common/log.h"
#include "tests/rig.h"
#include "tests/sim/faulty_vfs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 10000

static bool was_refused(const struct wpk_rig *f, uint32_t peer)
{
    for (uint32_t i = 0; i < f->refused_count && i < WPK_RIG_REFUSED_MAX; i++) {
        if (f->refused[i] == peer) {
            return true;
        }
    }
    return false;
}

static int set_up(void **state)
{
    char code[WPK_ID_MAX]; /* that results name */
    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    assert_int_equal(wpk_rig_set_up(state), 0);
    struct wpk_rig *f = *state;
    wpk_crypto_sha256_hex("code", 4, code);
    wpk_store_begin(f->store);
    wpk_history_put_artifact(f->store, code, 4);
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
    wpk_rig_start(f);
    return 0;
}

static int tear_down(void **state)
{
    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    return wpk_rig_tear_down(state);
}

/* One turn of the loop. */
static wpk_err turn(struct wpk_rig *f)
{
    struct timespec pause = {0, 2000000};
    wpk_performer_poll(f->performer);
    wpk_err err = wpk_performer_commit(f->performer, NULL);
    if (f->threads > 0) {
        nanosleep(&pause, NULL);
    }
    return err;
}

/* Ask for it, and wait for the answer; its status. */
static int request(struct wpk_rig *f, const char *method, const char *path, const char *body)
{
    wpk_rig_begin_request(f, method, path, body);
    for (int i = 0; f->status == 0 && i < PATIENCE_MS / 2; i++) {
        (void)!turn(f);
    }
    return f->status;
}

static void send_message(struct wpk_rig *f, const struct wpk_message *message)
{
    struct wpk_net_address address = {.peer = ++f->peer, .is_local = true};
    struct wpk_buf frame = {0};
    assert_int_equal(wpk_message_encode(message, &frame), WPK_OK);
    wpk_performer_frame(f->performer, &address, frame.data, frame.size, 99);
    wpk_buf_fini(&frame);
}

/* Send it, and wait for the answer, which the caller frees. */
static void ask(struct wpk_rig *f, const struct wpk_message *message, struct wpk_message *back)
{
    send_message(f, message);
    for (int i = 0; f->reply_peer != f->peer && i < PATIENCE_MS / 2; i++) {
        (void)!turn(f);
    }
    assert_int_equal(f->reply_peer, f->peer);
    memset(back, 0, sizeof *back);
    assert_int_equal(wpk_message_decode(f->reply.data, f->reply.size, back, NULL), WPK_OK);
}

static void say_hello(struct wpk_rig *f, struct wpk_message *back)
{
    struct wpk_hello hello = wpk_rig_worker("w");
    struct wpk_message message = {
        .kind = WPK_MESSAGE_HELLO, .version = WPK_PROTOCOL_VERSION, .hello = &hello};
    ask(f, &message, back);
}

static uint64_t join(struct wpk_rig *f)
{
    struct wpk_message back;
    say_hello(f, &back);
    assert_int_equal(back.kind, WPK_MESSAGE_WELCOME);
    uint64_t session = back.session;
    wpk_message_fini(&back);
    return session;
}

static struct wpk_message make_poll(uint64_t session)
{
    return (struct wpk_message){.kind = WPK_MESSAGE_POLL,
                                .version = WPK_PROTOCOL_VERSION,
                                .session = session,
                                .want = 1,
                                .wait_ms = 60000};
}

static struct wpk_work take_work(struct wpk_rig *f, uint64_t session, char candidate[256])
{
    struct wpk_message back;
    struct wpk_message poll = make_poll(session);
    ask(f, &poll, &back);
    assert_int_equal(back.kind, WPK_MESSAGE_WORK);
    assert_int_equal(back.work_count, 1);
    struct wpk_work work = back.work[0];
    snprintf(candidate, 256, "%s", back.work[0].candidate);
    snprintf(f->anchor, sizeof f->anchor, "%s", work.anchor_sha256);
    work.anchor_sha256 = f->anchor;
    wpk_message_fini(&back);
    return work;
}

static struct wpk_result make_result(const struct wpk_work *work)
{
    struct wpk_result result = {.id = work->id,
                                .attempt = 1,
                                .lease = work->lease,
                                .failure = "",
                                .record = {.timing = {.median_ns = 5,
                                                      .min_ns = 5,
                                                      .sample_count = 1,
                                                      .repeat_count = 1,
                                                      .sample_ns = {5}},
                                           .anchor_ns = 5,
                                           .anchor_ratio = 1}};
    snprintf(result.record.anchor_sha256, WPK_ID_MAX, "%s", work->anchor_sha256);
    wpk_crypto_sha256_hex("code", 4, result.record.artifact_sha256);
    return result;
}

static int64_t count(struct wpk_rig *f, const char *sql)
{
    struct wpk_store *reader = NULL;
    assert_int_equal(wpk_store_open_reader(f->directory, f->time, &reader, NULL), WPK_OK);
    struct wpk_rows *rows = wpk_store_query(reader, sql, "");
    int64_t value = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : -1;
    wpk_rows_close(rows);
    wpk_store_close(reader);
    return value;
}

static void wait_until(struct wpk_rig *f, wpk_err wanted)
{
    wpk_err err = wpk_performer_degraded(f->performer, NULL);
    for (int i = 0; err != wanted && i < PATIENCE_MS / 2; i++) {
        if (f->threads == 0) {
            wpk_clock_fake_advance(&f->clock, 50 * WPK_NS_PER_MS);
        }
        /* As the service does for its watchdog: what goes on coming must not keep it ill. */
        if (i % 50 == 49) {
            wpk_performer_probe(f->performer);
        }
        err = turn(f);
    }
    assert_int_equal(err, wanted);
}

static void check_degraded(struct wpk_rig *f)
{
    struct wpk_message back;
    struct wpk_diag diag = {0};
    say_hello(f, &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ERROR);
    assert_int_equal(back.err, WPK_ENOSPC);
    assert_true(back.retry_ms > 0);
    wpk_message_fini(&back);
    assert_int_equal(request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5")), 507);
    assert_int_equal(request(f, "GET", "/v1/jobs", ""), 200);
    assert_non_null(strstr(wpk_buf_text(&f->body), "\"name\":\"one\""));
    assert_int_equal(wpk_performer_degraded(f->performer, &diag), WPK_ENOSPC);
    assert_non_null(strstr(diag.text, "full"));
}

static void a_result_on_a_full_disk(void **state)
{
    struct wpk_rig *f = *state;
    char first[256];
    char second[256];
    struct wpk_message back;
    assert_int_equal(request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5")), 201);
    uint64_t session = join(f);
    struct wpk_work work = take_work(f, session, first);
    struct wpk_result result = make_result(&work);
    struct wpk_message message = {.kind = WPK_MESSAGE_RESULTS,
                                  .version = WPK_PROTOCOL_VERSION,
                                  .session = session,
                                  .results = &result,
                                  .result_count = 1};
    struct wpk_message poll = make_poll(session);
    send_message(f, &poll); /* waits: there is no more work */
    wpk_faulty_vfs_set(&(struct wpk_faults){.write_fails = 1, .lasting = true});
    send_message(f, &message);
    wait_until(f, WPK_ENOSPC);
    /* Not acknowledged; and nobody waits for an answer that will not come. */
    assert_true(was_refused(f, f->peer));
    assert_true(was_refused(f, f->peer - 1));
    assert_int_equal(count(f, "SELECT COUNT(*) FROM trial WHERE outcome <> ''"), 0);
    check_degraded(f);

    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    wait_until(f, WPK_OK);
    assert_int_equal(f->rebuilt, 1);
    /* It does not know its workers any more: they come again, and bring what they have. */
    session = join(f);
    work = take_work(f, session, second);
    assert_string_equal(second, first);
    result = make_result(&work);
    message.session = session;
    ask(f, &message, &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ACK);
    assert_int_equal(back.acks[0], WPK_ACK_RECORDED);
    wpk_message_fini(&back);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM trial WHERE outcome = 'ok'"), 1);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM measurement"), 1);
}

/* Whatever operation it is that fails: a job is stored and said to be, or neither. */
static void a_job_while_something_fails(void **state)
{
    struct wpk_rig *f = *state;
    int accepted = 0;
    int refused = 0;
    for (uint64_t n = 1; n <= 12; n++) {
        struct wpk_faults faults = {.write_fails = n % 2 == 0 ? n / 2 : 0,
                                    .sync_fails = n % 2 == 1 ? n / 2 + 1 : 0};
        wpk_faulty_vfs_set(&faults);
        int status = request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
        assert_true(status == 201 || status == 507);
        accepted += status == 201;
        refused += status == 507;
        wpk_faulty_vfs_set(&(struct wpk_faults){0});
        wait_until(f, WPK_OK);
        assert_int_equal(count(f, "SELECT COUNT(*) FROM job"), accepted);
        assert_int_equal(wpk_coordinator_job_count(wpk_performer_coordinator(f->performer)),
                         accepted);
    }
    assert_true(accepted > 0);
    assert_true(refused > 1);
}

/* The end comes with batches on their way: what was answered is stored. */
static void the_end_with_work_under_way(void **state)
{
    struct wpk_rig *f = *state;
    wpk_faulty_vfs_set(&(struct wpk_faults){.sync_ms = 50});
    for (int i = 0; i < 5; i++) {
        wpk_rig_begin_request(f, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
        assert_int_equal(wpk_performer_commit(f->performer, NULL), WPK_OK);
    }
    wpk_performer_free(f->performer);
    f->performer = NULL;
    assert_int_equal(f->status, 201);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM job"), 5);
}

int main(void)
{
    static int none = 0;
    static int two = 2;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("performer", WPK_LOG_ERROR, null);
    wpk_faulty_vfs_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(a_result_on_a_full_disk, set_up, tear_down, &none),
        cmocka_unit_test_prestate_setup_teardown(a_result_on_a_full_disk, set_up, tear_down, &two),
        cmocka_unit_test_prestate_setup_teardown(a_job_while_something_fails, set_up, tear_down,
                                                 &none),
        cmocka_unit_test_prestate_setup_teardown(a_job_while_something_fails, set_up, tear_down,
                                                 &two),
        cmocka_unit_test_prestate_setup_teardown(the_end_with_work_under_way, set_up, tear_down,
                                                 &two),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
