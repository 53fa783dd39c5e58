/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that ask, and do not take what they asked for. */
#include "common/net.h"

#include "common/clock.h"
#include "tests/share.h"

#include <malloc.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE_MAX_TEST ((size_t)256 << 10)
#define REPLY_BYTES_MAX ((size_t)4 << 20)
#define SILENCE_MS 1500
#define PEERS 4

struct fixture {
    char directory[64];
    struct sockaddr_un place;
    int fd;
    struct wpk_net_server *server;
    struct wpk_net_address peers[PEERS];
    int sockets[PEERS];
    char *data; /* [SIZE_MAX_TEST] */
};

static void wake(void *user)
{
    uint64_t one = 1;
    const struct fixture *f = user;
    ssize_t written = write(f->fd, &one, sizeof one);
    (void)written;
}

static void pause_until_woken(const struct fixture *f, int ms)
{
    struct pollfd poll_fd = {.fd = f->fd, .events = POLLIN};
    uint64_t count;
    if (poll(&poll_fd, 1, ms) == 1) {
        assert_int_equal(read(f->fd, &count, sizeof count), sizeof count);
    }
}

static int set_up(void **state)
{
    char url[128];
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->directory, sizeof f->directory, "%s/wpk-reply-XXXXXX", wpk_test_folder());
    assert_non_null(mkdtemp(f->directory));
    f->place.sun_family = AF_UNIX;
    snprintf(f->place.sun_path, sizeof f->place.sun_path, "%s/socket", f->directory);
    snprintf(url, sizeof url, "ipc://%s", f->place.sun_path);
    f->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    f->data = calloc(1, SIZE_MAX_TEST);
    assert_non_null(f->data);
    const struct wpk_listen listen = {.address = url};
    const struct wpk_net_server_options options = {.listen = &listen,
                                                   .listen_count = 1,
                                                   .size_max = SIZE_MAX_TEST,
                                                   .reply_bytes_max = REPLY_BYTES_MAX,
                                                   .silence_ms = SILENCE_MS,
                                                   .wake = wake,
                                                   .user = f};
    assert_int_equal(wpk_net_server_open(&options, &f->server, NULL), WPK_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < PEERS; i++) {
        if (f->sockets[i] > 0) {
            close(f->sockets[i]);
        }
    }
    wpk_net_server_close(f->server);
    unlink(f->place.sun_path);
    rmdir(f->directory);
    close(f->fd);
    free(f->data);
    free(f);
    return 0;
}

/* A client's side by hand: its greeting, and a request that is empty. */
static bool ask(int socket)
{
    static const unsigned char request[13] = {1, 0, 0, 0, 0, 0, 0, 0, 4, 0x80, 0, 0, 1};
    return send(socket, request, sizeof request, MSG_NOSIGNAL) == sizeof request;
}

static void take_request(struct fixture *f, struct wpk_net_address *from)
{
    struct wpk_net_event event = {.gone = true};
    while (!wpk_net_server_next(f->server, &event) || event.gone) {
        pause_until_woken(f, 5000);
    }
    free(event.data);
    *from = event.address;
    from->is_known = true;
}

static void connect_peer(struct fixture *f, int i)
{
    static const unsigned char greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    f->sockets[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr *place = (const struct sockaddr *)&f->place;
    assert_int_equal(connect(f->sockets[i], place, sizeof f->place), 0);
    assert_int_equal(write(f->sockets[i], greeting, sizeof greeting), sizeof greeting);
    assert_true(ask(f->sockets[i]));
    take_request(f, &f->peers[i]);
}

/* True if the connection ends within the time. */
static bool is_gone(struct fixture *f, uint32_t peer, int ms)
{
    struct wpk_net_event event;
    uint64_t end_ns = wpk_clock_now_ns(wpk_clock_system()) + (uint64_t)ms * WPK_NS_PER_MS;
    do {
        while (wpk_net_server_next(f->server, &event)) {
            if (event.gone && event.address.peer == peer) {
                return true;
            }
            free(event.data);
        }
        pause_until_woken(f, 20);
    } while (wpk_clock_now_ns(wpk_clock_system()) < end_ns);
    return false;
}

static void reply(struct fixture *f, int peer, int count)
{
    for (int i = 0; i < count; i++) {
        wpk_net_server_reply(f->server, &f->peers[peer], f->data, SIZE_MAX_TEST - 64);
    }
}

/* Bytes in the kernel's socket buffers, some hundred KiB, are not counted. */
static void who_takes_nothing_has_as_much_as_its_slots(void **state)
{
    struct fixture *f = *state;
    connect_peer(f, 0);
    reply(f, 0, WPK_NET_SLOTS_MAX);
    assert_false(is_gone(f, f->peers[0].peer, 100));
    reply(f, 0, 4);
    assert_true(is_gone(f, f->peers[0].peer, 60000));
}

/* 4 MiB for all: three that leave 2, 1.5 and 1.5 of them are too many. */
static void who_leaves_most_makes_room_for_the_others(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        connect_peer(f, i);
    }
    reply(f, 0, WPK_NET_SLOTS_MAX);
    reply(f, 1, 6);
    reply(f, 2, 6);
    assert_true(is_gone(f, f->peers[0].peer, 60000));
    assert_int_equal(wpk_net_server_peer_count(f->server), 2);
    reply(f, 1, 1); /* and its bytes are free again */
    assert_false(is_gone(f, f->peers[1].peer, 100));
    assert_int_equal(wpk_net_server_peer_count(f->server), 2);
}

/* Bytes that were allocated. Sanitizers have allocators of their own: there it is always 0. */
static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* The owner, busy with replies, takes no event in which a connection that has ended is freed. */
static void who_is_closed_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < PEERS; i++) {
        connect_peer(f, i);
    }
    size_t before = allocated();
    for (int i = 0; i < PEERS; i++) {
        reply(f, i, WPK_NET_SLOTS_MAX); /* 2 MiB each, of 4 for all */
    }
    /* A reply that the library is sending at that moment is freed when the library has ended. */
    assert_in_range(allocated() - before, 0, REPLY_BYTES_MAX + PEERS * SIZE_MAX_TEST);
}

/* It says something all the time, which is no excuse. */
static void who_only_asks_is_closed_in_time(void **state)
{
    struct fixture *f = *state;
    connect_peer(f, 0);
    reply(f, 0, 4);
    bool gone = false;
    for (int tries = 50; tries > 0 && !gone; tries--) {
        gone = !ask(f->sockets[0]) || is_gone(f, f->peers[0].peer, 100);
        wpk_net_server_expire(f->server);
    }
    assert_true(gone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_takes_nothing_has_as_much_as_its_slots, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_leaves_most_makes_room_for_the_others, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(who_is_closed_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_only_asks_is_closed_in_time, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
