/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms: short sums over the axes of a literal, such as those of Winograd's algorithm. Each
 * thread computes them for a tile of its own, in registers, with all loops over the literal's axes
 * unrolled: then the literal's values are constants in the code, and products by 0 and 1 fold.
 *
 *     V: { T_v <- T_v_r <- T_v1 <- X_t }        Y: { Y <- T_s <- T_s1 }
 *
 * What the first one reads may lie in shared memory, copied by all threads of the block. A chain of
 * transforms begins at what it reads and ends in a pointwise stage, the root of its
 * group. The root has whole tiles of each axis that the transforms need whole. */
#ifndef WPK_TARGET_GPU_SPACE_TRANSFORMS_H
#define WPK_TARGET_GPU_SPACE_TRANSFORMS_H

#include "ir/program.h"
#include "target/gpu/space/groups.h"

/* True for a sum all of whose reduction axes index literals, and which the prepare program does not
 * compute. */
bool wpk_cuda_is_transform(const struct wpk_program *program, int s);

/* The last stage of the chain that ends in the pointwise stage `root`, or -1: there is none, or a
 * thread cannot compute it for a tile. Fill `tile`, unless it is NULL, with the elements of each
 * axis of the root that a thread has together.
 *   shape   tile [WPK_AXES_MAX] */
int wpk_cuda_transform_of(const struct wpk_program *program, int root, int64_t *tile);

/* The root of the chain that the stage is part of, as a transform or as a stage that moves a
 * transform's values; -1: it is part of none. */
int wpk_cuda_transform_root(const struct wpk_program *program, int s);

/* True if the stage copies elements, some of them from outside of their tensor, for a transform. */
bool wpk_cuda_is_transform_copy(const struct wpk_program *program, int s);

/* A load of the transform that should read such a copy: one that may be outside of its tensor; -1:
 * there is none. */
int wpk_cuda_transform_operand(const struct wpk_program *program, int s);

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

/* Make groups of products whose blocks may compute transforms joined ones. */
void wpk_cuda_find_joins(const struct wpk_program *program, struct wpk_cuda_groups *all);

/* Find the elements of each axis of the root of transforms behind `group` that a block has for a
 * tile of `block` elements along i and j; false: no whole tiles of the root need just these.
 *   shape   block [2]; extent [WPK_AXES_MAX] */
bool wpk_cuda_fit(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                  const struct wpk_cuda_group *group, const int64_t *block, int64_t *extent);

/* How the stages of a program read a tensor. */

struct wpk_cuda_reading {
    int loads;
    int stage;      /* of the last of them; -1: none */
    int load;       /* node of the last of them; -1: none */
    bool own_point; /* all loads read at the stage's own point */
    bool at_axes;   /* all loads have an axis as each index */
};

struct wpk_cuda_reading wpk_cuda_read(const struct wpk_program *program, int tensor);

#endif
