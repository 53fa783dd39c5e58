/* SPDX-License-Identifier: Apache-2.0 */
/* Connections are socket pairs: that one was ended is seen at the other end. */
#include "coordinator/http/http_admission.h"

#include "common/clock.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define S WPK_NS_PER_S
#define MAX 8
#define OF_ONE_MAX 6

struct client {
    int fd; /* ours */
    int served_fd;
    uint32_t number;
};

static struct wpk_http_admission *make(void)
{
    struct wpk_http_admission *admission = NULL;
    assert_int_equal(wpk_http_admission_new(MAX, OF_ONE_MAX, &admission), WPK_OK);
    return admission;
}

static enum wpk_http_verdict try_admit(struct wpk_http_admission *admission, uint32_t address,
                                       uint64_t deadline_ns, struct client *client)
{
    struct wpk_http_address key = {{0}};
    int fds[2];
    memcpy(key.bytes + 12, &address, sizeof address);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    client->fd = fds[0];
    client->served_fd = fds[1];
    enum wpk_http_verdict verdict =
        wpk_http_admission_admit(admission, fds[1], &key, deadline_ns, &client->number);
    if (verdict != WPK_HTTP_ADMITTED) {
        close(fds[0]);
        close(fds[1]);
    }
    return verdict;
}

static struct client admit(struct wpk_http_admission *admission, uint32_t address,
                           uint64_t deadline_ns)
{
    struct client client;
    assert_int_equal(try_admit(admission, address, deadline_ns, &client), WPK_HTTP_ADMITTED);
    assert_int_equal(wpk_http_admission_find(admission, client.served_fd), client.number);
    return client;
}

static bool was_ended(const struct client *client)
{
    char byte;
    return recv(client->fd, &byte, 1, 0) == 0;
}

static void leave(struct wpk_http_admission *admission, struct client *client)
{
    wpk_http_admission_leave(admission, client->number);
    assert_int_equal(wpk_http_admission_find(admission, client->served_fd), WPK_HTTP_NOBODY);
    close(client->fd);
    close(client->served_fd);
}

static void each_phase_has_its_deadline(void **state)
{
    (void)state;
    struct wpk_http_admission *a = make();
    struct client early = admit(a, 1, 10 * S);
    struct client late = admit(a, 1, 20 * S);
    struct client waits = admit(a, 1, 10 * S);
    assert_true(wpk_http_admission_mark(a, waits.number, WPK_HTTP_SERVING, false, 0));
    assert_int_equal(wpk_http_admission_expire(a, 10 * S), 0);
    assert_int_equal(wpk_http_admission_expire(a, 11 * S), 1);
    assert_true(was_ended(&early));
    assert_false(was_ended(&late));
    assert_false(was_ended(&waits));
    assert_int_equal(wpk_http_admission_count(a), 2);
    /* What it sends now is not taken. */
    assert_false(wpk_http_admission_mark(a, early.number, WPK_HTTP_READING, true, 30 * S));
    assert_true(wpk_http_admission_mark(a, late.number, WPK_HTTP_IDLE, true, 30 * S));
    assert_int_equal(wpk_http_admission_expire(a, 29 * S), 0);
    assert_true(wpk_http_admission_mark(a, waits.number, WPK_HTTP_SENDING, true, 31 * S));
    assert_int_equal(wpk_http_admission_count_in(a, WPK_HTTP_SENDING), 1);
    assert_int_equal(wpk_http_admission_expire(a, 100 * S), 2);
    leave(a, &early);
    leave(a, &late);
    leave(a, &waits);
    assert_int_equal(wpk_http_admission_count(a), 0);
    wpk_http_admission_free(a);
}

/* When it is full: unknown ones go, then idle ones, each time the earliest; who waits stays. */
static void who_goes_when_it_is_full(void **state)
{
    (void)state;
    struct wpk_http_admission *a = make();
    struct client c[MAX];
    struct client more[MAX];
    for (uint32_t i = 0; i < MAX; i++) {
        c[i] = admit(a, 100 + i, (50 - i) * S);
    }
    assert_true(wpk_http_admission_mark(a, c[0].number, WPK_HTTP_SERVING, false, 0));
    assert_true(wpk_http_admission_mark(a, c[1].number, WPK_HTTP_READING, true, 1 * S));
    assert_true(wpk_http_admission_mark(a, c[2].number, WPK_HTTP_SENDING, true, 2 * S));
    assert_true(wpk_http_admission_mark(a, c[3].number, WPK_HTTP_IDLE, true, 9 * S));
    assert_true(wpk_http_admission_mark(a, c[4].number, WPK_HTTP_IDLE, true, 8 * S));
    static const int order[] = {7, 6, 5, 4, 3, 1, 2};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        more[i] = admit(a, 200 + (uint32_t)i, 1000 * S);
        /* It is in nobody's way: it waits for us. */
        assert_true(wpk_http_admission_mark(a, more[i].number, WPK_HTTP_SERVING, true, 0));
        if (!was_ended(&c[order[i]])) {
            fail_msg("%d was not ended", order[i]);
        }
        assert_int_equal(wpk_http_admission_count(a), MAX);
    }
    assert_false(was_ended(&c[0]));
    struct client last;
    assert_int_equal(try_admit(a, 300, 1000 * S, &last), WPK_HTTP_REFUSED);
    assert_int_equal(wpk_http_admission_yield(a), WPK_HTTP_REFUSED);
    for (uint32_t i = 0; i < MAX; i++) {
        leave(a, &c[i]);
    }
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        leave(a, &more[i]);
    }
    wpk_http_admission_free(a);
}

/* When it is full, or one address has its part: whose request lies here unread does not go, others
 * go first; when the first in turn are all so, whoever comes waits until we have read. */
static void the_unread_are_spared(void **state)
{
    (void)state;
    struct wpk_http_admission *a = make();
    struct client c[MAX];
    struct client more[3];
    char byte;
    for (uint32_t i = 0; i < MAX; i++) {
        c[i] = admit(a, i < OF_ONE_MAX ? 1 : 100 + i, (10 + i) * S);
    }
    for (uint32_t i = 0; i < MAX; i++) {
        if (i != 2 && i != OF_ONE_MAX) {
            assert_int_equal(send(c[i].fd, "G", 1, 0), 1);
        }
    }
    more[0] = admit(a, 1, 100 * S);
    assert_true(was_ended(&c[2]));
    assert_int_equal(send(more[0].fd, "G", 1, 0), 1);
    assert_int_equal(try_admit(a, 1, 100 * S, &more[1]), WPK_HTTP_LATER);
    more[1] = admit(a, 200, 100 * S);
    assert_true(was_ended(&c[OF_ONE_MAX]));
    assert_int_equal(send(more[1].fd, "G", 1, 0), 1);
    assert_int_equal(try_admit(a, 201, 100 * S, &more[2]), WPK_HTTP_LATER);
    assert_int_equal(recv(c[1].served_fd, &byte, 1, 0), 1); /* it is read, and has more to say */
    more[2] = admit(a, 201, 100 * S);
    assert_true(was_ended(&c[1]));
    assert_int_equal(send(more[2].fd, "G", 1, 0), 1);
    assert_int_equal(wpk_http_admission_yield(a), WPK_HTTP_LATER); /* for a descriptor, too */
    assert_int_equal(recv(c[0].served_fd, &byte, 1, 0), 1);
    assert_int_equal(wpk_http_admission_yield(a), WPK_HTTP_ADMITTED);
    assert_true(was_ended(&c[0]));
    for (uint32_t i = 0; i < MAX; i++) {
        leave(a, &c[i]);
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        leave(a, &more[i]);
    }
    wpk_http_admission_free(a);
}

static void one_address_has_a_part(void **state)
{
    (void)state;
    struct wpk_http_admission *a = make();
    struct client greedy[OF_ONE_MAX + 2];
    struct client other = admit(a, 2, 1 * S); /* the earliest deadline of all */
    for (uint32_t i = 0; i < OF_ONE_MAX + 2; i++) {
        greedy[i] = admit(a, 1, (10 + i) * S);
    }
    assert_true(was_ended(&greedy[0]));
    assert_true(was_ended(&greedy[1]));
    assert_false(was_ended(&greedy[2]));
    assert_false(was_ended(&other));
    assert_int_equal(wpk_http_admission_count(a), OF_ONE_MAX + 1);
    for (uint32_t i = 0; i < OF_ONE_MAX + 2; i++) {
        leave(a, &greedy[i]);
    }
    struct client again = admit(a, 1, 1 * S);
    leave(a, &again);
    leave(a, &other);
    wpk_http_admission_free(a);
}

/* Whoever was ended takes room until he has left. */
static void those_that_end_are_bounded(void **state)
{
    (void)state;
    struct wpk_http_admission *a = make();
    static struct client c[MAX + WPK_HTTP_ENDING_MAX];
    struct client more;
    for (uint32_t i = 0; i < MAX + WPK_HTTP_ENDING_MAX; i++) {
        c[i] = admit(a, i, (1 + i) * S);
    }
    assert_int_equal(try_admit(a, 5000, 1 * S, &more), WPK_HTTP_LATER);
    leave(a, &c[0]);
    more = admit(a, 5000, 1 * S);
    leave(a, &more);
    for (uint32_t i = 1; i < MAX + WPK_HTTP_ENDING_MAX; i++) {
        leave(a, &c[i]);
    }
    assert_int_equal(wpk_http_admission_count(a), 0);
    wpk_http_admission_free(a);
}

static void the_last_answer_and_memory(void **state)
{
    (void)state;
    struct wpk_http_admission *a = make();
    struct client c = admit(a, 1, 1 * S);
    assert_false(wpk_http_admission_is_last(a, c.number));
    wpk_http_admission_dismiss(a, c.number);
    assert_true(wpk_http_admission_mark(a, c.number, WPK_HTTP_SERVING, true, 0));
    assert_true(wpk_http_admission_is_last(a, c.number));
    leave(a, &c);
    c = admit(a, 1, 1 * S);
    assert_false(wpk_http_admission_is_last(a, c.number));
    leave(a, &c);
    size_t large = WPK_HTTP_HELD_MAX - WPK_HTTP_SMALL_MAX;
    size_t more = WPK_HTTP_SMALL_MAX + 1;
    size_t small = WPK_HTTP_SMALL_MAX;
    assert_true(wpk_http_admission_hold(a, &large));
    assert_false(wpk_http_admission_hold(a, &more));
    assert_true(wpk_http_admission_hold(a, &small));
    assert_int_equal(small, 0);
    wpk_http_admission_release(a, large);
    assert_true(wpk_http_admission_hold(a, &more));
    assert_int_equal(more, WPK_HTTP_SMALL_MAX + 1);
    wpk_http_admission_free(a);
    wpk_http_admission_free(NULL);
}

struct traffic {
    struct wpk_http_admission *admission;
    atomic_bool ended;
};

static void *expire_on(void *user)
{
    struct traffic *traffic = user;
    while (!atomic_load(&traffic->ended)) {
        wpk_http_admission_expire(traffic->admission, 5 * S);
        (void)wpk_http_admission_yield(traffic->admission);
    }
    return NULL;
}

/* A mark that says yes is kept: nobody ends it afterwards, until it is the client's turn. */
static void marks_beside_endings(void **state)
{
    (void)state;
    struct traffic traffic = {.admission = make()};
    pthread_t thread;
    int served = 0;
    assert_int_equal(pthread_create(&thread, NULL, expire_on, &traffic), 0);
    for (int i = 0; i < 3000; i++) {
        struct client c = admit(traffic.admission, (uint32_t)i % 7, 10 * S);
        if (wpk_http_admission_mark(traffic.admission, c.number, WPK_HTTP_SERVING, false, 0)) {
            served++;
            assert_false(was_ended(&c));
        } else {
            struct pollfd end = {.fd = c.fd, .events = POLLIN}; /* it may be under way */
            assert_int_equal(poll(&end, 1, 5000), 1);
            assert_true(was_ended(&c));
        }
        leave(traffic.admission, &c);
    }
    atomic_store(&traffic.ended, true);
    pthread_join(thread, NULL);
    assert_true(served > 0);
    assert_int_equal(wpk_http_admission_count(traffic.admission), 0);
    wpk_http_admission_free(traffic.admission);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_phase_has_its_deadline), cmocka_unit_test(who_goes_when_it_is_full),
        cmocka_unit_test(one_address_has_a_part),      cmocka_unit_test(those_that_end_are_bounded),
        cmocka_unit_test(the_last_answer_and_memory),  cmocka_unit_test(marks_beside_endings),
        cmocka_unit_test(the_unread_are_spared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
