/* SPDX-License-Identifier: Apache-2.0 */
/* The driver library of a GPU: NVIDIA's, or the emulated one. Each is opened once in a process,
 * when it is first needed, and stays open. */
#ifndef WPK_RUNTIME_GPU_CUDA_DRIVER_H
#define WPK_RUNTIME_GPU_CUDA_DRIVER_H

#include "common/cuda_calls.h"
#include "schema/device.h"

#define WPK_CUDA_EMULATED_LIBRARY "libwpk-cuda-emulated.so"

#define WPK_CUDA_CALL_FIELD(name, parameters) int(*name) parameters;

/* Immutable once it is open. */
struct wpk_cuda_driver {
    WPK_CUDA_CALL_LIST(WPK_CUDA_CALL_FIELD)
    int version; /* of the driver's API: 12090 is 12.9 */
};

/* Open the library, and initialize it.
 *   owns    the process
 *   errors  WPK_ENOENT there is no such library, or no device; WPK_EUNSUPPORTED the library is too
 *           old; the reason is in `diag` */
wpk_err wpk_cuda_driver_open(bool emulated, const struct wpk_cuda_driver **out,
                             struct wpk_diag *diag);

/* The error of a result that is not success, with the driver's text in `diag`. */
wpk_err wpk_cuda_driver_fail(const struct wpk_cuda_driver *driver, int result, const char *doing,
                             struct wpk_diag *diag);

/* WPK_OK, or that error. */
static inline wpk_err wpk_cuda_driver_check(const struct wpk_cuda_driver *driver, int result,
                                            const char *doing, struct wpk_diag *diag)
{
    return result == WPK_CUDA_SUCCESS ? WPK_OK : wpk_cuda_driver_fail(driver, result, doing, diag);
}

#define WPK_CUDA_UUID_TEXT_MAX 64

/* Write the name of a GPU, as a user may give it, as nvidia-smi writes it: a UUID of 32 digits gets
 * its dashes, GPU-8-4-4-4-12; any other name stays as it is. */
void wpk_cuda_driver_name_uuid(const char *name, char out[WPK_CUDA_UUID_TEXT_MAX]);

/* Describe device number `ordinal` in the driver's order.
 *   errors  WPK_ENOENT there are fewer; WPK_ESYSTEM */
wpk_err wpk_cuda_driver_device(const struct wpk_cuda_driver *driver, int ordinal,
                               struct wpk_device *out, struct wpk_diag *diag);

#endif
