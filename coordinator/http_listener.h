/* SPDX-License-Identifier: Apache-2.0 */
/* The socket that HTTP is served on: a Unix socket for this user alone, or TCP on loopback. */
#ifndef WPK_COORDINATOR_HTTP_LISTENER_H
#define WPK_COORDINATOR_HTTP_LISTENER_H

#include "common/err.h"

#include <sys/un.h>

struct wpk_http_listener {
    int fd;                                                 /* listens; -1: closed, or given away */
    bool local;                                             /* a Unix socket */
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* of it, to be removed; else "" */
};

/* Listen at unix:PATH, 127.0.0.1:PORT or [::1]:PORT. A Unix socket that was left by a process that
 * was killed is taken over.
 *
 *   owns    caller closes
 *   errors  WPK_EINVAL not such an address; WPK_EBUSY in use; WPK_EACCES; WPK_ERANGE path too long;
 *           WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_http_listener_open(const char *address, struct wpk_http_listener *out,
                                              struct wpk_diag *diag);
void wpk_http_listener_close(struct wpk_http_listener *listener);

#endif
