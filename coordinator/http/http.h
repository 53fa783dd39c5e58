/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP for the API: requests in, responses out. Only http_daemon.c and http_exchange.c know
 * libmicrohttpd.
 *
 *      listeners ──▶ connection ──▶ headers, who, limits ──▶ body ──▶ serve ──▶ connection
 *      └─────────────────────── the server's threads ───────────────┘ │
 *                                                                     └─▶ queue ──▶ the owner's
 *                                                                           next, respond
 *
 * The owner, which opened the server, gets only whole requests of authenticated clients, never ones
 * that are too large, too slow or malformed. Each request is answered once. */
#ifndef WPK_COORDINATOR_HTTP_HTTP_H
#define WPK_COORDINATOR_HTTP_HTTP_H

#include "common/buf.h"
#include "common/net.h"
#include "coordinator/access/auth.h"

#include <stdint.h>
#include <sys/types.h>

#define WPK_HTTP_LISTENERS_MAX 8
#define WPK_HTTP_CONNECTIONS_MAX 2048
#define WPK_HTTP_REQUEST_MS 30000 /* to receive a whole request; also to send its answer */
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
    struct wpk_identity identity; /* the client; each route checks its roles */
    const char *method;
    const char *path;
    struct wpk_http_parameter query[WPK_HTTP_QUERY_MAX];
    uint32_t query_count;
    const char *body; /* NUL-terminated */
    size_t body_size;
    const char *content_type;    /* "" when absent, like the next two */
    const char *if_none_match;   /* for wpk_http_etag_matches() */
    const char *idempotency_key; /* of any length below the headers' limit */
    void *prepared;              /* by `serve`, for the owner; NULL: none */
};

/* The credential that a request needs. */
enum wpk_http_entry {
    WPK_HTTP_ENTRY_TOKEN,  /* a token, or a user of a Unix socket with roles; else 401 */
    WPK_HTTP_ENTRY_COOKIE, /* these, or a cookie (auth.h); else 303 to "sign-in" beside the path */
    WPK_HTTP_ENTRY_OPEN,   /* none: the identity has no roles, except at a Unix socket */
};

/* The answer to a request on its way to the server; it owns its text. */

enum wpk_api_how {
    WPK_API_NOW,   /* the answer is complete */
    WPK_API_LATER, /* an effect of a step, or a store write, will answer */
    WPK_API_QUEUE, /* on the server's threads: the loop has to answer */
};

struct wpk_api_answer {
    enum wpk_api_how how;
    int status;
    const char *content_type;
    char location[64];  /* "" for none */
    char allow[40];     /* the methods, for 405; "" for none */
    char etag[72];      /* with its quotes; "" for none. A GET or HEAD that names it gets 304 */
    const char *policy; /* of a page; NULL: none */
    char cookie[WPK_COOKIE_SIZE]; /* a new value of the cookie; "" for none */
    uint32_t retry_after_s;
    struct wpk_buf body;
    /* A borrowed body instead of `body`, until `release` is called with `owner`; NULL: none. */
    const char *borrowed; /* [borrowed_size], not NUL-terminated */
    size_t borrowed_size;
    void (*release)(void *owner);
    void *owner;
};

/* Release the body alone; or all of the answer, which is zeroed. */
void wpk_api_drop_body(struct wpk_api_answer *answer);
void wpk_api_answer_fini(struct wpk_api_answer *answer);
/* Make the answer a problem document (RFC 9457); `diag` may be NULL. Returns false. */
bool wpk_api_problem(struct wpk_api_answer *answer, int status, wpk_err err,
                     const struct wpk_diag *diag);

/* A user of this machine that may use the Unix sockets, besides this process's user and root. */
#define WPK_HTTP_OTHERS ((uid_t)-1) /* every user that is not listed */
struct wpk_http_peer {
    uid_t uid;
    unsigned roles; /* 0: the user has to show a token */
};

struct wpk_http_options {
    const struct wpk_listen *listeners;
    uint32_t listener_count; /* 1 to WPK_HTTP_LISTENERS_MAX */
    /* TCP always needs a token. On a Unix socket this process's user and root have all roles, and
     * `peers` have theirs; a token that is shown there replaces the user. */
    struct wpk_auth *auth; /* NULL: no TCP */
    const struct wpk_http_peer *peers;
    uint32_t peer_count;
    /* Names that a request's Host may have; on loopback also localhost, 127.0.0.1 and [::1]. 0: any
     * name, except on loopback without TLS, because a web page could have its own name resolved to
     * this machine. */
    const char *const *hosts;
    uint32_t host_count;
    uint32_t connections_max;      /* at most WPK_HTTP_CONNECTIONS_MAX, which 0 means */
    uint32_t of_one_max;           /* of one address or user; 0: half of all */
    const struct wpk_clock *clock; /* for deadlines and expiry; NULL: the machine's */
    /* The credential that a request needs. NULL: all need a token. */
    enum wpk_http_entry (*entry)(const char *method, const char *path);
    /* The largest body of a request in bytes; called before the body is read. */
    size_t (*body_max)(const char *method, const char *path);
    /* Answer on a thread of the server, beside other threads, or return false to queue the request
     * for the owner. Then `owner` of the answer, if set, becomes the request's `prepared`, and is
     * released with the request. NULL: all requests are queued. */
    bool (*serve)(void *user, const struct wpk_http_request *request,
                  struct wpk_api_answer *answer);
    void *serve_user;
    /* Called on a thread of the server when a credential, or a user of a Unix socket, was refused:
     * at most WPK_HTTP_REFUSALS_MAX times a second. `untold`: refusals since the last call that had
     * no call. May be NULL. */
    void (*refused)(void *user, const char *peer, const char *reason, uint64_t untold);
    /* Called on the server's threads when a request was queued; it may only wake a loop. */
    void (*wake)(void *user);
    void *user;
};

#define WPK_HTTP_REFUSALS_MAX 8

/*   owns    caller closes; `options` and what it points to are copied, except `auth`. The
 *           server takes the descriptors of `listeners`, on failure too.
 *   errors  WPK_EINVAL not an address, one that needs TLS, or a file at the path; WPK_EBUSY in
 *           use; WPK_EACCES; WPK_ERANGE path too long; WPK_ENOENT, WPK_EPARSE certificate or key;
 *           WPK_EUNSUPPORTED a libmicrohttpd that fails wpk_http_daemon_check(); WPK_ENOMEM,
 *           WPK_ESYSTEM
 */
wpk_err wpk_http_server_open(const struct wpk_http_options *options, struct wpk_http_server **out,
                             struct wpk_diag *diag);
/* Close the server; requests that were not answered get 503. Accepts NULL. */
void wpk_http_server_close(struct wpk_http_server *server);

/* Take peers and hosts of `options`, and read certificates again. New connections get the new
 * certificates, open connections keep theirs. A failure changes nothing.
 *
 *   errors  WPK_ENOENT, WPK_EPARSE  certificate or key; WPK_EINVAL other listeners; WPK_EBUSY too
 *           many connections still have older certificates; WPK_ERANGE, WPK_ENOMEM, WPK_ESYSTEM
 */
wpk_err wpk_http_server_reload(struct wpk_http_server *server,
                               const struct wpk_http_options *options, struct wpk_diag *diag);

/* Check that these PEM files hold a certificate and its key. For the workers' port: NNG accepts any
 * two files, and then fails each handshake.
 *
 *   errors  WPK_ENOENT, WPK_EPARSE with what is wrong; WPK_ERANGE, WPK_ENOMEM, WPK_ESYSTEM
 */
wpk_err wpk_http_check_certificate(const char *certificate, const char *key, struct wpk_diag *diag);

/* Take the next request from the queue; false: none. It is valid until it is answered. */
WPK_MUST_CHECK bool wpk_http_server_next(struct wpk_http_server *server,
                                         struct wpk_http_request *out);
/* The value of a parameter; NULL when it is absent. */
const char *wpk_http_query(const struct wpk_http_request *request, const char *name);
/* True if `etag` is in an If-None-Match; weak and strong etags compare equal. */
bool wpk_http_etag_matches(const char *if_none_match, const char *etag);
/* Answer a request, and take the answer's body; finish the answer afterwards. */
void wpk_http_server_respond(struct wpk_http_server *server, uint64_t id,
                             struct wpk_api_answer *answer);

#endif
