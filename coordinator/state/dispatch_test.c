/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of dispatch: workers that build and that run, verification by another worker than the one
 * that timed, and the order in which polls are served. */
#include "tests/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- who builds, who runs */

/* The second best is verified too. */
static void verify_second(struct wpk_fixture *s, int worker)
{
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    assert_int_equal(s->workers[worker].held[0].id.kind, WPK_WORK_VERIFY);
    assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 51), WPK_ACK_RECORDED);
}

static void built_here_and_run_there(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    const struct wpk_job_entry *job = wpk_fixture_submit_one(s, 1, 2);
    int builder = wpk_fixture_worker(s, "builder");
    s->workers[builder].hello.roles = WPK_WORKER_BUILDS;
    snprintf(s->workers[builder].hello.device.model, WPK_DEVICE_TEXT_MAX, "another machine");
    wpk_fixture_hello(s, builder);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_WAITING); /* it is no device to tune for */
    int runner = wpk_fixture_join(s, "runner", WPK_WORKER_RUNS);
    assert_int_equal(wpk_fixture_poll(s, runner, 2), 0); /* waits */
    assert_int_equal(wpk_fixture_poll(s, builder, 1), 1);
    assert_int_equal(s->workers[builder].held[0].stage, WPK_STAGE_BUILD);
    assert_int_equal(wpk_fixture_result(s, builder, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
    assert_int_equal(s->workers[runner].held_count, 1);
    assert_int_equal(s->workers[runner].held[0].stage, WPK_STAGE_RUN);
    assert_string_equal(s->workers[runner].artifact[0], "built1.0");
    assert_int_equal(wpk_fixture_result(s, runner, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 1);
    /* A candidate that does not build has ended. */
    assert_int_equal(wpk_fixture_poll(s, builder, 1), 1);
    assert_int_equal(wpk_fixture_result(s, builder, WPK_OUTCOME_BUILD_ERROR, 0), WPK_ACK_RECORDED);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 2);
    /* The winner is verified as it was built: it is not built again. */
    assert_int_equal(job->ops[0].phase, WPK_PHASE_VERIFYING);
    assert_int_equal(wpk_fixture_poll(s, builder, 1), 0);
    assert_int_equal(wpk_fixture_poll(s, runner, 1), 1);
    assert_int_equal(s->workers[runner].held[0].stage, WPK_STAGE_RUN);
    assert_string_equal(s->workers[runner].artifact[0], "built1.0");
    assert_int_equal(wpk_fixture_result(s, runner, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_int_equal(job->state, WPK_JOB_DONE);
    assert_string_equal(s->verified_by, "runner");
    wpk_fixture_free(s);
}

/* A build-only worker reports build outcomes only, until the build; runners report the rest. */
static void a_builder_ends_nothing_that_is_built(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    const struct wpk_job_entry *job = wpk_fixture_submit_one(s, 1, 2);
    int runner = wpk_fixture_join(s, "runner", WPK_WORKER_RUNS);
    int builder = wpk_fixture_join(s, "builder", WPK_WORKER_BUILDS);
    struct wpk_fixture_worker *self = &s->workers[builder];
    assert_int_equal(wpk_fixture_poll(s, builder, 2), 2);
    const struct wpk_work first = self->held[0];
    assert_int_equal(wpk_fixture_result(s, builder, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    /* The second: it cannot know. */
    const struct wpk_work second = self->held[0];
    assert_int_equal(wpk_fixture_result(s, builder, WPK_OUTCOME_WRONG_RESULT, 0), WPK_ACK_UNKNOWN);
    self->held[0] = second;
    self->held_count = 1;
    assert_int_equal(wpk_fixture_result(s, builder, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    assert_int_equal(wpk_fixture_poll(s, runner, 2), 2);
    self->held[0] = first;
    self->held_count = 1;
    assert_int_equal(wpk_fixture_result(s, builder, WPK_OUTCOME_BUILD_ERROR, 0),
                     WPK_ACK_ALREADY_RECORDED);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
    assert_int_equal(wpk_fixture_result(s, runner, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_int_equal(wpk_fixture_result(s, runner, WPK_OUTCOME_OK, 60), WPK_ACK_RECORDED);
    const struct wpk_search *search = job->ops[0].search;
    assert_int_equal(job->ops[0].phase, WPK_PHASE_FINALS);
    self->held[0] = first;
    self->held[0].id = (wpk_work_id){search->id, WPK_WORK_FINAL, search->final_number};
    self->held_count = 1;
    assert_int_equal(wpk_fixture_result(s, builder, WPK_OUTCOME_ABANDONED, 0), WPK_ACK_UNKNOWN);
    assert_int_equal(wpk_fixture_poll(s, runner, 1), 1);
    assert_int_equal(wpk_fixture_final(s, runner), WPK_ACK_RECORDED);
    self->held[0] = first;
    self->held[0].id = (wpk_work_id){search->id, WPK_WORK_VERIFY, search->verify_number};
    self->held_count = 1;
    assert_int_equal(wpk_fixture_result(s, builder, WPK_OUTCOME_BUILD_ERROR, 0), WPK_ACK_UNKNOWN);
    assert_int_equal(wpk_fixture_poll(s, runner, 1), 1);
    assert_int_equal(wpk_fixture_result(s, runner, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    verify_second(s, runner);
    assert_int_equal(job->state, WPK_JOB_DONE);
    wpk_fixture_free(s);
}

static void set_hold(struct wpk_fixture *s, bool hold)
{
    struct wpk_event event = {.kind = WPK_EVENT_HOLD_BUILDS, .hold = hold};
    wpk_fixture_step(s, &event);
}

/* While builds are held no worker builds; artifacts that exist are run. */
static void builds_wait_for_room(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    const struct wpk_job_entry *job = wpk_fixture_submit_one(s, 1, 4);
    char reason[WPK_REASON_MAX];
    int runner = wpk_fixture_join(s, "runner", WPK_WORKER_RUNS);
    int builder = wpk_fixture_join(s, "builder", WPK_WORKER_BUILDS);
    assert_int_equal(wpk_fixture_poll(s, builder, 1), 1);
    set_hold(s, true);
    assert_int_equal(wpk_fixture_result(s, builder, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    assert_int_equal(wpk_fixture_poll(s, builder, 1), 0);
    assert_true(wpk_bind_blocked(s->c, job, 0, reason));
    assert_string_equal(reason,
                        "the artifacts have reached their quota: nothing is built until there is"
                        " room");
    assert_int_equal(wpk_fixture_poll(s, runner, 1), 1);
    assert_int_equal(wpk_fixture_result(s, runner, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    int both = wpk_fixture_join(s, "both", WPK_WORKER_ROLES_ALL);
    assert_int_equal(wpk_fixture_poll(s, both, 1), 0);
    assert_int_equal(s->workers[builder].held_count, 0);
    set_hold(s, false); /* their polls still wait */
    assert_false(wpk_bind_blocked(s->c, job, 0, reason));
    assert_int_equal(s->workers[builder].held_count, 1);
    assert_int_equal(s->workers[both].held_count, 1);
    assert_int_equal(s->workers[both].held[0].stage, WPK_STAGE_WHOLE);
    wpk_fixture_free(s);
}

/* A builder without the compiler that the device's workers have is of no use to them. */
static void a_builder_of_another_environment(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    const struct wpk_job_entry *job = wpk_fixture_submit_one(s, 1, 2);
    char reason[WPK_REASON_MAX];
    int runner = wpk_fixture_join(s, "runner", WPK_WORKER_RUNS);
    assert_int_equal(wpk_fixture_poll(s, runner, 2), 0);
    assert_true(wpk_bind_blocked(s->c, job, 0, reason));
    assert_string_equal(reason, "no worker builds for cpu/model/avx2");
    int old = wpk_fixture_worker(s, "old");
    s->workers[old].hello.roles = WPK_WORKER_BUILDS;
    snprintf(s->workers[old].hello.environment, WPK_ENVIRONMENT_MAX, "codegen=1;halide=20");
    wpk_fixture_hello(s, old);
    assert_int_equal(wpk_fixture_poll(s, old, 2), 0);
    int lean = wpk_fixture_worker(s, "lean");
    s->workers[lean].hello.roles = WPK_WORKER_BUILDS;
    snprintf(s->workers[lean].hello.environment, WPK_ENVIRONMENT_MAX, "halide=21");
    wpk_fixture_hello(s, lean);
    assert_false(wpk_bind_blocked(s->c, job, 0, reason));
    assert_int_equal(wpk_fixture_poll(s, lean, 2), 2);
    wpk_fixture_free(s);
}

/* A build whose artifact was lost on the way is done again, but not for ever. */
static void an_artifact_is_lost(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    wpk_fixture_submit_one(s, 1, 1);
    wpk_fixture_join(s, "runner", WPK_WORKER_RUNS);
    int builder = wpk_fixture_join(s, "builder", WPK_WORKER_BUILDS);
    for (int i = 0; i < WPK_ATTEMPTS_MAX; i++) {
        assert_int_equal(wpk_fixture_poll(s, builder, 1), 1);
        struct wpk_result result = {
            .id = s->workers[builder].held[0].id, .stage = WPK_STAGE_BUILD, .failure = ""};
        struct wpk_message message = {.kind = WPK_MESSAGE_RESULTS,
                                      .session = s->workers[builder].session,
                                      .results = &result,
                                      .result_count = 1};
        s->workers[builder].held_count = 0;
        wpk_fixture_step(s, &(struct wpk_event){.kind = WPK_EVENT_MESSAGE,
                                                .address = {.peer = (uint32_t)builder + 1},
                                                .message = &message});
        assert_int_equal(s->workers[builder].acks[0], WPK_ACK_RECORDED);
    }
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 1);
    wpk_fixture_free(s);
}

/* ---- a second pair of eyes */

static const struct wpk_job_entry *reach_verifying(struct wpk_fixture *s, int worker)
{
    const struct wpk_job_entry *job = wpk_fixture_submit_one(s, 1, 3);
    assert_int_equal(wpk_fixture_poll(s, worker, 3), 3);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 50 + i), WPK_ACK_RECORDED);
    }
    assert_int_equal(job->ops[0].phase, WPK_PHASE_FINALS);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    assert_int_equal(wpk_fixture_final(s, worker), WPK_ACK_RECORDED);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_VERIFYING);
    return job;
}

static void another_worker_verifies(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int first = wpk_fixture_join(s, "first", WPK_WORKER_ROLES_ALL);
    int second = wpk_fixture_join(s, "second", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *job = reach_verifying(s, first);
    assert_int_equal(wpk_fixture_poll(s, first, 1), 0); /* not who timed it */
    assert_int_equal(wpk_fixture_poll(s, second, 1), 1);
    assert_int_equal(s->workers[second].held[0].stage, WPK_STAGE_RUN);
    assert_string_equal(s->workers[second].artifact[0], "a1.0"); /* those very bytes */
    assert_int_equal(wpk_fixture_result(s, second, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    verify_second(s, second);
    assert_int_equal(job->state, WPK_JOB_DONE);
    assert_string_equal(s->verified_by, "second");
    wpk_fixture_free(s);
}

/* The worker that timed the winner claims its verification, or reports it without a lease. */
static void who_timed_it_does_not_push_in(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int first = wpk_fixture_join(s, "first", WPK_WORKER_ROLES_ALL);
    int second = wpk_fixture_join(s, "second", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *job = reach_verifying(s, first);
    struct wpk_fixture_worker *self = &s->workers[first];
    const struct wpk_search *search = job->ops[0].search;
    const struct wpk_work verify = {.id = {search->id, WPK_WORK_VERIFY, search->verify_number},
                                    .stage = WPK_STAGE_RUN};
    for (int leased = 0; leased < 2; leased++) {
        self->held[0] = verify;
        snprintf(self->artifact[0], WPK_ID_MAX, "%s", search->verify.built->artifact_sha256);
        self->held_count = 1;
        wpk_fixture_poll(s, first, 0);
        assert_int_equal(search->verify.standing, leased ? WPK_STANDING_LEASED : WPK_STANDING_OPEN);
        assert_int_equal(wpk_fixture_result(s, first, WPK_OUTCOME_OK, 50), WPK_ACK_UNKNOWN);
        assert_int_equal(job->ops[0].phase, WPK_PHASE_VERIFYING);
        assert_int_equal(wpk_fixture_poll(s, second, 1), leased ? 0 : 1);
    }
    /* Nor when the other one takes its time. */
    for (uint64_t waited = 0; waited <= WPK_SECOND_MS; waited += 5000) {
        wpk_fixture_wait(s, 5000);
        wpk_fixture_poll(s, second, 0);
        wpk_fixture_poll(s, first, 0);
    }
    self->held[0] = verify;
    self->held_count = 1;
    assert_int_equal(wpk_fixture_result(s, first, WPK_OUTCOME_OK, 50), WPK_ACK_UNKNOWN);
    assert_int_equal(wpk_fixture_result(s, second, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    verify_second(s, second);
    assert_string_equal(s->verified_by, "second");
    wpk_fixture_free(s);
}

static void alone_it_verifies_itself(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int first = wpk_fixture_join(s, "first", WPK_WORKER_ROLES_ALL);
    const struct wpk_job_entry *job = reach_verifying(s, first);
    assert_int_equal(wpk_fixture_poll(s, first, 1), 1);
    assert_int_equal(wpk_fixture_result(s, first, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    verify_second(s, first);
    assert_string_equal(s->verified_by, "first");
    assert_int_equal(job->state, WPK_JOB_DONE);
    wpk_fixture_free(s);
}

/* The other one never asks: after a while anybody will do. */
static void the_second_is_not_waited_for_for_ever(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int first = wpk_fixture_join(s, "first", WPK_WORKER_ROLES_ALL);
    int second = wpk_fixture_join(s, "second", WPK_WORKER_ROLES_ALL);
    reach_verifying(s, first);
    for (uint64_t waited = 0; waited + 5000 < WPK_SECOND_MS; waited += 5000) {
        wpk_fixture_poll(s, second, 0);
        assert_int_equal(wpk_fixture_poll(s, first, 1), 0);
        wpk_fixture_wait(s, 5000);
    }
    wpk_fixture_poll(s, first, 1);
    assert_int_equal(s->workers[first].held_count, 0);
    wpk_fixture_wait(s, 5500);
    assert_int_equal(s->workers[first].held_count, 1);
    wpk_fixture_free(s);
}

/* ---- many */

/* A work queue wakes those who can do it, first come, first served. */
static void polls_are_served_in_turn(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        assert_int_equal(wpk_fixture_poll(s, wpk_fixture_join(s, name, WPK_WORKER_ROLES_ALL), 2),
                         0);
    }
    s->refuse_at = 6;
    wpk_fixture_submit_one(s, 1, 100);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(s->workers[i].held_count, i < 3 ? 2 : 0);
    }
    /* A generation is over: the strategy goes on, and so do those who wait. */
    s->refuse_at = 0;
    for (int i = 0; i < 3; i++) {
        wpk_fixture_result(s, i, WPK_OUTCOME_OK, 50);
        wpk_fixture_result(s, i, WPK_OUTCOME_OK, 60);
    }
    assert_int_equal(s->workers[3].held_count, 2);
    assert_int_equal(s->workers[4].held_count, 2);
    wpk_fixture_free(s);
}

/* One answer of the strategy, which takes a commit, is for all who wait, and not for the first. */
static void one_ask_is_for_all_who_wait(void **state)
{
    (void)state;
    enum { WORKERS = 8 };
    struct wpk_fixture *s = wpk_fixture_new();
    for (int i = 0; i < WORKERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        assert_int_equal(wpk_fixture_join(s, name, WPK_WORKER_ROLES_ALL), i);
    }
    wpk_fixture_submit_one(s, 1, 100);
    s->hold = true;
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(wpk_fixture_poll(s, i, 1), 0);
        assert_int_equal(s->c->searches[0]->asked_count, WORKERS);
    }
    wpk_fixture_answer(s);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(s->workers[i].held_count, 1);
    }
    wpk_fixture_free(s);
}

/* The strategy wanted to be told more, and was, before that answer came. */
static void a_refusal_that_is_out_of_date(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    s->refuse_at = 3;
    wpk_fixture_submit_one(s, 1, 100);
    assert_int_equal(wpk_fixture_poll(s, worker, 3), 3);
    s->hold = true;
    assert_int_equal(wpk_fixture_poll(s, worker, 3), 0); /* it is asked, and refuses */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    }
    s->hold = false;
    s->refuse_at = 0;
    wpk_fixture_answer(s);
    assert_int_equal(s->workers[worker].held_count, 3); /* it is asked again */
    wpk_fixture_free(s);
}

/* A poll without work is answered when its time is over. */
static void polls_end(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    wpk_fixture_poll(s, worker, 2);
    wpk_fixture_wait(s, 9000);
    assert_false(s->workers[worker].answered);
    wpk_fixture_wait(s, 1500);
    assert_true(s->workers[worker].answered);
    assert_int_equal(s->workers[worker].told, WPK_MESSAGE_WORK);
    wpk_fixture_submit_one(s, 1, 5);
    assert_int_equal(s->workers[worker].held_count, 0); /* it has to ask again */
    wpk_fixture_free(s);
}

/* An answer that is too large for a message would never arrive, however often it is made. */
static void large_operators_do_not_come_all_at_once(void **state)
{
    (void)state;
    enum { JOBS = 40, SIZE = 256 * 1024, FIT = WPK_MESSAGE_SIZE_MAX / SIZE - 1 };
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_join(s, "w", WPK_WORKER_ROLES_ALL);
    for (uint32_t i = 0; i < JOBS; i++) {
        struct wpk_job_entry *job = wpk_fixture_job("a", 1 + i, 1);
        job->candidates = 1;
        free(job->ops[0].op);
        job->ops[0].op = calloc(1, SIZE + 1);
        assert_non_null(job->ops[0].op);
        memset(job->ops[0].op, 'x', SIZE);
        assert_non_null(wpk_fixture_submit(s, job));
    }
    for (int round = 0; round < 2; round++) {
        for (int polls = 0; s->workers[worker].held_count < JOBS; polls++) {
            assert_in_range(wpk_fixture_poll(s, worker, JOBS), 1, FIT);
            assert_in_range(polls, 0, JOBS);
        }
        /* It comes anew with nothing: all of it lies ready. */
        s->workers[worker].held_count = 0;
        wpk_fixture_hello(s, worker);
    }
    wpk_fixture_free(s);
}

static void the_time_of_a_measurement(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        uint64_t ms;
        int samples;
        bool valid;
    } rows[] = {{NULL, 20, 10, true},  {"6", 6, 3, true},   {"1", 6, 3, false},
                {"fast", 6, 3, false}, {"7x", 6, 3, false}, {"2", 2, 1, true},
                {"1001", 2, 1, false}, {"", 2, 1, false},   {"1000", 1000, 10, true},
                {NULL, 20, 10, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(wpk_search_set_time(rows[i].set), rows[i].valid);
        struct wpk_fixture *s = wpk_fixture_new();
        wpk_fixture_submit_one(s, 1, 2);
        int worker = wpk_fixture_join(s, "w", WPK_WORKER_RUNS | WPK_WORKER_BUILDS);
        assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
        assert_int_equal(s->workers[worker].held[0].policy.time_ns_min, rows[i].ms * 1000 * 1000);
        assert_int_equal(s->workers[worker].held[0].policy.sample_count, rows[i].samples);
        wpk_fixture_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_here_and_run_there),
        cmocka_unit_test(a_builder_ends_nothing_that_is_built),
        cmocka_unit_test(builds_wait_for_room),
        cmocka_unit_test(a_builder_of_another_environment),
        cmocka_unit_test(an_artifact_is_lost),
        cmocka_unit_test(another_worker_verifies),
        cmocka_unit_test(who_timed_it_does_not_push_in),
        cmocka_unit_test(alone_it_verifies_itself),
        cmocka_unit_test(the_second_is_not_waited_for_for_ever),
        cmocka_unit_test(polls_are_served_in_turn),
        cmocka_unit_test(one_ask_is_for_all_who_wait),
        cmocka_unit_test(a_refusal_that_is_out_of_date),
        cmocka_unit_test(polls_end),
        cmocka_unit_test(large_operators_do_not_come_all_at_once),
        cmocka_unit_test(the_time_of_a_measurement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
