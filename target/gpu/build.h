/* SPDX-License-Identifier: Apache-2.0 */
/* Building by the back end `cuda`: printed as CUDA C and compiled by NVRTC. */
#ifndef WPK_TARGET_GPU_BUILD_H
#define WPK_TARGET_GPU_BUILD_H

#include "common/buf.h"
#include "nest/schedule.h"
#include "schema/launch_plan.h"

/* Compile the main program of the schedule for the architecture that its target names, and write
 * its image (schema/launch_plan.h), whose functions are SYMBOL_0, SYMBOL_1, ..., to `path`.
 *
 *   errors  WPK_EUNSUPPORTED NVRTC is missing, or the kernel cannot be printed or compiled; those
 *           of wpk_fs_write; WPK_ENOMEM */
wpk_err wpk_cuda_build(const struct wpk_schedule *schedule, const char *symbol, const char *path,
                       struct wpk_diag *diag);

/* Open the compiler ahead, so that the processes that are forked later share it. A compiler that is
 * missing is no failure here. */
void wpk_cuda_warm(void);

/* The image of a program (schema/launch_plan.h), out of its launches and its code. */

/* Compare each launch with the function of the cubin (common/cubin.h): architecture, parameters,
 * shared memory, threads, and registers of all threads of a block. Write a thread's registers and
 * local memory down in the plan.
 *   errors  WPK_EUNSUPPORTED they disagree, with the function's name, or it is no cubin */
wpk_err wpk_cuda_image_describe(struct wpk_launch_plan *plan, const struct wpk_buf *cubin,
                                struct wpk_diag *diag);

/* Describe the plan's launches, unless the cubin is empty, and write the image to `path`.
 *   errors  as above; those of wpk_fs_write; WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_cuda_image_write(struct wpk_launch_plan *plan, const struct wpk_buf *cubin,
                             const struct wpk_buf *ptx, const char *path, struct wpk_diag *diag);

/* ptxas, NVIDIA's assembler: it makes machine code of Halide's PTX. NVRTC needs none. */

/* The program: in bin of the toolkit (target/gpu/nvrtc.h); if none is set, where
 * `make setup-gpu` puts it, or in /usr/local/cuda/bin; NULL: there is none.
 *   owns  static */
const char *wpk_cuda_ptxas_find(void);

/* Assemble PTX for an architecture as in "sm_90", and append the cubin. Files are written beside
 * `path`, with its name and an ending.
 *   errors  WPK_ENOENT there is no ptxas; WPK_EUNSUPPORTED it refuses the code, and standard error
 *           has its messages; those of wpk_fs_write and wpk_fs_read; WPK_ENOSPC the path is too
 *           long; WPK_ESYSTEM, WPK_ENOMEM */
wpk_err wpk_cuda_ptxas(const struct wpk_buf *ptx, const char *architecture, const char *path,
                       struct wpk_buf *cubin, struct wpk_diag *diag);

#endif
