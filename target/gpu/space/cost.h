/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a group's tiles: memory, registers, and seconds by a model. */
#ifndef WPK_TARGET_GPU_SPACE_COST_H
#define WPK_TARGET_GPU_SPACE_COST_H

#include "common/cuda_machine.h"
#include "search/space.h"
#include "target/gpu/space/tiles.h"

void wpk_cuda_read_machine(const struct wpk_space *space, struct wpk_cuda_machine *out);

/* Bytes of shared memory of a block's operands, and of what a block's rows read that it computes.
 */
int64_t wpk_cuda_shared_bytes(const struct wpk_program *program, const struct wpk_cuda_group *group,
                              const struct wpk_cuda_tiles *t);
int64_t wpk_cuda_row_bytes(const struct wpk_variant *variant, const struct wpk_cuda_group *group,
                           const struct wpk_cuda_tiles *t);
/* Registers of a thread: of a tile, or of a root that ends transforms. */
int64_t wpk_cuda_registers(const struct wpk_cuda_tiles *t);
int64_t wpk_cuda_tile_registers(const struct wpk_stage *root, const struct wpk_cuda_group *group);
/* Terms of the group's reduction; 1 without one. */
double wpk_cuda_terms(const struct wpk_program *program, const struct wpk_cuda_group *group);

/* Predicted seconds of a launch of transforms. */
double wpk_cuda_transform_bound(const struct wpk_stage *root, const struct wpk_cuda_group *group,
                                const struct wpk_cuda_tiles *t, const struct wpk_cuda_machine *m);

/* The rules of a group's genes on a GPU. */

#define WPK_CUDA_THREADS_LEAST WPK_CUDA_WARP /* a warp, unless each thread has one result */

/* The number of the group's first genes whose values need no looking at beside those of the others:
 * with these the candidate is illegal, or another one's kernel, whatever the first are. 0: it is to
 * be looked at. */
int wpk_cuda_skip(const struct wpk_space *space, const struct wpk_candidate *candidate, int group);

#endif
