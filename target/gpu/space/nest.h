/* SPDX-License-Identifier: Apache-2.0 */
/* The nest of a candidate on a GPU. */
#ifndef WPK_TARGET_GPU_SPACE_NEST_H
#define WPK_TARGET_GPU_SPACE_NEST_H

#include "nest/nest.h"
#include "target/gpu/space/tiles.h"

/* Give the genes of groups that a row's block computes, tiles of rows, and threads of rows that are
 * apart their first choice. */
void wpk_cuda_settle(const struct wpk_space *space, struct wpk_candidate *candidate);

/* A nest of a candidate on a GPU while it is built. */

struct wpk_cuda_build {
    struct wpk_nest *nest;
    const struct wpk_cuda_groups *groups;
    struct wpk_cuda_tiles tiles[WPK_CUDA_GROUPS_MAX];
    /* Of transforms, the contraction whose blocks compute them,
     * behind or before its products; -1: there is none. */
    int behind_of[WPK_CUDA_GROUPS_MAX], before_of[WPK_CUDA_GROUPS_MAX];
    int entry_of[WPK_STAGES_MAX];
    int block_loop[WPK_CUDA_GROUPS_MAX]; /* the root's last loop over blocks; -1: none */
    int step_loop[WPK_CUDA_GROUPS_MAX];  /* the reduction's loop that operands are staged in, or the
                                          last one over blocks around those over threads */
};

/* The group whose rows' block computes the group, or -1: it is a launch. */
int wpk_cuda_find_host(const struct wpk_cuda_build *b, int g);
/* The copy of a box that windows of the group's operand are read out of. */
void wpk_cuda_add_box(struct wpk_cuda_build *b, int g, int stage);

/* Loops over a contraction's tile of a block: pieces around threads around the points of a
 * piece. */

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

/* The part of a nest that computes transforms (target/gpu/space/transforms.h). */

/* The root of the contraction before it: products in shared memory, all that the transforms need
 * whole or so many at a time. */
void wpk_cuda_add_products(struct wpk_cuda_build *b, int g);

/* Bytes of shared memory that a block has of what the transforms of a group copy there. */
int64_t wpk_cuda_copied_bytes(const struct wpk_space *space, const struct wpk_candidate *candidate,
                              int group);

/* How the points of an axis or a box are dealt out to the threads of a block: the loops of a nest's
 * entry. */

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
