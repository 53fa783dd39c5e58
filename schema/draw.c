/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/draw.h"

#include "common/crypto.h"
#include "schema/convert.h"

#include <string.h>

#define CHUNK 1024

double wpk_draw_uniform(struct wpk_rng *rng, enum wpk_dtype dtype, bool positive)
{
    switch (dtype) {
    case WPK_BOOL:
        return (double)wpk_rng_below(rng, 2);
    case WPK_U8:
        return (double)wpk_rng_between(rng, positive ? 1 : 0, 255);
    case WPK_I8:
        return (double)wpk_rng_between(rng, positive ? 1 : -128, 127);
    case WPK_I32:
    case WPK_I64:
        return (double)wpk_rng_between(rng, positive ? 1 : -1000, 1000);
    default:
        return positive ? 0.125 + 0.875 * wpk_rng_unit(rng) : 2 * wpk_rng_unit(rng) - 1;
    }
}

/* The seed with what the name hashes to, in the same order of bytes everywhere. */
static void start(struct wpk_rng *rng, uint64_t seed, const char *name)
{
    uint8_t hash[WPK_SHA256_SIZE];
    uint64_t own = 0;

    wpk_crypto_sha256(name, strlen(name), hash);
    for (int i = 0; i < 8; i++) {
        own = own << 8 | hash[i];
    }
    wpk_rng_seed(rng, seed ^ own);
}

void wpk_draw_tensor(uint64_t seed, const char *canonical, enum wpk_dtype dtype, bool positive,
                     int64_t count, void *out)
{
    struct wpk_rng rng;
    double chunk[CHUNK];

    start(&rng, seed, canonical);
    for (int64_t done = 0; done < count; done += CHUNK) {
        int64_t now = count - done < CHUNK ? count - done : CHUNK;
        for (int64_t i = 0; i < now; i++) {
            chunk[i] = wpk_draw_uniform(&rng, dtype, positive);
        }
        wpk_convert_narrow(dtype, chunk, now, (char *)out + (size_t)done * wpk_dtype_size(dtype));
    }
}
