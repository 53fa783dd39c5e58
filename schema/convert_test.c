/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/convert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_round_trips(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < WPK_DTYPE_COUNT; dtype++) {
        if (wpk_dtype_size((enum wpk_dtype)dtype) > 2 || dtype == WPK_BOOL) {
            continue;
        }
        for (int bits = 0; bits < 1 << (8 * wpk_dtype_size((enum wpk_dtype)dtype)); bits++) {
            uint16_t in = (uint16_t)bits;
            uint16_t out = 0;
            double wide;
            wpk_convert_widen((enum wpk_dtype)dtype, &in, 1, &wide);
            wpk_convert_narrow((enum wpk_dtype)dtype, &wide, 1, &out);
            if (!isnan(wide)) {
                assert_int_equal(in, out);
            }
        }
    }
}

static void test_rounding(void **state)
{
    (void)state;
    static const struct {
        double value;
        uint16_t f16, bf16;
    } cases[] = {
        {1.0, 0x3c00, 0x3f80},
        {-2.0, 0xc000, 0xc000},
        {65504.0, 0x7bff, 0x4780},
        {65520.0, 0x7c00, 0x4780},       /* beyond f16: infinity */
        {1.0 + 0x1p-11, 0x3c00, 0x3f80}, /* half way: to even */
        {1.0 + 0x3p-11, 0x3c02, 0x3f80},
        {1.0 + 0x1p-11 + 0x1p-40, 0x3c01, 0x3f80}, /* an f32 would round this twice */
        {1.0 + 0x1p-8 + 0x1p-40, 0x3c04, 0x3f81},
        {0x1p-24, 0x0001, 0x3380},
        {0x1p-25, 0x0000, 0x3300},
        {0x1.8p-25, 0x0001, 0x3340},
        {-0.0, 0x8000, 0x8000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint16_t bits;
        wpk_convert_narrow(WPK_F16, &cases[i].value, 1, &bits);
        assert_int_equal(bits, cases[i].f16);
        wpk_convert_narrow(WPK_BF16, &cases[i].value, 1, &bits);
        assert_int_equal(bits, cases[i].bf16);
    }
}

static void test_saturation(void **state)
{
    (void)state;
    static const double in[4] = {1e30, -1e30, 2.5, -1.5};
    int8_t i8[4];
    uint8_t u8[4];
    int16_t i16[4];
    int32_t i32[4];
    int64_t i64[4];
    wpk_convert_narrow(WPK_I8, in, 4, i8);
    wpk_convert_narrow(WPK_U8, in, 4, u8);
    wpk_convert_narrow(WPK_I16, in, 4, i16);
    wpk_convert_narrow(WPK_I32, in, 4, i32);
    wpk_convert_narrow(WPK_I64, in, 4, i64);
    assert_memory_equal(i8, ((const int8_t[]){127, -128, 2, -2}), 4);
    assert_memory_equal(u8, ((const uint8_t[]){255, 0, 2, 0}), 4);
    assert_memory_equal(i16, ((const int16_t[]){INT16_MAX, INT16_MIN, 2, -2}), 8);
    assert_memory_equal(i32, ((const int32_t[]){INT32_MAX, INT32_MIN, 2, -2}), 16);
    assert_memory_equal(i64, ((const int64_t[]){INT64_MAX, INT64_MIN, 2, -2}), 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_saturation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
