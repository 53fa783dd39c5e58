/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a server: its daemons, connections and requests. Only its files include this.
 * Each calls only those before it: http_exchange.c (one connection, threads for large requests),
 * http_daemon.c (the library's side), http_server.c (the life of a server). */
#ifndef WPK_COORDINATOR_HTTP_HTTP_PARTS_H
#define WPK_COORDINATOR_HTTP_HTTP_PARTS_H

#include "common/admission.h"
#include "common/clock.h"
#include "coordinator/http/http.h"
#include "coordinator/http/http_acceptor.h"
#include "coordinator/http/http_policy.h"

#include <pthread.h>

#define WPK_HTTP_DAEMONS_MAX 16
#define WPK_HTTP_NUMBER_BITS 16 /* of a request's id: its connection's number */
/* Bytes of a body that is served on a reader's thread. At most two readers serve long requests; the
 * others answer further long requests with 503 (api_front.h). A lookup of a near shape has 150
 * bytes and takes some milliseconds. */
#define WPK_HTTP_LARGE ((size_t)4 << 10)
#define WPK_HTTP_READERS 4
#define WPK_HTTP_HELD_MAX ((size_t)128 << 20) /* bytes of large bodies, of requests and answers */
#define WPK_HTTP_SMALL_MAX 65536              /* bytes; smaller bodies are not counted */

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_Response;

enum wpk_http_exchange_state {
    WPK_HTTP_EXCHANGE_NEW,
    WPK_HTTP_EXCHANGE_READING,
    WPK_HTTP_EXCHANGE_QUEUED,   /* suspended; in the queue, or with the owner */
    WPK_HTTP_EXCHANGE_ANSWERED, /* has a response */
};

/* A daemon of the library, with its connections. The server's lock guards it. */
struct wpk_http_daemon {
    struct MHD_Daemon *handle; /* NULL: free */
    uint32_t connection_count;
    bool retired; /* gets no new connection; its connections end with their next answer */
};

/* One connection and its request. It belongs to the daemon's thread, except while it is QUEUED. */
struct wpk_http_exchange {
    struct wpk_http_server *server;
    uint32_t number; /* of the connection, for the admission */
    int fd;
    uint32_t listener;
    struct wpk_http_daemon *daemon;
    struct wpk_identity local; /* the user of a Unix socket; else only the peer */
    struct MHD_Connection *connection;
    const char *target; /* in the library's buffer, which decodes it in place */
    size_t target_size; /* as it was sent */
    const char *target_fault;
    struct wpk_http_request request; /* borrows from the library, except `body` */
    char *body;
    size_t body_room;
    void (*release)(void *prepared); /* NULL: nothing to release */
    size_t held;                     /* bytes of its bodies that the server counts */
    enum wpk_http_exchange_state state;
    struct MHD_Response *response;
    int status;
    uint64_t whole_ns;              /* when the request was whole */
    struct wpk_http_exchange *next; /* in the queue; guarded by the lock */
};

/* Threads that serve large requests in order of arrival. */
struct wpk_http_readers {
    pthread_t threads[WPK_HTTP_READERS]; /* [count] */
    uint32_t count;
    pthread_mutex_t lock; /* guards what follows; taken last */
    pthread_cond_t work;  /* a request waits, or `stopping` */
    struct wpk_http_exchange *first;
    struct wpk_http_exchange *last;
    bool stopping;
};

struct wpk_http_server {
    struct wpk_http_options options; /* its lists are invalid once the server is open */
    const struct wpk_clock *clock;
    struct wpk_http_listener listeners[WPK_HTTP_LISTENERS_MAX];
    bool tls[WPK_HTTP_LISTENERS_MAX];
    uint32_t listener_count;
    struct wpk_http_policy policy;
    struct wpk_admission *admission;
    uint32_t connection_of[WPK_HTTP_DESCRIPTORS_MAX]; /* by descriptor, once a daemon has it */
    struct wpk_http_acceptor *acceptor;
    struct wpk_http_readers readers;
    struct wpk_http_exchange *exchanges; /* by their connection's number */
    uint32_t exchange_count;
    pthread_mutex_t lock; /* guards all below */
    uint64_t *awaited;    /* by exchange: the id of its queued, unanswered request; 0: none */
    struct wpk_http_daemon daemons[WPK_HTTP_DAEMONS_MAX];
    struct wpk_http_daemon *daemon_of[WPK_HTTP_LISTENERS_MAX];
    size_t held;           /* bytes of large bodies, of all connections */
    uint64_t queued_count; /* requests queued so far */
    struct wpk_http_exchange *queue_first;
    struct wpk_http_exchange *queue_last;
    bool closing;
};

/* ---- http_exchange.c */

/* Set the connection's phase, with a deadline `for_ms` from now. False: it was ended. */
bool wpk_http_exchange_mark(struct wpk_http_exchange *exchange, enum wpk_connection_phase phase,
                            uint64_t for_ms);
/* Count bytes of a body until they are released; false: no room. */
WPK_MUST_CHECK bool wpk_http_exchange_hold(struct wpk_http_exchange *exchange, size_t size);
void wpk_http_exchange_release(struct wpk_http_exchange *exchange);
/* Make an answer of the server's own; at 503 the client may come again after a second. */
void wpk_http_refuse(struct wpk_api_answer *answer, int status, const char *title,
                     const char *detail);
/* Make the answer to a request that waits when the server is closed. */
#define WPK_HTTP_ENDING(answer) wpk_http_refuse(answer, 503, "shutting down", "wpkd is ending")
/* Make the library's response, and take the answer's body for it; the caller finishes the answer.
 * `last`: the connection ends after it. NULL: out of memory. */
struct MHD_Response *wpk_http_exchange_respond(struct wpk_http_exchange *exchange,
                                               struct wpk_api_answer *answer, bool last);
/* Call the options' `serve`: true when `answer` is the answer; false when the request has to be
 * queued. */
WPK_MUST_CHECK bool wpk_http_exchange_serve(struct wpk_http_exchange *exchange,
                                            struct wpk_api_answer *answer);
/* Suspend a whole request and queue it; false when the server is closing. */
WPK_MUST_CHECK bool wpk_http_exchange_queue(struct wpk_http_exchange *exchange);
/* Make the response of a QUEUED request that was answered, and resume its connection. */
void wpk_http_exchange_finish(struct wpk_http_exchange *exchange, struct wpk_api_answer *answer);
/* Called when a daemon's connection has ended; its descriptor is still open. */
void wpk_http_exchange_leave(struct wpk_http_exchange *exchange);

/* Start the threads for large requests.
 *   errors  WPK_ESYSTEM; some threads may run then */
wpk_err wpk_http_readers_start(struct wpk_http_readers *readers, struct wpk_diag *diag);
/* Finish requests that are being served, answer others with WPK_HTTP_ENDING, end the threads. */
void wpk_http_readers_stop(struct wpk_http_readers *readers);
/* Let a reader serve a whole request, suspended meanwhile; false when the server is closing. */
WPK_MUST_CHECK bool wpk_http_readers_take(struct wpk_http_readers *readers,
                                          struct wpk_http_exchange *exchange);

/* ---- http_daemon.c */

/* Check that http_head.h refuses ambiguous heads, as this machine's library reads them.
 *
 *   errors  WPK_EUNSUPPORTED  it accepts one: `diag` names the head, and advice; WPK_ESYSTEM
 */
wpk_err wpk_http_daemon_check(struct wpk_diag *diag);
/* Start a daemon, whose own threads serve its connections. `certificate` and `key`: PEM, or NULL.
 *
 *   errors  WPK_EPARSE  not a certificate and its key; WPK_ESYSTEM
 */
wpk_err wpk_http_daemon_start(struct wpk_http_server *server, const char *certificate,
                              const char *key, struct MHD_Daemon **out, struct wpk_diag *diag);
/* Stop a daemon and end its connections, none of which may be suspended. */
void wpk_http_daemon_stop(struct MHD_Daemon *daemon);
/* Give a daemon an admitted connection; false: the connection was closed. */
WPK_MUST_CHECK bool wpk_http_daemon_add(struct MHD_Daemon *daemon,
                                        const struct wpk_http_arrival *arrival);

#endif
