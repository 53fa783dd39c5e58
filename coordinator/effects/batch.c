/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/effects/batch.h"

#include "common/log.h"

#include <stdlib.h>
#include <string.h>

static void drop_messages(struct wpk_batch *batch)
{
    for (uint32_t i = 0; i < batch->message_count; i++) {
        wpk_message_fini(&batch->messages[i]);
    }
    batch->message_count = 0;
}

void wpk_batch_reset(struct wpk_batch *batch)
{
    WPK_ASSERT(batch->first == NULL && batch->outbox.first == NULL);
    drop_messages(batch);
    wpk_arena_reset(&batch->arena);
    batch->next = NULL;
    batch->write_count = 0;
    batch->result_count = 0;
    batch->bytes = 0;
    batch->err = WPK_OK;
    batch->search = 0;
    memset(&batch->diag, 0, sizeof batch->diag);
}

void wpk_batch_fini(struct wpk_batch *batch)
{
    WPK_ASSERT(batch->first == NULL && batch->outbox.first == NULL);
    drop_messages(batch);
    free(batch->messages);
    wpk_arena_fini(&batch->arena);
    memset(batch, 0, sizeof *batch);
}

bool wpk_batch_is_empty(const struct wpk_batch *batch)
{
    return batch->first == NULL && batch->outbox.first == NULL;
}

void wpk_batch_add(struct wpk_batch *batch, struct wpk_store_write *write)
{
    WPK_ASSERT(write->perform != NULL);
    write->next = NULL;
    if (batch->last != NULL) {
        batch->last->next = write;
    } else {
        batch->first = write;
    }
    batch->last = write;
    batch->write_count++;
}

void *wpk_batch_memory(struct wpk_batch *batch, size_t size)
{
    void *memory = wpk_arena_alloc(&batch->arena, 1, size);
    WPK_ASSERT(memory != NULL); /* batches are bounded: the machine is out of memory */
    batch->bytes += size;
    return memory;
}

char *wpk_batch_text(struct wpk_batch *batch, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = wpk_batch_memory(batch, size);
    memcpy(copy, text, size);
    return copy;
}

void wpk_batch_keep(struct wpk_batch *batch, struct wpk_message *message)
{
    if (batch->message_count == batch->message_capacity) {
        batch->message_capacity = batch->message_capacity == 0 ? 64 : batch->message_capacity * 2;
        struct wpk_message *grown =
            realloc(batch->messages, batch->message_capacity * sizeof *grown);
        WPK_ASSERT(grown != NULL);
        batch->messages = grown;
    }
    batch->messages[batch->message_count++] = *message;
    batch->bytes += message->arena.size_reserved;
    memset(message, 0, sizeof *message);
}

void wpk_batch_finish(struct wpk_batch *batch, wpk_err err, const struct wpk_diag *diag)
{
    struct wpk_store_write *next;
    for (struct wpk_store_write *write = batch->first; write != NULL; write = next) {
        struct wpk_diag *own = write->diag;
        wpk_err own_err = err == WPK_OK ? write->err : WPK_OK;
        next = write->next;
        if (own_err != WPK_OK) {
            wpk_log_failure(WPK_LOG_ERROR, "not_stored", own_err, own);
        }
        if (write->done != NULL) {
            write->done(write, own_err != WPK_OK ? own_err : err, own_err != WPK_OK ? own : diag);
        }
        free(own);
    }
    batch->first = NULL;
    batch->last = NULL;
}
