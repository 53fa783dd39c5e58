/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and replies between programs, over ipc://, tcp:// and tls+tcp:// addresses.
 *
 *     client: slot ──put──▶ wire ──▶ server: next ... reply ──▶ wire ──▶ client: next
 *
 * A server replies to requests in any order, or never: a long poll costs only its memory. A client
 * has a few slots, each with one request under way. A request is sent once, and ends with its reply
 * or with a failure; a caller that repeats a request must make sure that repeating does no harm.
 *
 * Both sides queue what arrives and call `wake`, from a thread of the library: it may only wake a
 * loop or write to an eventfd. The program that opened a side calls all functions of that side from
 * one thread; it is called the owner below. After a fork the child must not use either side.
 *
 * A peer is unauthenticated until a reply to it sets `is_known`. Until then its requests are small,
 * its time is short, and the oldest unauthenticated peer is closed when a new one needs room. */
#ifndef WPK_COMMON_NET_H
#define WPK_COMMON_NET_H

#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

struct wpk_net_client;
struct wpk_net_server;

#define WPK_NET_SLOTS_MAX 8 /* of a client; also requests of a peer that wait to be taken */
/* Bytes of waiting requests; peers whose large requests exceed them have to wait. */
#define WPK_NET_BYTES_MAX ((size_t)64 << 20)
#define WPK_NET_REPLY_BYTES_MAX ((size_t)256 << 20) /* replies that peers have not read */
#define WPK_NET_LISTEN_MAX 8
#define WPK_NET_PEERS_MAX 32768       /* connections, those that are ending included */
#define WPK_NET_CONNECTIONS_MAX 32512 /* connections that are not ending */
#define WPK_NET_UNAUTHENTICATED_MAX 256
#define WPK_NET_UNAUTHENTICATED_OF_ADDRESS_MAX 64
#define WPK_NET_UNAUTHENTICATED_SIZE_MAX 65536 /* bytes of each of its requests */
#define WPK_NET_UNAUTHENTICATED_MS 10000
#define WPK_NET_PEERS_OF_ADDRESS_MAX 2048 /* connections of an IP address */
#define WPK_NET_SILENCE_MS 120000 /* a peer that sends and reads nothing for so long is closed */
#define WPK_NET_SMALL_MAX 65536   /* bytes of a request that never waits for other peers */
/* While a large request waits, other large ones have to arrive within this time. */
#define WPK_NET_BODY_MS 30000
#define WPK_NET_PATIENCE_MS 10000    /* of a client */
#define WPK_NET_DESCRIPTORS_LEFT 256 /* never used for connections */

typedef void (*wpk_net_wake)(void *user);

/* The address of a reply; by value, valid for one reply. */
struct wpk_net_address {
    uint32_t peer;      /* the connection's number, never 0 */
    uint8_t header[32]; /* the request's number; opaque */
    uint32_t header_size;
    bool is_local; /* the request came over ipc:// */
    bool is_known; /* the owner sets it for a reply: the peer is authenticated from then on */
};

struct wpk_net_event {
    bool gone; /* the connection of address.peer ended; no data */
    struct wpk_net_address address;
    char *data;  /* owned; freed with free() */
    size_t size; /* bytes */
};

/* A listener of a server: of workers, or of clients (coordinator/http). */
struct wpk_listen {
    /* Of workers: ipc://PATH, tcp://HOST:PORT or tls+tcp://HOST:PORT. Of clients: unix:PATH, or
     * HOST:PORT where HOST is an address, IPv6 in brackets; port 0: any free one. */
    const char *address;
    const char *certificate; /* PEM files; NULL: no TLS */
    const char *key;
    bool insecure; /* it may lack TLS though other machines reach it */
    unsigned mode; /* of a Unix socket's file; 0: 0600 */
    int fd; /* of clients: a listening socket, which is taken; `address` is then for messages */
};

struct wpk_net_server_options {
    const struct wpk_listen *listen; /* [listen_count], at most WPK_NET_LISTEN_MAX */
    size_t listen_count;
    size_t size_max;             /* bytes; a longer request ends its connection */
    size_t reply_bytes_max;      /* 0: WPK_NET_REPLY_BYTES_MAX */
    uint32_t peers_max;          /* connections at a time; 0: WPK_NET_CONNECTIONS_MAX */
    uint64_t unauthenticated_ms; /* 0: WPK_NET_UNAUTHENTICATED_MS */
    uint64_t silence_ms;         /* 0: WPK_NET_SILENCE_MS */
    uint64_t body_ms;            /* 0: WPK_NET_BODY_MS */
    wpk_net_wake wake;
    void *user;
};

/*   owns    caller closes; the options are copied
 *   errors  WPK_EINVAL not an address, no certificate, or a file at the path; WPK_EBUSY in use;
 *           WPK_EACCES; WPK_ENOENT no such file; WPK_ERANGE path too long; WPK_ENOMEM, WPK_ESYSTEM
 */
wpk_err wpk_net_server_open(const struct wpk_net_server_options *options,
                            struct wpk_net_server **out, struct wpk_diag *diag);
/* Close the server; replies that were not sent yet are lost. Accepts NULL. */
void wpk_net_server_close(struct wpk_net_server *server);

/* Read certificates and keys again, from the files that `listen` names now. `listen` has the same
 * listeners in the same order as at the start; its other fields are ignored. Open connections stay.
 * A file that cannot be read leaves every listener as it was.
 *   errors  as wpk_net_server_open */
wpk_err wpk_net_server_reload(struct wpk_net_server *server, const struct wpk_listen *listen,
                              size_t count, struct wpk_diag *diag);
/* Check the files as wpk_net_server_reload() would, and change nothing. */
wpk_err wpk_net_server_check(const struct wpk_net_server *server, const struct wpk_listen *listen,
                             size_t count, struct wpk_diag *diag);
/* Close peers that are past their deadline, silent or gone, and count the free descriptors. To be
 * called about once a second. */
void wpk_net_server_expire(struct wpk_net_server *server);
uint32_t wpk_net_server_peer_count(struct wpk_net_server *server);

/* suffix, text: why an unauthenticated peer was refused or closed */
#define WPK_NET_REFUSAL_LIST(X)                                                                    \
    X(LIMIT, "limit")         /* too many peers, or too many of its address */                     \
    X(TIMEOUT, "timeout")     /* still unauthenticated at its deadline */                          \
    X(MALFORMED, "malformed") /* not this protocol, or too large */                                \
    X(TLS, "tls")             /* no agreement on certificates and ciphers */

#define WPK_NET_REFUSAL_ENUM(name, text) WPK_NET_REFUSAL_##name,
enum wpk_net_refusal { WPK_NET_REFUSAL_LIST(WPK_NET_REFUSAL_ENUM) WPK_NET_REFUSAL_COUNT };

/* Get the peer's address for a log, without its port: "unix" over ipc, "" if the connection has
 * ended. */
#define WPK_NET_WHENCE_SIZE 48
void wpk_net_server_whence(struct wpk_net_server *server, uint32_t peer,
                           char out[WPK_NET_WHENCE_SIZE]);

/* The refusals since the server was opened.   shape  out [WPK_NET_REFUSAL_COUNT] */
void wpk_net_server_refused(struct wpk_net_server *server, uint64_t *out);
const char *wpk_net_refusal_name(enum wpk_net_refusal refusal);

/* The next event; false when there is none. */
WPK_MUST_CHECK bool wpk_net_server_next(struct wpk_net_server *server, struct wpk_net_event *out);
/* Send a reply; copies `data`. A reply to a connection that has ended is dropped. A peer that does
 * not read its replies is closed: when they exceed what a client's slots can wait for, when the
 * unread replies of all peers exceed reply_bytes_max and it has the most, or after silence_ms. */
void wpk_net_server_reply(struct wpk_net_server *server, const struct wpk_net_address *address,
                          const void *data, size_t size);

struct wpk_net_client_options {
    const char *url; /* or several with commas between them, all of ipc:// or none */
    const char *ca;  /* tls+tcp: file of the trusted certificates; NULL: the system's */
    size_t size_max;
    int slot_count;       /* at most WPK_NET_SLOTS_MAX */
    uint64_t patience_ms; /* 0: WPK_NET_PATIENCE_MS */
    wpk_net_wake wake;
    void *user;
};

/* Open a client of `url`. It connects, and connects again, by itself, to the next address each
 * time, with a pause after the last one that grows to two seconds; it reads the file `ca` each
 * time. It drops a connection over which the server does not greet within `patience_ms`, or sends
 * nothing after a request that timed out after that time.
 *
 *   owns    caller closes; the options are copied
 *   errors  as wpk_net_server_open; a server that does not answer is no error
 */
wpk_err wpk_net_client_open(const struct wpk_net_client_options *options,
                            struct wpk_net_client **out, struct wpk_diag *diag);
void wpk_net_client_close(struct wpk_net_client *client);
/* Why there is no connection: how the last one ended, or why the last try failed. WPK_OK while
 * there is one, and before the first try has ended. The client calls `wake` when it changes to a
 * failure.
 *   errors  WPK_EACCES     TLS: a certificate that is not trusted, or of another host
 *           WPK_ECLOSED    nobody listens, or the server closed it
 *           WPK_ETIMEDOUT  the server does not greet, or does not answer any more
 *           WPK_ECORRUPT   the server does not speak this protocol; those of wpk_net_client_open */
wpk_err wpk_net_client_loss(const struct wpk_net_client *client, struct wpk_diag *diag);

/* Send a request on a free slot; copies `data`.   errors  WPK_ENOMEM */
wpk_err wpk_net_client_put(struct wpk_net_client *client, int slot, const void *data, size_t size,
                           uint64_t timeout_ms);
bool wpk_net_client_busy(const struct wpk_net_client *client, int slot);

/* The next slot whose request ended, which is free from then on; false: none. *err is WPK_OK,
 * WPK_ETIMEDOUT or WPK_ECLOSED. The caller frees *data, which is NULL after a failure. */
WPK_MUST_CHECK bool wpk_net_client_next(struct wpk_net_client *client, int *slot, wpk_err *err,
                                        char **data, size_t *size);

/* HOST:PORT, and whether it is on this machine: other traffic may not go in clear. */

struct wpk_address {
    bool has_port;
    bool is_numeric;  /* an IPv4 address, or an IPv6 address in brackets; else a name */
    bool is_loopback; /* of 127.0.0.0/8, ::1, or the name localhost; names are not resolved */
};

/* Parse HOST or HOST:PORT; false if `text` is neither. */
WPK_MUST_CHECK bool wpk_address_parse(const char *text, size_t size, struct wpk_address *out);

/* Take the next address of a list with commas, of which *list becomes the rest: false after the
 * last. One that is too long for `out` is cut, and then no address. */
bool wpk_address_take(const char **list, char *out, size_t size);

/* True if `url` is SCHEME://HOST[:PORT][/...] with a host on this machine; else false. */
bool wpk_address_url_is_loopback(const char *url);

#endif
