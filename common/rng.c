/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rng.h"

static uint64_t rotate_left(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* The seeder: equidistributed, and never leaves the main generator all zero. */
static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void wpk_rng_seed(struct wpk_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        rng->state[i] = splitmix64(&seed);
    }
}

void wpk_rng_fork(struct wpk_rng *rng, struct wpk_rng *child)
{
    WPK_ASSERT(rng != child);
    wpk_rng_seed(child, wpk_rng_next(rng));
}

uint64_t wpk_rng_next(struct wpk_rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t wpk_rng_below(struct wpk_rng *rng, uint64_t bound)
{
    WPK_ASSERT(bound > 0);
    /* The high half of a 128-bit product is uniform once the few low halves that would make some
     * results likelier are drawn again: 2^64 mod bound of them. */
    unsigned __int128 product = (unsigned __int128)wpk_rng_next(rng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t excess = -bound % bound;
        while ((uint64_t)product < excess) {
            product = (unsigned __int128)wpk_rng_next(rng) * bound;
        }
    }
    return (uint64_t)(product >> 64);
}

int64_t wpk_rng_between(struct wpk_rng *rng, int64_t low, int64_t high)
{
    WPK_ASSERT(low <= high);
    uint64_t span = (uint64_t)high - (uint64_t)low;
    uint64_t offset = span == UINT64_MAX ? wpk_rng_next(rng) : wpk_rng_below(rng, span + 1);

    return (int64_t)((uint64_t)low + offset);
}

double wpk_rng_unit(struct wpk_rng *rng)
{
    return (double)(wpk_rng_next(rng) >> 11) * 0x1p-53;
}

bool wpk_rng_chance(struct wpk_rng *rng, double probability)
{
    WPK_ASSERT(probability >= 0);
    WPK_ASSERT(probability <= 1);
    return wpk_rng_unit(rng) < probability;
}
