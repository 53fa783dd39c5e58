/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN, NVIDIA's library of convolutions, by its backend interface, in f32: engines that round
 * operands to TF32 are left out. */
#ifndef WPK_RUNTIME_VENDOR_CUDNN_H
#define WPK_RUNTIME_VENDOR_CUDNN_H

#include "runtime/vendor/gpu_vendor.h"

#define WPK_CUDNN_NAME "cudnn" /* the provider */

/* Open the library; called once.   errors  those of wpk_gpu_vendor_open */
WPK_MUST_CHECK wpk_err wpk_cudnn_open(const char *directory, struct wpk_gpu_vendor *out,
                                      struct wpk_diag *diag);

#endif
