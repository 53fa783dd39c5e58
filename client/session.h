/* SPDX-License-Identifier: Apache-2.0 */
/* The wpkd that a command talks to: a named one, or a private one over the user's history. */
#ifndef WPK_CLIENT_SESSION_H
#define WPK_CLIENT_SESSION_H

#include "client/access.h"
#include "client/api.h"
#include "client/command.h"
#include "client/http.h"
#include "client/private.h"

/* What a command does when no wpkd runs over its data directory. */
enum wpk_session_need {
    WPK_SESSION_RUNNING, /* fail */
    WPK_SESSION_HISTORY, /* start one, to look things up; WPK_ENOENT where there is no history */
    WPK_SESSION_CHANGE,  /* start one, to change something; a history is made if there is none */
    WPK_SESSION_WORKER,  /* start one, and a worker */
};

struct wpk_session_options {
    struct wpk_access_given given; /* --server, --token-file, --ca, --insecure */
    const char *data_dir;          /* --data; NULL: the default, unless a server is known */
    enum wpk_session_need need;
    void (*notice)(const char *text, void *user); /* may be NULL */
    void *user;
};

/* `= {0}` is a closed session. */
struct wpk_session {
    struct wpk_http *http;
    struct wpk_access access;
    struct wpk_private *private_service; /* NULL when a server was named */
    struct wpk_buf data_dir;             /* empty when a server was named */
};

/* The options that every command has which talks to a wpkd; `options` is the name of its struct
 * wpk_session_options. */
#define WPK_SESSION_OPTION_ROWS(options)                                                           \
    WPK_ARGS_TEXT("server", "URL",                                                                 \
                  "wpkd: unix:PATH, http://HOST:PORT, https://...; default $WPK_URL",              \
                  &(options).given.server),                                                        \
        WPK_ARGS_TEXT("token-file", "FILE", "file with our token; default $WPK_TOKEN_FILE",        \
                      &(options).given.token_file),                                                \
        WPK_ARGS_TEXT("ca", "FILE",                                                                \
                      "certificates to trust, PEM; default $WPK_CA, else the system's",            \
                      &(options).given.ca),                                                        \
        WPK_ARGS_FLAG("insecure", "show the token over http:// to another machine, too",           \
                      &(options).given.insecure),                                                  \
        WPK_ARGS_TEXT("data", "DIR", "private history; default ~/.local/share/woodpecker",         \
                      &(options).data_dir)

/*   owns    caller closes, after failures too; strings of `options` are borrowed
 *   errors  of wpk_private_open, wpk_http_open, wpk_fs_data_dir */
WPK_MUST_CHECK wpk_err wpk_session_open(const struct wpk_command_context *context,
                                        const struct wpk_session_options *options,
                                        struct wpk_session *out, struct wpk_diag *diag);
void wpk_session_close(struct wpk_session *session);

/* Look after a private service, if there is one; see wpk_private_tend. */
WPK_MUST_CHECK wpk_err wpk_session_tend(struct wpk_session *session, struct wpk_diag *diag);

/* Ask and check: WPK_OK means a 2xx answer in `reply`.
 *   owns    caller calls wpk_http_reply_fini, after failures too */
WPK_MUST_CHECK wpk_err wpk_session_ask(struct wpk_session *session, const char *path,
                                       const char *body, struct wpk_http_reply *reply,
                                       struct wpk_diag *diag);

/* Hand in a job, once, however often it has to be tried: a connection that broke and a wpkd that
 * is going away are followed by another try for a while. Where nobody listens it fails at once,
 * unless the service is our own.
 *   owns    as wpk_session_ask */
WPK_MUST_CHECK wpk_err wpk_session_submit(struct wpk_session *session, const char *job,
                                          struct wpk_http_reply *reply, struct wpk_diag *diag);

/* Is it the id of a job, as openapi.yaml writes it? Anything else could be a path of its own. */
bool wpk_session_is_job_id(const char *id, struct wpk_diag *diag);

/* Ask for a job and decode it; the reply's bytes are kept for --json.
 *   `id` is checked: WPK_EINVAL if it can be none. `action` is "" or ":cancel", which POSTs. */
WPK_MUST_CHECK wpk_err wpk_session_ask_job(struct wpk_session *session, const char *id,
                                           const char *action, struct wpk_arena *arena,
                                           struct wpk_http_reply *reply, struct wpk_api_job *out,
                                           struct wpk_diag *diag);

#endif
