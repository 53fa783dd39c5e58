/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/sign.h"

#include "common/fs.h"
#include "schema/kernel_manifest.h"
#include "tests/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char directory[64];
static char key_path[96];

static int make_directory(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "%s/wpk_sign_XXXXXX", wpk_test_folder());
    if (mkdtemp(directory) == NULL) {
        return -1;
    }
    snprintf(key_path, sizeof key_path, "%s/" WPK_SIGN_FILE, directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    return wpk_fs_remove_tree(directory, NULL) == WPK_OK ? 0 : -1;
}

static bool is_signed(const char *public_hex, const void *text, size_t size, const char *hex)
{
    uint8_t public_key[WPK_SIGN_PUBLIC_SIZE];
    uint8_t signature[WPK_SIGNATURE_SIZE];
    assert_true(wpk_crypto_unhex(public_hex, sizeof public_key, public_key));
    assert_true(wpk_crypto_unhex(hex, sizeof signature, signature));
    return wpk_crypto_verify(public_key, text, size, signature);
}

/* Made once, kept for ever, secret. */
static void one_key_for_an_installation(void **state)
{
    (void)state;
    struct wpk_sign *first = NULL, *again = NULL;
    char signature[WPK_SIGNATURE_HEX_SIZE];
    struct stat info;
    assert_int_equal(wpk_sign_open(directory, true, &first, NULL), WPK_OK);
    assert_int_equal(stat(key_path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(wpk_sign_open(directory, true, &again, NULL), WPK_OK);
    assert_string_equal(wpk_sign_public_key(first), wpk_sign_public_key(again));
    wpk_sign_text(first, "text", 4, signature);
    assert_true(is_signed(wpk_sign_public_key(again), "text", 4, signature));
    assert_false(is_signed(wpk_sign_public_key(again), "tesx", 4, signature));
    wpk_sign_close(first);
    wpk_sign_close(again);
}

static void refuses_a_key_that_others_read(void **state)
{
    (void)state;
    struct wpk_sign *sign = NULL;
    struct wpk_diag diag = {0};
    assert_int_equal(wpk_sign_open(directory, true, &sign, NULL), WPK_OK);
    wpk_sign_close(sign);
    sign = NULL;
    assert_int_equal(chmod(key_path, 0640), 0);
    assert_int_equal(wpk_sign_open(directory, true, &sign, &diag), WPK_EACCES);
    assert_non_null(strstr(diag.text, "mode 640"));
    assert_null(sign);
}

/* It is never replaced: whoever pinned it would find nothing that fits any more. */
static void refuses_a_damaged_key(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "x", "wpk-signing-key-1 00", "wpk-signing-key-2 " HASH,
                                        "wpk-signing-key-1 " HASH "0\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct wpk_sign *sign = NULL;
        struct wpk_buf after = {0};
        assert_int_equal(wpk_fs_write(key_path, texts[i], strlen(texts[i]), 0600, NULL), WPK_OK);
        assert_int_equal(wpk_sign_open(directory, true, &sign, NULL), WPK_ECORRUPT);
        assert_int_equal(wpk_fs_read(key_path, 4096, &after, NULL), WPK_OK);
        assert_string_equal(wpk_buf_text(&after), texts[i]);
        wpk_buf_fini(&after);
    }
}

static struct wpk_search search = {
    .accuracy = {.times_direct = 4},
    .key = {.fingerprint = HASH,
            .layouts = "fixed",
            .device_class = "cpu/x/avx2",
            .environment = "codegen=1",
            .threads = 2},
};

static void signs_what_it_says_of_a_kernel(void **state)
{
    (void)state;
    struct wpk_final_entry own = {.trial = {.error_max = 2e-6,
                                            .error_tolerance = 1e-4,
                                            .of_rms = 1e-7,
                                            .times_direct = 1.8,
                                            .constants_bytes = 4096},
                                  .verified_by = "host3",
                                  .provider = "halide-cpu",
                                  .artifact_sha256 = HASH,
                                  .timing = {.median_ns = 100, .min_ns = 90, .mad_ns = 1}};
    struct wpk_final_entry vendor = {.provider = "onednn"};
    struct wpk_effect effect = {.search = &search, .served = &own, .own = &own};
    struct wpk_sign *sign = NULL;
    struct wpk_buf manifest = {0};
    struct wpk_kernel_manifest read;
    char signature[WPK_SIGNATURE_HEX_SIZE];
    assert_int_equal(wpk_sign_open(directory, true, &sign, NULL), WPK_OK);
    assert_int_equal(wpk_sign_kernel(sign, &effect, 1000000, &manifest, signature), WPK_OK);
    assert_true(is_signed(wpk_sign_public_key(sign), manifest.data, manifest.size, signature));
    assert_int_equal(wpk_kernel_manifest_decode(manifest.data, manifest.size, &read, NULL), WPK_OK);
    assert_string_equal(read.artifact, HASH);
    assert_string_equal(read.device, "cpu/x/avx2");
    assert_string_equal(read.verified_by, "host3");
    assert_int_equal(read.median_ns, 100);
    assert_int_equal(read.threads, 2);
    assert_true(read.error_max == 2e-6 && read.of_rms == 1e-7 && read.times_direct == 1.8);
    assert_true(read.accuracy.times_direct == 4);
    assert_int_equal(read.constants_bytes, 4096);
    wpk_buf_reset(&manifest);
    /* Ours is vouched for where the vendor's is served; the vendor's has no file. */
    effect.served = &vendor;
    assert_int_equal(wpk_sign_kernel(sign, &effect, 1000000, &manifest, signature), WPK_OK);
    assert_true(manifest.size > 0);
    wpk_buf_reset(&manifest);
    effect.own = NULL;
    assert_int_equal(wpk_sign_kernel(sign, &effect, 1000000, &manifest, signature), WPK_OK);
    assert_int_equal(manifest.size, 0);
    assert_string_equal(signature, "");
    wpk_buf_fini(&manifest);
    wpk_sign_close(sign);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_key_for_an_installation, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(refuses_a_key_that_others_read, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(refuses_a_damaged_key, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(signs_what_it_says_of_a_kernel, make_directory,
                                        remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
