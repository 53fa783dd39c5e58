/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: what they hold and lose, and admin states. */
#include "tests/fixture.h"

#include "common/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct wpk_work_item *item(struct wpk_fixture *s, uint32_t number)
{
    return wpk_asks_get(s->c->searches[0], number);
}

/* However much it wants. */
static void a_worker_has_64_leases(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 500);
    wpk_fixture_submit_one(s, 2, 500);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    while (wpk_fixture_poll(s, worker, 100) > 0) {
    }
    assert_int_equal(s->workers[worker].held_count, 64);
    assert_int_equal(s->c->lease_count, 64);
    wpk_fixture_free(s);
}

/* ---- loss */

static void who_is_silent_is_lost(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 3), 3);
    wpk_fixture_wait(s, 19000);
    assert_int_equal(s->c->worker_count, 1);
    wpk_fixture_wait(s, 2000);
    assert_int_equal(s->c->worker_count, 0);
    assert_int_equal(s->c->worker_class_count, 0);
    assert_int_equal(s->c->lease_count, 0);
    assert_int_equal(item(s, 0)->attempts, 1); /* what it was running is to blame, */
    assert_int_equal(item(s, 1)->attempts, 0); /* the rest is not */
    assert_true(
        wpk_fixture_logged(" blamed work=1/trial/0 lease=1 attempt=1 stage=whole worker=w\n"));
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_LEASES, 0), 3);
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_LEASES_EXPIRED, 0), 3);
    wpk_fixture_free(s);
}

/* A final of minutes: the worker shows that it lives, and that is enough. */
static void a_heartbeat_keeps_what_it_names(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 2), 2);
    for (int i = 0; i < 60; i++) {
        uint32_t told = s->workers[worker].told_count;
        wpk_fixture_wait(s, 5000);
        assert_int_equal(wpk_fixture_poll(s, worker, 0), 0);
        assert_int_equal(s->workers[worker].told_count, told + 1); /* at once */
    }
    assert_int_equal(s->c->lease_count, 2);
    /* A lease that the poll does not name was lost on the way, which counts as no attempt. */
    s->workers[worker].held_count = 1;
    wpk_fixture_poll(s, worker, 0);
    assert_int_equal(s->c->lease_count, 1);
    assert_int_equal(item(s, 1)->standing, WPK_STANDING_OPEN);
    assert_int_equal(item(s, 1)->attempts, 0);
    wpk_fixture_free(s);
}

/* Not the oldest, but the one that it said it was running. */
static void what_ran_is_blamed(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 3), 3);
    struct wpk_work first = s->workers[worker].held[0];
    s->workers[worker].held[0] = s->workers[worker].held[2]; /* says that it runs the third */
    s->workers[worker].held[2] = first;
    wpk_fixture_poll(s, worker, 0);
    wpk_fixture_lose(s, worker);
    assert_int_equal(item(s, 0)->attempts, 0);
    assert_int_equal(item(s, 2)->attempts, 1);
    wpk_fixture_free(s);
}

/* A worker names one lease as running for too long: that one is blamed, those that wait behind it
 * are not, and the worker gets no more work until it runs another one. */
static void what_runs_too_long_is_taken_back(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 3), 3);
    for (uint64_t ms = 0; ms < WPK_RUN_LIMIT_MS; ms += 5000) {
        assert_int_equal(wpk_fixture_poll(s, worker, 0), 0);
        assert_int_equal(s->c->workers[0]->lease_count, 3);
        wpk_fixture_wait(s, 5000);
    }
    wpk_fixture_poll(s, worker, 5);
    assert_int_equal(s->c->workers[0]->lease_count, 0);
    assert_int_equal(s->workers[worker].held_count, 3); /* it got none */
    assert_int_equal(item(s, 0)->attempts, 1);
    assert_int_equal(item(s, 1)->attempts, 0);
    assert_true(wpk_fixture_logged(" warn fixture worker_stuck work=1/trial/0 worker=w s="));
    wpk_fixture_wait(s, 2 * WPK_RUN_LIMIT_MS / 100);
    wpk_fixture_poll(s, worker, 0);
    assert_int_equal(item(s, 1)->standing, WPK_STANDING_OPEN);
    assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 1000), WPK_ACK_RECORDED);
    wpk_fixture_poll(s, worker, 0); /* it runs the second now */
    assert_int_equal(s->c->workers[0]->lease_count, 2);
    wpk_fixture_free(s);
}

static void three_deaths_and_it_is_abandoned(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    const struct wpk_job_entry *job = wpk_fixture_submit_one(s, 1, 1);
    for (int i = 0; i < WPK_ATTEMPTS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        int worker = wpk_fixture_join(s, name, WPK_WORKER_ROLES_ALL);
        assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
        assert_int_equal(s->workers[worker].held[0].attempt, i + 1);
        assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
        wpk_fixture_lose(s, worker);
    }
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 1);
    assert_true(wpk_fixture_logged(" abandoned work=1/trial/0\n"));
    assert_int_equal(job->state, WPK_JOB_FAILED);
    assert_string_equal(job->ops[0].reason,
                        "no implementation works: 1 of 1 candidates ended abandoned; the last "
                        "one: 3 workers were lost while they had it");
    wpk_fixture_free(s);
}

/* The first result wins, whoever brings it and whichever lease it names. */
static void results_of_expired_leases(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int slow = wpk_fixture_join(s, "slow", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, slow, 1), 1);
    struct wpk_work work = s->workers[slow].held[0];
    wpk_fixture_lose(s, slow);
    int fast = wpk_fixture_join(s, "fast", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, fast, 1), 1);
    assert_true(wpk_work_id_equal(s->workers[fast].held[0].id, work.id));
    assert_true(s->workers[fast].held[0].lease != work.lease);
    wpk_fixture_hello(s, slow);
    s->workers[slow].held[0] = work;
    s->workers[slow].held_count = 1;
    assert_int_equal(wpk_fixture_result(s, slow, WPK_OUTCOME_OK, 5), WPK_ACK_RECORDED);
    assert_int_equal(s->c->lease_count, 0);
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_RESULTS_REPEATED, 0), 0);
    assert_int_equal(wpk_fixture_result(s, fast, WPK_OUTCOME_OK, 6), WPK_ACK_ALREADY_RECORDED);
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_RESULTS_REPEATED, 0), 1);
    assert_int_equal(s->c->searches[0]->best[0].trial.median_ns, 5);
    s->workers[fast].held[0] = work;
    s->workers[fast].held[0].id.search = 99;
    s->workers[fast].held_count = 1;
    assert_int_equal(wpk_fixture_result(s, fast, WPK_OUTCOME_OK, 6), WPK_ACK_UNKNOWN);
    wpk_fixture_free(s);
}

static void say_hello_as(struct wpk_fixture *s, int count, bool is_local)
{
    struct wpk_hello hello = s->workers[wpk_fixture_worker(s, "w")].hello;
    for (int i = 0; i < count; i++) {
        struct wpk_message message = {.kind = WPK_MESSAGE_HELLO, .hello = &hello};
        struct wpk_event event = {.kind = WPK_EVENT_MESSAGE,
                                  .address = {.peer = 1, .is_local = is_local},
                                  .message = &message,
                                  .random = 7};
        snprintf(hello.name, sizeof hello.name, "w%d", i);
        wpk_fixture_step(s, &event);
        assert_int_equal(s->workers[0].told,
                         i < WPK_WORKERS_MAX ? WPK_MESSAGE_WELCOME : WPK_MESSAGE_ERROR);
    }
}

/* From elsewhere a connection is one worker's: whoever has a token could be all workers else. */
static void who_comes_from_elsewhere_is_one(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    say_hello_as(s, 5, false);
    assert_int_equal(s->c->worker_count, 1);
    assert_string_equal(s->c->workers[0]->hello.name, "w4");
    assert_int_equal(s->c->workers_by_session.count, 1);
    assert_int_equal(s->c->worker_classes[0]->available_count, 1);
    wpk_fixture_free(s);
}

/* Several sessions over one local connection: they go together. */
static void a_connection_of_many(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    say_hello_as(s, 5, true);
    assert_int_equal(s->c->worker_count, 5);
    assert_int_equal(s->c->worker_class_count, 1);
    assert_int_equal(s->c->worker_classes[0]->available_count, 5);
    wpk_fixture_lose(s, 0);
    assert_int_equal(s->c->worker_count, 0);
    assert_int_equal(s->c->workers_by_peer.count, 0);
    assert_int_equal(s->c->timing_classes.count, 0);
    wpk_fixture_free(s);
}

static void there_are_16384_workers(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    say_hello_as(s, 16385, true);
    assert_int_equal(s->workers[0].err, WPK_ENOSPC);
    assert_int_equal(s->c->worker_count, 16384);
    wpk_fixture_free(s);
}

/* It says hello as one device, takes work, and says hello as another. */
static void who_changes_is_not_believed(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 2), 2);
    snprintf(s->workers[worker].hello.device.model, WPK_DEVICE_TEXT_MAX, "faster");
    wpk_fixture_hello(s, worker);
    wpk_fixture_poll(s, worker, 0);
    assert_int_equal(s->c->lease_count, 0);
    assert_int_equal(item(s, 0)->attempts, 0);
    assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 5), WPK_ACK_UNKNOWN);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
    assert_int_equal(item(s, 0)->standing, WPK_STANDING_OPEN);
    wpk_fixture_free(s);
}

/* ---- admin states */

static void a_drained_worker_ends_what_it_has(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 2), 2);
    wpk_fixture_set_worker(s, "w", WPK_ADMIN_STATE_DRAIN, "new fans");
    assert_int_equal(s->status, 200);
    assert_string_equal(s->admin_text, "w drain new fans");
    assert_int_equal(wpk_fixture_poll(s, worker, 4), 0);
    assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 5), WPK_ACK_RECORDED);
    assert_int_equal(s->c->lease_count, 1);
    /* A new session of the same name has the same admin state, one of another name is not. */
    wpk_fixture_hello(s, worker);
    assert_int_equal(wpk_fixture_poll(s, worker, 4), 0);
    assert_int_equal(wpk_fixture_poll(s, wpk_fixture_join(s, "v", WPK_WORKER_ROLES_ALL), 1), 1);
    /* The worker's poll, which waits, is answered when its admin state is reset. */
    wpk_fixture_set_worker(s, "w", WPK_ADMIN_STATE_NONE, NULL);
    assert_string_equal(s->admin_text, "w none ");
    assert_true(s->workers[worker].held_count > 1);
    wpk_fixture_free(s);
}

static void nobody_believes_the_quarantined(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 2), 2);
    wpk_fixture_set_worker(s, "w", WPK_ADMIN_STATE_QUARANTINE, "too fast");
    assert_int_equal(s->c->lease_count, 0);
    assert_int_equal(item(s, 0)->attempts, 0); /* unblamed */
    wpk_fixture_poll(s, worker, 0);            /* nor is it adopted again */
    assert_int_equal(s->c->lease_count, 0);
    wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 5);
    assert_int_equal(s->workers[worker].told, WPK_MESSAGE_ERROR);
    assert_int_equal(s->workers[worker].err, WPK_EACCES);
    assert_string_equal(s->workers[worker].text,
                        "this worker is quarantined, its results are refused: too fast");
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
    int other = wpk_fixture_join(s, "v", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, other, 1), 1);
    assert_int_equal(s->workers[other].held[0].id.index, 0);
    wpk_fixture_free(s);
}

/* ---- uploads */

static void expect_refused(struct wpk_fixture *s, int worker, wpk_work_id work, wpk_err err,
                           const char *why)
{
    assert_false(wpk_fixture_upload(s, worker, work, "code"));
    assert_int_equal(s->workers[worker].told, WPK_MESSAGE_ERROR);
    assert_int_equal(s->workers[worker].err, err);
    assert_string_equal(s->workers[worker].text, why);
}

static const char no_lease[] = "this worker has no open lease to build that work item";

/* One artifact for each lease to build; saying it twice changes nothing. */
static void an_upload_needs_a_lease(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    int other = wpk_fixture_join(s, "v", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    wpk_work_id work = s->workers[worker].held[0].id;
    expect_refused(s, worker, (wpk_work_id){work.search + 1, WPK_WORK_TRIAL, 0}, WPK_EINVAL,
                   no_lease);
    expect_refused(s, worker, (wpk_work_id){work.search, WPK_WORK_TRIAL, 1}, WPK_EINVAL, no_lease);
    expect_refused(s, worker, (wpk_work_id){work.search, WPK_WORK_FINAL, 0}, WPK_EINVAL, no_lease);
    expect_refused(s, other, work, WPK_EINVAL, no_lease); /* it is leased, to another one */
    assert_true(wpk_fixture_upload(s, worker, work, "code"));
    assert_true(wpk_fixture_upload(s, worker, work, "code"));
    assert_false(wpk_fixture_upload(s, worker, work, "another"));
    assert_string_equal(s->workers[worker].text, "another artifact was uploaded for this lease");
    wpk_fixture_free(s);
}

static void an_upload_for_a_closed_lease(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 2), 2);
    const struct wpk_work given = s->workers[worker].held[1];
    wpk_work_id ended = s->workers[worker].held[0].id;
    assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 5), WPK_ACK_RECORDED);
    expect_refused(s, worker, ended, WPK_EINVAL, no_lease);
    s->workers[worker].held_count = 0;
    wpk_fixture_poll(s, worker, 0); /* what it does not name is open again */
    expect_refused(s, worker, given.id, WPK_EINVAL, no_lease);
    s->workers[worker].held[0] = given;
    s->workers[worker].held_count = 1;
    wpk_fixture_poll(s, worker, 0); /* what it names is its own again */
    assert_true(wpk_fixture_upload(s, worker, given.id, "code"));
    wpk_fixture_free(s);
}

static void an_upload_of_the_quarantined(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    wpk_fixture_set_worker(s, "w", WPK_ADMIN_STATE_QUARANTINE, "too fast");
    expect_refused(s, worker, s->workers[worker].held[0].id, WPK_EACCES,
                   "this worker is quarantined, its results are refused: too fast");
    wpk_fixture_free(s);
}

static void an_upload_of_who_does_not_build(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int runner = wpk_fixture_join(s, "runner", WPK_WORKER_RUNS);
    int builder = wpk_fixture_join(s, "builder", WPK_WORKER_BUILDS);
    assert_int_equal(wpk_fixture_poll(s, builder, 1), 1);
    wpk_work_id work = s->workers[builder].held[0].id;
    assert_true(wpk_fixture_upload(s, builder, work, "code"));
    assert_int_equal(wpk_fixture_result(s, builder, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    assert_int_equal(wpk_fixture_poll(s, runner, 1), 1);
    expect_refused(s, runner, work, WPK_EACCES, "this worker does not build, and uploads nothing");
    /* Nor does who could, for what is only to be run. */
    wpk_fixture_lose(s, runner);
    int both = wpk_fixture_join(s, "both", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, both, 1), 1);
    assert_int_equal(s->workers[both].held[0].stage, WPK_STAGE_RUN);
    expect_refused(s, both, s->workers[both].held[0].id, WPK_EINVAL, no_lease);
    wpk_fixture_free(s);
}

static void admin_states_survive_a_restart(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    struct wpk_event event = {.kind = WPK_EVENT_RESTORE_ADMIN_STATE,
                              .worker = "w",
                              .admin_state = WPK_ADMIN_STATE_QUARANTINE,
                              .reason = "lies"};
    wpk_fixture_step(s, &event);
    assert_int_equal(s->seen[WPK_EFFECT_SET_ADMIN_STATE], 0); /* the store knows */
    wpk_fixture_submit_one(s, 1, 50);
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 0);
    const struct wpk_worker *w = wpk_fixture_find_worker(s, "w");
    assert_int_equal(w->admin_state, WPK_ADMIN_STATE_QUARANTINE);
    assert_string_equal(w->admin_reason, "lies");
    wpk_fixture_set_worker(s, "nobody", WPK_ADMIN_STATE_DRAIN, "");
    assert_int_equal(s->status, 404);
    wpk_fixture_free(s);
}

static void join_at(struct wpk_fixture *s, const char *name, const char *instance)
{
    int worker = wpk_fixture_join(s, name, WPK_WORKER_ROLES_ALL);
    snprintf(s->workers[worker].hello.device.instance, WPK_DEVICE_TEXT_MAX, "%s", instance);
    wpk_fixture_hello(s, worker);
}

/* The admin state of a device holds for the next worker on it, under any name. */
static void the_admin_state_of_a_device(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    join_at(s, "h/cpu0/1", "h/cpu0");
    join_at(s, "h/cpu1/2", "h/cpu1");
    wpk_fixture_set_worker(s, "h/cpu0", WPK_ADMIN_STATE_QUARANTINE, "lies");
    assert_int_equal(s->status, 200);
    join_at(s, "h/cpu0/3", "h/cpu0");
    assert_int_equal(wpk_fixture_find_worker(s, "h/cpu0/1")->admin_state,
                     WPK_ADMIN_STATE_QUARANTINE);
    assert_int_equal(wpk_fixture_find_worker(s, "h/cpu0/3")->admin_state,
                     WPK_ADMIN_STATE_QUARANTINE);
    assert_int_equal(wpk_fixture_find_worker(s, "h/cpu1/2")->admin_state, WPK_ADMIN_STATE_NONE);
    wpk_fixture_set_worker(s, "h/cpu0", WPK_ADMIN_STATE_NONE, "");
    assert_int_equal(wpk_fixture_find_worker(s, "h/cpu0/3")->admin_state, WPK_ADMIN_STATE_NONE);
    wpk_fixture_free(s);
}

/* A message that came after wpkd slept has its own time: the sleep is not added to it. */
static void silence_after_a_sleep(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    wpk_fixture_submit_one(s, 1, 50);
    wpk_fixture_wait(s, 1000);
    s->now_ns += 3600 * UINT64_C(1000000000);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1); /* before the first tick */
    const struct wpk_search *search = s->c->searches[0];
    uint64_t elapsed_ns = wpk_search_elapsed_ns(search, s->now_ns);
    wpk_fixture_wait(s, 10000);
    assert_int_equal(s->c->worker_count, 1);
    elapsed_ns = wpk_search_elapsed_ns(search, s->now_ns) - elapsed_ns;
    assert_in_range(elapsed_ns, UINT64_C(9500000000), UINT64_C(10000000000));
    wpk_fixture_wait(s, 12000);
    assert_int_equal(s->c->worker_count, 0);
    assert_int_equal(s->c->lease_count, 0);
    wpk_fixture_free(s);
}

/* The time that wpkd slept does not count as a worker's silence. */
static void a_sleep_is_forgiven(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    wpk_fixture_submit_one(s, 1, 50);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    wpk_fixture_wait(s, 15000);
    s->now_ns += 3600 * UINT64_C(1000000000);
    wpk_fixture_wait(s, 3000);
    assert_int_equal(s->c->lease_count, 1);
    assert_int_equal(item(s, 0)->attempts, 1);
    wpk_fixture_wait(s, 5000);
    assert_int_equal(s->c->lease_count, 0);
    wpk_fixture_free(s);
}

static void wpkd_drains(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    int busy = wpk_fixture_join(s, "busy", WPK_WORKER_ROLES_ALL);
    wpk_fixture_submit_one(s, 1, 50);
    assert_int_equal(wpk_fixture_poll(s, busy, 1), 1);
    wpk_fixture_submit_one(s, 2, 50);
    wpk_fixture_job_event(s, WPK_EVENT_PAUSE, s->c->jobs[0]);
    wpk_fixture_job_event(s, WPK_EVENT_PAUSE, s->c->jobs[1]);
    wpk_fixture_poll(s, worker, 1);
    assert_false(s->workers[worker].answered);
    wpk_fixture_step(s, &(struct wpk_event){.kind = WPK_EVENT_DRAIN});
    assert_true(s->workers[worker].answered);
    wpk_fixture_job_event(s, WPK_EVENT_RESUME, s->c->jobs[0]);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 0);
    assert_true(s->workers[worker].answered);
    assert_int_equal(wpk_fixture_result(s, busy, WPK_OUTCOME_OK, 5), WPK_ACK_RECORDED);
    wpk_fixture_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_has_64_leases),
        cmocka_unit_test(who_is_silent_is_lost),
        cmocka_unit_test(a_heartbeat_keeps_what_it_names),
        cmocka_unit_test(what_ran_is_blamed),
        cmocka_unit_test(what_runs_too_long_is_taken_back),
        cmocka_unit_test(three_deaths_and_it_is_abandoned),
        cmocka_unit_test(results_of_expired_leases),
        cmocka_unit_test(who_comes_from_elsewhere_is_one),
        cmocka_unit_test(a_connection_of_many),
        cmocka_unit_test(there_are_16384_workers),
        cmocka_unit_test(who_changes_is_not_believed),
        cmocka_unit_test(a_drained_worker_ends_what_it_has),
        cmocka_unit_test(nobody_believes_the_quarantined),
        cmocka_unit_test(an_upload_needs_a_lease),
        cmocka_unit_test(an_upload_for_a_closed_lease),
        cmocka_unit_test(an_upload_of_the_quarantined),
        cmocka_unit_test(an_upload_of_who_does_not_build),
        cmocka_unit_test(admin_states_survive_a_restart),
        cmocka_unit_test(the_admin_state_of_a_device),
        cmocka_unit_test(silence_after_a_sleep),
        cmocka_unit_test(a_sleep_is_forgiven),
        cmocka_unit_test(wpkd_drains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
