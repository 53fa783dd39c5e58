/* SPDX-License-Identifier: Apache-2.0 */
/* Connections inside TLS that end at any byte: client and server learn it, and go on. */
#include "common/net_pair.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CUT_STEP 13 /* bytes */

/* Forwards to the server, of each connection so many bytes. */
struct proxy {
    int fd;
    uint16_t port;
    uint16_t server_port;
    atomic_long
        cut; /* bytes after which the connection ends; negative: none is accepted any more */
    pthread_t thread;
};

static int tcp_socket(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    WPK_ASSERT(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    WPK_ASSERT(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* Odd numbers of bytes end with a reset, even ones in order. */
static void end_connection(int fd, long cut)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    if (cut % 2 != 0) {
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    }
    close(fd);
}

static void forward(int client, int server, long cut)
{
    char bytes[4096];
    struct pollfd fds[] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    long left = cut;
    while (left > 0 && poll(fds, 2, -1) > 0) {
        int from = fds[0].revents != 0 ? 0 : 1;
        size_t size = left < (long)sizeof bytes ? (size_t)left : sizeof bytes;
        ssize_t got = read(fds[from].fd, bytes, size);
        if (got <= 0 || send(fds[1 - from].fd, bytes, (size_t)got, MSG_NOSIGNAL) != got) {
            break;
        }
        left -= got;
    }
    end_connection(server, cut);
    end_connection(client, cut);
}

static void *run_proxy(void *user)
{
    struct proxy *proxy = user;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(proxy->server_port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (;;) {
        int client = accept4(proxy->fd, NULL, NULL, SOCK_CLOEXEC);
        long cut = proxy->cut;
        if (cut < 0) {
            close(client);
            return NULL;
        }
        int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        WPK_ASSERT(connect(server, (struct sockaddr *)&address, sizeof address) == 0);
        forward(client, server, cut);
    }
}

static void start_proxy(struct proxy *proxy, uint16_t server_port)
{
    proxy->server_port = server_port;
    proxy->fd = tcp_socket(&proxy->port);
    WPK_ASSERT(listen(proxy->fd, 16) == 0);
    WPK_ASSERT(pthread_create(&proxy->thread, NULL, run_proxy, proxy) == 0);
}

static void stop_proxy(struct proxy *proxy)
{
    uint16_t port;
    int fd = tcp_socket(&port);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(proxy->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    proxy->cut = -1;
    WPK_ASSERT(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    pthread_join(proxy->thread, NULL);
    close(fd);
    close(proxy->fd);
}

/* Connect until the connection is lost, or over it a request was answered. True: it was. */
static bool try_once(struct wpk_net_pair *pair, const char *url, const char *ca)
{
    const struct wpk_net_client_options options = {.url = url,
                                                   .ca = ca,
                                                   .size_max = WPK_NET_PAIR_SIZE_MAX,
                                                   .slot_count = 1,
                                                   .wake = wpk_net_pair_wake,
                                                   .user = pair};
    struct wpk_net_client *client;
    struct wpk_net_event event;
    int slot;
    wpk_err err = WPK_ECLOSED;
    char *data = NULL;
    size_t size;
    assert_int_equal(wpk_net_client_open(&options, &client, NULL), WPK_OK);
    assert_int_equal(wpk_net_client_put(client, 0, "x", 1, 300000), WPK_OK);
    while (!wpk_net_client_next(client, &slot, &err, &data, &size) &&
           wpk_net_client_loss(client, NULL) == WPK_OK) {
        if (!wpk_net_server_next(pair->server, &event)) {
            wpk_net_pair_pause(pair);
        } else if (!event.gone) {
            wpk_net_server_reply(pair->server, &event.address, "y", 1);
            free(event.data);
        }
    }
    free(data);
    wpk_net_client_close(client);
    return err == WPK_OK;
}

static void make_certificate(const char *certificate, const char *key)
{
    const char *const arguments[] = {"openssl",
                                     "req",
                                     "-x509",
                                     "-newkey",
                                     "ec",
                                     "-pkeyopt",
                                     "ec_paramgen_curve:prime256v1",
                                     "-nodes",
                                     "-days",
                                     "2",
                                     "-subj",
                                     "/CN=localhost",
                                     "-addext",
                                     "subjectAltName=DNS:localhost",
                                     "-keyout",
                                     key,
                                     "-out",
                                     certificate,
                                     NULL};
    pid_t pid;
    int status = -1;
    assert_int_equal(posix_spawnp(&pid, "openssl", NULL, NULL, (char *const *)arguments, environ),
                     0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void connections_that_end_at_any_byte(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct proxy proxy = {0};
    char certificate[128], key[128], server_url[64], url[64];
    uint16_t server_port;
    int fd = tcp_socket(&server_port);
    snprintf(certificate, sizeof certificate, "%s/certificate.pem", pair->directory);
    snprintf(key, sizeof key, "%s/key.pem", pair->directory);
    make_certificate(certificate, key);
    close(fd); /* the port is the server's now */
    snprintf(server_url, sizeof server_url, "tls+tcp://localhost:%d", server_port);
    const struct wpk_net_listen listen = {
        .url = server_url, .certificate = certificate, .key = key};
    const struct wpk_net_server_options options = {.listen = &listen,
                                                   .listen_count = 1,
                                                   .size_max = WPK_NET_PAIR_SIZE_MAX,
                                                   .wake = wpk_net_pair_wake,
                                                   .user = pair};
    wpk_net_server_close(pair->server);
    pair->server = NULL;
    assert_int_equal(wpk_net_server_open(&options, &pair->server, NULL), WPK_OK);
    start_proxy(&proxy, server_port);
    snprintf(url, sizeof url, "tls+tcp://localhost:%d", proxy.port);
    long cut = 0;
    while (!try_once(pair, url, certificate)) {
        cut += CUT_STEP;
        proxy.cut = cut;
        assert_true(cut < 20000);
    }
    assert_true(cut > 500); /* what TLS needs at least before the first request */
    stop_proxy(&proxy);
    unlink(certificate);
    unlink(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(connections_that_end_at_any_byte, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
