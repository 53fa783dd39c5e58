/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define TICK_MS 250
#define POLL_MS 10000
#define ANCHOR_NS 1000 /* of every anchor */

/* ---- what effects are answered with */

static void queue(struct wpk_scene *scene, const struct wpk_event *event)
{
    WPK_ASSERT(scene->answer_count < WPK_SCENE_ANSWERS_MAX);
    scene->answers[scene->answer_count++] = *event;
}

static void open_search(struct wpk_scene *scene, const struct wpk_effect *effect)
{
    struct wpk_opened *opened = calloc(1, sizeof *opened);
    WPK_ASSERT(opened != NULL);
    *opened = scene->opened;
    if (opened->search_id == 0) {
        opened->search_id = ++scene->search_next;
    }
    opened->problem_id = opened->search_id;
    const char *vendor = strchr(effect->search->key.providers, ';');
    if (vendor != NULL) {
        opened->vendors[0].text = strdup(vendor + 1);
        opened->vendor_count = 1;
    }
    queue(scene, &(struct wpk_event){
                     .kind = WPK_EVENT_OPENED, .handle = effect->search->handle, .opened = opened});
}

static void ask(struct wpk_scene *scene, const struct wpk_effect *effect)
{
    struct wpk_asked *asked = calloc(1, sizeof *asked);
    WPK_ASSERT(asked != NULL);
    uint32_t first = effect->search->ask_count;
    asked->count = effect->count;
    if (scene->refuse_at != 0 && first + asked->count > scene->refuse_at) {
        asked->count = first < scene->refuse_at ? (uint32_t)scene->refuse_at - first : 0;
        asked->refused = asked->count == 0;
    }
    asked->items = calloc(asked->count + 1, sizeof *asked->items);
    WPK_ASSERT(asked->items != NULL);
    for (uint32_t i = 0; i < asked->count; i++) {
        char text[32];
        snprintf(text, sizeof text, "c%u", first + i);
        asked->items[i].text = strdup(text);
    }
    queue(scene, &(struct wpk_event){
                     .kind = WPK_EVENT_ASKED, .handle = effect->search->handle, .asked = asked});
}

/* ---- what leaves */

static void take_work(struct wpk_scene_worker *worker, const struct wpk_message *message)
{
    for (uint32_t i = 0; i < message->work_count; i++) {
        WPK_ASSERT(worker->held_count < WPK_LEASES_MAX);
        snprintf(worker->artifact[worker->held_count], WPK_ID_MAX, "%s",
                 message->work[i].artifact_sha256);
        snprintf(worker->anchor[worker->held_count], WPK_ID_MAX, "%s",
                 message->work[i].anchor_sha256);
        worker->held[worker->held_count++] = message->work[i];
    }
}

static void take_reply(struct wpk_scene *scene, const struct wpk_effect *effect)
{
    struct wpk_scene_worker *worker = &scene->workers[effect->address.peer - 1];
    const struct wpk_message *message = effect->message;
    worker->told = message->kind;
    worker->told_count++;
    worker->answered = true;
    worker->err = message->err;
    snprintf(worker->text, sizeof worker->text, "%s", message->text != NULL ? message->text : "");
    if (message->kind == WPK_MESSAGE_WELCOME) {
        worker->session = message->session;
    } else if (message->kind == WPK_MESSAGE_WORK) {
        take_work(worker, message);
    }
    for (uint32_t i = 0; i < message->ack_count; i++) {
        worker->acks[i] = message->acks[i];
    }
}

static void perform(struct wpk_scene *scene, const struct wpk_effect *effect)
{
    scene->seen[effect->kind]++;
    switch (effect->kind) {
    case WPK_EFFECT_REPLY:
        take_reply(scene, effect);
        break;
    case WPK_EFFECT_RESPOND_JOB:
    case WPK_EFFECT_RESPOND_WORKER:
        scene->status = effect->status;
        break;
    case WPK_EFFECT_RESPOND_PROBLEM:
        scene->status = effect->status;
        scene->retry_after_s = effect->retry_after_s;
        snprintf(scene->problem, sizeof scene->problem, "%s", effect->problem);
        break;
    case WPK_EFFECT_OPEN_SEARCH:
        open_search(scene, effect);
        break;
    case WPK_EFFECT_ASK:
        ask(scene, effect);
        break;
    case WPK_EFFECT_PUT_KERNEL:
        snprintf(scene->verified_by, sizeof scene->verified_by, "%s",
                 effect->own != NULL ? effect->own->verified_by : "");
        memcpy(scene->kernel_provider, effect->served->provider, sizeof scene->kernel_provider);
        scene->kernel_serves = effect->serve;
        scene->kernel_search = effect->search->id;
        queue(scene, &(struct wpk_event){.kind = WPK_EVENT_KERNEL_PUT,
                                         .handle = effect->search->handle,
                                         .kernel_id = ++scene->kernel_next});
        break;
    case WPK_EFFECT_SET_OWNER:
        scene->owner = effect->owner;
        break;
    case WPK_EFFECT_SET_WORKER_ORDER:
        snprintf(scene->order_text, sizeof scene->order_text, "%s %s %s", effect->ordered.worker,
                 wpk_worker_order_name(effect->ordered.order), effect->ordered.reason);
        break;
    default:
        break;
    }
}

/* ---- steps */

static void step_one(struct wpk_scene *scene, struct wpk_event *event)
{
    event->now_ns = scene->now_ns;
    event->wall_ns = scene->now_ns + 1;
    wpk_arena_reset(&scene->effects.arena);
    wpk_coordinator_step(scene->c, event, &scene->effects);
    for (uint32_t i = 0; i < scene->effects.count; i++) {
        perform(scene, &scene->effects.items[i]);
    }
}

void wpk_scene_answer(struct wpk_scene *scene)
{
    for (uint32_t i = 0; i < scene->answer_count; i++) {
        struct wpk_event event = scene->answers[i];
        step_one(scene, &event);
        wpk_event_fini(&event);
    }
    scene->answer_count = 0;
}

void wpk_scene_step(struct wpk_scene *scene, struct wpk_event *event)
{
    step_one(scene, event);
    if (!scene->hold) {
        wpk_scene_answer(scene);
    }
}

void wpk_scene_wait(struct wpk_scene *scene, uint64_t ms)
{
    for (uint64_t passed = 0; passed < ms; passed += TICK_MS) {
        uint64_t part = ms - passed < TICK_MS ? ms - passed : TICK_MS;
        scene->now_ns += part * MS;
        wpk_scene_step(scene, &(struct wpk_event){.kind = WPK_EVENT_TICK});
    }
}

struct wpk_scene *wpk_scene_new(void)
{
    struct wpk_scene *scene = calloc(1, sizeof *scene);
    WPK_ASSERT(scene != NULL);
    wpk_err err = wpk_effects_init(&scene->effects);
    WPK_ASSERT(err == WPK_OK);
    err = wpk_coordinator_new(1, &scene->c);
    WPK_ASSERT(err == WPK_OK);
    scene->now_ns = 1000000 * MS;
    scene->opened.plain_number = 1;
    scene->opened.plain = (struct wpk_piece){.standing = WPK_STANDING_ENDED,
                                             .trial = {.outcome = WPK_OUTCOME_ABANDONED}};
    scene->opened.anchor = (struct wpk_anchor){.sha256 = "anchor", .now = "anchor", .ratio = 1};
    return scene;
}

void wpk_scene_free(struct wpk_scene *scene)
{
    for (uint32_t i = 0; i < scene->answer_count; i++) {
        wpk_event_fini(&scene->answers[i]);
    }
    wpk_coordinator_free(scene->c);
    wpk_effects_fini(&scene->effects);
    free(scene);
}

/* ---- jobs */

struct wpk_job_entry *wpk_scene_job(const char *owner, uint32_t first_op, uint32_t op_count)
{
    struct wpk_job_entry *job = calloc(1, sizeof *job);
    WPK_ASSERT(job != NULL);
    snprintf(job->owner, sizeof job->owner, "%s", owner);
    snprintf(job->kind, sizeof job->kind, "cpu");
    snprintf(job->strategy, sizeof job->strategy, "random");
    job->threads = 1;
    job->candidates = 100;
    job->time_ns = 3600 * 1000 * MS;
    job->ops = calloc(op_count, sizeof *job->ops);
    WPK_ASSERT(job->ops != NULL);
    job->op_count = op_count;
    for (uint32_t i = 0; i < op_count; i++) {
        snprintf(job->ops[i].name, sizeof job->ops[i].name, "op%u", first_op + i);
        snprintf(job->ops[i].fingerprint, sizeof job->ops[i].fingerprint, "f%u", first_op + i);
        snprintf(job->ops[i].accuracy, sizeof job->ops[i].accuracy, "standard");
        job->ops[i].op = strdup("Y[i] = X[i]");
    }
    return job;
}

const struct wpk_job_entry *wpk_scene_submit(struct wpk_scene *scene, struct wpk_job_entry *job)
{
    static unsigned long long number;
    char id[WPK_JOB_ID_SIZE];
    snprintf(id, sizeof id, "j%016llx", ++number);
    memcpy(job->id, id, sizeof id);
    struct wpk_event event = {.kind = WPK_EVENT_SUBMIT, .request = 1, .job = job, .source = "{}"};
    scene->status = 0;
    wpk_scene_step(scene, &event);
    return wpk_coordinator_job(scene->c, id);
}

const struct wpk_job_entry *wpk_scene_submit_one(struct wpk_scene *scene, uint32_t op,
                                                 uint32_t candidates)
{
    struct wpk_job_entry *job = wpk_scene_job("a", op, 1);
    job->candidates = candidates;
    const struct wpk_job_entry *submitted = wpk_scene_submit(scene, job);
    WPK_ASSERT(submitted != NULL);
    return submitted;
}

void wpk_scene_job_event(struct wpk_scene *scene, enum wpk_event_kind kind,
                         const struct wpk_job_entry *job)
{
    wpk_scene_step(scene, &(struct wpk_event){.kind = kind, .request = 1, .job_id = job->id});
}

/* ---- workers */

int wpk_scene_worker(struct wpk_scene *scene, const char *name)
{
    WPK_ASSERT(scene->worker_count < WPK_SCENE_WORKERS_MAX);
    struct wpk_scene_worker *worker = &scene->workers[scene->worker_count];
    worker->hello = (struct wpk_hello){
        .device = {.kind = "cpu", .model = "model", .isa = WPK_ISA_AVX2, .core_count = 2},
        .environment = "codegen=1;halide=21",
        .providers = {{.name = "own"}},
        .provider_count = 1,
        .roles = WPK_WORKER_ROLES_ALL,
    };
    snprintf(worker->hello.name, sizeof worker->hello.name, "%s", name);
    return (int)scene->worker_count++;
}

static void say(struct wpk_scene *scene, int worker, struct wpk_message *message)
{
    struct wpk_event event = {.kind = WPK_EVENT_MESSAGE,
                              .address = {.peer = (uint32_t)worker + 1},
                              .message = message,
                              .random = 1000 + 2 * (uint64_t)worker};
    message->session = scene->workers[worker].session;
    scene->workers[worker].answered = false;
    wpk_scene_step(scene, &event);
}

void wpk_scene_hello(struct wpk_scene *scene, int worker)
{
    struct wpk_message message = {.kind = WPK_MESSAGE_HELLO,
                                  .hello = &scene->workers[worker].hello};
    scene->workers[worker].session = 0;
    say(scene, worker, &message);
}

int wpk_scene_join(struct wpk_scene *scene, const char *name, unsigned roles)
{
    int worker = wpk_scene_worker(scene, name);
    scene->workers[worker].hello.roles = roles;
    wpk_scene_hello(scene, worker);
    return worker;
}

void wpk_scene_lose(struct wpk_scene *scene, int worker)
{
    wpk_scene_step(scene, &(struct wpk_event){.kind = WPK_EVENT_GONE,
                                              .address = {.peer = (uint32_t)worker + 1}});
    scene->workers[worker].held_count = 0;
    wpk_scene_wait(scene, WPK_GONE_MS + 500);
}

uint32_t wpk_scene_poll(struct wpk_scene *scene, int worker, uint32_t want)
{
    struct wpk_scene_worker *self = &scene->workers[worker];
    wpk_work_id ids[WPK_LEASES_MAX];
    uint32_t before = self->held_count;
    for (uint32_t i = 0; i < before; i++) {
        ids[i] = self->held[i].id;
    }
    struct wpk_message message = {.kind = WPK_MESSAGE_POLL,
                                  .want = want,
                                  .wait_ms = want > 0 ? POLL_MS : 0,
                                  .holding = ids,
                                  .holding_count = before,
                                  .running = before > 0 ? self->held[0].lease : 0};
    say(scene, worker, &message);
    return self->held_count - before;
}

static enum wpk_ack send_first(struct wpk_scene *scene, int worker, struct wpk_result *result)
{
    struct wpk_scene_worker *self = &scene->workers[worker];
    WPK_ASSERT(self->held_count > 0);
    result->id = self->held[0].id;
    result->lease = self->held[0].lease;
    result->stage = self->held[0].stage;
    result->failure = "";
    self->held_count--;
    memmove(&self->held[0], &self->held[1], self->held_count * sizeof self->held[0]);
    memmove(&self->artifact[0], &self->artifact[1], self->held_count * sizeof self->artifact[0]);
    memmove(&self->anchor[0], &self->anchor[1], self->held_count * sizeof self->anchor[0]);
    struct wpk_message message = {
        .kind = WPK_MESSAGE_RESULTS, .results = result, .result_count = 1};
    self->acks[0] = WPK_ACK_COUNT;
    say(scene, worker, &message);
    return self->acks[0];
}

enum wpk_ack wpk_scene_result(struct wpk_scene *scene, int worker, enum wpk_outcome outcome,
                              uint64_t ns)
{
    const struct wpk_work *work = &scene->workers[worker].held[0];
    struct wpk_result result = {.record = {.outcome = outcome}};
    if (outcome == WPK_OUTCOME_OK && work->stage != WPK_STAGE_BUILD) {
        result.record.timing = (struct wpk_timing){
            .median_ns = ns, .min_ns = ns, .mad_ns = 1, .sample_count = 1, .repeat_count = 1};
    }
    const char *anchor = scene->workers[worker].anchor[0];
    if (result.record.timing.sample_count > 0 && anchor[0] != '\0') {
        result.record.anchor_ns = ANCHOR_NS;
        result.record.anchor_ratio = (double)ns / ANCHOR_NS;
        snprintf(result.record.anchor_sha256, WPK_ID_MAX, "%s", anchor);
    }
    if (outcome == WPK_OUTCOME_OK && work->stage == WPK_STAGE_RUN) {
        snprintf(result.record.artifact_sha256, WPK_ID_MAX, "%s",
                 scene->workers[worker].artifact[0]);
    } else if (outcome == WPK_OUTCOME_OK && work->id.kind != WPK_WORK_VENDOR) {
        snprintf(result.record.artifact_sha256, WPK_ID_MAX, "%s%llu.%u",
                 work->stage == WPK_STAGE_BUILD ? "built" : "a",
                 (unsigned long long)work->id.search, work->id.index);
    }
    return send_first(scene, worker, &result);
}

enum wpk_ack wpk_scene_anchor_fails(struct wpk_scene *scene, int worker)
{
    struct wpk_result result = {
        .record = {.outcome = WPK_OUTCOME_ABANDONED, .anchor_failed = true, .log = "it crashed"}};
    snprintf(result.record.anchor_sha256, WPK_ID_MAX, "%s", scene->workers[worker].anchor[0]);
    return send_first(scene, worker, &result);
}

enum wpk_ack wpk_scene_final(struct wpk_scene *scene, int worker)
{
    const struct wpk_work *work = &scene->workers[worker].held[0];
    struct wpk_result result = {.timing_count = work->contender_count};
    WPK_ASSERT(work->id.kind == WPK_WORK_FINAL);
    for (uint32_t i = 0; i < work->contender_count; i++) {
        result.timing[i] = (struct wpk_timing){.median_ns = 1000 + 100 * i,
                                               .min_ns = 1000,
                                               .mad_ns = 1,
                                               .sample_count = 1,
                                               .repeat_count = 1};
    }
    return send_first(scene, worker, &result);
}

bool wpk_scene_upload(struct wpk_scene *scene, int worker, wpk_work_id work, const char *sha256)
{
    uint32_t before = scene->seen[WPK_EFFECT_PUT_ARTIFACT];
    struct wpk_message message = {.kind = WPK_MESSAGE_PUT_ARTIFACT, .made_for = work};
    snprintf(message.sha256, sizeof message.sha256, "%s", sha256);
    say(scene, worker, &message);
    return scene->seen[WPK_EFFECT_PUT_ARTIFACT] > before;
}

void wpk_scene_set_worker(struct wpk_scene *scene, const char *name, enum wpk_worker_order order,
                          const char *reason)
{
    struct wpk_event event = {.kind = WPK_EVENT_WORKER_SET,
                              .request = 1,
                              .worker = name,
                              .order = order,
                              .reason = reason};
    wpk_scene_step(scene, &event);
}
