/* SPDX-License-Identifier: Apache-2.0 */
/* Values for tests of tensors: the same for the same seed on every machine. */
#ifndef WPK_SCHEMA_DRAW_H
#define WPK_SCHEMA_DRAW_H

#include "common/rng.h"
#include "schema/tensor.h"

#define WPK_DOMAIN_MOST 1e300 /* stands for no limit */

/* The interval [low, high] of a tensor's elements; of integers, those in it. */
struct wpk_domain {
    double low;
    double high;
};

/* No limits. */
struct wpk_domain wpk_domain_all(void);

/* The domains that inputs of tests are drawn from. An operator gets the first one in which it is
 * defined: logarithms want positive numbers, acosh larger ones, atanh smaller ones.
 * Suffix, text. */
#define WPK_DRAW_DOMAIN_LIST(X)                                                                    \
    X(ANY, "any")             /* reals in [-1, 1) */                                               \
    X(POSITIVE, "positive")   /* in [0.125, 1), integers from 1 on */                              \
    X(ABOVE_ONE, "above one") /* in [1.125, 3), integers from 1 on */                              \
    X(BELOW_ONE, "below one") /* in [-0.875, 0.875) */

#define WPK_DRAW_DOMAIN_ENUM(name, text) WPK_DRAW_##name,
enum wpk_draw_domain { WPK_DRAW_DOMAIN_LIST(WPK_DRAW_DOMAIN_ENUM) WPK_DRAW_DOMAINS };

/* Draw one value of the uniform set: reals from the domain, integers from the part of their type's
 * range in which sums of products fit 32 bits. */
double wpk_draw_uniform(struct wpk_rng *rng, enum wpk_dtype dtype, enum wpk_draw_domain domain);

/* Draw an integer of [low, high] that lies in the domain; if none does, one of the two above the
 * domain's lower end. */
double wpk_draw_integer(struct wpk_rng *rng, struct wpk_domain domain, double low, double high);

/* Fill a tensor from the uniform set, for a self-test. Each tensor has its own sequence, which
 * depends only on the seed and on its canonical name.
 *   shape   out [count] elements of the type */
void wpk_draw_tensor(uint64_t seed, const char *canonical, enum wpk_dtype dtype,
                     enum wpk_draw_domain domain, int64_t count, void *out);

/* The same from the part of the uniform set that lies in a domain; if none does, from the unit
 * interval, or the two integers, above its lower end. */
void wpk_draw_in_domain(uint64_t seed, const char *name, enum wpk_dtype dtype,
                        struct wpk_domain domain, int64_t count, void *out);

#endif
