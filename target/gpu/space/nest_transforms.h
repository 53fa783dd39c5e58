/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a nest that computes transforms (target/gpu/space/transforms.h). */
#ifndef WPK_TARGET_GPU_SPACE_NEST_TRANSFORMS_H
#define WPK_TARGET_GPU_SPACE_NEST_TRANSFORMS_H

#include "target/gpu/space/nest_build.h"

/* The root of transforms. Blocks and threads deal out tiles; a thread has all of a tile. */
void wpk_cuda_add_tiled_root(struct wpk_cuda_build *b, int g);
/* A transform, or what it copies, in the registers of a thread: all loops are unrolled. */
void wpk_cuda_add_transform(struct wpk_cuda_build *b, int g, int s);
/* Copy the operands of transforms to shared memory: neighbouring threads read neighbours there,
 * where each would read a row of its own tile in global memory. Rows of an odd number of elements
 * begin in banks of their own, those that are written together are as far apart as possible. */
void wpk_cuda_add_transform_copy(struct wpk_cuda_build *b, int g, int s);

/* The root of transforms behind a contraction that the same blocks compute: a block's tiles are
 * dealt out to the threads of the products. */
void wpk_cuda_add_root_behind(struct wpk_cuda_build *b, int g, int contraction);
/* The root of the contraction before it: products in shared memory, all that the transforms need
 * whole or so many at a time. */
void wpk_cuda_add_products(struct wpk_cuda_build *b, int g);
/* The root of transforms before a contraction that the same blocks compute: in shared memory, what
 * a step of the products reads. */
void wpk_cuda_add_root_before(struct wpk_cuda_build *b, int g, int contraction);

/* Bytes of shared memory that a block has of what the transforms of a group copy there. */
int64_t wpk_cuda_copied_bytes(const struct wpk_space *space, const struct wpk_candidate *candidate,
                              int group);

#endif
