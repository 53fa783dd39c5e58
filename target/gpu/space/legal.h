/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a group's genes on a GPU. */
#ifndef WPK_TARGET_GPU_SPACE_LEGAL_H
#define WPK_TARGET_GPU_SPACE_LEGAL_H

#include "common/cuda_machine.h"
#include "search/space.h"

#define WPK_CUDA_THREADS_LEAST WPK_CUDA_WARP /* a warp, unless each thread has one result */

/* As wpk_space_kind's `legal` and `skip`. */
bool wpk_cuda_is_legal(const struct wpk_space *space, const struct wpk_candidate *candidate,
                       int group, const char **why);
int wpk_cuda_skip(const struct wpk_space *space, const struct wpk_candidate *candidate, int group);

#endif
