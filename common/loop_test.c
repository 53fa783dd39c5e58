/* SPDX-License-Identifier: Apache-2.0 */
#include "common/loop.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

struct seen {
    struct wpk_loop *loop;
    int count;
};

static void count_and_stop(void *user)
{
    struct seen *seen = user;
    seen->count++;
    wpk_loop_stop(seen->loop);
}

static void *wake_from_thread(void *user)
{
    struct seen *seen = user;
    wpk_loop_wake(seen->loop);
    return NULL;
}

static void wakes_from_another_thread(void **state)
{
    (void)state;
    struct seen seen = {0};
    assert_int_equal(wpk_loop_open(&seen.loop, NULL), WPK_OK);
    wpk_loop_on_wake(seen.loop, count_and_stop, &seen);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wake_from_thread, &seen), 0);
    wpk_loop_run(seen.loop);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen.count, 1);
    wpk_loop_close(seen.loop);
}

static void timer_is_replaced(void **state)
{
    (void)state;
    struct seen first = {0};
    struct seen second = {0};
    assert_int_equal(wpk_loop_open(&second.loop, NULL), WPK_OK);
    first.loop = second.loop;
    wpk_loop_set_timer(second.loop, 1, count_and_stop, &first);
    wpk_loop_set_timer(second.loop, UINT64_MAX, NULL, NULL);
    wpk_loop_set_timer(second.loop, 5, count_and_stop, &second);
    wpk_loop_run(second.loop);
    assert_int_equal(first.count, 0);
    assert_int_equal(second.count, 1);
    wpk_loop_close(second.loop);
}

static void signals_are_heard(void **state)
{
    (void)state;
    struct seen seen = {0};
    assert_int_equal(wpk_loop_open(&seen.loop, NULL), WPK_OK);
    assert_int_equal(wpk_loop_on_signal(seen.loop, SIGUSR1, count_and_stop, &seen), WPK_OK);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    wpk_loop_run(seen.loop);
    assert_int_equal(seen.count, 1);
    wpk_loop_close(seen.loop);
}

static void too_many_watches(void **state)
{
    (void)state;
    struct seen seen = {0};
    assert_int_equal(wpk_loop_open(&seen.loop, NULL), WPK_OK);
    for (int i = 0; i < WPK_LOOP_WATCHES_MAX; i++) {
        assert_int_equal(wpk_loop_on_signal(seen.loop, SIGUSR2, count_and_stop, &seen), WPK_OK);
    }
    assert_int_equal(wpk_loop_on_signal(seen.loop, SIGUSR2, count_and_stop, &seen), WPK_ENOSPC);
    wpk_loop_close(seen.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wakes_from_another_thread),
        cmocka_unit_test(timer_is_replaced),
        cmocka_unit_test(signals_are_heard),
        cmocka_unit_test(too_many_watches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
