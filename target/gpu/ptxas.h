/* SPDX-License-Identifier: Apache-2.0 */
/* ptxas, NVIDIA's assembler: it makes machine code of Halide's PTX. NVRTC needs none. */
#ifndef WPK_TARGET_GPU_PTXAS_H
#define WPK_TARGET_GPU_PTXAS_H

#include "common/buf.h"

/* The program: in bin of the toolkit (target/gpu/nvrtc.h); if none is set, where
 * `make setup-gpu` puts it, or in /usr/local/cuda/bin; NULL: there is none.
 *   owns  static */
const char *wpk_cuda_ptxas_find(void);

/* Assemble PTX for an architecture as in "sm_90", and append the cubin. Files are written beside
 * `path`, with its name and an ending.
 *   errors  WPK_ENOENT there is no ptxas; WPK_EUNSUPPORTED it refuses the code, and standard error
 *           has its messages; those of wpk_fs_write and wpk_fs_read; WPK_ENOSPC the path is too
 *           long; WPK_ESYSTEM, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_cuda_ptxas(const struct wpk_buf *ptx, const char *architecture,
                                      const char *path, struct wpk_buf *cubin,
                                      struct wpk_diag *diag);

#endif
