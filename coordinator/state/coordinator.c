/* SPDX-License-Identifier: Apache-2.0 */
/* Events are given to their handlers, and settled. docs/coordinator.md describes the state, and
 * what each step costs. */
#include "coordinator/state/coordinator.h"

#include "coordinator/state/fair.h"
#include "coordinator/state/model.h"
#include "coordinator/state/table.h"
#include "coordinator/state/worker_class.h"

#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define STORE_MS 1000 /* counters are stored that often */

/* ---- the tick */

/* Not beyond now: some was heard of since we slept, before this tick. 0, which is none, stays. */
static void put_off(const struct wpk_coordinator *c, uint64_t *at_ns, uint64_t gap_ns)
{
    uint64_t later_ns = *at_ns != 0 ? *at_ns + gap_ns : 0;
    *at_ns = later_ns < c->event->now_ns ? later_ns : c->event->now_ns;
}

/* Time in which we did not run ourselves is nobody's silence, and nobody's budget. */
static void forgive_sleep(struct wpk_coordinator *c)
{
    uint64_t gap_ns = c->ticked_ns != 0 ? c->event->now_ns - c->ticked_ns : 0;
    c->ticked_ns = c->event->now_ns;
    if (gap_ns <= WPK_SLEPT_MS * MS) {
        return;
    }
    wpk_effect_log(c, "slept", "ms=%llu", (unsigned long long)(gap_ns / MS));
    for (uint32_t i = 0; i < c->worker_count; i++) {
        struct wpk_worker *worker = c->workers[i];
        put_off(c, &worker->heard_ns, gap_ns);
        put_off(c, &worker->busy_ns, gap_ns);
        put_off(c, &worker->running_ns, gap_ns);
        put_off(c, &worker->gone_ns, gap_ns);
    }
    for (uint32_t i = 0; i < c->search_count; i++) {
        put_off(c, &c->searches[i]->active_ns, gap_ns);
    }
}

/* Serve the timers that are due, and store counters once a second. */
static void serve_tick(struct wpk_coordinator *c)
{
    struct wpk_timer *timer;
    forgive_sleep(c);
    while ((timer = wpk_timers_next(&c->worker_timers, c->event->now_ns)) != NULL) {
        wpk_worker_look_at(c, timer->owner);
    }
    while ((timer = wpk_timers_next(&c->search_timers, c->event->now_ns)) != NULL) {
        wpk_mark_search(c, timer->owner, WPK_SEARCH_READY);
    }
    if (c->bind_again) {
        c->bind_again = false;
        wpk_job_mark_unbound(c, NULL);
    }
    /* If a work queue has lost its last worker, mark all searches: one may wait at its end for a
     * plain kernel that no worker builds any more. */
    for (uint32_t i = 0; c->unserved && i < c->search_count; i++) {
        wpk_mark_search(c, c->searches[i], WPK_SEARCH_COURSE);
    }
    c->unserved = false;
    if (c->event->now_ns >= c->stored_ns + STORE_MS * MS) {
        c->stored_ns = c->event->now_ns;
        wpk_search_store(c);
        wpk_owner_store(c);
        wpk_steadiness_update(c);
    }
}

/* The consequences of an event. The event's handler has changed its own noun and marked it
 * (table.h); no file below this one calls upwards. The order is:
 *
 *  1. Searches. The operators that were bound to a marked search join it; then it goes on to its
 *     next phase if this one is over. The operators of the search get the phase, and may end with
 *     it.
 *  2. Operators. A job ends with its last operator.
 *  3. Binding. A job's next operators take the place of those that have ended: each is bound to a
 *     search, which is marked. Steps 1 to 3 are repeated until no search is marked. This ends: each
 *     round has ended or bound an operator, and a step opens a limited number of searches.
 *  4. Ready queues. The claims in a marked search become ready in the stages that it has work for
 *     now. No phase changes any more.
 *  5. Dispatch. Polls that wait are given work from the ready queues. A lease changes what its own
 *     search is ready for, and nothing else.
 *  6. Release. Jobs whose end is durable and searches that nobody needs leave the state. A search's
 *     memory stays until the next step, because effects of this one point to it.
 *
 * Marks are not stored: after a restart each job is restored, and each search opened, by an event
 * that marks it. */

/* Settle all that is marked, until nothing is left to do for this event. Called once a step. */
static void settle_all(struct wpk_coordinator *c)
{
    struct wpk_search *search;
    struct wpk_job_entry *job;
    do {
        while ((search = wpk_mark_take(&c->marked_searches[WPK_SEARCH_COURSE])) != NULL) {
            wpk_course_advance(c, search);
            wpk_mark_search(c, search, WPK_SEARCH_READY);
        }
        while ((job = wpk_mark_take(&c->marked_jobs[WPK_JOB_OPERATORS])) != NULL) {
            wpk_job_end_if_over(c, job);
            wpk_mark_job(c, job, WPK_JOB_BIND);
        }
        while ((job = wpk_mark_take(&c->marked_jobs[WPK_JOB_BIND])) != NULL) {
            wpk_bind_job(c, job);
        }
    } while (c->marked_searches[WPK_SEARCH_COURSE].first != NULL);
    wpk_claim_served(c);
    while ((search = wpk_mark_take(&c->marked_searches[WPK_SEARCH_READY])) != NULL) {
        wpk_ready_update(c, search);
        wpk_mark_search(c, search, WPK_SEARCH_RELEASE);
    }
    wpk_dispatch(c);
    wpk_job_release(c);
    while ((search = wpk_mark_take(&c->marked_searches[WPK_SEARCH_RELEASE])) != NULL) {
        wpk_search_release(c, search);
    }
    WPK_ASSERT(c->marked_searches[WPK_SEARCH_COURSE].first == NULL);
    WPK_ASSERT(c->marked_searches[WPK_SEARCH_READY].first == NULL);
}

/* ---- life */

struct wpk_coordinator *wpk_coordinator_new(uint64_t job_number_next)
{
    struct wpk_coordinator *c = WPK_DEMAND(calloc(1, sizeof *c));
    c->job_number_next = job_number_next;
    c->handle_next = 1;
    c->owner_weight = 1;
    c->owner_jobs_max = WPK_OWNER_JOBS_DEFAULT;
    c->jobs = WPK_DEMAND(calloc(WPK_JOBS_LIVE_MAX, sizeof(struct wpk_job_entry *)));
    c->workers = WPK_DEMAND(calloc(WPK_WORKERS_MAX, sizeof(struct wpk_worker *)));
    return c;
}

/* Free all work, one kind after the other, without calls from one kind to another. */
static void free_work(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; i < c->search_count; i++) {
        struct wpk_search *search = c->searches[i];
        for (struct wpk_claim *claim = search->claims, *next; claim != NULL; claim = next) {
            next = claim->search_next;
            free(claim);
        }
        search->claims = NULL;
    }
    while (c->search_count > 0) {
        wpk_search_free(c, c->searches[0]);
    }
    wpk_search_free_released(c);
    for (uint32_t i = 0; i < c->job_count; i++) {
        wpk_job_entry_free(c->jobs[i]);
    }
    for (uint32_t i = 0; i < c->queue_count; i++) {
        wpk_work_queue_free(c->queues[i]);
    }
    for (uint32_t i = 0; i < c->owner_count; i++) {
        free(c->owners[i]);
    }
}

static void free_workers(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; i < c->worker_count; i++) {
        for (struct wpk_lease *lease = c->workers[i]->leases, *next; lease != NULL; lease = next) {
            next = lease->next;
            free(lease);
        }
        wpk_worker_free(c->workers[i]);
    }
    for (struct wpk_lease *lease = c->leases_spare, *next; lease != NULL; lease = next) {
        next = lease->next;
        free(lease);
    }
    for (uint32_t i = 0; i < c->worker_class_count; i++) {
        wpk_worker_class_free(c->worker_classes[i]);
    }
    for (uint32_t i = 0; i < c->timing_classes.capacity; i++) {
        if (c->timing_classes.slots[i].value != NULL) {
            wpk_timing_class_free(c->timing_classes.slots[i].value);
        }
    }
    for (uint32_t i = 0; i < c->admin_states.capacity; i++) {
        free(c->admin_states.slots[i].value);
    }
}

void wpk_coordinator_free(struct wpk_coordinator *c)
{
    if (c == NULL) {
        return;
    }
    free_work(c);
    free_workers(c);
    struct wpk_table *tables[] = {
        &c->jobs_by_id,         &c->jobs_by_number,
        &c->searches_by_id,     &c->searches_by_handle,
        &c->searches_by_key,    &c->workers_by_name,
        &c->workers_by_peer,    &c->admin_states,
        &c->workers_by_session, &c->worker_classes_by_key,
        &c->queues_by_key,      &c->timing_classes,
        &c->owners_by_name,     &c->searches_by_problem,
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        wpk_table_fini(tables[i]);
    }
    wpk_timers_fini(&c->search_timers);
    wpk_timers_fini(&c->worker_timers);
    void *arrays[] = {c->jobs, c->workers, c->searches, c->worker_classes, c->queues, c->owners};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        free(arrays[i]);
    }
    free(c);
}

/* ---- a step */

typedef void (*on_event)(struct wpk_coordinator *c);

static void hold_builds(struct wpk_coordinator *c)
{
    c->builds_held = c->event->hold;
    for (uint32_t i = 0; i < c->queue_count && !c->builds_held; i++) {
        wpk_work_queue_mark(c, c->queues[i]);
    }
}

static const on_event on_events[] = {
    [WPK_EVENT_MESSAGE] = wpk_worker_message,
    [WPK_EVENT_GONE] = wpk_worker_gone,
    [WPK_EVENT_SUBMIT] = wpk_job_submit,
    [WPK_EVENT_RESTORE] = wpk_job_restore,
    [WPK_EVENT_RESTORE_OWNER] = wpk_owner_restore,
    [WPK_EVENT_RESTORE_ADMIN_STATE] = wpk_worker_restore_admin_state,
    [WPK_EVENT_SET_OWNER] = wpk_owner_set,
    [WPK_EVENT_CANCEL] = wpk_job_cancel,
    [WPK_EVENT_PAUSE] = wpk_job_pause,
    [WPK_EVENT_RESUME] = wpk_job_resume,
    [WPK_EVENT_WORKER_SET] = wpk_worker_set,
    [WPK_EVENT_WORKER_END] = wpk_worker_end,
    [WPK_EVENT_DRAIN] = wpk_worker_drain,
    [WPK_EVENT_OPENED] = wpk_search_opened,
    [WPK_EVENT_ASKED] = wpk_search_asked,
    [WPK_EVENT_KERNEL_PUT] = wpk_kernel_put,
    [WPK_EVENT_TICK] = serve_tick,
    [WPK_EVENT_KERNEL_CHANGED] = wpk_kernel_changed,
    [WPK_EVENT_ARTIFACT_LOST] = wpk_kernel_artifact_lost,
    [WPK_EVENT_HOLD_BUILDS] = hold_builds,
};

void wpk_coordinator_step(struct wpk_coordinator *c, const struct wpk_event *event,
                          struct wpk_effects *out)
{
    out->count = 0;
    c->event = event;
    c->effects = out;
    c->opened_count = 0;
    c->polled = NULL;
    c->step++;
    wpk_search_free_released(c);
    on_events[event->kind](c);
    settle_all(c);
    c->event = NULL;
    c->effects = NULL;
}

/* ---- looking */

const struct wpk_job_entry *wpk_coordinator_job(const struct wpk_coordinator *c, const char *id)
{
    return wpk_table_get_text(&c->jobs_by_id, id);
}

const struct wpk_worker *wpk_coordinator_find_session(const struct wpk_coordinator *c,
                                                      uint64_t session)
{
    return wpk_table_get(&c->workers_by_session, session);
}

void wpk_coordinator_count(const struct wpk_coordinator *c, struct wpk_coordinator_counts *out)
{
    memset(out, 0, sizeof *out);
    out->leases = c->lease_count;
    out->searches = c->search_count;
    for (uint32_t i = 0; i < c->job_count; i++) {
        out->jobs[c->jobs[i]->state]++;
    }
    for (uint32_t i = 0; i < c->worker_count; i++) {
        const struct wpk_worker *worker = c->workers[i];
        out->workers_outliers += worker->is_outlier;
        out->workers_throttled += worker->throttled_count > 0;
        out->workers_disturbed += worker->steadiness.since_ns != 0;
        if (worker->admin_state == WPK_ADMIN_STATE_QUARANTINE) {
            out->workers_quarantined++;
        } else if (worker->admin_state == WPK_ADMIN_STATE_DRAIN || worker->draining) {
            out->workers_draining++;
        } else if (worker->lease_count > 0) {
            out->workers_busy++;
        } else {
            out->workers_idle++;
        }
    }
}
