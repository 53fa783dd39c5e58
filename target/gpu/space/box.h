/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of windows. A contraction whose operand is read through a window, at indices such as
 * 2*y + r, may have the box of all that a block reads in a step in shared memory: each element
 * once, where the operand's copy has it for each point of the window. Windows are read from there.
 *
 *     X_b[n,c,i,j] = X[n,c,i-1,j-1]     X_t[c,r,s,n,y,x] = X_b[n,c,y+r,x+s]     T = sum X_t * W_t
 *     copied for a step of c            not copied */
#ifndef WPK_TARGET_GPU_SPACE_BOX_H
#define WPK_TARGET_GPU_SPACE_BOX_H

#include "target/gpu/space/groups.h"

/* Fill what the group's contraction has of a box; `whole` too if there is one. */
void wpk_cuda_find_box(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                       struct wpk_cuda_group *group);
/* True if an operand of the sum that is read through a window depends on the axis. */
bool wpk_cuda_is_windowed(const struct wpk_program *program, int sum, int axis);
/* A box in the memory of a block, and the threads that read it.
 *   shape   tile [WPK_CUDA_BOX_AXES]: elements along i, j, `whole` and k */
struct wpk_cuda_boxed {
    int64_t tile[WPK_CUDA_BOX_AXES];
    int64_t threads[2], piece[2]; /* along i, j; those along `whole` are around them */
};

/* Elements at whose multiples rows of the box begin and end: those of a sector, where the tensor's
 * rows are whole sectors and the box's are no short ones; or a power of two that is hardly more
 * than a short row, so that no warp has a piece of one; 1: any. *row: elements of a row then. */
int64_t wpk_cuda_box_align(const struct wpk_program *program, const struct wpk_cuda_group *group,
                           const struct wpk_cuda_boxed *box, int64_t *row);
/* Elements of the box, with `padding` behind each row. */
int64_t wpk_cuda_box_elements(const struct wpk_program *program, const struct wpk_cuda_group *group,
                              const struct wpk_cuda_boxed *box, int64_t padding);
/* The padding with which the banks serve a warp's read in the fewest rounds, and these. */
int64_t wpk_cuda_box_padding(const struct wpk_program *program, const struct wpk_cuda_group *group,
                             const struct wpk_cuda_boxed *box, int64_t *rounds);

#endif
