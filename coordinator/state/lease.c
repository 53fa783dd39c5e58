/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/lease.h"

#include "common/metrics.h"
#include "coordinator/state/asks.h"
#include "coordinator/state/event.h"
#include "coordinator/state/fair.h"
#include "coordinator/state/flow.h"
#include "coordinator/state/mark.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"
#include "coordinator/state/work_item.h"
#include "coordinator/state/worker.h"

#include <stdlib.h>

/* ---- the worker's list */

static void append(struct wpk_worker *worker, struct wpk_lease *lease)
{
    lease->prev = worker->leases_last;
    *(worker->leases_last != NULL ? &worker->leases_last->next : &worker->leases) = lease;
    worker->leases_last = lease;
    worker->lease_count++;
}

static void take_out(struct wpk_lease *lease)
{
    struct wpk_worker *worker = lease->worker;
    *(lease->prev != NULL ? &lease->prev->next : &worker->leases) = lease->next;
    *(lease->next != NULL ? &lease->next->prev : &worker->leases_last) = lease->prev;
    WPK_ASSERT(worker->lease_count > 0);
    worker->lease_count--;
}

/* ---- the search's time, which is that with work out */

static void begin_time(struct wpk_coordinator *c, struct wpk_search *search)
{
    if (search->leased_count++ == 0) {
        search->active_ns = c->event->now_ns;
    }
}

static void end_time(struct wpk_coordinator *c, struct wpk_search *search)
{
    WPK_ASSERT(search->leased_count > 0);
    wpk_mark_search(c, search, WPK_SEARCH_STORE);
    wpk_mark_search(c, search, WPK_SEARCH_COURSE);
    if (--search->leased_count == 0) {
        search->elapsed_ns = wpk_search_elapsed_ns(search, c->event->now_ns);
        search->active_ns = 0;
    }
}

/* ---- taking */

/* The stage that a worker gets: an artifact that exists is run; otherwise a worker that can run
 * does both. */
static enum wpk_work_stage stage_of(const struct wpk_work_item *item, wpk_work_id work,
                                    const struct wpk_worker *worker)
{
    if (work.kind == WPK_WORK_FINAL || work.kind == WPK_WORK_VENDOR) {
        return WPK_STAGE_WHOLE;
    }
    if (item->built != NULL) {
        return WPK_STAGE_RUN;
    }
    return (worker->hello.roles & WPK_WORKER_RUNS) != 0 ? WPK_STAGE_WHOLE : WPK_STAGE_BUILD;
}

struct wpk_lease *wpk_lease_take(struct wpk_coordinator *c, struct wpk_search *search,
                                 wpk_work_id work, struct wpk_worker *worker, struct wpk_flow *flow)
{
    struct wpk_work_item *item = wpk_search_work_item(search, work);
    WPK_ASSERT(item != NULL && item->standing == WPK_STANDING_OPEN);
    if (work.kind == WPK_WORK_TRIAL) {
        wpk_asks_unopen(search, work.index);
    }
    struct wpk_lease *lease = c->leases_spare;
    if (lease != NULL) {
        c->leases_spare = lease->next;
    } else {
        lease = malloc(sizeof *lease);
        WPK_ASSERT(lease != NULL);
    }
    *lease = (struct wpk_lease){.number = ++c->lease_next,
                                .worker = worker,
                                .search = search,
                                .work = work,
                                .stage = stage_of(item, work, worker),
                                .flow = flow};
    if (worker->lease_count == 0) {
        worker->busy_ns = c->event->now_ns;
    }
    append(worker, lease);
    item->standing = WPK_STANDING_LEASED;
    item->lease = lease;
    item->attempts++;
    c->lease_count++;
    begin_time(c, search);
    wpk_fair_charge(c, lease);
    wpk_metric_add(WPK_COUNTER_LEASES, 0, 1);
    return lease;
}

/* ---- ending */

void wpk_lease_end(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns)
{
    struct wpk_search *search = lease->search;
    struct wpk_work_item *item = wpk_search_work_item(search, lease->work);
    WPK_ASSERT(item != NULL && item->lease == lease);
    wpk_fair_settle(c, lease, device_ns);
    take_out(lease);
    item->standing = WPK_STANDING_OPEN;
    item->lease = NULL;
    if (lease->work.kind == WPK_WORK_TRIAL) {
        wpk_asks_open(search, lease->work.index, true);
    }
    c->lease_count--;
    end_time(c, search);
    lease->next = c->leases_spare;
    c->leases_spare = lease;
}

void wpk_lease_return(struct wpk_coordinator *c, struct wpk_lease *lease)
{
    struct wpk_search *search = lease->search;
    struct wpk_work_item *item = wpk_search_work_item(search, lease->work);
    wpk_lease_end(c, lease, 0);
    item->attempts--;
}
