/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

void wpk_checksum_hex(const void *data, size_t size, char out[WPK_CHECKSUM_HEX_SIZE])
{
    XXH128_hash_t hash = XXH3_128bits(data, size);

    snprintf(out, WPK_CHECKSUM_HEX_SIZE, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}
