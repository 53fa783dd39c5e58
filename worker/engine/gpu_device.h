/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU that a worker serves, and what its kernels' times depend on. */
#ifndef WPK_WORKER_ENGINE_GPU_DEVICE_H
#define WPK_WORKER_ENGINE_GPU_DEVICE_H

#include "schema/device.h"
#include "schema/message.h"

/* The version that `make setup-gpu` installs. */
#define WPK_GPU_COMPILER "nvrtc-12.9"

struct wpk_gpu_wanted {
    const char *which;        /* a number in PCI order, a UUID, or "emulated"; NULL: none */
    const char *architecture; /* without a device, what is built for: "sm_90" */
    const char *compiler;     /* the builders', "nvrtc-12.9"; NULL: the one that is here */
};

#define WPK_GPU_VENDORS_MAX 4

struct wpk_gpu_device {
    struct wpk_device device;
    char environment[WPK_ENVIRONMENT_MAX];    /* "codegen=9;nvrtc=12.9;driver=12;cublaslt=12.9.1" */
    const char *vendors[WPK_GPU_VENDORS_MAX]; /* whose libraries compete */
    int vendor_count;
};

/* Describe the GPU that is wanted; it becomes number 0 for this process and for those that it
 * starts. Without a device, describe one of the architecture.
 *
 *   shape   codegen: the environment's first item, "codegen=9"
 *   errors  WPK_ENOENT no driver, device or compiler, with the reason; WPK_EINVAL no architecture;
 *           WPK_EUNSUPPORTED its compute mode is another than default; WPK_ESYSTEM the driver's */
wpk_err wpk_gpu_device_describe(const struct wpk_gpu_wanted *wanted, const char *codegen,
                                struct wpk_gpu_device *out, struct wpk_diag *diag);

/* Print what compiles for GPUs here, what the GPU and its driver are, and what is missing; without
 * a device, whether kernels are built for the architecture. True if a worker can serve it, or build
 * for it. */
bool wpk_gpu_device_check(const struct wpk_gpu_wanted *wanted);

#endif
