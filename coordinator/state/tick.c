/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/tick.h"

#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/job.h"
#include "coordinator/state/mark.h"
#include "coordinator/state/owner.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"
#include "coordinator/state/timer.h"
#include "coordinator/state/worker.h"

#define MS UINT64_C(1000000)
#define STORE_MS 1000 /* counters are stored that often */

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

/* If a work queue has lost its last worker, mark all searches: one may wait at its end for a plain
 * kernel that no worker builds any more. */
static void mark_unserved(struct wpk_coordinator *c)
{
    for (uint32_t i = 0; c->unserved && i < c->search_count; i++) {
        wpk_mark_search(c, c->searches[i], WPK_SEARCH_COURSE);
    }
    c->unserved = false;
}

void wpk_tick(struct wpk_coordinator *c)
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
    mark_unserved(c);
    if (c->event->now_ns >= c->stored_ns + STORE_MS * MS) {
        c->stored_ns = c->event->now_ns;
        wpk_search_store(c);
        wpk_owner_store(c);
    }
}
