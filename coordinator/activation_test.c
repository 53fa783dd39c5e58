/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/service.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static int listen_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static int listen_tcp(int family, uint16_t *port)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    socklen_t size = family == AF_INET ? sizeof v4 : sizeof v6;
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, address, size) != 0) {
        return -1; /* a machine without IPv6 */
    }
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, address, &size), 0);
    *port = ntohs(family == AF_INET ? v4.sin_port : v6.sin6_port);
    return fd;
}

static void sockets_find_their_listener(void **state)
{
    (void)state;
    char path[64];
    char local[80];
    char v4[64];
    char v6[64];
    uint16_t port = 0;
    snprintf(path, sizeof path, "/tmp/wpk-activation-%d", (int)getpid());
    snprintf(local, sizeof local, "unix:%s", path);
    int local_fd = listen_unix(path);
    int v4_fd = listen_tcp(AF_INET, &port);
    snprintf(v4, sizeof v4, "127.0.0.1:%u", port);
    int v6_fd = listen_tcp(AF_INET6, &port);
    snprintf(v6, sizeof v6, "[::1]:%u", port);
    struct wpk_listen listeners[] = {{.address = v6}, {.address = v4}, {.address = local}};
    assert_int_equal(wpk_activation_place(local_fd, listeners, 3, NULL), WPK_OK);
    assert_int_equal(listeners[2].fd, local_fd);
    assert_int_equal(wpk_activation_place(v4_fd, listeners, 3, NULL), WPK_OK);
    assert_int_equal(listeners[1].fd, v4_fd);
    assert_int_equal(listeners[0].fd, 0);
    if (v6_fd >= 0) {
        assert_int_equal(wpk_activation_place(v6_fd, listeners, 3, NULL), WPK_OK);
        assert_int_equal(listeners[0].fd, v6_fd);
        close(v6_fd);
    }
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_activation_place(v4_fd, listeners, 3, &diag), WPK_EINVAL); /* twice */
    assert_non_null(strstr(diag.text, v4));
    close(v4_fd);
    close(local_fd);
    unlink(path);
}

static void others_are_refused(void **state)
{
    (void)state;
    uint16_t port = 0;
    int pair[2];
    struct wpk_diag diag = {0};
    struct wpk_listen listeners[] = {{.address = "unix:/s"}};
    int unlisted = listen_tcp(AF_INET, &port);
    int datagram = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(wpk_activation_place(unlisted, listeners, 1, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "127.0.0.1:"));
    assert_int_equal(wpk_activation_place(datagram, listeners, 1, NULL), WPK_EINVAL);
    assert_int_equal(wpk_activation_place(pair[0], listeners, 1, NULL), WPK_EINVAL);
    assert_int_equal(wpk_activation_place(STDIN_FILENO, listeners, 1, NULL), WPK_EINVAL);
    assert_int_equal(listeners[0].fd, 0);
    close(unlisted);
    close(datagram);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sockets_find_their_listener),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
