/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct wpk_tensor_type make_type(enum wpk_dtype dtype, int rank, const int64_t *extent,
                                        const char *layout)
{
    struct wpk_tensor_type type = {.dtype = dtype, .rank = rank};

    for (int i = 0; i < rank; i++) {
        type.extent[i] = extent[i];
    }
    assert_int_equal(wpk_layout_decode(layout, rank, &type.layout), WPK_OK);
    return type;
}

static void check_dim(const struct wpk_abi_dim *dim, int min, int extent, int stride)
{
    assert_int_equal(dim->min, min);
    assert_int_equal(dim->extent, extent);
    assert_int_equal(dim->stride, stride);
}

static void padded_dimensions_start_below_zero(void **state)
{
    const int64_t extent[] = {1, 8, 5, 6};
    struct wpk_tensor_type type = make_type(WPK_F32, 4, extent, "0,2,3,1 pad 0:0,0:0,1:2,1:1");
    struct wpk_abi_dim dim[WPK_RANK_MAX];
    struct wpk_abi_buffer buffer;

    (void)state;
    assert_int_equal(wpk_buffer_describe(&type, dim, &buffer), WPK_OK);
    assert_int_equal(buffer.dimensions, 4);
    assert_int_equal(buffer.type_code, 2);
    assert_int_equal(buffer.type_bits, 32);
    check_dim(&dim[0], 0, 8, 1);
    check_dim(&dim[1], -1, 8, 8);
    check_dim(&dim[2], -1, 8, 64);
    check_dim(&dim[3], 0, 1, 512);
}

static void blocked_dimensions_start_at_a_block(void **state)
{
    const int64_t extent[] = {1, 20, 3, 3};
    struct wpk_tensor_type type = make_type(WPK_I8, 4, extent, "0,1,2,3,1/16 pad 0:0,16:0,0:0,0:0");
    struct wpk_abi_dim dim[WPK_RANK_MAX];
    struct wpk_abi_buffer buffer;

    (void)state;
    assert_int_equal(wpk_buffer_describe(&type, dim, &buffer), WPK_OK);
    assert_int_equal(buffer.dimensions, 5);
    check_dim(&dim[0], 0, 16, 1);
    check_dim(&dim[1], 0, 3, 16);
    check_dim(&dim[3], -1, 3, 144); /* (16 + 20) / 16 rounded up */
}

static void indices_must_fit_32_bits(void **state)
{
    const int64_t extent[] = {70000, 70000};
    struct wpk_tensor_type type = make_type(WPK_I8, 2, extent, "0,1");
    struct wpk_abi_dim dim[WPK_RANK_MAX];
    struct wpk_abi_buffer buffer;

    (void)state;
    assert_int_equal(wpk_buffer_describe(&type, dim, &buffer), WPK_ERANGE);
}

static void data_are_matched_by_name(void **state)
{
    const int64_t extent[] = {4};
    const size_t size[] = {16, 16};
    struct wpk_argument_list list = {.count = 2};
    _Alignas(64) float a[4];
    _Alignas(64) float b[4];
    void *found[2];

    (void)state;
    list.argument[0] = (struct wpk_argument){"A", make_type(WPK_F32, 1, extent, "0")};
    list.argument[1] = (struct wpk_argument){"B", make_type(WPK_F32, 1, extent, "0")};
    const struct wpk_tensor_data by_name[] = {{"B", b, 16}, {"A", a, 16}};
    assert_int_equal(wpk_arguments_match(&list, size, by_name, 2, found, NULL), WPK_OK);
    assert_ptr_equal(found[0], a);
    assert_ptr_equal(found[1], b);

    const struct wpk_tensor_data bad[][2] = {
        {{NULL, a, 16}, {NULL, b, 16}},           /* by position */
        {{"A", a, 16}, {"A", b, 16}},             /* twice */
        {{"A", a, 16}, {"C", b, 16}},             /* unknown */
        {{"A", a, 16}, {"B", b, 12}},             /* size */
        {{"A", a, 16}, {"B", NULL, 16}},          /* no data */
        {{"A", a, 16}, {"B", (char *)b + 2, 16}}, /* misaligned */
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct wpk_diag diag = {0};
        assert_int_equal(wpk_arguments_match(&list, size, bad[i], 2, found, &diag), WPK_EINVAL);
        assert_true(diag.text[0] != '\0');
    }
    assert_int_equal(wpk_arguments_match(&list, size, by_name, 1, found, NULL), WPK_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padded_dimensions_start_below_zero),
        cmocka_unit_test(blocked_dimensions_start_at_a_block),
        cmocka_unit_test(indices_must_fit_32_bits),
        cmocka_unit_test(data_are_matched_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
