/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests to a wpkd, one at a time. http.c is the only file that knows libcurl. */
#ifndef WPK_CLIENT_HTTP_H
#define WPK_CLIENT_HTTP_H

#include "common/buf.h"

#define WPK_HTTP_REPLY_MAX ((size_t)64 << 20) /* bytes of an answer */
#define WPK_HTTP_URL_MAX 512
#define WPK_HTTP_TOKEN_MAX 512 /* bytes */

struct wpk_http;

struct wpk_http_reply {
    int status;          /* 200, 404, ... */
    bool reached;        /* the connection was accepted, so the request may have been read */
    struct wpk_buf body; /* owned by the reply's holder, as is the next */
    struct wpk_buf page_headers; /* lines that a browser needs, if the request asked for them */
};

struct wpk_http_client_options {
    const char
        *url; /* "unix:/path/to/socket", "http://host:port" or "https://host:port"; or several
                          with commas between them: the first that answers */
    const char *token; /* sent with every request; NULL or "": none */
    const char *ca;    /* PEM file of authorities that https certificates must come from; NULL or
                          "": the system's */
    bool insecure;     /* the token may go over http:// to another machine */
};

/* Make a client. The first request connects.
 *
 *   owns    caller closes; `options` is copied
 *   errors  WPK_EINVAL the URL is malformed, or the token would go in clear to another machine;
 *           WPK_ENOMEM
 */
wpk_err wpk_http_open(const struct wpk_http_client_options *options, struct wpk_http **out,
                      struct wpk_diag *diag);
void wpk_http_close(struct wpk_http *http);

struct wpk_http_client_request {
    const char *path;
    const char *body;          /* JSON to POST; NULL: none */
    const char *method;        /* NULL: POST with a body, else GET */
    const char *if_none_match; /* NULL or "": none */
    bool wants_page_headers;
    const char *idempotency_key; /* wpkd performs POSTs of the same key once; NULL: none */
};

/* Send a request and wait for the whole answer. Redirections are not followed. A server that does
 * not answer is left for the next of several, for this request too if it may be repeated.
 *
 *   owns    caller calls wpk_http_reply_fini, after failures too
 *   errors  WPK_ECLOSED   nothing listens there, or the connection broke
 *           WPK_ETIMEDOUT after 30 s
 *           WPK_ENOSPC    the answer is longer than WPK_HTTP_REPLY_MAX
 *           WPK_EACCES    the certificate is not trusted, or a Unix socket refuses this user
 *           WPK_EIO       every other failure of libcurl
 *           an HTTP status is not an error here: see reply->status
 */
wpk_err wpk_http_send(struct wpk_http *http, const struct wpk_http_client_request *request,
                      struct wpk_http_reply *reply, struct wpk_diag *diag);
void wpk_http_reply_fini(struct wpk_http_reply *reply);

/* Append `text`, percent-encoded, to a query or path. */
void wpk_http_escape(const char *text, struct wpk_buf *out);

#endif
