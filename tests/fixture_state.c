/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture.h"

#include "common/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define TICK_MS 250

/* ---- what effects are answered with */

static void queue(struct wpk_fixture *fixture, const struct wpk_event *event)
{
    WPK_ASSERT(fixture->answer_count < WPK_FIXTURE_ANSWERS_MAX);
    fixture->answers[fixture->answer_count++] = *event;
}

static void open_search(struct wpk_fixture *fixture, const struct wpk_effect *effect)
{
    struct wpk_opened *opened = calloc(1, sizeof *opened);
    WPK_ASSERT(opened != NULL);
    *opened = fixture->opened;
    if (opened->search_id == 0) {
        opened->search_id = ++fixture->search_next;
    }
    opened->problem_id = opened->search_id;
    const char *vendor = strchr(effect->search->key.providers, ';');
    if (vendor != NULL) {
        opened->vendors[0].text = strdup(vendor + 1);
        opened->vendor_count = 1;
    }
    queue(fixture, &(struct wpk_event){.kind = WPK_EVENT_OPENED,
                                       .handle = effect->search->handle,
                                       .opened = opened});
}

static void ask(struct wpk_fixture *fixture, const struct wpk_effect *effect)
{
    struct wpk_asked *asked = calloc(1, sizeof *asked);
    WPK_ASSERT(asked != NULL);
    uint32_t first = effect->search->ask_count;
    asked->count = effect->count;
    if (fixture->refuse_at != 0 && first + asked->count > fixture->refuse_at) {
        asked->count = first < fixture->refuse_at ? (uint32_t)fixture->refuse_at - first : 0;
        asked->refused = asked->count == 0;
    }
    asked->items = calloc(asked->count + 1, sizeof *asked->items);
    WPK_ASSERT(asked->items != NULL);
    for (uint32_t i = 0; i < asked->count; i++) {
        char text[32];
        snprintf(text, sizeof text, "c%u", first + i);
        asked->items[i].text = strdup(text);
    }
    queue(fixture, &(struct wpk_event){
                       .kind = WPK_EVENT_ASKED, .handle = effect->search->handle, .asked = asked});
}

/* ---- what leaves */

static void perform(struct wpk_fixture *fixture, const struct wpk_effect *effect)
{
    fixture->seen[effect->kind]++;
    switch (effect->kind) {
    case WPK_EFFECT_REPLY:
        wpk_fixture_tell(fixture, effect->address.peer, effect->message);
        break;
    case WPK_EFFECT_PUT_ARTIFACT:
        wpk_fixture_tell(fixture, effect->address.peer,
                         &(struct wpk_message){.kind = WPK_MESSAGE_ACK});
        break;
    case WPK_EFFECT_RESPOND_JOB:
    case WPK_EFFECT_RESPOND_WORKER:
        fixture->status = effect->status;
        break;
    case WPK_EFFECT_RESPOND_PROBLEM:
        fixture->status = effect->status;
        fixture->retry_after_s = effect->retry_after_s;
        snprintf(fixture->problem, sizeof fixture->problem, "%s", effect->problem);
        break;
    case WPK_EFFECT_OPEN_SEARCH:
        open_search(fixture, effect);
        break;
    case WPK_EFFECT_ASK:
        ask(fixture, effect);
        break;
    case WPK_EFFECT_PUT_KERNEL:
        snprintf(fixture->verified_by, sizeof fixture->verified_by, "%s",
                 effect->own != NULL ? effect->own->verified_by : "");
        memcpy(fixture->kernel_provider, effect->served->provider, sizeof fixture->kernel_provider);
        fixture->kernel_serves = effect->serve;
        fixture->kernel_search = effect->search->id;
        queue(fixture, &(struct wpk_event){.kind = WPK_EVENT_KERNEL_PUT,
                                           .handle = effect->search->handle,
                                           .kernel_id = ++fixture->kernel_next});
        break;
    case WPK_EFFECT_SET_OWNER:
        fixture->owner = effect->owner;
        break;
    case WPK_EFFECT_SET_ADMIN_STATE:
        snprintf(fixture->admin_text, sizeof fixture->admin_text, "%s %s %s", effect->admin.worker,
                 wpk_admin_state_name(effect->admin.state), effect->admin.reason);
        break;
    case WPK_EFFECT_LOG:
    case WPK_EFFECT_WARN:
        wpk_log(effect->kind == WPK_EFFECT_LOG ? WPK_LOG_INFO : WPK_LOG_WARN, effect->text, "%s",
                effect->detail);
        break;
    default:
        break;
    }
}

/* ---- steps */

static void step_one(struct wpk_fixture *fixture, struct wpk_event *event)
{
    event->now_ns = fixture->now_ns;
    event->wall_ns = fixture->now_ns + 1;
    wpk_arena_reset(&fixture->effects.arena);
    wpk_coordinator_step(fixture->c, event, &fixture->effects);
    for (uint32_t i = 0; i < fixture->effects.count; i++) {
        perform(fixture, &fixture->effects.items[i]);
    }
}

void wpk_fixture_answer(struct wpk_fixture *fixture)
{
    for (uint32_t i = 0; i < fixture->answer_count; i++) {
        struct wpk_event event = fixture->answers[i];
        step_one(fixture, &event);
        wpk_event_fini(&event);
    }
    fixture->answer_count = 0;
}

void wpk_fixture_step(struct wpk_fixture *fixture, struct wpk_event *event)
{
    step_one(fixture, event);
    if (!fixture->hold) {
        wpk_fixture_answer(fixture);
    }
}

void wpk_fixture_wait(struct wpk_fixture *fixture, uint64_t ms)
{
    for (uint64_t passed = 0; passed < ms; passed += TICK_MS) {
        uint64_t part = ms - passed < TICK_MS ? ms - passed : TICK_MS;
        fixture->now_ns += part * MS;
        wpk_fixture_step(fixture, &(struct wpk_event){.kind = WPK_EVENT_TICK});
    }
}

static void say(struct wpk_fixture *fixture, int worker, struct wpk_message *message)
{
    struct wpk_event event = {.kind = WPK_EVENT_MESSAGE,
                              .address = {.peer = fixture->workers[worker].peer},
                              .message = message,
                              .random = 1000 + 2 * (uint64_t)worker};
    wpk_fixture_step(fixture, &event);
}

struct wpk_fixture *wpk_fixture_new(void)
{
    struct wpk_fixture *fixture = calloc(1, sizeof *fixture);
    WPK_ASSERT(fixture != NULL);
    wpk_effects_init(&fixture->effects);
    fixture->c = wpk_coordinator_new(1);
    wpk_fixture_begin();
    fixture->say = say;
    fixture->now_ns = 1000000 * MS;
    fixture->opened.plain_number = 1;
    fixture->opened.plain = (struct wpk_work_item){.standing = WPK_STANDING_ENDED,
                                                   .trial = {.outcome = WPK_OUTCOME_ABANDONED}};
    fixture->opened.anchor = (struct wpk_anchor){.sha256 = "anchor", .now = "anchor", .ratio = 1};
    return fixture;
}

void wpk_fixture_free(struct wpk_fixture *fixture)
{
    for (uint32_t i = 0; i < fixture->answer_count; i++) {
        wpk_event_fini(&fixture->answers[i]);
    }
    wpk_coordinator_free(fixture->c);
    wpk_effects_fini(&fixture->effects);
    free(fixture);
}

/* ---- jobs */

struct wpk_job_entry *wpk_fixture_job(const char *owner, uint32_t first_op, uint32_t op_count)
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

const struct wpk_job_entry *wpk_fixture_submit(struct wpk_fixture *fixture,
                                               struct wpk_job_entry *job)
{
    static unsigned long long number;
    char id[WPK_JOB_ID_SIZE];
    snprintf(id, sizeof id, "j%016llx", ++number);
    memcpy(job->id, id, sizeof id);
    struct wpk_event event = {.kind = WPK_EVENT_SUBMIT, .request = 1, .job = job};
    fixture->status = 0;
    wpk_fixture_step(fixture, &event);
    return wpk_coordinator_job(fixture->c, id);
}

const struct wpk_job_entry *wpk_fixture_submit_one(struct wpk_fixture *fixture, uint32_t op,
                                                   uint32_t candidates)
{
    struct wpk_job_entry *job = wpk_fixture_job("a", op, 1);
    job->candidates = candidates;
    const struct wpk_job_entry *submitted = wpk_fixture_submit(fixture, job);
    WPK_ASSERT(submitted != NULL);
    return submitted;
}

void wpk_fixture_job_event(struct wpk_fixture *fixture, enum wpk_event_kind kind,
                           const struct wpk_job_entry *job)
{
    wpk_fixture_step(fixture, &(struct wpk_event){.kind = kind, .request = 1, .job_id = job->id});
}

/* ---- workers */

void wpk_fixture_lose(struct wpk_fixture *fixture, int worker)
{
    wpk_fixture_step(fixture,
                     &(struct wpk_event){.kind = WPK_EVENT_GONE,
                                         .address = {.peer = fixture->workers[worker].peer}});
    fixture->workers[worker].held_count = 0;
    wpk_fixture_wait(fixture, WPK_GONE_MS + 500);
}

void wpk_fixture_set_worker(struct wpk_fixture *fixture, const char *name,
                            enum wpk_admin_state state, const char *reason)
{
    struct wpk_event event = {.kind = WPK_EVENT_WORKER_SET,
                              .request = 1,
                              .worker = name,
                              .admin_state = state,
                              .reason = reason};
    wpk_fixture_step(fixture, &event);
}
