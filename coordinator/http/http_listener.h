/* SPDX-License-Identifier: Apache-2.0 */
/* A listener for HTTP: a Unix socket or TCP. */
#ifndef WPK_COORDINATOR_HTTP_HTTP_LISTENER_H
#define WPK_COORDINATOR_HTTP_HTTP_LISTENER_H

#include "common/err.h"

#include <stdint.h>
#include <sys/un.h>

struct wpk_http_listener {
    int fd;        /* -1: closed */
    bool local;    /* a Unix socket */
    bool loopback; /* TCP on a loopback address */
    uint16_t port; /* of TCP */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* removed on close; "": none */
};

/* Listen at unix:PATH, IPV4:PORT or [IPV6]:PORT; a Unix socket gets `mode`. A socket file that a
 * killed process has left is replaced.
 *
 *   owns    caller closes
 *   errors  WPK_EINVAL not an address, or a file at the path; WPK_EBUSY in use; WPK_EACCES;
 *           WPK_ERANGE path too long; WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_http_listener_open(const char *address, unsigned mode,
                                              struct wpk_http_listener *out, struct wpk_diag *diag);

/* Take a listening socket from a supervisor. The path of the socket belongs to the supervisor and
 * is not removed on close.
 *
 *   owns    `fd`, on success
 *   errors  WPK_EINVAL  not a listening socket, or of another family
 */
WPK_MUST_CHECK wpk_err wpk_http_listener_adopt(int fd, struct wpk_http_listener *out,
                                               struct wpk_diag *diag);
void wpk_http_listener_close(struct wpk_http_listener *listener);

#endif
