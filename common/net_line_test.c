/* SPDX-License-Identifier: Apache-2.0 */
/* Connections inside TLS that end at any byte: client and server learn it, and go on. */
#include "tests/net_pair.h"

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
#define UNCUT (1L << 30)

/* Forwards to the server, of each connection so many bytes. */
struct proxy {
    int fd;
    uint16_t port;
    uint16_t server_port;
    atomic_long
        cut; /* bytes after which the connection ends; negative: none is accepted any more */
    atomic_bool damages; /* the next bytes that the server sends */
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

static void forward(struct proxy *proxy, int client, int server, long cut)
{
    char bytes[4096];
    struct pollfd fds[] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    long left = cut;
    while (left > 0 && poll(fds, 2, -1) > 0) {
        int from = fds[0].revents != 0 ? 0 : 1;
        size_t size = left < (long)sizeof bytes ? (size_t)left : sizeof bytes;
        ssize_t got = read(fds[from].fd, bytes, size);
        if (from == 1 && got > 0 && atomic_exchange(&proxy->damages, false)) {
            bytes[got - 1] ^= 1;
        }
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
        bool connected = connect(server, (struct sockaddr *)&address, sizeof address) == 0;
        forward(proxy, client, server, connected ? cut : 0);
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
    if (posix_spawnp(&pid, "openssl", NULL, NULL, (char *const *)arguments, environ) != 0) {
        print_message("openssl is missing\n");
        skip();
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* A server behind the proxy, and what a client needs to reach it. */
struct bed {
    struct proxy proxy;
    char certificate[128];
    char key[128];
    char url[64];
};

static void open_bed(struct wpk_net_pair *pair, struct bed *bed)
{
    char server_url[64];
    uint16_t server_port;
    snprintf(bed->certificate, sizeof bed->certificate, "%s/certificate.pem", pair->directory);
    snprintf(bed->key, sizeof bed->key, "%s/key.pem", pair->directory);
    make_certificate(bed->certificate, bed->key);
    close(tcp_socket(&server_port)); /* the port is the server's now */
    snprintf(server_url, sizeof server_url, "tls+tcp4://localhost:%d", server_port);
    const struct wpk_listen listen = {
        .address = server_url, .certificate = bed->certificate, .key = bed->key};
    const struct wpk_net_server_options options = {.listen = &listen,
                                                   .listen_count = 1,
                                                   .size_max = WPK_NET_PAIR_SIZE_MAX,
                                                   .wake = wpk_net_pair_wake,
                                                   .user = pair};
    wpk_net_server_close(pair->server);
    pair->server = NULL;
    assert_int_equal(wpk_net_server_open(&options, &pair->server, NULL), WPK_OK);
    start_proxy(&bed->proxy, server_port);
    snprintf(bed->url, sizeof bed->url, "tls+tcp4://localhost:%d", bed->proxy.port);
}

/* The proxy carries one connection at a time: the client's has to end before. */
static void close_bed(struct wpk_net_pair *pair, struct bed *bed)
{
    wpk_net_client_close(pair->client);
    pair->client = NULL;
    stop_proxy(&bed->proxy);
    unlink(bed->certificate);
    unlink(bed->key);
}

static void connect_client(struct wpk_net_pair *pair, const struct bed *bed)
{
    const struct wpk_net_client_options options = {.url = bed->url,
                                                   .ca = bed->certificate,
                                                   .size_max = WPK_NET_PAIR_SIZE_MAX,
                                                   .slot_count = 1,
                                                   .wake = wpk_net_pair_wake,
                                                   .user = pair};
    wpk_net_client_close(pair->client);
    pair->client = NULL;
    assert_int_equal(wpk_net_client_open(&options, &pair->client, NULL), WPK_OK);
}

/* Ask until the connection is lost, or the request was answered. True: it was. */
static bool ask(struct wpk_net_pair *pair, struct wpk_diag *diag)
{
    struct wpk_net_event event;
    int slot;
    wpk_err err = WPK_ECLOSED;
    wpk_err loss = WPK_OK;
    char *data = NULL;
    size_t size;
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 300000), WPK_OK);
    while (!wpk_net_client_next(pair->client, &slot, &err, &data, &size) &&
           (loss = wpk_net_client_loss(pair->client, diag)) == WPK_OK) {
        if (!wpk_net_server_next(pair->server, &event)) {
            wpk_net_pair_pause(pair);
        } else if (!event.gone) {
            wpk_net_server_reply(pair->server, &event.address, "y", 1);
            free(event.data);
        }
    }
    free(data);
    assert_true(loss == WPK_OK || loss == WPK_ECLOSED);
    return err == WPK_OK;
}

static void connections_that_end_at_any_byte(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct bed bed = {0};
    open_bed(pair, &bed);
    long cut = 0;
    connect_client(pair, &bed);
    while (!ask(pair, NULL)) {
        cut += CUT_STEP;
        bed.proxy.cut = cut;
        assert_true(cut < 20000);
        connect_client(pair, &bed);
    }
    assert_true(cut > 500); /* what TLS needs at least before the first request */
    close_bed(pair, &bed);
}

/* An orderly end is not a refused try to connect, and damage is not a certificate that is not
 * trusted. Each later try ends at once, which has the same reason. */
static void an_open_connection_that_ends(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct bed bed = {0};
    open_bed(pair, &bed);
    for (int i = 0; i < 2; i++) {
        struct wpk_diag diag = {0};
        bed.proxy.cut = UNCUT;
        connect_client(pair, &bed);
        assert_true(ask(pair, NULL));
        bed.proxy.cut = 0;
        if (i == 0) {
            bed.proxy.damages = true;
            assert_false(ask(pair, &diag));
        } else {
            wpk_net_server_close(pair->server);
            pair->server = NULL;
        }
        while (wpk_net_client_loss(pair->client, &diag) == WPK_OK) {
            wpk_net_pair_pause(pair);
        }
        assert_int_equal(wpk_net_client_loss(pair->client, &diag), WPK_ECLOSED);
        assert_non_null(strstr(diag.text, "wpkd may say why"));
    }
    close_bed(pair, &bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(connections_that_end_at_any_byte, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(an_open_connection_that_ends, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
