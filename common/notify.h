/* SPDX-License-Identifier: Apache-2.0 */
/* Words to the service manager, as sd_notify(3) has them: datagrams to a Unix socket. Where there
 * is no manager, nothing is sent. By hand, because a library for it would bring systemd along.
 *
 *     READY=1                  the sockets are open, or open again after a reload
 *     RELOADING=1, STOPPING=1
 *     STATUS=...               what `systemctl status` shows
 *     WATCHDOG=1               alive; without it for a while, the manager restarts us */
#ifndef WPK_COMMON_NOTIFY_H
#define WPK_COMMON_NOTIFY_H

#include "common/err.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

/* What the manager put into the environment, which main alone reads; NULL: not set. */
struct wpk_notify_environment {
    const char *notify_socket;
    const char *watchdog_usec;
    const char *watchdog_pid;
    const char *listen_pid;
    const char *listen_fds;
};

struct wpk_notify {
    bool open;
    int fd;
    struct sockaddr_un address;
    socklen_t address_size;
    uint64_t watchdog_ns; /* longest silence that the manager bears; 0: as long as we like */
};

/*   owns    caller closes
 *   errors  WPK_EINVAL  a socket's name, or a number, that is none; WPK_ESYSTEM
 */
WPK_MUST_CHECK wpk_err wpk_notify_open(const struct wpk_notify_environment *environment,
                                       struct wpk_notify *out, struct wpk_diag *diag);
/* Accepts one that is zeroed, or was never opened. */
void wpk_notify_close(struct wpk_notify *notify);

/* Lines of NAME=VALUE; what cannot be sent at once is lost: we do not wait for the manager. */
void wpk_notify_send(const struct wpk_notify *notify, const char *format, ...) WPK_PRINTF(2, 3);

/* How many listening sockets were passed in, as descriptors from WPK_NOTIFY_FD_FIRST on; they are
 * made close-on-exec.
 *
 *   errors  WPK_EINVAL  more than `max`, or no number
 */
#define WPK_NOTIFY_FD_FIRST 3
WPK_MUST_CHECK wpk_err wpk_notify_take_fds(const struct wpk_notify_environment *environment,
                                           uint32_t max, uint32_t *count, struct wpk_diag *diag);

#endif
