/* SPDX-License-Identifier: Apache-2.0 */
/* A client and a server that both know the library. */
#include "tests/net_pair.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static void the_socket_is_private(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct stat stat_of;
    assert_int_equal(stat(pair->url + 6, &stat_of), 0);
    assert_int_equal(stat_of.st_mode & 0777, 0600);
}

static void replies_in_any_order(void **state)
{
    struct wpk_net_pair *pair = *state;
    assert_int_equal(wpk_net_client_put(pair->client, 0, "first", 5, 5000), WPK_OK);
    struct wpk_net_event first;
    wpk_net_pair_event(pair, &first);
    assert_string_equal(first.data, "first");
    assert_int_equal(wpk_net_client_put(pair->client, 1, "second", 6, 5000), WPK_OK);
    struct wpk_net_event second;
    wpk_net_pair_event(pair, &second);
    assert_string_equal(second.data, "second");

    wpk_net_server_reply(pair->server, &second.address, "b", 1);
    int slot;
    char *data;
    assert_int_equal(wpk_net_pair_reply(pair, &slot, &data), WPK_OK);
    assert_int_equal(slot, 1);
    assert_string_equal(data, "b");
    free(data);
    assert_true(wpk_net_client_busy(pair->client, 0));
    wpk_net_server_reply(pair->server, &first.address, "a", 1);
    assert_int_equal(wpk_net_pair_reply(pair, &slot, &data), WPK_OK);
    assert_int_equal(slot, 0);
    assert_string_equal(data, "a");
    free(data);
    free(first.data);
    free(second.data);
}

static void no_reply_times_out(void **state)
{
    struct wpk_net_pair *pair = *state;
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 100), WPK_OK);
    struct wpk_net_event event;
    wpk_net_pair_event(pair, &event);
    int slot;
    char *data;
    assert_int_equal(wpk_net_pair_reply(pair, &slot, &data), WPK_ETIMEDOUT);
    assert_null(data);
    /* A reply that comes too late does not become the next request's. */
    wpk_net_server_reply(pair->server, &event.address, "late", 4);
    free(event.data);
    assert_int_equal(wpk_net_client_put(pair->client, 0, "y", 1, 5000), WPK_OK);
    wpk_net_pair_event(pair, &event);
    wpk_net_server_reply(pair->server, &event.address, "in time", 7);
    free(event.data);
    assert_int_equal(wpk_net_pair_reply(pair, &slot, &data), WPK_OK);
    assert_string_equal(data, "in time");
    free(data);
}

static void a_lost_server_ends_the_request(void **state)
{
    struct wpk_net_pair *pair = *state;
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
    struct wpk_net_event event;
    wpk_net_pair_event(pair, &event);
    free(event.data);
    wpk_net_server_close(pair->server);
    pair->server = NULL;
    int slot;
    char *data;
    assert_int_equal(wpk_net_pair_reply(pair, &slot, &data), WPK_ECLOSED);
    /* And another server at the same address is found. */
    assert_int_equal(wpk_net_client_put(pair->client, 0, "again", 5, 5000), WPK_OK);
    wpk_net_pair_serve(pair);
    wpk_net_pair_event(pair, &event);
    assert_string_equal(event.data, "again");
    free(event.data);
}

static void a_lost_client_is_told(void **state)
{
    struct wpk_net_pair *pair = *state;
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
    struct wpk_net_event request;
    wpk_net_pair_event(pair, &request);
    free(request.data);
    wpk_net_client_close(pair->client);
    pair->client = NULL;
    struct wpk_net_event gone;
    wpk_net_pair_event(pair, &gone);
    assert_true(gone.gone);
    assert_int_equal(gone.address.peer, request.address.peer);
    /* To whom nobody listens is no failure. */
    wpk_net_server_reply(pair->server, &request.address, "x", 1);
}

static void too_large_closes(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct wpk_net_event event;
    char *large = calloc(1, WPK_NET_PAIR_SIZE_MAX * 2);
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
    wpk_net_pair_event(pair, &event);
    free(event.data);
    assert_int_equal(wpk_net_client_put(pair->client, 1, large, WPK_NET_PAIR_SIZE_MAX * 2, 5000),
                     WPK_OK);
    free(large);
    wpk_net_pair_event(pair, &event);
    assert_true(event.gone);
    int slot;
    char *data;
    assert_int_not_equal(wpk_net_pair_reply(pair, &slot, &data), WPK_OK);
}

static void the_next_address_is_tried(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct wpk_net_event event;
    struct wpk_diag diag = {0};
    char urls[300];
    wpk_net_client_close(pair->client);
    snprintf(urls, sizeof urls, "ipc:///nowhere,%s", pair->url);
    assert_int_equal(wpk_net_pair_connect(pair, urls, &pair->client, NULL), WPK_OK);
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
    wpk_net_pair_event(pair, &event);
    assert_string_equal(event.data, "x");
    free(event.data);
    struct wpk_net_client *other = NULL;
    snprintf(urls, sizeof urls, "%s,tcp://127.0.0.1:1", pair->url);
    assert_int_equal(wpk_net_pair_connect(pair, urls, &other, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "all addresses are ipc://"));
    snprintf(urls, sizeof urls, "%s,nonsense", pair->url);
    assert_int_equal(wpk_net_pair_connect(pair, urls, &other, NULL), WPK_EINVAL);
    assert_int_equal(wpk_net_pair_connect(pair, "", &other, NULL), WPK_EINVAL);
}

static void bad_addresses(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct wpk_net_server *server = NULL;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_net_pair_listen(pair, "nonsense", &server, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "nonsense"));
    assert_int_equal(wpk_net_pair_listen(pair, pair->url, &server, NULL), WPK_EBUSY);
    assert_null(server);
    struct wpk_net_client *client = NULL;
    assert_int_equal(wpk_net_pair_connect(pair, "nonsense", &client, NULL), WPK_EINVAL);
}

/* ---- servers that are none */

static void open_hasty(struct wpk_net_pair *pair)
{
    const struct wpk_net_client_options options = {.url = pair->url,
                                                   .size_max = WPK_NET_PAIR_SIZE_MAX,
                                                   .slot_count = 1,
                                                   .patience_ms = 100,
                                                   .wake = wpk_net_pair_wake,
                                                   .user = pair};
    wpk_net_client_close(pair->client);
    pair->client = NULL;
    assert_int_equal(wpk_net_client_open(&options, &pair->client, NULL), WPK_OK);
}

static wpk_err next_loss(struct wpk_net_pair *pair, struct wpk_diag *diag)
{
    wpk_err err;
    while ((err = wpk_net_client_loss(pair->client, diag)) == WPK_OK) {
        wpk_net_pair_pause(pair);
    }
    return err;
}

/* One that answers nothing any more is left, and what comes next goes to who listens now. */
static void a_server_that_hangs_is_left(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct wpk_net_event event;
    open_hasty(pair);
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 200), WPK_OK);
    do {
        wpk_net_pair_event(pair, &event); /* the client before this one goes */
    } while (event.gone);
    free(event.data);
    uint32_t peer = event.address.peer;
    int slot;
    char *data;
    assert_int_equal(wpk_net_pair_reply(pair, &slot, &data), WPK_ETIMEDOUT);
    assert_int_equal(wpk_net_client_put(pair->client, 0, "y", 1, 5000), WPK_OK);
    wpk_net_pair_event(pair, &event);
    assert_true(event.gone);
    assert_int_equal(event.address.peer, peer);
    wpk_net_pair_event(pair, &event);
    assert_string_equal(event.data, "y");
    assert_int_not_equal(event.address.peer, peer);
    free(event.data);
}

/* Take the place of the pair's server; the pair's client would be the first to connect. */
static int replace_server(struct wpk_net_pair *pair)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", pair->url + 6);
    wpk_net_server_close(pair->server);
    wpk_net_client_close(pair->client);
    pair->server = NULL;
    pair->client = NULL;
    unlink(address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

/* One that accepts and does not greet does not keep the client from the next. */
static void a_server_that_never_greets_is_left(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct wpk_net_event event;
    struct wpk_diag diag = {0};
    int fd = replace_server(pair);
    open_hasty(pair);
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 5000), WPK_OK);
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, 60000), 1); /* the client has connected */
    assert_int_equal(next_loss(pair, &diag), WPK_ETIMEDOUT);
    unlink(pair->url + 6);
    wpk_net_pair_serve(pair);
    wpk_net_pair_event(pair, &event);
    assert_string_equal(event.data, "x");
    free(event.data);
    close(fd);
}

static void a_server_of_another_protocol(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct wpk_diag diag = {0};
    int fd = replace_server(pair);
    assert_int_equal(wpk_net_pair_connect(pair, pair->url, &pair->client, NULL), WPK_OK);
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(send(peer, "HTTP/1.1 400", 12, MSG_NOSIGNAL), 12);
    assert_int_equal(next_loss(pair, &diag), WPK_ECORRUPT);
    assert_non_null(strstr(diag.text, "no wpkd"));
    close(peer);
    close(fd);
}

static void a_loss_says_why(void **state)
{
    struct wpk_net_pair *pair = *state;
    struct wpk_diag diag = {0};
    struct wpk_net_event event;
    assert_int_equal(wpk_net_client_put(pair->client, 0, "x", 1, 60000), WPK_OK);
    wpk_net_pair_event(pair, &event);
    free(event.data);
    assert_int_equal(wpk_net_client_loss(pair->client, &diag), WPK_OK);
    wpk_net_server_close(pair->server);
    pair->server = NULL;
    assert_int_equal(next_loss(pair, &diag), WPK_ECLOSED);
    open_hasty(pair);
    assert_int_equal(next_loss(pair, &diag), WPK_ECLOSED);
    assert_non_null(strstr(diag.text, pair->url));
    assert_non_null(strstr(diag.text, "start wpkd there"));
}

/* Serve until a reply reached the client, which asks again when its request was lost. */
static void ask_until_answered(struct wpk_net_pair *pair)
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
                wpk_net_pair_pause(pair);
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
    struct wpk_net_pair *pair = *state;
    for (int i = 0; i < 20; i++) {
        wpk_net_server_close(pair->server);
        pair->server = NULL;
        wpk_net_pair_serve(pair);
        ask_until_answered(pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_socket_is_private, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(replies_in_any_order, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(no_reply_times_out, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(a_lost_server_ends_the_request, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(a_lost_client_is_told, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(too_large_closes, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_hangs_is_left, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_never_greets_is_left, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(a_server_of_another_protocol, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(a_loss_says_why, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(a_server_that_is_started_again, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(the_next_address_is_tried, wpk_net_pair_set_up,
                                        wpk_net_pair_tear_down),
        cmocka_unit_test_setup_teardown(bad_addresses, wpk_net_pair_set_up, wpk_net_pair_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
