/* SPDX-License-Identifier: Apache-2.0 */
/* Which nests Halide's back ends compile. */
#ifndef WPK_TARGET_HALIDE_ACCEPTS_H
#define WPK_TARGET_HALIDE_ACCEPTS_H

#include "nest/schedule.h"
#include "schema/launch_plan.h"

/* True if `halide-cpu` compiles the schedule, whose nest is valid; else `diag` has the position of
 * the loop or stage that it does not, and what to write instead. */
bool wpk_halide_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag);
/* The same of `halide-cuda`. */
bool wpk_halide_cuda_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag);
/* True if the loops of an entry that are unrolled or in lanes have as many iterations in each
 * iteration of the loops around its place: Halide's are numbers. */
bool wpk_halide_is_cut(const struct wpk_nest *nest, const struct wpk_nest_entry *entry);

/* Building by the back end `halide-cuda`: the nest of a GPU's schedule, replayed on Halide. */

/* Compile the main program of a schedule that is accepted (target/halide/accepts.h) for the
 * architecture that its target names: fill the plan of its launches, and append its kernels as PTX,
 * functions SYMBOL_0, SYMBOL_1, ...
 *
 *   errors  WPK_EUNSUPPORTED with the reason: what target/gpu/print.h refuses, this does;
 *   WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_halide_cuda_compile(const struct wpk_schedule *schedule,
                                               const char *symbol, struct wpk_launch_plan *plan,
                                               struct wpk_buf *ptx, struct wpk_diag *diag);
/* The same as an image (schema/launch_plan.h), which is written to `path`, with machine code by
 * ptxas where there is one (target/gpu/build.h): else a driver has to compile the PTX.
 *   errors  those of wpk_fs_write, too */
WPK_MUST_CHECK wpk_err wpk_halide_cuda_build(const struct wpk_schedule *schedule,
                                             const char *symbol, const char *path,
                                             struct wpk_diag *diag);

#endif
