/* SPDX-License-Identifier: Apache-2.0 */
/* Where the cublaslt provider meets provider_kernel.c. */
#ifndef WPK_WORKER_PROVIDER_CUBLASLT_H
#define WPK_WORKER_PROVIDER_CUBLASLT_H

#include "worker/provider.h"

struct wpk_cublaslt;
struct wpk_kernel;

#define WPK_PROVIDER_CUBLASLT_NAME "cublaslt"

/* Make a kernel of cuBLASLt's product for the request's operator.
 *   errors  WPK_EUNSUPPORTED the operator is no product that it computes; WPK_ENOENT no library;
 *           WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_provider_cublaslt_kernel(const struct wpk_provider_request *request,
                                                    struct wpk_kernel **out,
                                                    struct wpk_diag *diag);

/* Measure `count` runs together. */
typedef wpk_err (*wpk_provider_cublaslt_time)(void *user, int count, double *ns);

/* Let the product use the fastest of its algorithms, of those that run.
 *   errors  WPK_EUNSUPPORTED none does; another error of a run: the device failed */
WPK_MUST_CHECK wpk_err wpk_provider_cublaslt_choose(struct wpk_cublaslt *product,
                                                    wpk_provider_cublaslt_time time, void *user,
                                                    struct wpk_diag *diag);

#endif
