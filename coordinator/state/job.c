/* SPDX-License-Identifier: Apache-2.0 */
/* The life of jobs.
 *
 *     queued ──▶ running ──▶ done, failed, cancelled     (when its last operator has ended)
 *        ▲          ▲
 *        └── paused ┘       no new lease for it, and it keeps its rank
 */
#include "coordinator/state/job.h"

#include "common/metrics.h"
#include "coordinator/state/budget.h"
#include "coordinator/state/claim.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/fair.h"
#include "coordinator/state/table.h"
#include "coordinator/state/worker_class.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_QUOTA_S 60 /* a job or two may have ended by then */

/* ---- answers */

static void answer_job(struct wpk_coordinator *c, int status, const struct wpk_job_entry *job)
{
    if (c->event->request == 0) {
        return;
    }
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_RESPOND_JOB);
    effect->request = c->event->request;
    effect->status = status;
    effect->answered = job;
}

static void store_job(struct wpk_coordinator *c, const struct wpk_job_entry *job)
{
    wpk_effect_add(c, WPK_EFFECT_SET_JOB)->job = job;
}

/* ---- its place in the state */

void wpk_job_entry_free(struct wpk_job_entry *job)
{
    if (job == NULL) {
        return;
    }
    for (uint32_t i = 0; i < job->op_count; i++) {
        free(job->ops[i].op);
        free(job->ops[i].binding);
        free(job->ops[i].pins);
        free(job->ops[i].bound);
        struct wpk_op_past *past = job->ops[i].past;
        if (past != NULL) {
            free(past->device_class);
            free(past->best);
            free(past->baseline);
            free(past);
        }
    }
    free(job->ops);
    free(job->prior_text);
    free(job);
}

/* The caller saw to it that there is room. */
static void insert(struct wpk_coordinator *c, struct wpk_job_entry *job, struct wpk_owner *owner)
{
    for (uint32_t i = 0; i < job->op_count; i++) {
        job->ops[i].job = job;
    }
    wpk_share_begin(job);
    c->jobs[c->job_count++] = job;
    wpk_table_put_text(&c->jobs_by_id, job->id, job);
    wpk_table_put(&c->jobs_by_number, job->number, job);
    c->live_count++;
    job->owner_record = owner;
    owner->job_count++;
}

/* ---- its operators */

void wpk_job_op_enter(struct wpk_coordinator *c, struct wpk_job_op_state *op,
                      struct wpk_search *search)
{
    op->search = search;
    op->prev = NULL;
    op->next = search->ops;
    if (op->next != NULL) {
        op->next->prev = op;
    }
    search->ops = op;
    search->ops_changed = true;
    search->unstarted = search->unstarted || op->job->state == WPK_JOB_QUEUED;
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
}

void wpk_job_op_leave(struct wpk_coordinator *c, struct wpk_job_op_state *op)
{
    struct wpk_search *search = op->search;
    wpk_claim_drop(c, op);
    *(op->prev != NULL ? &op->prev->next : &search->ops) = op->next;
    if (op->next != NULL) {
        op->next->prev = op->prev;
    }
    op->search = NULL;
    search->ops_changed = true;
    wpk_mark_search(c, search, WPK_SEARCH_RELEASE);
}

/* Mark the searches of a job: the jobs that they go on for have changed. Leases go on, and
 * count. */
static void mark_searches(struct wpk_coordinator *c, struct wpk_job_entry *job)
{
    for (uint32_t i = 0; i < job->op_count; i++) {
        struct wpk_search *search = job->ops[i].search;
        if (search != NULL) {
            search->ops_changed = true;
            wpk_mark_search(c, search, WPK_SEARCH_COURSE);
        }
    }
}

void wpk_job_op_set(struct wpk_coordinator *c, struct wpk_job_op_state *op, enum wpk_phase phase,
                    const char *reason)
{
    struct wpk_job_entry *job = op->job;
    WPK_ASSERT(!wpk_phase_ended(op->phase));
    op->phase = phase;
    snprintf(op->reason, sizeof op->reason, "%s", reason);
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_SET_OP);
    effect->job = job;
    effect->index = (uint32_t)(op - job->ops);
    if (wpk_phase_ended(phase)) {
        wpk_claim_drop(c, op);
        wpk_mark_job(c, job, WPK_JOB_OPERATORS);
    }
}

void wpk_job_mark_unbound(struct wpk_coordinator *c, const struct wpk_worker_class *worker_class)
{
    for (uint32_t i = 0; i < c->job_count && c->unbound_count > 0; i++) {
        struct wpk_job_entry *job = c->jobs[i];
        if (job->unbound && (worker_class == NULL || wpk_worker_class_suits(worker_class, job))) {
            wpk_mark_job(c, job, WPK_JOB_BIND);
        }
    }
}

/* ---- its course */

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
void wpk_job_end_if_over(struct wpk_coordinator *c, struct wpk_job_entry *job)
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
    if (job->finished_wall_ns != 0) {
        return;
    }
    job->state = any_cancelled ? WPK_JOB_CANCELLED : any_done ? WPK_JOB_DONE : WPK_JOB_FAILED;
    if (job->started_wall_ns == 0) {
        job->started_wall_ns = c->event->wall_ns;
    }
    job->finished_wall_ns = c->event->wall_ns;
    c->live_count--;
    job->owner_record->job_count--;
    store_job(c, job);
    wpk_metric_change(WPK_GAUGE_JOBS,
                      wpk_metric_value(WPK_LABEL_JOB_STATE, wpk_job_state_name(job->state)), 1);
    wpk_effect_log(c, "job_ended", "job=%s state=%s", job->id, wpk_job_state_name(job->state));
}

/* ---- events */

void wpk_job_submit(struct wpk_coordinator *c)
{
    struct wpk_job_entry *job = c->event->job;
    struct wpk_owner *owner = wpk_owner_get(c, job->owner);
    WPK_ASSERT(job->op_count > 0);
    wpk_job_release(c); /* jobs whose end is stored make room */
    if (owner == NULL || c->job_count == WPK_JOBS_LIVE_MAX) {
        wpk_metric_add(WPK_COUNTER_JOBS_REFUSED, 0, 1);
        wpk_effect_problem(c, 429, WPK_ENOSPC, RETRY_QUOTA_S,
                           owner == NULL ? "too many owners are known"
                                         : "too many jobs are queued");
        wpk_job_entry_free(job);
        return;
    }
    if (owner->job_count >= owner->jobs_max) {
        char *text = wpk_effect_memory(c, 1, 160);
        snprintf(text, 160, "%s has %u jobs that have not ended, and may have %u", owner->name,
                 owner->job_count, owner->jobs_max);
        wpk_metric_add(WPK_COUNTER_JOBS_REFUSED, 0, 1);
        wpk_effect_problem(c, 429, WPK_ENOSPC, RETRY_QUOTA_S, text);
        wpk_job_entry_free(job);
        return;
    }
    job->number = c->job_number_next++;
    job->state = WPK_JOB_QUEUED;
    job->created_wall_ns = c->event->wall_ns;
    insert(c, job, owner);
    wpk_effect_add(c, WPK_EFFECT_PUT_JOB)->job = job;
    wpk_effect_log(c, "job_submitted", "job=%s owner=\"%s\" ops=%u", job->id, job->owner,
                   job->op_count);
    wpk_mark_job(c, job, WPK_JOB_BIND);
    answer_job(c, 201, job);
}

void wpk_job_restore(struct wpk_coordinator *c)
{
    struct wpk_job_entry *job = c->event->job;
    struct wpk_owner *owner = wpk_owner_get(c, job->owner);
    if (owner == NULL || c->job_count == WPK_JOBS_LIVE_MAX) {
        wpk_job_entry_free(job); /* stays queued in the store, for the next start */
        return;
    }
    job->restored_ns = c->event->now_ns;
    insert(c, job, owner);
    for (uint32_t i = 0; i < job->op_count; i++) {
        /* Phases are found again from what is recorded. */
        if (!wpk_phase_ended(job->ops[i].phase)) {
            job->ops[i].phase = WPK_PHASE_WAITING;
        }
    }
    wpk_mark_job(c, job, WPK_JOB_OPERATORS);
}

static struct wpk_job_entry *find(struct wpk_coordinator *c)
{
    struct wpk_job_entry *job = wpk_table_get_text(&c->jobs_by_id, c->event->job_id);
    if (job == NULL || job->stored) {
        wpk_effect_problem(c, 404, WPK_ENOENT, 0,
                           "there is no such job, or it has ended; the list of jobs says which");
        return NULL;
    }
    return job;
}

void wpk_job_cancel(struct wpk_coordinator *c)
{
    struct wpk_job_entry *job = find(c);
    if (job == NULL) {
        return;
    }
    for (uint32_t i = 0; i < job->op_count; i++) {
        struct wpk_job_op_state *op = &job->ops[i];
        if (!wpk_phase_ended(op->phase)) {
            wpk_job_op_set(c, op, WPK_PHASE_CANCELLED, "");
        }
    }
    mark_searches(c, job);
    answer_job(c, 200, job);
}

void wpk_job_pause(struct wpk_coordinator *c)
{
    struct wpk_job_entry *job = find(c);
    if (job == NULL) {
        return;
    }
    if (job->finished_wall_ns == 0 && job->state != WPK_JOB_PAUSED) {
        job->state = WPK_JOB_PAUSED;
        store_job(c, job);
        wpk_mark_job(c, job, WPK_JOB_BIND);
        mark_searches(c, job);
        wpk_effect_log(c, "job_paused", "job=%s", job->id);
    }
    answer_job(c, 200, job);
}

void wpk_job_resume(struct wpk_coordinator *c)
{
    struct wpk_job_entry *job = find(c);
    if (job == NULL) {
        return;
    }
    if (job->state == WPK_JOB_PAUSED) {
        job->state = job->started_wall_ns != 0 ? WPK_JOB_RUNNING : WPK_JOB_QUEUED;
        for (uint32_t i = 0; i < job->op_count; i++) {
            if (job->ops[i].search != NULL && job->state == WPK_JOB_QUEUED) {
                job->ops[i].search->unstarted = true;
            }
        }
        store_job(c, job);
        mark_searches(c, job);
        wpk_mark_job(c, job, WPK_JOB_BIND);
        wpk_effect_log(c, "job_resumed", "job=%s", job->id);
    }
    answer_job(c, 200, job);
}

void wpk_job_stored(struct wpk_coordinator *c, uint64_t number)
{
    struct wpk_job_entry *job = wpk_table_get(&c->jobs_by_number, number);
    if (job != NULL && job->finished_wall_ns != 0) {
        job->stored = true;
        c->jobs_stored = true;
    }
}

/* ---- release */

void wpk_job_release(struct wpk_coordinator *c)
{
    uint32_t kept = 0;
    if (!c->jobs_stored) {
        return;
    }
    c->jobs_stored = false;
    for (uint32_t i = 0; i < c->job_count; i++) {
        struct wpk_job_entry *job = c->jobs[i];
        if (!job->stored) {
            c->jobs[kept++] = job;
            continue;
        }
        for (uint32_t k = 0; k < job->op_count; k++) {
            if (job->ops[k].search != NULL) {
                wpk_job_op_leave(c, &job->ops[k]);
            }
        }
        WPK_ASSERT(!wpk_mark_any(job->marks, WPK_JOB_MARKS));
        wpk_table_take_text(&c->jobs_by_id, job->id);
        wpk_table_take(&c->jobs_by_number, job->number);
        wpk_job_entry_free(job);
    }
    c->job_count = kept;
}

/* ---- the same again */

static bool is_same_op(const struct wpk_job_op_state *a, const struct wpk_job_op_state *b)
{
    return strcmp(a->fingerprint, b->fingerprint) == 0 && strcmp(a->name, b->name) == 0 &&
           strcmp(a->layouts, b->layouts) == 0 && strcmp(a->accuracy, b->accuracy) == 0 &&
           a->conditions == b->conditions && a->count == b->count &&
           strcmp(a->pins == NULL ? "" : a->pins, b->pins == NULL ? "" : b->pins) == 0;
}

/* True if both jobs search the same for the same device, as long. Owners and seeds may differ. */
static bool is_same_job(const struct wpk_job_entry *a, const struct wpk_job_entry *b)
{
    bool same = a->op_count == b->op_count && a->threads == b->threads &&
                a->candidates == b->candidates && a->total == b->total &&
                a->time_ns == b->time_ns && strcmp(a->until, b->until) == 0 &&
                a->label_count == 0 && b->label_count == 0 && strcmp(a->device, b->device) == 0 &&
                strcmp(a->kind, b->kind) == 0 && strcmp(a->name, b->name) == 0 &&
                strcmp(a->strategy, b->strategy) == 0 && strcmp(a->options, b->options) == 0 &&
                strcmp(a->prior, b->prior) == 0;
    for (uint32_t i = 0; same && i < a->op_count; i++) {
        same = is_same_op(&a->ops[i], &b->ops[i]);
    }
    return same;
}

bool wpk_job_waits_for_another(const struct wpk_job_entry *job, const struct wpk_job_entry *wanted)
{
    return job->state == WPK_JOB_PAUSED && strcmp(job->owner, wanted->owner) != 0;
}

const struct wpk_job_entry *wpk_job_find_same(const struct wpk_coordinator *c,
                                              const struct wpk_job_entry *job)
{
    for (uint32_t i = 0; i < c->job_count; i++) {
        enum wpk_job_state state = c->jobs[i]->state;
        bool ended = state == WPK_JOB_DONE || state == WPK_JOB_FAILED || state == WPK_JOB_CANCELLED;
        if (!ended && !wpk_job_waits_for_another(c->jobs[i], job) && is_same_job(c->jobs[i], job)) {
            return c->jobs[i];
        }
    }
    return NULL;
}
