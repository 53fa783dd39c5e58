/* SPDX-License-Identifier: Apache-2.0 */
/* Reproducible random numbers: the same seed gives the same bits on every machine and compiler.
 *
 * A generator is always passed explicitly; none is global. Secrets come from crypto.h.
 *
 *   source  xoshiro256** 1.0 and splitmix64 (Blackman, Vigna: Scrambled linear pseudorandom number
 *           generators, ACM TOMS 47, 2021); bounded numbers: Lemire, ACM TOMACS 29, 2019 */
#ifndef WPK_COMMON_RNG_H
#define WPK_COMMON_RNG_H

#include "common/err.h"

#include <stdint.h>

/* A copy continues the same sequence. All zero is not a valid state: seed first. */
struct wpk_rng {
    uint64_t state[4];
};

/* Every seed is valid, 0 included. */
void wpk_rng_seed(struct wpk_rng *rng, uint64_t seed);

/* Seed `child` from `rng`, so that draws from one do not shift the other's sequence. */
void wpk_rng_fork(struct wpk_rng *rng, struct wpk_rng *child);

uint64_t wpk_rng_next(struct wpk_rng *rng);

/* Uniform in [0, bound), without bias; bound > 0. */
uint64_t wpk_rng_below(struct wpk_rng *rng, uint64_t bound);

/* Uniform in [low, high], both included; low <= high. */
int64_t wpk_rng_between(struct wpk_rng *rng, int64_t low, int64_t high);

/* Uniform in [0, 1), a multiple of 2^-53. */
double wpk_rng_unit(struct wpk_rng *rng);

/* True with this probability, in [0, 1]. */
bool wpk_rng_chance(struct wpk_rng *rng, double probability);

#endif
