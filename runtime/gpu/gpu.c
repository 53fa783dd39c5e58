/* SPDX-License-Identifier: Apache-2.0 */
/* Each function that calls the driver makes the device's primary context current, and restores what
 * the caller had. */
#include "runtime/gpu/gpu_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- scratch */

/* Allocate a program's scratch tensors, and point behind the arguments to them. */
static wpk_err take_scratch(const struct wpk_gpu *gpu, const struct wpk_gpu_program *program,
                            size_t border, uint64_t *memory, uint64_t *pointers,
                            struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    bool zeroed = false;
    for (int i = 0; i < program->plan.scratch_count && err == WPK_OK; i++) {
        const struct wpk_launch_scratch *scratch = &program->plan.scratch[i];
        size_t bytes = (size_t)scratch->bytes;
        err = wpk_gpu_guard_take(gpu, border, bytes, "allocating scratch", &memory[i], diag);
        if (err == WPK_OK && scratch->zeroed) {
            err = wpk_gpu_check(gpu, gpu->driver->cuMemsetD8Async(memory[i], 0, bytes, NULL),
                                "clearing scratch", diag);
            zeroed = true;
        }
        pointers[program->plan.argument_count + i] = memory[i];
    }
    if (err == WPK_OK && zeroed) { /* a stream of the caller's need not wait for this one */
        err = wpk_gpu_check(gpu, gpu->driver->cuStreamSynchronize(NULL), "clearing scratch", diag);
    }
    return err;
}

/* ---- the kernel */

/* The device of the context that is current in this thread, or else the first one. A handle is the
 * device's number in the driver's order. */
static wpk_err open_context(struct wpk_gpu *gpu, const struct wpk_gpu_options *options,
                            struct wpk_diag *diag)
{
    int ordinal = 0;
    wpk_err err = wpk_cuda_driver_open(options->emulated, &gpu->driver, diag);
    if (err == WPK_OK && gpu->driver->cuCtxGetDevice(&ordinal) != WPK_CUDA_SUCCESS) {
        ordinal = 0;
    }
    err = err == WPK_OK ? wpk_cuda_driver_device(gpu->driver, ordinal, &gpu->device, diag) : err;
    if (err == WPK_OK) {
        err = wpk_gpu_check(gpu, gpu->driver->cuDeviceGet(&gpu->handle, ordinal), "finding the GPU",
                            diag);
    }
    if (err == WPK_OK) {
        err = wpk_gpu_check(gpu, gpu->driver->cuDevicePrimaryCtxRetain(&gpu->context, gpu->handle),
                            "making a context on the GPU", diag);
    }
    return err;
}

wpk_err wpk_gpu_open(const struct wpk_gpu_options *options, struct wpk_gpu **out,
                     struct wpk_diag *diag)
{
    struct wpk_gpu *gpu = calloc(1, sizeof(*gpu));
    if (gpu == NULL) {
        return WPK_ENOMEM;
    }
    gpu->users = 1;
    wpk_err err = open_context(gpu, options, diag);
    err = err == WPK_OK ? wpk_gpu_enter(gpu, diag) : err;
    if (err == WPK_OK) {
        err = options->recipe != NULL
                  ? wpk_gpu_program_make(gpu->driver, options->vendor, options->recipe,
                                         options->any_algorithm, &gpu->main, diag)
                  : wpk_gpu_program_load(gpu->driver, gpu->context, &options->image, &gpu->main,
                                         diag);
        if (err == WPK_OK) {
            err = wpk_gpu_program_load(gpu->driver, gpu->context, &options->prepare_image,
                                       &gpu->prepare, diag);
        }
        wpk_gpu_leave(gpu);
    }
    if (err != WPK_OK) {
        wpk_gpu_release(gpu);
        return err;
    }
    *out = gpu;
    return WPK_OK;
}

void wpk_gpu_release(struct wpk_gpu *gpu)
{
    if (gpu == NULL || __atomic_fetch_sub(&gpu->users, 1, __ATOMIC_ACQ_REL) > 1) {
        return;
    }
    if (gpu->context != NULL) {
        if (wpk_gpu_enter(gpu, NULL) == WPK_OK) {
            wpk_gpu_program_unload(&gpu->main);
            wpk_gpu_program_unload(&gpu->prepare);
            wpk_gpu_guard_give(gpu, gpu->upload_border, gpu->upload, gpu->upload_count);
            wpk_gpu_leave(gpu);
        }
        (void)gpu->driver->cuDevicePrimaryCtxRelease_v2(gpu->handle);
    }
    for (int i = 0; i < gpu->upload_count; i++) {
        free(gpu->upload_copy[i]);
    }
    free(gpu);
}

struct wpk_gpu_primitive *wpk_gpu_primitive(const struct wpk_gpu *gpu)
{
    return gpu->main.primitive;
}

const struct wpk_device *wpk_gpu_device(const struct wpk_gpu *gpu)
{
    return &gpu->device;
}

void wpk_gpu_launch_use(const struct wpk_gpu *gpu, int *registers, int64_t *local_bytes,
                        int64_t *shared_bytes)
{
    *registers = 0;
    *local_bytes = *shared_bytes = 0;
    for (int i = 0; i < gpu->main.plan.launch_count && gpu->main.module != NULL; i++) {
        const struct wpk_launch_step *step = &gpu->main.plan.launch[i];
        int64_t shared = step->shared_bytes + step->added_bytes;
        *registers = step->registers > *registers ? step->registers : *registers;
        *local_bytes = step->local_bytes > *local_bytes ? step->local_bytes : *local_bytes;
        *shared_bytes = shared > *shared_bytes ? shared : *shared_bytes;
    }
}

bool wpk_gpu_is_by_driver(const struct wpk_gpu *gpu)
{
    const struct wpk_gpu_module *main = gpu->main.module, *prepare = gpu->prepare.module;
    return (main != NULL && main->by_driver) || (prepare != NULL && prepare->by_driver);
}

wpk_err wpk_gpu_check_arguments(const struct wpk_gpu *gpu, const size_t *main_bytes, int main_count,
                                const size_t *prepare_bytes, int prepare_count,
                                struct wpk_diag *diag)
{
    wpk_err err = wpk_launch_plan_check(&gpu->main.plan, main_bytes, main_count, diag);
    if (err == WPK_OK) {
        err = wpk_launch_plan_check(&gpu->prepare.plan, prepare_bytes, prepare_count, diag);
    }
    return err == WPK_OK ? WPK_OK : WPK_ECORRUPT;
}

static wpk_err upload(struct wpk_gpu *gpu, const void *data, size_t size, uint64_t *address,
                      struct wpk_diag *diag)
{
    uint64_t *memory = &gpu->upload[gpu->upload_count];
    wpk_err err =
        wpk_gpu_guard_take(gpu, gpu->upload_border, size, "allocating a constant", memory, diag);
    if (err == WPK_OK) {
        gpu->upload_size[gpu->upload_count++] = size;
        err = wpk_gpu_check(gpu, gpu->driver->cuMemcpyHtoDAsync_v2(*memory, data, size, NULL),
                            "copying a constant", diag);
    }
    if (err == WPK_OK) {
        err =
            wpk_gpu_check(gpu, gpu->driver->cuStreamSynchronize(NULL), "copying a constant", diag);
    }
    *address = *memory;
    return err;
}

wpk_err wpk_gpu_upload(struct wpk_gpu *gpu, const void *data, size_t size, uint64_t *address,
                       struct wpk_diag *diag)
{
    if (gpu->upload_count == WPK_GPU_UPLOADS_MAX) {
        return WPK_ENOMEM;
    }
    wpk_err err = wpk_gpu_enter(gpu, diag);
    if (err == WPK_OK) {
        err = upload(gpu, data, size, address, diag);
        wpk_gpu_leave(gpu);
    }
    return err;
}

wpk_err wpk_gpu_prepare(struct wpk_gpu *gpu, const uint64_t *pointers, struct wpk_diag *diag)
{
    uint64_t scratch[WPK_LAUNCH_SCRATCH_MAX] = {0};
    uint64_t all[WPK_LAUNCH_TENSORS_MAX];
    memcpy(all, pointers, sizeof(*pointers) * (size_t)gpu->prepare.plan.argument_count);
    wpk_err err = wpk_gpu_enter(gpu, diag);
    if (err != WPK_OK) {
        return err;
    }
    err = take_scratch(gpu, &gpu->prepare, gpu->upload_border, scratch, all, diag);
    err = err == WPK_OK ? wpk_gpu_program_launch(&gpu->prepare, NULL, all, diag) : err;
    if (err == WPK_OK) {
        err = wpk_gpu_check(gpu, gpu->driver->cuStreamSynchronize(NULL), "preparing the constants",
                            diag);
    }
    if (err == WPK_OK && gpu->upload_border > 0) {
        err = wpk_gpu_guard_check_prepared(gpu, scratch, diag);
    }
    wpk_gpu_guard_give(gpu, gpu->upload_border, scratch, WPK_LAUNCH_SCRATCH_MAX);
    wpk_gpu_leave(gpu);
    return err;
}

/* ---- calls */

static wpk_err open_call(struct wpk_gpu_call *call)
{
    const struct wpk_gpu *gpu = call->gpu;
    struct wpk_diag *diag = &call->trouble;
    wpk_err err =
        wpk_gpu_check(gpu, gpu->driver->cuStreamCreate(&call->stream, 0), "a stream", diag);
    if (err == WPK_OK) {
        err = wpk_gpu_check(gpu, gpu->driver->cuEventCreate(&call->start, 0), "an event", diag);
    }
    if (err == WPK_OK) {
        err = wpk_gpu_check(gpu, gpu->driver->cuEventCreate(&call->end, 0), "an event", diag);
    }
    return err == WPK_OK
               ? take_scratch(gpu, &gpu->main, call->border, call->scratch, call->pointer, diag)
               : err;
}

void wpk_gpu_settle(struct wpk_gpu *gpu, const struct wpk_gpu_argument *arguments)
{
    memcpy(gpu->argument, arguments, sizeof(*arguments) * (size_t)gpu->main.plan.argument_count);
}

wpk_err wpk_gpu_call_new(struct wpk_gpu *gpu, struct wpk_gpu_call **out, struct wpk_diag *diag)
{
    struct wpk_gpu_call *call = calloc(1, sizeof(*call));
    if (call == NULL) {
        return WPK_ENOMEM;
    }
    __atomic_add_fetch(&gpu->users, 1, __ATOMIC_RELAXED);
    call->gpu = gpu;
    call->border = gpu->border;
    for (int i = 0; i < gpu->main.plan.argument_count; i++) {
        call->pointer[i] = gpu->argument[i].address;
    }
    wpk_err err = wpk_gpu_enter(gpu, &call->trouble);
    if (err == WPK_OK) {
        err = open_call(call);
        err = err == WPK_OK && gpu->guarded ? wpk_gpu_guard_copy(gpu, &call->trouble) : err;
        wpk_gpu_leave(gpu);
    }
    if (err != WPK_OK) {
        *diag = call->trouble;
        wpk_gpu_call_free(call);
        return err;
    }
    *out = call;
    return WPK_OK;
}

void wpk_gpu_call_free(struct wpk_gpu_call *call)
{
    if (call == NULL) {
        return;
    }
    struct wpk_gpu *gpu = call->gpu;
    if (wpk_gpu_enter(gpu, NULL) == WPK_OK) {
        wpk_gpu_graph_free(call->launched);
        wpk_gpu_graph_free(call->measured);
        wpk_gpu_guard_give(gpu, call->border, call->memory, WPK_LAUNCH_ARGUMENTS_MAX);
        wpk_gpu_guard_give(gpu, 0, call->sets.memory, WPK_LAUNCH_ARGUMENTS_MAX);
        wpk_gpu_guard_give(gpu, call->border, call->scratch, WPK_LAUNCH_SCRATCH_MAX);
        if (call->start != NULL) {
            (void)gpu->driver->cuEventDestroy_v2(call->start);
        }
        if (call->end != NULL) {
            (void)gpu->driver->cuEventDestroy_v2(call->end);
        }
        if (call->stream != NULL) {
            (void)gpu->driver->cuStreamDestroy_v2(call->stream);
        }
        wpk_gpu_leave(gpu);
    }
    wpk_gpu_release(gpu);
    free(call);
}

const struct wpk_gpu *wpk_gpu_call_of(const struct wpk_gpu_call *call)
{
    return call->gpu;
}

const char *wpk_gpu_call_trouble(const struct wpk_gpu_call *call)
{
    return call->trouble.text;
}

static wpk_err copy_in(struct wpk_gpu_call *call, void *const *data)
{
    const struct wpk_gpu *gpu = call->gpu;
    wpk_err err = WPK_OK;
    for (int i = 0; i < gpu->main.plan.argument_count && err == WPK_OK; i++) {
        const struct wpk_gpu_argument *argument = &gpu->argument[i];
        if (argument->address != 0) {
            continue;
        }
        if (call->memory[i] == 0) {
            err = wpk_gpu_guard_take(gpu, call->border, argument->size, "allocating a tensor",
                                     &call->memory[i], &call->trouble);
        }
        if (err == WPK_OK) {
            call->pointer[i] = call->memory[i];
            err = wpk_gpu_check(gpu,
                                gpu->driver->cuMemcpyHtoDAsync_v2(call->memory[i], data[i],
                                                                  argument->size, call->stream),
                                "copying to the GPU", &call->trouble);
        }
    }
    return err;
}

static wpk_err copy_out(struct wpk_gpu_call *call, void *const *data)
{
    const struct wpk_gpu *gpu = call->gpu;
    wpk_err err = WPK_OK;
    for (int i = 0; i < gpu->main.plan.argument_count && err == WPK_OK; i++) {
        if (gpu->argument[i].written) {
            err = wpk_gpu_check(gpu,
                                gpu->driver->cuMemcpyDtoHAsync_v2(
                                    data[i], call->memory[i], gpu->argument[i].size, call->stream),
                                "copying from the GPU", &call->trouble);
        }
    }
    return err;
}

wpk_err wpk_gpu_call_run(struct wpk_gpu_call *call, void *const *data)
{
    struct wpk_gpu *gpu = call->gpu;
    call->trouble = (struct wpk_diag){0};
    wpk_err err = wpk_gpu_enter(gpu, &call->trouble);
    if (err != WPK_OK) {
        return err;
    }
    err = copy_in(call, data);
    if (err == WPK_OK && call->border > 0) {
        err = wpk_gpu_guard_poison(call);
    }
    if (err == WPK_OK) {
        err = wpk_gpu_program_launch(&gpu->main, call->stream, call->pointer, &call->trouble);
    }
    err = err == WPK_OK ? copy_out(call, data) : err;
    if (err == WPK_OK) {
        err = wpk_gpu_check(gpu, gpu->driver->cuStreamSynchronize(call->stream),
                            "running the kernel", &call->trouble);
    }
    wpk_gpu_leave(gpu);
    return err;
}

/* True if the caller records the stream's work for a graph of its own, which takes launches. */
static bool is_captured(const struct wpk_gpu *gpu, void *stream)
{
    int status = WPK_CUDA_CAPTURE_NONE;
    int result = gpu->driver->cuStreamIsCapturing(stream, &status);
    return result != WPK_CUDA_SUCCESS || status != WPK_CUDA_CAPTURE_NONE;
}

wpk_err wpk_gpu_call_launch(struct wpk_gpu_call *call, void *stream, const uint64_t *data)
{
    struct wpk_gpu *gpu = call->gpu;
    uint64_t pointers[WPK_LAUNCH_TENSORS_MAX];
    int arguments = gpu->main.plan.argument_count;
    for (int i = 0; i < arguments; i++) {
        pointers[i] = gpu->argument[i].address == 0 ? data[i] : call->pointer[i];
    }
    memcpy(pointers + arguments, call->pointer + arguments,
           sizeof(*pointers) * (size_t)gpu->main.plan.scratch_count);
    if (gpu->main.plan.launch_count >= WPK_GPU_GRAPH_LAUNCHES_MIN && !is_captured(gpu, stream)) {
        struct wpk_diag *diag = &call->trouble;
        wpk_err err = WPK_OK;
        if (call->launched == NULL) {
            err = wpk_gpu_graph_new(&call->gpu->main, 1, pointers, &call->launched, diag);
        }
        err = err == WPK_OK ? wpk_gpu_graph_point(call->launched, 0, pointers, diag) : err;
        return err == WPK_OK ? wpk_gpu_graph_launch(call->launched, stream, diag) : err;
    }
    return wpk_gpu_program_launch(&gpu->main, stream, pointers, &call->trouble);
}
