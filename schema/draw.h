/* SPDX-License-Identifier: Apache-2.0 */
/* The values that tensors are tested with: the same for the same seed on every machine. */
#ifndef WPK_SCHEMA_DRAW_H
#define WPK_SCHEMA_DRAW_H

#include "common/rng.h"
#include "schema/tensor.h"

/* One value of the uniform set: reals in [-1, 1), integers from their type's range as far as sums
 * of products cannot leave 32 bits. `positive`: for operators that are undefined on others. */
double wpk_draw_uniform(struct wpk_rng *rng, enum wpk_dtype dtype, bool positive);

/* Fill a tensor from the uniform set, for a self-test. Each tensor has a stream of its own, which
 * depends on the seed and its canonical name alone.
 *   shape   out [count] elements of the type */
void wpk_draw_tensor(uint64_t seed, const char *canonical, enum wpk_dtype dtype, bool positive,
                     int64_t count, void *out);

#endif
