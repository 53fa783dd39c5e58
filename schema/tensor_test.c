/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/tensor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct wpk_tensor_type make_type(int rank, const int64_t *extent, const char *layout)
{
    struct wpk_tensor_type type = {.dtype = WPK_F32, .rank = rank};
    memcpy(type.extent, extent, sizeof *extent * (size_t)rank);
    assert_int_equal(wpk_layout_decode(layout, rank, &type.layout), WPK_OK);
    return type;
}

static void dtypes_have_names_and_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < WPK_DTYPE_COUNT; i++) {
        enum wpk_dtype back;
        assert_int_equal(wpk_dtype_parse(wpk_dtype_name((enum wpk_dtype)i), &back), WPK_OK);
        assert_int_equal(back, i);
    }
    enum wpk_dtype none;
    assert_int_equal(wpk_dtype_parse("f31", &none), WPK_ENOENT);
    assert_int_equal(wpk_dtype_parse("", &none), WPK_ENOENT);
    assert_int_equal(wpk_dtype_size(WPK_BF16), 2);
    assert_true(wpk_dtype_is_float(WPK_BF16));
    assert_false(wpk_dtype_is_float(WPK_I64));
}

static void layouts_survive_their_text(void **state)
{
    (void)state;
    static const struct {
        int rank;
        const char *text;
    } good[] = {
        {0, ""},
        {1, "0"},
        {4, "0,1,2,3"},
        {4, "0,2,3,1"},
        {4, "0,1,2,3,1/16"},
        {4, "0,2,3,1 pad 0:0,0:0,1:1,1:1"},
        {4, "0,1,2,3,1/8 pad 0:0,0:4,1:2,3:4"},
        {10, "9,8,7,6,5,4,3,2,1,0"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct wpk_layout layout;
        char text[128];
        assert_int_equal(wpk_layout_decode(good[i].text, good[i].rank, &layout), WPK_OK);
        assert_int_equal(wpk_layout_encode(&layout, text, sizeof text), WPK_OK);
        assert_string_equal(text, good[i].text);
    }
    char small[4];
    struct wpk_layout layout = wpk_layout_row_major(3);
    assert_int_equal(wpk_layout_encode(&layout, small, sizeof small), WPK_ENOSPC);
    assert_true(wpk_layout_is_row_major(&layout));
    layout.pad_after[1] = 1;
    assert_false(wpk_layout_is_row_major(&layout));
}

static void bad_layouts_are_rejected(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "0,1",
        "0,1,1",
        "0,1,3",
        "0,1,2,",
        "0,1,2,1",
        "0,1,2,1/0",
        "0,1,2,3/4",
        "0,1,2 ",
        "0,1,2 pad 0:0,0:0",
        "0,1,-2",
        "0, 1,2",
        "0,1,2,1/16,2",
        "0,1,2 pad 0:0,0:0,0:-1",
        "0,1,2,1/99999999999999999999",
        "0,1,2 pad 0:0,0:0,0:0 ",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wpk_layout layout;
        if (wpk_layout_decode(bad[i], 3, &layout) != WPK_EPARSE) {
            fail_msg("accepted \"%s\"", bad[i]);
        }
    }
    struct wpk_layout layout;
    assert_int_equal(wpk_layout_decode("0,1,2,3,4,5,6,7,8,9,1/2", 10, &layout), WPK_EPARSE);
}

static void blocks_and_padding_lie_where_the_header_says(void **state)
{
    (void)state;
    /* [2, 3] by axis order 1,0 with one column of padding before: physical [4][2] */
    struct wpk_tensor_type type = make_type(2, (int64_t[]){2, 3}, "1,0 pad 0:0,1:0");
    const float logical[6] = {1, 2, 3, 4, 5, 6};
    const float expected[8] = {0, 0, 1, 4, 2, 5, 3, 6};
    float physical[8];
    assert_int_equal(wpk_tensor_type_bytes(&type), sizeof physical);
    wpk_tensor_pack(&type, logical, physical);
    assert_memory_equal(physical, expected, sizeof physical);

    /* three columns in blocks of two: [2 rows][2 blocks][2] */
    type = make_type(2, (int64_t[]){2, 3}, "0,1,1/2");
    const float blocked[8] = {1, 2, 3, 0, 4, 5, 6, 0};
    int64_t dims[WPK_RANK_MAX];
    wpk_tensor_type_dims(&type, dims);
    assert_int_equal(dims[1], 2);
    assert_int_equal(dims[2], 2);
    wpk_tensor_pack(&type, logical, physical);
    assert_memory_equal(physical, blocked, sizeof physical);
}

static void unpack_undoes_pack(void **state)
{
    (void)state;
    static const char *const layouts[] = {"0,1,2", "2,0,1", "0,2,1,1/4",
                                          "1,0,2,0/2 pad 1:0,0:2,3:3", "0,1,2 pad 0:0,1:1,0:5"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        struct wpk_tensor_type type = make_type(3, (int64_t[]){3, 5, 7}, layouts[i]);
        float from[105];
        float back[105];
        for (int j = 0; j < 105; j++) {
            from[j] = (float)(j + 1);
        }
        float *physical = test_malloc(wpk_tensor_type_bytes(&type));
        memset(physical, 0xff, wpk_tensor_type_bytes(&type));
        wpk_tensor_pack(&type, from, physical);
        wpk_tensor_unpack(&type, physical, back);
        assert_memory_equal(from, back, sizeof from);
        assert_true(wpk_tensor_padding_is_zero(&type, physical));
        test_free(physical);
    }
}

static void dirt_in_the_padding_is_seen(void **state)
{
    (void)state;
    struct wpk_tensor_type type = make_type(1, (int64_t[]){3}, "0 pad 1:1");
    float physical[5] = {0, 1, 2, 3, 0};
    assert_true(wpk_tensor_padding_is_zero(&type, physical));
    physical[4] = 1e-30F;
    assert_false(wpk_tensor_padding_is_zero(&type, physical));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_have_names_and_sizes),
        cmocka_unit_test(layouts_survive_their_text),
        cmocka_unit_test(bad_layouts_are_rejected),
        cmocka_unit_test(blocks_and_padding_lie_where_the_header_says),
        cmocka_unit_test(unpack_undoes_pack),
        cmocka_unit_test(dirt_in_the_padding_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
