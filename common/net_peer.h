/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a server of common/net.h. Only its files include this. Each calls only those
 * before it: net_peers.c (all connections, and how one ends), net_peer.c (one connection),
 * net_reply.c (replies), net_listener.c (listening), net_server.c (the owner's functions).
 *
 *     accepted ──▶ [GREETING] ── 8 bytes each way ──▶ [SIZE] ──▶ [BODY] ──▶ queued
 *                                                       ▲  └─▶ [WAITING]      │
 *                                                       └─────────────────────┘
 *
 * WAITING: the next request has to wait for earlier ones. A connection that has ended is DEAD; the
 * owner's thread frees its descriptor, because only it may wait for the library's callbacks.
 *
 * The wire format is NNG's request/reply (net_line.h). NNG's own sockets would accept connections
 * without limit, and never close a peer that is silent inside TLS. */
#ifndef WPK_COMMON_NET_PEER_H
#define WPK_COMMON_NET_PEER_H

#include "common/admission.h"
#include "common/net_dial.h"
#include "common/net_line.h"

#include <pthread.h>

enum wpk_net_standing {
    WPK_NET_GREETING,
    WPK_NET_SIZE,
    WPK_NET_BODY,
    WPK_NET_WAITING,
    WPK_NET_DEAD,
};

struct wpk_net_message { /* a reply that is being sent, or a request that waits for the owner */
    struct wpk_net_message *next;
    struct wpk_net_event event; /* request */
    size_t size;                /* reply: bytes */
    char data[];
};

struct wpk_net_peer {
    struct wpk_net_server *server;
    uint32_t id; /* generation, and index into the server's peers */
    bool is_local;
    bool is_tls;
    char whence[WPK_NET_WHENCE_SIZE];
    nng_stream *stream;
    nng_aio *receive;
    nng_aio *send;
    char greeting[WPK_NET_GREETING_SIZE];
    char head[WPK_NET_HEAD_MAX];
    size_t wanted; /* bytes of the greeting, head or request that is received */
    size_t got;    /* of `wanted`, those that arrived */
    size_t sent;   /* bytes of the first reply; used by the send callback and what starts a send */
    /* The server's lock guards all fields below. */
    enum wpk_net_standing standing;
    bool is_known;
    uint32_t unanswered;  /* its requests that have no reply; of an unauthenticated peer */
    uint64_t deadline_ns; /* by which it is to be known */
    bool was_heard;       /* a request of this peer was queued for the owner */
    uint32_t queued;      /* requests that the owner has not taken */
    struct wpk_net_message *request; /* being received */
    struct wpk_net_message *reply;   /* first of the replies that were not sent */
    struct wpk_net_message *reply_last;
    uint32_t reply_count;
    size_t reply_bytes; /* of the replies that were not sent; 0 if DEAD */
    uint64_t took_ns;   /* when its time of silence last began */
    bool is_starting;   /* the accepting thread still uses it: it must not be freed */
    bool is_greeted;    /* our greeting was sent */
    bool is_sending;
    uint64_t body_ns;               /* BODY: when it began */
    size_t body_size;               /* of the request in BODY, or in line */
    struct wpk_net_peer *next_dead; /* next among the dead, or the ending */
    bool is_in_line; /* WAITING for bytes of other peers' requests; else for its own to be taken */
    struct wpk_net_peer *line_next;
    struct wpk_net_peer *line_previous;
};

struct wpk_net_listener { /* one address */
    struct wpk_net_server *server;
    char *url; /* owned */
    unsigned mode;
    bool is_local;
    bool is_tls;
    nng_stream_listener *nng;
    nng_aio *accept;
    bool is_accepting; /* guarded by the server's lock; false: the listener rests */
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

    pthread_mutex_t lock; /* guards all below; while it is held, no function of the library is
                             called, and no lock but the admission's is taken */
    bool is_closing;
    uint64_t descriptor_max;       /* of the process, less those that are kept free */
    uint64_t descriptors;          /* in use when last counted, plus connections accepted since,
                                      less the first LATE_MAX that were freed since */
    uint64_t freed;                /* connections, since the descriptors were counted */
    struct wpk_net_message *first; /* requests */
    struct wpk_net_message *last;
    size_t bytes;       /* of requests that wait or are being received */
    size_t reply_bytes; /* of replies that were not sent, of all peers but DEAD ones */
    struct wpk_net_peer *peers[WPK_NET_PEERS_MAX];
    uint32_t peer_count;
    uint32_t generation;
    struct wpk_admission *admission; /* of indices into peers; called with the lock held */
    struct wpk_net_peer *ending;     /* peers that the admission has ended */
    struct wpk_net_peer *dead;
    struct wpk_net_peer *line_first; /* peers with large requests, in the order of arrival */
    struct wpk_net_peer *line_last;
    uint64_t refused[WPK_NET_REFUSAL_COUNT];
    uint64_t looked_ns; /* when the descriptors were counted */
};

/* ---- net_peers.c */
/* Count the descriptors that the process has, and may have. Without the lock. */
void wpk_net_peers_count_descriptors(struct wpk_net_server *server);
/* A connection was freed, with `bytes` of requests. NNG closes its descriptor later: where there is
 * no room, and more than LATE_MAX may still be open, the process's descriptors are counted. */
void wpk_net_peers_release(struct wpk_net_server *server, size_t bytes);
/* Add an accepted connection. False: there is no room; the refusal is counted. */
bool wpk_net_peers_add(struct wpk_net_peer *peer);
/* True if the listener may accept again after an attempt that ended with `code`; else it rests. */
bool wpk_net_peers_may_accept(struct wpk_net_listener *listener, int code);
/* With the lock: a peer has read or sent bytes, so its time of silence begins again. If it has
 * replies to read, `heard` is ignored. An unauthenticated peer keeps its first deadline. */
void wpk_net_peer_took(struct wpk_net_peer *peer);
void wpk_net_peer_heard(struct wpk_net_peer *peer);
/* With the lock: an unauthenticated peer that waits for an answer has the time of silence. */
void wpk_net_peer_asked(struct wpk_net_peer *peer, bool is_unanswered);
/* With the lock, for the admission: end the peer with this index. */
void wpk_net_peers_end(void *user, uint32_t connection, bool is_overdue);
/* Release the lock, then finish the peers that the admission has ended. */
void wpk_net_peers_unlock(struct wpk_net_server *server);
/* With the lock: the peer's first reply, of `size` bytes, was sent. */
void wpk_net_peer_took_reply(struct wpk_net_peer *peer, size_t size);
/* With the lock: begin to receive a request of `size` bytes; false: it waits in line until bytes of
 * other requests are free. */
bool wpk_net_peer_admit(struct wpk_net_peer *peer, size_t size);
/* Take the first peer in line if its request has room now, and count its bytes; else NULL. Without
 * the lock. */
struct wpk_net_peer *wpk_net_peers_admit_next(struct wpk_net_server *server);
/* With the lock: make the connection DEAD; a refusal counts `why` if it is unauthenticated. True:
 * the caller has to call wpk_net_peer_finish_end() without the lock. False: it was DEAD before. */
bool wpk_net_peer_begin_end(struct wpk_net_peer *peer);
bool wpk_net_peer_begin_refusal(struct wpk_net_peer *peer, enum wpk_net_refusal why);
/* Free the replies of a DEAD peer, but the first one while it is being sent. Without the lock. */
void wpk_net_peer_drop_replies(struct wpk_net_peer *peer);
/* Close the stream, drop the replies, add the peer to the dead and wake the owner, which may free
 * it from then on. */
void wpk_net_peer_finish_end(struct wpk_net_peer *peer);
/* Begin and finish the end, without the lock. */
void wpk_net_peer_end(struct wpk_net_peer *peer);
void wpk_net_peer_refuse(struct wpk_net_peer *peer, enum wpk_net_refusal why);

/* ---- net_peer.c */
/* Fill the peer with an accepted stream, and start nothing; false when out of memory. */
bool wpk_net_peer_init(struct wpk_net_peer *peer, nng_stream *stream);
/* Send the greeting and begin to receive. Without the lock. */
void wpk_net_peer_start(struct wpk_net_peer *peer);
/* Continue a peer that was WAITING: if `is_admitted`, with a body whose bytes are counted. By the
 * owner, without the lock. */
void wpk_net_peer_resume(struct wpk_net_peer *peer, bool is_admitted);
/* End the peer if its connection has ended unreported: inside TLS, NNG 1.5.2 does not report an end
 * between two receives, such as most ends right after a request. By the owner, without the lock. */
void wpk_net_peer_check(struct wpk_net_peer *peer);
/* Begin to send the first reply; without the lock, by the thread that set is_sending. */
void wpk_net_peer_send(struct wpk_net_peer *peer);
/* Wait for the peer's callbacks and free it; by the owner. Returns the size of the request that was
 * being received, or 0. */
size_t wpk_net_peer_free(struct wpk_net_peer *peer);

/* ---- net_listener.c */
/* Listen; the listener rests until it is woken.   errors  as wpk_net_server_open */
wpk_err wpk_net_listener_open(struct wpk_net_listener *listener, struct wpk_net_server *server,
                              const struct wpk_listen *listen, struct wpk_diag *diag);
/* Make another listener of the library with the certificate that the files of `listen` have now;
 * `listen` takes such a one, and lets it listen in place of the old one. */
wpk_err wpk_net_listener_make(const struct wpk_net_listener *listener,
                              const struct wpk_listen *listen, nng_stream_listener **out,
                              struct wpk_diag *diag);
wpk_err wpk_net_listener_listen(struct wpk_net_listener *listener, nng_stream_listener *nng,
                                struct wpk_diag *diag);
/* Let resting listeners accept again where there is room; by the owner. */
void wpk_net_listeners_wake(struct wpk_net_server *server);
void wpk_net_listener_close(struct wpk_net_listener *listener);

#endif
