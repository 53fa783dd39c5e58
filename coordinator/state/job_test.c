/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: quotas, pauses, what they share, what they wait for, and how they come back. */
#include "tests/fixture.h"

#include "common/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int join(struct wpk_fixture *s, const char *name)
{
    int worker = wpk_fixture_worker(s, name);
    wpk_fixture_hello(s, worker);
    assert_int_equal(s->workers[worker].told, WPK_MESSAGE_WELCOME);
    return worker;
}

/* Do all that there is to do; each candidate takes its number and a thousand. */
static void work_off(struct wpk_fixture *s, int worker)
{
    const struct wpk_fixture_worker *self = &s->workers[worker];
    for (int rounds = 0; rounds < 5000; rounds++) {
        if (self->held_count == 0 && wpk_fixture_poll(s, worker, 4) == 0) {
            return;
        }
        if (self->held[0].id.kind == WPK_WORK_FINAL) {
            wpk_fixture_final(s, worker);
        } else {
            wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 1000 + self->held[0].id.index);
        }
    }
    fail_msg("the work does not end");
}

static struct wpk_job_entry *small_job(const char *owner, uint32_t first_op, uint32_t candidates)
{
    struct wpk_job_entry *job = wpk_fixture_job(owner, first_op, 1);
    job->candidates = candidates;
    return job;
}

/* ---- quotas */

static void quotas_are_per_owner(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    struct wpk_event event = {.kind = WPK_EVENT_SET_OWNER,
                              .owner = {.name = "a", .weight = 1, .jobs_max = 2}};
    wpk_fixture_step(s, &event);
    const struct wpk_job_entry *first = wpk_fixture_submit(s, small_job("a", 1, 5));
    assert_non_null(first);
    assert_non_null(wpk_fixture_submit(s, small_job("a", 2, 5)));
    assert_int_equal(s->status, 201);
    assert_null(wpk_fixture_submit(s, small_job("a", 3, 5)));
    assert_int_equal(s->status, 429);
    assert_true(s->retry_after_s > 0);
    assert_string_equal(s->problem, "a has 2 jobs that have not ended, and may have 2");
    assert_non_null(wpk_fixture_submit(s, small_job("b", 3, 5)));
    /* Paused ones count, ended ones do not. */
    wpk_fixture_job_event(s, WPK_EVENT_PAUSE, first);
    assert_null(wpk_fixture_submit(s, small_job("a", 3, 5)));
    wpk_fixture_job_event(s, WPK_EVENT_CANCEL, first);
    assert_non_null(wpk_fixture_submit(s, small_job("a", 3, 5)));
    /* A reload can forbid all. */
    event.owner = (struct wpk_owner_event){.name = "", .weight = 1, .jobs_max = 0};
    wpk_fixture_step(s, &event);
    assert_null(wpk_fixture_submit(s, small_job("b", 4, 5)));
    assert_int_equal(wpk_metric_counted(WPK_COUNTER_JOBS_REFUSED, 0), 3);
    wpk_fixture_free(s);
}

static void there_is_a_most(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    for (uint32_t i = 0; i < WPK_JOBS_LIVE_MAX; i++) {
        assert_non_null(wpk_fixture_submit(s, small_job("a", i, 5)));
    }
    assert_null(wpk_fixture_submit(s, small_job("b", 9999, 5)));
    assert_int_equal(s->status, 429);
    assert_int_equal(s->c->live_count, WPK_JOBS_LIVE_MAX);
    wpk_fixture_free(s);
}

/* ---- the end of a job stays until it is durable */

static void ended_is_found_until_it_is_stored(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = join(s, "w");
    const struct wpk_job_entry *job = wpk_fixture_submit(s, small_job("a", 1, 5));
    work_off(s, worker);
    assert_int_equal(job->state, WPK_JOB_DONE);
    assert_int_equal(s->c->live_count, 0);
    char id[WPK_JOB_ID_SIZE];
    memcpy(id, job->id, sizeof id);
    wpk_fixture_wait(s, 5000);
    assert_ptr_equal(wpk_coordinator_job(s->c, id), job);
    wpk_job_stored(s->c, job->number);
    wpk_job_stored(s->c, 4711);
    wpk_fixture_wait(s, 3000);
    assert_null(wpk_coordinator_job(s->c, id));
    assert_int_equal(s->c->search_count, 0);
    assert_int_equal(s->seen[WPK_EFFECT_CLOSE_SEARCH], 1);
    wpk_fixture_free(s);
}

/* ---- pause */

static void paused_is_not_worked_on(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = join(s, "w");
    const struct wpk_job_entry *job = wpk_fixture_submit(s, small_job("a", 1, 50));
    assert_int_equal(wpk_fixture_poll(s, worker, 2), 2);
    assert_int_equal(job->state, WPK_JOB_RUNNING);
    wpk_fixture_job_event(s, WPK_EVENT_PAUSE, job);
    assert_int_equal(s->status, 200);
    assert_int_equal(job->state, WPK_JOB_PAUSED);
    /* Results of leases from before count; no new lease follows. */
    assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 5), WPK_ACK_RECORDED);
    assert_int_equal(wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 6), WPK_ACK_RECORDED);
    assert_int_equal(wpk_fixture_poll(s, worker, 2), 0);
    /* A poll that waits is answered by the resumption. */
    assert_false(s->workers[worker].answered);
    wpk_fixture_job_event(s, WPK_EVENT_RESUME, job);
    assert_int_equal(job->state, WPK_JOB_RUNNING);
    assert_int_equal(s->workers[worker].held_count, 2);
    work_off(s, worker);
    assert_int_equal(job->state, WPK_JOB_DONE);
    wpk_fixture_free(s);
}

static void paused_before_it_began(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    const struct wpk_job_entry *job = wpk_fixture_submit(s, small_job("a", 1, 5));
    wpk_fixture_job_event(s, WPK_EVENT_PAUSE, job);
    int worker = join(s, "w");
    assert_int_equal(wpk_fixture_poll(s, worker, 2), 0);
    assert_int_equal(s->c->search_count, 0);
    wpk_fixture_job_event(s, WPK_EVENT_RESUME, job);
    assert_int_equal(s->workers[worker].held_count, 2);
    assert_int_equal(job->state, WPK_JOB_RUNNING);
    work_off(s, worker);
    assert_int_equal(job->state, WPK_JOB_DONE);
    wpk_fixture_free(s);
}

/* ---- sharing */

static void the_same_question_is_one_search(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = join(s, "w");
    const struct wpk_job_entry *small = wpk_fixture_submit(s, small_job("a", 1, 10));
    const struct wpk_job_entry *large = wpk_fixture_submit(s, small_job("b", 1, 30));
    assert_int_equal(s->c->search_count, 1);
    struct wpk_search *search = s->c->searches[0];
    assert_int_equal(search->candidates, 30); /* the largest */
    assert_int_equal(wpk_fixture_poll(s, worker, 4), 4);
    assert_int_equal(small->state, WPK_JOB_RUNNING);
    assert_int_equal(large->state, WPK_JOB_RUNNING);
    /* The one that goes takes its budget with it, and nothing else. */
    wpk_fixture_job_event(s, WPK_EVENT_CANCEL, large);
    assert_int_equal(search->candidates, 10);
    assert_int_equal(large->state, WPK_JOB_CANCELLED);
    work_off(s, worker);
    assert_int_equal(small->state, WPK_JOB_DONE);
    assert_int_equal(search->ask_count, 10);
    assert_int_equal(small->ops[0].kernel_id, 1);
    /* A third finds it done. */
    const struct wpk_job_entry *third = wpk_fixture_submit(s, small_job("c", 1, 10));
    assert_int_equal(third->state, WPK_JOB_DONE);
    assert_true(third->ops[0].from_history);
    assert_int_equal(search->ask_count, 10);
    wpk_fixture_free(s);
}

/* ---- budgets */

/* Time passes only while work is out. */
static void seconds_count_work(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = join(s, "w");
    struct wpk_job_entry *made = small_job("a", 1, 1000);
    made->time_ns = UINT64_C(10000000000);
    const struct wpk_job_entry *job = wpk_fixture_submit(s, made);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    wpk_fixture_wait(s, 6000);
    wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 5);
    wpk_fixture_wait(s, 15000); /* nobody asks */
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_SEARCHING);
    wpk_fixture_wait(s, 5000);
    wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 6);
    assert_int_equal(job->ops[0].phase, WPK_PHASE_FINALS);
    assert_int_equal(job->ops[0].search->elapsed_ns, UINT64_C(11000000000));
    wpk_fixture_free(s);
}

/* ---- failure */

static void nothing_works(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = wpk_fixture_worker(s, "w");
    snprintf(s->workers[worker].hello.providers[1].name, WPK_PROVIDER_NAME_MAX, "vendor");
    s->workers[worker].hello.provider_count = 2;
    wpk_fixture_hello(s, worker);
    const struct wpk_job_entry *job = wpk_fixture_submit(s, small_job("a", 1, 5));
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    assert_int_equal(s->workers[worker].held[0].id.kind, WPK_WORK_VENDOR);
    assert_int_equal(wpk_fixture_poll(s, worker, 5), 5);
    wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 777);
    for (int i = 0; i < 5; i++) {
        wpk_fixture_result(s, worker, i < 3 ? WPK_OUTCOME_RUN_CRASH : WPK_OUTCOME_BUILD_ERROR, 0);
    }
    assert_int_equal(job->state, WPK_JOB_FAILED);
    assert_string_equal(job->ops[0].reason,
                        "no implementation works: 3 of 5 candidates ended run_crash");
    assert_int_equal(s->seen[WPK_EFFECT_PUT_KERNEL], 1); /* the vendor's, to be served */
    assert_int_equal(job->ops[0].kernel_id, 1);
    /* The same again: history says the same. */
    const struct wpk_job_entry *again = wpk_fixture_submit(s, small_job("a", 1, 5));
    assert_int_equal(again->state, WPK_JOB_FAILED);
    assert_int_equal(again->ops[0].kernel_id, 1);
    wpk_fixture_free(s);
}

/* ---- waiting for a device */

static void expect_blocked(struct wpk_fixture *s, const struct wpk_job_entry *job,
                           const char *reason)
{
    char text[WPK_REASON_MAX];
    bool blocked = wpk_bind_blocked(s->c, job, 0, text);
    assert_string_equal(text, reason);
    assert_int_equal(blocked, reason[0] != '\0');
}

static void what_it_waits_for_is_said(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    struct wpk_job_entry *made = small_job("a", 1, 5);
    made->threads = 4;
    made->label_count = 1;
    made->labels[0] = (struct wpk_worker_label){.name = "zone", .value = "b"};
    const struct wpk_job_entry *job = wpk_fixture_submit(s, made);
    expect_blocked(s, job, "no worker with kind cpu");
    join(s, "two cores");
    expect_blocked(s, job, "no worker with kind cpu and 4 cores");
    int many = wpk_fixture_worker(s, "eight cores");
    s->workers[many].hello.device.core_count = 8;
    wpk_fixture_hello(s, many);
    expect_blocked(s, job, "no worker has label zone=b");
    assert_int_equal(job->ops[0].phase, WPK_PHASE_WAITING);
    int right = wpk_fixture_worker(s, "right");
    s->workers[right].hello.device.core_count = 8;
    s->workers[right].hello.label_count = 2;
    s->workers[right].hello.labels[0] = (struct wpk_worker_label){.name = "rack", .value = "1"};
    s->workers[right].hello.labels[1] = (struct wpk_worker_label){.name = "zone", .value = "b"};
    wpk_fixture_hello(s, right);
    expect_blocked(s, job, "");
    /* It is given to whom it asks for only, though all are of one device class. */
    assert_int_equal(wpk_fixture_poll(s, many, 1), 0);
    assert_int_equal(wpk_fixture_poll(s, right, 1), 1);
    wpk_fixture_set_worker(s, "right", WPK_ADMIN_STATE_DRAIN, "");
    expect_blocked(s, job, "its workers are drained, quarantined or away");
    wpk_fixture_free(s);
}

static struct wpk_job_entry *restored_job(uint64_t number, const char *bound)
{
    struct wpk_job_entry *job = small_job("a", (uint32_t)number, 5);
    job->number = number;
    snprintf(job->id, sizeof job->id, "j%u", (unsigned)number);
    job->ops[0].bound = strdup(bound);
    return job;
}

static void restore(struct wpk_fixture *s, struct wpk_job_entry *job)
{
    wpk_fixture_step(s, &(struct wpk_event){.kind = WPK_EVENT_RESTORE, .job = job});
}

/* A job that was paused shows what it had, gives out nothing, and goes on where it was. */
static void a_paused_job_is_as_it_was(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    struct wpk_job_entry *job = restored_job(7, "cpu/model/avx2\ncodegen=1;halide=21\nhalide-cpu");
    job->state = WPK_JOB_PAUSED;
    s->opened.told_count = 3;
    s->opened.ask_count = 3;
    s->opened.ok_count = 3;
    restore(s, job);
    assert_int_equal(s->c->search_count, 1);
    assert_non_null(job->ops[0].search);
    assert_int_equal(job->ops[0].search->ok_count, 3);
    int worker = join(s, "w");
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 0);
    wpk_fixture_wait(s,
                     40000); /* longer than its device is waited for; the worker is gone by then */
    assert_int_equal(job->state, WPK_JOB_PAUSED);
    wpk_fixture_hello(s, worker);
    wpk_fixture_job_event(s, WPK_EVENT_RESUME, job);
    wpk_fixture_poll(s, worker, 1);
    assert_int_equal(s->workers[worker].held_count, 1);
    assert_int_equal(s->workers[worker].held[0].id.index, 3);
    assert_int_equal(s->c->search_count, 1);
    wpk_fixture_free(s);
}

/* After a restart an operator waits for the device that it had, but not for ever. */
static void its_device_comes_back(void **state)
{
    (void)state;
    const char *bound = "cpu/other/avx2\ncodegen=1;halide=21\nhalide-cpu";
    for (int comes = 0; comes < 2; comes++) {
        struct wpk_fixture *s = wpk_fixture_new();
        struct wpk_job_entry *job = restored_job(7, bound);
        restore(s, job);
        /* The search is restored at once; it needs the device to go on. */
        assert_int_equal(s->c->search_count, 1);
        assert_int_equal(job->ops[0].phase, WPK_PHASE_SEARCHING);
        assert_string_equal(job->ops[0].search->key.device_class, "cpu/other/avx2");
        expect_blocked(s, job, "no worker with kind cpu");
        int worker = join(s, "w");
        expect_blocked(s, job, "no worker with cpu/other/avx2 and codegen=1;halide=21");
        assert_int_equal(wpk_fixture_poll(s, worker, 1), 0);
        int other = wpk_fixture_worker(s, "other");
        snprintf(s->workers[other].hello.device.model, WPK_DEVICE_TEXT_MAX, "other");
        wpk_fixture_wait(s, 20000);
        if (comes) {
            wpk_fixture_hello(s, other);
            assert_int_equal(wpk_fixture_poll(s, other, 1), 1);
        } else {
            wpk_fixture_poll(s, worker, 1);
            wpk_fixture_wait(s, 9000);
            assert_int_equal(s->workers[worker].held_count, 0);
            wpk_fixture_wait(s, 2000);
            wpk_fixture_poll(s, worker, 1);
            assert_int_equal(s->workers[worker].held_count, 1);
        }
        wpk_fixture_wait(s, 2000);
        assert_int_equal(s->c->search_count, 1);
        assert_string_equal(job->ops[0].search->key.device_class,
                            comes ? "cpu/other/avx2" : "cpu/model/avx2");
        wpk_fixture_free(s);
    }
}

/* A job for one device class gets no worker of another one, however long it waits. */
static void a_job_for_one_device(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    struct wpk_job_entry *job = wpk_fixture_job("a", 1, 1);
    snprintf(job->device, sizeof job->device, "cpu/other/avx2");
    assert_non_null(wpk_fixture_submit(s, job));
    expect_blocked(s, job, "no worker with kind cpu");
    int worker = join(s, "w");
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 0);
    expect_blocked(s, job, "no worker with device cpu/other/avx2");
    wpk_fixture_wait(s, 40000);
    assert_int_equal(s->c->search_count, 0);
    int other = wpk_fixture_worker(s, "other");
    snprintf(s->workers[other].hello.device.model, WPK_DEVICE_TEXT_MAX, "other");
    wpk_fixture_hello(s, other);
    assert_int_equal(wpk_fixture_poll(s, other, 1), 1);
    assert_string_equal(job->ops[0].search->key.device_class, "cpu/other/avx2");
    wpk_fixture_free(s);
}

/* A fleet had more of its operators under way than are begun at a start, when nobody is here yet:
 * its results are on their way. */
static void all_that_was_begun_is_open_again(void **state)
{
    (void)state;
    enum { OPS = 40, BEGUN = 30 };
    struct wpk_fixture *s = wpk_fixture_new();
    struct wpk_job_entry *job = wpk_fixture_job("a", 1, OPS);
    job->number = 7;
    snprintf(job->id, sizeof job->id, "j7");
    for (int i = 0; i < BEGUN; i++) {
        job->ops[i].bound = strdup("cpu/model/avx2\ncodegen=1;halide=21\nhalide-cpu");
    }
    restore(s, job);
    assert_int_equal(s->c->search_count, BEGUN);
    assert_int_equal(job->ops[BEGUN - 1].phase, WPK_PHASE_SEARCHING);
    assert_null(job->ops[BEGUN].search);
    /* Worked on are as many as of any job. */
    int worker = join(s, "w");
    wpk_fixture_wait(s, 1000);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    assert_null(job->ops[BEGUN - 1].claims[0]);
    assert_int_equal(s->c->search_count, BEGUN);
    wpk_fixture_free(s);
}

/* No candidate of the smaller budget works; the larger budget has hardly begun. */
static void a_larger_budget_outlives_a_failure(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = join(s, "w");
    const struct wpk_job_entry *small = wpk_fixture_submit(s, small_job("a", 1, 1));
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    wpk_fixture_result(s, worker, WPK_OUTCOME_OK, 100);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 1);
    assert_int_equal(s->workers[worker].held[0].id.kind, WPK_WORK_VERIFY);
    const struct wpk_job_entry *same = wpk_fixture_submit(s, small_job("b", 1, 1));
    const struct wpk_job_entry *large = wpk_fixture_submit(s, small_job("b", 1, 3));
    assert_ptr_equal(large->ops[0].search, small->ops[0].search);
    wpk_fixture_result(s, worker, WPK_OUTCOME_WRONG_RESULT, 0);
    assert_int_equal(small->state, WPK_JOB_FAILED);
    assert_int_equal(same->state, WPK_JOB_FAILED);
    assert_int_equal(large->ops[0].phase, WPK_PHASE_SEARCHING);
    assert_string_equal(large->ops[0].reason, "");
    assert_int_equal(wpk_fixture_poll(s, worker, 4), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(large->state, WPK_JOB_RUNNING);
        wpk_fixture_result(s, worker, WPK_OUTCOME_RUN_CRASH, 0);
    }
    assert_int_equal(large->state, WPK_JOB_FAILED);
    wpk_fixture_free(s);
}

/* Answers of a search that was swept meanwhile are freed, and that is all. */
static void answers_come_late(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = join(s, "w");
    s->hold = true;
    const struct wpk_job_entry *job = wpk_fixture_submit(s, small_job("a", 1, 5));
    assert_int_equal(s->answer_count, 1);
    wpk_fixture_job_event(s, WPK_EVENT_CANCEL, job);
    wpk_job_stored(s->c, job->number);
    wpk_fixture_wait(s, 3000);
    assert_int_equal(s->c->search_count, 1); /* its OPENED is under way */
    wpk_fixture_answer(s);
    wpk_fixture_wait(s, 3000);
    assert_int_equal(s->c->search_count, 0);
    /* And of one that never was: another state's. */
    struct wpk_asked *asked = calloc(1, sizeof *asked);
    struct wpk_opened *opened = calloc(1, sizeof *opened);
    wpk_fixture_step(s, &(struct wpk_event){.kind = WPK_EVENT_ASKED, .handle = 99, .asked = asked});
    wpk_fixture_step(s,
                     &(struct wpk_event){.kind = WPK_EVENT_OPENED, .handle = 99, .opened = opened});
    wpk_fixture_step(s, &(struct wpk_event){.kind = WPK_EVENT_KERNEL_PUT, .handle = 99});
    wpk_asked_free(asked);
    wpk_opened_free(opened);
    assert_int_equal(wpk_fixture_poll(s, worker, 1), 0);
    wpk_fixture_free(s);
}

/* More operators than are worked on at a time: the next takes the place of the one that ended. */
static void operators_come_in_turn(void **state)
{
    (void)state;
    struct wpk_fixture *s = wpk_fixture_new();
    int worker = join(s, "w");
    struct wpk_job_entry *made = wpk_fixture_job("a", 1, 20);
    made->candidates = 3;
    const struct wpk_job_entry *job = wpk_fixture_submit(s, made);
    assert_int_equal(s->seen[WPK_EFFECT_OPEN_SEARCH], 8);
    assert_int_equal(wpk_fixture_poll(s, worker, 60), 3);
    assert_int_equal(wpk_fixture_poll(s, worker, 60), 3);
    assert_int_equal(s->workers[worker].held[5].id.search, 2);
    assert_int_equal(wpk_fixture_poll(s, worker, 50), 0); /* two at a time */
    work_off(s, worker);
    assert_int_equal(job->state, WPK_JOB_DONE);
    assert_int_equal(s->seen[WPK_EFFECT_PUT_KERNEL], 20);
    wpk_fixture_free(s);
}

/* Many workers: one operator for each four of them, and the searches of six more are open. */
static void many_workers_have_more_operators(void **state)
{
    (void)state;
    enum { WORKERS = 40, WORKED = WORKERS / 4, OPENED = WORKED + 6 };
    struct wpk_fixture *s = wpk_fixture_new();
    for (int i = 0; i < WORKERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        join(s, name);
    }
    const struct wpk_job_entry *job = wpk_fixture_submit(s, wpk_fixture_job("a", 1, 20));
    assert_int_equal(s->seen[WPK_EFFECT_OPEN_SEARCH], OPENED);
    assert_non_null(job->ops[OPENED - 1].search);
    assert_null(job->ops[OPENED].search);
    assert_non_null(job->ops[WORKED - 1].claims[0]);
    assert_null(job->ops[WORKED].claims[0]);
    wpk_fixture_free(s);
}

static void the_same_job_has_the_same_pins(void **state)
{
    (void)state;
    static const struct {
        const char *pins;
        bool same;
    } cases[] = {{"by=any", true}, {"by=c", false}, {NULL, false}};
    struct wpk_fixture *s = wpk_fixture_new();
    struct wpk_job_entry *job = small_job("a", 1, 5);
    job->ops[0].pins = strdup("by=any");
    const struct wpk_job_entry *live = wpk_fixture_submit(s, job);
    assert_non_null(live);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wpk_job_entry *wanted = small_job("b", 1, 5);
        wanted->ops[0].pins = cases[i].pins != NULL ? strdup(cases[i].pins) : NULL;
        assert_int_equal(wpk_job_find_same(s->c, wanted) == live, cases[i].same);
        wpk_job_entry_free(wanted);
    }
    wpk_fixture_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotas_are_per_owner),
        cmocka_unit_test(the_same_job_has_the_same_pins),
        cmocka_unit_test(there_is_a_most),
        cmocka_unit_test(ended_is_found_until_it_is_stored),
        cmocka_unit_test(paused_is_not_worked_on),
        cmocka_unit_test(paused_before_it_began),
        cmocka_unit_test(the_same_question_is_one_search),
        cmocka_unit_test(seconds_count_work),
        cmocka_unit_test(nothing_works),
        cmocka_unit_test(what_it_waits_for_is_said),
        cmocka_unit_test(a_paused_job_is_as_it_was),
        cmocka_unit_test(its_device_comes_back),
        cmocka_unit_test(a_job_for_one_device),
        cmocka_unit_test(all_that_was_begun_is_open_again),
        cmocka_unit_test(a_larger_budget_outlives_a_failure),
        cmocka_unit_test(answers_come_late),
        cmocka_unit_test(operators_come_in_turn),
        cmocka_unit_test(many_workers_have_more_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
