/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: the store writes of one turn of the loop, and the output that is held until they are
 * durable. A batch owns all that its writes point to, so that the writer's thread needs nothing of
 * the loop's.
 *
 *      filled by the loop ──▶ writer ──▶ durable, or failed ──▶ the loop releases its output
 */
#ifndef WPK_COORDINATOR_EFFECTS_BATCH_H
#define WPK_COORDINATOR_EFFECTS_BATCH_H

#include "common/net.h"
#include "coordinator/effects/executor.h"
#include "schema/message.h"

struct wpk_held;

/* The outbox of a batch: output (frames for workers, answers to requests) that is held in its order
 * until the batch is durable. A zeroed outbox is empty. */

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

struct wpk_batch {
    struct wpk_batch *next;        /* of the queue that it is in */
    struct wpk_store_write *first; /* in the order in which they are performed */
    struct wpk_store_write *last;
    uint32_t write_count;
    uint32_t result_count;        /* trials among the writes, for the metrics */
    size_t bytes;                 /* of memory that it holds, about */
    struct wpk_outbox outbox;     /* output that waits for the writes */
    struct wpk_arena arena;       /* the effects' writes, and what they point to */
    struct wpk_message *messages; /* owned; [message_count]: writes point to their records */
    uint32_t message_count;
    uint32_t message_capacity;
    wpk_err err; /* set by the writer, with diag and search: why nothing of it is stored */
    struct wpk_diag diag;
    uint64_t search; /* handle of the search whose write the store refused; 0: none */
};

/* Make the batch empty for its next use, after wpk_batch_finish(). The memory is kept. */
void wpk_batch_reset(struct wpk_batch *batch);
void wpk_batch_fini(struct wpk_batch *batch);

/* True if it has neither writes nor output. */
bool wpk_batch_is_empty(const struct wpk_batch *batch);
/* Add a write, the last to be performed. */
void wpk_batch_add(struct wpk_batch *batch, struct wpk_store_write *write);
/* Zeroed memory, and a copy of a text, that live as long as the batch. */
void *wpk_batch_memory(struct wpk_batch *batch, size_t size);
char *wpk_batch_text(struct wpk_batch *batch, const char *text);
/* Keep a decoded message until the batch is done. Takes what the message owns. */
void wpk_batch_keep(struct wpk_batch *batch, struct wpk_message *message);
/* Call `done` of every write that has one, with `err`; or, in a batch that is stored, with the
 * write's own error if it failed by itself. */
void wpk_batch_finish(struct wpk_batch *batch, wpk_err err, const struct wpk_diag *diag);

#endif
