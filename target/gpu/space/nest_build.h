/* SPDX-License-Identifier: Apache-2.0 */
/* A nest of a candidate on a GPU while it is built. */
#ifndef WPK_TARGET_GPU_SPACE_NEST_BUILD_H
#define WPK_TARGET_GPU_SPACE_NEST_BUILD_H

#include "nest/nest.h"
#include "target/gpu/space/tiles.h"

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

#endif
