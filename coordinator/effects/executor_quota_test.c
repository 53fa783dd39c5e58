/* SPDX-License-Identifier: Apache-2.0 */
/* The artifacts' quota: what stays, what goes, and when builds are held. */
#include "tests/fixture.h"

#include "common/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* An artifact of 5 bytes that nobody needs. */
static void put_row(struct wpk_fixture *f)
{
    wpk_store_begin(f->store);
    wpk_history_put_artifact(f->store, WPK_FIXTURE_HASH, 5);
    assert_int_equal(wpk_store_commit(f->store, NULL), WPK_OK);
}

/* However long ago it was built, and however little room there is. */
static void what_a_live_search_may_end_with_stays(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB("5"));
    int w = wpk_fixture_join(f, "w", WPK_WORKER_ROLES_ALL);
    wpk_fixture_take(f, w);
    assert_true(wpk_fixture_upload(f, w, f->workers[w].held[0].id, "best"));
    const char *best = f->workers[w].made;
    put_row(f);
    wpk_fixture_result(f, w, WPK_OUTCOME_OK, 5);
    wpk_executor_limit_artifacts(f->executor, 1, 4);
    wpk_fixture_tick(f, 2 * 3600);
    wpk_fixture_tick(f, 3);
    assert_int_equal(wpk_executor_coordinator(f->executor)->live_count, 1);
    assert_true(wpk_history_has_artifact(f->store, best));
    assert_false(wpk_history_has_artifact(f->store, WPK_FIXTURE_HASH));
}

/* "b" builds a candidate in two seconds. "r" runs, but does not poll: a baseline is open, too. */
static void build_one(struct wpk_fixture *f, const char *job)
{
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", job);
    assert_int_equal(f->status, 201);
    struct wpk_hello *runner = &f->workers[wpk_fixture_worker(f, "r")].hello;
    runner->roles = WPK_WORKER_RUNS;
    snprintf(runner->providers[1].name, sizeof runner->providers[1].name, "onednn");
    runner->provider_count = 2;
    assert_int_equal(wpk_fixture_hello(f, 0), WPK_OK);
    int b = wpk_fixture_join(f, "b", WPK_WORKER_BUILDS);
    wpk_fixture_take(f, b);
    wpk_fixture_tick(f, 2);
    assert_true(wpk_fixture_upload(f, b, f->workers[b].held[0].id, "built"));
    assert_int_equal(wpk_fixture_result(f, b, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    put_row(f);
}

/* True if the built artifact is still there two hours later, with a quota that nothing fits in. */
static bool stays_two_hours(struct wpk_fixture *f)
{
    wpk_fixture_tick(f, 2 * 3600); /* wpkd slept: no worker is lost */
    wpk_executor_limit_artifacts(f->executor, 1, 4);
    wpk_fixture_tick(f, 1);
    wpk_fixture_tick(f, 3);
    assert_int_equal(wpk_executor_coordinator(f->executor)->live_count, 1);
    assert_false(wpk_history_has_artifact(f->store, WPK_FIXTURE_HASH));
    return wpk_history_has_artifact(f->store, f->workers[1].made);
}

static void what_waits_for_its_run_stays(void **state)
{
    build_one(*state, WPK_FIXTURE_JOB_OF_THREE("3600"));
    assert_true(stays_two_hours(*state));
}

/* Else one owner's artifacts, which nobody is going to run, would hold the builds of all owners. */
static void what_no_worker_runs_goes(void **state)
{
    struct wpk_fixture *f = *state;
    build_one(f, WPK_FIXTURE_JOB_OF_THREE("3600"));
    struct wpk_event gone = {.kind = WPK_EVENT_GONE, .address = {.peer = f->workers[0].peer}};
    wpk_executor_step(f->executor, &gone);
    assert_false(stays_two_hours(f));
}

static void what_a_paused_job_has_built_goes(void **state)
{
    struct wpk_fixture *f = *state;
    build_one(f, WPK_FIXTURE_JOB_OF_THREE("3600"));
    assert_int_equal(wpk_fixture_request(f, "POST", "/v1/jobs/j0000000000000001:pause", ""), 200);
    assert_false(stays_two_hours(f));
}

static void what_is_not_run_in_time_goes(void **state)
{
    build_one(*state, WPK_FIXTURE_JOB_OF_THREE("1"));
    assert_false(stays_two_hours(*state));
}

/* One work item is leased to be built, and its artifact is uploaded. */
static void expect_refused(struct wpk_fixture *f, int worker, const char *code)
{
    const struct wpk_fixture_worker *self = &f->workers[worker];
    wpk_fixture_take(f, worker);
    assert_false(wpk_fixture_upload(f, worker, self->held[0].id, code));
    assert_int_equal(self->told, WPK_MESSAGE_ERROR);
    assert_int_equal(self->err, WPK_ENOSPC);
    assert_int_equal(self->retry_ms, 0); /* it need not come again */
    assert_non_null(strstr(self->text, "the artifacts have reached their quota of 8"));
}

/* Artifacts that wait for their run count in the quota and are not pruned: uploads above the quota
 * are refused, and nothing more is built, until a run has made room at once. Work whose upload was
 * refused is given back by its worker, and is no attempt. */
static void builds_wait_for_room(void **state)
{
    struct wpk_fixture *f = *state;
    f->artifact_bytes_max = 8;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB_OF_THREE("3600"));
    assert_int_equal(f->status, 201);
    int r = wpk_fixture_join(f, "w", WPK_WORKER_RUNS);
    int b = wpk_fixture_join(f, "b", WPK_WORKER_BUILDS);
    struct wpk_fixture_worker *builder = &f->workers[b];
    wpk_fixture_take(f, b);
    assert_int_equal(builder->held[0].stage, WPK_STAGE_BUILD);
    assert_true(wpk_fixture_upload(f, b, builder->held[0].id, "12345"));
    assert_int_equal(wpk_fixture_result(f, b, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    expect_refused(f, b, "67890");
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_ARTIFACTS_REFUSED, 0), 1);
    const wpk_work_id refused = builder->held[0].id;
    builder->held_count = 0;
    wpk_fixture_tick(f, 3);
    assert_int_equal(wpk_metric_gauged(WPK_GAUGE_BUILDS_HELD, 0), 1);
    assert_int_equal(wpk_metric_gauged(WPK_GAUGE_ARTIFACT_BYTES, 0), 5);
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_ARTIFACTS_EVICTED, 0), 0);
    assert_int_equal(wpk_fixture_poll(f, b, 1), 0);
    assert_false(builder->answered); /* it waits */
    wpk_fixture_take(f, r);
    assert_int_equal(wpk_fixture_result(f, r, WPK_OUTCOME_WRONG_RESULT, 0), WPK_ACK_RECORDED);
    assert_false(builder->answered);
    wpk_fixture_tick(f, 3); /* the one goes, and that is enough */
    assert_int_equal(wpk_history_artifact_bytes(f->store), 0);
    assert_int_equal(wpk_metric_gauged(WPK_GAUGE_BUILDS_HELD, 0), 0);
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_ARTIFACTS_EVICTED, 0), 1);
    assert_int_equal(builder->told, WPK_MESSAGE_WORK);
    assert_true(wpk_work_id_equal(builder->held[0].id, refused));
    assert_int_equal(builder->held[0].attempt, 1);
}

/* At 95 bytes of 100 builds go on, at 96 they wait, at 91 they still do. */
static void builds_wait_from_95_to_90_percent(void **state)
{
    struct wpk_fixture *f = *state;
    const char *const codes[] = {"%05d", "%090d", "%d"};
    char code[96];
    f->artifact_bytes_max = 100;
    wpk_fixture_start(f);
    wpk_fixture_request(f, "POST", "/v1/jobs", WPK_FIXTURE_JOB_OF_THREE("3600"));
    int r = wpk_fixture_join(f, "w", WPK_WORKER_RUNS);
    int b = wpk_fixture_join(f, "b", WPK_WORKER_BUILDS);
    for (int i = 0; i < 3; i++) {
        wpk_fixture_tick(f, 3);
        assert_int_equal(wpk_metric_gauged(WPK_GAUGE_BUILDS_HELD, 0), 0);
        wpk_fixture_take(f, b);
        snprintf(code, sizeof code, codes[i], i);
        assert_true(wpk_fixture_upload(f, b, f->workers[b].held[0].id, code));
        assert_int_equal(wpk_fixture_result(f, b, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    }
    for (int i = 0; i < 3; i++) {
        wpk_fixture_tick(f, 3);
        assert_int_equal(wpk_metric_gauged(WPK_GAUGE_BUILDS_HELD, 0), i < 2);
        assert_int_equal(wpk_fixture_poll(f, r, 1), 1);
        assert_int_equal(wpk_fixture_result(f, r, WPK_OUTCOME_WRONG_RESULT, 0), WPK_ACK_RECORDED);
    }
}

static void a_quota_that_is_lowered(void **state)
{
    struct wpk_fixture *f = *state;
    wpk_fixture_start(f);
    put_row(f);
    wpk_fixture_tick(f, 7200); /* old enough to go */
    assert_true(wpk_history_has_artifact(f->store, WPK_FIXTURE_HASH));
    wpk_executor_limit_artifacts(f->executor, 5, 4);
    wpk_fixture_tick(f, 1);
    assert_true(wpk_history_has_artifact(f->store, WPK_FIXTURE_HASH));
    wpk_executor_limit_artifacts(f->executor, 4, 4);
    wpk_fixture_tick(f, 1);
    assert_false(wpk_history_has_artifact(f->store, WPK_FIXTURE_HASH));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, wpk_fixture_set_up, wpk_fixture_tear_down)
    const struct CMUnitTest tests[] = {
        CASE(what_a_live_search_may_end_with_stays),
        CASE(what_waits_for_its_run_stays),
        CASE(what_no_worker_runs_goes),
        CASE(what_a_paused_job_has_built_goes),
        CASE(what_is_not_run_in_time_goes),
        CASE(builds_wait_for_room),
        CASE(builds_wait_from_95_to_90_percent),
        CASE(a_quota_that_is_lowered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
