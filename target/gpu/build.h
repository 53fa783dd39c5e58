/* SPDX-License-Identifier: Apache-2.0 */
/* Building by the back end `cuda`: printed as CUDA C and compiled by NVRTC. */
#ifndef WPK_TARGET_GPU_BUILD_H
#define WPK_TARGET_GPU_BUILD_H

#include "nest/schedule.h"

/* Compile the main program of the schedule for the architecture that its target names, and write
 * its image (schema/launch_plan.h), whose functions are SYMBOL_0, SYMBOL_1, ..., to `path`.
 *
 *   errors  WPK_EUNSUPPORTED NVRTC is missing, or the kernel cannot be printed or compiled; those
 *           of wpk_fs_write; WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_cuda_build(const struct wpk_schedule *schedule, const char *symbol,
                                      const char *path, struct wpk_diag *diag);

/* Open the compiler ahead, so that the processes that are forked later share it. A compiler that is
 * missing is no failure here. */
void wpk_cuda_warm(void);

#endif
