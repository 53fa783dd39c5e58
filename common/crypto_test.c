/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_sha256_of_known_texts(void **state)
{
    (void)state;
    char hex[WPK_SHA256_HEX_SIZE];

    /* FIPS 180-4, examples. */
    wpk_crypto_sha256_hex("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    wpk_crypto_sha256_hex(NULL, 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void test_streaming_equals_one_shot(void **state)
{
    (void)state;
    char data[1000];
    char whole[WPK_SHA256_HEX_SIZE];

    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (char)(i * 7);
    }
    wpk_crypto_sha256_hex(data, sizeof(data), whole);
    for (size_t step = 1; step < 200; step += 13) {
        struct wpk_crypto_hash hash;
        char parts[WPK_SHA256_HEX_SIZE];
        wpk_crypto_hash_init(&hash);
        for (size_t at = 0; at < sizeof(data); at += step) {
            size_t left = sizeof(data) - at;
            wpk_crypto_hash_add(&hash, data + at, left < step ? left : step);
        }
        wpk_crypto_hash_finish_hex(&hash, parts);
        assert_string_equal(parts, whole);
    }
}

static void test_hex(void **state)
{
    (void)state;
    char hex[7];

    wpk_crypto_hex("\x00\xab\xff", 3, hex);
    assert_string_equal(hex, "00abff");
    assert_true(wpk_crypto_hex_valid("00abff", 3));
    assert_false(wpk_crypto_hex_valid("00abf", 3));
    assert_false(wpk_crypto_hex_valid("00abff0", 3));
    assert_false(wpk_crypto_hex_valid("00abff/", 3));
    assert_false(wpk_crypto_hex_valid("00ABFF", 3));
    assert_false(wpk_crypto_hex_valid("../../", 3));
    assert_true(wpk_crypto_hex_valid("", 0));
}

static void test_tokens_differ(void **state)
{
    (void)state;
    char a[WPK_TOKEN_TEXT_SIZE];
    char b[WPK_TOKEN_TEXT_SIZE];

    wpk_crypto_random_token(a);
    wpk_crypto_random_token(b);
    assert_true(wpk_crypto_hex_valid(a, 32));
    assert_string_not_equal(a, b);
    assert_true(wpk_crypto_equal(a, a, sizeof(a)));
    assert_false(wpk_crypto_equal(a, b, sizeof(a)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256_of_known_texts),
        cmocka_unit_test(test_streaming_equals_one_shot),
        cmocka_unit_test(test_hex),
        cmocka_unit_test(test_tokens_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
