/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN's kernel for an operator. */
#ifndef WPK_WORKER_PROVIDER_PROVIDER_ONEDNN_H
#define WPK_WORKER_PROVIDER_PROVIDER_ONEDNN_H

#include "runtime/wpk.h"
#include "worker/provider/provider.h"

#define WPK_PROVIDER_ONEDNN_NAME "onednn"

/* Open the kernel of the oneDNN primitive that computes the request's program.
 *   owns    caller calls wpk_kernel_close
 *   errors  see wpk_provider_class.open */
WPK_MUST_CHECK wpk_err wpk_provider_onednn_kernel(const struct wpk_provider_request *request,
                                                  struct wpk_kernel **out, struct wpk_diag *diag);

#endif
