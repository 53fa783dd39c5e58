/* SPDX-License-Identifier: Apache-2.0 */
#include "common/notify.h"

#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 1024

static bool parse_number(const char *text, uint64_t max, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *out <= max;
}

/* True if the variables are for this process: they may be meant for its parent. */
static bool is_ours(const char *pid)
{
    uint64_t number;
    return parse_number(pid, INT32_MAX, &number) && number == (uint64_t)getpid();
}

static wpk_err read_watchdog(const struct wpk_notify_environment *environment,
                             struct wpk_notify *out, struct wpk_diag *diag)
{
    uint64_t usec;
    if (environment->watchdog_usec == NULL ||
        (environment->watchdog_pid != NULL && !is_ours(environment->watchdog_pid))) {
        return WPK_OK;
    }
    if (!parse_number(environment->watchdog_usec, UINT64_MAX / WPK_NS_PER_US, &usec)) {
        return wpk_fail(diag, WPK_EINVAL, "WATCHDOG_USEC is %s", environment->watchdog_usec);
    }
    out->watchdog_ns = usec * WPK_NS_PER_US;
    return WPK_OK;
}

/* A path, or with '@' in front a name in the abstract namespace. */
static wpk_err read_address(const char *name, struct wpk_notify *out, struct wpk_diag *diag)
{
    size_t size = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || size < 2 || size >= sizeof out->address.sun_path) {
        return wpk_fail(diag, WPK_EINVAL, "NOTIFY_SOCKET is %s", name);
    }
    out->address.sun_family = AF_UNIX;
    memcpy(out->address.sun_path, name, size + 1);
    if (name[0] == '@') {
        out->address.sun_path[0] = '\0';
    }
    /* An abstract name ends with its size, a path with a NUL. */
    out->address_size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (name[0] == '/'));
    return WPK_OK;
}

wpk_err wpk_notify_open(const struct wpk_notify_environment *environment, struct wpk_notify *out,
                        struct wpk_diag *diag)
{
    struct wpk_notify notify = {.fd = -1};
    const char *name = environment->notify_socket;
    wpk_err err = WPK_OK;
    if (name != NULL && name[0] != '\0') {
        err = read_address(name, &notify, diag);
        err = err == WPK_OK ? read_watchdog(environment, &notify, diag) : err;
        if (err == WPK_OK) {
            notify.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            notify.open = notify.fd >= 0;
            err = notify.open ? WPK_OK : WPK_ESYSTEM;
        }
    }
    if (err == WPK_OK) {
        *out = notify;
    }
    return err;
}

void wpk_notify_close(struct wpk_notify *notify)
{
    if (notify->open) {
        close(notify->fd);
    }
    *notify = (struct wpk_notify){.fd = -1};
}

void wpk_notify_send(const struct wpk_notify *notify, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;
    if (!notify->open) {
        return;
    }
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    WPK_ASSERT(size > 0);
    size_t sent = (size_t)size < sizeof text ? (size_t)size : sizeof text - 1;
    (void)sendto(notify->fd, text, sent, MSG_NOSIGNAL, (const struct sockaddr *)&notify->address,
                 notify->address_size);
}

wpk_err wpk_notify_take_fds(const struct wpk_notify_environment *environment, uint32_t max,
                            uint32_t *count, struct wpk_diag *diag)
{
    uint64_t number = 0;
    if (environment->listen_fds != NULL && environment->listen_pid != NULL &&
        is_ours(environment->listen_pid) && !parse_number(environment->listen_fds, max, &number)) {
        return wpk_fail(diag, WPK_EINVAL, "LISTEN_FDS is %s; at most %u sockets are taken",
                        environment->listen_fds, max);
    }
    for (uint32_t i = 0; i < number; i++) {
        int fd = WPK_NOTIFY_FD_FIRST + (int)i;
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
            return wpk_fail(diag, WPK_EINVAL,
                            "LISTEN_FDS promises descriptor %d, which is not open", fd);
        }
    }
    *count = (uint32_t)number;
    return WPK_OK;
}
