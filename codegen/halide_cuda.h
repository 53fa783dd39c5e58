/* SPDX-License-Identifier: Apache-2.0 */
/* Building by the back end `halide-cuda`: the nest of a GPU's schedule, replayed on Halide. */
#ifndef WPK_CODEGEN_HALIDE_CUDA_H
#define WPK_CODEGEN_HALIDE_CUDA_H

#include "codegen/schedule.h"

/* Compile the main program of the schedule for the architecture that its target names, and write
 * its image (schema/launch_plan.h), whose functions are SYMBOL_0, SYMBOL_1, ..., to `path`. What
 * cuda_print.h refuses, this does.
 *
 *   errors  WPK_EUNSUPPORTED with the reason; those of wpk_fs_write; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_halide_cuda_build(const struct wpk_schedule *schedule,
                                             const char *symbol, const char *path,
                                             struct wpk_diag *diag);

#endif
