/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_allocations_are_apart(void **state)
{
    (void)state;
    struct wpk_device_memory memory;
    uint64_t a = 0, b = 0;
    assert_int_equal(wpk_device_memory_init(&memory, 1 << 20), WPK_OK);
    assert_int_equal(wpk_device_memory_new(&memory, 100, &a), WPK_OK);
    assert_int_equal(wpk_device_memory_new(&memory, 8192, &b), WPK_OK);
    assert_int_equal(a % 256, 0);
    assert_true(b >= a + 100 + 65536);
    memset((void *)(uintptr_t)b, 1, 8192); // NOLINT: a device address is a host's
    assert_int_equal(wpk_device_memory_find(&memory, a)->from, a);
    assert_int_equal(wpk_device_memory_find(&memory, a + 99)->to, a + 100);
    assert_null(wpk_device_memory_find(&memory, a + 100));
    assert_null(wpk_device_memory_find(&memory, a - 1));
    assert_null(wpk_device_memory_find(&memory, 0));
    assert_null(wpk_device_memory_find(&memory, UINT64_MAX));
    assert_int_equal(wpk_device_memory_find(&memory, b + 8191)->from, b);
    wpk_device_memory_fini(&memory);
    wpk_device_memory_fini(&memory);
}

static void test_what_was_freed_is_known(void **state)
{
    (void)state;
    struct wpk_device_memory memory;
    uint64_t a = 0, again = 0;
    assert_int_equal(wpk_device_memory_init(&memory, 4096), WPK_OK);
    assert_int_equal(wpk_device_memory_new(&memory, 4096, &a), WPK_OK);
    assert_int_equal(wpk_device_memory_new(&memory, 1, &again), WPK_ENOMEM);
    assert_int_equal(wpk_device_memory_free(&memory, a + 1), WPK_EINVAL);
    assert_int_equal(wpk_device_memory_free(&memory, a), WPK_OK);
    assert_int_equal(wpk_device_memory_free(&memory, a), WPK_EINVAL);
    assert_null(wpk_device_memory_find(&memory, a));
    assert_int_equal(wpk_device_memory_new(&memory, 4096, &again), WPK_OK);
    assert_true(again > a);
    assert_int_equal(wpk_device_memory_new(&memory, 0, &a), WPK_EINVAL);
    assert_int_equal(wpk_device_memory_new(&memory, UINT64_MAX, &a), WPK_ENOMEM);
    wpk_device_memory_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations_are_apart),
        cmocka_unit_test(test_what_was_freed_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
