/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes and secrets. The only file that knows libsodium is crypto.c. */
#ifndef WPK_COMMON_CRYPTO_H
#define WPK_COMMON_CRYPTO_H

#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

#define WPK_SHA256_SIZE 32     /* bytes */
#define WPK_SHA256_HEX_SIZE 65 /* lower-case hex and NUL */
#define WPK_TOKEN_TEXT_SIZE 65 /* 256 random bits in hex and NUL */

#define WPK_SIGN_SEED_SIZE 32       /* bytes: the secret that is stored */
#define WPK_SIGN_KEY_SIZE 64        /* bytes: the secret that signs */
#define WPK_SIGN_PUBLIC_SIZE 32     /* bytes */
#define WPK_SIGN_PUBLIC_HEX_SIZE 65 /* lower-case hex and NUL */
#define WPK_SIGNATURE_SIZE 64       /* bytes */
#define WPK_SIGNATURE_HEX_SIZE 129  /* lower-case hex and NUL */

/* A SHA-256 in progress; by value, holds nothing to free. */
struct wpk_crypto_hash {
    uint64_t state[16];
};

void wpk_crypto_hash_init(struct wpk_crypto_hash *hash);
void wpk_crypto_hash_add(struct wpk_crypto_hash *hash, const void *data, size_t size);
void wpk_crypto_hash_finish(struct wpk_crypto_hash *hash, uint8_t out[WPK_SHA256_SIZE]);
void wpk_crypto_hash_finish_hex(struct wpk_crypto_hash *hash, char out[WPK_SHA256_HEX_SIZE]);

/* SHA-256 of one block. */
void wpk_crypto_sha256(const void *data, size_t size, uint8_t out[WPK_SHA256_SIZE]);
void wpk_crypto_sha256_hex(const void *data, size_t size, char out[WPK_SHA256_HEX_SIZE]);

/* Lower-case hex of `size` bytes; `out` has room for 2 * size + 1. */
void wpk_crypto_hex(const void *data, size_t size, char *out);

/* True if `text` is `size` bytes in lower-case hex, and nothing else. */
bool wpk_crypto_hex_valid(const char *text, size_t size);

/* Decode `size` bytes of lower-case hex; false for any other text. */
WPK_MUST_CHECK bool wpk_crypto_unhex(const char *text, size_t size, void *out);

/* Get unpredictable bytes for tokens and ids; a search uses rng.h. */
void wpk_crypto_random(void *out, size_t size);
void wpk_crypto_random_token(char out[WPK_TOKEN_TEXT_SIZE]);

/* True if two secrets are equal; the time does not depend on where they differ. */
bool wpk_crypto_equal(const void *a, const void *b, size_t size);

/* Overwrite a secret, in a way that no optimiser leaves out. */
void wpk_crypto_wipe(void *secret, size_t size);

/* ---- signatures: Ed25519 (RFC 8032) */

/* Derive the key pair from a seed of random bytes. */
void wpk_crypto_sign_key(const uint8_t seed[WPK_SIGN_SEED_SIZE], uint8_t key[WPK_SIGN_KEY_SIZE],
                         uint8_t public_key[WPK_SIGN_PUBLIC_SIZE]);
void wpk_crypto_sign(const uint8_t key[WPK_SIGN_KEY_SIZE], const void *data, size_t size,
                     uint8_t out[WPK_SIGNATURE_SIZE]);
bool wpk_crypto_verify(const uint8_t public_key[WPK_SIGN_PUBLIC_SIZE], const void *data,
                       size_t size, const uint8_t signature[WPK_SIGNATURE_SIZE]);

/* Tells whether a large block of bytes was changed by accident, at the speed of memory. It protects
 * from nobody who changes bytes on purpose, as a hash does. */

#define WPK_CHECKSUM_HEX_SIZE 33 /* lower-case hex and NUL */

/* XXH3 with 128 bits.   shape  data: bytes [size] */
void wpk_checksum_hex(const void *data, size_t size, char out[WPK_CHECKSUM_HEX_SIZE]);

#endif
