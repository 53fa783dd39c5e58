/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that takes connections in: it asks who is at the other end of a Unix socket, lets the
 * admission decide, and passes on who is admitted.
 *
 * It leaves descriptors for others: the kernel gives the lowest one that is free, so a high one
 * says that few are left. Then one connection is ended for each that comes. */
#ifndef WPK_COORDINATOR_HTTP_HTTP_ACCEPTOR_H
#define WPK_COORDINATOR_HTTP_HTTP_ACCEPTOR_H

#include "common/admission.h"
#include "coordinator/access/auth.h"
#include "coordinator/http/http.h"
#include "coordinator/http/http_listener.h"

#include <sys/socket.h>

#define WPK_HTTP_DESCRIPTORS_MAX 65536   /* descriptors past it are not admitted */
#define WPK_HTTP_DESCRIPTORS_RESERVE 128 /* free descriptors that we leave to others */
#define WPK_HTTP_TICK_MS 250

struct wpk_http_acceptor;

/* A connection that was admitted. */
struct wpk_http_arrival {
    int fd; /* from here on the taker's */
    uint32_t connection;
    uint32_t listener; /* index */
    struct sockaddr_storage address;
    socklen_t address_size;
    struct wpk_identity identity; /* of a local user; else only its peer */
    bool known;                   /* a local user who needs no token */
};

struct wpk_http_acceptor_options {
    const struct wpk_http_listener *listeners; /* borrowed until it is closed */
    uint32_t listener_count;
    struct wpk_admission *admission;
    const struct wpk_http_peer *peers; /* copied */
    uint32_t peer_count;
    const struct wpk_clock *clock;
    uint64_t reading_ns; /* until an admitted connection's first request has to be whole */
    /* On the acceptor's thread. */
    void (*take)(void *user, const struct wpk_http_arrival *arrival);
    /* A user of this machine was not let in. */
    void (*denied)(void *user, const char *name);
    void (*tick)(void *user); /* every WPK_HTTP_TICK_MS or so */
    void *user;
};

/*   owns    caller closes
 *   errors  WPK_ENOMEM, WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_http_acceptor_open(const struct wpk_http_acceptor_options *options,
                                              struct wpk_http_acceptor **out,
                                              struct wpk_diag *diag);
/* Ends the thread; accepts NULL. */
void wpk_http_acceptor_close(struct wpk_http_acceptor *acceptor);

/* Who else may use the Unix sockets, from the next connection on: at most WPK_HTTP_PEERS_MAX. Are
 * they others than before? */
bool wpk_http_acceptor_set_peers(struct wpk_http_acceptor *acceptor,
                                 const struct wpk_http_peer *peers, uint32_t count);

#endif
