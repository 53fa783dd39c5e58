/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and replies between programs, over ipc:// and tcp:// addresses.
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
 * that forks afterwards must not touch these in the child. The only file that knows NNG is net.c.
 */
#ifndef WPK_COMMON_NET_H
#define WPK_COMMON_NET_H

#include "common/err.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_NET_QUEUE_MAX 4096 /* events waiting at a server; past it, peers are made to wait */
#define WPK_NET_SLOTS_MAX 8

struct wpk_net_server;
struct wpk_net_client;

typedef void (*wpk_net_wake)(void *user);

/* Where a reply goes; by value, good for one reply. */
struct wpk_net_address {
    uint32_t peer;      /* the connection, never 0 */
    uint8_t header[32]; /* the way back; opaque */
    uint32_t header_size;
    uint32_t tag; /* the owner's; 0 at first, and goes wherever the address goes */
};

struct wpk_net_event {
    bool gone; /* the connection of address.peer ended; no data */
    struct wpk_net_address address;
    char *data;  /* owned by whoever took the event: free() */
    size_t size; /* bytes */
};

/* Listen at `url`. The socket of ipc:// gets mode 0600.
 *
 *   unit    size_max: bytes; a longer message ends its connection
 *   owns    caller closes
 *   errors  WPK_EINVAL not an address; WPK_EBUSY in use; WPK_EACCES; WPK_ERANGE path too long;
 *           WPK_ENOMEM, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_net_server_open(const char *url, size_t size_max, wpk_net_wake wake,
                                           void *user, struct wpk_net_server **out,
                                           struct wpk_diag *diag);
/* Replies already given may be lost. Accepts NULL. */
void wpk_net_server_close(struct wpk_net_server *server);

/* The next event; false when there is none. */
WPK_MUST_CHECK bool wpk_net_server_next(struct wpk_net_server *server, struct wpk_net_event *out);
/* Copies `data`. To a connection that ended it goes nowhere, without an error. */
void wpk_net_server_reply(struct wpk_net_server *server, const struct wpk_net_address *address,
                          const void *data, size_t size);

/* Connect to `url`, now or whenever it is there: connecting again goes on by itself, with a pause
 * that grows to two seconds.
 *
 *   owns    caller closes
 *   errors  as wpk_net_server_open, but never because nobody listens
 */
WPK_MUST_CHECK wpk_err wpk_net_client_open(const char *url, size_t size_max, int slot_count,
                                           wpk_net_wake wake, void *user,
                                           struct wpk_net_client **out, struct wpk_diag *diag);
void wpk_net_client_close(struct wpk_net_client *client);

/* Send a request on a free slot; copies `data`. */
WPK_MUST_CHECK wpk_err wpk_net_client_put(struct wpk_net_client *client, int slot, const void *data,
                                          size_t size, uint64_t timeout_ms);
bool wpk_net_client_busy(const struct wpk_net_client *client, int slot);

/* The next slot that ended; false when there is none. *err is WPK_OK, WPK_ETIMEDOUT or
 * WPK_ECLOSED; *data (NULL after a failure) is the caller's to free. */
WPK_MUST_CHECK bool wpk_net_client_next(struct wpk_net_client *client, int *slot, wpk_err *err,
                                        char **data, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
