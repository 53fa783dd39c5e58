/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and replies between programs, over ipc://, tcp:// and tls+tcp:// addresses.
 *
 *     client: slot ──put──▶ wire ──▶ server: next ... reply ──▶ wire ──▶ client: next
 *
 * A server takes every request as it comes and replies in any order, or never: a long poll costs
 * no more than its memory. A client has a few slots, each with one request under way; a request is
 * sent once, and ends with its reply or with a failure; whoever asks again must make sure that
 * asking twice does no harm.
 *
 * Both sides queue what arrives and call `wake`, from a thread of the library: it may only wake a
 * loop or write to an eventfd. Everything else is called from one thread of the owner. A process
 * that forks afterwards must not touch these in the child.
 *
 * Whoever connects to a server is an unauthenticated peer until a reply to it says that it is
 * known: it may say little, not for long, and the oldest unauthenticated peer makes room for the
 * newest. */
#ifndef WPK_COMMON_NET_H
#define WPK_COMMON_NET_H

#include "common/err.h"

#include <stdint.h>

#define WPK_NET_SLOTS_MAX 8 /* of a client; as many requests of a peer wait to be taken */
/* Of waiting requests; past it, peers are made to wait. */
#define WPK_NET_BYTES_MAX ((size_t)64 << 20)
#define WPK_NET_REPLY_BYTES_MAX ((size_t)256 << 20) /* of replies that peers have not taken */
#define WPK_NET_LISTEN_MAX 8
#define WPK_NET_PEERS_MAX 32768 /* places */
#define WPK_NET_CONNECTIONS_MAX 32512 /* the other places are for connections that are ending */
#define WPK_NET_UNAUTHENTICATED_MAX 256
#define WPK_NET_UNAUTHENTICATED_OF_ADDRESS_MAX 64
#define WPK_NET_UNAUTHENTICATED_SIZE_MAX 65536 /* bytes of its requests */
#define WPK_NET_UNAUTHENTICATED_MS 10000
#define WPK_NET_PEERS_OF_ADDRESS_MAX 2048 /* by default */
#define WPK_NET_SILENCE_MS 120000 /* a peer that says and takes nothing for so long is closed */
#define WPK_NET_SMALL_MAX 65536   /* bytes of a request that is taken however much waits */
/* A larger one that has begun is here by then, where another has to wait. */
#define WPK_NET_BODY_MS 30000
#define WPK_NET_PATIENCE_MS 10000    /* of a client */
#define WPK_NET_DESCRIPTORS_LEFT 256 /* never used for connections */

struct wpk_net_server;
struct wpk_net_client;

typedef void (*wpk_net_wake)(void *user);

/* Where a reply goes; by value, good for one reply. */
struct wpk_net_address {
    uint32_t peer;      /* the connection, never 0 */
    uint8_t header[32]; /* the way back; opaque */
    uint32_t header_size;
    uint32_t tag;  /* the owner's; 0 at first, and goes wherever the address goes */
    bool is_local; /* it came over ipc:// */
    bool is_known; /* the owner's, for a reply: no longer unauthenticated any more */
};

struct wpk_net_event {
    bool gone; /* the connection of address.peer ended; no data */
    struct wpk_net_address address;
    char *data;  /* owned by whoever took the event: free() */
    size_t size; /* bytes */
};

/* Where a server listens. */
struct wpk_net_listen {
    const char *url;
    unsigned mode;           /* ipc: of the socket's file; 0: 0600 */
    const char *certificate; /* tls+tcp: files in PEM; NULL elsewhere */
    const char *key;
};

struct wpk_net_server_options {
    const struct wpk_net_listen *listen; /* [listen_count], at most WPK_NET_LISTEN_MAX */
    size_t listen_count;
    size_t size_max;               /* bytes; a longer request ends its connection */
    size_t reply_bytes_max;        /* 0: WPK_NET_REPLY_BYTES_MAX */
    uint32_t peers_max;            /* connections at a time; 0: WPK_NET_CONNECTIONS_MAX */
    uint32_t peers_of_address_max; /* 0: WPK_NET_PEERS_OF_ADDRESS_MAX; not of ipc */
    uint64_t unauthenticated_ms;   /* 0: WPK_NET_UNAUTHENTICATED_MS */
    uint64_t silence_ms;           /* 0: WPK_NET_SILENCE_MS */
    uint64_t body_ms;              /* 0: WPK_NET_BODY_MS */
    wpk_net_wake wake;
    void *user;
};

/*   owns    caller closes; the options need not live on
 *   errors  WPK_EINVAL not an address, no certificate, or a file lies there; WPK_EBUSY in use;
 *           WPK_EACCES; WPK_ENOENT no such file; WPK_ERANGE path too long; WPK_ENOMEM, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_net_server_open(const struct wpk_net_server_options *options,
                                           struct wpk_net_server **out, struct wpk_diag *diag);
/* Replies already given may be lost. Accepts NULL. */
void wpk_net_server_close(struct wpk_net_server *server);

/* Read certificates and keys again, from the files that `listen` names now. Nothing else of it is
 * looked at; it has as many, in the same order, as at the start. Connections that are there stay.
 * What cannot be read leaves everything as it was.
 *   errors  as wpk_net_server_open */
WPK_MUST_CHECK wpk_err wpk_net_server_reload(struct wpk_net_server *server,
                                             const struct wpk_net_listen *listen, size_t count,
                                             struct wpk_diag *diag);
/* Would that find the files in order? Changes nothing. */
WPK_MUST_CHECK wpk_err wpk_net_server_check(const struct wpk_net_server *server,
                                            const struct wpk_net_listen *listen, size_t count,
                                            struct wpk_diag *diag);
/* Close unauthenticated peers whose time is over and peers that fell silent or are gone, and look
 * how many descriptors are free: to be called about once a second. */
void wpk_net_server_expire(struct wpk_net_server *server);
uint32_t wpk_net_server_peer_count(struct wpk_net_server *server);

/* suffix, text: why unauthenticated peers were turned away */
#define WPK_NET_REFUSAL_LIST(X)                                                                    \
    X(LIMIT, "limit")         /* too many of them, or of their address */                          \
    X(TIMEOUT, "timeout")     /* unauthenticated peers to the end */                               \
    X(MALFORMED, "malformed") /* not this protocol, or too large */                                \
    X(TLS, "tls")             /* no agreement on certificates and ciphers */

#define WPK_NET_REFUSAL_ENUM(name, text) WPK_NET_REFUSAL_##name,
enum wpk_net_refusal { WPK_NET_REFUSAL_LIST(WPK_NET_REFUSAL_ENUM) WPK_NET_REFUSAL_COUNT };

/* Where a connection comes from, for whoever reads a log: the address without a port; "unix" of
 * ipc, "" of one that has ended. */
#define WPK_NET_WHENCE_SIZE 48
void wpk_net_server_whence(struct wpk_net_server *server, uint32_t peer,
                           char out[WPK_NET_WHENCE_SIZE]);

/* How many there were since the server was opened.   shape  out [WPK_NET_REFUSAL_COUNT] */
void wpk_net_server_refused(struct wpk_net_server *server, uint64_t *out);
const char *wpk_net_refusal_name(enum wpk_net_refusal refusal);

/* The next event; false when there is none. */
WPK_MUST_CHECK bool wpk_net_server_next(struct wpk_net_server *server, struct wpk_net_event *out);
/* Copies `data`. To a connection that ended it goes nowhere, without an error; one that does not
 * take its replies is closed: when they are more than a client can wait for, when all that peers
 * do not take is too much and it leaves most of it, or after its time of silence. */
void wpk_net_server_reply(struct wpk_net_server *server, const struct wpk_net_address *address,
                          const void *data, size_t size);

struct wpk_net_client_options {
    const char *url;
    const char *ca; /* tls+tcp: file of the certificates that are trusted; NULL: the system's */
    size_t size_max;
    int slot_count;       /* at most WPK_NET_SLOTS_MAX */
    uint64_t patience_ms; /* 0: WPK_NET_PATIENCE_MS */
    wpk_net_wake wake;
    void *user;
};

/* Connect to `url`, now or whenever it is there: connecting again goes on by itself, with a pause
 * that grows to two seconds, and with the file `ca` as it is then. A server that does not greet for
 * `patience_ms`, or says nothing for so long while a request waits in vain, is left.
 *
 *   owns    caller closes
 *   errors  as wpk_net_server_open, but never because nobody listens
 */
WPK_MUST_CHECK wpk_err wpk_net_client_open(const struct wpk_net_client_options *options,
                                           struct wpk_net_client **out, struct wpk_diag *diag);
void wpk_net_client_close(struct wpk_net_client *client);
/* Why does nothing come of connecting? Tries it apart from all else, and waits for that long at
 * most.
 *   errors  WPK_EACCES     TLS: a certificate that is not trusted, or of another host
 *           WPK_ECLOSED    nobody listens; WPK_ETIMEDOUT; those of wpk_net_client_open */
WPK_MUST_CHECK wpk_err wpk_net_client_probe(const struct wpk_net_client_options *options,
                                            uint64_t timeout_ms, struct wpk_diag *diag);

/* Send a request on a free slot; copies `data`. */
WPK_MUST_CHECK wpk_err wpk_net_client_put(struct wpk_net_client *client, int slot, const void *data,
                                          size_t size, uint64_t timeout_ms);
bool wpk_net_client_busy(const struct wpk_net_client *client, int slot);

/* The next slot that ended; false when there is none. *err is WPK_OK, WPK_ETIMEDOUT or
 * WPK_ECLOSED; *data (NULL after a failure) is the caller's to free. */
WPK_MUST_CHECK bool wpk_net_client_next(struct wpk_net_client *client, int *slot, wpk_err *err,
                                        char **data, size_t *size);

#endif
