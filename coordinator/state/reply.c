/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/reply.h"

#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/state.h"

void wpk_reply_send(struct wpk_coordinator *c, const struct wpk_net_address *address,
                    const struct wpk_message *message)
{
    struct wpk_effect *effect = wpk_effect_add(c, WPK_EFFECT_REPLY);
    effect->address = *address;
    effect->message = message;
}

struct wpk_message *wpk_reply_new(struct wpk_coordinator *c, enum wpk_message_kind kind,
                                  uint64_t session)
{
    struct wpk_message *message = wpk_effect_memory(c, 1, sizeof *message);
    message->kind = kind;
    message->session = session;
    return message;
}

void wpk_reply_error(struct wpk_coordinator *c, wpk_err err, const char *text)
{
    struct wpk_message *message = wpk_reply_new(c, WPK_MESSAGE_ERROR, c->event->message->session);
    message->err = err;
    message->text = text;
    wpk_reply_send(c, &c->event->address, message);
}

void wpk_reply_acks(struct wpk_coordinator *c, enum wpk_ack *acks, uint32_t count)
{
    struct wpk_message *message = wpk_reply_new(c, WPK_MESSAGE_ACK, c->event->message->session);
    message->acks = acks;
    message->ack_count = count;
    wpk_reply_send(c, &c->event->address, message);
}
