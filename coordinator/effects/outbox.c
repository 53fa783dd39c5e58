/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/effects/batch.h"

#include "common/log.h"
#include "coordinator/effects/executor.h"

#include <stdlib.h>

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
    struct wpk_held *held = calloc(1, sizeof *held);
    WPK_ASSERT(held != NULL);
    if (outbox->last != NULL) {
        outbox->last->next = held;
    } else {
        outbox->first = held;
    }
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
