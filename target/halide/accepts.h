/* SPDX-License-Identifier: Apache-2.0 */
/* Which nests Halide's back ends compile. */
#ifndef WPK_TARGET_HALIDE_ACCEPTS_H
#define WPK_TARGET_HALIDE_ACCEPTS_H

#include "nest/schedule.h"

/* True if `halide-cpu` compiles the schedule, whose nest is valid; else `diag` has the position of
 * the loop or stage that it does not, and what to write instead. */
bool wpk_halide_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag);
/* The same of `halide-cuda`. */
bool wpk_halide_cuda_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag);
/* True if the loops of an entry that are unrolled or in lanes have as many iterations in each
 * iteration of the loops around its place: Halide's are numbers. */
bool wpk_halide_is_cut(const struct wpk_nest *nest, const struct wpk_nest_entry *entry);

#endif
