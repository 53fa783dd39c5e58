/* SPDX-License-Identifier: Apache-2.0 */
/* bench-step: measures the cost of a step of the state machine with many workers. Run it by hand:
 *
 *     build/bench/bench-step WORKERS JOBS [OWNERS [LABELS]]
 *
 * Each worker holds four work items, reports one result, and asks for one more. This file answers
 * the effects. With LABELS every worker has a label of its own, so there are as many worker classes
 * as workers. The program prints nanoseconds per result, including its poll and the strategies'
 * answers. */
#include "coordinator/state/coordinator.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/job.h"
#include "coordinator/state/model.h"
#include "coordinator/state/search.h"
#include "coordinator/state/table.h"
#include "coordinator/state/worker.h"

#include "bench/usage.h"
#include "common/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD 4
#define ROUNDS 20

static const char usage[] =
    "usage: bench-step [WORKERS [JOBS [OWNERS [LABELS]]]]\n"
    "  what a step costs with so many WORKERS (10000), JOBS (100) and their OWNERS (10);\n"
    "  with a fourth word every worker has a label of its own\n";

struct worker {
    uint64_t session;
    wpk_work_id held[HELD + 1];
    uint32_t held_count;
};

struct bench {
    struct wpk_coordinator *c;
    struct wpk_effects effects;
    struct wpk_event *answers;
    uint32_t answer_count;
    uint32_t answer_capacity;
    struct worker *workers;
    uint64_t steps;
    uint64_t leased;
    uint64_t search_next;
    uint64_t now_ns;
};

static void queue(struct bench *b, struct wpk_event event)
{
    b->answers = wpk_grow(b->answers, b->answer_count, &b->answer_capacity, sizeof event);
    b->answers[b->answer_count++] = event;
}

static void ask(struct bench *b, const struct wpk_effect *effect)
{
    struct wpk_asked *asked = calloc(1, sizeof *asked);
    WPK_ASSERT(asked != NULL);
    asked->count = effect->count;
    asked->items = calloc(asked->count, sizeof *asked->items);
    WPK_ASSERT(asked->items != NULL);
    for (uint32_t i = 0; i < asked->count; i++) {
        asked->items[i].text = strdup("cpu-1 algorithm=direct tile=2x16x14 order=nkyx");
    }
    queue(b, (struct wpk_event){
                 .kind = WPK_EVENT_ASKED, .handle = effect->search->handle, .asked = asked});
}

static void perform(struct bench *b, const struct wpk_effect *effect)
{
    if (effect->kind == WPK_EFFECT_ASK) {
        ask(b, effect);
    } else if (effect->kind == WPK_EFFECT_OPEN_SEARCH) {
        struct wpk_opened *opened = calloc(1, sizeof *opened);
        WPK_ASSERT(opened != NULL);
        opened->search_id = ++b->search_next;
        opened->problem_id = opened->search_id;
        opened->plain_number = 1;
        opened->plain.standing = WPK_STANDING_ENDED;
        opened->plain.trial.outcome = WPK_OUTCOME_ABANDONED;
        opened->anchor = (struct wpk_anchor){.sha256 = "anchor", .now = "anchor", .ratio = 1};
        queue(b, (struct wpk_event){
                     .kind = WPK_EVENT_OPENED, .handle = effect->search->handle, .opened = opened});
    } else if (effect->kind == WPK_EFFECT_REPLY) {
        struct worker *worker = &b->workers[effect->address.peer - 1];
        if (effect->message->kind == WPK_MESSAGE_WELCOME) {
            worker->session = effect->message->session;
        }
        for (uint32_t i = 0; i < effect->message->work_count; i++) {
            WPK_ASSERT(worker->held_count <= HELD);
            worker->held[worker->held_count++] = effect->message->work[i].id;
            b->leased++;
        }
    }
}

static void step_one(struct bench *b, struct wpk_event *event)
{
    event->now_ns = b->now_ns;
    event->wall_ns = b->now_ns;
    wpk_arena_reset(&b->effects.arena);
    wpk_coordinator_step(b->c, event, &b->effects);
    b->steps++;
    for (uint32_t i = 0; i < b->effects.count; i++) {
        perform(b, &b->effects.items[i]);
    }
}

static void step(struct bench *b, struct wpk_event event)
{
    step_one(b, &event);
    for (uint32_t i = 0; i < b->answer_count; i++) {
        struct wpk_event answer = b->answers[i];
        step_one(b, &answer);
        wpk_event_fini(&answer);
    }
    b->answer_count = 0;
}

static void say(struct bench *b, uint32_t worker, struct wpk_message *message)
{
    message->session = b->workers[worker].session;
    step(b, (struct wpk_event){.kind = WPK_EVENT_MESSAGE,
                               .address = {.peer = worker + 1},
                               .message = message,
                               .random = 2 * worker + 1});
}

static void say_hello(struct bench *b, uint32_t worker, bool labels)
{
    struct wpk_hello hello = {
        .device = {.kind = "cpu",
                   .model = "model",
                   .cpu = {.flags = WPK_CPU_SET_AVX2},
                   .core_count = 2},
        .environment = "codegen=1;halide=21",
        .providers = {{.name = "own"}},
        .provider_count = 1,
        .roles = WPK_WORKER_ROLES_ALL,
    };
    snprintf(hello.name, sizeof hello.name, "host%u/1", worker);
    if (labels) {
        hello.label_count = 1;
        snprintf(hello.labels[0].name, sizeof hello.labels[0].name, "host");
        snprintf(hello.labels[0].value, sizeof hello.labels[0].value, "%u", worker);
    }
    say(b, worker, &(struct wpk_message){.kind = WPK_MESSAGE_HELLO, .hello = &hello});
}

static void submit(struct bench *b, uint32_t number, uint32_t owners)
{
    struct wpk_job_entry *job = calloc(1, sizeof *job);
    WPK_ASSERT(job != NULL);
    snprintf(job->id, sizeof job->id, "j%016x", number);
    snprintf(job->owner, sizeof job->owner, "o%u", number % owners);
    snprintf(job->kind, sizeof job->kind, "cpu");
    job->threads = 1;
    job->candidates = 1000000;
    job->time_ns = UINT64_MAX / 2;
    job->op_count = 1;
    job->ops = calloc(1, sizeof *job->ops);
    WPK_ASSERT(job->ops != NULL);
    snprintf(job->ops[0].accuracy, sizeof job->ops[0].accuracy, "standard");
    snprintf(job->ops[0].fingerprint, sizeof job->ops[0].fingerprint, "f%u", number);
    job->ops[0].op = strdup("Y[i] = X[i]");
    step(b, (struct wpk_event){.kind = WPK_EVENT_SUBMIT, .job = job});
}

static void poll(struct bench *b, uint32_t worker, uint32_t want)
{
    struct worker *self = &b->workers[worker];
    struct wpk_message message = {.kind = WPK_MESSAGE_POLL,
                                  .want = want,
                                  .wait_ms = 5000,
                                  .holding = self->held,
                                  .holding_count = self->held_count};
    say(b, worker, &message);
}

static void turn(struct bench *b, uint32_t worker)
{
    static struct wpk_result result;
    struct worker *self = &b->workers[worker];
    if (self->held_count > 0) {
        result = (struct wpk_result){.id = self->held[0], .failure = ""};
        result.record.anchor_ns = 1000;
        result.record.anchor_ratio = 1 + (double)(b->leased % 1000) / 1000;
        memcpy(result.record.anchor_sha256, "anchor", sizeof "anchor");
        result.record.timing = (struct wpk_timing){.median_ns = 1000 + b->leased % 1000,
                                                   .min_ns = 1000,
                                                   .mad_ns = 1,
                                                   .sample_count = 1,
                                                   .repeat_count = 1};
        self->held_count--;
        memmove(&self->held[0], &self->held[1], self->held_count * sizeof self->held[0]);
        struct wpk_message message = {
            .kind = WPK_MESSAGE_RESULTS, .results = &result, .result_count = 1};
        say(b, worker, &message);
    }
    poll(b, worker, HELD - self->held_count);
}

static uint32_t number(int argc, char **argv, int at, uint32_t fallback)
{
    return argc > at ? (uint32_t)strtoul(argv[at], NULL, 10) : fallback;
}

int main(int argc, char **argv)
{
    bench_usage_help(argc, argv, usage);
    uint32_t workers = number(argc, argv, 1, 10000);
    uint32_t jobs = number(argc, argv, 2, 100);
    uint32_t owners = number(argc, argv, 3, 10);
    bool labels = argc > 4;
    struct bench b = {.now_ns = WPK_NS_PER_S};
    if (workers == 0 || workers > WPK_WORKERS_MAX || jobs > WPK_JOBS_LIVE_MAX || owners == 0) {
        fputs(usage, stderr);
        return 2;
    }
    b.workers = calloc(workers, sizeof *b.workers);
    if (b.workers == NULL) {
        return 1;
    }
    wpk_effects_init(&b.effects);
    b.c = wpk_coordinator_new(1);
    const struct wpk_clock *clock = wpk_clock_system();
    uint64_t hello_ns = wpk_clock_now_ns(clock);
    for (uint32_t w = 0; w < workers; w++) {
        say_hello(&b, w, labels);
    }
    hello_ns = wpk_clock_now_ns(clock) - hello_ns;
    for (uint32_t j = 0; j < jobs; j++) {
        submit(&b, j, owners);
    }
    for (uint32_t w = 0; w < workers; w++) {
        poll(&b, w, HELD);
    }
    uint64_t began_ns = wpk_clock_now_ns(clock);
    b.steps = 0;
    b.leased = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t w = 0; w < workers; w++) {
            b.now_ns += 10 * WPK_NS_PER_US;
            turn(&b, w);
        }
        step(&b, (struct wpk_event){.kind = WPK_EVENT_TICK});
    }
    uint64_t ns = wpk_clock_now_ns(clock) - began_ns;
    printf("%u workers, %u jobs, %u owners, %u worker classes: hello %llu ns, %llu ns a result, "
           "%llu ns a step, %llu leases\n",
           workers, jobs, owners, b.c->worker_class_count, (unsigned long long)(hello_ns / workers),
           (unsigned long long)(ns / ((uint64_t)workers * ROUNDS)),
           (unsigned long long)(ns / b.steps), (unsigned long long)b.leased);
    wpk_coordinator_free(b.c);
    wpk_effects_fini(&b.effects);
    free(b.answers);
    free(b.workers);
    return 0;
}
