/* SPDX-License-Identifier: Apache-2.0 */
/* Something that the store refuses, though its disk is well. */
#include "coordinator/store/history.h"
#include "tests/rig.h"

#include "common/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define REFUSE(what)                                                                               \
    "CREATE TRIGGER refuse AFTER " what " BEGIN SELECT RAISE(ABORT, 'a bad row'); END"

static void refuse(struct wpk_rig *rig, const char *trigger)
{
    assert_int_equal(wpk_store_execute(rig->store, trigger, NULL), WPK_OK);
}

static uint32_t job_count(const struct wpk_rig *rig)
{
    return wpk_coordinator_job_count(wpk_performer_coordinator(rig->performer));
}

static void expect(struct wpk_rig *rig, const char *sql, const char *want)
{
    struct wpk_rows *rows = wpk_store_query(rig->store, sql, "");
    assert_true(wpk_rows_next(rows));
    assert_string_equal(wpk_rows_text(rows, 0), want);
    wpk_rows_close(rows);
}

static struct wpk_message make_results(uint64_t session, struct wpk_result *results, uint32_t count)
{
    return (struct wpk_message){
        .kind = WPK_MESSAGE_RESULTS, .session = session, .results = results, .result_count = count};
}

static struct wpk_result make_result(wpk_work_id id)
{
    return (struct wpk_result){.id = id,
                               .attempt = 1,
                               .failure = "",
                               .record = {.artifact_sha256 = WPK_RIG_HASH,
                                          .timing = {.median_ns = 5,
                                                     .min_ns = 5,
                                                     .sample_count = 1,
                                                     .repeat_count = 1,
                                                     .sample_ns = {5}}}};
}

/* What its results name is there. */
static void put_code(struct wpk_rig *rig)
{
    wpk_store_begin(rig->store);
    wpk_history_put_artifact(rig->store, WPK_RIG_HASH, 4);
    assert_int_equal(wpk_store_commit(rig->store, NULL), WPK_OK);
}

/* Its search fails, with the reason. The worker is told to come again, and finds the other job's
 * work, which goes on to its end. */
static void a_result_that_is_refused(void **state)
{
    struct wpk_rig *rig = *state;
    struct wpk_message back = {0};
    char candidate[256];
    put_code(rig);
    wpk_rig_start(rig);
    wpk_rig_request(rig, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
    uint64_t session = wpk_rig_hello(rig, "", WPK_OK);
    wpk_work_id bad = wpk_rig_take_work(rig, session, candidate);
    wpk_rig_request(rig, "POST", "/v1/jobs", WPK_RIG_JOB("6"));
    refuse(rig, REFUSE("UPDATE ON trial"));
    struct wpk_result result = make_result(bad);
    struct wpk_message results = make_results(session, &result, 1);
    wpk_rig_ask(rig, &results, &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ERROR);
    assert_true(back.retry_ms > 0);
    wpk_message_fini(&back);
    assert_int_equal(wpk_performer_degraded(rig->performer, NULL), WPK_OK);
    session = wpk_rig_hello(rig, "", WPK_OK);
    assert_int_equal(job_count(rig), 1);
    expect(rig, "SELECT group_concat(state) FROM (SELECT state FROM job ORDER BY number)",
           "failed,queued");
    expect(rig,
           "SELECT o.reason LIKE '%cannot be written%a bad row%' FROM job_op o"
           " WHERE o.phase = 'failed'",
           "1");
    /* It holds the result still, and says so: it is told that nobody wants it. */
    results = make_results(session, &result, 1);
    wpk_rig_ask(rig, &results, &back);
    assert_int_equal(back.kind, WPK_MESSAGE_ACK);
    wpk_message_fini(&back);
    assert_int_equal(wpk_performer_degraded(rig->performer, NULL), WPK_OK);
    assert_int_equal(wpk_store_execute(rig->store, "DROP TRIGGER refuse", NULL), WPK_OK);
    wpk_rig_result(rig, session, wpk_rig_take_work(rig, session, candidate), false, WPK_RIG_HASH);
    assert_int_equal(job_count(rig), 1); /* its winner is to be verified */
    expect(rig, "SELECT outcome FROM trial WHERE provider <> 'plain'", "ok");
}

/* Nothing that the state knows stands on it: who asked is told, and workers hear nothing of it. */
static void a_change_that_is_refused(void **state)
{
    struct wpk_rig *rig = *state;
    char candidate[256];
    put_code(rig);
    wpk_rig_start(rig);
    uint64_t session = wpk_rig_hello(rig, "", WPK_OK);
    refuse(rig, REFUSE("INSERT ON token"));
    wpk_rig_request(rig, "POST", "/v1/tokens", "{\"owner\":\"anna\",\"roles\":[\"read\"]}");
    assert_int_equal(rig->status, 507);
    assert_non_null(strstr(wpk_buf_text(&rig->body), "a bad row"));
    wpk_rig_request(rig, "POST", "/v1/jobs", WPK_RIG_JOB("5"));
    assert_int_equal(rig->status, 201);
    wpk_rig_result(rig, session, wpk_rig_take_work(rig, session, candidate), false, WPK_RIG_HASH);
    expect(rig,
           "SELECT COUNT(*) || (SELECT outcome FROM trial WHERE provider <> 'plain') FROM token",
           "0ok");
}

int main(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("performer_turn", WPK_LOG_ERROR, null);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_result_that_is_refused, wpk_rig_set_up,
                                        wpk_rig_tear_down),
        cmocka_unit_test_setup_teardown(a_change_that_is_refused, wpk_rig_set_up,
                                        wpk_rig_tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(null);
    return failed;
}
