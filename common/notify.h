/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the service manager, as in sd_notify(3): datagrams to a Unix socket. Without a
 * manager nothing is sent. No library is used for it, because that would be systemd's.
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

/* The manager's environment variables, which only main reads; NULL: not set. */
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
    uint64_t watchdog_ns; /* longest silence that the manager accepts; 0: unlimited */
};

/*   owns    caller closes
 *   errors  WPK_EINVAL  not a socket's name, or not a number; WPK_ESYSTEM
 */
wpk_err wpk_notify_open(const struct wpk_notify_environment *environment, struct wpk_notify *out,
                        struct wpk_diag *diag);
/* Accepts a zeroed struct, which was never opened. */
void wpk_notify_close(struct wpk_notify *notify);

/* Send lines of NAME=VALUE. Does not block: a message that cannot be sent at once is lost. */
void wpk_notify_send(const struct wpk_notify *notify, const char *format, ...) WPK_PRINTF(2, 3);

/* Take the listening sockets that the manager has passed, as descriptors from WPK_NOTIFY_FD_FIRST
 * on, and make them close-on-exec.
 *
 *   errors  WPK_EINVAL  more than `max`, not a number, or a descriptor that is not open
 */
#define WPK_NOTIFY_FD_FIRST 3
wpk_err wpk_notify_take_fds(const struct wpk_notify_environment *environment, uint32_t max,
                            uint32_t *count, struct wpk_diag *diag);

#endif
