/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of a server of common/net.h, for its files alone. Each calls only those before it:
 * net_peers.c (all connections, and how one ends), net_peer.c (one connection), net_reply.c (what
 * it has to take), net_listener.c (listening), net_server.c (the owner's turn).
 *
 *     accepted ──▶ [GREETING] ── 8 bytes each way ──▶ [SIZE] ──▶ [BODY] ──▶ queued
 *                                                       ▲  └─▶ [WAITING]      │
 *                                                       └─────────────────────┘
 *
 * WAITING: the owner has enough to do. A connection that ended is DEAD; its descriptor is freed by
 * the owner's thread, which alone may wait for the library's callbacks.
 *
 * The wire is NNG's request/reply (net_frame.h). Its own sockets would accept without limit, and
 * never drop who is silent inside TLS. */
#ifndef WPK_COMMON_NET_PEER_H
#define WPK_COMMON_NET_PEER_H

#include "common/admission.h"
#include "common/net_dial.h"
#include "common/net_frame.h"

#include <pthread.h>

enum wpk_net_standing {
    WPK_NET_GREETING,
    WPK_NET_SIZE,
    WPK_NET_BODY,
    WPK_NET_WAITING,
    WPK_NET_DEAD,
};

struct wpk_net_piece { /* a reply on its way, or a request that waits to be taken */
    struct wpk_net_piece *next;
    struct wpk_net_event event; /* request */
    size_t size;                /* reply: bytes */
    char data[];
};

struct wpk_net_peer {
    struct wpk_net_server *server;
    uint32_t id;     /* generation and place among the server's peers */
    bool is_local;
    bool is_tls;
    char whence[WPK_NET_WHENCE_SIZE];
    nng_stream *stream;
    nng_aio *receive;
    nng_aio *send;
    char greeting[WPK_NET_GREETING_SIZE];
    char head[WPK_NET_HEAD_MAX];
    size_t wanted;          /* bytes of what is being received, and how many of them came */
    size_t got;
    size_t sent; /* of the first reply; the send callback's and whoever starts a send */
    /* What follows is guarded by the server's lock. */
    enum wpk_net_standing standing;
    bool is_known;
    bool was_heard; /* the owner has had a request of it */
    uint32_t queued;               /* requests not taken */
    struct wpk_net_piece *request; /* being received */
    struct wpk_net_piece *reply;   /* first of those not sent */
    struct wpk_net_piece *reply_last;
    uint32_t reply_count;
    size_t reply_bytes; /* of those; 0 of the dead */
    uint64_t took_ns;   /* when it last took some of them, or could begin to */
    bool is_starting; /* whoever accepted it is not done with it: it is not freed */
    bool is_greeted;  /* our greeting is out */
    bool is_sending;
    uint64_t body_ns;           /* BODY: since when */
    size_t body_size;           /* BODY, and in line */
    struct wpk_net_peer *next_dead; /* or ending */
    bool is_in_line; /* WAITING for other requests' bytes; else for its own to be taken */
    struct wpk_net_peer *line_next;
    struct wpk_net_peer *line_previous;
};

struct wpk_net_listener { /* one address listened at */
    struct wpk_net_server *server;
    char *url; /* owned */
    unsigned mode;
    bool is_local;
    bool is_tls;
    nng_stream_listener *nng;
    nng_aio *accept;
    bool is_accepting; /* guarded by the server's lock: else it rests */
};

struct wpk_net_server {
    size_t size_max;
    size_t reply_bytes_max;
    uint64_t unauthenticated_ns;
    uint64_t silence_ns;
    uint64_t body_ns;
    wpk_net_wake wake;
    void *user;
    struct wpk_net_listener listeners[WPK_NET_LISTEN_MAX];
    size_t listener_count;
    uint64_t descriptor_max; /* of the process, less those that stay free */

    pthread_mutex_t lock; /* guards all below; while it is held, nothing of the library is called,
                             and of locks only the admission's is taken */
    bool is_closing;
    uint64_t descriptors; /* in use when last counted, and those accepted since */
    struct wpk_net_piece *first; /* requests */
    struct wpk_net_piece *last;
    size_t bytes; /* of requests that wait or are being received */
    size_t reply_bytes; /* of replies that the living have not taken */
    struct wpk_net_peer *peers[WPK_NET_PEERS_MAX];
    uint32_t peer_count;
    uint32_t generation;
    struct wpk_admission *admission; /* of places; it is called with the lock held */
    struct wpk_net_peer *ending;     /* those that it ended */
    struct wpk_net_peer *dead;
    struct wpk_net_peer *line_first; /* large requests, in the order in which they came */
    struct wpk_net_peer *line_last;
    uint64_t refused[WPK_NET_REFUSAL_COUNT];
    uint64_t looked_ns; /* when the descriptors were counted */
};

/* ---- net_peers.c */
/* How many descriptors the process has, and may have; without the lock. */
void wpk_net_peers_count_descriptors(struct wpk_net_server *server);
/* A connection was accepted. False: there is no room for it, which is counted. */
bool wpk_net_peers_add(struct wpk_net_peer *peer);
/* What was tried at the listener ended with `code`: may it accept the next one? If not it rests. */
bool wpk_net_peers_may_accept(struct wpk_net_listener *listener, int code);
/* With the lock: its time of silence begins again. Where it has replies to take, only taking
 * counts; an unknown one has its time from when it was accepted. */
void wpk_net_peer_took(struct wpk_net_peer *peer);
void wpk_net_peer_heard(struct wpk_net_peer *peer);
/* With the lock, for the admission: the connection at a place ends. */
void wpk_net_peers_end(void *user, uint32_t connection, bool is_overdue);
/* Give back the lock; then finish what the admission ended. */
void wpk_net_peers_unlock(struct wpk_net_server *server);
/* With the lock: the peer has taken its first reply, of `size` bytes. */
void wpk_net_peer_took_reply(struct wpk_net_peer *peer, size_t size);
/* With the lock: have a request of `size` bytes now; false: it waits in line until the bytes of
 * others are free. */
bool wpk_net_peer_admit(struct wpk_net_peer *peer, size_t size);
/* The first in line whose request has room now, counted; NULL: none. Without the lock. */
struct wpk_net_peer *wpk_net_peers_admit_next(struct wpk_net_server *server);
/* With the lock: the connection ended; of one that had not said who it is, it is counted why. True:
 * the caller has to finish that, without the lock; else another thread does. */
bool wpk_net_peer_begin_end(struct wpk_net_peer *peer);
bool wpk_net_peer_begin_refusal(struct wpk_net_peer *peer, enum wpk_net_refusal why);
/* Close it, put it among the dead, wake the owner. Only then may the owner free it. */
void wpk_net_peer_finish_end(struct wpk_net_peer *peer);
/* Both at once, without the lock. */
void wpk_net_peer_end(struct wpk_net_peer *peer);
void wpk_net_peer_refuse(struct wpk_net_peer *peer, enum wpk_net_refusal why);

/* ---- net_peer.c */
/* Take over an accepted stream: fills the peer, starts nothing; false when out of memory. */
bool wpk_net_peer_init(struct wpk_net_peer *peer, nng_stream *stream);
/* Begin to talk; without the lock. */
void wpk_net_peer_start(struct wpk_net_peer *peer);
/* Go on where it was made to wait: if `is_admitted`, with a body whose bytes are counted. Without
 * the lock, by the owner. */
void wpk_net_peer_resume(struct wpk_net_peer *peer, bool is_admitted);
/* End it if its connection is over and the library kept that to itself: inside TLS NNG 1.5.2 does
 * so when that comes between two receives, as it nearly always does right after a request. By the
 * owner, without the lock. */
void wpk_net_peer_check(struct wpk_net_peer *peer);
/* Begin to send what was put into `reply`; without the lock, by who set is_sending. */
void wpk_net_peer_send(struct wpk_net_peer *peer);
/* Wait for its callbacks and free it; by the owner. Returns the bytes of a request that was being
 * received. */
size_t wpk_net_peer_free(struct wpk_net_peer *peer);

/* ---- net_listener.c */
/* Listen; the listener rests until it is woken.   errors  of wpk_net_server_open */
wpk_err wpk_net_listener_open(struct wpk_net_listener *listener, struct wpk_net_server *server,
                              const struct wpk_net_listen *listen, struct wpk_diag *diag);
/* Another listener with what the files of `listen` have now; and let it listen instead, which takes
 * it. */
wpk_err wpk_net_listener_make(const struct wpk_net_listener *listener,
                              const struct wpk_net_listen *listen, nng_stream_listener **out,
                              struct wpk_diag *diag);
wpk_err wpk_net_listener_listen(struct wpk_net_listener *listener, nng_stream_listener *nng,
                                struct wpk_diag *diag);
/* Those that rest accept again where there is room; by the owner. */
void wpk_net_listeners_wake(struct wpk_net_server *server);
void wpk_net_listener_close(struct wpk_net_listener *listener);

#endif
