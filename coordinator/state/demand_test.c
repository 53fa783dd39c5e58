/* SPDX-License-Identifier: Apache-2.0 */
/* Demand, from jobs that no worker has served to the last verification. */
#include "coordinator/state/demand.h"
#include "tests/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint32_t wanted(const struct wpk_fixture *s)
{
    struct wpk_demand demands[WPK_JOBS_LIVE_MAX];
    uint32_t count = wpk_demand_list(s->c, s->now_ns, demands);
    uint32_t workers = 0;
    for (uint32_t i = 0; i < count; i++) {
        workers += wpk_demand_workers(&demands[i]);
    }
    return workers;
}

static const struct wpk_job_entry *submit(struct wpk_fixture *s, uint32_t op, uint32_t op_count,
                                          uint32_t candidates)
{
    struct wpk_job_entry *job = wpk_fixture_job("a", op, op_count);
    job->candidates = candidates;
    const struct wpk_job_entry *entry = wpk_fixture_submit(s, job);
    assert_non_null(entry);
    return entry;
}

static void jobs_want_their_first_worker(void **state)
{
    struct wpk_demand demands[WPK_JOBS_LIVE_MAX];
    struct wpk_fixture *s = wpk_fixture_new();
    (void)state;
    assert_int_equal(wanted(s), 0);
    const struct wpk_job_entry *job = submit(s, 1, 1, 500);
    assert_int_equal(wpk_demand_list(s->c, s->now_ns, demands), 1);
    assert_int_equal(demands[0].item_count, WPK_ANCHORLESS_MAX);
    assert_string_equal(wpk_demand_device(&demands[0]), "cpu");
    assert_int_equal(wanted(s), 1);
    /* Of many operators those that are worked on count: a fleet that small works on two. */
    const struct wpk_job_entry *large = submit(s, 10, 40, 500);
    assert_int_equal(wpk_demand_list(s->c, s->now_ns, demands), 1);
    assert_int_equal(demands[0].item_count, 3 * WPK_ANCHORLESS_MAX);
    wpk_fixture_job_event(s, WPK_EVENT_PAUSE, large);
    assert_int_equal(wpk_demand_list(s->c, s->now_ns, demands), 1);
    assert_int_equal(demands[0].item_count, WPK_ANCHORLESS_MAX);
    wpk_fixture_job_event(s, WPK_EVENT_CANCEL, large);
    wpk_fixture_job_event(s, WPK_EVENT_CANCEL, job);
    assert_int_equal(wanted(s), 0);
    wpk_fixture_free(s);
}

static void devices_and_labels_are_apart(void **state)
{
    struct wpk_demand demands[WPK_JOBS_LIVE_MAX];
    struct wpk_fixture *s = wpk_fixture_new();
    (void)state;
    submit(s, 1, 1, 5);
    struct wpk_job_entry *job = wpk_fixture_job("a", 2, 1);
    snprintf(job->device, sizeof job->device, "cpu/some model/avx2");
    assert_non_null(wpk_fixture_submit(s, job));
    for (uint32_t op = 3; op < 6; op++) {
        job = wpk_fixture_job("a", op, 1);
        snprintf(job->labels[0].name, sizeof job->labels[0].name, "site");
        snprintf(job->labels[0].value, sizeof job->labels[0].value, op < 5 ? "a" : "b");
        job->label_count = 1;
        assert_non_null(wpk_fixture_submit(s, job));
    }
    assert_int_equal(wpk_demand_list(s->c, s->now_ns, demands), 4);
    assert_string_equal(wpk_demand_device(&demands[1]), "cpu/some model/avx2");
    assert_int_equal(demands[2].item_count, 2 * demands[3].item_count);
    wpk_fixture_free(s);
}

/* Lease and end one trial after the other, until no trial is left; return the last number. */
static uint32_t run_trials(struct wpk_fixture *s, int worker, const struct wpk_job_entry *job)
{
    uint32_t before = wanted(s);
    while (job->ops[0].phase == WPK_PHASE_SEARCHING || job->ops[0].phase == WPK_PHASE_WAITING) {
        assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
        bool is_final = s->workers[worker].held[0].id.kind == WPK_WORK_FINAL; /* a heat */
        enum wpk_ack ack = is_final ? wpk_fixture_final(s, worker)
                                    : wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 50);
        assert_int_equal(ack, WPK_ACK_RECORDED);
        assert_true(wanted(s) <= before + 1); /* a heat */
        before = wanted(s) < before ? wanted(s) : before;
    }
    return before;
}

static void it_falls_as_work_ends(void **state)
{
    struct wpk_fixture *s = wpk_fixture_new();
    (void)state;
    s->opened.anchor = (struct wpk_anchor){0};
    const struct wpk_job_entry *job = wpk_fixture_submit_one(s, 1, 41);
    int worker = wpk_fixture_join(s, "one", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wanted(s), 1); /* the rest waits for an anchor */
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    assert_int_equal(wanted(s), 1);
    assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_int_equal(wanted(s), 5); /* 40 are left */
    assert_int_equal(wpk_fixture_poll(s, worker, 3), 3);
    assert_int_equal(wanted(s), 5); /* what is leased occupies workers, too */
    while (s->workers[worker].held_count > 0) {
        assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 60), WPK_ACK_RECORDED);
    }
    assert_int_equal(run_trials(s, worker, job), 1);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_FINALS);
    assert_int_equal(wanted(s), 1);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    assert_int_equal(wpk_fixture_final(s, worker), WPK_ACK_RECORDED);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_VERIFYING);
    assert_int_equal(wanted(s), 1);
    while (job->state != WPK_JOB_DONE) {
        assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
        assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    }
    assert_int_equal(wanted(s), 0);
    wpk_fixture_free(s);
}

/* Operators of several jobs that ask the same share a search, which counts once. */
static void a_shared_search_counts_once(void **state)
{
    struct wpk_demand demands[WPK_JOBS_LIVE_MAX];
    struct wpk_fixture *s = wpk_fixture_new();
    (void)state;
    wpk_fixture_join(s, "one", WPK_WORKER_ROLES_ALL);
    submit(s, 1, 1, 5);
    assert_int_equal(wpk_demand_list(s->c, s->now_ns, demands), 1);
    uint32_t alone = demands[0].item_count;
    submit(s, 1, 1, 5);
    assert_int_equal(wpk_demand_list(s->c, s->now_ns, demands), 1);
    assert_int_equal(demands[0].item_count, alone);
    wpk_fixture_free(s);
}

/* A strategy that wants results before it goes on lets no more be in flight. */
static void strategies_limit_it(void **state)
{
    struct wpk_fixture *s = wpk_fixture_new();
    (void)state;
    s->refuse_at = 17;
    wpk_fixture_submit_one(s, 1, 400);
    int worker = wpk_fixture_join(s, "one", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_int_equal(wanted(s), 50);
    assert_int_equal(wpk_fixture_poll(s, worker, 30), 16);
    assert_int_equal(wpk_fixture_poll(s, worker, 30), 0);
    assert_int_equal(wanted(s), 2);
    assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 60), WPK_ACK_RECORDED);
    assert_int_equal(wanted(s),
                     2); /* the strategy may be asked again, which is no reason to grow */
    wpk_fixture_free(s);
}

static void nothing_is_wanted_while_nothing_is_leased(void **state)
{
    struct wpk_fixture *s = wpk_fixture_new();
    struct wpk_event hold = {.kind = WPK_EVENT_HOLD_BUILDS, .hold = true};
    struct wpk_event drain = {.kind = WPK_EVENT_DRAIN};
    (void)state;
    submit(s, 1, 1, 5);
    wpk_fixture_step(s, &hold);
    assert_int_equal(wanted(s), 0);
    hold.hold = false;
    wpk_fixture_step(s, &hold);
    assert_int_equal(wanted(s), 1);
    wpk_fixture_step(s, &drain);
    assert_int_equal(wanted(s), 0);
    wpk_fixture_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_want_their_first_worker),
        cmocka_unit_test(devices_and_labels_are_apart),
        cmocka_unit_test(it_falls_as_work_ends),
        cmocka_unit_test(a_shared_search_counts_once),
        cmocka_unit_test(strategies_limit_it),
        cmocka_unit_test(nothing_is_wanted_while_nothing_is_leased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
