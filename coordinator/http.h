/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP for the API: requests in, responses out. The only file that knows libmicrohttpd is http.c.
 *
 *      connection ──▶ headers, limits ──▶ body ──▶ queue ──▶ next ... respond ──▶ connection
 *      └─────────── the library's threads ───────────┘       └── the owner's thread ──┘
 *
 * A request is read whole before the owner sees it; what is too large, too slow or malformed never
 * gets there. Each request is answered once. */
#ifndef WPK_COORDINATOR_HTTP_H
#define WPK_COORDINATOR_HTTP_H

#include "common/err.h"

#include <stdint.h>

#define WPK_HTTP_CONNECTIONS_MAX 512
#define WPK_HTTP_REQUEST_MS 30000 /* for all of a request to come; again, for its answer to leave */
#define WPK_HTTP_IDLE_MS 60000    /* a connection without a request */
#define WPK_HTTP_QUERY_MAX 16     /* parameters of a request */

struct wpk_http_server;

struct wpk_http_parameter {
    const char *name;
    const char *value;
};

struct wpk_http_request {
    uint64_t id;
    const char *method;
    const char *path;
    struct wpk_http_parameter query[WPK_HTTP_QUERY_MAX];
    uint32_t query_count;
    const char *body; /* NUL-terminated */
    size_t body_size;
    const char *content_type; /* "" when there is none */
};

struct wpk_http_response {
    int status;
    const char *content_type;
    const char *location; /* NULL: none */
    const char *allow;    /* NULL: none; the methods, for 405 */
    const char *body;
    size_t body_size;
};

struct wpk_http_options {
    /* unix:PATH (the socket gets mode 0600, and only this user and root may talk to it), or
     * HOST:PORT where HOST is 127.0.0.1 or [::1] */
    const char *address;
    /* How large the body of such a request may be; it is asked before the body is read. */
    size_t (*body_max)(const char *method, const char *path);
    /* Called on the library's threads when there is a request: may only wake a loop. */
    void (*wake)(void *user);
    void *user;
};

/*   owns    caller closes; `options` is copied
 *   errors  WPK_EINVAL not such an address; WPK_EBUSY in use; WPK_EACCES; WPK_ERANGE path too long;
 *           WPK_ENOMEM, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_http_server_open(const struct wpk_http_options *options,
                                            struct wpk_http_server **out, struct wpk_diag *diag);
/* Requests that were not answered get 503. Accepts NULL. */
void wpk_http_server_close(struct wpk_http_server *server);

/* The next request; false when there is none. It lives until it is answered. */
WPK_MUST_CHECK bool wpk_http_server_next(struct wpk_http_server *server,
                                         struct wpk_http_request *out);
/* The value of a parameter; NULL when it is absent. */
const char *wpk_http_query(const struct wpk_http_request *request, const char *name);
/* Answer; copies `response`. Does nothing when the request is not there any more. */
void wpk_http_server_respond(struct wpk_http_server *server, uint64_t id,
                             const struct wpk_http_response *response);

/* End the connections that are too slow. To be called every second or so. */
void wpk_http_server_expire(struct wpk_http_server *server, uint64_t now_ns);

#endif
