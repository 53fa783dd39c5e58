/* SPDX-License-Identifier: Apache-2.0 */
/* What one turn of the loop wants written, and what may leave once it is: writes of the store,
 * and output that waits for them. A batch owns all that its writes refer to, so that the writer's
 * thread needs nothing of the loop's.
 *
 *      filled by the loop ──▶ writer ──▶ durable, or failed ──▶ the loop lets its output go
 */
#ifndef WPK_COORDINATOR_EFFECTS_BATCH_H
#define WPK_COORDINATOR_EFFECTS_BATCH_H

#include "coordinator/effects/executor.h"
#include "coordinator/effects/outbox.h"

struct wpk_batch {
    struct wpk_batch *next;  /* of the queue that it is in */
    struct wpk_store_write *first; /* in the order in which they are performed */
    struct wpk_store_write *last;
    uint32_t write_count;
    uint32_t result_count;         /* trials among them, for the metrics */
    size_t bytes;                  /* that it holds, about */
    struct wpk_outbox outbox;      /* waits for it */
    struct wpk_arena arena;        /* its own writes, and what they point to */
    struct wpk_message *messages;  /* owned; [message_count]: records in them are pointed to */
    uint32_t message_count;
    uint32_t message_capacity;
    wpk_err err; /* set by the writer, with diag: why nothing of it is stored */
    struct wpk_diag diag;
    uint64_t search; /* likewise: the live search of which something was refused; 0: of none */
};

/* Empty, for a first use or another one: what it allocated is kept. */
void wpk_batch_reset(struct wpk_batch *batch);
void wpk_batch_fini(struct wpk_batch *batch);

bool wpk_batch_is_empty(const struct wpk_batch *batch);
void wpk_batch_add(struct wpk_batch *batch, struct wpk_store_write *write);
/* Zeroed memory that lives as long as the batch. */
void *wpk_batch_memory(struct wpk_batch *batch, size_t size);
char *wpk_batch_text(struct wpk_batch *batch, const char *text);
/* Keep a decoded message until the batch is done: takes what it owns. */
void wpk_batch_keep(struct wpk_batch *batch, struct wpk_message *message);
/* Call every write's `done` that has one; of a batch that is stored, those that failed by
 * themselves hear so. */
void wpk_batch_finish(struct wpk_batch *batch, wpk_err err, const struct wpk_diag *diag);

#endif
