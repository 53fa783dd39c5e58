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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE_MAX_TEST 65536

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

static void open_server(struct pair *pair)
{
    struct wpk_diag diag = {0};
    assert_int_equal(
        wpk_net_server_open(pair->url, SIZE_MAX_TEST, wake, pair, &pair->server, &diag), WPK_OK);
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
    assert_int_equal(
        wpk_net_client_open(pair->url, SIZE_MAX_TEST, 3, wake, pair, &pair->client, &diag), WPK_OK);
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
    char *large = calloc(1, SIZE_MAX_TEST * 2);
    assert_int_equal(wpk_net_client_put(pair->client, 0, large, SIZE_MAX_TEST * 2, 5000), WPK_OK);
    free(large);
    struct wpk_net_event event;
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
    assert_int_equal(wpk_net_server_open("nonsense", 1024, wake, pair, &server, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "nonsense"));
    assert_int_equal(wpk_net_server_open(pair->url, 1024, wake, pair, &server, NULL), WPK_EBUSY);
    assert_null(server);
    struct wpk_net_client *client = NULL;
    assert_int_equal(wpk_net_client_open("nonsense", 1024, 1, wake, pair, &client, NULL),
                     WPK_EINVAL);
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
        cmocka_unit_test_setup_teardown(bad_addresses, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
