/* SPDX-License-Identifier: Apache-2.0 */
/* A store that fails under a running wpkd and works again later; with threads, as in production,
 * and without. Meanwhile wpkd acknowledges no write and answers reads; no result is lost. */
#include "coordinator/store/history.h"

#include "common/log.h"
#include "tests/fixture.h"
#include "tests/sim/faulty_vfs.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 10000

static int set_up(void **state)
{
    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    assert_int_equal(wpk_fixture_set_up(state), 0);
    struct wpk_fixture *f = *state;
    wpk_store_begin(f->store);
    wpk_history_put_artifact(f->store, WPK_FIXTURE_HASH, 4); /* that results name */
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
    wpk_fixture_start(f);
    return 0;
}

static int tear_down(void **state)
{
    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    return wpk_fixture_tear_down(state);
}

static int64_t count(struct wpk_fixture *f, const char *sql)
{
    struct wpk_store *reader = NULL;
    assert_int_equal(wpk_store_open_reader(f->directory, f->time, &reader, NULL), WPK_OK);
    struct wpk_rows *rows = wpk_store_query(reader, sql, "");
    int64_t value = wpk_rows_next(rows) ? wpk_rows_int(rows, 0) : -1;
    wpk_rows_close(rows);
    wpk_store_close(reader);
    return value;
}

static void wait_until(struct wpk_fixture *f, wpk_err wanted)
{
    wpk_err err = wpk_executor_degraded(f->executor, NULL);
    for (int i = 0; err != wanted && i < PATIENCE_MS / 2; i++) {
        if (f->threads == 0) {
            wpk_clock_fake_advance(&f->clock, 50 * WPK_NS_PER_MS);
        }
        /* As the service does for its watchdog: what goes on coming must not keep it ill. */
        if (i % 50 == 49) {
            wpk_executor_probe(f->executor);
        }
        err = wpk_fixture_turn(f);
    }
    assert_int_equal(err, wanted);
}

static void check_degraded(struct wpk_fixture *f)
{
    struct wpk_diag diag = {0};
    int w = wpk_fixture_join(f, "another", WPK_WORKER_ROLES_ALL);
    assert_int_equal(f->workers[w].told, WPK_MESSAGE_ERROR);
    assert_int_equal(f->workers[w].err, WPK_ENOSPC);
    assert_true(f->workers[w].retry_ms > 0);
    assert_int_equal(wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5")), 507);
    assert_int_equal(wpk_fixture_request(f, "GET", "/v1/jobs", ""), 200);
    assert_non_null(strstr(wpk_buf_text(&f->body), "\"name\":\"one\""));
    assert_int_equal(wpk_executor_degraded(f->executor, &diag), WPK_ENOSPC);
    assert_non_null(strstr(diag.text, "full"));
}

static void a_result_on_a_full_disk(void **state)
{
    struct wpk_fixture *f = *state;
    char first[256];
    assert_int_equal(wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5")), 201);
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    struct wpk_fixture_worker *worker = &f->workers[w];
    snprintf(worker->made, WPK_ID_MAX, "%s", WPK_FIXTURE_HASH);
    wpk_fixture_take(f, w);
    snprintf(first, sizeof first, "%s", worker->candidate);
    struct wpk_message poll = {.kind = WPK_MESSAGE_POLL,
                               .want = 1,
                               .wait_ms = 60000,
                               .holding = &worker->held[0].id,
                               .holding_count = 1};
    wpk_fixture_put(f, w, &poll); /* waits: there is no more work */
    wpk_faulty_vfs_set(&(struct wpk_faults){.write_fails = 1, .lasting = true});
    assert_int_equal(wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5), WPK_ACK_COUNT);
    wait_until(f, WPK_ENOSPC);
    /* Not acknowledged; and nobody waits for an answer that will not come. */
    assert_int_equal(worker->delayed_count, 2);
    assert_int_equal(worker->err, WPK_ENOSPC);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM trial WHERE outcome = 'ok'"), 0);
    check_degraded(f);

    wpk_faulty_vfs_set(&(struct wpk_faults){0});
    wait_until(f, WPK_OK);
    assert_int_equal(f->rebuilt, 1);
    /* It does not know its workers any more: they come again, and bring what they have. */
    assert_int_equal(wpk_fixture_hello(f, w), WPK_OK);
    wpk_fixture_take(f, w);
    assert_string_equal(worker->candidate, first);
    assert_int_equal(wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5), WPK_ACK_RECORDED);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM trial WHERE outcome = 'ok'"), 1);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM measurement"), 1);
}

/* A job is both stored and acknowledged, or neither, whichever operation fails. */
static void a_job_while_something_fails(void **state)
{
    struct wpk_fixture *f = *state;
    int accepted = 0;
    int refused = 0;
    for (uint64_t n = 1; n <= 12; n++) {
        struct wpk_faults faults = {.write_fails = n % 2 == 0 ? n / 2 : 0,
                                    .sync_fails = n % 2 == 1 ? n / 2 + 1 : 0};
        wpk_faulty_vfs_set(&faults);
        int status = wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
        assert_true(status == 201 || status == 507);
        accepted += status == 201;
        refused += status == 507;
        wpk_faulty_vfs_set(&(struct wpk_faults){0});
        wait_until(f, WPK_OK);
        assert_int_equal(count(f, "SELECT COUNT(*) FROM job"), accepted);
        assert_int_equal(wpk_executor_coordinator(f->executor)->live_count, accepted);
    }
    assert_true(accepted > 0);
    assert_true(refused > 1);
}

/* The end comes with batches on their way: what was answered is stored. */
static void the_end_with_work_under_way(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_faulty_vfs_set(&(struct wpk_faults){.sync_ms = 50});
    for (int i = 0; i < 5; i++) {
        wpk_fixture_begin_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
        assert_int_equal(wpk_executor_commit(f->executor, NULL), WPK_OK);
    }
    wpk_executor_free(f->executor);
    f->executor = NULL;
    assert_int_equal(f->status, 201);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM job"), 5);
}

int main(void)
{
    static int none = 0;
    static int two = 2;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    wpk_log_init("executor", WPK_LOG_ERROR, null);
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
