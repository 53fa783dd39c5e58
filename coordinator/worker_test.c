/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: what they hold and lose, what an operator orders of them, who builds and who runs, and
 * who verifies what another has timed. */
#include "coordinator/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wpk_scene *begin(void)
{
    struct wpk_scene *s = malloc(sizeof *s);
    assert_non_null(s);
    wpk_scene_init(s);
    return s;
}

static void end(struct wpk_scene *s)
{
    wpk_scene_fini(s);
    free(s);
}

static int join_as(struct wpk_scene *s, const char *name, unsigned roles)
{
    int worker = wpk_scene_worker(s, name);
    s->workers[worker].hello.roles = roles;
    wpk_scene_hello(s, worker);
    return worker;
}

static int join(struct wpk_scene *s, const char *name)
{
    return join_as(s, name, WPK_WORKER_ROLES_ALL);
}

static const struct wpk_job_entry *submit(struct wpk_scene *s, uint32_t op, uint32_t candidates)
{
    struct wpk_job_entry *job = wpk_scene_job("a", op, 1);
    job->candidates = candidates;
    const struct wpk_job_entry *submitted = wpk_scene_submit(s, job);
    assert_non_null(submitted);
    return submitted;
}

static void lose(struct wpk_scene *s, int worker)
{
    wpk_scene_step(
        s, &(struct wpk_event){.kind = WPK_EVENT_GONE, .address = {.peer = (uint32_t)worker + 1}});
    s->workers[worker].held_count = 0;
    wpk_scene_wait(s, WPK_GONE_MS + 500);
}

static const struct wpk_piece *piece(struct wpk_scene *s, uint32_t number)
{
    return wpk_search_ask(s->c->searches[0], number);
}

/* ---- loss */

static void who_is_silent_is_lost(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    submit(s, 1, 50);
    int worker = join(s, "w");
    assert_int_equal(wpk_scene_poll(s, worker, 3), 3);
    wpk_scene_wait(s, 19000);
    assert_int_equal(s->c->worker_count, 1);
    wpk_scene_wait(s, 2000);
    assert_int_equal(s->c->worker_count, 0);
    assert_int_equal(s->c->group_count, 0);
    assert_int_equal(s->c->lease_count, 0);
    assert_int_equal(piece(s, 0)->attempts, 1); /* what it was running is to blame, */
    assert_int_equal(piece(s, 1)->attempts, 0); /* the rest is not */
    end(s);
}

/* A final of minutes: the worker shows that it lives, and that is enough. */
static void a_heartbeat_keeps_what_it_names(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    submit(s, 1, 50);
    int worker = join(s, "w");
    assert_int_equal(wpk_scene_poll(s, worker, 2), 2);
    for (int i = 0; i < 60; i++) {
        uint32_t told = s->workers[worker].told_count;
        wpk_scene_wait(s, 5000);
        assert_int_equal(wpk_scene_poll(s, worker, 0), 0);
        assert_int_equal(s->workers[worker].told_count, told + 1); /* at once */
    }
    assert_int_equal(s->c->lease_count, 2);
    /* What it does not name was lost on the way, and is nobody's fault. */
    s->workers[worker].held_count = 1;
    wpk_scene_poll(s, worker, 0);
    assert_int_equal(s->c->lease_count, 1);
    assert_int_equal(piece(s, 1)->standing, WPK_STANDING_OPEN);
    assert_int_equal(piece(s, 1)->attempts, 0);
    end(s);
}

/* Not the oldest, but the one that it said it was running. */
static void what_ran_is_blamed(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    submit(s, 1, 50);
    int worker = join(s, "w");
    assert_int_equal(wpk_scene_poll(s, worker, 3), 3);
    struct wpk_work first = s->workers[worker].held[0];
    s->workers[worker].held[0] = s->workers[worker].held[2]; /* says that it runs the third */
    s->workers[worker].held[2] = first;
    wpk_scene_poll(s, worker, 0);
    lose(s, worker);
    assert_int_equal(piece(s, 0)->attempts, 0);
    assert_int_equal(piece(s, 2)->attempts, 1);
    end(s);
}

static void three_deaths_and_it_is_abandoned(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    const struct wpk_job_entry *job = submit(s, 1, 1);
    for (int i = 0; i < WPK_ATTEMPTS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        int worker = join(s, name);
        assert_int_equal(wpk_scene_poll(s, worker, 1), 1);
        assert_int_equal(s->workers[worker].held[0].attempt, i + 1);
        assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
        lose(s, worker);
    }
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 1);
    assert_int_equal(job->state, WPK_JOB_FAILED);
    assert_string_equal(job->ops[0].reason,
                        "no implementation works: 1 of 1 candidates ended abandoned; the last "
                        "one: 3 workers were lost while they had it");
    end(s);
}

/* The first result wins, whoever brings it and whichever lease it names. */
static void results_of_expired_leases(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    submit(s, 1, 50);
    int slow = join(s, "slow");
    assert_int_equal(wpk_scene_poll(s, slow, 1), 1);
    struct wpk_work work = s->workers[slow].held[0];
    lose(s, slow);
    int fast = join(s, "fast");
    assert_int_equal(wpk_scene_poll(s, fast, 1), 1);
    assert_true(wpk_work_id_equal(s->workers[fast].held[0].id, work.id));
    assert_true(s->workers[fast].held[0].lease != work.lease);
    wpk_scene_hello(s, slow);
    s->workers[slow].held[0] = work;
    s->workers[slow].held_count = 1;
    assert_int_equal(wpk_scene_result(s, slow, WPK_OUTCOME_OK, 5), WPK_ACK_RECORDED);
    assert_int_equal(s->c->lease_count, 0);
    assert_int_equal(wpk_scene_result(s, fast, WPK_OUTCOME_OK, 6), WPK_ACK_ALREADY_RECORDED);
    assert_int_equal(s->c->searches[0]->best[0].trial.median_ns, 5);
    s->workers[fast].held[0] = work;
    s->workers[fast].held[0].id.search = 99;
    s->workers[fast].held_count = 1;
    assert_int_equal(wpk_scene_result(s, fast, WPK_OUTCOME_OK, 6), WPK_ACK_UNKNOWN);
    end(s);
}

/* Several sessions over one connection: they go together. */
static void a_connection_of_many(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    struct wpk_hello hello = s->workers[wpk_scene_worker(s, "w")].hello;
    for (int i = 0; i < 5; i++) {
        struct wpk_message message = {.kind = WPK_MESSAGE_HELLO, .hello = &hello};
        struct wpk_event event = {
            .kind = WPK_EVENT_MESSAGE, .address = {.peer = 1}, .message = &message, .random = 7};
        snprintf(hello.name, sizeof hello.name, "w%d", i);
        wpk_scene_step(s, &event);
    }
    assert_int_equal(s->c->worker_count, 5);
    assert_int_equal(s->c->group_count, 1);
    assert_int_equal(s->c->groups[0]->available_count, 5);
    lose(s, 0);
    assert_int_equal(s->c->worker_count, 0);
    assert_int_equal(s->c->workers_by_peer.count, 0);
    assert_int_equal(s->c->classes.count, 0);
    end(s);
}

/* It says hello as one device, takes work, and says hello as another. */
static void who_changes_is_not_believed(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    submit(s, 1, 50);
    int worker = join(s, "w");
    assert_int_equal(wpk_scene_poll(s, worker, 2), 2);
    snprintf(s->workers[worker].hello.device.model, WPK_DEVICE_TEXT_MAX, "faster");
    wpk_scene_hello(s, worker);
    wpk_scene_poll(s, worker, 0);
    assert_int_equal(s->c->lease_count, 0);
    assert_int_equal(piece(s, 0)->attempts, 0);
    assert_int_equal(wpk_scene_result(s, worker, WPK_OUTCOME_OK, 5), WPK_ACK_UNKNOWN);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
    assert_int_equal(piece(s, 0)->standing, WPK_STANDING_OPEN);
    end(s);
}

/* ---- orders */

static void a_drained_worker_ends_what_it_has(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    submit(s, 1, 50);
    int worker = join(s, "w");
    assert_int_equal(wpk_scene_poll(s, worker, 2), 2);
    wpk_scene_set_worker(s, "w", WPK_WORKER_ORDER_DRAIN, "new fans");
    assert_int_equal(s->status, 200);
    assert_string_equal(s->order_text, "w drain new fans");
    assert_int_equal(wpk_scene_poll(s, worker, 4), 0);
    assert_int_equal(wpk_scene_result(s, worker, WPK_OUTCOME_OK, 5), WPK_ACK_RECORDED);
    assert_int_equal(s->c->lease_count, 1);
    /* A new session of the same name is under the same order, one of another name is not. */
    wpk_scene_hello(s, worker);
    assert_int_equal(wpk_scene_poll(s, worker, 4), 0);
    assert_int_equal(wpk_scene_poll(s, join(s, "v"), 1), 1);
    /* Its poll, which waits, is answered when the order is taken back. */
    wpk_scene_set_worker(s, "w", WPK_WORKER_ORDER_NONE, NULL);
    assert_string_equal(s->order_text, "w none ");
    assert_true(s->workers[worker].held_count > 1);
    end(s);
}

static void nobody_believes_the_quarantined(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    submit(s, 1, 50);
    int worker = join(s, "w");
    assert_int_equal(wpk_scene_poll(s, worker, 2), 2);
    wpk_scene_set_worker(s, "w", WPK_WORKER_ORDER_QUARANTINE, "too fast");
    assert_int_equal(s->c->lease_count, 0);
    assert_int_equal(piece(s, 0)->attempts, 0); /* unblamed */
    wpk_scene_poll(s, worker, 0);               /* nor is it adopted again */
    assert_int_equal(s->c->lease_count, 0);
    wpk_scene_result(s, worker, WPK_OUTCOME_OK, 5);
    assert_int_equal(s->workers[worker].told, WPK_MESSAGE_ERROR);
    assert_int_equal(s->workers[worker].err, WPK_EACCES);
    assert_string_equal(s->workers[worker].text,
                        "this worker is quarantined, its results are refused: too fast");
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
    int other = join(s, "v");
    assert_int_equal(wpk_scene_poll(s, other, 1), 1);
    assert_int_equal(s->workers[other].held[0].id.index, 0);
    end(s);
}

static void orders_survive_a_restart(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    struct wpk_event event = {.kind = WPK_EVENT_RESTORE_ORDER,
                              .worker = "w",
                              .order = WPK_WORKER_ORDER_QUARANTINE,
                              .reason = "lies"};
    wpk_scene_step(s, &event);
    assert_int_equal(s->seen[WPK_EFFECT_SET_WORKER_ORDER], 0); /* the store knows */
    submit(s, 1, 50);
    int worker = join(s, "w");
    assert_int_equal(wpk_scene_poll(s, worker, 1), 0);
    const struct wpk_worker *w = wpk_coordinator_find_worker(s->c, "w");
    assert_int_equal(w->order, WPK_WORKER_ORDER_QUARANTINE);
    assert_string_equal(w->order_reason, "lies");
    wpk_scene_set_worker(s, "nobody", WPK_WORKER_ORDER_DRAIN, "");
    assert_int_equal(s->status, 404);
    end(s);
}

static void join_at(struct wpk_scene *s, const char *name, const char *instance)
{
    int worker = join(s, name);
    snprintf(s->workers[worker].hello.device.instance, WPK_DEVICE_TEXT_MAX, "%s", instance);
    wpk_scene_hello(s, worker);
}

/* What is ordered of a device holds for whatever name serves it next. */
static void orders_of_a_device(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    join_at(s, "h/cpu0/1", "h/cpu0");
    join_at(s, "h/cpu1/2", "h/cpu1");
    wpk_scene_set_worker(s, "h/cpu0", WPK_WORKER_ORDER_QUARANTINE, "lies");
    assert_int_equal(s->status, 200);
    join_at(s, "h/cpu0/3", "h/cpu0");
    assert_int_equal(wpk_coordinator_find_worker(s->c, "h/cpu0/1")->order,
                     WPK_WORKER_ORDER_QUARANTINE);
    assert_int_equal(wpk_coordinator_find_worker(s->c, "h/cpu0/3")->order,
                     WPK_WORKER_ORDER_QUARANTINE);
    assert_int_equal(wpk_coordinator_find_worker(s->c, "h/cpu1/2")->order, WPK_WORKER_ORDER_NONE);
    wpk_scene_set_worker(s, "h/cpu0", WPK_WORKER_ORDER_NONE, "");
    assert_int_equal(wpk_coordinator_find_worker(s->c, "h/cpu0/3")->order, WPK_WORKER_ORDER_NONE);
    end(s);
}

static void wpkd_drains(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    int worker = join(s, "w");
    int busy = join(s, "busy");
    submit(s, 1, 50);
    assert_int_equal(wpk_scene_poll(s, busy, 1), 1);
    submit(s, 2, 50);
    wpk_scene_job_event(s, WPK_EVENT_PAUSE, s->c->jobs[0]);
    wpk_scene_job_event(s, WPK_EVENT_PAUSE, s->c->jobs[1]);
    wpk_scene_poll(s, worker, 1);
    assert_false(s->workers[worker].answered);
    wpk_scene_step(s, &(struct wpk_event){.kind = WPK_EVENT_DRAIN});
    assert_true(s->workers[worker].answered);
    wpk_scene_job_event(s, WPK_EVENT_RESUME, s->c->jobs[0]);
    assert_int_equal(wpk_scene_poll(s, worker, 1), 0);
    assert_true(s->workers[worker].answered);
    assert_int_equal(wpk_scene_result(s, busy, WPK_OUTCOME_OK, 5), WPK_ACK_RECORDED);
    end(s);
}

/* ---- who builds, who runs */

static void built_here_and_run_there(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    const struct wpk_job_entry *job = submit(s, 1, 2);
    int builder = wpk_scene_worker(s, "builder");
    s->workers[builder].hello.roles = WPK_WORKER_BUILDS;
    snprintf(s->workers[builder].hello.device.model, WPK_DEVICE_TEXT_MAX, "another machine");
    wpk_scene_hello(s, builder);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_WAITING); /* it is no device to tune for */
    int runner = join_as(s, "runner", WPK_WORKER_RUNS);
    assert_int_equal(wpk_scene_poll(s, runner, 2), 0); /* waits */
    assert_int_equal(wpk_scene_poll(s, builder, 1), 1);
    assert_int_equal(s->workers[builder].held[0].stage, WPK_STAGE_BUILD);
    assert_int_equal(wpk_scene_result(s, builder, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
    assert_int_equal(s->workers[runner].held_count, 1);
    assert_int_equal(s->workers[runner].held[0].stage, WPK_STAGE_RUN);
    assert_string_equal(s->workers[runner].artifact[0], "built1.0");
    assert_int_equal(wpk_scene_result(s, runner, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 1);
    /* What does not build has ended. */
    assert_int_equal(wpk_scene_poll(s, builder, 1), 1);
    assert_int_equal(wpk_scene_result(s, builder, WPK_OUTCOME_BUILD_ERROR, 0), WPK_ACK_RECORDED);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 2);
    /* The winner is verified as it was built: it is not built again. */
    assert_int_equal(job->ops[0].phase, WPK_PHASE_VERIFYING);
    assert_int_equal(wpk_scene_poll(s, builder, 1), 0);
    assert_int_equal(wpk_scene_poll(s, runner, 1), 1);
    assert_int_equal(s->workers[runner].held[0].stage, WPK_STAGE_RUN);
    assert_string_equal(s->workers[runner].artifact[0], "built1.0");
    assert_int_equal(wpk_scene_result(s, runner, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_int_equal(job->state, WPK_JOB_DONE);
    assert_string_equal(s->verified_by, "runner");
    end(s);
}

/* Its word counts for what it builds, until that is built; the rest is for those who run. */
static void a_builder_ends_nothing_that_is_built(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    const struct wpk_job_entry *job = submit(s, 1, 2);
    int runner = join_as(s, "runner", WPK_WORKER_RUNS);
    int builder = join_as(s, "builder", WPK_WORKER_BUILDS);
    struct wpk_scene_worker *self = &s->workers[builder];
    assert_int_equal(wpk_scene_poll(s, builder, 2), 2);
    const struct wpk_work first = self->held[0];
    assert_int_equal(wpk_scene_result(s, builder, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    /* The second: it cannot know. */
    const struct wpk_work second = self->held[0];
    assert_int_equal(wpk_scene_result(s, builder, WPK_OUTCOME_WRONG_RESULT, 0), WPK_ACK_UNKNOWN);
    self->held[0] = second;
    self->held_count = 1;
    assert_int_equal(wpk_scene_result(s, builder, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    assert_int_equal(wpk_scene_poll(s, runner, 2), 2);
    self->held[0] = first;
    self->held_count = 1;
    assert_int_equal(wpk_scene_result(s, builder, WPK_OUTCOME_BUILD_ERROR, 0),
                     WPK_ACK_ALREADY_RECORDED);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 0);
    assert_int_equal(wpk_scene_result(s, runner, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_int_equal(wpk_scene_result(s, runner, WPK_OUTCOME_OK, 60), WPK_ACK_RECORDED);
    const struct wpk_search *search = job->ops[0].search;
    assert_int_equal(job->ops[0].phase, WPK_PHASE_FINALS);
    self->held[0] = first;
    self->held[0].id = (wpk_work_id){search->id, WPK_WORK_FINAL, search->final_number};
    self->held_count = 1;
    assert_int_equal(wpk_scene_result(s, builder, WPK_OUTCOME_ABANDONED, 0), WPK_ACK_UNKNOWN);
    assert_int_equal(wpk_scene_poll(s, runner, 1), 1);
    assert_int_equal(wpk_scene_final(s, runner), WPK_ACK_RECORDED);
    self->held[0] = first;
    self->held[0].id = (wpk_work_id){search->id, WPK_WORK_VERIFY, search->verify_number};
    self->held_count = 1;
    assert_int_equal(wpk_scene_result(s, builder, WPK_OUTCOME_BUILD_ERROR, 0), WPK_ACK_UNKNOWN);
    assert_int_equal(wpk_scene_poll(s, runner, 1), 1);
    assert_int_equal(wpk_scene_result(s, runner, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_int_equal(job->state, WPK_JOB_DONE);
    end(s);
}

/* A builder without the compiler that the device's workers have is of no use to them. */
static void a_builder_of_another_environment(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    const struct wpk_job_entry *job = submit(s, 1, 2);
    char reason[WPK_REASON_MAX];
    int runner = join_as(s, "runner", WPK_WORKER_RUNS);
    assert_int_equal(wpk_scene_poll(s, runner, 2), 0);
    assert_true(wpk_coordinator_blocked(s->c, job, 0, reason));
    assert_string_equal(reason, "no worker builds for cpu/model/avx2");
    int old = wpk_scene_worker(s, "old");
    s->workers[old].hello.roles = WPK_WORKER_BUILDS;
    snprintf(s->workers[old].hello.environment, WPK_ENVIRONMENT_MAX, "codegen=1;halide=20");
    wpk_scene_hello(s, old);
    assert_int_equal(wpk_scene_poll(s, old, 2), 0);
    int lean = wpk_scene_worker(s, "lean");
    s->workers[lean].hello.roles = WPK_WORKER_BUILDS;
    snprintf(s->workers[lean].hello.environment, WPK_ENVIRONMENT_MAX, "halide=21");
    wpk_scene_hello(s, lean);
    assert_false(wpk_coordinator_blocked(s->c, job, 0, reason));
    assert_int_equal(wpk_scene_poll(s, lean, 2), 2);
    end(s);
}

/* A worker of the first version cannot be told to run what another has built. */
static void who_knows_no_stages_builds_again(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    const struct wpk_job_entry *job = submit(s, 1, 1);
    int old = wpk_scene_worker(s, "old");
    s->workers[old].version = 1;
    wpk_scene_hello(s, old);
    int builder = join_as(s, "builder", WPK_WORKER_BUILDS);
    assert_int_equal(wpk_scene_poll(s, builder, 1), 1);
    assert_int_equal(wpk_scene_result(s, builder, WPK_OUTCOME_OK, 0), WPK_ACK_RECORDED);
    assert_int_equal(wpk_scene_poll(s, old, 1), 1);
    assert_int_equal(s->workers[old].held[0].stage, WPK_STAGE_WHOLE);
    assert_string_equal(s->workers[old].artifact[0], "");
    assert_int_equal(wpk_scene_result(s, old, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_string_equal(job->ops[0].search->best[0].trial.artifact_sha256, "a1.0");
    /* What it built again to verify it is another object: it is not served, nor waited for. */
    assert_int_equal(job->ops[0].phase, WPK_PHASE_VERIFYING);
    assert_int_equal(wpk_scene_poll(s, old, 1), 1);
    assert_int_equal(s->workers[old].held[0].id.kind, WPK_WORK_VERIFY);
    assert_int_equal(s->workers[old].held[0].stage, WPK_STAGE_WHOLE);
    assert_int_equal(wpk_scene_result(s, old, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_KERNEL], 0);
    assert_int_equal(job->state, WPK_JOB_FAILED);
    end(s);
}

/* A build whose artifact was lost on the way is done again, but not for ever. */
static void an_artifact_is_lost(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    submit(s, 1, 1);
    join_as(s, "runner", WPK_WORKER_RUNS);
    int builder = join_as(s, "builder", WPK_WORKER_BUILDS);
    for (int i = 0; i < WPK_ATTEMPTS_MAX; i++) {
        assert_int_equal(wpk_scene_poll(s, builder, 1), 1);
        struct wpk_result result = {
            .id = s->workers[builder].held[0].id, .stage = WPK_STAGE_BUILD, .failure = ""};
        struct wpk_message message = {.kind = WPK_MESSAGE_RESULTS,
                                      .session = s->workers[builder].session,
                                      .results = &result,
                                      .result_count = 1};
        s->workers[builder].held_count = 0;
        wpk_scene_step(s, &(struct wpk_event){.kind = WPK_EVENT_MESSAGE,
                                              .address = {.peer = (uint32_t)builder + 1},
                                              .message = &message});
        assert_int_equal(s->workers[builder].acks[0], WPK_ACK_RECORDED);
    }
    assert_int_equal(s->seen[WPK_EFFECT_PUT_TRIAL], 1);
    end(s);
}

/* ---- a second pair of eyes */

static const struct wpk_job_entry *reach_verifying(struct wpk_scene *s, int worker)
{
    const struct wpk_job_entry *job = submit(s, 1, 3);
    assert_int_equal(wpk_scene_poll(s, worker, 3), 3);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(wpk_scene_result(s, worker, WPK_OUTCOME_OK, 50 + i), WPK_ACK_RECORDED);
    }
    assert_int_equal(job->ops[0].phase, WPK_PHASE_FINALS);
    assert_int_equal(wpk_scene_poll(s, worker, 1), 1);
    assert_int_equal(wpk_scene_final(s, worker), WPK_ACK_RECORDED);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_VERIFYING);
    return job;
}

static void another_worker_verifies(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    int first = join(s, "first");
    int second = join(s, "second");
    const struct wpk_job_entry *job = reach_verifying(s, first);
    assert_int_equal(wpk_scene_poll(s, first, 1), 0); /* not who timed it */
    assert_int_equal(wpk_scene_poll(s, second, 1), 1);
    assert_int_equal(s->workers[second].held[0].stage, WPK_STAGE_RUN);
    assert_string_equal(s->workers[second].artifact[0], "a1.0"); /* those very bytes */
    assert_int_equal(wpk_scene_result(s, second, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_int_equal(job->state, WPK_JOB_DONE);
    assert_string_equal(s->verified_by, "second");
    end(s);
}

/* Who timed the winner names the verification as its own, or brings its result unasked. */
static void who_timed_it_does_not_push_in(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    int first = join(s, "first");
    int second = join(s, "second");
    const struct wpk_job_entry *job = reach_verifying(s, first);
    struct wpk_scene_worker *self = &s->workers[first];
    const struct wpk_search *search = job->ops[0].search;
    const struct wpk_work verify = {.id = {search->id, WPK_WORK_VERIFY, search->verify_number},
                                    .stage = WPK_STAGE_RUN};
    for (int leased = 0; leased < 2; leased++) {
        self->held[0] = verify;
        snprintf(self->artifact[0], WPK_ID_MAX, "%s", search->verify.built->artifact_sha256);
        self->held_count = 1;
        wpk_scene_poll(s, first, 0);
        assert_int_equal(search->verify.standing, leased ? WPK_STANDING_LEASED : WPK_STANDING_OPEN);
        assert_int_equal(wpk_scene_result(s, first, WPK_OUTCOME_OK, 50), WPK_ACK_UNKNOWN);
        assert_int_equal(job->ops[0].phase, WPK_PHASE_VERIFYING);
        assert_int_equal(wpk_scene_poll(s, second, 1), leased ? 0 : 1);
    }
    /* Nor when the other one takes its time. */
    for (uint64_t waited = 0; waited <= WPK_SECOND_MS; waited += 5000) {
        wpk_scene_wait(s, 5000);
        wpk_scene_poll(s, second, 0);
        wpk_scene_poll(s, first, 0);
    }
    self->held[0] = verify;
    self->held_count = 1;
    assert_int_equal(wpk_scene_result(s, first, WPK_OUTCOME_OK, 50), WPK_ACK_UNKNOWN);
    assert_int_equal(wpk_scene_result(s, second, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_string_equal(s->verified_by, "second");
    end(s);
}

static void alone_it_verifies_itself(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    int first = join(s, "first");
    const struct wpk_job_entry *job = reach_verifying(s, first);
    assert_int_equal(wpk_scene_poll(s, first, 1), 1);
    assert_int_equal(wpk_scene_result(s, first, WPK_OUTCOME_OK, 50), WPK_ACK_RECORDED);
    assert_string_equal(s->verified_by, "first");
    assert_int_equal(job->state, WPK_JOB_DONE);
    end(s);
}

/* The other one never asks: after a while anybody will do. */
static void the_second_is_not_waited_for_for_ever(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    int first = join(s, "first");
    int second = join(s, "second");
    reach_verifying(s, first);
    for (uint64_t waited = 0; waited + 5000 < WPK_SECOND_MS; waited += 5000) {
        wpk_scene_poll(s, second, 0);
        assert_int_equal(wpk_scene_poll(s, first, 1), 0);
        wpk_scene_wait(s, 5000);
    }
    wpk_scene_poll(s, first, 1);
    assert_int_equal(s->workers[first].held_count, 0);
    wpk_scene_wait(s, 5500);
    assert_int_equal(s->workers[first].held_count, 1);
    end(s);
}

/* ---- many */

/* A pool of work wakes those who can do it, first come, first served. */
static void polls_are_served_in_turn(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        assert_int_equal(wpk_scene_poll(s, join(s, name), 2), 0);
    }
    s->refuse_at = 6;
    submit(s, 1, 100);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(s->workers[i].held_count, i < 3 ? 2 : 0);
    }
    /* A generation is over: the strategy goes on, and so do those who wait. */
    s->refuse_at = 0;
    for (int i = 0; i < 3; i++) {
        wpk_scene_result(s, i, WPK_OUTCOME_OK, 50);
        wpk_scene_result(s, i, WPK_OUTCOME_OK, 60);
    }
    assert_int_equal(s->workers[3].held_count, 2);
    assert_int_equal(s->workers[4].held_count, 2);
    end(s);
}

/* A poll without work is answered when its time is over. */
static void polls_end(void **state)
{
    (void)state;
    struct wpk_scene *s = begin();
    int worker = join(s, "w");
    wpk_scene_poll(s, worker, 2);
    wpk_scene_wait(s, 9000);
    assert_false(s->workers[worker].answered);
    wpk_scene_wait(s, 1500);
    assert_true(s->workers[worker].answered);
    assert_int_equal(s->workers[worker].told, WPK_MESSAGE_WORK);
    submit(s, 1, 5);
    assert_int_equal(s->workers[worker].held_count, 0); /* it has to ask again */
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_silent_is_lost),
        cmocka_unit_test(a_heartbeat_keeps_what_it_names),
        cmocka_unit_test(what_ran_is_blamed),
        cmocka_unit_test(three_deaths_and_it_is_abandoned),
        cmocka_unit_test(results_of_expired_leases),
        cmocka_unit_test(a_connection_of_many),
        cmocka_unit_test(who_changes_is_not_believed),
        cmocka_unit_test(a_drained_worker_ends_what_it_has),
        cmocka_unit_test(nobody_believes_the_quarantined),
        cmocka_unit_test(orders_survive_a_restart),
        cmocka_unit_test(orders_of_a_device),
        cmocka_unit_test(wpkd_drains),
        cmocka_unit_test(built_here_and_run_there),
        cmocka_unit_test(a_builder_ends_nothing_that_is_built),
        cmocka_unit_test(a_builder_of_another_environment),
        cmocka_unit_test(who_knows_no_stages_builds_again),
        cmocka_unit_test(an_artifact_is_lost),
        cmocka_unit_test(another_worker_verifies),
        cmocka_unit_test(who_timed_it_does_not_push_in),
        cmocka_unit_test(alone_it_verifies_itself),
        cmocka_unit_test(the_second_is_not_waited_for_for_ever),
        cmocka_unit_test(polls_are_served_in_turn),
        cmocka_unit_test(polls_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
