/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to workers, as effects. */
#ifndef WPK_COORDINATOR_STATE_REPLY_H
#define WPK_COORDINATOR_STATE_REPLY_H

#include "common/net.h"
#include "schema/message.h"

struct wpk_coordinator;

/* A new message, to be filled in and sent within the step. It lies in the effects' arena. */
struct wpk_message *wpk_reply_new(struct wpk_coordinator *c, enum wpk_message_kind kind,
                                  uint64_t session);
void wpk_reply_send(struct wpk_coordinator *c, const struct wpk_net_address *address,
                    const struct wpk_message *message);
/* Answer the event's message, with an error or with `acks` [count]. */
void wpk_reply_error(struct wpk_coordinator *c, wpk_err err, const char *text);
void wpk_reply_acks(struct wpk_coordinator *c, enum wpk_ack *acks, uint32_t count);

#endif
