/* SPDX-License-Identifier: Apache-2.0 */
/* Events, and the life of jobs. */
#include "coordinator/parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EFFECTS_FIRST 256 /* room for them at first */

static const char *const phase_names[] = {
#define PHASE_ROW(name, text) [WPK_PHASE_##name] = (text),
    WPK_PHASE_LIST(PHASE_ROW)
#undef PHASE_ROW
};

static const char *const job_state_names[] = {
#define STATE_ROW(name, text) [WPK_JOB_##name] = (text),
    WPK_JOB_STATE_LIST(STATE_ROW)
#undef STATE_ROW
};

const char *wpk_phase_name(enum wpk_phase phase)
{
    WPK_ASSERT(phase < WPK_PHASE_COUNT);
    return phase_names[phase];
}

const char *wpk_job_state_name(enum wpk_job_state state)
{
    WPK_ASSERT(state < WPK_JOB_STATE_COUNT);
    return job_state_names[state];
}

static const char *const order_names[] = {
#define ORDER_ROW(name, text) [WPK_WORKER_ORDER_##name] = (text),
    WPK_WORKER_ORDER_LIST(ORDER_ROW)
#undef ORDER_ROW
};

const char *wpk_worker_order_name(enum wpk_worker_order order)
{
    WPK_ASSERT(order < WPK_WORKER_ORDER_COUNT);
    return order_names[order];
}

wpk_err wpk_worker_order_parse(const char *text, enum wpk_worker_order *out)
{
    for (int i = 0; i < WPK_WORKER_ORDER_COUNT; i++) {
        if (strcmp(order_names[i], text) == 0) {
            *out = (enum wpk_worker_order)i;
            return WPK_OK;
        }
    }
    return WPK_ENOENT;
}

bool wpk_phase_ended(enum wpk_phase phase)
{
    return phase == WPK_PHASE_DONE || phase == WPK_PHASE_FAILED || phase == WPK_PHASE_CANCELLED;
}

/* ---- effects */

wpk_err wpk_effects_init(struct wpk_effects *effects)
{
    memset(effects, 0, sizeof *effects);
    wpk_arena_init(&effects->arena, 0);
    effects->items = calloc(EFFECTS_FIRST, sizeof *effects->items);
    effects->capacity = effects->items != NULL ? EFFECTS_FIRST : 0;
    return effects->items != NULL ? WPK_OK : WPK_ENOMEM;
}

void wpk_effects_fini(struct wpk_effects *effects)
{
    free(effects->items);
    wpk_arena_fini(&effects->arena);
    memset(effects, 0, sizeof *effects);
}

struct wpk_effect *wpk_effect_add(struct wpk_coordinator *c, enum wpk_effect_kind kind)
{
    struct wpk_effects *effects = c->effects;
    if (effects->count == effects->capacity) {
        uint32_t capacity = effects->capacity * 2;
        struct wpk_effect *grown = realloc(effects->items, capacity * sizeof *grown);
        WPK_ASSERT(grown != NULL);
        effects->items = grown;
        effects->capacity = capacity;
    }
    struct wpk_effect *effect = &effects->items[effects->count++];
    memset(effect, 0, sizeof *effect);
    effect->kind = kind;
    return effect;
}

void *wpk_effect_memory(struct wpk_coordinator *c, size_t count, size_t size)
{
    void *memory = wpk_arena_alloc(&c->effects->arena, count, size);
    WPK_ASSERT(memory != NULL); /* the daemon dies of want of memory, and restarts */
    return memory;
}

char *wpk_effect_text(struct wpk_coordinator *c, const char *text)
{
    char *copy = wpk_arena_copy_text(&c->effects->arena, text);
    WPK_ASSERT(copy != NULL);
    return copy;
}

void wpk_effect_log(struct wpk_coordinator *c, const char *event, const char *format, ...)
{
    const size_t size = 512;
    char *detail = wpk_effect_memory(c, 1, size);
    va_list args;
    va_start(args, format);
    vsnprintf(detail, size, format, args);
    va_end(args);
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_LOG);
    effect->text = event;
    effect->detail = detail;
}

/* ---- life */

wpk_err wpk_coordinator_new(uint64_t job_number_next, struct wpk_coordinator **out)
{
    struct wpk_coordinator *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return WPK_ENOMEM;
    }
    c->job_number_next = job_number_next;
    c->handle_next = 1;
    c->jobs = calloc(WPK_JOBS_LIVE_MAX, sizeof(struct wpk_job_entry *));
    c->workers = calloc(WPK_WORKERS_MAX, sizeof(struct wpk_worker *));
    if (c->jobs == NULL || c->workers == NULL) {
        wpk_coordinator_free(c);
        return WPK_ENOMEM;
    }
    *out = c;
    return WPK_OK;
}

void wpk_job_entry_free(struct wpk_job_entry *job)
{
    if (job == NULL) {
        return;
    }
    for (uint32_t i = 0; i < job->op_count; i++) {
        free(job->ops[i].op);
    }
    free(job->ops);
    free(job);
}

void wpk_coordinator_free(struct wpk_coordinator *c)
{
    if (c == NULL) {
        return;
    }
    for (uint32_t i = 0; i < c->job_count; i++) {
        wpk_job_entry_free(c->jobs[i]);
    }
    c->job_count = 0;
    wpk_search_sweep(c);
    for (uint32_t i = 0; i < c->worker_count; i++) {
        free(c->workers[i]->poll_address);
        free(c->workers[i]);
    }
    free(c->jobs);
    free(c->searches);
    free(c->workers);
    free(c);
}

/* ---- jobs */

static void answer_problem(struct wpk_coordinator *c, int status, wpk_err err, const char *text)
{
    if (c->event->request == 0) {
        return;
    }
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_RESPOND_PROBLEM);
    effect->request = c->event->request;
    effect->status = status;
    effect->err = err;
    effect->text = text;
}

static void answer_job(struct wpk_coordinator *c, int status, const struct wpk_job_entry *job)
{
    if (c->event->request == 0) {
        return;
    }
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_RESPOND_JOB);
    effect->request = c->event->request;
    effect->status = status;
    effect->job = job;
}

static void store_job(struct wpk_coordinator *c, const struct wpk_job_entry *job)
{
    wpk_effect_add(c, WPK_EFFECT_SET_JOB)->job = job;
}

static void store_op(struct wpk_coordinator *c, const struct wpk_job_entry *job, uint32_t op)
{
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_SET_OP);
    effect->job = job;
    effect->index = op;
}

void wpk_job_started(struct wpk_coordinator *c, struct wpk_job_entry *job)
{
    if (job->state == WPK_JOB_QUEUED) {
        job->state = WPK_JOB_RUNNING;
        job->started_wall_ns = c->event->wall_ns;
        job->reason[0] = '\0';
        store_job(c, job);
    }
}

/* A job is done when one operator is; it failed when all did. */
static void end_job(struct wpk_coordinator *c, struct wpk_job_entry *job)
{
    bool any_done = false;
    bool any_cancelled = false;
    for (uint32_t i = 0; i < job->op_count; i++) {
        const struct wpk_job_op_state *op = &job->ops[i];
        if (!wpk_phase_ended(op->phase)) {
            return;
        }
        any_done = any_done || op->phase == WPK_PHASE_DONE;
        any_cancelled = any_cancelled || op->phase == WPK_PHASE_CANCELLED;
        if (op->phase == WPK_PHASE_FAILED && job->reason[0] == '\0') {
            snprintf(job->reason, sizeof job->reason, "%s: %.180s", op->name, op->reason);
        }
    }
    job->state = any_cancelled ? WPK_JOB_CANCELLED : any_done ? WPK_JOB_DONE : WPK_JOB_FAILED;
    if (job->started_wall_ns == 0) {
        job->started_wall_ns = c->event->wall_ns;
    }
    job->finished_wall_ns = c->event->wall_ns;
    store_job(c, job);
    wpk_effect_log(c, "job_ended", "job=%s state=%s", job->id, wpk_job_state_name(job->state));
}

void wpk_job_op_set(struct wpk_coordinator *c, struct wpk_job_entry *job, uint32_t op,
                    enum wpk_phase phase, const char *reason)
{
    WPK_ASSERT(op < job->op_count);
    struct wpk_job_op_state *state = &job->ops[op];
    WPK_ASSERT(!wpk_phase_ended(state->phase));
    state->phase = phase;
    snprintf(state->reason, sizeof state->reason, "%s", reason);
    store_op(c, job, op);
    if (wpk_phase_ended(phase)) {
        end_job(c, job);
    }
}

/* Insert by priority, then by number. */
static void insert_job(struct wpk_coordinator *c, struct wpk_job_entry *job)
{
    uint32_t at = c->job_count;
    while (at > 0 && (c->jobs[at - 1]->priority < job->priority ||
                      (c->jobs[at - 1]->priority == job->priority &&
                       c->jobs[at - 1]->number > job->number))) {
        c->jobs[at] = c->jobs[at - 1];
        at--;
    }
    c->jobs[at] = job;
    c->job_count++;
}

static void bind_to_workers(struct wpk_coordinator *c)
{
    c->unbound = false;
    for (uint32_t i = 0; i < c->worker_count; i++) {
        wpk_search_bind(c, c->workers[i]);
    }
}

static void submit(struct wpk_coordinator *c)
{
    struct wpk_job_entry *job = c->event->job;
    if (c->job_count == WPK_JOBS_LIVE_MAX) {
        answer_problem(c, 429, WPK_ENOSPC, "too many jobs are queued");
        wpk_job_entry_free(job);
        return;
    }
    WPK_ASSERT(job->op_count > 0);
    job->number = c->job_number_next++;
    job->state = WPK_JOB_QUEUED;
    job->created_wall_ns = c->event->wall_ns;
    insert_job(c, job);
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_PUT_JOB);
    effect->job = job;
    effect->source = c->event->source;
    wpk_effect_log(c, "job_submitted", "job=%s ops=%u", job->id, job->op_count);
    bind_to_workers(c);
    answer_job(c, 201, job);
}

static void restore(struct wpk_coordinator *c)
{
    struct wpk_job_entry *job = c->event->job;
    if (c->job_count == WPK_JOBS_LIVE_MAX) {
        wpk_job_entry_free(job); /* stays queued in the store, for the next start */
        return;
    }
    insert_job(c, job);
    for (uint32_t i = 0; i < job->op_count; i++) {
        /* Phases are found again from what is recorded. */
        if (!wpk_phase_ended(job->ops[i].phase)) {
            job->ops[i].phase = WPK_PHASE_WAITING;
        }
    }
    end_job(c, job);
    bind_to_workers(c);
}

static void cancel(struct wpk_coordinator *c)
{
    struct wpk_job_entry *job = NULL;
    for (uint32_t i = 0; i < c->job_count; i++) {
        if (strcmp(c->jobs[i]->id, c->event->job_id) == 0) {
            job = c->jobs[i];
        }
    }
    WPK_ASSERT(job != NULL); /* the caller looked */
    for (uint32_t i = 0; i < job->op_count; i++) {
        if (!wpk_phase_ended(job->ops[i].phase)) {
            struct wpk_search *search = job->ops[i].search;
            wpk_job_op_set(c, job, i, WPK_PHASE_CANCELLED, "");
            if (search != NULL) {
                wpk_search_update_budget(c, search);
            }
        }
    }
    answer_job(c, 200, job);
}

/* Jobs that ended are only in the store from now on. */
static void sweep_jobs(struct wpk_coordinator *c)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->job_count; i++) {
        if (c->jobs[i]->finished_wall_ns != 0 && c->jobs[i]->stored) {
            wpk_job_entry_free(c->jobs[i]);
        } else {
            c->jobs[kept++] = c->jobs[i];
        }
    }
    c->job_count = kept;
}

void wpk_coordinator_step(struct wpk_coordinator *c, const struct wpk_event *event,
                          struct wpk_effects *out)
{
    out->count = 0;
    c->event = event;
    c->effects = out;
    c->opened_count = 0;
    sweep_jobs(c);
    wpk_search_sweep(c);
    switch (event->kind) {
    case WPK_EVENT_MESSAGE:
        wpk_worker_message(c);
        break;
    case WPK_EVENT_GONE:
        wpk_worker_gone(c);
        break;
    case WPK_EVENT_SUBMIT:
        submit(c);
        break;
    case WPK_EVENT_RESTORE:
        restore(c);
        break;
    case WPK_EVENT_CANCEL:
        cancel(c);
        break;
    case WPK_EVENT_OPENED:
        wpk_search_opened(c);
        break;
    case WPK_EVENT_ASKED:
        wpk_search_asked(c);
        break;
    case WPK_EVENT_KERNEL_PUT: {
        struct wpk_search *search = wpk_search_find_handle(c, event->handle);
        if (search != NULL) {
            wpk_final_kernel_put(c, search, event->kernel_id);
        }
        break;
    }
    case WPK_EVENT_RESTORE_OWNER:
    case WPK_EVENT_RESTORE_ORDER:
    case WPK_EVENT_SET_OWNER:
    case WPK_EVENT_PAUSE:
    case WPK_EVENT_RESUME:
    case WPK_EVENT_WORKER_SET:
    case WPK_EVENT_DRAIN:
        answer_problem(c, 501, WPK_EUNSUPPORTED, "not yet");
        break;
    case WPK_EVENT_TICK:
        wpk_worker_tick(c);
        if (c->unbound) {
            bind_to_workers(c);
        }
        for (uint32_t i = 0; i < c->search_count; i++) {
            wpk_search_advance(c, c->searches[i]);
        }
        break;
    }
    wpk_worker_serve(c);
    c->event = NULL;
    c->effects = NULL;
}

/* ---- looking */

const struct wpk_job_entry *wpk_coordinator_job(const struct wpk_coordinator *c, const char *id)
{
    for (uint32_t i = 0; i < c->job_count; i++) {
        if (strcmp(c->jobs[i]->id, id) == 0) {
            return c->jobs[i];
        }
    }
    return NULL;
}

uint32_t wpk_coordinator_job_count(const struct wpk_coordinator *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->job_count; i++) {
        count += c->jobs[i]->finished_wall_ns == 0;
    }
    return count;
}

uint32_t wpk_coordinator_worker_count(const struct wpk_coordinator *c)
{
    return c->worker_count;
}

const struct wpk_worker *wpk_coordinator_worker(const struct wpk_coordinator *c, uint32_t index)
{
    WPK_ASSERT(index < c->worker_count);
    return c->workers[index];
}

bool wpk_coordinator_blocked(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                             uint32_t op, char out[WPK_REASON_MAX])
{
    out[0] = '\0';
    if (wpk_coordinator_served(c, job, op)) {
        return false;
    }
    snprintf(out, WPK_REASON_MAX, "no worker serves %s with %d thread%s", job->kind, job->threads,
             job->threads == 1 ? "" : "s");
    return true;
}

void wpk_coordinator_job_stored(struct wpk_coordinator *c, uint64_t number)
{
    for (uint32_t i = 0; i < c->job_count; i++) {
        if (c->jobs[i]->number == number) {
            c->jobs[i]->stored = c->jobs[i]->finished_wall_ns != 0;
        }
    }
}

bool wpk_coordinator_served(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                            uint32_t op)
{
    const struct wpk_search *search = job->ops[op].search;
    for (uint32_t i = 0; i < c->worker_count; i++) {
        const struct wpk_worker *worker = c->workers[i];
        bool fits =
            search != NULL ? wpk_search_serves(search, worker) : wpk_worker_suits(worker, job);
        if (fits && worker->peer != 0 && !worker->draining) {
            return true;
        }
    }
    return false;
}
