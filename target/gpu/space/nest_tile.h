/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over a contraction's tile of a block: pieces around threads around the points of a
 * piece. */
#ifndef WPK_TARGET_GPU_SPACE_NEST_TILE_H
#define WPK_TARGET_GPU_SPACE_NEST_TILE_H

#include "nest/nest.h"
#include "target/gpu/space/tiles.h"

/* The tile of a thread in pieces, which are apart. */
void wpk_cuda_add_pieces(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                         const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t);
/* Threads along the axis of which the block has several elements at a time, if there is one, along
 * i and along j. */
void wpk_cuda_add_threads(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                          const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t);
/* The points of a piece, which are written out. */
void wpk_cuda_add_points(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                         const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t);
/* All three. */
void wpk_cuda_add_tile(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                       const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t);

/* The threads that run along i or j: if threads along x share terms, there are others around. */
enum wpk_loop_binding wpk_cuda_thread_of(const struct wpk_cuda_group *group,
                                         const struct wpk_cuda_tiles *t, int along_j);
/* Make lanes of the last loop if it runs over four neighbours along j that a thread has: they are
 * stored or loaded together, if they can be. */
void wpk_cuda_bind_lanes(struct wpk_nest *nest, const struct wpk_nest_loops *loops,
                         const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t);

#endif
