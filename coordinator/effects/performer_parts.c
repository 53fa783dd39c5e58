/* SPDX-License-Identifier: Apache-2.0 */
/* What all files of the performer stand on: store writes, events for later, and what is said
 * now. */
#include "coordinator/effects/performer_parts.h"

#include "common/log.h"
#include "schema/message_trace.h"

#include <stdlib.h>

uint64_t wpk_performer_now_ns(const struct wpk_performer *p)
{
    return wpk_clock_now_ns(p->options.clock);
}

/* ---- store writes */

void *wpk_performer_new_write(struct wpk_performer *p, size_t size,
                              void (*perform)(struct wpk_store_write *write,
                                              struct wpk_store *store),
                              void (*done)(struct wpk_store_write *write, wpk_err err,
                                           const struct wpk_diag *diag))
{
    struct wpk_effect_write *effect = wpk_batch_memory(p->batch, size);
    effect->write.perform = perform;
    effect->write.done = done;
    effect->performer = p;
    effect->generation = p->generation;
    wpk_batch_add(p->batch, &effect->write);
    return effect;
}

bool wpk_performer_may_write(const struct wpk_performer *p)
{
    return !p->degraded || p->resuming;
}

bool wpk_performer_is_current(const struct wpk_store_write *write, wpk_err err)
{
    const struct wpk_effect_write *effect = (const struct wpk_effect_write *)write;
    return err == WPK_OK && effect->generation == effect->performer->generation;
}

void wpk_performer_add_write(struct wpk_performer *p, struct wpk_store_write *write)
{
    WPK_ASSERT(write->perform != NULL && write->done != NULL);
    /* A degraded store takes none; answers that were only read do not fail with it. */
    wpk_batch_add(p->degraded ? &p->refused : p->batch, write);
}

void wpk_performer_follow_up(struct wpk_performer *p, const struct wpk_event *event)
{
    if (p->event_count == p->event_capacity) {
        p->event_capacity = p->event_capacity == 0 ? 64 : p->event_capacity * 2;
        struct wpk_event *grown = realloc(p->events, p->event_capacity * sizeof *grown);
        WPK_ASSERT(grown != NULL);
        p->events = grown;
    }
    p->events[p->event_count++] = *event;
}

void wpk_performer_change_kernel(struct wpk_performer *p, const struct wpk_kernel_event *change)
{
    struct wpk_event event = {.kind = WPK_EVENT_KERNEL_CHANGED};
    if (p->degraded) {
        return; /* what is read from the store knows it */
    }
    event.kernel = malloc(sizeof *event.kernel);
    WPK_ASSERT(event.kernel != NULL);
    *event.kernel = *change;
    wpk_performer_follow_up(p, &event);
}

/* ---- out */

void wpk_performer_reply(struct wpk_performer *p, const struct wpk_net_address *address,
                         const struct wpk_message *message)
{
    struct wpk_outbox now = {0};
    wpk_outbox_reply(&now, address, message);
    wpk_outbox_release(&now, &p->options.out, WPK_OK, NULL);
}

void wpk_performer_reply_error(struct wpk_performer *p, const struct wpk_net_address *address,
                               uint64_t session, wpk_err err, const struct wpk_diag *diag)
{
    struct wpk_message message = {.kind = WPK_MESSAGE_ERROR,
                                  .session = session,
                                  .err = err,
                                  .text = diag->text[0] != '\0' ? diag->text : wpk_err_text(err)};
    wpk_performer_reply(p, address, &message);
}

void wpk_performer_answer(struct wpk_performer *p, uint64_t request, struct wpk_api_answer *answer)
{
    p->options.out.respond(p->options.out.user, request, answer);
    wpk_api_answer_fini(answer);
}

void wpk_performer_refuse(struct wpk_performer *p, const struct wpk_net_address *address,
                          wpk_err err, const struct wpk_diag *diag)
{
    struct wpk_message message = wpk_outbox_refusal(err, diag);
    wpk_performer_reply(p, address, &message);
}

struct wpk_api_answer *wpk_performer_hold_answer(struct wpk_performer *p, uint64_t request)
{
    return wpk_outbox_answer(&p->batch->outbox, request);
}

void wpk_performer_trace(const struct wpk_performer *p, const char *event,
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

const struct wpk_coordinator *wpk_performer_coordinator(const struct wpk_performer *p)
{
    return p->coordinator;
}

const struct wpk_performer_options *wpk_performer_options(const struct wpk_performer *p)
{
    return &p->options;
}

struct wpk_store *wpk_performer_reader(struct wpk_performer *p)
{
    return p->reader;
}

wpk_err wpk_performer_degraded(const struct wpk_performer *p, struct wpk_diag *diag)
{
    if (p->degraded && diag != NULL) {
        *diag = p->diag;
    }
    return p->degraded ? p->err : WPK_OK;
}
