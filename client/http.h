/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a wpkd, one at a time. The only file that knows libcurl is http.c. */
#ifndef WPK_CLIENT_HTTP_H
#define WPK_CLIENT_HTTP_H

#include "common/buf.h"

#define WPK_HTTP_REPLY_MAX ((size_t)64 << 20) /* bytes kept of an answer in memory */
#define WPK_HTTP_URL_MAX 512
#define WPK_HTTP_TOKEN_MAX 512 /* bytes */

struct wpk_http;

struct wpk_http_reply {
    int status;          /* 200, 404, ... */
    bool reached;        /* somebody accepted the connection: the request may have been read */
    struct wpk_buf body; /* owned by the reply's holder */
};

struct wpk_http_options {
    const char *url;   /* "unix:/path/to/socket", "http://host:port" or "https://host:port" */
    const char *token; /* shown with every request; NULL or "": none */
    const char *ca;    /* PEM file that https certificates must go back to; NULL or "": the
                          system's */
    bool insecure;     /* the token may go over http:// to another machine */
};

/* Prepare to talk. Nothing is connected yet.
 *
 *   owns    caller closes; `options` is copied
 *   errors  WPK_EINVAL not such a URL, or a token would go in clear to another machine; WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_http_open(const struct wpk_http_options *options, struct wpk_http **out,
                                     struct wpk_diag *diag);
void wpk_http_close(struct wpk_http *http);

struct wpk_http_request {
    const char *path;
    const char *body;            /* JSON to POST; NULL: none */
    const char *method;          /* NULL: POST with a body, else GET */
    const char *idempotency_key; /* of a POST: sent again with the same, it is done once; or NULL */
};

/* Send, and wait for the whole answer. Redirections are not followed.
 *
 *   owns    caller calls wpk_http_reply_fini, after failures too
 *   errors  WPK_ECLOSED   nobody listens there, or the connection broke
 *           WPK_ETIMEDOUT after 30 s
 *           WPK_ENOSPC    the answer is longer than WPK_HTTP_REPLY_MAX
 *           WPK_EACCES    its certificate is not one to trust; a Unix socket: it does not know us
 *           WPK_EIO
 *           an HTTP status is not an error here: see reply->status
 */
WPK_MUST_CHECK wpk_err wpk_http_send(struct wpk_http *http, const struct wpk_http_request *request,
                                     struct wpk_http_reply *reply, struct wpk_diag *diag);
void wpk_http_reply_fini(struct wpk_http_reply *reply);

/* Append `text`, percent-encoded, to a query or path. */
void wpk_http_escape(const char *text, struct wpk_buf *out);

#endif
