/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run_model.h"

#include "client/session.h"

#include <string.h>

static bool is_ready(const struct wpk_api_worker *worker, const char *kind)
{
    size_t length = strlen(kind);

    return strcmp(worker->state, "ready") == 0 && strncmp(worker->device, kind, length) == 0 &&
           worker->device[length] == '/';
}

wpk_err wpk_check_workers(const struct wpk_command_context *context,
                          const struct wpk_session_options *options, const char *kind, int *out,
                          struct wpk_diag *diag)
{
    struct wpk_session session = {0};
    struct wpk_buf body = {.size_max = WPK_HTTP_REPLY_MAX};
    struct wpk_arena arena;
    struct wpk_api_worker *workers = NULL;
    int count = 0;

    wpk_arena_init(&arena, SIZE_MAX);
    wpk_err err = wpk_session_open(context, options, &session, diag);
    if (err == WPK_OK) {
        err = wpk_list_fetch(&session, "/v1/workers", "", "workers", WPK_API_LIST_MAX, &body, diag);
    }
    if (err == WPK_OK) {
        err = wpk_api_decode_workers(&body, &arena, &workers, &count, diag);
    }
    *out = 0;
    for (int i = 0; err == WPK_OK && i < count; i++) {
        *out += is_ready(&workers[i], kind);
    }
    wpk_buf_fini(&body);
    wpk_session_close(&session);
    wpk_arena_fini(&arena);
    return err;
}
