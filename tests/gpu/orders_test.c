/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/orders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_calls_fail_by_number(void **state)
{
    (void)state;
    struct wpk_orders orders;
    assert_int_equal(wpk_orders_parse("cuLaunchKernel:3=719;cuMemAlloc_v2:1=2", NULL, &orders),
                     WPK_OK);
    assert_int_equal(orders.count, 2);
    assert_int_equal(wpk_orders_call(&orders, "cuLaunchKernel"), 0);
    assert_int_equal(wpk_orders_call(&orders, "cuMemAlloc_v2"), 2);
    assert_int_equal(wpk_orders_call(&orders, "cuMemAlloc_v2"), 0);
    assert_int_equal(wpk_orders_call(&orders, "cuLaunchKernel"), 0);
    assert_int_equal(wpk_orders_call(&orders, "cuLaunchKernel"), 719);
    assert_int_equal(wpk_orders_call(&orders, "cuLaunchKernel"), 0);
    assert_false(wpk_orders_is_gone(&orders));
}

static void test_a_lost_device_stays_lost(void **state)
{
    (void)state;
    struct wpk_orders orders;
    assert_int_equal(wpk_orders_parse("cuCtxPushCurrent_v2:2=lost", NULL, &orders), WPK_OK);
    assert_int_equal(wpk_orders_call(&orders, "cuCtxPushCurrent_v2"), 0);
    assert_int_equal(wpk_orders_call(&orders, "cuMemFree_v2"), 0);
    assert_int_equal(wpk_orders_call(&orders, "cuCtxPushCurrent_v2"), 999);
    assert_int_equal(wpk_orders_call(&orders, "cuMemFree_v2"), 999);
}

/* Two processes count together; a device that is gone is gone for both. */
static void test_processes_share_a_count(void **state)
{
    (void)state;
    char folder[] = "/tmp/wpk-orders-XXXXXX", path[64], file[80];
    struct wpk_orders orders;
    int status = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/count", folder);
    assert_int_equal(wpk_orders_parse("cuMemFree_v2:3=gone", path, &orders), WPK_OK);
    assert_int_equal(wpk_orders_call(&orders, "cuMemFree_v2"), 0);
    pid_t child = fork();
    if (child == 0) {
        int first = wpk_orders_call(&orders, "cuMemFree_v2");
        _exit(first == 0 && !wpk_orders_is_gone(&orders) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(wpk_orders_call(&orders, "cuMemFree_v2"), 999);
    assert_true(wpk_orders_is_gone(&orders));
    snprintf(file, sizeof(file), "%s.0", path);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void test_malformed_orders(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "cuInit",      "cuInit:1",    "cuInit:0=1", ":1=1",           "cuInit:1=0",
        "cuInit:1=no", "cuInit:1=1x", "cuInit:x=1", "cuInit:1=99999", "cuInit:1=1;;"};
    struct wpk_orders orders;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(wpk_orders_parse(texts[i], NULL, &orders), WPK_EPARSE);
    }
    assert_int_equal(
        wpk_orders_parse("a:1=1;a:1=1;a:1=1;a:1=1;a:1=1;a:1=1;a:1=1;a:1=1;a:1=1", NULL, &orders),
        WPK_ENOSPC);
    assert_int_equal(wpk_orders_parse(NULL, NULL, &orders), WPK_OK);
    assert_int_equal(orders.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_fail_by_number),
        cmocka_unit_test(test_a_lost_device_stays_lost),
        cmocka_unit_test(test_processes_share_a_count),
        cmocka_unit_test(test_malformed_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
