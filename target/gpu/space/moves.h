/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that only move elements of f32 from global memory, with zeros for those that are outside
 * of their tensor: a GPU has instructions that do so 16 bytes at a time, or while it computes. */
#ifndef WPK_TARGET_GPU_SPACE_MOVES_H
#define WPK_TARGET_GPU_SPACE_MOVES_H

#include "target/gpu/space/groups.h"

#define WPK_CUDA_VECTOR_ELEMENTS 4 /* of 16 bytes */

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

#endif
