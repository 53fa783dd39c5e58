/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that are loaded in this process. Each is loaded once in a context, whatever the number of
 * kernels that have its code: its users are counted, and the last one unloads it. A context must
 * not be destroyed or reset while a kernel is open in it. */
#ifndef WPK_RUNTIME_GPU_GPU_MODULE_H
#define WPK_RUNTIME_GPU_GPU_MODULE_H

#include "runtime/gpu/cuda_driver.h"
#include "schema/launch_plan.h"

struct wpk_gpu_module {
    void *handle;   /* the driver's */
    bool by_driver; /* the driver compiled it from PTX */
    /* Of the list, under its lock. */
    const struct wpk_cuda_driver *driver;
    const void *context;
    struct wpk_buf code; /* cubin and PTX */
    int users;
    uint64_t given; /* when the last user has gone, in steps of all modules */
    struct wpk_gpu_module *next;
};

/* Load the code into the context, which is current, or count one more user of it.
 *   owns    caller calls wpk_gpu_module_give
 *   errors  WPK_EUNSUPPORTED, WPK_ESYSTEM, WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_gpu_module_take(const struct wpk_cuda_driver *driver,
                                           const void *context, const struct wpk_launch_code *code,
                                           struct wpk_gpu_module **out, struct wpk_diag *diag);
/* The module's context is current. */
void wpk_gpu_module_give(struct wpk_gpu_module *module);

/* Of modules without users, the last `count` stay loaded: for a process that keeps its context, and
 * opens the same kernels again. */
void wpk_gpu_module_keep(int count);

#endif
