/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session.h"

#include "common/fs.h"

#include <stdio.h>
#include <string.h>

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
        .attach_only = options->need == WPK_SESSION_RUNNING,
        .notice = options->notice,
        .user = options->user,
    };
    return wpk_private_open(&private_options, &session->private_service, diag);
}

wpk_err wpk_session_open(const struct wpk_command_context *context,
                         const struct wpk_session_options *options, struct wpk_session *out,
                         struct wpk_diag *diag)
{
    const char *url = options->url;

    WPK_ASSERT(out->http == NULL);
    if (url != NULL && options->data_dir != NULL) {
        wpk_diag_set(diag, "--url and --data exclude each other");
        return WPK_EINVAL;
    }
    if (url == NULL && options->data_dir == NULL && context->url != NULL &&
        context->url[0] != '\0' && options->need != WPK_SESSION_WORKER) {
        url = context->url;
    }
    if (url == NULL) {
        wpk_err err = open_private(context, options, out, diag);
        if (err != WPK_OK) {
            return err;
        }
        url = wpk_private_url(out->private_service);
    }
    return wpk_http_open(url, &out->http, diag);
}

void wpk_session_close(struct wpk_session *session)
{
    if (session != NULL) {
        wpk_http_close(session->http);
        wpk_private_close(session->private_service);
        wpk_buf_fini(&session->data_dir);
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
    return wpk_http_open(wpk_private_url(session->private_service), &session->http, diag);
}

wpk_err wpk_session_ask(struct wpk_session *session, const char *path, const char *body,
                        struct wpk_http_reply *reply, struct wpk_diag *diag)
{
    wpk_err err = wpk_http_ask(session->http, path, body, reply, diag);

    return err != WPK_OK ? err : wpk_api_check(reply, diag);
}

/* As openapi.yaml writes it; anything else could be a path of its own. */
static bool is_job_id(const char *id)
{
    return id[0] == 'j' && strspn(id + 1, "0123456789abcdef") == 16 && id[17] == '\0';
}

wpk_err wpk_session_ask_job(struct wpk_session *session, const char *id, const char *action,
                            struct wpk_arena *arena, struct wpk_http_reply *reply,
                            struct wpk_api_job *out, struct wpk_diag *diag)
{
    char path[64];

    if (!is_job_id(id)) {
        wpk_diag_set(diag, "'%s' is not the id of a job: j and 16 hexadecimal digits", id);
        return WPK_EINVAL;
    }
    snprintf(path, sizeof(path), "/v1/jobs/%s%s", id, action);
    wpk_err err = wpk_session_ask(session, path, action[0] != '\0' ? "" : NULL, reply, diag);
    return err != WPK_OK ? err : wpk_api_decode_job(&reply->body, arena, out, diag);
}
