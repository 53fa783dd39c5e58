/* SPDX-License-Identifier: Apache-2.0 */
/* How the points of an axis or a box are dealt out to the threads of a block: the loops of a nest's
 * entry. */
#ifndef WPK_TARGET_GPU_SPACE_DEAL_H
#define WPK_TARGET_GPU_SPACE_DEAL_H

#include "nest/nest.h"

/* A loop around a box has cut this axis: further loops divide what it leaves, and move inwards as
 * it does at the end of the axis. */
struct wpk_cuda_cut {
    int axis; /* -1: none */
    int64_t extent;
};

void wpk_cuda_add_loop(struct wpk_nest *nest, struct wpk_nest_loops *loops, int axis,
                       enum wpk_loop_binding binding, int64_t step, enum wpk_tail tail);
/* `tail` where the step does not divide the extent. */
enum wpk_tail wpk_cuda_tail(int64_t extent, int64_t step, enum wpk_tail tail);

/* Threads along an axis: neighbours have neighbours, `vector` of them each, in lanes that the
 * caller adds inside. */
void wpk_cuda_deal_along(struct wpk_nest *nest, struct wpk_nest_loops *loops, int axis,
                         int64_t extent, int64_t threads, int64_t vector);
/* The lanes of each thread, if it has several neighbours. */
void wpk_cuda_deal_lanes(struct wpk_nest *nest, struct wpk_nest_loops *loops, int axis,
                         int64_t vector);

/* Deal out the points of a box to so many threads: neighbours in memory to neighbours, or `lanes`
 * of them, which divide the last extent, to each; then those of the longest axis, and of the next.
 *   shape   extent [rank] */
void wpk_cuda_deal(struct wpk_nest *nest, struct wpk_nest_loops *loops, int rank,
                   const int64_t *extent, struct wpk_cuda_cut cut, int64_t threads, int64_t lanes);

/* Deal out rows of terms that are padded. Eight rows begin in banks of their own: neighbours of a
 * quarter of a warp, which moves 16 bytes each, are eight rows; of a warp that gathers elements one
 * by one they are four in each of eight rows. The threads that are left have other terms, then
 * other rows, then elements of another axis. False: there are no eight rows or four terms. */
bool wpk_cuda_deal_rows(struct wpk_nest *nest, struct wpk_nest_loops *loops, int rank,
                        const int64_t *extent, int64_t threads, int64_t lanes);

/* Deal out short rows: neighbours to neighbours, and those rows together that are as far apart as
 * possible, so that padded ones are in banks of their own.
 *   shape   extent [rank] */
void wpk_cuda_deal_apart(struct wpk_nest *nest, struct wpk_nest_loops *loops, int rank,
                         const int64_t *extent, int64_t threads);

#endif
