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

static void test_unhex(void **state)
{
    (void)state;
    uint8_t bytes[3] = {7, 7, 7};

    assert_true(wpk_crypto_unhex("00abff", 3, bytes));
    assert_memory_equal(bytes, "\x00\xab\xff", 3);
    assert_false(wpk_crypto_unhex("00abfg", 3, bytes));
    assert_false(wpk_crypto_unhex("00abff00", 3, bytes));
    assert_false(wpk_crypto_unhex("00ab", 3, bytes));
    assert_false(wpk_crypto_unhex("00ABFF", 3, bytes));
}

/* RFC 8032, section 7.1, test 3. */
static void test_signature_of_a_known_text(void **state)
{
    (void)state;
    static const char seed_hex[] =
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7";
    static const char public_hex[] =
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025";
    static const char signature_hex[] =
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a";
    uint8_t seed[WPK_SIGN_SEED_SIZE];
    uint8_t key[WPK_SIGN_KEY_SIZE];
    uint8_t public_key[WPK_SIGN_PUBLIC_SIZE];
    uint8_t signature[WPK_SIGNATURE_SIZE];
    char hex[WPK_SIGNATURE_HEX_SIZE];

    assert_true(wpk_crypto_unhex(seed_hex, sizeof(seed), seed));
    wpk_crypto_sign_key(seed, key, public_key);
    wpk_crypto_hex(public_key, sizeof(public_key), hex);
    assert_string_equal(hex, public_hex);
    wpk_crypto_sign(key, "\xaf\x82", 2, signature);
    wpk_crypto_hex(signature, sizeof(signature), hex);
    assert_string_equal(hex, signature_hex);
    assert_true(wpk_crypto_verify(public_key, "\xaf\x82", 2, signature));
}

static void test_a_flipped_bit_is_no_signature(void **state)
{
    (void)state;
    uint8_t seed[WPK_SIGN_SEED_SIZE];
    uint8_t key[WPK_SIGN_KEY_SIZE];
    uint8_t public_key[WPK_SIGN_PUBLIC_SIZE];
    uint8_t signature[WPK_SIGNATURE_SIZE];
    uint8_t text[] = "what is signed";

    wpk_crypto_random(seed, sizeof(seed));
    wpk_crypto_sign_key(seed, key, public_key);
    wpk_crypto_sign(key, text, sizeof(text), signature);
    for (size_t bit = 0; bit < 8 * sizeof(text); bit++) {
        text[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(wpk_crypto_verify(public_key, text, sizeof(text), signature));
        text[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t bit = 0; bit < 8 * sizeof(signature); bit++) {
        signature[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(wpk_crypto_verify(public_key, text, sizeof(text), signature));
        signature[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t bit = 0; bit < 8 * sizeof(public_key); bit++) {
        public_key[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(wpk_crypto_verify(public_key, text, sizeof(text), signature));
        public_key[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(wpk_crypto_verify(public_key, text, sizeof(text), signature));
    wpk_crypto_wipe(seed, sizeof(seed));
    for (size_t i = 0; i < sizeof(seed); i++) {
        assert_int_equal(seed[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256_of_known_texts),
        cmocka_unit_test(test_streaming_equals_one_shot),
        cmocka_unit_test(test_hex),
        cmocka_unit_test(test_tokens_differ),
        cmocka_unit_test(test_unhex),
        cmocka_unit_test(test_signature_of_a_known_text),
        cmocka_unit_test(test_a_flipped_bit_is_no_signature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
