/* SPDX-License-Identifier: Apache-2.0 */
/* The outbox of a batch: output (frames for workers, answers to requests) that is held in its order
 * until the batch is durable. A zeroed outbox is empty. */
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

/* Hold a reply. It is encoded at once, so that `message` is not kept. A message that is too large
 * is logged and dropped. */
void wpk_outbox_reply(struct wpk_outbox *outbox, const struct wpk_net_address *address,
                      const struct wpk_message *message);
/* Hold an answer to a request, to be filled in. The outbox owns what the answer holds. */
struct wpk_api_answer *wpk_outbox_answer(struct wpk_outbox *outbox, uint64_t request);

#define WPK_OUTBOX_RETRY_MS 2000 /* a worker comes again so long after a refusal */

/* The refusal for a worker whose message was lost, or is not taken, because the store failed with
 * `err`. Borrows from `diag`. */
struct wpk_message wpk_outbox_refusal(wpk_err err, const struct wpk_diag *diag);

/* Release all output. With `err` the batch is lost: requests are answered with that problem, and
 * workers with a refusal, or not at all if the process ends (WPK_ECLOSED). */
void wpk_outbox_release(struct wpk_outbox *outbox, const struct wpk_executor_out *out, wpk_err err,
                        const struct wpk_diag *diag);

#endif
