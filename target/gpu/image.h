/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a program (schema/launch_plan.h), out of its launches and its code. */
#ifndef WPK_TARGET_GPU_IMAGE_H
#define WPK_TARGET_GPU_IMAGE_H

#include "schema/launch_plan.h"

/* Compare each launch with the function of the cubin (common/cubin.h): architecture, parameters,
 * shared memory, threads, and registers of all threads of a block. Write a thread's registers and
 * local memory down in the plan.
 *   errors  WPK_EUNSUPPORTED they disagree, with the function's name, or it is no cubin */
WPK_MUST_CHECK wpk_err wpk_cuda_image_describe(struct wpk_launch_plan *plan,
                                               const struct wpk_buf *cubin, struct wpk_diag *diag);

/* Describe the plan's launches, unless the cubin is empty, and write the image to `path`.
 *   errors  as above; those of wpk_fs_write; WPK_ENOMEM, WPK_ENOSPC */
WPK_MUST_CHECK wpk_err wpk_cuda_image_write(struct wpk_launch_plan *plan,
                                            const struct wpk_buf *cubin, const struct wpk_buf *ptx,
                                            const char *path, struct wpk_diag *diag);

#endif
