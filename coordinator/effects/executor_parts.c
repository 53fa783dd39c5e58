/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that all files of the executor use: store writes, events that are stepped later, and
 * replies that leave at once. */
#include "coordinator/effects/executor_parts.h"

#include "common/log.h"
#include "schema/message.h"

#include <stdlib.h>

uint64_t wpk_executor_now_ns(const struct wpk_executor *p)
{
    return wpk_clock_now_ns(p->options.clock);
}

/* ---- store writes */

void *wpk_executor_new_write(struct wpk_executor *p, size_t size,
                             void (*perform)(struct wpk_store_write *write,
                                             struct wpk_store *store),
                             void (*done)(struct wpk_store_write *write, wpk_err err,
                                          const struct wpk_diag *diag))
{
    struct wpk_effect_write *effect = wpk_batch_memory(p->batch, size);
    effect->write.perform = perform;
    effect->write.done = done;
    effect->executor = p;
    effect->generation = p->generation;
    wpk_batch_add(p->batch, &effect->write);
    return effect;
}

bool wpk_executor_may_write(const struct wpk_executor *p)
{
    return !p->degraded || p->resuming;
}

bool wpk_executor_is_current(const struct wpk_store_write *write, wpk_err err)
{
    const struct wpk_effect_write *effect = (const struct wpk_effect_write *)write;
    return err == WPK_OK && effect->generation == effect->executor->generation;
}

void wpk_executor_add_write(struct wpk_executor *p, struct wpk_store_write *write)
{
    WPK_ASSERT(write->perform != NULL && write->done != NULL);
    /* A degraded store takes none; answers that were only read do not fail with it. */
    wpk_batch_add(p->degraded ? &p->refused : p->batch, write);
}

void wpk_executor_follow_up(struct wpk_executor *p, const struct wpk_event *event)
{
    p->events = wpk_grow(p->events, p->event_count, &p->event_capacity, sizeof *p->events);
    p->events[p->event_count++] = *event;
}

void wpk_executor_change_kernel(struct wpk_executor *p, const struct wpk_kernel_event *change)
{
    struct wpk_event event = {.kind = WPK_EVENT_KERNEL_CHANGED};
    if (p->degraded) {
        return; /* what is read from the store knows it */
    }
    event.kernel = WPK_DEMAND(malloc(sizeof *event.kernel));
    *event.kernel = *change;
    wpk_executor_follow_up(p, &event);
}

/* ---- out */

void wpk_executor_reply(struct wpk_executor *p, const struct wpk_net_address *address,
                        const struct wpk_message *message)
{
    struct wpk_outbox now = {0};
    wpk_outbox_reply(&now, address, message);
    wpk_outbox_release(&now, &p->options.out, WPK_OK, NULL);
}

void wpk_executor_reply_error(struct wpk_executor *p, const struct wpk_net_address *address,
                              uint64_t session, wpk_err err, const struct wpk_diag *diag)
{
    struct wpk_message message = {.kind = WPK_MESSAGE_ERROR,
                                  .session = session,
                                  .err = err,
                                  .text = diag->text[0] != '\0' ? diag->text : wpk_err_text(err)};
    wpk_executor_reply(p, address, &message);
}

void wpk_executor_answer(struct wpk_executor *p, uint64_t request, struct wpk_api_answer *answer)
{
    p->options.out.respond(p->options.out.user, request, answer);
    wpk_api_answer_fini(answer);
}

void wpk_executor_refuse(struct wpk_executor *p, const struct wpk_net_address *address, wpk_err err,
                         const struct wpk_diag *diag)
{
    struct wpk_message message = wpk_outbox_refusal(err, diag);
    wpk_executor_reply(p, address, &message);
}

struct wpk_api_answer *wpk_executor_hold_answer(struct wpk_executor *p, uint64_t request)
{
    return wpk_outbox_answer(&p->batch->outbox, request);
}

void wpk_executor_trace(const struct wpk_executor *p, const char *event,
                        const struct wpk_message *message)
{
    if (!wpk_log_enabled(WPK_LOG_DEBUG)) {
        return;
    }
    const struct wpk_worker *worker =
        wpk_coordinator_find_session(p->coordinator, message->session);
    wpk_message_trace(event, message, worker != NULL ? worker->hello.name : NULL);
}

/* ---- what requests are answered from */

const struct wpk_coordinator *wpk_executor_coordinator(const struct wpk_executor *p)
{
    return p->coordinator;
}

const struct wpk_executor_options *wpk_executor_options(const struct wpk_executor *p)
{
    return &p->options;
}

struct wpk_store *wpk_executor_reader(struct wpk_executor *p)
{
    return p->reader;
}

wpk_err wpk_executor_degraded(const struct wpk_executor *p, struct wpk_diag *diag)
{
    if (p->degraded && diag != NULL) {
        *diag = p->diag;
    }
    return p->degraded ? p->err : WPK_OK;
}
