/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that accepts connections. It identifies the user at a Unix socket, lets the admission
 * decide, and passes admitted connections on.
 *
 * It keeps descriptors free for others. The kernel assigns the lowest free descriptor, so a high
 * one means that few are left; then each new connection ends another one. */
#ifndef WPK_COORDINATOR_HTTP_HTTP_ACCEPTOR_H
#define WPK_COORDINATOR_HTTP_HTTP_ACCEPTOR_H

#include "common/admission.h"
#include "common/err.h"
#include "coordinator/access/auth.h"
#include "coordinator/http/http.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct wpk_http_acceptor;

/* A listener for HTTP: a Unix socket or TCP. */

struct wpk_http_listener {
    int fd;                                                 /* -1: closed */
    bool local;                                             /* a Unix socket */
    bool loopback;                                          /* TCP on a loopback address */
    uint16_t port;                                          /* of TCP */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* removed on close; "": none */
};

/* Listen at unix:PATH, IPV4:PORT or [IPV6]:PORT; a Unix socket gets `mode`. A socket file that a
 * killed process has left is replaced.
 *
 *   owns    caller closes
 *   errors  WPK_EINVAL not an address, or a file at the path; WPK_EBUSY in use; WPK_EACCES;
 *           WPK_ERANGE path too long; WPK_ESYSTEM
 */
wpk_err wpk_http_listener_open(const char *address, unsigned mode, struct wpk_http_listener *out,
                               struct wpk_diag *diag);

/* Take a listening socket from a supervisor. The path of the socket belongs to the supervisor and
 * is not removed on close.
 *
 *   owns    `fd`, on success
 *   errors  WPK_EINVAL  not a listening socket, or of another family
 */
wpk_err wpk_http_listener_adopt(int fd, struct wpk_http_listener *out, struct wpk_diag *diag);
void wpk_http_listener_close(struct wpk_http_listener *listener);

#define WPK_HTTP_DESCRIPTORS_MAX 65536   /* a connection needs a descriptor below this */
#define WPK_HTTP_DESCRIPTORS_RESERVE 128 /* descriptors that are kept free for others */
#define WPK_HTTP_TICK_MS 250

/* An admitted connection. */
struct wpk_http_arrival {
    int fd; /* owned by `take` */
    uint32_t connection;
    uint32_t listener; /* index into the listeners */
    struct sockaddr_storage address;
    socklen_t address_size;
    struct wpk_identity identity; /* of a local user; TCP: only `peer` is set */
    bool known;                   /* a local user who needs no token */
};

struct wpk_http_acceptor_options {
    const struct wpk_http_listener *listeners; /* borrowed until the acceptor is closed */
    uint32_t listener_count;
    struct wpk_admission *admission;
    const struct wpk_http_peer *peers; /* copied */
    uint32_t peer_count;
    const struct wpk_clock *clock;
    uint64_t reading_ns; /* time for a new connection's first request to be whole */
    /* These are called on the acceptor's thread. */
    void (*take)(void *user, const struct wpk_http_arrival *arrival);
    /* Called when a user of this machine was refused. */
    void (*denied)(void *user, const char *name);
    void (*tick)(void *user); /* every WPK_HTTP_TICK_MS or so */
    void *user;
};

/*   owns    caller closes
 *   errors  WPK_ESYSTEM
 */
wpk_err wpk_http_acceptor_open(const struct wpk_http_acceptor_options *options,
                               struct wpk_http_acceptor **out, struct wpk_diag *diag);
/* End the thread. Accepts NULL. */
void wpk_http_acceptor_close(struct wpk_http_acceptor *acceptor);

/* Set the peers of the Unix sockets, at most WPK_HTTP_PEERS_MAX, from the next connection on. True
 * if they differ from those before. */
bool wpk_http_acceptor_set_peers(struct wpk_http_acceptor *acceptor,
                                 const struct wpk_http_peer *peers, uint32_t count);

#endif
