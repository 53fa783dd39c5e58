/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the server with peers that use raw sockets, byte by byte, and no library. */
#include "common/net_peer.h"
#include "tests/net_pair.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static int raw_connect(struct wpk_net_pair *pair)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", pair->url + 6);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static const char greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};

#define LOOK_MS 1000 /* between two looks for who is overdue */

/* Over ipc: a byte 1, the size, the request's number, and then the body. */
static void raw_send(int fd, uint64_t size, const char *body, size_t body_size)
{
    char head[13] = {1, 0, 0, 0, 0, 0, 0, 0, 0, (char)0x80, 0, 0, 7};
    for (int i = 0; i < 8; i++) {
        head[1 + i] = (char)(size >> (56 - 8 * i) & 0xff);
    }
    assert_int_equal(send(fd, head, sizeof head, MSG_NOSIGNAL), sizeof head);
    if (body_size > 0) {
        assert_int_equal(send(fd, body, body_size, MSG_NOSIGNAL), body_size);
    }
}

/* Expire peers until this one is closed; false: it is not after so long. */
static bool is_closed_within(struct wpk_net_pair *pair, int fd, int ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    struct wpk_net_event event;
    char bytes[64];
    for (int waited = 0; waited < ms; waited += 10) {
        wpk_net_server_expire(pair->server);
        while (wpk_net_server_next(pair->server, &event)) {
            free(event.data);
        }
        if (poll(&poll_fd, 1, 10) == 1 && recv(fd, bytes, sizeof bytes, 0) <= 0) {
            return true;
        }
    }
    return false;
}

/* True if the server closes the connection. No deadline expires meanwhile. */
static bool is_closed_early(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    char bytes[64]; /* a greeting comes first */
    while (poll(&poll_fd, 1, 60000) == 1) {
        if (recv(fd, bytes, sizeof bytes, 0) <= 0) {
            return true;
        }
    }
    return false;
}

static void who_stays_unauthenticated_is_closed(void **state)
{
    struct wpk_net_pair *pair = *state;
    int silent = raw_connect(pair);
    int half = raw_connect(pair);
    assert_int_equal(send(half, greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(half, 1000, "half of it", 10);
    /* One that the owner knows stays, though it says no more than they do. */
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
    struct wpk_net_event event;
    wpk_net_pair_event(pair, &event);
    event.address.is_known = true;
    wpk_net_server_reply(pair->server, &event.address, "y", 1);
    free(event.data);
    assert_true(is_closed_within(pair, silent, 60000));
    assert_true(is_closed_within(pair, half, 60000));
    assert_int_equal(wpk_net_server_peer_count(pair->server), 1);
    close(silent);
    close(half);
}

/* An owner that is late, over a slow disk say, does not take it out on those who wait for it. */
static void who_waits_for_an_answer_is_not_closed(void **state)
{
    struct wpk_net_pair *pair = *state;
    int fd = raw_connect(pair);
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(fd, 5, "x", 1);
    struct wpk_net_event event;
    wpk_net_pair_event(pair, &event);
    assert_false(is_closed_within(pair, fd, 2 * LOOK_MS));
    wpk_net_server_reply(pair->server, &event.address, "who?", 4);
    free(event.data);
    assert_true(is_closed_within(pair, fd, 60000));
    close(fd);
}

static void garbage_closes(void **state)
{
    struct wpk_net_pair *pair = *state;
    static const char page[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    int fd = raw_connect(pair);
    assert_int_equal(send(fd, page, sizeof page, 0), sizeof page);
    assert_true(is_closed_early(fd));
    close(fd);
    /* A message is announced that no unauthenticated peer may send: nothing is allocated for it. */
    fd = raw_connect(pair);
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(fd, UINT64_C(1) << 62, "", 0);
    assert_true(is_closed_early(fd));
    close(fd);
}

/* The newest is let in whoever came before: the oldest unauthenticated peer makes room. */
static void unauthenticated_peers_make_room(void **state)
{
    struct wpk_net_pair *pair = *state;
    int fds[WPK_NET_UNAUTHENTICATED_MAX + 8];
    int count = WPK_NET_UNAUTHENTICATED_MAX + 8;
    for (int i = 0; i < count; i++) {
        fds[i] = raw_connect(pair);
        if (i == 0) {
            struct wpk_net_event event;
            for (int tries = 0; wpk_net_server_peer_count(pair->server) == 0; tries++) {
                assert_true(tries < 60000);
                usleep(1000);
            }
            assert_false(wpk_net_server_next(pair->server, &event));
        }
    }
    assert_true(is_closed_early(fds[0]));
    for (int i = 1; i < 8; i++) {
        assert_true(is_closed_early(fds[i]));
    }
    for (int tries = 0; wpk_net_server_peer_count(pair->server) > WPK_NET_UNAUTHENTICATED_MAX;
         tries++) {
        struct wpk_net_event event;
        assert_true(tries < 60000);
        usleep(1000);
        assert_false(wpk_net_server_next(pair->server, &event));
    }
    assert_int_equal(send(fds[count - 1], greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(fds[count - 1], 5, "x", 1);
    struct wpk_net_event event;
    wpk_net_pair_event(pair, &event);
    assert_string_equal(event.data, "x");
    free(event.data);
    for (int i = 0; i < count; i++) {
        close(fds[i]);
    }
}

/* Requests that the server has no room for wait at their sender, and are taken later. */
static void a_flood_waits(void **state)
{
    struct wpk_net_pair *pair = *state;
    static char body[60000];
    int fd = raw_connect(pair);
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(fd, 4 + sizeof body, body, sizeof body);
    raw_send(fd, 4 + sizeof body, body, sizeof body);
    raw_send(fd, 4 + sizeof body, body, sizeof body);
    size_t more = 0; /* that the way there takes, without anybody at its end */
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    while (poll(&poll_fd, 1, 200) == 1) {
        ssize_t size = send(fd, body, sizeof body, MSG_DONTWAIT | MSG_NOSIGNAL);
        assert_true(size > 0);
        more += (size_t)size;
        assert_true(more < 4000000);
    }
    for (int i = 0; i < 3; i++) {
        struct wpk_net_event event;
        wpk_net_pair_event(pair, &event);
        assert_false(event.gone);
        assert_int_equal(event.size, sizeof body);
        free(event.data);
    }
    close(fd);
}

/* One that asks and never listens is closed before its answers fill the memory. */
static void who_takes_no_answer_is_closed(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct wpk_net_event event;
    static char large[WPK_NET_PAIR_SIZE_MAX];
    int fd = raw_connect(pair);
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(fd, 5, "x", 1);
    wpk_net_pair_event(pair, &event);
    free(event.data);
    event.address.is_known = true;
    for (int i = 0; i < 100; i++) {
        wpk_net_server_reply(pair->server, &event.address, large, sizeof large);
    }
    struct wpk_net_event gone;
    wpk_net_pair_event(pair, &gone);
    assert_true(gone.gone);
    assert_int_equal(gone.address.peer, event.address.peer);
    close(fd);
}

/* Another server, for requests that fill it. */
static void open_large(struct wpk_net_pair *pair)
{
    const struct wpk_listen listen = {.address = pair->url};
    const struct wpk_net_server_options options = {.listen = &listen,
                                                   .listen_count = 1,
                                                   .size_max = WPK_NET_BYTES_MAX,
                                                   .body_ms = 300,
                                                   .wake = wpk_net_pair_wake,
                                                   .user = pair};
    struct wpk_diag diag = {0};
    wpk_net_client_close(pair->client);
    pair->client = NULL;
    wpk_net_server_close(pair->server);
    pair->server = NULL;
    assert_int_equal(wpk_net_server_open(&options, &pair->server, &diag), WPK_OK);
}

static int connect_known(struct wpk_net_pair *pair)
{
    struct wpk_net_event event;
    int fd = raw_connect(pair);
    char reply[64];
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(fd, 5, "x", 1);
    wpk_net_pair_event(pair, &event);
    free(event.data);
    event.address.is_known = true;
    wpk_net_server_reply(pair->server, &event.address, "y", 1);
    assert_int_equal(recv(fd, reply, 22, MSG_WAITALL), 22); /* a greeting and the reply */
    return fd;
}

/* Until so many bytes are being received. */
static void expect_bytes(struct wpk_net_server *server, size_t bytes)
{
    size_t now = 0;
    for (int tries = 0; now < bytes; tries++) {
        assert_true(tries < 60000);
        usleep(1000);
        pthread_mutex_lock(&server->lock);
        now = server->bytes;
        pthread_mutex_unlock(&server->lock);
    }
}

/* A peer announces as many bytes as may wait and sends none: small requests are received meanwhile,
 * and large ones once it was closed for that. */
static void what_stalls_keeps_nobody_long(void **state)
{
    struct wpk_net_pair *pair = *state;
    static char large[100000];
    struct wpk_net_event event = {.gone = true};
    open_large(pair);
    int stalled = connect_known(pair);
    int other = connect_known(pair);
    raw_send(stalled, 4 + WPK_NET_BYTES_MAX, "", 0);
    expect_bytes(pair->server, WPK_NET_BYTES_MAX);
    raw_send(other, 5, "z", 1);
    for (int i = 0; event.gone && i < 6000; i++) {
        if (!wpk_net_server_next(pair->server, &event)) {
            poll(NULL, 0, 10);
        }
    }
    assert_false(event.gone);
    assert_string_equal(event.data, "z");
    free(event.data);
    raw_send(other, 4 + sizeof large, large, sizeof large);
    event.gone = true;
    for (int i = 0; event.gone && i < 6000; i++) {
        wpk_net_server_expire(pair->server);
        if (!wpk_net_server_next(pair->server, &event)) {
            poll(NULL, 0, 10);
        }
    }
    assert_false(event.gone);
    assert_int_equal(event.size, sizeof large);
    free(event.data);
    assert_true(is_closed_early(stalled));
    close(stalled);
    close(other);
}

/* Port scanners, and whoever looks whether somebody listens. */
static void who_is_gone_at_once_harms_nobody(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct wpk_net_event event;
    for (int i = 0; i < 10000; i++) {
        close(raw_connect(pair));
        while (wpk_net_server_next(pair->server, &event)) {
            free(event.data);
        }
    }
}

/* A mistyped address must not cost its owner a file. */
static void a_file_is_not_replaced(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct wpk_net_server *server = NULL;
    struct wpk_diag diag = {0};
    char url[sizeof pair->url + 8];
    snprintf(url, sizeof url, "%s.file", pair->url);
    int fd = open(url + 6, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(wpk_net_pair_listen(pair, url, &server, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "is no socket"));
    assert_int_equal(unlink(url + 6), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_stays_unauthenticated_is_closed, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(who_waits_for_an_answer_is_not_closed, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(garbage_closes, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(unauthenticated_peers_make_room, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(a_flood_waits, wpk_net_pair_set_up, wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(who_takes_no_answer_is_closed, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(what_stalls_keeps_nobody_long, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(who_is_gone_at_once_harms_nobody, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(a_file_is_not_replaced, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
