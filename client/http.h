/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a wpkd, one at a time. The only file that knows libcurl is http.c. */
#ifndef WPK_CLIENT_HTTP_H
#define WPK_CLIENT_HTTP_H

#include "common/buf.h"

#define WPK_HTTP_REPLY_MAX ((size_t)64 << 20)     /* bytes kept of an answer in memory */
#define WPK_HTTP_ARTIFACT_MAX ((size_t)256 << 20) /* bytes of a downloaded kernel */
#define WPK_HTTP_URL_MAX 512

struct wpk_http;

struct wpk_http_reply {
    int status;          /* 200, 404, ... */
    struct wpk_buf body; /* owned by the reply's holder */
};

/* Prepare to talk to `url`: "unix:/path/to/socket", "http://host:port" or "https://host:port".
 * Nothing is connected yet.
 *
 *   owns    caller closes
 *   errors  WPK_EINVAL not such a URL; WPK_ENOMEM
 */
WPK_MUST_CHECK wpk_err wpk_http_open(const char *url, struct wpk_http **out, struct wpk_diag *diag);
void wpk_http_close(struct wpk_http *http);

/* Ask, and wait for the whole answer. `body` NULL means GET, else a POST of JSON.
 *
 *   owns    caller calls wpk_http_reply_fini, after failures too
 *   errors  WPK_ECLOSED   nobody listens there, or the connection broke
 *           WPK_ETIMEDOUT after 30 s
 *           WPK_ENOSPC    the answer is longer than WPK_HTTP_REPLY_MAX
 *           WPK_EIO
 *           an HTTP status is not an error here: see reply->status
 */
WPK_MUST_CHECK wpk_err wpk_http_ask(struct wpk_http *http, const char *path, const char *body,
                                    struct wpk_http_reply *reply, struct wpk_diag *diag);
void wpk_http_reply_fini(struct wpk_http_reply *reply);

/* Append `text`, percent-encoded, to a query or path. */
void wpk_http_escape(const char *text, struct wpk_buf *out);

#endif
