/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/engine/engine_state.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char name[64]; /* of this test's own: workers may be at work here */

static int choose_name(void **state)
{
    (void)state;
    snprintf(name, sizeof name, "test-%d", (int)getpid());
    return 0;
}

static bool becomes_readable(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    return poll(&polled, 1, 10000) == 1;
}

static void one_at_a_time(void **state)
{
    (void)state;
    struct wpk_device_lock a;
    struct wpk_device_lock b;
    wpk_device_lock_init(&a, name);
    wpk_device_lock_init(&b, name);
    assert_int_equal(wpk_device_lock_take(&a), WPK_OK);
    assert_int_equal(wpk_device_lock_take(&a), WPK_OK);
    assert_int_equal(wpk_device_lock_take(&b), WPK_EBUSY);
    int waiting = b.wait_fd;
    assert_true(waiting >= 0);
    assert_int_equal(wpk_device_lock_take(&b), WPK_EBUSY);
    assert_int_equal(b.wait_fd, waiting);
    wpk_device_lock_give(&a);
    assert_true(becomes_readable(b.wait_fd));
    assert_int_equal(wpk_device_lock_take(&b), WPK_OK);
    assert_int_equal(wpk_device_lock_take(&a), WPK_EBUSY);
    wpk_device_lock_give(&b);
    wpk_device_lock_give(&a); /* it waits no longer */
    assert_int_equal(a.wait_fd, -1);
    wpk_device_lock_give(&a);
}

static void another_device_is_another_lock(void **state)
{
    (void)state;
    char other_name[80];
    struct wpk_device_lock a;
    struct wpk_device_lock b;
    snprintf(other_name, sizeof other_name, "%s-other", name);
    wpk_device_lock_init(&a, name);
    wpk_device_lock_init(&b, other_name);
    assert_int_equal(wpk_device_lock_take(&a), WPK_OK);
    assert_int_equal(wpk_device_lock_take(&b), WPK_OK);
    wpk_device_lock_give(&a);
    wpk_device_lock_give(&b);
}

static void hold_for_ever(int ready_fd)
{
    struct wpk_device_lock lock;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nobody */
    wpk_device_lock_init(&lock, name);
    char held = wpk_device_lock_take(&lock) == WPK_OK;
    if (write(ready_fd, &held, 1) == 1) {
        pause();
    }
    _exit(0);
}

static void a_killed_holder_holds_nothing(void **state)
{
    (void)state;
    int ready[2];
    char held = 0;
    struct wpk_device_lock lock;
    wpk_device_lock_init(&lock, name);
    assert_int_equal(pipe(ready), 0);
    pid_t holder = fork();
    assert_true(holder >= 0);
    if (holder == 0) {
        hold_for_ever(ready[1]);
    }
    assert_int_equal(read(ready[0], &held, 1), 1);
    assert_true(held);
    assert_int_equal(wpk_device_lock_take(&lock), WPK_EBUSY);
    kill(holder, SIGKILL);
    assert_true(becomes_readable(lock.wait_fd));
    assert_int_equal(wpk_device_lock_take(&lock), WPK_OK);
    wpk_device_lock_give(&lock);
    waitpid(holder, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(another_device_is_another_lock),
        cmocka_unit_test(a_killed_holder_holds_nothing),
    };
    return cmocka_run_group_tests(tests, choose_name, NULL);
}
