/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that only move elements of f32 from global memory, with zeros for those that are outside
 * of their tensor: a GPU has instructions that do so 16 bytes at a time, or while it computes. */
#ifndef WPK_TARGET_GPU_SPACE_MOVES_H
#define WPK_TARGET_GPU_SPACE_MOVES_H

#include "target/gpu/space/tiles.h"

#define WPK_CUDA_VECTOR_ELEMENTS 4 /* of 16 bytes */

/* True if the stage says where its readers find a value, and computes none. */
bool wpk_cuda_moves_only(const struct wpk_program *program, int stage);
/* True if the stage moves elements of tensors that earlier launches leave, or of arguments. */
bool wpk_cuda_is_move(const struct wpk_program *program, const struct wpk_cuda_groups *groups,
                      int stage);
/* True if four neighbours along the last axis of such a stage, from a multiple of four on, are
 * neighbours in memory from a multiple of 16 bytes on. It is tried at some points: a back end that
 * cannot prove it moves one by one. */
bool wpk_cuda_is_vector_move(const struct wpk_program *program,
                             const struct wpk_cuda_groups *groups, int stage);

/* The axis of the stage along which the load, a node, finds neighbours in memory; -1: none. Stages
 * that only move elements are looked through. */
int wpk_cuda_contiguous_axis(const struct wpk_program *program, int stage, int load);
/* How many elements lie in memory from a neighbour along the axis to the next one, on average; at
 * most those of a sector, which is then read for each. */
double wpk_cuda_apart(const struct wpk_program *program, int stage, int load, int axis);
/* True if so many neighbours along the axis are neighbours in memory that lanes along it access
 * whole sectors. A window's rows are shorter. */
bool wpk_cuda_has_runs(const struct wpk_program *program, int stage, int load, int axis);

/* Boxes of windows. A contraction whose operand is read through a window, at indices such as
 * 2*y + r, may have the box of all that a block reads in a step in shared memory: each element
 * once, where the operand's copy has it for each point of the window. Windows are read from there.
 *
 *     X_b[n,c,i,j] = X[n,c,i-1,j-1]     X_t[c,r,s,n,y,x] = X_b[n,c,y+r,x+s]     T = sum X_t * W_t
 *     copied for a step of c            not copied */

/* Fill what the group of products has of a box, and make it one of windows, if there is one. */
void wpk_cuda_find_box(const struct wpk_program *program, const struct wpk_cuda_groups *all,
                       struct wpk_cuda_group *group);
/* True if an operand of the sum that is read through a window depends on the axis. */
bool wpk_cuda_is_windowed(const struct wpk_program *program, int sum, int axis);
/* Elements at whose multiples rows of the box begin and end: those of a sector, where the tensor's
 * rows are whole sectors and the box's are no short ones; or a power of two that is hardly more
 * than a short row, so that no warp has a piece of one; 1: any. *row: elements of a row then. */
int64_t wpk_cuda_box_align(const struct wpk_program *program, const struct wpk_cuda_group *group,
                           const struct wpk_cuda_tiles *t, int64_t *row);
/* Elements of the box, with `padding` behind each row. */
int64_t wpk_cuda_box_elements(const struct wpk_program *program, const struct wpk_cuda_group *group,
                              const struct wpk_cuda_tiles *t, int64_t padding);
/* The padding with which the banks serve a warp's read in the fewest rounds, and these. */
int64_t wpk_cuda_box_padding(const struct wpk_program *program, const struct wpk_cuda_group *group,
                             const struct wpk_cuda_tiles *t, int64_t *rounds);

#endif
