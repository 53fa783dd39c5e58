/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts: what comes to nothing is tried again, three times to be built and three to be run, and
 * nobody ends what somebody else has. */
#include "tests/fixture.h"

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

static void expect_work(struct wpk_fixture *s, int worker, enum wpk_work_stage stage,
                        uint32_t attempt)
{
    if (s->workers[worker].held_count == 0) {
        assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    }
    assert_int_equal(s->workers[worker].held[0].stage, stage);
    assert_int_equal(s->workers[worker].held[0].attempt, attempt);
}

static void bring(struct wpk_fixture *s, int worker, enum wpk_outcome outcome, enum wpk_ack ack)
{
    assert_int_equal(wpk_fixture_result(s, worker, outcome, 50), ack);
}

/* It has this work item, in its own opinion. */
static void claim(struct wpk_fixture *s, int worker, const struct wpk_work *work)
{
    s->workers[worker].held[0] = *work;
    s->workers[worker].held_count = 1;
}

/* ---- built and lost */

static void what_was_built_and_lost_is_built_again(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    const struct wpk_job_entry *job = wpk_fixture_submit_one(s, 1, 1);
    int runner = wpk_fixture_join(s, "runner", WPK_WORKER_RUNS);
    int builder = wpk_fixture_join(s, "builder", WPK_WORKER_BUILDS);
    expect_work(s, builder, WPK_STAGE_BUILD, 1);
    bring(s, builder, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
    expect_work(s, runner, WPK_STAGE_RUN, 1);
    bring(s, runner, WPK_OUTCOME_ABANDONED, WPK_ACK_RECORDED);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0); /* that is no outcome */
    assert_null(item(s, 0)->built);
    assert_int_equal(wpk_fixture_poll(s, runner, 1), 0);
    expect_work(s, builder, WPK_STAGE_BUILD, 2);
    bring(s, builder, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
    expect_work(s, runner, WPK_STAGE_RUN, 1);
    bring(s, runner, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
    assert_int_equal(job->ops[0].search->ok_count, 1);
    wpk_fixture_free(s);
}

static void but_not_for_ever(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    const struct wpk_job_entry *job = wpk_fixture_submit_one(s, 1, 1);
    int runner = wpk_fixture_join(s, "runner", WPK_WORKER_RUNS);
    int builder = wpk_fixture_join(s, "builder", WPK_WORKER_BUILDS);
    for (uint32_t i = 1; i <= WPK_ATTEMPTS_MAX; i++) {
        assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
        expect_work(s, builder, WPK_STAGE_BUILD, i);
        bring(s, builder, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
        expect_work(s, runner, WPK_STAGE_RUN, 1);
        bring(s, runner, WPK_OUTCOME_ABANDONED, WPK_ACK_RECORDED);
    }
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 1);
    assert_int_equal(job->state, WPK_JOB_FAILED);
    assert_non_null(strstr(job->ops[0].reason, "not tried in 3 attempts; the last one: "));
    wpk_fixture_free(s);
}

/* A death while it is built counts for building, one while it is run for running. */
static void each_stage_has_its_attempts(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 1);
    for (uint32_t i = 1; i < WPK_ATTEMPTS_MAX; i++) {
        int dies = wpk_fixture_join(s, "dies", WPK_WORKER_BUILDS);
        if (i == 1) { /* there is no search without a device */
            wpk_fixture_poll(s, wpk_fixture_join(s, "device", WPK_WORKER_RUNS), 1);
            s->workers[1].held_count = 0;
        }
        expect_work(s, dies, WPK_STAGE_BUILD, i);
        wpk_fixture_lose(s, dies);
    }
    int builder = wpk_fixture_join(s, "builder", WPK_WORKER_BUILDS);
    expect_work(s, builder, WPK_STAGE_BUILD, WPK_ATTEMPTS_MAX);
    wpk_fixture_lose(s, 1);
    bring(s, builder, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
    for (uint32_t i = 1; i <= WPK_ATTEMPTS_MAX; i++) {
        assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
        int runner = wpk_fixture_join(s, "runner", WPK_WORKER_RUNS);
        expect_work(s, runner, WPK_STAGE_RUN, i);
        wpk_fixture_lose(s, runner);
    }
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 1);
    wpk_fixture_free(s);
}

/* ---- on distinct devices */

static int join_on(struct wpk_fixture *s, const char *name, const char *device)
{
    int worker = wpk_fixture_worker(s, name);
    snprintf(s->workers[worker].hello.device.instance, WPK_DEVICE_TEXT_MAX, "%s", device);
    wpk_fixture_hello(s, worker);
    return worker;
}

/* Under another name it is the same device; it goes on with what others have not lost there. */
static void what_one_device_loses_another_tries(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 50);
    int first = join_on(s, "a/1", "a");
    expect_work(s, first, WPK_STAGE_WHOLE, 1);
    wpk_fixture_lose(s, first);
    int again = join_on(s, "a/2", "a");
    assert_int_equal(wpk_fixture_poll(s, again, 3), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(s->workers[again].held[i].id.index, 0);
    }
    int other = join_on(s, "b/1", "b");
    expect_work(s, other, WPK_STAGE_WHOLE, 2);
    assert_int_equal(s->workers[other].held[0].id.index, 0);
    wpk_fixture_free(s);
}

/* When there is nothing else to do it is better than nothing. */
static void alone_it_tries_again(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 2);
    int first = join_on(s, "a/1", "a");
    expect_work(s, first, WPK_STAGE_WHOLE, 1);
    wpk_fixture_lose(s, first);
    int again = join_on(s, "a/2", "a");
    assert_int_equal(wpk_fixture_poll(s, again, 2), 2);
    assert_int_equal(s->workers[again].held[0].id.index, 1);
    assert_int_equal(s->workers[again].held[1].id.index, 0);
    assert_int_equal(s->workers[again].held[1].attempt, 2);
    wpk_fixture_free(s);
}

/* A runner that cannot get it, though it is there, is one of several. */
static void what_one_runner_loses_another_runs(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 2);
    int first = wpk_fixture_worker(s, "a/1");
    int second = wpk_fixture_worker(s, "b/1");
    s->workers[first].hello.roles = WPK_WORKER_RUNS;
    s->workers[second].hello.roles = WPK_WORKER_RUNS;
    wpk_fixture_hello(s, first);
    wpk_fixture_hello(s, second);
    int builder = wpk_fixture_join(s, "builder", WPK_WORKER_BUILDS);
    assert_int_equal(wpk_fixture_poll(s, builder, 2), 2);
    bring(s, builder, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
    bring(s, builder, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
    expect_work(s, first, WPK_STAGE_RUN, 1);
    wpk_fixture_lose(s, first);
    wpk_fixture_poll(s, builder, 0);
    wpk_fixture_hello(s, first);
    expect_work(s, first, WPK_STAGE_RUN, 1);
    assert_int_equal(s->workers[first].held[0].id.index, 1);
    wpk_fixture_hello(s, second);
    expect_work(s, second, WPK_STAGE_RUN, 2);
    assert_int_equal(s->workers[second].held[0].id.index, 0);
    wpk_fixture_free(s);
}

/* ---- too late */

static void a_late_builder_takes_nothing_away(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 1);
    int whole = wpk_fixture_join(s, "whole", WPK_WORKER_ROLES_ALL);
    int late = wpk_fixture_join(s, "late", WPK_WORKER_BUILDS);
    expect_work(s, late, WPK_STAGE_BUILD, 1);
    const struct wpk_work work = s->workers[late].held[0];
    wpk_fixture_lose(s, late);
    expect_work(s, whole, WPK_STAGE_WHOLE, 2);
    wpk_fixture_hello(s, late);
    claim(s, late, &work);
    bring(s, late, WPK_OUTCOME_ABANDONED, WPK_ACK_UNKNOWN);
    claim(s, late, &work);
    bring(s, late, WPK_OUTCOME_OK, WPK_ACK_UNKNOWN); /* it is being run already */
    assert_int_equal(item(s, 0)->standing, WPK_STANDING_LEASED);
    assert_null(item(s, 0)->built);
    assert_int_equal(item(s, 0)->attempts, 2);
    bring(s, whole, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
    wpk_fixture_free(s);
}

/* The first build wins: an artifact from a worker that lost its lease is as good. */
static void the_first_build_wins(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 1);
    int runner = wpk_fixture_join(s, "runner", WPK_WORKER_RUNS);
    int late = wpk_fixture_join(s, "late", WPK_WORKER_BUILDS);
    expect_work(s, late, WPK_STAGE_BUILD, 1);
    const struct wpk_work work = s->workers[late].held[0];
    wpk_fixture_lose(s, late);
    wpk_fixture_poll(s, runner, 0);
    int second = wpk_fixture_join(s, "second", WPK_WORKER_BUILDS);
    expect_work(s, second, WPK_STAGE_BUILD, 2);
    wpk_fixture_hello(s, late);
    claim(s, late, &work);
    bring(s, late, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
    bring(s, second, WPK_OUTCOME_BUILD_ERROR, WPK_ACK_ALREADY_RECORDED);
    expect_work(s, runner, WPK_STAGE_RUN, 1);
    wpk_fixture_free(s);
}

/* ---- finals */

static const struct wpk_job_entry *reach_final(struct wpk_fixture *s, int worker)
{
    const struct wpk_job_entry *job = wpk_fixture_submit_one(s, 1, 2);
    for (int i = 0; i < 2; i++) {
        expect_work(s, worker, WPK_STAGE_WHOLE, 1);
        bring(s, worker, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
    }
    assert_int_equal(job->ops[0].phase, WPK_PHASE_FINALS);
    return job;
}

/* A worker that could not hold it says so: no times, as of any result without. */
static void a_final_is_tried_again(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *job = reach_final(s, worker);
    for (uint32_t i = 1; i <= WPK_ATTEMPTS_MAX; i++) {
        assert_int_equal(job->ops[0].phase, WPK_PHASE_FINALS);
        expect_work(s, worker, WPK_STAGE_WHOLE, i);
        bring(s, worker, WPK_OUTCOME_ABANDONED, WPK_ACK_RECORDED);
    }
    assert_int_equal(job->ops[0].phase, WPK_PHASE_VERIFYING); /* without one */
    wpk_fixture_free(s);
}

static void lose(struct wpk_fixture *s, const char *sha256)
{
    struct wpk_event event = {.kind = WPK_EVENT_ARTIFACT_LOST};
    snprintf(event.sha256, sizeof event.sha256, "%s", sha256);
    wpk_fixture_step(s, &event);
}

/* The others are compared; the next best takes the place of one that is lost. */
static void a_final_without_what_is_lost(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *job = wpk_fixture_submit_one(s, 1, WPK_FINAL_OWN_MAX + 1);
    for (int i = 0; i <= WPK_FINAL_OWN_MAX; i++) {
        expect_work(s, worker, WPK_STAGE_WHOLE, 1);
        bring(s, worker, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
    }
    const struct wpk_search *search = job->ops[0].search;
    assert_int_equal(search->phase, WPK_SEARCH_PHASE_FINALS);
    uint32_t number = search->final_number;
    char best[WPK_ID_MAX];
    memcpy(best, search->entries[0].artifact_sha256, sizeof best);
    expect_work(s, worker, WPK_STAGE_WHOLE, 1);
    lose(s, best);
    assert_int_equal(search->final_number, number); /* somebody has it */
    bring(s, worker, WPK_OUTCOME_ABANDONED, WPK_ACK_RECORDED);
    assert_int_equal(search->phase, WPK_SEARCH_PHASE_FINALS);
    assert_int_not_equal(search->final_number, number);
    assert_int_equal(search->entry_count, WPK_FINAL_OWN_MAX);
    for (uint32_t i = 0; i < search->entry_count; i++) {
        assert_string_not_equal(search->entries[i].artifact_sha256, best);
    }
    /* Another one goes before anybody has begun. */
    memcpy(best, search->entries[1].artifact_sha256, sizeof best);
    lose(s, best);
    assert_int_equal(search->entry_count, WPK_FINAL_OWN_MAX - 1);
    expect_work(s, worker, WPK_STAGE_WHOLE, 1);
    assert_int_equal(wpk_fixture_final(s, worker), WPK_ACK_RECORDED);
    assert_int_equal(search->phase, WPK_SEARCH_PHASE_VERIFYING);
    wpk_fixture_free(s);
}

static void all_that_works_is_lost(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *job = reach_final(s, worker);
    const struct wpk_search *search = job->ops[0].search;
    char first[WPK_ID_MAX];
    char second[WPK_ID_MAX];
    memcpy(first, search->entries[0].artifact_sha256, sizeof first);
    memcpy(second, search->entries[1].artifact_sha256, sizeof second);
    lose(s, first);
    char line[128];
    snprintf(line, sizeof line, " left_out search=1 artifact=%s reason=lost\n", first);
    assert_true(wpk_fixture_logged(line));
    assert_int_equal(job->ops[0].phase, WPK_PHASE_VERIFYING); /* the other one, without a final */
    lose(s, second);
    for (uint32_t i = 1; i <= WPK_ATTEMPTS_MAX; i++) {
        expect_work(s, worker, WPK_STAGE_RUN, i);
        bring(s, worker, WPK_OUTCOME_ABANDONED, WPK_ACK_RECORDED);
    }
    assert_int_equal(job->ops[0].phase, WPK_PHASE_FAILED);
    assert_string_equal(job->ops[0].reason,
                        "nothing that works is within the accuracy class and has a shared object");
    wpk_fixture_free(s);
}

static void who_lost_a_final_does_not_end_it(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int late = wpk_fixture_join(s, "late", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *job = reach_final(s, late);
    expect_work(s, late, WPK_STAGE_WHOLE, 1);
    const struct wpk_work work = s->workers[late].held[0];
    wpk_fixture_lose(s, late);
    int second = wpk_fixture_join(s, "second", WPK_WORKER_ROLES_ALL);
    expect_work(s, second, WPK_STAGE_WHOLE, 2);
    wpk_fixture_hello(s, late);
    claim(s, late, &work);
    bring(s, late, WPK_OUTCOME_ABANDONED, WPK_ACK_UNKNOWN);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_FINALS);
    assert_int_equal(wpk_fixture_final(s, second), WPK_ACK_RECORDED);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_VERIFYING);
    wpk_fixture_free(s);
}

/* A failed fetch of the winner says nothing against it; if no worker can, the next entry
 * follows. */
static void a_winner_that_cannot_be_had(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *job = reach_final(s, worker);
    expect_work(s, worker, WPK_STAGE_WHOLE, 1);
    assert_int_equal(wpk_fixture_final(s, worker), WPK_ACK_RECORDED);
    const struct wpk_search *search = job->ops[0].search;
    uint32_t first = search->verify_number;
    for (uint32_t i = 1; i <= WPK_ATTEMPTS_MAX; i++) {
        assert_int_equal(search->verify_number, first);
        expect_work(s, worker, WPK_STAGE_RUN, i);
        bring(s, worker, WPK_OUTCOME_ABANDONED, WPK_ACK_RECORDED);
    }
    assert_int_not_equal(search->verify_number, first);
    expect_work(s, worker, WPK_STAGE_RUN, 1);
    bring(s, worker, WPK_OUTCOME_OK, WPK_ACK_RECORDED);
    assert_int_equal(job->state, WPK_JOB_DONE);
    wpk_fixture_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_built_and_lost_is_built_again),
        cmocka_unit_test(but_not_for_ever),
        cmocka_unit_test(each_stage_has_its_attempts),
        cmocka_unit_test(what_one_device_loses_another_tries),
        cmocka_unit_test(alone_it_tries_again),
        cmocka_unit_test(what_one_runner_loses_another_runs),
        cmocka_unit_test(a_late_builder_takes_nothing_away),
        cmocka_unit_test(the_first_build_wins),
        cmocka_unit_test(a_final_is_tried_again),
        cmocka_unit_test(a_final_without_what_is_lost),
        cmocka_unit_test(all_that_works_is_lost),
        cmocka_unit_test(who_lost_a_final_does_not_end_it),
        cmocka_unit_test(a_winner_that_cannot_be_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
