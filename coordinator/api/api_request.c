/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of requests: on a thread of the server, and on the loop. */
#include "common/crypto.h"
#include "coordinator/api/api_call.h"
#include "coordinator/api/api_front.h"
#include "coordinator/effects/executor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- on a thread of the server */

/* Set the ETag of a JSON answer to the hash of its content, unless the handler has set one. */
static void name_content(const struct wpk_http_request *request, struct wpk_api_answer *answer)
{
    uint8_t digest[WPK_SHA256_SIZE];
    char digits[33];
    bool get = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    bool json =
        answer->content_type != NULL && strcmp(answer->content_type, "application/json") == 0;
    if (get && json && answer->status == 200 && answer->etag[0] == '\0') {
        wpk_crypto_sha256(answer->body.data, answer->body.size, digest);
        wpk_crypto_hex(digest, 16, digits);
        snprintf(answer->etag, sizeof answer->etag, "\"%s\"", digits);
    }
}

bool wpk_api_front_serve(void *user, const struct wpk_http_request *request,
                         struct wpk_api_answer *answer)
{
    struct wpk_api_front *front = user;
    const struct wpk_api_front_options *options = wpk_api_front_options(front);
    const struct wpk_api api = {
        .front = front,
        .index = options->index,
        .data_dir = options->data_dir,
        .public_key = options->public_key,
        .sign = options->sign,
        .now_ns = wpk_clock_now_ns(options->clock),
    };
    wpk_api_serve(&api, request, answer);
    if (answer->how == WPK_API_QUEUE) {
        wpk_buf_fini(&answer->body);
        return false;
    }
    WPK_ASSERT(answer->how == WPK_API_NOW);
    name_content(request, answer);
    return true;
}

/* ---- on the loop */

static struct wpk_api make_api(struct wpk_executor *executor, uint64_t random)
{
    const struct wpk_executor_options *options = wpk_executor_options(executor);
    return (struct wpk_api){.coordinator = wpk_executor_coordinator(executor),
                            .executor = executor,
                            .index = options->index,
                            .auth = options->auth,
                            .store = wpk_executor_reader(executor),
                            .data_dir = options->data_dir,
                            .now_ns = wpk_executor_now_ns(executor),
                            .random = random};
}

void wpk_api_request(struct wpk_executor *executor, const struct wpk_http_request *request,
                     uint64_t random)
{
    struct wpk_api api = make_api(executor, random);
    struct wpk_api_answer answer;
    struct wpk_diag diag = {0};
    wpk_api_serve(&api, request, &answer);
    if (answer.how != WPK_API_NOW) {
        wpk_api_answer_fini(&answer);
        return;
    }
    wpk_err err = wpk_store_take_status(api.store, &diag);
    if (err != WPK_OK) {
        wpk_api_answer_fini(&answer);
        memset(&answer, 0, sizeof answer);
        wpk_api_problem(&answer, 507, err, &diag);
    }
    *wpk_executor_hold_answer(executor, request->id) = answer;
}

/* ---- answers of a step */

void wpk_api_answer_effect(struct wpk_executor *executor, const struct wpk_effect *effect,
                           struct wpk_api_answer *answer)
{
    struct wpk_api api = make_api(executor, 0);
    struct wpk_diag diag = {0};
    if (effect->kind == WPK_EFFECT_RESPOND_JOB) {
        wpk_api_job(answer, &api, effect->status, effect->answered->id);
        return;
    }
    if (effect->kind == WPK_EFFECT_RESPOND_WORKER) {
        const struct wpk_admin_change *change = &effect->answered_admin;
        wpk_api_admin_state(answer, effect->status, change->worker, change->state, change->reason);
        return;
    }
    wpk_diag_set(&diag, "%s", effect->problem);
    wpk_api_problem(answer, effect->status, effect->err, &diag);
    answer->retry_after_s = effect->retry_after_s;
}
