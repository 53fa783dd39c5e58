/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/index_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check(enum wpk_dtype dtype, const void *data, int64_t low, int64_t high,
                  const char *expected)
{
    struct wpk_diag diag = {0};

    wpk_err err = wpk_index_check("I", dtype, data, 3, low, high, &diag);
    assert_int_equal(err, expected == NULL ? WPK_OK : WPK_ERANGE);
    assert_string_equal(diag.text, expected == NULL ? "" : expected);
}

static void test_types(void **state)
{
    static const int64_t i64[] = {0, -4, (int64_t)1 << 40};
    static const int32_t i32[] = {0, -4, 3};
    static const int8_t i8[] = {0, -4, 3};
    static const uint8_t u8[] = {0, 3, 200};
    static const double cells[] = {0, -4, 3};
    static const char high[] = "element 2 of I is 3, which is no index from -4 to 2";
    static const char low[] = "element 1 of I is -4, which is no index from -3 to 3";

    (void)state;
    check(WPK_I64, i64, -4, (int64_t)1 << 40, NULL);
    check(WPK_I64, i64, -4, 3, "element 2 of I is 1099511627776, which is no index from -4 to 3");
    check(WPK_I32, i32, -4, 3, NULL);
    check(WPK_I32, i32, -4, 2, high);
    check(WPK_I8, i8, -3, 3, low);
    check(WPK_U8, u8, -5, 4, "element 2 of I is 200, which is no index from -5 to 4");
    check(WPK_F64, cells, -4, 2, high);
    check(WPK_F64, cells, -3, 3, low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types)};

    return cmocka_run_group_tests_name("index_check", tests, NULL, NULL);
}
