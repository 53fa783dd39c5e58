/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/service.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ADDRESS_SIZE 160

union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

/* As the configuration writes it; "" for a kind that it has no words for. */
static void print_address(const union any_address *address, socklen_t size, char out[ADDRESS_SIZE])
{
    char host[INET6_ADDRSTRLEN] = "";
    out[0] = '\0';
    if (address->any.sa_family == AF_UNIX && size > offsetof(struct sockaddr_un, sun_path)) {
        snprintf(out, ADDRESS_SIZE, "unix:%.*s",
                 (int)(size - offsetof(struct sockaddr_un, sun_path)), address->local.sun_path);
    } else if (address->any.sa_family == AF_INET &&
               inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof host) != NULL) {
        snprintf(out, ADDRESS_SIZE, "%s:%u", host, ntohs(address->v4.sin_port));
    } else if (address->any.sa_family == AF_INET6 &&
               inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof host) != NULL) {
        snprintf(out, ADDRESS_SIZE, "[%s]:%u", host, ntohs(address->v6.sin6_port));
    }
}

static bool is_listening(int fd)
{
    int type = 0;
    int listening = 0;
    socklen_t type_size = sizeof type;
    socklen_t listening_size = sizeof listening;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &listening_size) == 0 &&
           listening != 0;
}

wpk_err wpk_activation_place(int fd, struct wpk_listen *listeners, uint32_t count,
                             struct wpk_diag *diag)
{
    union any_address address = {0};
    socklen_t size = sizeof address;
    char text[ADDRESS_SIZE];
    if (!is_listening(fd) || getsockname(fd, &address.any, &size) != 0) {
        return wpk_fail(diag, WPK_EINVAL,
                        "descriptor %d that was passed in is no listening stream socket", fd);
    }
    print_address(&address, size, text);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(listeners[i].address, text) == 0 && listeners[i].fd == 0) {
            listeners[i].fd = fd;
            return WPK_OK;
        }
    }
    return wpk_fail(diag, WPK_EINVAL,
                    "a socket at %s was passed in, and no listener of http.listen that is left has "
                    "that address (workers' sockets cannot be passed in)",
                    text[0] != '\0' ? text : "an unknown address");
}
