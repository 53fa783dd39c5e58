/* SPDX-License-Identifier: Apache-2.0 */
#include "common/notify.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char name[64]; /* as NOTIFY_SOCKET has it */
static int manager = -1;

static void listen_at(char first)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(name, sizeof name, "%ctmp/wpk-notify-%d", first, (int)getpid());
    memcpy(address.sun_path, name, strlen(name) + 1);
    address.sun_path[0] = first == '@' ? '\0' : '/';
    size_t size = offsetof(struct sockaddr_un, sun_path) + strlen(name) + (first == '/');
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_true(manager >= 0);
    assert_int_equal(bind(manager, (struct sockaddr *)&address, (socklen_t)size), 0);
}

static void stop_listening(void)
{
    close(manager);
    if (name[0] == '/') {
        unlink(name);
    }
}

static void expect_word(const char *expected)
{
    char text[2048] = "";
    ssize_t size = recv(manager, text, sizeof text - 1, 0);
    assert_true(size > 0);
    assert_string_equal(text, expected);
}

static void words_arrive(void **state)
{
    static const char kinds[] = {'/', '@'};
    (void)state;
    for (size_t i = 0; i < sizeof kinds; i++) {
        struct wpk_notify notify = {0};
        listen_at(kinds[i]);
        struct wpk_notify_environment environment = {.notify_socket = name};
        assert_int_equal(wpk_notify_open(&environment, &notify, NULL), WPK_OK);
        assert_int_equal(notify.watchdog_ns, 0);
        wpk_notify_send(&notify, "READY=1\nSTATUS=%d jobs", 3);
        expect_word("READY=1\nSTATUS=3 jobs");
        char longer[3000];
        memset(longer, 'x', sizeof longer - 1);
        longer[sizeof longer - 1] = '\0';
        wpk_notify_send(&notify, "STATUS=%s", longer);
        char text[4096];
        assert_int_equal(recv(manager, text, sizeof text, 0), 1023);
        stop_listening();
        wpk_notify_send(&notify, "STOPPING=1"); /* nobody hears: nothing happens */
        wpk_notify_close(&notify);
        assert_false(notify.open);
        wpk_notify_send(&notify, "STOPPING=1");
    }
}

/* A manager that does not read must not stop us. */
static void silence_is_not_waited_for(void **state)
{
    (void)state;
    struct wpk_notify notify = {0};
    listen_at('@');
    struct wpk_notify_environment environment = {.notify_socket = name};
    assert_int_equal(wpk_notify_open(&environment, &notify, NULL), WPK_OK);
    for (int i = 0; i < 100000; i++) {
        wpk_notify_send(&notify, "WATCHDOG=1");
    }
    wpk_notify_close(&notify);
    stop_listening();
}

static void environment_is_checked(void **state)
{
    char too_long[120] = "/";
    memset(too_long + 1, 'x', sizeof too_long - 2);
    const char *const wrong[] = {"relative", "@", "/", too_long};
    (void)state;
    struct wpk_notify notify = {0};
    struct wpk_diag diag = {0};
    char pid[32];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    struct wpk_notify_environment none = {0};
    assert_int_equal(wpk_notify_open(&none, &notify, NULL), WPK_OK);
    assert_false(notify.open);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct wpk_notify_environment bad = {.notify_socket = wrong[i]};
        assert_int_equal(wpk_notify_open(&bad, &notify, &diag), WPK_EINVAL);
    }
    struct wpk_notify_environment ours = {
        .notify_socket = "/x", .watchdog_usec = "30000000", .watchdog_pid = pid};
    assert_int_equal(wpk_notify_open(&ours, &notify, NULL), WPK_OK);
    assert_int_equal(notify.watchdog_ns, 30000000000);
    wpk_notify_close(&notify);
    struct wpk_notify_environment other = {
        .notify_socket = "/x", .watchdog_usec = "30000000", .watchdog_pid = "1"};
    assert_int_equal(wpk_notify_open(&other, &notify, NULL), WPK_OK);
    assert_int_equal(notify.watchdog_ns, 0);
    wpk_notify_close(&notify);
    struct wpk_notify_environment odd = {.notify_socket = "/x", .watchdog_usec = "soon"};
    assert_int_equal(wpk_notify_open(&odd, &notify, NULL), WPK_EINVAL);
}

static void descriptors_are_taken(void **state)
{
    (void)state;
    char pid[32];
    uint32_t count = 7;
    struct wpk_diag diag = {0};
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    struct wpk_notify_environment none = {0};
    assert_int_equal(wpk_notify_take_fds(&none, 8, &count, NULL), WPK_OK);
    assert_int_equal(count, 0);
    struct wpk_notify_environment other = {.listen_pid = "1", .listen_fds = "2"};
    assert_int_equal(wpk_notify_take_fds(&other, 8, &count, NULL), WPK_OK);
    assert_int_equal(count, 0);
    struct wpk_notify_environment many = {.listen_pid = pid, .listen_fds = "9"};
    assert_int_equal(wpk_notify_take_fds(&many, 8, &count, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "at most 8"));

    int saved = dup(WPK_NOTIFY_FD_FIRST);
    assert_int_equal(dup2(STDERR_FILENO, WPK_NOTIFY_FD_FIRST), WPK_NOTIFY_FD_FIRST);
    struct wpk_notify_environment ours = {.listen_pid = pid, .listen_fds = "1"};
    assert_int_equal(wpk_notify_take_fds(&ours, 8, &count, NULL), WPK_OK);
    assert_int_equal(count, 1);
    assert_int_equal(fcntl(WPK_NOTIFY_FD_FIRST, F_GETFD), FD_CLOEXEC);
    close(WPK_NOTIFY_FD_FIRST);
    diag = (struct wpk_diag){0};
    assert_int_equal(wpk_notify_take_fds(&ours, 8, &count, &diag), WPK_EINVAL);
    assert_non_null(strstr(diag.text, "not open"));
    if (saved >= 0) {
        dup2(saved, WPK_NOTIFY_FD_FIRST);
        close(saved);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_arrive),
        cmocka_unit_test(silence_is_not_waited_for),
        cmocka_unit_test(environment_is_checked),
        cmocka_unit_test(descriptors_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
