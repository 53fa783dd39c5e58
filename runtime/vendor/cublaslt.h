/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt, NVIDIA's library of matrix products, in f32: neither operands nor sums are rounded to a
 * shorter type. */
#ifndef WPK_RUNTIME_VENDOR_CUBLASLT_H
#define WPK_RUNTIME_VENDOR_CUBLASLT_H

#include "runtime/vendor/gpu_vendor.h"

#define WPK_CUBLASLT_NAME "cublaslt" /* the provider */

/* Open the library; called once.   errors  those of wpk_gpu_vendor_open */
WPK_MUST_CHECK wpk_err wpk_cublaslt_open(const char *directory, struct wpk_gpu_vendor *out,
                                         struct wpk_diag *diag);

#endif
