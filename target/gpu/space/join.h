/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms that may be computed in the blocks of the contraction beside them.
 *
 *     apart    { V <- V1 <- X_t }   { M <- M_r <- V_t, U_t }   { Y <- S <- S1 }
 *     behind   { V <- V1 <- X_t }   { Y <- S <- S1 <- M <- M_r <- V_t, U_t }
 *     before                        { M <- M_r <- U_t, V <- V1 <- X_t }   { Y <- S <- S1 }
 *     both                          { Y <- S <- S1 <- M <- M_r <- U_t, V <- V1 <- X_t }
 *
 * A block has all elements of the contraction's axis that the transforms need whole, of its tile
 * along i and j. Behind the products: their sums lie in shared memory, from where the threads read
 * tiles of the last stage. Before them: what is transformed lies in shared memory in the place of
 * the operand's copy, for the terms of a step. */
#ifndef WPK_TARGET_GPU_SPACE_JOIN_H
#define WPK_TARGET_GPU_SPACE_JOIN_H

#include "target/gpu/space/groups.h"

/* Fill what the groups' contractions may have in their blocks: `behind`, `before`, `whole`. */
void wpk_cuda_find_joins(const struct wpk_program *program, struct wpk_cuda_groups *all);

/* Find the elements of each axis of the root of transforms behind `group` that a block has for a
 * tile of `block` elements along i and j; false: no whole tiles of the root need just these.
 *   shape   block [2]; extent [WPK_AXES_MAX] */
bool wpk_cuda_fit(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                  const struct wpk_cuda_group *group, const int64_t *block, int64_t *extent);

#endif
