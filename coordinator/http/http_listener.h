/* SPDX-License-Identifier: Apache-2.0 */
/* A socket that HTTP is served on: a Unix socket, or TCP. */
#ifndef WPK_COORDINATOR_HTTP_HTTP_LISTENER_H
#define WPK_COORDINATOR_HTTP_HTTP_LISTENER_H

#include "common/err.h"

#include <stdint.h>
#include <sys/un.h>

struct wpk_http_listener {
    int fd;        /* listens; -1: closed */
    bool local;    /* a Unix socket */
    bool loopback; /* TCP that only this machine reaches */
    uint16_t port; /* of TCP */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* to be removed; else "" */
};

/* Listen at unix:PATH, IPV4:PORT or [IPV6]:PORT; a Unix socket gets `mode`. One that was left by a
 * process that was killed is taken over.
 *
 *   owns    caller closes
 *   errors  WPK_EINVAL not such an address, or a file lies there; WPK_EBUSY in use; WPK_EACCES;
 *           WPK_ERANGE path too long; WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_http_listener_open(const char *address, unsigned mode,
                                              struct wpk_http_listener *out, struct wpk_diag *diag);

/* Take a socket that listens already, as a supervisor passes it on. Its path stays when it is
 * closed: it is the supervisor's.
 *
 *   owns    `fd`, on success
 *   errors  WPK_EINVAL  no socket that listens, or of another family
 */
WPK_MUST_CHECK wpk_err wpk_http_listener_adopt(int fd, struct wpk_http_listener *out,
                                               struct wpk_diag *diag);
void wpk_http_listener_close(struct wpk_http_listener *listener);

#endif
