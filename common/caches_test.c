/* SPDX-License-Identifier: Apache-2.0 */
/* That lines really leave the caches takes a clock to see: bench/cold.c does. */
#include "common/machine.h"

#include <sched.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_flush_covers_each_line_once(void **state)
{
    (void)state;
    static alignas(64) char data[1024];
    static const struct {
        size_t at, size, lines;
    } cases[] = {{0, 0, 0},  {0, 1, 1},    {0, 64, 1},  {0, 65, 2},   {63, 1, 1},
                 {63, 2, 2}, {1, 64, 2},   {32, 64, 2}, {32, 160, 3}, {0, 1024, 16},
                 {5, 0, 0},  {64, 128, 2}, {63, 66, 3}, {960, 64, 1}, {1, 1022, 16}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(wpk_caches_flush(data + cases[i].at, cases[i].size), cases[i].lines);
    }
}

static void test_flush_keeps_what_was_written(void **state)
{
    (void)state;
    static unsigned char data[100000];
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (unsigned char)(i * 7);
    }
    (void)wpk_caches_flush(data, sizeof(data));
    for (size_t i = 0; i < sizeof(data); i++) {
        assert_int_equal(data[i], (unsigned char)(i * 7));
    }
}

/* Streaming leaves the CPU affinity as it was, for the measurement that follows. */
static void test_streaming_leaves_the_affinity(void **state)
{
    (void)state;
    cpu_set_t before;
    cpu_set_t after;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(wpk_caches_stream(), WPK_OK);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

/* Of one cache: what sysconf adds up over a chip would take minutes to stream. */
static void test_sizes_grow_with_the_level(void **state)
{
    (void)state;
    int64_t l1 = wpk_caches_size(0, 1);
    int64_t l2 = wpk_caches_size(0, 2);
    int64_t l3 = wpk_caches_size(0, 3);
    assert_true(l1 >= 0 && l1 <= 1 << 20); /* a sandbox may hide them */
    assert_true(l2 == 0 || l2 >= l1);
    assert_true(l3 == 0 || l3 >= l2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flush_covers_each_line_once),
        cmocka_unit_test(test_flush_keeps_what_was_written),
        cmocka_unit_test(test_sizes_grow_with_the_level),
        cmocka_unit_test(test_streaming_leaves_the_affinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
