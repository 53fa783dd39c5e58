/* SPDX-License-Identifier: Apache-2.0 */
/* The wpkd that a command talks to: a named server, or a private wpkd over the user's history. */
#ifndef WPK_CLIENT_SESSION_H
#define WPK_CLIENT_SESSION_H

#include "client/command.h"
#include "client/http.h"
#include "client/private.h"
#include "schema/answer.h"

/* The wpkd that a command talks to, our token and the CA. Each of the three comes from the command
 * line, else from the environment, else from $XDG_CONFIG_HOME/woodpecker/wpkctl.json (by default
 * ~/.config/woodpecker/wpkctl.json):
 *
 *     { "server": "https://tuner.example:7443",
 *       "token_file": "/home/me/.config/woodpecker/token",
 *       "ca": "/etc/ssl/our-ca.pem" }
 *
 * Every member may be missing. The file's token and CA are used with the file's server only, so
 * that a server named on the command line does not get the secret. */

#define WPK_SERVER_ACCESS_PATH_MAX 4096

/* Options of the command line; NULL: not given. */
struct wpk_server_access_given {
    const char *server;
    const char *token_file;
    const char *ca;
    bool insecure;
};

/* The result. A text that was given nowhere is "". */
struct wpk_server_access {
    char server[WPK_HTTP_URL_MAX];
    char token[WPK_HTTP_TOKEN_MAX + 1];
    char ca[WPK_SERVER_ACCESS_PATH_MAX];
    bool insecure; /* the token may go over http:// to another machine; an option only */
};

/* Merge command line, environment and file.
 *
 *   errors  WPK_EINVAL, WPK_EPARSE, WPK_ERANGE the file or the token is malformed, or the token's
 *           file was named and is missing; WPK_EACCES, WPK_EIO one of them cannot be read */
wpk_err wpk_server_access_find(const struct wpk_command_context *context,
                               const struct wpk_server_access_given *given,
                               struct wpk_server_access *out, struct wpk_diag *diag);

/* The action of a command when no wpkd runs over its data directory. */
enum wpk_session_need {
    WPK_SESSION_RUNNING, /* fail */
    WPK_SESSION_HISTORY, /* start one, to look things up; WPK_ENOENT if there is no history */
    WPK_SESSION_CHANGE,  /* start one, to change something; a history is made if there is none */
    WPK_SESSION_WORKER,  /* start a wpkd and a worker, unless --server names one; not $WPK_URL's */
};

struct wpk_session_options {
    struct wpk_server_access_given given; /* --server, --token-file, --ca, --insecure */
    const char *data_dir;                 /* --data; NULL: the default, unless a server was named */
    enum wpk_session_need need;
    const char *gpu;                              /* that a worker of ours serves; NULL: the CPU */
    void (*notice)(const char *text, void *user); /* may be NULL */
    void *user;
};

/* `= {0}` is a closed session. */
struct wpk_session {
    struct wpk_http *http;
    struct wpk_server_access access;
    struct wpk_private *private_service; /* NULL when a server was named */
    struct wpk_buf data_dir;             /* empty when a server was named */
};

/* Rows of the options of every command that talks to a wpkd. `options` is a struct
 * wpk_session_options. */
#define WPK_SESSION_OPTION_ROWS(options)                                                           \
    WPK_ARGS_TEXT("server", "URL",                                                                 \
                  "wpkd: unix:PATH, http://HOST:PORT, https://..., or several with commas; "       \
                  "default $WPK_URL",                                                              \
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

/* Open a session with the named server, or with a private wpkd.
 *   owns    caller closes, after failures too; strings of `options` are borrowed
 *   errors  those of wpk_server_access_find, wpk_private_open, wpk_http_open and wpk_fs_data_dir */
wpk_err wpk_session_open(const struct wpk_command_context *context,
                         const struct wpk_session_options *options, struct wpk_session *out,
                         struct wpk_diag *diag);
void wpk_session_close(struct wpk_session *session);

/* Tend the private service, if there is one; see wpk_private_tend. */
wpk_err wpk_session_tend(struct wpk_session *session, struct wpk_diag *diag);

/* Send a GET, or a POST if `body` is not NULL. WPK_OK means a 2xx answer in `reply`.
 *   owns    caller calls wpk_http_reply_fini, after failures too
 *   errors  those of wpk_http_send and wpk_api_check */
wpk_err wpk_session_ask(struct wpk_session *session, const char *path, const char *body,
                        struct wpk_http_reply *reply, struct wpk_diag *diag);

/* Submit a job exactly once. After a broken connection, or an answer that wpkd is ending, try again
 * for the time of client/follow.h. If nothing listens at a named server, fail at once.
 *   owns, errors  as wpk_session_ask */
wpk_err wpk_session_submit(struct wpk_session *session, const char *job,
                           struct wpk_http_reply *reply, struct wpk_diag *diag);

/* Submit a job, and print its id; `json`: the answer. */
WPK_MUST_CHECK wpk_err wpk_session_submit_shown(struct wpk_session *session, const char *text,
                                                bool json, struct wpk_diag *diag);

/* True if the text is a job's id as openapi.yaml defines it; other text could change the path. */
bool wpk_session_is_job_id(const char *id, struct wpk_diag *diag);

/* Ask for a job and decode it. `reply` keeps the bytes for --json. `action` is "", which is a GET,
 * or a suffix such as ":cancel", which is a POST.
 *   errors  WPK_EINVAL `id` is not a job's id; those of wpk_session_ask and wpk_api_decode_job */
wpk_err wpk_session_ask_job(struct wpk_session *session, const char *id, const char *action,
                            struct wpk_arena *arena, struct wpk_http_reply *reply,
                            struct wpk_api_job *out, struct wpk_diag *diag);

/* Fetches a list of wpkd with all its pages. */
/* Append {"<key>": [every item of every page]} to `out`.
 *
 *   query   "" or "name=value", already percent-encoded
 *   max     stop after so many items, at most WPK_API_LIST_MAX
 *   errors  those of wpk_session_ask; WPK_EPARSE not a list
 */
wpk_err wpk_list_fetch(struct wpk_session *session, const char *path, const char *query,
                       const char *key, int max, struct wpk_buf *out, struct wpk_diag *diag);

/* Read a list, of "kernels", "jobs" or "workers": the newest `max` items, newest first.
 *   errors  those of wpk_list_fetch and wpk_api_decode_list; then *out is empty */
wpk_err wpk_list_read(struct wpk_session *session, const char *key, const char *query, int max,
                      struct wpk_arena *arena, struct wpk_api_list *out, struct wpk_diag *diag);
/* True if the worker is of a kind of device, and ready. */
bool wpk_list_is_ready(const struct wpk_api_worker *worker, const char *kind);

#endif
