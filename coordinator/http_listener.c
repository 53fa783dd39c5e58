/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/http_listener.h"

#include "common/fs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 128

static wpk_err fail_errno(const char *what, struct wpk_diag *diag)
{
    wpk_err err = errno == EADDRINUSE ? WPK_EBUSY : wpk_fs_err(errno);
    wpk_diag_set(diag, "%s: %s", what, strerror(errno));
    return err;
}

/* A socket that nobody listens on was left by a process that was killed. */
static bool is_stale(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool stale = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                 errno == ECONNREFUSED;
    if (fd >= 0) {
        close(fd);
    }
    return stale;
}

static wpk_err listen_unix(struct wpk_http_listener *listener, const char *path,
                           struct wpk_diag *diag)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        wpk_diag_set(diag, "the socket's path is longer than %zu bytes: %s",
                     sizeof address.sun_path - 1, path);
        return WPK_ERANGE;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (is_stale(&address)) {
        unlink(path);
    }
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0) {
        return fail_errno("socket", diag);
    }
    mode_t before = umask(0177); /* the socket is 0600 from its first moment */
    int failed = bind(listener->fd, (struct sockaddr *)&address, sizeof address);
    umask(before);
    if (failed != 0) {
        return fail_errno(path, diag);
    }
    memcpy(listener->path, path, strlen(path) + 1);
    listener->local = true;
    return listen(listener->fd, BACKLOG) == 0 ? WPK_OK : fail_errno(path, diag);
}

static wpk_err listen_tcp(struct wpk_http_listener *listener, const char *text,
                          struct wpk_diag *diag)
{
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    unsigned long port = colon != NULL ? strtoul(colon + 1, &end, 10) : 0;
    bool v4 = colon != NULL && strncmp(text, "127.0.0.1:", 10) == 0;
    bool v6 = colon != NULL && strncmp(text, "[::1]:", 6) == 0;
    if ((!v4 && !v6) || end == colon + 1 || *end != '\0' || port > 65535) {
        wpk_diag_set(diag, "%s is neither unix:PATH nor 127.0.0.1:PORT nor [::1]:PORT", text);
        return WPK_EINVAL;
    }
    struct sockaddr_in a4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)port),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const struct sockaddr *address = v4 ? (struct sockaddr *)&a4 : (struct sockaddr *)&a6;
    socklen_t size = v4 ? sizeof a4 : sizeof a6;
    listener->fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (listener->fd < 0 ||
        setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(listener->fd, address, size) != 0 || listen(listener->fd, BACKLOG) != 0) {
        return fail_errno(text, diag);
    }
    return WPK_OK;
}

wpk_err wpk_http_listener_open(const char *address, struct wpk_http_listener *out,
                               struct wpk_diag *diag)
{
    struct wpk_http_listener listener = {.fd = -1};
    wpk_err err = strncmp(address, "unix:", 5) == 0 ? listen_unix(&listener, address + 5, diag)
                                                    : listen_tcp(&listener, address, diag);
    if (err != WPK_OK) {
        wpk_http_listener_close(&listener);
        return err;
    }
    *out = listener;
    return WPK_OK;
}

void wpk_http_listener_close(struct wpk_http_listener *listener)
{
    if (listener->fd >= 0) {
        close(listener->fd);
    }
    if (listener->path[0] != '\0') {
        unlink(listener->path);
    }
    memset(listener, 0, sizeof *listener);
    listener->fd = -1;
}
