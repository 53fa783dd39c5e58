/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto.h"

#include <sodium.h>
#include <string.h>

_Static_assert(WPK_SHA256_SIZE == crypto_hash_sha256_BYTES, "sizes agree");
_Static_assert(WPK_SIGN_SEED_SIZE == crypto_sign_SEEDBYTES, "sizes agree");
_Static_assert(WPK_SIGN_KEY_SIZE == crypto_sign_SECRETKEYBYTES, "sizes agree");
_Static_assert(WPK_SIGN_PUBLIC_SIZE == crypto_sign_PUBLICKEYBYTES, "sizes agree");
_Static_assert(WPK_SIGNATURE_SIZE == crypto_sign_BYTES, "sizes agree");
_Static_assert(sizeof(struct wpk_crypto_hash) >= sizeof(crypto_hash_sha256_state),
               "the opaque state holds libsodium's");

/* Idempotent and safe from several threads; hashing needs no set-up, random numbers do. */
static void start_sodium(void)
{
    int rc = sodium_init();

    WPK_ASSERT(rc >= 0);
}

static crypto_hash_sha256_state *state_of(struct wpk_crypto_hash *hash)
{
    return (crypto_hash_sha256_state *)(void *)hash->state;
}

void wpk_crypto_hash_init(struct wpk_crypto_hash *hash)
{
    crypto_hash_sha256_init(state_of(hash));
}

void wpk_crypto_hash_add(struct wpk_crypto_hash *hash, const void *data, size_t size)
{
    WPK_ASSERT(data != NULL || size == 0);
    if (size > 0) {
        crypto_hash_sha256_update(state_of(hash), data, size);
    }
}

void wpk_crypto_hash_finish(struct wpk_crypto_hash *hash, uint8_t out[WPK_SHA256_SIZE])
{
    crypto_hash_sha256_final(state_of(hash), out);
}

void wpk_crypto_hash_finish_hex(struct wpk_crypto_hash *hash, char out[WPK_SHA256_HEX_SIZE])
{
    uint8_t digest[WPK_SHA256_SIZE];

    wpk_crypto_hash_finish(hash, digest);
    wpk_crypto_hex(digest, sizeof(digest), out);
}

void wpk_crypto_sha256(const void *data, size_t size, uint8_t out[WPK_SHA256_SIZE])
{
    struct wpk_crypto_hash hash;

    wpk_crypto_hash_init(&hash);
    wpk_crypto_hash_add(&hash, data, size);
    wpk_crypto_hash_finish(&hash, out);
}

void wpk_crypto_sha256_hex(const void *data, size_t size, char out[WPK_SHA256_HEX_SIZE])
{
    uint8_t digest[WPK_SHA256_SIZE];

    wpk_crypto_sha256(data, size, digest);
    wpk_crypto_hex(digest, sizeof(digest), out);
}

void wpk_crypto_hex(const void *data, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *bytes = data;

    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * size] = '\0';
}

bool wpk_crypto_hex_valid(const char *text, size_t size)
{
    return strspn(text, "0123456789abcdef") == 2 * size && text[2 * size] == '\0';
}

static int digit_value(char digit)
{
    return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

bool wpk_crypto_unhex(const char *text, size_t size, void *out)
{
    uint8_t *bytes = out;

    if (!wpk_crypto_hex_valid(text, size)) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(digit_value(text[2 * i]) << 4 | digit_value(text[2 * i + 1]));
    }
    return true;
}

void wpk_crypto_random(void *out, size_t size)
{
    WPK_ASSERT(out != NULL || size == 0);
    start_sodium();
    randombytes_buf(out, size);
}

void wpk_crypto_random_token(char out[WPK_TOKEN_TEXT_SIZE])
{
    uint8_t bits[(WPK_TOKEN_TEXT_SIZE - 1) / 2];

    wpk_crypto_random(bits, sizeof(bits));
    wpk_crypto_hex(bits, sizeof(bits), out);
}

bool wpk_crypto_equal(const void *a, const void *b, size_t size)
{
    return sodium_memcmp(a, b, size) == 0;
}

void wpk_crypto_wipe(void *secret, size_t size)
{
    sodium_memzero(secret, size);
}

void wpk_crypto_sign_key(const uint8_t seed[WPK_SIGN_SEED_SIZE], uint8_t key[WPK_SIGN_KEY_SIZE],
                         uint8_t public_key[WPK_SIGN_PUBLIC_SIZE])
{
    start_sodium();
    int rc = crypto_sign_seed_keypair(public_key, key, seed);

    WPK_ASSERT(rc == 0);
}

void wpk_crypto_sign(const uint8_t key[WPK_SIGN_KEY_SIZE], const void *data, size_t size,
                     uint8_t out[WPK_SIGNATURE_SIZE])
{
    start_sodium();
    int rc = crypto_sign_detached(out, NULL, data, size, key);

    WPK_ASSERT(rc == 0);
}

bool wpk_crypto_verify(const uint8_t public_key[WPK_SIGN_PUBLIC_SIZE], const void *data,
                       size_t size, const uint8_t signature[WPK_SIGNATURE_SIZE])
{
    start_sodium();
    return crypto_sign_verify_detached(signature, data, size, public_key) == 0;
}
