/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/nest_tile.h"

#include "target/gpu/space/deal.h"
#include "target/gpu/space/moves.h"

void wpk_cuda_add_pieces(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                         const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    const int axis[] = {group->i, group->j};
    for (int a = 0; a < 2; a++) {
        if (axis[a] >= 0 && t->virtual_threads[a] > 1) {
            wpk_cuda_add_loop(nest, loops, axis[a], WPK_BIND_UNROLL,
                              t->block[a] / t->virtual_threads[a], WPK_TAIL_EXACT);
        }
    }
}

void wpk_cuda_add_points(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                         const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    const int axis[] = {group->i, group->j};
    for (int a = 0; a < 2; a++) {
        if (axis[a] >= 0 && t->piece[a] > 1) {
            wpk_cuda_add_loop(nest, loops, axis[a], WPK_BIND_UNROLL, 1, WPK_TAIL_EXACT);
        }
    }
}

enum wpk_loop_binding wpk_cuda_thread_of(const struct wpk_cuda_group *group,
                                         const struct wpk_cuda_tiles *t, int along_j)
{
    bool around = group->rows && t->share > 1;
    return along_j ? (around ? WPK_BIND_THREAD_Y : WPK_BIND_THREAD_X)
                   : (around ? WPK_BIND_THREAD_Z : WPK_BIND_THREAD_Y);
}

void wpk_cuda_bind_lanes(struct wpk_nest *nest, const struct wpk_nest_loops *loops,
                         const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    struct wpk_nest_loop *last = &nest->loop[loops->first + loops->count - 1];
    if (t->piece[1] == WPK_CUDA_VECTOR_ELEMENTS && last->axis == group->j && last->step == 1) {
        last->binding = WPK_BIND_LANES;
    }
}

void wpk_cuda_add_threads(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                          const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    const int axis[] = {group->i, group->j};
    if (t->together > 1) {
        wpk_cuda_add_loop(nest, loops, group->whole, WPK_BIND_THREAD_Z, 1, WPK_TAIL_EXACT);
    }
    for (int a = 0; a < 2; a++) {
        if (axis[a] >= 0) {
            wpk_cuda_add_loop(nest, loops, axis[a], wpk_cuda_thread_of(group, t, a), t->piece[a],
                              WPK_TAIL_EXACT);
        }
    }
}

void wpk_cuda_add_tile(struct wpk_nest *nest, struct wpk_nest_loops *loops,
                       const struct wpk_cuda_group *group, const struct wpk_cuda_tiles *t)
{
    wpk_cuda_add_pieces(nest, loops, group, t);
    wpk_cuda_add_threads(nest, loops, group, t);
    wpk_cuda_add_points(nest, loops, group, t);
}
