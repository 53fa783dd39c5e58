/* SPDX-License-Identifier: Apache-2.0 */
#include "client/npy.h"

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
        assert_int_equal(wpk_npy_check(&npy, &type, NULL), WPK_OK);
        assert_memory_equal(npy.data, values, npy.size);
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

static void expect_mismatch(const char *header, const struct wpk_tensor_type *type,
                            const char *words)
{
    struct wpk_npy npy;
    struct wpk_diag diag;

    assert_int_equal(decode(1, header, &npy, &diag), WPK_OK);
    assert_int_equal(wpk_npy_check(&npy, type, &diag), WPK_EINVAL);
    if (strstr(diag.text, words) == NULL) {
        fail_msg("'%s' does not say '%s'", diag.text, words);
    }
}

static void test_mismatches_name_both(void **state)
{
    const int64_t extent[] = {1, 1};
    const struct wpk_tensor_type type = type_of(WPK_F32, 2, extent);

    (void)state;
    expect_mismatch("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)}", &type,
                    "expected <f4 (f32) (1, 1) in C order, found <f8 (1, 1) in C order");
    expect_mismatch("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", &type,
                    "found <f4 (1,)");
    expect_mismatch("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1)}", &type,
                    "in Fortran order");
    const int64_t two[] = {1, 2};
    const struct wpk_tensor_type larger = type_of(WPK_F32, 2, two);
    expect_mismatch("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}", &larger,
                    "expected 8 bytes of elements, found 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_mismatches_name_both),
    };

    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
