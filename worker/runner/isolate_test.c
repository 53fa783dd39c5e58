/* SPDX-License-Identifier: Apache-2.0 */
/* Rights that were given up cannot be regained, so each case is a child process. */
#include "worker/runner/runner_child.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool in_child(bool (*holds)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(holds() ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool is_refused(int domain, int type)
{
    errno = 0;
    return socket(domain, type, 0) < 0 && errno == EACCES;
}

static bool has_sockets(void)
{
    return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 && socket(AF_INET, SOCK_STREAM, 0) >= 0;
}

static bool loses_sockets(void)
{
    return wpk_isolate_from_network() && is_refused(AF_INET, SOCK_STREAM) &&
           is_refused(AF_INET, SOCK_DGRAM) && is_refused(AF_INET6, SOCK_STREAM) &&
           is_refused(AF_UNIX, SOCK_STREAM) && is_refused(AF_NETLINK, SOCK_RAW);
}

static bool loses_rings(void)
{
    char parameters[512] = {0};
    bool isolated = wpk_isolate_from_network();
    errno = 0;
    return isolated && syscall(SYS_io_uring_setup, 1, parameters) < 0 && errno == EACCES;
}

static bool below_loses_sockets(void)
{
    int status = 0;
    bool isolated = wpk_isolate_from_network();
    pid_t pid = fork();
    if (pid == 0) {
        _exit(is_refused(AF_INET, SOCK_STREAM) && is_refused(AF_UNIX, SOCK_STREAM) ? 0 : 1);
    }
    return isolated && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool keeps_pairs(void)
{
    int pair[2];
    return wpk_isolate_from_network() && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 &&
           write(pair[0], "x", 1) == 1;
}

static void nobody_gets_a_socket(void **state)
{
    (void)state;
    assert_true(in_child(has_sockets));
    assert_true(in_child(loses_sockets));
    assert_true(in_child(loses_rings));
    assert_true(in_child(below_loses_sockets));
}

static void processes_still_talk_to_each_other(void **state)
{
    (void)state;
    assert_true(in_child(keeps_pairs));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_gets_a_socket),
        cmocka_unit_test(processes_still_talk_to_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
