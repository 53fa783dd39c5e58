/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NVIDIA's driver library that wpk calls: runtime/gpu/cuda_driver.c finds them in
 * libcuda.so.1, and tests/gpu/driver.c defines them. Signatures are those of cuda.h, with handles
 * as pointers without a type; each function returns a CUresult, of which 0 is success.
 *
 *   source  NVIDIA, CUDA Driver API reference 12.9 */
#ifndef WPK_COMMON_CUDA_CALLS_H
#define WPK_COMMON_CUDA_CALLS_H

#include <stddef.h>
#include <stdint.h>

/* CUDA_KERNEL_NODE_PARAMS: a launch in a graph. */
struct wpk_cuda_kernel_node {
    void *function;
    unsigned grid_x, grid_y, grid_z;    /* blocks */
    unsigned block_x, block_y, block_z; /* threads */
    unsigned shared_bytes;
    void **parameters;
    void **extra;
    void *kernel;  /* in place of a function */
    void *context; /* of the kernel */
};

/* X(name, parameters) */
#define WPK_CUDA_CALL_LIST(X)                                                                      \
    X(cuInit, (unsigned flags))                                                                    \
    X(cuDriverGetVersion, (int *version))                                                          \
    X(cuGetErrorString, (int result, const char **text))                                           \
    X(cuDeviceGetCount, (int *count))                                                              \
    X(cuDeviceGet, (int *device, int ordinal))                                                     \
    X(cuDeviceGetName, (char *name, int size, int device))                                         \
    X(cuDeviceGetAttribute, (int *value, int attribute, int device))                               \
    X(cuDeviceGetUuid_v2, (unsigned char *uuid, int device))                                       \
    X(cuDeviceGetPCIBusId, (char *bus, int size, int device))                                      \
    X(cuDeviceTotalMem_v2, (size_t * bytes, int device))                                           \
    X(cuDevicePrimaryCtxRetain, (void **context, int device))                                      \
    X(cuDevicePrimaryCtxRelease_v2, (int device))                                                  \
    X(cuCtxPushCurrent_v2, (void *context))                                                        \
    X(cuCtxPopCurrent_v2, (void **context))                                                        \
    X(cuCtxGetDevice, (int *device))                                                               \
    X(cuModuleLoadData, (void **module, const void *image))                                        \
    X(cuModuleUnload, (void *module))                                                              \
    X(cuModuleGetFunction, (void **function, void *module, const char *name))                      \
    X(cuMemAlloc_v2, (uint64_t * address, size_t size))                                            \
    X(cuMemFree_v2, (uint64_t address))                                                            \
    X(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t size, void *stream))            \
    X(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t size, void *stream))                  \
    X(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t size, void *stream))               \
    X(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t size, void *stream))              \
    X(cuLaunchKernel, (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,          \
                       unsigned block_x, unsigned block_y, unsigned block_z,                       \
                       unsigned shared_bytes, void *stream, void **parameters, void **extra))      \
    X(cuGraphCreate, (void **graph, unsigned flags))                                               \
    X(cuGraphDestroy, (void *graph))                                                               \
    X(cuGraphAddKernelNode_v2,                                                                     \
      (void **node, void *graph, void *const *dependencies, size_t dependency_count,               \
       const struct wpk_cuda_kernel_node *launch))                                                 \
    X(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags))           \
    X(cuGraphExecDestroy, (void *exec))                                                            \
    X(cuGraphExecKernelNodeSetParams_v2,                                                           \
      (void *exec, void *node, const struct wpk_cuda_kernel_node *launch))                         \
    X(cuGraphUpload, (void *exec, void *stream))                                                   \
    X(cuGraphLaunch, (void *exec, void *stream))                                                   \
    X(cuStreamCreate, (void **stream, unsigned flags))                                             \
    X(cuStreamBeginCapture_v2, (void *stream, int mode))                                           \
    X(cuStreamEndCapture, (void *stream, void **graph))                                            \
    X(cuStreamIsCapturing, (void *stream, int *status))                                            \
    X(cuStreamDestroy_v2, (void *stream))                                                          \
    X(cuStreamSynchronize, (void *stream))                                                         \
    X(cuEventCreate, (void **event, unsigned flags))                                               \
    X(cuEventDestroy_v2, (void *event))                                                            \
    X(cuEventRecord, (void *event, void *stream))                                                  \
    X(cuEventSynchronize, (void *event))                                                           \
    X(cuEventElapsedTime, (float *ms, void *start, void *end))

/* name, number: of CUresult */
#define WPK_CUDA_RESULT_LIST(X)                                                                    \
    X(SUCCESS, 0)                                                                                  \
    X(INVALID_VALUE, 1)                                                                            \
    X(OUT_OF_MEMORY, 2)                                                                            \
    X(NOT_INITIALIZED, 3)                                                                          \
    X(DEVICE_UNAVAILABLE, 46)                                                                      \
    X(NO_DEVICE, 100)                                                                              \
    X(INVALID_DEVICE, 101)                                                                         \
    X(INVALID_IMAGE, 200)                                                                          \
    X(INVALID_CONTEXT, 201)                                                                        \
    X(NO_BINARY_FOR_GPU, 209)                                                                      \
    X(INVALID_PTX, 218)                                                                            \
    X(UNSUPPORTED_PTX_VERSION, 222)                                                                \
    X(INVALID_HANDLE, 400)                                                                         \
    X(NOT_FOUND, 500)                                                                              \
    X(ILLEGAL_ADDRESS, 700)                                                                        \
    X(LAUNCH_OUT_OF_RESOURCES, 701)                                                                \
    X(LAUNCH_TIMEOUT, 702)                                                                         \
    X(MISALIGNED_ADDRESS, 716)                                                                     \
    X(LAUNCH_FAILED, 719)                                                                          \
    X(STREAM_CAPTURE_UNSUPPORTED, 900)                                                             \
    X(ILLEGAL_STATE, 401)                                                                          \
    X(UNKNOWN, 999)

#define WPK_CUDA_RESULT_ENUM(name, number) WPK_CUDA_##name = number,
enum wpk_cuda_result { WPK_CUDA_RESULT_LIST(WPK_CUDA_RESULT_ENUM) };

/* Of CUdevice_attribute. */
enum {
    WPK_CUDA_DEVICE_SM_COUNT = 16,
    WPK_CUDA_DEVICE_COMPUTE_MODE = 20,
    WPK_CUDA_DEVICE_L2_BYTES = 38,
    WPK_CUDA_DEVICE_CAPABILITY_MAJOR = 75,
    WPK_CUDA_DEVICE_CAPABILITY_MINOR = 76,
};

/* CUcomputemode */
enum {
    WPK_CUDA_COMPUTE_MODE_DEFAULT = 0,
    WPK_CUDA_COMPUTE_MODE_PROHIBITED = 2,
};

enum {
    WPK_CUDA_CAPTURE_NONE = 0, /* of CUstreamCaptureStatus */
    WPK_CUDA_CAPTURE_ACTIVE = 1,
    WPK_CUDA_CAPTURE_MODE_RELAXED = 2,
};

#endif
