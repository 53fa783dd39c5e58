/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session.h"

#include "client/follow.h"
#include "common/clock.h"
#include "common/crypto.h"
#include "common/fs.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATH_SIZE_MAX 4096

static wpk_err open_private(const struct wpk_command_context *context,
                            const struct wpk_session_options *options, struct wpk_session *session,
                            struct wpk_diag *diag)
{
    wpk_buf_init(&session->data_dir, PATH_SIZE_MAX);
    wpk_err err = wpk_fs_data_dir(options->data_dir, context->xdg_data_home, context->home,
                                  &session->data_dir, diag);
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_private_options private_options = {
        .data_dir = wpk_buf_text(&session->data_dir),
        .runtime_dir = context->xdg_runtime_dir,
        .with_worker = options->need == WPK_SESSION_WORKER,
        .gpu = options->gpu,
        .attach_only = options->need == WPK_SESSION_RUNNING,
        .reads_only = options->need == WPK_SESSION_HISTORY,
        .notice = options->notice,
        .user = options->user,
    };
    return wpk_private_open(&private_options, &session->private_service, diag);
}

static wpk_err open_http(struct wpk_session *session, const char *url, struct wpk_diag *diag)
{
    const struct wpk_http_client_options options = {.url = url,
                                                    .token = session->access.token,
                                                    .ca = session->access.ca,
                                                    .insecure = session->access.insecure};

    return wpk_http_open(&options, &session->http, diag);
}

wpk_err wpk_session_open(const struct wpk_command_context *context,
                         const struct wpk_session_options *options, struct wpk_session *out,
                         struct wpk_diag *diag)
{
    bool private_one = options->data_dir != NULL ||
                       (options->need == WPK_SESSION_WORKER && options->given.server == NULL);

    WPK_ASSERT(out->http == NULL);
    if (options->given.server != NULL && options->data_dir != NULL) {
        return wpk_fail(diag, WPK_EINVAL,
                        "--server and --data exclude each other: give one of them");
    }
    if (!private_one) {
        wpk_err err = wpk_server_access_find(context, &options->given, &out->access, diag);
        if (err != WPK_OK) {
            return err;
        }
    }
    if (out->access.server[0] != '\0') {
        return open_http(out, out->access.server, diag);
    }
    wpk_err err = open_private(context, options, out, diag);
    return err != WPK_OK ? err : open_http(out, wpk_private_url(out->private_service), diag);
}

void wpk_session_close(struct wpk_session *session)
{
    if (session != NULL) {
        wpk_http_close(session->http);
        wpk_private_close(session->private_service);
        wpk_buf_fini(&session->data_dir);
        wpk_crypto_wipe(&session->access, sizeof(session->access));
        *session = (struct wpk_session){0};
    }
}

wpk_err wpk_session_tend(struct wpk_session *session, struct wpk_diag *diag)
{
    bool changed = false;

    if (session->private_service == NULL) {
        return WPK_OK;
    }
    wpk_err err = wpk_private_tend(session->private_service, &changed, diag);
    if (err != WPK_OK || !changed) {
        return err;
    }
    wpk_http_close(session->http);
    session->http = NULL;
    return open_http(session, wpk_private_url(session->private_service), diag);
}

wpk_err wpk_session_ask(struct wpk_session *session, const char *path, const char *body,
                        struct wpk_http_reply *reply, struct wpk_diag *diag)
{
    const struct wpk_http_client_request request = {.path = path, .body = body};
    wpk_err err = wpk_http_send(session->http, &request, reply, diag);

    return err != WPK_OK ? err : wpk_api_check(reply->status, &reply->body, diag);
}

wpk_err wpk_session_submit(struct wpk_session *session, const char *job,
                           struct wpk_http_reply *reply, struct wpk_diag *diag)
{
    char key[WPK_TOKEN_TEXT_SIZE];
    const struct wpk_http_client_request request = {
        .path = "/v1/jobs", .body = job, .idempotency_key = key};
    struct wpk_patience patience = {0};
    bool reached = session->private_service != NULL;

    wpk_crypto_random_token(key);
    for (;;) {
        struct wpk_diag found = {0};
        wpk_http_reply_fini(reply);
        wpk_err err = wpk_http_send(session->http, &request, reply, &found);
        err = err != WPK_OK ? err : wpk_api_check(reply->status, &reply->body, &found);
        reached = reached || reply->reached;
        if (!reached || !wpk_patience_lost(err) || !wpk_patience_wait(&patience)) {
            if (err != WPK_OK && diag != NULL) {
                *diag = found;
            }
            return err;
        }
        err = wpk_session_tend(session, diag);
        if (err != WPK_OK) {
            return err;
        }
    }
}

bool wpk_session_is_job_id(const char *id, struct wpk_diag *diag)
{
    if (id[0] == 'j' && strspn(id + 1, "0123456789abcdef") == 16 && id[17] == '\0') {
        return true;
    }
    wpk_diag_set(diag,
                 "'%s' is not the id of a job: j and 16 hexadecimal digits; wpkctl jobs lists them",
                 id);
    return false;
}

wpk_err wpk_session_ask_job(struct wpk_session *session, const char *id, const char *action,
                            struct wpk_arena *arena, struct wpk_http_reply *reply,
                            struct wpk_api_job *out, struct wpk_diag *diag)
{
    char path[64];

    if (!wpk_session_is_job_id(id, diag)) {
        return WPK_EINVAL;
    }
    snprintf(path, sizeof(path), "/v1/jobs/%s%s", id, action);
    wpk_err err = wpk_session_ask(session, path, action[0] != '\0' ? "" : NULL, reply, diag);
    return err != WPK_OK ? err : wpk_api_decode_job(&reply->body, arena, out, diag);
}

bool wpk_patience_lost(wpk_err err)
{
    return err == WPK_ECLOSED || err == WPK_ETIMEDOUT || err == WPK_EBUSY;
}

bool wpk_patience_wait(struct wpk_patience *patience)
{
    uint64_t now_ns = wpk_clock_now_ns(wpk_clock_system());

    if (patience->lost_ns == 0) {
        patience->lost_ns = now_ns;
        patience->pause_ms = WPK_PATIENCE_FIRST_MS;
    } else if (now_ns - patience->lost_ns > WPK_PATIENCE_S * WPK_NS_PER_S) {
        return false;
    }
    (void)nanosleep(&(struct timespec){.tv_sec = patience->pause_ms / 1000,
                                       .tv_nsec = patience->pause_ms % 1000 * 1000000L},
                    NULL);
    patience->pause_ms += patience->pause_ms / 2;
    if (patience->pause_ms > WPK_PATIENCE_LONGEST_MS) {
        patience->pause_ms = WPK_PATIENCE_LONGEST_MS;
    }
    return true;
}
