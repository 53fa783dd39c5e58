/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/effects/batch.h"

#include "common/log.h"
#include "coordinator/effects/executor_parts.h"
#include "coordinator/index/index.h"

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
    *(batch->last != NULL ? &batch->last->next : &batch->first) = write;
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
    batch->messages = wpk_grow(batch->messages, batch->message_count, &batch->message_capacity,
                               sizeof *batch->messages);
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

struct wpk_held {
    struct wpk_held *next;
    bool is_reply; /* to a worker; else an answer to a request */
    struct wpk_net_address address;
    struct wpk_buf frame;
    uint64_t request;
    struct wpk_api_answer answer;
};

static struct wpk_held *hold(struct wpk_outbox *outbox)
{
    struct wpk_held *held = WPK_DEMAND(calloc(1, sizeof *held));
    *(outbox->last != NULL ? &outbox->last->next : &outbox->first) = held;
    outbox->last = held;
    return held;
}

void wpk_outbox_reply(struct wpk_outbox *outbox, const struct wpk_net_address *address,
                      const struct wpk_message *message)
{
    struct wpk_held *held = hold(outbox);
    held->is_reply = true;
    held->address = *address;
    held->address.is_known = message->kind != WPK_MESSAGE_ERROR;
    wpk_err err = wpk_message_encode(message, &held->frame);
    if (err != WPK_OK) {
        /* A worker that hears nothing asks again, and says what it holds. */
        wpk_log_failure(WPK_LOG_ERROR, "reply_too_large", err, NULL);
        wpk_buf_reset(&held->frame);
    }
}

struct wpk_api_answer *wpk_outbox_answer(struct wpk_outbox *outbox, uint64_t request)
{
    struct wpk_held *held = hold(outbox);
    held->request = request;
    return &held->answer;
}

struct wpk_message wpk_outbox_refusal(wpk_err err, const struct wpk_diag *diag)
{
    /* EACCES and such would be about the worker, which it is not. */
    wpk_err told = err == WPK_ENOSPC ? err : WPK_EIO;
    return (struct wpk_message){.kind = WPK_MESSAGE_ERROR,
                                .err = told,
                                .text = diag->text[0] != '\0' ? diag->text : wpk_err_text(told),
                                .retry_ms = WPK_OUTBOX_RETRY_MS};
}

/* Left without an answer it would wait for one as long as it waits for artifacts. */
static void refuse(struct wpk_held *held, const struct wpk_executor_out *out, wpk_err err,
                   const struct wpk_diag *diag)
{
    struct wpk_message message = wpk_outbox_refusal(err, diag);
    struct wpk_outbox instead = {0};
    wpk_outbox_reply(&instead, &held->address, &message);
    wpk_outbox_release(&instead, out, WPK_OK, NULL);
}

static void let_go(struct wpk_held *held, const struct wpk_executor_out *out, wpk_err err,
                   const struct wpk_diag *diag)
{
    if (!held->is_reply) {
        if (err != WPK_OK) {
            wpk_api_problem(&held->answer, 507, err, diag);
        }
        out->respond(out->user, held->request, &held->answer);
    } else if (err != WPK_OK && err != WPK_ECLOSED) {
        refuse(held, out, err, diag);
    } else if (err == WPK_OK && held->frame.size > 0) {
        out->reply(out->user, &held->address, held->frame.data, held->frame.size);
    }
}

void wpk_outbox_release(struct wpk_outbox *outbox, const struct wpk_executor_out *out, wpk_err err,
                        const struct wpk_diag *diag)
{
    struct wpk_held *next;
    for (struct wpk_held *held = outbox->first; held != NULL; held = next) {
        next = held->next;
        let_go(held, out, err, diag);
        wpk_buf_fini(&held->frame);
        wpk_api_answer_fini(&held->answer);
        free(held);
    }
    outbox->first = NULL;
    outbox->last = NULL;
}

/* A store write that updates the index with the batch's changes of a problem's kernels. */

struct index_write {
    struct wpk_store_write write;
    struct wpk_index *index;
    uint64_t problem_id;
    struct wpk_index_change *change; /* owned */
};

static void perform(struct wpk_store_write *base, struct wpk_store *store)
{
    struct index_write *write = (struct index_write *)base;
    write->change = wpk_index_refresh(store, write->problem_id);
}

static void done(struct wpk_store_write *base, wpk_err err, const struct wpk_diag *diag WPK_UNUSED)
{
    struct index_write *write = (struct index_write *)base;
    if (err == WPK_OK) {
        wpk_index_publish(write->index, write->change);
    } else {
        wpk_index_discard(write->change);
    }
    free(write);
}

struct wpk_store_write *wpk_index_write_new(struct wpk_index *index, uint64_t problem_id)
{
    struct index_write *write = WPK_DEMAND(calloc(1, sizeof *write));
    *write = (struct index_write){
        .write = {.perform = perform, .done = done}, .index = index, .problem_id = problem_id};
    return &write->write;
}
