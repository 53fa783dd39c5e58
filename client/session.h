/* SPDX-License-Identifier: Apache-2.0 */
/* The wpkd that a command talks to: a named one, or a private one over the user's history. */
#ifndef WPK_CLIENT_SESSION_H
#define WPK_CLIENT_SESSION_H

#include "client/api.h"
#include "client/command.h"
#include "client/http.h"
#include "client/private.h"

/* What a command does when no wpkd runs over its data directory. */
enum wpk_session_need {
    WPK_SESSION_RUNNING, /* fail */
    WPK_SESSION_HISTORY, /* start one, to look things up */
    WPK_SESSION_WORKER,  /* start one, and a worker */
};

struct wpk_session_options {
    const char *url;      /* --url; NULL: see context */
    const char *data_dir; /* --data; NULL: the default, unless a URL is known */
    enum wpk_session_need need;
    void (*notice)(const char *text, void *user); /* may be NULL */
    void *user;
};

/* `= {0}` is a closed session. */
struct wpk_session {
    struct wpk_http *http;
    struct wpk_private *private_service; /* NULL when a URL was given */
    struct wpk_buf data_dir;             /* empty when a URL was given */
};

/* The two options that every command has. */
#define WPK_SESSION_OPTION_ROWS(url_out, data_out)                                                 \
    {"url",           0,       "URL", "wpkd: unix:PATH, http://HOST:PORT; default $WPK_URL",       \
     WPK_OPTION_TEXT, url_out, 0,     0},                                                          \
    {                                                                                              \
        "data", 0, "DIR", "private history; default ~/.local/share/woodpecker", WPK_OPTION_TEXT,   \
            data_out, 0, 0                                                                         \
    }

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

/* Ask for a job and decode it; the reply's bytes are kept for --json.
 *   `id` is checked: WPK_EINVAL if it can be none. `action` is "" or ":cancel", which POSTs. */
WPK_MUST_CHECK wpk_err wpk_session_ask_job(struct wpk_session *session, const char *id,
                                           const char *action, struct wpk_arena *arena,
                                           struct wpk_http_reply *reply, struct wpk_api_job *out,
                                           struct wpk_diag *diag);

#endif
