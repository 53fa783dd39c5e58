/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a GPU is there at all. A process whose device was lost does not get it back: a new one
 * asks. */
#ifndef WPK_WORKER_RUNNER_GPU_PROBE_H
#define WPK_WORKER_RUNNER_GPU_PROBE_H

#include "common/err.h"

/* Let a child of this process, which must not have used a driver, make a context on the GPU.
 *   errors  WPK_ENOENT it cannot, and `diag` has the reason. A driver that does not answer,
 *           and a process that cannot be made, are no errors. */
WPK_MUST_CHECK wpk_err wpk_gpu_probe(bool emulated, struct wpk_diag *diag);

/* Make a context on the GPU that stays as long as this process, for all of its kernels. The first
 * kernel tells of a failure. */
void wpk_gpu_keep_context(bool emulated);

#endif
