/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/raw_http.h"

#include "common/err.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

static int dial(int family, const struct sockaddr *address, socklen_t size)
{
    struct timeval patience = {.tv_sec = 5};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    WPK_ASSERT(fd >= 0);
    WPK_ASSERT(connect(fd, address, size) == 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

int raw_http_dial_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return dial(AF_UNIX, (struct sockaddr *)&address, sizeof address);
}

int raw_http_dial_loopback(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return dial(AF_INET, (struct sockaddr *)&address, sizeof address);
}

void raw_http_say(int fd, const char *text)
{
    WPK_ASSERT(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

void raw_http_hear(int fd, char *out, size_t size)
{
    size_t at = 0;
    ssize_t got;
    out[0] = '\0';
    while (at + 1 < size && (got = recv(fd, out + at, size - 1 - at, 0)) > 0) {
        at += (size_t)got;
        out[at] = '\0';
        if (strstr(out, "\r\n\r\n") != NULL && strstr(out, "end") != NULL) {
            return;
        }
    }
}

void raw_http_pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}
