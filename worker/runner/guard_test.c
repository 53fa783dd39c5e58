/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runner/subject.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* True if writing there kills the process. Tried in a child. */
static bool write_kills(volatile unsigned char *at)
{
    pid_t pid = fork();
    if (pid == 0) {
        /* A sanitizer would report and exit. */
        signal(SIGSEGV, SIG_DFL);
        *at = 1;
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void test_overrun_and_underrun(void **state)
{
    (void)state;
    static struct wpk_guard end, start;
    const size_t size = 64 * 100 - 12;
    wpk_guard_init(&end, WPK_GUARD_END);
    wpk_guard_init(&start, WPK_GUARD_START);
    unsigned char *a = end.memory.take(end.memory.user, size, 4);
    unsigned char *b = start.memory.take(start.memory.user, size, 4);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal((uintptr_t)a % 64, 12);
    assert_int_equal((uintptr_t)b % 64, 0);
    assert_true(write_kills(a + size));
    assert_true(write_kills(b - 1));
    assert_false(write_kills(a + size - 1));
    assert_false(write_kills(b));
    assert_string_equal(wpk_guard_explain(&end, a + size), "just past a buffer");
    assert_string_equal(wpk_guard_explain(&start, b - 1), "just before a buffer");
    assert_string_equal(wpk_guard_explain(&start, NULL), "nowhere near a buffer");
    wpk_guard_fini(&end);
    wpk_guard_fini(&start);
}

/* Wherever a buffer ends in its page: what is shifted has no more alignment than its elements. */
static void test_alignment(void **state)
{
    (void)state;
    static struct wpk_guard guard;
    for (size_t size = 0; size < 4200; size += 4) {
        size_t element = (size_t)1 << size / 4 % 4;
        wpk_guard_init(&guard, WPK_GUARD_ALIGNED);
        unsigned char *aligned = guard.memory.take(guard.memory.user, size, element);
        guard.placement = WPK_GUARD_SHIFTED;
        unsigned char *shifted = guard.memory.take(guard.memory.user, size, element);
        assert_int_equal((uintptr_t)aligned % 64, 0);
        assert_int_equal((uintptr_t)shifted % 64, element);
        memset(aligned, 1, size);
        memset(shifted, 1, size);
        assert_int_equal(wpk_guard_check(&guard, NULL), WPK_OK);
        wpk_guard_fini(&guard);
    }
}

static void test_slack_is_watched(void **state)
{
    (void)state;
    static const enum wpk_guard_placement placements[] = {WPK_GUARD_ALIGNED, WPK_GUARD_START,
                                                          WPK_GUARD_SHIFTED};
    for (int p = 0; p < 3; p++) {
        bool at_start = placements[p] == WPK_GUARD_START;
        static struct wpk_guard guard;
        wpk_guard_init(&guard, placements[p]);
        unsigned char *data = guard.memory.take(guard.memory.user, 1001, 1);
        for (int i = 0; i < 1001; i++) {
            assert_int_equal(data[i], 0);
            data[i] = 0xff;
        }
        assert_int_equal(wpk_guard_check(&guard, NULL), WPK_OK);
        data[1001] ^= 1;
        struct wpk_diag diag = {0};
        assert_int_equal(wpk_guard_check(&guard, &diag), WPK_ECORRUPT);
        assert_non_null(strstr(diag.text, "past"));
        data[1001] ^= 1;
        if (!at_start) {
            data[-1] ^= 1;
            assert_int_equal(wpk_guard_check(&guard, NULL), WPK_ECORRUPT);
        }
        guard.memory.give(guard.memory.user, data);
        assert_int_equal(wpk_guard_check(&guard, NULL), WPK_OK);
        wpk_guard_fini(&guard);
    }
}

static void test_limits(void **state)
{
    (void)state;
    static struct wpk_guard guard;
    wpk_guard_init(&guard, WPK_GUARD_END);
    assert_null(guard.memory.take(guard.memory.user, SIZE_MAX, 1));
    void *last = NULL;
    for (int i = 0; i < WPK_GUARD_BLOCKS_MAX; i++) {
        last = guard.memory.take(guard.memory.user, 0, 8);
        assert_non_null(last);
    }
    assert_null(guard.memory.take(guard.memory.user, 1, 1));
    guard.memory.give(guard.memory.user, last);
    assert_non_null(guard.memory.take(guard.memory.user, 1, 1));
    guard.memory.give(guard.memory.user, NULL);
    wpk_guard_fini(&guard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overrun_and_underrun),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_slack_is_watched),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
