/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/poll.h"

#include "coordinator/state/event.h"
#include "coordinator/state/reply.h"
#include "coordinator/state/state.h"
#include "coordinator/state/timer.h"
#include "coordinator/state/worker.h"
#include "coordinator/state/worker_class.h"

#define MS UINT64_C(1000000)

uint64_t wpk_poll_lost_ns(const struct wpk_worker *worker)
{
    uint64_t silent_ns = worker->heard_ns + WPK_LEASE_MS * MS;
    uint64_t gone_ns = worker->gone_ns + WPK_GONE_MS * MS;
    if (worker->failure[0] != '\0') {
        return worker->heard_ns + WPK_FAILED_MS * MS;
    }
    return worker->gone_ns != 0 && gone_ns < silent_ns ? gone_ns : silent_ns;
}

/* One that is too early costs a look at the worker, and most are never too late. */
void wpk_poll_set_timer(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    uint64_t due_ns = worker->polling ? worker->poll_until_ns : wpk_poll_lost_ns(worker);
    if (worker->timer.place == 0 || worker->timer.due_ns > due_ns) {
        wpk_timer_set(&c->worker_timers, &worker->timer, due_ns);
    }
}

void wpk_poll_answer(struct wpk_coordinator *c, struct wpk_worker *worker,
                     const struct wpk_message *message)
{
    WPK_ASSERT(worker->polling);
    wpk_reply_send(c, worker->poll_address, message);
    wpk_worker_class_unwait(worker);
    worker->polling = false;
    worker->heard_ns = c->event->now_ns;
    wpk_poll_set_timer(c, worker);
}

void wpk_poll_answer_empty(struct wpk_coordinator *c, struct wpk_worker *worker)
{
    wpk_poll_answer(c, worker, wpk_reply_new(c, WPK_MESSAGE_WORK, worker->session));
}
