/* SPDX-License-Identifier: Apache-2.0 */
/* A driver library whose calls do nothing and succeed, under the name of the emulated one: what is
 * left of a launch's time is libwpk's. */
#include "common/cuda_calls.h"

#include <stdio.h>
#include <string.h>

#define CAPABILITY_MAJOR 9
#define VERSION 12090
#define ADDRESS_FIRST ((uint64_t)1 << 40)
#define ALIGNMENT ((uint64_t)256)

#define DECLARE(name, parameters) __attribute__((visibility("default"))) int name parameters;
WPK_CUDA_CALL_LIST(DECLARE)

static int handle; /* its address is every handle */

/* Calls without an answer, and those that give a handle. */
#define NOTHING(name, parameters)                                                                  \
    int name parameters                                                                            \
    {                                                                                              \
        return WPK_CUDA_SUCCESS;                                                                   \
    }
#define HANDLE(name, out, parameters)                                                              \
    int name parameters                                                                            \
    {                                                                                              \
        *(out) = &handle;                                                                          \
        return WPK_CUDA_SUCCESS;                                                                   \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"

NOTHING(cuInit, (unsigned flags))
NOTHING(cuDeviceGetPCIBusId, (char *bus, int size, int device))
NOTHING(cuDevicePrimaryCtxRelease_v2, (int device))
NOTHING(cuCtxPushCurrent_v2, (void *context))
NOTHING(cuModuleUnload, (void *module))
NOTHING(cuMemFree_v2, (uint64_t address))
NOTHING(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t size, void *stream))
NOTHING(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t size, void *stream))
NOTHING(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t size, void *stream))
NOTHING(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t size, void *stream))
NOTHING(cuLaunchKernel, (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, void *stream, void **parameters, void **extra))
NOTHING(cuGraphDestroy, (void *graph))
NOTHING(cuGraphExecDestroy, (void *exec))
NOTHING(cuGraphExecKernelNodeSetParams_v2,
        (void *exec, void *node, const struct wpk_cuda_kernel_node *launch))
NOTHING(cuGraphUpload, (void *exec, void *stream))
NOTHING(cuGraphLaunch, (void *exec, void *stream))
NOTHING(cuStreamBeginCapture_v2, (void *stream, int mode))
HANDLE(cuStreamEndCapture, graph, (void *stream, void **graph))
NOTHING(cuStreamDestroy_v2, (void *stream))
NOTHING(cuStreamSynchronize, (void *stream))
NOTHING(cuEventDestroy_v2, (void *event))
NOTHING(cuEventRecord, (void *event, void *stream))
NOTHING(cuEventSynchronize, (void *event))
HANDLE(cuDevicePrimaryCtxRetain, context, (void **context, int device))
HANDLE(cuCtxPopCurrent_v2, context, (void **context))
HANDLE(cuModuleLoadData, module, (void **module, const void *image))
HANDLE(cuModuleGetFunction, function, (void **function, void *module, const char *name))
HANDLE(cuGraphCreate, graph, (void **graph, unsigned flags))
HANDLE(cuGraphAddKernelNode_v2, node,
       (void **node, void *graph, void *const *dependencies, size_t dependency_count,
        const struct wpk_cuda_kernel_node *launch))
HANDLE(cuGraphInstantiateWithFlags, exec, (void **exec, void *graph, unsigned long long flags))
HANDLE(cuStreamCreate, stream, (void **stream, unsigned flags))
HANDLE(cuEventCreate, event, (void **event, unsigned flags))

int cuDriverGetVersion(int *version)
{
    *version = VERSION;
    return WPK_CUDA_SUCCESS;
}

int cuGetErrorString(int result, const char **text)
{
    *text = "none";
    return WPK_CUDA_SUCCESS;
}

int cuDeviceGetCount(int *count)
{
    *count = 1;
    return WPK_CUDA_SUCCESS;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = 0;
    return WPK_CUDA_SUCCESS;
}

int cuDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "emulated");
    return WPK_CUDA_SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == WPK_CUDA_DEVICE_CAPABILITY_MINOR ? 0 : CAPABILITY_MAJOR;
    return WPK_CUDA_SUCCESS;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    memset(uuid, 0, 16);
    return WPK_CUDA_SUCCESS;
}

int cuCtxGetDevice(int *device)
{
    *device = 0;
    return WPK_CUDA_SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = (size_t)1 << 30;
    return WPK_CUDA_SUCCESS;
}

/* Addresses are never used. */
int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    static uint64_t next = ADDRESS_FIRST;
    *address = next;
    next += (size + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    return WPK_CUDA_SUCCESS;
}

int cuStreamIsCapturing(void *stream, int *status)
{
    *status = WPK_CUDA_CAPTURE_NONE;
    return WPK_CUDA_SUCCESS;
}

int cuEventElapsedTime(float *ms, void *start, void *end)
{
    *ms = 1;
    return WPK_CUDA_SUCCESS;
}
