/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that runtime/gpu/gpu.c and runtime/gpu/gpu_time.c share: a kernel on a device, and
 * its calls. */
#ifndef WPK_RUNTIME_GPU_GPU_STATE_H
#define WPK_RUNTIME_GPU_GPU_STATE_H

#include "runtime/gpu/gpu.h"
#include "runtime/gpu/gpu_program.h"

#define WPK_GPU_UPLOADS_MAX 128
/* Launches from which on a graph of them is launched, not one after another. */
#define WPK_GPU_GRAPH_LAUNCHES_MIN 3

/* The kernel. */
struct wpk_gpu {
    const struct wpk_cuda_driver *driver;
    struct wpk_device device;
    int handle; /* of the device */
    void *context;
    struct wpk_gpu_program main, prepare;
    uint64_t upload[WPK_GPU_UPLOADS_MAX]; /* device memory; owned */
    size_t upload_size[WPK_GPU_UPLOADS_MAX];
    void *upload_copy[WPK_GPU_UPLOADS_MAX]; /* owned; as prepared, if it is guarded; else NULL */
    int upload_count;
    /* Bytes in front of tensors (gpu_guard.c): of uploads, and of the calls that are made next. */
    size_t upload_border, border;
    bool guarded;
    struct wpk_gpu_argument argument[WPK_LAUNCH_ARGUMENTS_MAX];
    int users; /* changed atomically */
};

struct wpk_gpu_call {
    struct wpk_gpu *gpu;                       /* a user of it */
    size_t border;                             /* of its memory; 0: it is not guarded */
    uint64_t memory[WPK_LAUNCH_ARGUMENTS_MAX]; /* of tensors in host memory; owned; 0: not yet */
    uint64_t scratch[WPK_LAUNCH_SCRATCH_MAX];  /* owned */
    uint64_t pointer[WPK_LAUNCH_TENSORS_MAX];  /* to the memory of all tensors */
    void *stream;
    void *start, *end;              /* events */
    struct wpk_gpu_graph *launched; /* of one call; owned; NULL: not yet, or it has few launches */
    struct wpk_gpu_graph *measured; /* of the calls of a sample; owned */
    /* Copies of arguments that measured calls take in turns. Copy 0 is memory of this set's own. */
    struct {
        uint64_t memory[WPK_LAUNCH_ARGUMENTS_MAX]; /* owned; 0: the argument does not rotate */
        size_t stride[WPK_LAUNCH_ARGUMENTS_MAX];
        size_t count, next; /* copies; 0: none */
    } sets;
    struct wpk_diag trouble;
};

/* WPK_OK, or the error of a driver's result. */
static inline wpk_err wpk_gpu_check(const struct wpk_gpu *gpu, int result, const char *doing,
                                    struct wpk_diag *diag)
{
    return wpk_cuda_driver_check(gpu->driver, result, doing, diag);
}

/* Make the kernel's context current, and what was current before it. */
static inline wpk_err wpk_gpu_enter(const struct wpk_gpu *gpu, struct wpk_diag *diag)
{
    return wpk_gpu_check(gpu, gpu->driver->cuCtxPushCurrent_v2(gpu->context),
                         "entering the GPU's context", diag);
}

static inline void wpk_gpu_leave(const struct wpk_gpu *gpu)
{
    void *context = NULL;
    (void)gpu->driver->cuCtxPopCurrent_v2(&context);
}

/* Device memory of kernels that are verified:
 *
 *     | border | tensor | border |        a multiple of 256 bytes, the tensor, 256 bytes
 *
 * Both borders are NaN: what is read there spoils a result, and what is written there is found. The
 * one behind begins with the byte after the tensor's last. The kernel's context is current in all
 * calls. */

#define WPK_GPU_BORDER ((size_t)256) /* bytes; in front of a tensor, at least */

/* Allocate `size` bytes with `border` bytes in front and a border behind; 0: no borders.
 *   owns    caller calls wpk_gpu_guard_give
 *   errors  WPK_ENOMEM, WPK_ESYSTEM; *out stays as it was */
wpk_err wpk_gpu_guard_take(const struct wpk_gpu *gpu, size_t border, size_t size, const char *doing,
                           uint64_t *out, struct wpk_diag *diag);
/* Free those that are not 0, and set them to 0. */
void wpk_gpu_guard_give(const struct wpk_gpu *gpu, size_t border, uint64_t *memory, int count);

/* Fill the call's scratch with NaN, but what is zero by the plan. */
wpk_err wpk_gpu_guard_poison(struct wpk_gpu_call *call);
/* Keep what the uploads are, the first time.   errors  WPK_ENOMEM, WPK_ESYSTEM */
wpk_err wpk_gpu_guard_copy(struct wpk_gpu *gpu, struct wpk_diag *diag);
/* Compare the borders of the prepare program's scratch.
 *   errors  WPK_ECORRUPT; WPK_ENOMEM, WPK_ESYSTEM */
wpk_err wpk_gpu_guard_check_prepared(const struct wpk_gpu *gpu, const uint64_t *scratch,
                                     struct wpk_diag *diag);

#endif
