/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves the process, held back until its batch is durable: frames for workers and answers to
 * requests, in their order. A zeroed one is empty. */
#ifndef WPK_COORDINATOR_EFFECTS_OUTBOX_H
#define WPK_COORDINATOR_EFFECTS_OUTBOX_H

#include "common/net.h"
#include "coordinator/http/answer.h"
#include "schema/message.h"

struct wpk_held;
struct wpk_executor_out;

struct wpk_outbox {
    struct wpk_held *first; /* owned */
    struct wpk_held *last;
};

/* Encodes at once, in the protocol version that is the address's tag: `message` may go. One that is
 * too large is dropped. */
void wpk_outbox_reply(struct wpk_outbox *outbox, const struct wpk_net_address *address,
                      const struct wpk_message *message);
/* The answer to a request, to be filled in; the outbox owns what it holds. */
struct wpk_api_answer *wpk_outbox_answer(struct wpk_outbox *outbox, uint64_t request);

#define WPK_OUTBOX_RETRY_MS 2000 /* when a worker may come again after wpk_outbox_refusal() */

/* What a worker is told whose message was lost, because the store failed with `err`, or is not
 * taken, because it did. Borrows from `diag`. */
struct wpk_message wpk_outbox_refusal(wpk_err err, const struct wpk_diag *diag);

/* Let everything go. If `err`, the batch is lost: requests are answered with that problem, workers
 * with a refusal, and with nothing where the process ends (WPK_ECLOSED). */
void wpk_outbox_release(struct wpk_outbox *outbox, const struct wpk_executor_out *out, wpk_err err,
                        const struct wpk_diag *diag);

#endif
