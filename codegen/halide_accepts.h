/* SPDX-License-Identifier: Apache-2.0 */
/* Which nests Halide's back ends compile. */
#ifndef WPK_CODEGEN_HALIDE_ACCEPTS_H
#define WPK_CODEGEN_HALIDE_ACCEPTS_H

#include "codegen/schedule.h"

/* True if `halide-cpu` compiles the schedule, whose nest is valid; else `diag` has the position of
 * the loop or stage that it does not, and what to write instead. */
bool wpk_halide_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag);
/* The same of `halide-cuda`. */
bool wpk_halide_cuda_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag);

#endif
