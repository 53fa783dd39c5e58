/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP for the API: requests in, responses out. Only http_daemon.c and http_exchange.c know
 * libmicrohttpd.
 *
 *      listeners ──▶ connection ──▶ headers, who, limits ──▶ body ──▶ serve ──▶ connection
 *      └─────────────────────── the server's threads ───────────────┘ │
 *                                                                     └─▶ queue ──▶ the owner's
 *                                                                           next, respond
 *
 * A request is read whole before anybody sees it, and whoever sent it is known; what is too large,
 * too slow, malformed, or from nobody known never gets that far. Each request is answered once. */
#ifndef WPK_COORDINATOR_HTTP_HTTP_H
#define WPK_COORDINATOR_HTTP_HTTP_H

#include "common/err.h"
#include "coordinator/access/auth.h"

#include <stdint.h>
#include <sys/types.h>

#define WPK_HTTP_LISTENERS_MAX 8
#define WPK_HTTP_CONNECTIONS_MAX 2048
#define WPK_HTTP_REQUEST_MS 30000 /* for all of a request to come; again, for its answer to leave */
#define WPK_HTTP_IDLE_MS 60000    /* a connection without a request */
#define WPK_HTTP_QUERY_MAX 16     /* parameters of a request */
#define WPK_HTTP_HOSTS_MAX 16
#define WPK_HTTP_PEERS_MAX 64

struct wpk_clock;
struct wpk_http_server;

struct wpk_http_parameter {
    const char *name;
    const char *value;
};

struct wpk_http_request {
    uint64_t id;
    struct wpk_identity identity; /* who asks; what he may do is for the route to check */
    const char *method;
    const char *path;
    struct wpk_http_parameter query[WPK_HTTP_QUERY_MAX];
    uint32_t query_count;
    const char *body; /* NUL-terminated */
    size_t body_size;
    const char *content_type;    /* this and the following: "" when there is none */
    const char *if_none_match;   /* for wpk_http_etag_matches() */
    const char *idempotency_key; /* as it was sent, of any length below the headers' limit */
    void *prepared; /* by `serve`, for the owner; NULL: nothing */
};

struct wpk_http_response {
    int status;
    const char *content_type;
    const char *location;   /* NULL: none */
    const char *allow;      /* NULL: none; the methods, for 405 */
    const char *etag;       /* NULL: none; with its quotes. A GET that names it gets 304, no body */
    uint32_t retry_after_s; /* 0: none */
    const char *body;
    size_t body_size;
    /* NULL: `body` is copied, as all the rest is. Otherwise `body` is borrowed until this is called
     * with `owner`: once, on any thread, whatever becomes of the response. */
    void (*release)(void *owner);
    void *owner;
};

struct wpk_http_listen {
    /* unix:PATH, or HOST:PORT where HOST is an address, IPv6 in brackets; port 0: any free one. */
    const char *address;
    int fd; /* -1, or a socket that listens already: it is taken, `address` is for messages */
    const char *certificate; /* PEM files; NULL: no TLS */
    const char *key;
    bool insecure; /* without TLS though it is reachable from elsewhere */
    unsigned mode; /* of a Unix socket's file; 0: 0600 */
};

/* Another user of this machine whom the Unix sockets let in. */
#define WPK_HTTP_OTHERS ((uid_t)-1) /* every one who is not listed himself */
struct wpk_http_peer {
    uid_t uid;
    unsigned roles; /* 0: he has to show a token */
};

struct wpk_http_options {
    const struct wpk_http_listen *listeners;
    uint32_t listener_count; /* 1 to WPK_HTTP_LISTENERS_MAX */
    /* Tokens, which TCP always needs. A Unix socket needs none from this user, from root (both may
     * everything) and from `peers`; a token that is shown there counts instead of the user. */
    struct wpk_auth *auth; /* NULL: there can be no TCP */
    const struct wpk_http_peer *peers;
    uint32_t peer_count;
    /* Names by which clients may call this host; besides, on loopback: localhost, 127.0.0.1 and
     * [::1]. 0: whatever they like, except on loopback without TLS: there a page in a browser could
     * have its own name resolved to this machine. */
    const char *const *hosts;
    uint32_t host_count;
    uint32_t connections_max; /* in all; 0: WPK_HTTP_CONNECTIONS_MAX, which is the most */
    uint32_t of_one_max;      /* of one address, or user; 0: half of all */
    const struct wpk_clock *clock; /* for deadlines and expiry; NULL: the machine's */
    /* How large the body of such a request may be; it is asked before the body is read. */
    size_t (*body_max)(const char *method, const char *path);
    /* Answer at once, on a thread of the server, beside others that do the same; or return false:
     * then the request is queued for the owner. What it has done of it already may be `owner` of
     * the response: it is `prepared` then, and released with the request. NULL: all are queued. */
    bool (*serve)(void *user, const struct wpk_http_request *request,
                  struct wpk_http_response *response);
    void *serve_user;
    /* Told of credentials that were refused, and of users at a Unix socket, on a thread of the
     * server, and how many since the last time were not worth a call of their own: at most
     * WPK_HTTP_REFUSALS_MAX a second are told. NULL: nobody. */
    void (*refused)(void *user, const char *peer, const char *reason, uint64_t untold);
    /* Called on the server's threads when a request was queued: may only wake a loop. */
    void (*wake)(void *user);
    void *user;
};

#define WPK_HTTP_REFUSALS_MAX 8

/*   owns    caller closes; `options` and what it points to are copied, except `auth`. Descriptors
 *           of `listeners` are the server's from here on, on failure too.
 *   errors  WPK_EINVAL not such an address, one that needs TLS, or a file lies there; WPK_EBUSY in
 *           use; WPK_EACCES; WPK_ERANGE path too long; WPK_ENOENT, WPK_EPARSE certificate or key;
 *           WPK_EUNSUPPORTED a libmicrohttpd whose strictness cannot be seen; WPK_ENOMEM,
 *           WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_http_server_open(const struct wpk_http_options *options,
                                            struct wpk_http_server **out, struct wpk_diag *diag);
/* Requests that were not answered get 503. Accepts NULL. */
void wpk_http_server_close(struct wpk_http_server *server);

/* Take peers and hosts of `options`, and read certificates again: connections made from now on get
 * the new ones, those that are there stay. On failure everything is as before.
 *
 *   errors  WPK_ENOENT, WPK_EPARSE  certificate or key; WPK_EINVAL other listeners; WPK_EBUSY too
 *           many connections still have older certificates; WPK_ERANGE, WPK_ENOMEM, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_http_server_reload(struct wpk_http_server *server,
                                              const struct wpk_http_options *options,
                                              struct wpk_diag *diag);

/* Do these PEM files hold a certificate and the key that belongs to it? For other ports: NNG takes
 * any two, and then fails with everybody who connects.
 *
 *   errors  WPK_ENOENT, WPK_EPARSE with what is wrong; WPK_ERANGE, WPK_ENOMEM, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_http_check_certificate(const char *certificate, const char *key,
                                                  struct wpk_diag *diag);

/* The port of a listener; 0 when it is a Unix socket. */
uint16_t wpk_http_server_port(const struct wpk_http_server *server, uint32_t listener);

/* The next request of the queue; false when there is none. It lives until it is answered. */
WPK_MUST_CHECK bool wpk_http_server_next(struct wpk_http_server *server,
                                         struct wpk_http_request *out);
/* The value of a parameter; NULL when it is absent. */
const char *wpk_http_query(const struct wpk_http_request *request, const char *name);
/* Is `etag` among those of an If-None-Match? Weak and strong ones are not told apart. */
bool wpk_http_etag_matches(const char *if_none_match, const char *etag);
/* Answer. When the request is not there any more, only `release` is called. */
void wpk_http_server_respond(struct wpk_http_server *server, uint64_t id,
                             const struct wpk_http_response *response);

#endif
