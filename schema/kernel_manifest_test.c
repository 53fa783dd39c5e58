/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/kernel_manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct wpk_kernel_manifest sample = {
    .fingerprint = HASH,
    .layouts = "any",
    .threads = 4,
    .device = "cpu/AMD EPYC 9B45/zen4",
    .environment = "codegen=1;halide=21.0.0",
    .provider = "halide-cpu",
    .artifact = HASH,
    .median_ns = 575000,
    .min_ns = 571000,
    .mad_ns = 900,
    .constants_bytes = 2359296,
    .error_max = 1.25e-6,
    .error_tolerance = 2e-5,
    .of_rms = 1.1e-6,
    .times_direct = 1.8,
    .accuracy = {.times_direct = 6},
    .conditions = WPK_CONDITIONS_COLD,
    .verified_by = "host3",
    .created_wall_ns = UINT64_C(1795236720125000000),
};

static void reads_what_it_wrote(void **state)
{
    (void)state;
    struct wpk_buf text = {0}, again = {0};
    struct wpk_kernel_manifest back;

    assert_int_equal(wpk_kernel_manifest_encode(&sample, &text), WPK_OK);
    assert_int_equal(wpk_kernel_manifest_decode(text.data, text.size, &back, NULL), WPK_OK);
    assert_int_equal(wpk_kernel_manifest_encode(&back, &again), WPK_OK);
    assert_string_equal(wpk_buf_text(&text), wpk_buf_text(&again));
    assert_string_equal(back.verified_by, "host3");
    assert_int_equal(back.constants_bytes, sample.constants_bytes);
    assert_true(back.error_max == sample.error_max);
    assert_true(back.of_rms == sample.of_rms && back.times_direct == sample.times_direct);
    assert_true(back.accuracy.times_direct == 6);
    assert_int_equal(back.conditions, WPK_CONDITIONS_COLD);
    assert_true(back.created_wall_ns == sample.created_wall_ns);
    assert_true(text.size < 1024);
    wpk_buf_fini(&text);
    wpk_buf_fini(&again);
}

/* `text` with its first `from` replaced. */
static wpk_err decode_with(const char *text, const char *from, const char *to,
                           struct wpk_diag *diag)
{
    struct wpk_buf changed = {0};
    struct wpk_kernel_manifest out;
    const char *at = strstr(text, from);

    assert_non_null(at);
    wpk_buf_append(&changed, text, (size_t)(at - text));
    wpk_buf_append_text(&changed, to);
    wpk_buf_append_text(&changed, at + strlen(from));
    wpk_err err = wpk_kernel_manifest_decode(changed.data, changed.size, &out, diag);
    wpk_buf_fini(&changed);
    return err;
}

static void refuses_what_is_none(void **state)
{
    (void)state;
    struct wpk_buf buf = {0};
    struct wpk_kernel_manifest out;
    struct wpk_diag diag = {0};

    assert_int_equal(wpk_kernel_manifest_encode(&sample, &buf), WPK_OK);
    const char *text = wpk_buf_text(&buf);
    assert_int_equal(decode_with(text, "\"version\":1", "\"version\":2", &diag), WPK_EMISMATCH);
    assert_string_equal(diag.field, "version");
    assert_int_equal(decode_with(text, "\"version\":1,", "\"version\":1,\"more\":[1],", NULL),
                     WPK_OK);
    assert_int_equal(decode_with(text, "\"threads\":4", "\"threads\":0", NULL), WPK_ERANGE);
    assert_int_equal(decode_with(text, "\"artifact\":\"0", "\"artifact\":\"", NULL), WPK_EINVAL);
    assert_int_equal(decode_with(text, "\"artifact\":\"0", "\"artifact\":\"x", NULL), WPK_EINVAL);
    assert_int_equal(decode_with(text, "2026-", "yore-", NULL), WPK_EINVAL);
    assert_int_equal(decode_with(text, "\"layouts\":\"any\",", "", NULL), WPK_EINVAL);
    assert_int_equal(decode_with(text, "}", "", NULL), WPK_EPARSE);
    assert_int_equal(wpk_kernel_manifest_decode("", 0, &out, NULL), WPK_EPARSE);
    wpk_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_wrote),
        cmocka_unit_test(refuses_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
