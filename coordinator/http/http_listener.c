/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/http/http_acceptor.h"

#include "common/fs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 4096 /* as many as the system allows by default */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
    struct sockaddr_storage storage;
};

static wpk_err fail_errno(const char *what, struct wpk_diag *diag)
{
    bool busy = errno == EADDRINUSE;
    wpk_err err = wpk_fs_fail(what, diag);
    return busy ? WPK_EBUSY : err;
}

/* ---- Unix sockets */

/* A socket that nobody listens on was left by a process that was killed. Of what is no socket the
 * kernel says the same. */
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

static wpk_err listen_unix(struct wpk_http_listener *listener, const char *path, unsigned mode,
                           struct wpk_diag *diag)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        return wpk_fail(diag, WPK_ERANGE, "the socket's path is longer than %zu bytes: %s",
                        sizeof address.sun_path - 1, path);
    }
    wpk_err err = wpk_fs_check_socket(path, diag);
    if (err != WPK_OK) {
        return err;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (is_stale(&address)) {
        unlink(path);
    }
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0) {
        return fail_errno("socket", diag);
    }
    mode_t before = umask(0777 & ~mode); /* the socket has its mode from its first moment */
    int failed = bind(listener->fd, (struct sockaddr *)&address, sizeof address);
    umask(before);
    if (failed != 0) {
        return fail_errno(path, diag);
    }
    memcpy(listener->path, path, strlen(path) + 1);
    listener->local = true;
    return listen(listener->fd, BACKLOG) == 0 ? WPK_OK : fail_errno(path, diag);
}

/* ---- TCP */

/* IPV4:PORT or [IPV6]:PORT; the address's size, 0 when it is none. */
static socklen_t parse_tcp(const char *text, union address *out)
{
    char host[INET6_ADDRSTRLEN];
    const char *colon = strrchr(text, ':');
    const char *digits = colon != NULL ? colon + 1 : "";
    char *end = NULL;
    unsigned long port = strtoul(digits, &end, 10);
    if (digits[0] < '0' || digits[0] > '9' || *end != '\0' || port > UINT16_MAX) {
        return 0;
    }
    bool v6 = text[0] == '[' && colon[-1] == ']';
    size_t size = v6 ? (size_t)(colon - text) - 2 : (size_t)(colon - text);
    if (size >= sizeof host) {
        return 0;
    }
    memcpy(host, v6 ? text + 1 : text, size);
    host[size] = '\0';
    memset(out, 0, sizeof *out);
    if (v6) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host, &out->v6.sin6_addr) == 1 ? sizeof out->v6 : 0;
    }
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &out->v4.sin_addr) == 1 ? sizeof out->v4 : 0;
}

static bool is_loopback(const union address *address)
{
    if (address->any.sa_family == AF_INET6) {
        const uint8_t *bytes = address->v6.sin6_addr.s6_addr;
        return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr) && bytes[12] == 127);
    }
    return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
}

/* Find the address that a listening socket is bound to. */
static wpk_err describe(struct wpk_http_listener *listener, struct wpk_diag *diag)
{
    union address bound;
    socklen_t size = sizeof bound;
    if (getsockname(listener->fd, &bound.any, &size) != 0) {
        return fail_errno("getsockname", diag);
    }
    listener->local = bound.any.sa_family == AF_UNIX;
    if (listener->local) {
        return WPK_OK;
    }
    if (bound.any.sa_family != AF_INET && bound.any.sa_family != AF_INET6) {
        return wpk_fail(diag, WPK_EINVAL, "the socket is neither a Unix socket nor TCP");
    }
    listener->loopback = is_loopback(&bound);
    listener->port = ntohs(bound.any.sa_family == AF_INET ? bound.v4.sin_port : bound.v6.sin6_port);
    /* Connections have it from the listener, and an answer leaves at once. */
    int on = 1;
    return setsockopt(listener->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0
               ? WPK_OK
               : fail_errno("TCP_NODELAY", diag);
}

static wpk_err listen_tcp(struct wpk_http_listener *listener, const char *text,
                          struct wpk_diag *diag)
{
    union address address;
    socklen_t size = parse_tcp(text, &address);
    if (size == 0) {
        return wpk_fail(diag, WPK_EINVAL, "%s is neither unix:PATH nor IPV4:PORT nor [IPV6]:PORT",
                        text);
    }
    listener->fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (listener->fd < 0 ||
        setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        (address.any.sa_family == AF_INET6 &&
         setsockopt(listener->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) ||
        bind(listener->fd, &address.any, size) != 0 || listen(listener->fd, BACKLOG) != 0) {
        return fail_errno(text, diag);
    }
    return describe(listener, diag);
}

/* ---- both */

wpk_err wpk_http_listener_open(const char *address, unsigned mode, struct wpk_http_listener *out,
                               struct wpk_diag *diag)
{
    struct wpk_http_listener listener = {.fd = -1};
    wpk_err err = wpk_begins(address, "unix:") ? listen_unix(&listener, address + 5, mode, diag)
                                               : listen_tcp(&listener, address, diag);
    if (err != WPK_OK) {
        wpk_http_listener_close(&listener);
        return err;
    }
    *out = listener;
    return WPK_OK;
}

wpk_err wpk_http_listener_adopt(int fd, struct wpk_http_listener *out, struct wpk_diag *diag)
{
    struct wpk_http_listener listener = {.fd = fd};
    int listens = 0;
    socklen_t size = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) {
        return wpk_fail(diag, WPK_EINVAL, "descriptor %d is no socket that listens", fd);
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        return fail_errno("fcntl", diag);
    }
    wpk_err err = describe(&listener, diag);
    if (err == WPK_OK) {
        *out = listener;
    }
    return err;
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
