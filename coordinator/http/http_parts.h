/* SPDX-License-Identifier: Apache-2.0 */
/* A server, its daemons and what is on its connections: for the files of the server alone. Each
 * calls only those before it: http_exchange.c (one connection), http_reader.c (threads for large
 * requests), http_daemon.c (the library's side), http_server.c (the life of a server). */
#ifndef WPK_COORDINATOR_HTTP_HTTP_PARTS_H
#define WPK_COORDINATOR_HTTP_HTTP_PARTS_H

#include "common/admission.h"
#include "common/clock.h"
#include "coordinator/http/http.h"
#include "coordinator/http/http_acceptor.h"
#include "coordinator/http/http_listener.h"
#include "coordinator/http/http_policy.h"

#include <pthread.h>

#define WPK_HTTP_DAEMONS_MAX 16
#define WPK_HTTP_NUMBER_BITS 16 /* of a request's id: which connection it came on */
/* Bytes of a body that is read on a reader's thread; at most two of the readers are long at it, the
 * others tell whoever comes then to come again (api_front.h). A lookup of a near shape takes some
 * milliseconds, and 150 bytes. */
#define WPK_HTTP_LARGE ((size_t)4 << 10)
#define WPK_HTTP_READERS 4
#define WPK_HTTP_HELD_MAX ((size_t)128 << 20) /* bytes of large bodies on their way, in and out */
#define WPK_HTTP_SMALL_MAX 65536 /* bytes; smaller ones are not counted, so always served */

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_Response;

enum wpk_http_exchange_state {
    WPK_HTTP_EXCHANGE_NEW,
    WPK_HTTP_EXCHANGE_READING,
    WPK_HTTP_EXCHANGE_QUEUED,   /* suspended; the owner has it, or will */
    WPK_HTTP_EXCHANGE_ANSWERED, /* has its response */
};

/* A daemon of the library, with the connections that were given to it. The lock guards it. */
struct wpk_http_daemon {
    struct MHD_Daemon *handle; /* NULL: free */
    uint32_t connection_count;
    bool retired; /* it gets no more, and those it has end with their next answer */
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
    const char *target; /* where it lies; it is decoded in place */
    size_t target_size; /* as it was sent */
    const char *target_fault;
    struct wpk_http_request request; /* borrows from the library, `body` excepted */
    char *body;
    size_t body_room;
    void (*release)(void *prepared); /* NULL: nothing is */
    size_t held;                     /* bytes of bodies that the server counts */
    enum wpk_http_exchange_state state;
    struct MHD_Response *response;
    int status;
    uint64_t whole_ns;              /* when the request was */
    struct wpk_http_exchange *next; /* in the queue; guarded by the lock */
};

/* Threads that read large requests, in their order. */
struct wpk_http_readers {
    pthread_t threads[WPK_HTTP_READERS]; /* [count] */
    uint32_t count;
    pthread_mutex_t lock; /* guards what follows; taken before no other */
    pthread_cond_t work;  /* something waits, or `stopping` */
    struct wpk_http_exchange *first;
    struct wpk_http_exchange *last;
    bool stopping;
};

struct wpk_http_server {
    struct wpk_http_options options; /* its lists are used up when the server is open */
    const struct wpk_clock *clock;
    struct wpk_http_listener listeners[WPK_HTTP_LISTENERS_MAX];
    bool tls[WPK_HTTP_LISTENERS_MAX];
    uint32_t listener_count;
    struct wpk_http_policy policy;
    struct wpk_admission *admission;
    uint32_t connection_of[WPK_HTTP_DESCRIPTORS_MAX]; /* those that a daemon was given */
    struct wpk_http_acceptor *acceptor;
    struct wpk_http_readers readers;
    struct wpk_http_exchange *exchanges; /* by number of their connection */
    uint32_t exchange_count;
    pthread_mutex_t lock; /* guards all below */
    uint64_t *awaited;    /* of each exchange: the id that was queued and not answered; 0: none */
    struct wpk_http_daemon daemons[WPK_HTTP_DAEMONS_MAX];
    struct wpk_http_daemon *daemon_of[WPK_HTTP_LISTENERS_MAX];
    size_t held;           /* bytes of large bodies, of all connections together */
    uint64_t queued_count; /* so far */
    struct wpk_http_exchange *queue_first;
    struct wpk_http_exchange *queue_last;
    bool closing;
};

/* ---- http_exchange.c */

/* Say what the connection is at, for its deadline: `for_ms` from now. False: it was ended. */
bool wpk_http_exchange_mark(struct wpk_http_exchange *exchange, enum wpk_phase phase,
                            uint64_t for_ms);
/* Count bytes of a body until they are released; false: there is no room for them. */
WPK_MUST_CHECK bool wpk_http_exchange_hold(struct wpk_http_exchange *exchange, size_t size);
void wpk_http_exchange_release(struct wpk_http_exchange *exchange);
/* Make the library's response; takes the body, which is released whatever happens. `last`: the
 * connection ends with it. NULL: out of memory. */
struct MHD_Response *wpk_http_exchange_respond(struct wpk_http_exchange *exchange,
                                               const struct wpk_http_response *response, bool last);
/* Let the options' `serve` see it: true when `response` is its answer; else it belongs into the
 * queue. */
WPK_MUST_CHECK bool wpk_http_exchange_serve(struct wpk_http_exchange *exchange,
                                            struct wpk_http_response *response);
/* Put a whole request into the queue, suspended; false when the server is closing. */
WPK_MUST_CHECK bool wpk_http_exchange_queue(struct wpk_http_exchange *exchange);
void wpk_http_exchange_suspend(struct wpk_http_exchange *exchange);
/* Of one that is QUEUED and was answered: make its response, let it go on. */
void wpk_http_exchange_finish(struct wpk_http_exchange *exchange,
                              const struct wpk_http_response *response);
/* A connection that was given to a daemon has ended; its descriptor is still open. */
void wpk_http_exchange_leave(struct wpk_http_exchange *exchange);

/* For requests that wait when the server is closed. */
extern const struct wpk_http_response wpk_http_ending;

/* ---- http_reader.c */

/*   errors  WPK_ESYSTEM; some may have been started */
WPK_MUST_CHECK wpk_err wpk_http_readers_start(struct wpk_http_readers *readers,
                                              struct wpk_diag *diag);
/* Finish what is being read, and answer the rest that we end. */
void wpk_http_readers_stop(struct wpk_http_readers *readers);
/* Read a whole request, which is suspended meanwhile; false when the server is closing. */
WPK_MUST_CHECK bool wpk_http_readers_take(struct wpk_http_readers *readers,
                                          struct wpk_http_exchange *exchange);

/* ---- http_daemon.c */

/* Does http_head.h tell what has one meaning from what has not, as this machine's library reads it?
 *
 *   errors  WPK_EUNSUPPORTED  no: which head it was, and what to do; WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_http_daemon_check(struct wpk_diag *diag);
/* Connections are answered by threads of the daemon; `certificate` and `key`: PEM, or NULL.
 *
 *   errors  WPK_EPARSE  no certificate and key, or not of each other; WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_http_daemon_start(struct wpk_http_server *server,
                                             const char *certificate, const char *key,
                                             struct MHD_Daemon **out, struct wpk_diag *diag);
/* Ends its connections; none may wait for its answer. */
void wpk_http_daemon_stop(struct MHD_Daemon *daemon);
/* Give it a connection that was admitted; false: it is closed. */
WPK_MUST_CHECK bool wpk_http_daemon_add(struct MHD_Daemon *daemon,
                                        const struct wpk_http_arrival *arrival);

#endif
