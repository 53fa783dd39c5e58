/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/npy.h"

#include "schema/convert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct wpk_tensor_type type_of(enum wpk_dtype dtype, int rank, const int64_t *extent)
{
    struct wpk_tensor_type type = {
        .dtype = dtype, .rank = rank, .layout = wpk_layout_row_major(rank)};

    memcpy(type.extent, extent, (size_t)rank * sizeof(*extent));
    return type;
}

static void test_round_trip(void **state)
{
    const int64_t extent[] = {2, 3};
    const float values[6] = {1, 2, 3, 4, 5, 6};

    (void)state;
    for (int rank = 0; rank <= 2; rank++) {
        struct wpk_buf out = {0};
        struct wpk_npy npy;
        struct wpk_tensor_type type = type_of(WPK_F32, rank, extent);
        wpk_npy_encode(&type, values, &out);
        assert_int_equal(wpk_buf_status(&out), WPK_OK);
        assert_int_equal(wpk_npy_decode(out.data, out.size, &npy, NULL), WPK_OK);
        assert_int_equal((out.size - npy.size) % 64, 0);
        float read[6];
        assert_int_equal(wpk_npy_read(&npy, &type, read, NULL), WPK_OK);
        assert_memory_equal(read, values, npy.size);
        wpk_buf_fini(&out);
    }
}

/* A file of version `version` with this header and four bytes. */
static wpk_err decode(int version, const char *header, struct wpk_npy *out, struct wpk_diag *diag)
{
    static char bytes[512];
    size_t length = strlen(header);
    size_t start = version == 1 ? 10 : 12;

    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (char)version;
    bytes[8] = (char)(length & 255);
    bytes[9] = (char)(length >> 8);
    memcpy(bytes + start, header, length);
    *diag = (struct wpk_diag){0};
    return wpk_npy_decode(bytes, start + length + 4, out, diag);
}

static void test_headers(void **state)
{
    static const char *const wrong[] = {
        "",
        "{}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
    };
    struct wpk_npy npy;
    struct wpk_diag diag;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(decode(1, wrong[i], &npy, &diag), WPK_EPARSE);
        assert_true(diag.text[0] != '\0');
    }
    assert_int_equal(
        decode(2, "{\"shape\": (1,), 'fortran_order': True, 'descr': '<f4'}\n", &npy, &diag),
        WPK_OK);
    assert_true(npy.fortran_order && npy.rank == 1 && npy.extent[0] == 1 && npy.size == 4);
    assert_int_equal(decode(3, "{}", &npy, &diag), WPK_EPARSE);
    assert_int_equal(wpk_npy_decode("PK", 2, &npy, &diag), WPK_EPARSE);
}

/* An array of `extent` [2] with these bytes, read as `dtype` and printed as numbers. */
static void read_as(const char *descr, bool fortran, const void *bytes, size_t size,
                    enum wpk_dtype dtype, char *out, size_t out_size)
{
    struct wpk_npy npy = {
        .fortran_order = fortran, .rank = 2, .extent = {2, 2}, .data = bytes, .size = size};
    const int64_t extent[] = {2, 2};
    const struct wpk_tensor_type type = type_of(dtype, 2, extent);
    struct wpk_diag diag = {0};
    double data[4];
    double numbers[4];

    snprintf(npy.descr, sizeof(npy.descr), "%s", descr);
    if (wpk_npy_read(&npy, &type, data, &diag) != WPK_OK) {
        snprintf(out, out_size, "%s", diag.text);
        return;
    }
    wpk_convert_widen(dtype, data, 4, numbers);
    snprintf(out, out_size, "%g %g %g %g", numbers[0], numbers[1], numbers[2], numbers[3]);
}

static void test_conversions(void **state)
{
    static const float f4[] = {1, 2, 3, 4};
    static const double f8[] = {1, 2, 3, 4.5};
    static const uint8_t f2[] = {0, 0x3c, 0, 0x40, 0, 0x42, 0, 0x44};
    static const uint8_t big[] = {0, 1, 0, 2, 0, 3, 1, 0}; /* 16 bits, the high ones first */
    static const uint8_t big4[] = {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 1, 0};
    static const int32_t i4[] = {1, -2, 3, 4};
    static const uint8_t b1[] = {1, 0, 1, 1};
    static const struct {
        const char *descr;
        bool fortran;
        const void *bytes;
        size_t size;
        enum wpk_dtype dtype;
        const char *numbers;
    } rows[] = {
        {"<f4", false, f4, 16, WPK_F32, "1 2 3 4"},
        {"<f4", true, f4, 16, WPK_F32, "1 3 2 4"},
        {"<f8", false, f8, 32, WPK_F32, "1 2 3 4.5"},
        {"<f2", false, f2, 8, WPK_F32, "1 2 3 4"},
        {">i4", false, big4, 16, WPK_I32, "1 2 3 256"},
        {">i4", true, big4, 16, WPK_I64, "1 3 2 256"},
        {"<i4", false, i4, 16, WPK_I64, "1 -2 3 4"},
        {"|b1", false, b1, 4, WPK_I64, "1 0 1 1"},
        {"<f4", false, f4, 16, WPK_I64, "expected <i8 (i64) (2, 2), found <f4 (2, 2)"},
        {"<i4", false, i4, 16, WPK_I8, "expected |i1 (i8) (2, 2), found <i4 (2, 2)"},
        {">u2", false, big, 8, WPK_I32, "expected <i4 (i32) (2, 2), found >u2 (2, 2)"},
        {"<f8", false, f8, 24, WPK_F32, "expected 32 bytes of elements, found 24"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char found[256];
        read_as(rows[i].descr, rows[i].fortran, rows[i].bytes, rows[i].size, rows[i].dtype, found,
                sizeof(found));
        if (strncmp(found, rows[i].numbers, strlen(rows[i].numbers)) != 0) {
            fail_msg("%s: '%s', not '%s'", rows[i].descr, found, rows[i].numbers);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_conversions),
    };

    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
