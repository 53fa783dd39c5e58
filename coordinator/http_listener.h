/* SPDX-License-Identifier: Apache-2.0 */
/* A socket that HTTP is served on: a Unix socket, or TCP. */
#ifndef WPK_COORDINATOR_HTTP_LISTENER_H
#define WPK_COORDINATOR_HTTP_LISTENER_H

#include "common/err.h"

#include <stdint.h>
#include <sys/un.h>

#define WPK_HTTP_INHERITED_MAX 16

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
 *   errors  WPK_EINVAL not such an address; WPK_EBUSY in use; WPK_EACCES; WPK_ERANGE path too long;
 *           WPK_ESYSTEM
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

/* Let this process have as many descriptors as it may, WPK_HTTP_DESCRIPTORS_WANTED at most: the
 * usual limit of 1024 is for programs that use select(2). */
#define WPK_HTTP_DESCRIPTORS_WANTED 65536
void wpk_http_raise_descriptors(void);

/* Sockets passed on by systemd (sd_listen_fds(3)): descriptors from 3 on, which are made to be
 * closed on exec. The arguments are the variables LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES; NULL:
 * not set. Names that are not given are "". Returns how many there are: 0 also when they are meant
 * for another process. What is past WPK_HTTP_INHERITED_MAX is left out. */
struct wpk_http_inherited {
    int fd;
    char name[64];
};
uint32_t wpk_http_inherited(const char *listen_pid, const char *listen_fds,
                            const char *listen_names,
                            struct wpk_http_inherited out[WPK_HTTP_INHERITED_MAX]);

#endif
