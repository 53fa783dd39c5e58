/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/loss.h"

#include "common/metrics.h"
#include "coordinator/state/completion.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/final.h"
#include "coordinator/state/lease.h"
#include "coordinator/state/search.h"
#include "coordinator/state/state.h"
#include "coordinator/state/work_item.h"
#include "coordinator/state/worker.h"
#include "schema/message_trace.h"

static struct wpk_lease *find_to_blame(const struct wpk_worker *worker)
{
    for (struct wpk_lease *lease = worker->leases; lease != NULL; lease = lease->next) {
        if (lease->number == worker->running) {
            return lease;
        }
    }
    return worker->leases; /* the oldest: work is done in its order */
}

/* It cost what it was worked on, and whoever takes it next is one attempt nearer to the last. */
static void blame(struct wpk_coordinator *c, struct wpk_worker *worker, struct wpk_lease *lease)
{
    struct wpk_search *search = lease->search;
    wpk_work_id work = lease->work;
    uint32_t attempts = wpk_search_work_item(search, work)->attempts;
    char id[WPK_WORK_ID_TEXT_SIZE];
    wpk_work_id_print(work, id);
    wpk_effect_log(c, "blamed", "work=%s lease=%llu attempt=%u stage=%s worker=%s", id,
                   (unsigned long long)lease->number, attempts, wpk_work_stage_name(lease->stage),
                   worker->hello.name);
    uint64_t worked_ns =
        worker->heard_ns > worker->busy_ns ? worker->heard_ns - worker->busy_ns : 0;
    wpk_lease_end(c, lease, worked_ns);
    wpk_search_work_item(search, work)->lost_on = worker->device_hash;
    if (attempts >= WPK_ATTEMPTS_MAX) {
        wpk_completion_abandon(c, search, work, NULL);
    }
}

void wpk_loss_return_all(struct wpk_coordinator *c, struct wpk_worker *worker, bool died)
{
    struct wpk_lease *blamed = died ? find_to_blame(worker) : NULL;
    if (died) {
        wpk_metric_add(WPK_COUNTER_LEASES_EXPIRED, 0, worker->lease_count);
    }
    /* From the last on: each is put before those that are open, and so they keep their order. */
    for (struct wpk_lease *lease = worker->leases_last, *prev; lease != NULL; lease = prev) {
        prev = lease->prev;
        if (lease != blamed) {
            wpk_lease_return(c, lease);
        }
    }
    if (blamed != NULL) {
        blame(c, worker, blamed);
    }
    WPK_ASSERT(worker->lease_count == 0);
}

static uint64_t limit_ns(const struct wpk_lease *lease)
{
    uint64_t ms = WPK_RUN_LIMIT_MS;
    if (lease->work.kind == WPK_WORK_FINAL) {
        ms += (uint64_t)lease->search->entry_count * WPK_FINAL_ROUNDS * WPK_FINAL_TURN_MS;
    }
    return ms * UINT64_C(1000000);
}

void wpk_loss_watch(struct wpk_coordinator *c, struct wpk_worker *worker, uint64_t running)
{
    uint64_t now_ns = c->event->now_ns;
    if (running == 0 || running != worker->running) {
        worker->running = running;
        worker->running_ns = now_ns;
        worker->stuck = false;
        return;
    }
    struct wpk_lease *lease = find_to_blame(worker);
    if (worker->stuck || lease == NULL || now_ns < worker->running_ns + limit_ns(lease)) {
        return;
    }
    char id[WPK_WORK_ID_TEXT_SIZE];
    wpk_work_id_print(lease->work, id);
    wpk_effect_warn(c, "worker_stuck", "work=%s worker=%s s=%llu leases=%u", id, worker->hello.name,
                    (unsigned long long)((now_ns - worker->running_ns) / UINT64_C(1000000000)),
                    worker->lease_count);
    worker->stuck = true;
    wpk_loss_return_all(c, worker, true);
}
