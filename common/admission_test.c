/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: connections that are admitted, and those that are closed, and when, without a socket. */
#include "common/admission.h"

#include "common/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define S WPK_NS_PER_S
#define MAX 8
#define OF_ONE_MAX 6

struct client {
    uint32_t number;
};

/* By number. */
static atomic_bool ended[MAX + WPK_ADMISSION_ENDING_MAX];
static atomic_bool spared[MAX + WPK_ADMISSION_ENDING_MAX];
static atomic_uint overdue_count;

static bool is_spared(void *user, uint32_t number)
{
    (void)user;
    return atomic_load(&spared[number]);
}

static void end(void *user, uint32_t number, bool is_overdue)
{
    (void)user;
    atomic_fetch_add(&overdue_count, is_overdue);
    assert_false(atomic_exchange(&ended[number], true));
}

static struct wpk_admission *make_with(struct wpk_admission_options options)
{
    struct wpk_admission *admission = NULL;
    atomic_store(&overdue_count, 0);
    for (int i = 0; i < MAX + WPK_ADMISSION_ENDING_MAX; i++) {
        atomic_store(&ended[i], false);
        atomic_store(&spared[i], false);
    }
    options.end = end;
    assert_int_equal(wpk_admission_new(&options, &admission), WPK_OK);
    return admission;
}

static struct wpk_admission *make(void)
{
    return make_with((struct wpk_admission_options){
        .all_max = MAX, .of_source_max = OF_ONE_MAX, .is_spared = is_spared});
}

static enum wpk_admission_verdict try_admit(struct wpk_admission *admission, uint32_t address,
                                            uint64_t deadline_ns, struct client *client)
{
    struct wpk_source key = {{0}};
    memcpy(key.bytes + 12, &address, sizeof address);
    return wpk_admission_admit(admission, &key, deadline_ns, &client->number);
}

static struct client admit(struct wpk_admission *admission, uint32_t address, uint64_t deadline_ns)
{
    struct client client;
    assert_int_equal(try_admit(admission, address, deadline_ns, &client), WPK_ADMITTED);
    return client;
}

static bool was_ended(const struct client *client)
{
    return atomic_load(&ended[client->number]);
}

static void leave(struct wpk_admission *admission, struct client *client)
{
    wpk_admission_leave(admission, client->number);
    atomic_store(&ended[client->number], false);
    atomic_store(&spared[client->number], false);
}

static bool is_same(const uint8_t a[16], size_t a_size, const uint8_t b[16], size_t b_size)
{
    struct wpk_source first = wpk_source_of(a, a_size);
    struct wpk_source second = wpk_source_of(b, b_size);
    return memcmp(&first, &second, sizeof first) == 0;
}

static void a_source_is_an_address_or_a_network(void **state)
{
    static const uint8_t v4[16] = {192, 0, 2, 1};
    static const uint8_t other_v4[16] = {192, 0, 2, 2};
    static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1};
    static const uint8_t v6[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 7, [15] = 1};
    static const uint8_t same_v6[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 7, [15] = 2};
    static const uint8_t other_v6[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 8, [15] = 1};
    (void)state;
    assert_false(is_same(v4, 4, other_v4, 4));
    assert_true(is_same(v4, 4, mapped, 16));
    assert_false(is_same(other_v4, 4, mapped, 16));
    assert_true(is_same(v6, 16, same_v6, 16));
    assert_false(is_same(v6, 16, other_v6, 16));
}

static void each_phase_has_its_deadline(void **state)
{
    (void)state;
    struct wpk_admission *a = make();
    struct client early = admit(a, 1, 10 * S);
    struct client late = admit(a, 1, 20 * S);
    struct client waits = admit(a, 1, 10 * S);
    assert_true(wpk_admission_mark(a, waits.number, WPK_CONNECTION_SERVING, false, 0));
    assert_int_equal(wpk_admission_expire(a, 10 * S), 0);
    assert_int_equal(wpk_admission_expire(a, 11 * S), 1);
    assert_true(was_ended(&early));
    assert_false(was_ended(&late));
    assert_false(was_ended(&waits));
    assert_int_equal(wpk_admission_count(a), 2);
    /* A request of a connection that was ended is not taken. */
    assert_false(wpk_admission_mark(a, early.number, WPK_CONNECTION_READING, true, 30 * S));
    assert_true(wpk_admission_mark(a, late.number, WPK_CONNECTION_IDLE, true, 30 * S));
    assert_int_equal(wpk_admission_expire(a, 29 * S), 0);
    assert_true(wpk_admission_mark(a, waits.number, WPK_CONNECTION_SENDING, true, 31 * S));
    assert_int_equal(wpk_admission_count_in(a, WPK_CONNECTION_SENDING), 1);
    assert_int_equal(wpk_admission_expire(a, 100 * S), 2);
    leave(a, &early);
    leave(a, &late);
    leave(a, &waits);
    assert_int_equal(wpk_admission_count(a), 0);
    wpk_admission_free(a);
}

/* When it is full: unknown ones go, then idle ones, each time the earliest; who waits stays. */
static void who_goes_when_it_is_full(void **state)
{
    (void)state;
    struct wpk_admission *a = make();
    struct client c[MAX];
    struct client more[MAX];
    for (uint32_t i = 0; i < MAX; i++) {
        c[i] = admit(a, 100 + i, (50 - i) * S);
    }
    assert_true(wpk_admission_mark(a, c[0].number, WPK_CONNECTION_SERVING, false, 0));
    assert_true(wpk_admission_mark(a, c[1].number, WPK_CONNECTION_READING, true, 1 * S));
    assert_true(wpk_admission_mark(a, c[2].number, WPK_CONNECTION_SENDING, true, 2 * S));
    assert_true(wpk_admission_mark(a, c[3].number, WPK_CONNECTION_IDLE, true, 9 * S));
    assert_true(wpk_admission_mark(a, c[4].number, WPK_CONNECTION_IDLE, true, 8 * S));
    static const int order[] = {7, 6, 5, 4, 3, 1, 2};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        more[i] = admit(a, 200 + (uint32_t)i, 1000 * S);
        /* It is in nobody's way: it waits for us. */
        assert_true(wpk_admission_mark(a, more[i].number, WPK_CONNECTION_SERVING, true, 0));
        if (!was_ended(&c[order[i]])) {
            fail_msg("%d was not ended", order[i]);
        }
        assert_int_equal(wpk_admission_count(a), MAX);
    }
    assert_false(was_ended(&c[0]));
    struct client last;
    assert_int_equal(try_admit(a, 300, 1000 * S, &last), WPK_REFUSED);
    assert_int_equal(wpk_admission_yield(a), WPK_REFUSED);
    for (uint32_t i = 0; i < MAX; i++) {
        leave(a, &c[i]);
    }
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        leave(a, &more[i]);
    }
    wpk_admission_free(a);
}

/* When it is full, or one address has its part: whose request lies here unread does not go, others
 * go first; when the first in turn are all so, whoever comes waits until we have read. */
static void the_unread_are_spared(void **state)
{
    (void)state;
    struct wpk_admission *a = make();
    struct client c[MAX];
    struct client more[3];
    for (uint32_t i = 0; i < MAX; i++) {
        c[i] = admit(a, i < OF_ONE_MAX ? 1 : 100 + i, (10 + i) * S);
    }
    for (uint32_t i = 0; i < MAX; i++) {
        if (i != 2 && i != OF_ONE_MAX) {
            atomic_store(&spared[c[i].number], true);
        }
    }
    more[0] = admit(a, 1, 100 * S);
    assert_true(was_ended(&c[2]));
    atomic_store(&spared[more[0].number], true);
    assert_int_equal(try_admit(a, 1, 100 * S, &more[1]), WPK_LATER);
    more[1] = admit(a, 200, 100 * S);
    assert_true(was_ended(&c[OF_ONE_MAX]));
    atomic_store(&spared[more[1].number], true);
    assert_int_equal(try_admit(a, 201, 100 * S, &more[2]), WPK_LATER);
    atomic_store(&spared[c[1].number], false); /* it is read, and has more to say */
    more[2] = admit(a, 201, 100 * S);
    assert_true(was_ended(&c[1]));
    atomic_store(&spared[more[2].number], true);
    assert_int_equal(wpk_admission_yield(a), WPK_LATER); /* for a descriptor, too */
    atomic_store(&spared[c[0].number], false);
    assert_int_equal(wpk_admission_yield(a), WPK_ADMITTED);
    assert_true(was_ended(&c[0]));
    for (uint32_t i = 0; i < MAX; i++) {
        leave(a, &c[i]);
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        leave(a, &more[i]);
    }
    wpk_admission_free(a);
}

static void one_address_has_a_part(void **state)
{
    (void)state;
    struct wpk_admission *a = make();
    struct client greedy[OF_ONE_MAX + 2];
    struct client other = admit(a, 2, 1 * S); /* the earliest deadline of all */
    for (uint32_t i = 0; i < OF_ONE_MAX + 2; i++) {
        greedy[i] = admit(a, 1, (10 + i) * S);
    }
    assert_true(was_ended(&greedy[0]));
    assert_true(was_ended(&greedy[1]));
    assert_false(was_ended(&greedy[2]));
    assert_false(was_ended(&other));
    assert_int_equal(wpk_admission_count(a), OF_ONE_MAX + 1);
    for (uint32_t i = 0; i < OF_ONE_MAX + 2; i++) {
        leave(a, &greedy[i]);
    }
    struct client again = admit(a, 1, 1 * S);
    leave(a, &again);
    leave(a, &other);
    wpk_admission_free(a);
}

/* A connection that was ended takes room until it has left. */
static void those_that_end_are_bounded(void **state)
{
    (void)state;
    struct wpk_admission *a = make();
    static struct client c[MAX + WPK_ADMISSION_ENDING_MAX];
    struct client more;
    for (uint32_t i = 0; i < MAX + WPK_ADMISSION_ENDING_MAX; i++) {
        c[i] = admit(a, i, (1 + i) * S);
    }
    assert_int_equal(try_admit(a, 5000, 1 * S, &more), WPK_LATER);
    leave(a, &c[0]);
    more = admit(a, 5000, 1 * S);
    leave(a, &more);
    for (uint32_t i = 1; i < MAX + WPK_ADMISSION_ENDING_MAX; i++) {
        leave(a, &c[i]);
    }
    assert_int_equal(wpk_admission_count(a), 0);
    wpk_admission_free(a);
}

static void the_last_answer(void **state)
{
    (void)state;
    struct wpk_admission *a = make();
    struct client c = admit(a, 1, 1 * S);
    assert_false(wpk_admission_is_last(a, c.number));
    wpk_admission_dismiss(a, c.number);
    assert_true(wpk_admission_mark(a, c.number, WPK_CONNECTION_SERVING, true, 0));
    assert_true(wpk_admission_is_last(a, c.number));
    leave(a, &c);
    c = admit(a, 1, 1 * S);
    assert_false(wpk_admission_is_last(a, c.number));
    leave(a, &c);
    wpk_admission_free(a);
    wpk_admission_free(NULL);
}

struct traffic {
    struct wpk_admission *admission;
    atomic_bool ended;
};

static void *expire_on(void *user)
{
    struct traffic *traffic = user;
    while (!atomic_load(&traffic->ended)) {
        wpk_admission_expire(traffic->admission, 5 * S);
        (void)wpk_admission_yield(traffic->admission);
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
        if (wpk_admission_mark(traffic.admission, c.number, WPK_CONNECTION_SERVING, false, 0)) {
            served++;
            assert_false(was_ended(&c));
        } else {
            while (!was_ended(&c)) { /* it may be under way */
                usleep(100);
            }
        }
        leave(traffic.admission, &c);
    }
    atomic_store(&traffic.ended, true);
    pthread_join(thread, NULL);
    assert_true(served > 0);
    assert_int_equal(wpk_admission_count(traffic.admission), 0);
    wpk_admission_free(traffic.admission);
}

/* Where known ones stay: unknown ones have limits of their own, and the oldest makes room. */
static void the_oldest_unknown_makes_room(void **state)
{
    (void)state;
    struct wpk_admission *a = make_with((struct wpk_admission_options){.all_max = MAX,
                                                                       .of_source_max = 4,
                                                                       .unknown_max = 4,
                                                                       .unknown_of_source_max = 2,
                                                                       .known_stay = true});
    struct client known[3];
    struct client more;
    for (uint32_t i = 0; i < 3; i++) {
        known[i] = admit(a, 1, (1 + i) * S);
        assert_true(
            wpk_admission_mark(a, known[i].number, WPK_CONNECTION_READING, true, (1 + i) * S));
    }
    struct client first = admit(a, 1, 10 * S); /* the fourth of its address */
    struct client second = admit(a, 1, 11 * S);
    assert_true(was_ended(&first));
    struct client others[3] = {admit(a, 2, 5 * S), admit(a, 3, 6 * S), admit(a, 2, 7 * S)};
    struct client third = admit(a, 2, 8 * S); /* of its address, not the oldest of all */
    assert_true(was_ended(&others[0]));
    struct client local;
    assert_int_equal(wpk_admission_admit(a, NULL, 9 * S, &local.number), WPK_ADMITTED);
    assert_true(was_ended(&others[1])); /* the oldest of all */
    assert_false(was_ended(&second));
    assert_true(wpk_admission_mark(a, second.number, WPK_CONNECTION_READING, true, 100 * S));
    assert_int_equal(try_admit(a, 1, 10 * S, &more), WPK_REFUSED);
    assert_int_equal(wpk_admission_yield(a), WPK_ADMITTED);
    assert_true(was_ended(&others[2]));
    assert_int_equal(atomic_load(&overdue_count), 0);
    assert_int_equal(wpk_admission_expire(a, 4 * S), 3);
    assert_int_equal(atomic_load(&overdue_count), 3);
    wpk_admission_ended(a, third.number);
    assert_int_equal(wpk_admission_expire(a, 50 * S), 1);
    assert_true(was_ended(&local));
    assert_int_equal(wpk_admission_count(a), 1);
    wpk_admission_free(a);
}

/* A connection without a source is of no address, not even of the one whose bytes are all zero in
 * a network's half. */
static void those_without_a_source_are_of_none(void **state)
{
    static const uint8_t loopback[16] = {[15] = 1};
    struct wpk_source source = wpk_source_of(loopback, sizeof loopback);
    struct wpk_admission *a =
        make_with((struct wpk_admission_options){.all_max = MAX, .unknown_of_source_max = 2});
    struct client local[2];
    struct client remote;
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(wpk_admission_admit(a, NULL, (1 + i) * S, &local[i].number), WPK_ADMITTED);
    }
    assert_int_equal(wpk_admission_admit(a, &source, 9 * S, &remote.number), WPK_ADMITTED);
    assert_false(was_ended(&local[0]));
    assert_false(was_ended(&local[1]));
    wpk_admission_free(a);
}

static void the_smaller_limit_of_a_source_holds(void **state)
{
    (void)state;
    struct wpk_admission *a = make_with((struct wpk_admission_options){
        .all_max = MAX, .of_source_max = 2, .unknown_of_source_max = 4});
    struct client first = admit(a, 1, 1 * S);
    admit(a, 1, 2 * S);
    assert_false(was_ended(&first));
    admit(a, 1, 3 * S);
    assert_true(was_ended(&first));
    wpk_admission_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_source_is_an_address_or_a_network),
        cmocka_unit_test(each_phase_has_its_deadline),
        cmocka_unit_test(who_goes_when_it_is_full),
        cmocka_unit_test(one_address_has_a_part),
        cmocka_unit_test(those_that_end_are_bounded),
        cmocka_unit_test(the_last_answer),
        cmocka_unit_test(marks_beside_endings),
        cmocka_unit_test(the_unread_are_spared),
        cmocka_unit_test(the_oldest_unknown_makes_room),
        cmocka_unit_test(those_without_a_source_are_of_none),
        cmocka_unit_test(the_smaller_limit_of_a_source_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
