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

#endif
