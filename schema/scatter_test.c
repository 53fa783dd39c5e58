/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/scatter.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_elements(void **state)
{
    const struct wpk_scatter columns = {.axis = 1,
                                        .reduction = WPK_SCATTER_ADD,
                                        .dtype = WPK_F32,
                                        .indices_dtype = WPK_I64,
                                        .rank = 2,
                                        .extent = {2, 3},
                                        .indices_rank = 2,
                                        .indices_extent = {1, 4}};
    const float x[] = {1, 2, 3, 4, 5, 6}, u[] = {10, 20, 30, 40}, y[] = {31, 2, 73, 4, 5, 6};
    const int64_t indices[] = {0, -3, 2, -1}, wrong[] = {0, 1, 2, 3};
    struct wpk_diag diag = {.text = ""};
    float out[6];

    (void)state;
    assert_int_equal(wpk_scatter_updates(&columns), 4);
    assert_int_equal(wpk_scatter_run(&columns, x, indices, u, out, &diag), WPK_OK);
    assert_memory_equal(out, y, sizeof(y));
    assert_int_equal(wpk_scatter_run(&columns, x, wrong, u, out, &diag), WPK_ERANGE);
    assert_string_equal(diag.text, "element 3 of its indices is 3, which is no index from -3 to 2");
}

static void test_slices(void **state)
{
    const struct wpk_scatter rows = {.axis = -1,
                                     .dtype = WPK_I32,
                                     .indices_dtype = WPK_I32,
                                     .rank = 3,
                                     .extent = {2, 2, 2},
                                     .indices_rank = 2,
                                     .indices_extent = {2, 2}};
    const int32_t x[] = {1, 2, 3, 4, 5, 6, 7, 8}, indices[] = {1, 0, -2, -1};
    const int32_t u[] = {10, 20, 30, 40}, y[] = {1, 2, 30, 40, 10, 20, 7, 8};
    int32_t out[8];

    (void)state;
    assert_int_equal(wpk_scatter_updates(&rows), 4);
    assert_int_equal(wpk_scatter_run(&rows, x, indices, u, out, NULL), WPK_OK);
    assert_memory_equal(out, y, sizeof(y));
}

/* x has one element, that all updates go to. */
static void join(const char *reduction, enum wpk_dtype dtype, const void *x, const void *u,
                 const void *y)
{
    const struct wpk_scatter scatter = {.axis = 0,
                                        .reduction = wpk_scatter_find(reduction),
                                        .dtype = dtype,
                                        .indices_dtype = WPK_F64,
                                        .rank = 1,
                                        .extent = {1},
                                        .indices_rank = 1,
                                        .indices_extent = {2}};
    const double indices[] = {0, -1};
    char out[8];

    assert_int_equal(wpk_scatter_run(&scatter, x, indices, u, out, NULL), WPK_OK);
    assert_memory_equal(out, y, wpk_dtype_size(dtype));
}

#define ONE(type, ...) ((const type[]){__VA_ARGS__})

static void test_reductions(void **state)
{
    (void)state;
    join("none", WPK_BOOL, ONE(uint8_t, 0), ONE(uint8_t, 0, 1), ONE(uint8_t, 1));
    join("mul", WPK_I32, ONE(int32_t, 3), ONE(int32_t, INT32_MAX, 2), ONE(int32_t, -6));
    join("add", WPK_I64, ONE(int64_t, 1), ONE(int64_t, INT64_MAX, 1), ONE(int64_t, INT64_MIN + 1));
    join("min", WPK_F64, ONE(double, 3), ONE(double, -2, 5), ONE(double, -2));
    join("max", WPK_F32, ONE(float, 3), ONE(float, NAN, 5), ONE(float, NAN));
    join("max", WPK_I64, ONE(int64_t, 3), ONE(int64_t, 2, 5), ONE(int64_t, 5));
    assert_int_equal(wpk_scatter_find("mean"), WPK_SCATTER_COUNT);
}

static void test_unfit(void **state)
{
    struct wpk_scatter s = {
        .axis = 1, .rank = 2, .extent = {2, 3}, .indices_rank = 2, .indices_extent = {3, 1}};

    (void)state;
    assert_int_equal(wpk_scatter_updates(&s), -1); /* more rows than x */
    s.axis = 2;
    assert_int_equal(wpk_scatter_updates(&s), -1);
    s.axis = -1;
    s.indices_extent[1] = 3;
    assert_int_equal(wpk_scatter_updates(&s), -1); /* three indices of two axes */
    s.indices_extent[1] = 1;
    assert_int_equal(wpk_scatter_updates(&s), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_unfit),
    };

    return cmocka_run_group_tests_name("scatter", tests, NULL, NULL);
}
