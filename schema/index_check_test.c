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
    const struct wpk_index_bound bound = {
        .low = low, .high = high, .axis_count = 1, .stride = {1}, .extent = {3}};

    wpk_err err = wpk_index_check("I", dtype, data, &bound, &diag);
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

/* Columns 1 and 0 of rows 1 and 2 of i64[3,2]; an element alone. */
static void test_parts(void **state)
{
    static const int64_t data[] = {99, 99, 1, 2, 3, 4};
    struct wpk_index_bound part = {
        .low = 1, .high = 4, .first = 3, .axis_count = 2, .stride = {2, -1}, .extent = {2, 2}};
    struct wpk_diag diag = {0};

    (void)state;
    assert_true(wpk_index_bound_fits(&part, 6));
    assert_false(wpk_index_bound_fits(&part, 5));
    assert_int_equal(wpk_index_check("I", WPK_I64, data, &part, NULL), WPK_OK);
    part.high = 2;
    assert_int_equal(wpk_index_check("I", WPK_I64, data, &part, &diag), WPK_ERANGE);
    assert_string_equal(diag.text, "element 5 of I is 4, which is no index from 1 to 2");
    part = (struct wpk_index_bound){.low = 98, .high = 99, .first = 1};
    assert_int_equal(wpk_index_check("I", WPK_I64, data, &part, NULL), WPK_OK);
    part.first = 2;
    assert_int_equal(wpk_index_check("I", WPK_I64, data, &part, NULL), WPK_ERANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types), cmocka_unit_test(test_parts)};

    return cmocka_run_group_tests_name("index_check", tests, NULL, NULL);
}
