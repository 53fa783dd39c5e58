/* SPDX-License-Identifier: Apache-2.0 */
/* Where the vendors on GPUs meet provider_kernel.c. */
#ifndef WPK_WORKER_PROVIDER_PROVIDER_GPU_H
#define WPK_WORKER_PROVIDER_PROVIDER_GPU_H

#include "worker/provider/provider.h"

struct wpk_gpu_primitive;
struct wpk_kernel;

/* Make a kernel of the vendor's primitive for the request's operator.
 *   errors  WPK_EUNSUPPORTED the vendor does not compute the operator; WPK_ENOENT no library;
 *           WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_provider_gpu_kernel(const char *vendor,
                                               const struct wpk_provider_request *request,
                                               struct wpk_kernel **out, struct wpk_diag *diag);

/* Measure `count` runs together. */
typedef wpk_err (*wpk_provider_gpu_time)(void *user, int count, double *ns);

/* Let the primitive use the fastest of its algorithms, of those that run.
 *   shape   excluded: [WPK_PROVIDER_EXCLUDED_MAX], which algorithms are passed over; NULL: none
 *   errors  WPK_EUNSUPPORTED none does; another error of a run: the device failed */
WPK_MUST_CHECK wpk_err wpk_provider_gpu_choose(struct wpk_gpu_primitive *primitive,
                                               const bool *excluded,
                                               wpk_provider_gpu_time time, void *user,
                                               struct wpk_diag *diag);

#endif
