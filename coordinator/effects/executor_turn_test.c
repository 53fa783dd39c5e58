/* SPDX-License-Identifier: Apache-2.0 */
/* Something that the store refuses, though its disk is well. */
#include "coordinator/store/history.h"
#include "tests/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define REFUSE(what)                                                                               \
    "CREATE TRIGGER refuse AFTER " what " BEGIN SELECT RAISE(ABORT, 'a bad row'); END"

static void refuse(struct wpk_fixture *f, const char *trigger)
{
    assert_int_equal(wpk_store_execute(f->store, trigger, NULL), WPK_OK);
}

static uint32_t job_count(const struct wpk_fixture *f)
{
    return wpk_executor_coordinator(f->executor)->live_count;
}

static void expect(struct wpk_fixture *f, const char *sql, const char *want)
{
    struct wpk_rows *rows = wpk_store_query(f->store, sql, "");
    assert_true(wpk_rows_next(rows));
    assert_string_equal(wpk_rows_text(rows, 0), want);
    wpk_rows_close(rows);
}

/* A worker whose results name an artifact that is there. */
static int join_with_code(struct wpk_fixture *f)
{
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    wpk_store_begin(f->store);
    wpk_history_put_artifact(f->store, WPK_FIXTURE_HASH, 4);
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
    snprintf(f->workers[w].made, WPK_ID_MAX, "%s", WPK_FIXTURE_HASH);
    return w;
}

/* The search of a refused result fails, with the reason. The worker is told to come again, and
 * finds the other job's work, which goes on to its end. */
static void a_result_that_is_refused(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    int w = join_with_code(f);
    struct wpk_fixture_worker *worker = &f->workers[w];
    wpk_fixture_take(f, w);
    const struct wpk_work bad = worker->held[0];
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("6"));
    refuse(f, REFUSE("UPDATE ON trial"));
    wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5);
    assert_int_equal(worker->told, WPK_MESSAGE_ERROR);
    assert_true(worker->retry_ms > 0);
    assert_int_equal(wpk_executor_degraded(f->executor, NULL), WPK_OK);
    assert_int_equal(wpk_fixture_hello(f, w), WPK_OK);
    assert_true(wpk_fixture_logged(" error fixture search_broken search=1 reason="));
    assert_int_equal(job_count(f), 1);
    expect(f, "SELECT group_concat(state) FROM (SELECT state FROM job ORDER BY number)",
           "failed,queued");
    expect(f,
           "SELECT o.reason LIKE '%cannot be written%a bad row%' FROM job_op o"
           " WHERE o.phase = 'failed'",
           "1");
    /* It holds the result still, and says so: it is told that nobody wants it. */
    worker->held[worker->held_count++] = bad;
    wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5);
    assert_int_equal(worker->told, WPK_MESSAGE_ACK);
    assert_int_equal(wpk_executor_degraded(f->executor, NULL), WPK_OK);
    assert_int_equal(wpk_store_execute(f->store, "DROP TRIGGER refuse", NULL), WPK_OK);
    wpk_fixture_take(f, w);
    wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5);
    assert_int_equal(job_count(f), 1); /* its winner is to be verified */
    expect(f, "SELECT outcome FROM trial WHERE provider <> 'plain'", "ok");
    /* Jobs that ask for the search fail at once, until the next start tries it again. */
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    wpk_fixture_request(f, "GET", "/v1/jobs", "");
    assert_non_null(strstr(wpk_buf_text(&f->body), "until wpkd is started again"));
    assert_int_equal(job_count(f), 1);
    wpk_executor_free(f->executor);
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    assert_int_equal(job_count(f), 2);
}

/* No part of the state depends on a refused token: the client is told, and workers go on. */
static void a_change_that_is_refused(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    int w = join_with_code(f);
    refuse(f, REFUSE("INSERT ON token"));
    wpk_fixture_request(f, "POST", "/v1/tokens", "{\"owner\":\"anna\",\"roles\":[\"read\"]}");
    assert_int_equal(f->status, 507);
    assert_non_null(strstr(wpk_buf_text(&f->body), "a bad row"));
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    assert_int_equal(f->status, 201);
    wpk_fixture_take(f, w);
    wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5);
    expect(f, "SELECT COUNT(*) || (SELECT outcome FROM trial WHERE provider <> 'plain') FROM token",
           "0ok");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_result_that_is_refused, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
        cmocka_unit_test_setup_teardown(a_change_that_is_refused, wpk_fixture_set_up,
                                        wpk_fixture_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
