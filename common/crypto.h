/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes and secrets. The only file that knows libsodium is crypto.c. */
#ifndef WPK_COMMON_CRYPTO_H
#define WPK_COMMON_CRYPTO_H

#include "common/err.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_SHA256_SIZE 32     /* bytes */
#define WPK_SHA256_HEX_SIZE 65 /* lower-case hex and NUL */
#define WPK_TOKEN_TEXT_SIZE 65 /* 256 random bits in hex and NUL */

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

/* Is it `size` bytes in lower-case hex, and nothing else? */
bool wpk_crypto_hex_valid(const char *text, size_t size);

/* Unpredictable bytes from the kernel: for tokens and ids, never for search (see rng.h). */
void wpk_crypto_random(void *out, size_t size);
void wpk_crypto_random_token(char out[WPK_TOKEN_TEXT_SIZE]);

/* Compare secrets in a time that does not depend on where they differ. */
bool wpk_crypto_equal(const void *a, const void *b, size_t size);

#ifdef __cplusplus
}
#endif
#endif
