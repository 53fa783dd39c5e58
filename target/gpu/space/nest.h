/* SPDX-License-Identifier: Apache-2.0 */
/* The nest of a candidate on a GPU. */
#ifndef WPK_TARGET_GPU_SPACE_NEST_H
#define WPK_TARGET_GPU_SPACE_NEST_H

#include "nest/nest.h"
#include "target/gpu/space/tiles.h"

/* Give the genes of groups that a row's block computes, tiles of rows, and threads of rows that are
 * apart their first choice. */
void wpk_cuda_settle(const struct wpk_space *space, struct wpk_candidate *candidate);
/* Fill `out` with the nest of a legal candidate.   errors  WPK_ENOSPC a limit of nest/nest.h */
wpk_err wpk_cuda_nest(const struct wpk_space *space, const struct wpk_candidate *candidate,
                      struct wpk_nest *out);

#endif
