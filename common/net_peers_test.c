/* SPDX-License-Identifier: Apache-2.0 */
/* The line of large requests, without a network: who waits, and in which order they go on; and how
 * descriptors are counted whose connections the library may still have to close. */
#include "common/net_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define HALF (WPK_NET_BYTES_MAX / 2)
#define PEERS 5

static void do_not_wake(void *user)
{
    (void)user;
}

static int set_up(void **state)
{
    struct wpk_net_server *server = calloc(1, sizeof *server);
    pthread_mutex_init(&server->lock, NULL);
    server->wake = do_not_wake;
    const struct wpk_admission_options admission = {
        .all_max = PEERS, .end = wpk_net_peers_end, .user = server};
    assert_int_equal(wpk_admission_new(&admission, &server->admission), WPK_OK);
    for (uint32_t i = 0; i < PEERS; i++) {
        server->peers[i] = calloc(1, sizeof *server->peers[i]);
        *server->peers[i] =
            (struct wpk_net_peer){.server = server, .standing = WPK_NET_SIZE, .is_known = true};
        assert_int_equal(wpk_admission_admit(server->admission, NULL, 0, &server->peers[i]->id),
                         WPK_ADMITTED);
    }
    *state = server;
    return 0;
}

static int tear_down(void **state)
{
    struct wpk_net_server *server = *state;
    for (uint32_t i = 0; i < PEERS; i++) {
        free(server->peers[i]);
    }
    wpk_admission_free(server->admission);
    pthread_mutex_destroy(&server->lock);
    free(server);
    return 0;
}

static bool admit(struct wpk_net_server *server, int peer, size_t size)
{
    return wpk_net_peer_admit(server->peers[peer], size);
}

/* Take the request that was admitted. */
static void take(struct wpk_net_server *server, int peer)
{
    server->bytes -= server->peers[peer]->body_size;
    server->peers[peer]->standing = WPK_NET_SIZE;
}

static void large_requests_go_on_in_order(void **state)
{
    struct wpk_net_server *server = *state;
    assert_true(admit(server, 0, HALF));
    assert_true(admit(server, 1, HALF));
    assert_false(admit(server, 2, HALF));
    assert_false(admit(server, 3, HALF));
    assert_true(admit(server, 4, 100)); /* small */
    take(server, 4);
    assert_null(wpk_net_peers_admit_next(server));
    take(server, 1);
    assert_false(admit(server, 1, WPK_NET_SMALL_MAX + 1)); /* does not overtake those in line */
    assert_ptr_equal(wpk_net_peers_admit_next(server), server->peers[2]);
    assert_int_equal(server->peers[2]->standing, WPK_NET_BODY);
    assert_null(wpk_net_peers_admit_next(server));
    take(server, 0);
    assert_ptr_equal(wpk_net_peers_admit_next(server), server->peers[3]);
    take(server, 2);
    assert_ptr_equal(wpk_net_peers_admit_next(server), server->peers[1]);
    assert_null(wpk_net_peers_admit_next(server));
    assert_int_equal(server->bytes, HALF + WPK_NET_SMALL_MAX + 1);
}

static void the_largest_request_has_room_alone(void **state)
{
    struct wpk_net_server *server = *state;
    assert_true(admit(server, 0, 1));
    assert_false(admit(server, 1, WPK_NET_BYTES_MAX));
    take(server, 0);
    assert_ptr_equal(wpk_net_peers_admit_next(server), server->peers[1]);
}

static void a_connection_that_ends_leaves_the_line(void **state)
{
    struct wpk_net_server *server = *state;
    assert_true(admit(server, 0, WPK_NET_BYTES_MAX));
    for (int i = 1; i < PEERS; i++) {
        assert_false(admit(server, i, HALF));
    }
    assert_true(wpk_net_peer_begin_end(server->peers[1]));
    assert_true(wpk_net_peer_begin_end(server->peers[3]));
    assert_true(wpk_net_peer_begin_end(server->peers[4]));
    assert_false(wpk_net_peer_begin_end(server->peers[4]));
    take(server, 0);
    assert_ptr_equal(wpk_net_peers_admit_next(server), server->peers[2]);
    assert_null(wpk_net_peers_admit_next(server));
    assert_null(server->line_first);
    assert_null(server->line_last);
}

/* The admission frees its place only later: what the library still says of it must not take that
 * place again, which may be another connection's by then. */
static void a_connection_that_ended_stays_so(void **state)
{
    struct wpk_net_server *server = *state;
    assert_true(wpk_net_peer_begin_end(server->peers[0]));
    assert_int_equal(wpk_admission_count(server->admission), PEERS - 1);
    wpk_admission_leave(server->admission, 0);
    wpk_net_peer_heard(server->peers[0]);
    wpk_net_peer_took(server->peers[0]);
    assert_int_equal(wpk_admission_count_in(server->admission, WPK_CONNECTION_READING), PEERS - 1);
}

/* One that waits for the owner has no deadline; all others here are overdue. */
static void a_connection_in_line_is_not_silent(void **state)
{
    struct wpk_net_server *server = *state;
    assert_true(admit(server, 0, WPK_NET_BYTES_MAX));
    assert_false(admit(server, 1, HALF));
    assert_int_equal(wpk_admission_expire(server->admission, UINT64_MAX), PEERS - 1);
    assert_int_equal(server->peers[0]->standing, WPK_NET_DEAD);
    assert_int_equal(server->peers[1]->standing, WPK_NET_WAITING);
}

/* As if 192 connections of 256 descriptors were open, and the library were behind. */
static void freed_connections_count_until_they_are_counted(void **state)
{
    struct wpk_net_server *server = *state;
    server->descriptor_max = 192;
    server->descriptors = 192;
    server->bytes = 100;
    for (int i = 0; i < 64; i++) {
        wpk_net_peers_release(server, i == 0 ? 100 : 0);
        assert_int_equal(server->descriptors, 191);
        server->descriptors++; /* another one comes */
    }
    assert_int_equal(server->bytes, 0);
    wpk_net_peers_release(server, 0); /* all of those may still be open, so it looks */
    assert_int_equal(server->freed, 0);
    assert_in_range(server->descriptors, 3, 100);
    assert_in_range(server->descriptor_max, 193, UINT64_MAX);
    server->descriptors = 100; /* where there is room, nothing has to be counted */
    for (int i = 0; i < 70; i++) {
        wpk_net_peers_release(server, 0);
    }
    assert_int_equal(server->descriptors, 36);
    assert_int_equal(server->freed, 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_requests_go_on_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_largest_request_has_room_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_connection_that_ends_leaves_the_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_connection_that_ended_stays_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_connection_in_line_is_not_silent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(freed_connections_count_until_they_are_counted, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
