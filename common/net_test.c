/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE_MAX_TEST 65536
#define STRANGER_MS 300

struct pair {
    char directory[64];
    char url[128];
    int fd;
    struct wpk_net_server *server;
    struct wpk_net_client *client;
};

static void wake(void *user)
{
    uint64_t one = 1;
    struct pair *pair = user;
    ssize_t written = write(pair->fd, &one, sizeof one);
    (void)written;
}

static void pause_until_woken(struct pair *pair)
{
    struct pollfd poll_fd = {.fd = pair->fd, .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, 5000), 1);
    uint64_t count;
    assert_int_equal(read(pair->fd, &count, sizeof count), sizeof count);
}

static void next_event(struct pair *pair, struct wpk_net_event *event)
{
    while (!wpk_net_server_next(pair->server, event)) {
        pause_until_woken(pair);
    }
}

static wpk_err next_reply(struct pair *pair, int *slot, char **data)
{
    wpk_err err;
    size_t size;
    while (!wpk_net_client_next(pair->client, slot, &err, data, &size)) {
        pause_until_woken(pair);
    }
    return err;
}

static wpk_err listen_at(struct pair *pair, const char *url, struct wpk_net_server **out,
                         struct wpk_diag *diag)
{
    const struct wpk_net_listen listen = {.url = url};
    const struct wpk_net_server_options options = {.listen = &listen,
                                                   .listen_count = 1,
                                                   .size_max = SIZE_MAX_TEST,
                                                   .stranger_ms = STRANGER_MS,
                                                   .wake = wake,
                                                   .user = pair};
    return wpk_net_server_open(&options, out, diag);
}

static wpk_err connect_to(struct pair *pair, const char *url, struct wpk_net_client **out,
                          struct wpk_diag *diag)
{
    const struct wpk_net_client_options options = {
        .url = url, .size_max = SIZE_MAX_TEST, .slot_count = 3, .wake = wake, .user = pair};
    return wpk_net_client_open(&options, out, diag);
}

static void open_server(struct pair *pair)
{
    struct wpk_diag diag = {0};
    assert_int_equal(listen_at(pair, pair->url, &pair->server, &diag), WPK_OK);
}

static int set_up(void **state)
{
    struct pair *pair = calloc(1, sizeof *pair);
    snprintf(pair->directory, sizeof pair->directory, "/tmp/wpk-net-XXXXXX");
    assert_non_null(mkdtemp(pair->directory));
    snprintf(pair->url, sizeof pair->url, "ipc://%s/socket", pair->directory);
    pair->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    open_server(pair);
    struct wpk_diag diag = {0};
    assert_int_equal(connect_to(pair, pair->url, &pair->client, &diag), WPK_OK);
    *state = pair;
    return 0;
}

static int tear_down(void **state)
{
    struct pair *pair = *state;
    wpk_net_client_close(pair->client);
    wpk_net_server_close(pair->server);
    char path[160];
    snprintf(path, sizeof path, "%s/socket", pair->directory);
    unlink(path);
    rmdir(pair->directory);
    close(pair->fd);
    free(pair);
    return 0;
}

static void the_socket_is_private(void **state)
{
    struct pair *pair = *state;
    struct stat stat_of;
    assert_int_equal(stat(pair->url + 6, &stat_of), 0);
    assert_int_equal(stat_of.st_mode & 0777, 0600);
}

static void replies_in_any_order(void **state)
{
    struct pair *pair = *state;
    assert_int_equal(wpk_net_client_put(pair->client, 0, "first", 5, 5000), WPK_OK);
    struct wpk_net_event first;
    next_event(pair, &first);
    assert_string_equal(first.data, "first");
    assert_int_equal(wpk_net_client_put(pair->client, 1, "second", 6, 5000), WPK_OK);
    struct wpk_net_event second;
    next_event(pair, &second);
    assert_string_equal(second.data, "second");

    wpk_net_server_reply(pair->server, &second.address, "b", 1);
    int slot;
    char *data;
    assert_int_equal(next_reply(pair, &slot, &data), WPK_OK);
    assert_int_equal(slot, 1);
    assert_string_equal(data, "b");
    free(data);
    assert_true(wpk_net_client_busy(pair->client, 0));
    wpk_net_server_reply(pair->server, &first.address, "a", 1);
    assert_int_equal(next_reply(pair, &slot, &data), WPK_OK);
    assert_int_equal(slot, 0);
    assert_string_equal(data, "a");
    free(data);
    free(first.data);
    free(second.data);
}

static void no_reply_times_out(void **state)
{
    struct pair *pair = *state;
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 100), WPK_OK);
    struct wpk_net_event event;
    next_event(pair, &event);
    int slot;
    char *data;
    assert_int_equal(next_reply(pair, &slot, &data), WPK_ETIMEDOUT);
    assert_null(data);
    /* A reply that comes too late does not become the next request's. */
    wpk_net_server_reply(pair->server, &event.address, "late", 4);
    free(event.data);
    assert_int_equal(wpk_net_client_put(pair->client, 0, "y", 1, 5000), WPK_OK);
    next_event(pair, &event);
    wpk_net_server_reply(pair->server, &event.address, "in time", 7);
    free(event.data);
    assert_int_equal(next_reply(pair, &slot, &data), WPK_OK);
    assert_string_equal(data, "in time");
    free(data);
}

static void a_lost_server_ends_the_request(void **state)
{
    struct pair *pair = *state;
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
    struct wpk_net_event event;
    next_event(pair, &event);
    free(event.data);
    wpk_net_server_close(pair->server);
    pair->server = NULL;
    int slot;
    char *data;
    assert_int_equal(next_reply(pair, &slot, &data), WPK_ECLOSED);
    /* And another server at the same address is found. */
    assert_int_equal(wpk_net_client_put(pair->client, 0, "again", 5, 5000), WPK_OK);
    open_server(pair);
    next_event(pair, &event);
    assert_string_equal(event.data, "again");
    free(event.data);
}

static void a_lost_client_is_told(void **state)
{
    struct pair *pair = *state;
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
    struct wpk_net_event request;
    next_event(pair, &request);
    free(request.data);
    wpk_net_client_close(pair->client);
    pair->client = NULL;
    struct wpk_net_event gone;
    next_event(pair, &gone);
    assert_true(gone.gone);
    assert_int_equal(gone.address.peer, request.address.peer);
    /* To whom nobody listens is no failure. */
    wpk_net_server_reply(pair->server, &request.address, "x", 1);
}

static void too_large_closes(void **state)
{
    struct pair *pair = *state;
    struct wpk_net_event event;
    char *large = calloc(1, SIZE_MAX_TEST * 2);
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
    next_event(pair, &event);
    free(event.data);
    assert_int_equal(wpk_net_client_put(pair->client, 1, large, SIZE_MAX_TEST * 2, 5000), WPK_OK);
    free(large);
    next_event(pair, &event);
    assert_true(event.gone);
    int slot;
    char *data;
    assert_int_not_equal(next_reply(pair, &slot, &data), WPK_OK);
}

static void bad_addresses(void **state)
{
    struct pair *pair = *state;
    struct wpk_net_server *server = NULL;
    struct wpk_diag diag = {0};
    assert_int_equal(listen_at(pair, "nonsense", &server, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "nonsense"));
    assert_int_equal(listen_at(pair, pair->url, &server, NULL), WPK_EBUSY);
    assert_null(server);
    struct wpk_net_client *client = NULL;
    assert_int_equal(connect_to(pair, "nonsense", &client, NULL), WPK_EINVAL);
}

/* ---- servers that are none */

static void open_hasty(struct pair *pair)
{
    const struct wpk_net_client_options options = {.url = pair->url,
                                                   .size_max = SIZE_MAX_TEST,
                                                   .slot_count = 1,
                                                   .patience_ms = 100,
                                                   .wake = wake,
                                                   .user = pair};
    wpk_net_client_close(pair->client);
    pair->client = NULL;
    assert_int_equal(wpk_net_client_open(&options, &pair->client, NULL), WPK_OK);
}

/* One that answers nothing any more is left, and what comes next goes to who listens now. */
static void a_server_that_hangs_is_left(void **state)
{
    struct pair *pair = *state;
    struct wpk_net_event event;
    open_hasty(pair);
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 200), WPK_OK);
    do {
        next_event(pair, &event); /* the client before this one goes */
    } while (event.gone);
    free(event.data);
    uint32_t peer = event.address.peer;
    int slot;
    char *data;
    assert_int_equal(next_reply(pair, &slot, &data), WPK_ETIMEDOUT);
    assert_int_equal(wpk_net_client_put(pair->client, 0, "y", 1, 5000), WPK_OK);
    next_event(pair, &event);
    assert_true(event.gone);
    assert_int_equal(event.address.peer, peer);
    next_event(pair, &event);
    assert_string_equal(event.data, "y");
    assert_int_not_equal(event.address.peer, peer);
    free(event.data);
}

/* One that accepts and does not greet does not keep the client from the next. */
static void a_server_that_never_greets_is_left(void **state)
{
    struct pair *pair = *state;
    struct wpk_net_event event;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", pair->url + 6);
    wpk_net_server_close(pair->server);
    pair->server = NULL;
    unlink(address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    open_hasty(pair);
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, 5000), 1);
    usleep(50000);
    unlink(address.sun_path);
    open_server(pair);
    next_event(pair, &event);
    assert_string_equal(event.data, "x");
    free(event.data);
    close(fd);
}

/* Serve until a reply reached the client, which asks again when its request was lost. */
static void ask_until_answered(struct pair *pair)
{
    int slot;
    wpk_err err = WPK_ECLOSED;
    char *data = NULL;
    size_t size;
    struct wpk_net_event event;
    while (err != WPK_OK) {
        assert_int_equal(err, WPK_ECLOSED);
        assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
        while (!wpk_net_client_next(pair->client, &slot, &err, &data, &size)) {
            if (!wpk_net_server_next(pair->server, &event)) {
                pause_until_woken(pair);
            } else if (!event.gone) {
                wpk_net_server_reply(pair->server, &event.address, "y", 1);
                free(event.data);
            }
        }
    }
    assert_string_equal(data, "y");
    free(data);
}

/* A server may come and go as often as it likes. */
static void a_server_that_is_started_again(void **state)
{
    struct pair *pair = *state;
    for (int i = 0; i < 20; i++) {
        wpk_net_server_close(pair->server);
        pair->server = NULL;
        open_server(pair);
        ask_until_answered(pair);
    }
}

/* ---- strangers: sockets that know no library */

static int raw_connect(struct pair *pair)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", pair->url + 6);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static const char greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};

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

/* Turn the server's wheel until the other side has closed, or for so long. */
static bool is_closed_within(struct pair *pair, int fd, int ms)
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

static void who_stays_a_stranger_is_closed(void **state)
{
    struct pair *pair = *state;
    int silent = raw_connect(pair);
    int half = raw_connect(pair);
    assert_int_equal(send(half, greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(half, 1000, "half of it", 10);
    /* One that the owner knows stays, though it says no more than they do. */
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
    struct wpk_net_event event;
    next_event(pair, &event);
    event.address.is_known = true;
    wpk_net_server_reply(pair->server, &event.address, "y", 1);
    free(event.data);
    assert_true(is_closed_within(pair, silent, 5000));
    assert_true(is_closed_within(pair, half, 5000));
    assert_int_equal(wpk_net_server_peer_count(pair->server), 1);
    close(silent);
    close(half);
}

static void garbage_closes(void **state)
{
    struct pair *pair = *state;
    static const char page[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    int fd = raw_connect(pair);
    assert_int_equal(send(fd, page, sizeof page, 0), sizeof page);
    assert_true(is_closed_within(pair, fd, STRANGER_MS / 2));
    close(fd);
    /* A message is announced that no stranger may send: nothing is allocated for it. */
    fd = raw_connect(pair);
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(fd, UINT64_C(1) << 62, "", 0);
    assert_true(is_closed_within(pair, fd, STRANGER_MS / 2));
    close(fd);
}

/* The newest is let in whoever came before: the oldest stranger makes room. */
static void strangers_make_room(void **state)
{
    struct pair *pair = *state;
    int fds[WPK_NET_STRANGERS_MAX + 8];
    int count = WPK_NET_STRANGERS_MAX + 8;
    for (int i = 0; i < count; i++) {
        fds[i] = raw_connect(pair);
        if (i == 0) {
            struct wpk_net_event event;
            for (int tries = 0; wpk_net_server_peer_count(pair->server) == 0; tries++) {
                assert_true(tries < 1000);
                usleep(1000);
            }
            assert_false(wpk_net_server_next(pair->server, &event));
        }
    }
    assert_true(is_closed_within(pair, fds[0], STRANGER_MS));
    for (int i = 1; i < 8; i++) {
        assert_true(is_closed_within(pair, fds[i], STRANGER_MS));
    }
    for (int tries = 0; wpk_net_server_peer_count(pair->server) > WPK_NET_STRANGERS_MAX; tries++) {
        struct wpk_net_event event;
        assert_true(tries < 1000);
        usleep(1000);
        assert_false(wpk_net_server_next(pair->server, &event));
    }
    assert_int_equal(send(fds[count - 1], greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(fds[count - 1], 5, "x", 1);
    struct wpk_net_event event;
    next_event(pair, &event);
    assert_string_equal(event.data, "x");
    free(event.data);
    for (int i = 0; i < count; i++) {
        close(fds[i]);
    }
}

/* What nobody takes waits with its sender, and is taken in its time. */
static void a_flood_waits(void **state)
{
    struct pair *pair = *state;
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
        next_event(pair, &event);
        assert_false(event.gone);
        assert_int_equal(event.size, sizeof body);
        free(event.data);
    }
    close(fd);
}

/* One that asks and never listens is closed before its answers fill the memory. */
static void who_takes_no_answer_is_closed(void **state)
{
    struct pair *pair = *state;
    struct wpk_net_event event;
    static char large[SIZE_MAX_TEST];
    int fd = raw_connect(pair);
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(fd, 5, "x", 1);
    next_event(pair, &event);
    free(event.data);
    event.address.is_known = true;
    for (int i = 0; i < 100; i++) {
        wpk_net_server_reply(pair->server, &event.address, large, sizeof large);
    }
    struct wpk_net_event gone;
    next_event(pair, &gone);
    assert_true(gone.gone);
    assert_int_equal(gone.address.peer, event.address.peer);
    close(fd);
}

/* Another server, for requests that fill it. */
static void open_large(struct pair *pair)
{
    const struct wpk_net_listen listen = {.url = pair->url};
    const struct wpk_net_server_options options = {.listen = &listen,
                                                   .listen_count = 1,
                                                   .size_max = WPK_NET_BYTES_MAX,
                                                   .body_ms = 300,
                                                   .wake = wake,
                                                   .user = pair};
    struct wpk_diag diag = {0};
    wpk_net_client_close(pair->client);
    pair->client = NULL;
    wpk_net_server_close(pair->server);
    pair->server = NULL;
    assert_int_equal(wpk_net_server_open(&options, &pair->server, &diag), WPK_OK);
}

static int connect_known(struct pair *pair)
{
    struct wpk_net_event event;
    int fd = raw_connect(pair);
    char reply[64];
    assert_int_equal(send(fd, greeting, sizeof greeting, 0), sizeof greeting);
    raw_send(fd, 5, "x", 1);
    next_event(pair, &event);
    free(event.data);
    event.address.is_known = true;
    wpk_net_server_reply(pair->server, &event.address, "y", 1);
    assert_int_equal(recv(fd, reply, 22, MSG_WAITALL), 22); /* a greeting and the reply */
    return fd;
}

/* One that announces all that may wait, and says nothing of it: what is small is taken meanwhile,
 * and what is large once its time is over. */
static void what_stalls_keeps_nobody_long(void **state)
{
    struct pair *pair = *state;
    static char large[100000];
    struct wpk_net_event event = {.gone = true};
    open_large(pair);
    int stalled = connect_known(pair);
    int other = connect_known(pair);
    raw_send(stalled, 4 + WPK_NET_BYTES_MAX, "", 0);
    usleep(50000);
    raw_send(other, 5, "z", 1);
    struct pollfd woken = {.fd = pair->fd, .events = POLLIN};
    for (int i = 0; event.gone && i < 500; i++) {
        if (!wpk_net_server_next(pair->server, &event)) {
            poll(&woken, 1, 10);
        }
    }
    assert_false(event.gone);
    assert_string_equal(event.data, "z");
    free(event.data);
    raw_send(other, 4 + sizeof large, large, sizeof large);
    event.gone = true;
    for (int i = 0; event.gone && i < 500; i++) {
        wpk_net_server_expire(pair->server);
        if (!wpk_net_server_next(pair->server, &event)) {
            poll(NULL, 0, 10);
        }
    }
    assert_false(event.gone);
    assert_int_equal(event.size, sizeof large);
    free(event.data);
    assert_true(is_closed_within(pair, stalled, 100));
    close(stalled);
    close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_socket_is_private, set_up, tear_down),
        cmocka_unit_test_setup_teardown(replies_in_any_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_reply_times_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lost_server_ends_the_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lost_client_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_large_closes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_stays_a_stranger_is_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(garbage_closes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strangers_make_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flood_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_takes_no_answer_is_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_stalls_keeps_nobody_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_hangs_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_never_greets_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_is_started_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_addresses, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
