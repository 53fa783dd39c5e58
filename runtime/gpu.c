/* SPDX-License-Identifier: Apache-2.0 */
/* Each function that calls the driver makes the device's primary context current, and restores what
 * the caller had. */
#include "runtime/gpu.h"

#include "runtime/cuda_driver.h"
#include "schema/launch_plan.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX (WPK_LAUNCH_ARGUMENTS_MAX + WPK_LAUNCH_SCRATCH_MAX)
#define UPLOADS_MAX 128
#define NS_PER_MS 1e6

/* A module with its launches. */
struct program {
    struct wpk_launch_plan plan;
    void *module; /* NULL: there is no such program */
    void *function[WPK_LAUNCHES_MAX];
};

struct wpk_gpu {
    const struct wpk_cuda_driver *driver;
    struct wpk_device device;
    int handle; /* of the device */
    void *context;
    struct program main, prepare;
    uint64_t upload[UPLOADS_MAX]; /* device memory; owned */
    int upload_count;
    struct wpk_gpu_argument argument[WPK_LAUNCH_ARGUMENTS_MAX];
    atomic_int users;
};

struct wpk_gpu_call {
    struct wpk_gpu *gpu;                       /* a user of it */
    uint64_t memory[WPK_LAUNCH_ARGUMENTS_MAX]; /* of tensors in host memory; owned; 0: not yet */
    uint64_t scratch[WPK_LAUNCH_SCRATCH_MAX];  /* owned */
    uint64_t pointer[ARGUMENTS_MAX];           /* what launches take */
    void *stream;
    void *start, *end; /* events */
    /* Copies of arguments that measured calls take in turns. Copy 0 is memory of this set's own. */
    struct {
        uint64_t memory[WPK_LAUNCH_ARGUMENTS_MAX]; /* owned; 0: the argument does not rotate */
        size_t stride[WPK_LAUNCH_ARGUMENTS_MAX];
        size_t count, next; /* copies; 0: none */
    } sets;
    struct wpk_diag trouble;
};

/* ---- the driver */

static wpk_err check(const struct wpk_gpu *gpu, int result, const char *doing,
                     struct wpk_diag *diag)
{
    return result == WPK_CUDA_SUCCESS ? WPK_OK
                                      : wpk_cuda_driver_fail(gpu->driver, result, doing, diag);
}

static wpk_err enter(const struct wpk_gpu *gpu, struct wpk_diag *diag)
{
    return check(gpu, gpu->driver->cuCtxPushCurrent_v2(gpu->context), "entering the GPU's context",
                 diag);
}

static void leave(const struct wpk_gpu *gpu)
{
    void *context = NULL;
    (void)gpu->driver->cuCtxPopCurrent_v2(&context);
}

/* ---- programs */

static wpk_err load_program(const struct wpk_gpu *gpu, const struct wpk_span *image,
                            struct program *out, struct wpk_diag *diag)
{
    const char *code = NULL;
    if (image->size == 0) {
        return WPK_OK;
    }
    wpk_err err = wpk_launch_plan_decode(image->data, image->size, &out->plan, &code, diag);
    if (err != WPK_OK) {
        return err == WPK_ENOMEM || err == WPK_EMISMATCH ? err : WPK_ECORRUPT;
    }
    /* The driver wants an end; the image ends where its section does. */
    char *text = strndup(code, image->size - (size_t)(code - (const char *)image->data));
    if (text == NULL) {
        return WPK_ENOMEM;
    }
    err = check(gpu, gpu->driver->cuModuleLoadData(&out->module, text), "loading the kernel", diag);
    free(text);
    for (int i = 0; i < out->plan.launch_count && err == WPK_OK; i++) {
        err = check(gpu,
                    gpu->driver->cuModuleGetFunction(&out->function[i], out->module,
                                                     out->plan.launch[i].entry),
                    out->plan.launch[i].entry, diag);
    }
    return err;
}

static wpk_err launch_all(const struct wpk_gpu *gpu, const struct program *program, void *stream,
                          uint64_t *pointers, struct wpk_diag *diag)
{
    void *parameters[ARGUMENTS_MAX];
    for (int i = 0; i < program->plan.argument_count + program->plan.scratch_count; i++) {
        parameters[i] = &pointers[i];
    }
    for (int i = 0; i < program->plan.launch_count; i++) {
        const struct wpk_launch_step *step = &program->plan.launch[i];
        int result =
            gpu->driver->cuLaunchKernel(program->function[i], (unsigned)step->blocks, 1, 1,
                                        (unsigned)step->threads, 1, 1, 0, stream, parameters, NULL);
        if (result != WPK_CUDA_SUCCESS) {
            return wpk_cuda_driver_fail(gpu->driver, result, step->entry, diag);
        }
    }
    return WPK_OK;
}

static wpk_err clear(const struct wpk_gpu *gpu, uint64_t address, size_t size,
                     struct wpk_diag *diag)
{
    void *zeros = calloc(1, size);
    if (zeros == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = check(gpu, gpu->driver->cuMemcpyHtoDAsync_v2(address, zeros, size, NULL),
                        "clearing scratch", diag);
    if (err == WPK_OK) {
        err = check(gpu, gpu->driver->cuStreamSynchronize(NULL), "clearing scratch", diag);
    }
    free(zeros);
    return err;
}

/* Allocate a program's scratch tensors, and point behind the arguments to them. */
static wpk_err take_scratch(const struct wpk_gpu *gpu, const struct program *program,
                            uint64_t *memory, uint64_t *pointers, struct wpk_diag *diag)
{
    wpk_err err = WPK_OK;
    for (int i = 0; i < program->plan.scratch_count && err == WPK_OK; i++) {
        const struct wpk_launch_scratch *scratch = &program->plan.scratch[i];
        err = check(gpu, gpu->driver->cuMemAlloc_v2(&memory[i], (size_t)scratch->bytes),
                    "allocating scratch", diag);
        if (err == WPK_OK && scratch->zeroed) {
            err = clear(gpu, memory[i], (size_t)scratch->bytes, diag);
        }
        pointers[program->plan.argument_count + i] = memory[i] + (uint64_t)scratch->offset;
    }
    return err;
}

static void give(const struct wpk_gpu *gpu, uint64_t *memory, int count)
{
    for (int i = 0; i < count; i++) {
        if (memory[i] != 0) {
            (void)gpu->driver->cuMemFree_v2(memory[i]);
            memory[i] = 0;
        }
    }
}

/* ---- the kernel */

static wpk_err open_context(struct wpk_gpu *gpu, const struct wpk_gpu_options *options,
                            struct wpk_diag *diag)
{
    wpk_err err = wpk_cuda_driver_open(options->emulated, &gpu->driver, diag);
    if (err == WPK_OK) {
        err = wpk_cuda_driver_device(gpu->driver, options->ordinal, &gpu->device, diag);
    }
    if (err == WPK_OK) {
        err = check(gpu, gpu->driver->cuDeviceGet(&gpu->handle, options->ordinal),
                    "finding the GPU", diag);
    }
    if (err == WPK_OK) {
        err = check(gpu, gpu->driver->cuDevicePrimaryCtxRetain(&gpu->context, gpu->handle),
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
    atomic_init(&gpu->users, 1);
    wpk_err err = open_context(gpu, options, diag);
    if (err == WPK_OK) {
        err = enter(gpu, diag);
    }
    if (err == WPK_OK) {
        err = load_program(gpu, &options->image, &gpu->main, diag);
        if (err == WPK_OK) {
            err = load_program(gpu, &options->prepare_image, &gpu->prepare, diag);
        }
        leave(gpu);
    }
    if (err != WPK_OK) {
        wpk_gpu_release(gpu);
        return err;
    }
    *out = gpu;
    return WPK_OK;
}

struct wpk_gpu *wpk_gpu_share(struct wpk_gpu *gpu)
{
    atomic_fetch_add(&gpu->users, 1);
    return gpu;
}

static void unload(struct wpk_gpu *gpu)
{
    struct program *const programs[] = {&gpu->main, &gpu->prepare};
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (programs[i]->module != NULL) {
            (void)gpu->driver->cuModuleUnload(programs[i]->module);
        }
    }
    give(gpu, gpu->upload, gpu->upload_count);
}

void wpk_gpu_release(struct wpk_gpu *gpu)
{
    if (gpu == NULL || atomic_fetch_sub(&gpu->users, 1) > 1) {
        return;
    }
    if (gpu->context != NULL) {
        if (enter(gpu, NULL) == WPK_OK) {
            unload(gpu);
            leave(gpu);
        }
        (void)gpu->driver->cuDevicePrimaryCtxRelease_v2(gpu->handle);
    }
    free(gpu);
}

const struct wpk_device *wpk_gpu_device(const struct wpk_gpu *gpu)
{
    return &gpu->device;
}

int wpk_gpu_argument_count(const struct wpk_gpu *gpu)
{
    return gpu->main.plan.argument_count;
}

int wpk_gpu_prepare_count(const struct wpk_gpu *gpu)
{
    return gpu->prepare.plan.argument_count;
}

static wpk_err upload(struct wpk_gpu *gpu, const void *data, size_t size, uint64_t *address,
                      struct wpk_diag *diag)
{
    uint64_t *memory = &gpu->upload[gpu->upload_count];
    wpk_err err =
        check(gpu, gpu->driver->cuMemAlloc_v2(memory, size), "allocating a constant", diag);
    if (err == WPK_OK) {
        gpu->upload_count++;
        err = check(gpu, gpu->driver->cuMemcpyHtoDAsync_v2(*memory, data, size, NULL),
                    "copying a constant", diag);
    }
    if (err == WPK_OK) {
        err = check(gpu, gpu->driver->cuStreamSynchronize(NULL), "copying a constant", diag);
    }
    *address = *memory;
    return err;
}

wpk_err wpk_gpu_upload(struct wpk_gpu *gpu, const void *data, size_t size, uint64_t *address,
                       struct wpk_diag *diag)
{
    if (gpu->upload_count == UPLOADS_MAX) {
        return WPK_ENOMEM;
    }
    wpk_err err = enter(gpu, diag);
    if (err == WPK_OK) {
        err = upload(gpu, data, size, address, diag);
        leave(gpu);
    }
    return err;
}

wpk_err wpk_gpu_prepare(struct wpk_gpu *gpu, const uint64_t *pointers, struct wpk_diag *diag)
{
    uint64_t scratch[WPK_LAUNCH_SCRATCH_MAX] = {0};
    uint64_t all[ARGUMENTS_MAX];
    memcpy(all, pointers, sizeof(*pointers) * (size_t)gpu->prepare.plan.argument_count);
    wpk_err err = enter(gpu, diag);
    if (err != WPK_OK) {
        return err;
    }
    err = take_scratch(gpu, &gpu->prepare, scratch, all, diag);
    if (err == WPK_OK) {
        err = launch_all(gpu, &gpu->prepare, NULL, all, diag);
    }
    if (err == WPK_OK) {
        err = check(gpu, gpu->driver->cuStreamSynchronize(NULL), "preparing the constants", diag);
    }
    give(gpu, scratch, WPK_LAUNCH_SCRATCH_MAX);
    leave(gpu);
    return err;
}

/* ---- calls */

static wpk_err open_call(struct wpk_gpu_call *call)
{
    const struct wpk_gpu *gpu = call->gpu;
    struct wpk_diag *diag = &call->trouble;
    wpk_err err = check(gpu, gpu->driver->cuStreamCreate(&call->stream, 0), "a stream", diag);
    if (err == WPK_OK) {
        err = check(gpu, gpu->driver->cuEventCreate(&call->start, 0), "an event", diag);
    }
    if (err == WPK_OK) {
        err = check(gpu, gpu->driver->cuEventCreate(&call->end, 0), "an event", diag);
    }
    return err == WPK_OK ? take_scratch(gpu, &gpu->main, call->scratch, call->pointer, diag) : err;
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
    call->gpu = wpk_gpu_share(gpu);
    for (int i = 0; i < gpu->main.plan.argument_count; i++) {
        call->pointer[i] = gpu->argument[i].address;
    }
    wpk_err err = enter(gpu, &call->trouble);
    if (err == WPK_OK) {
        err = open_call(call);
        leave(gpu);
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
    if (enter(gpu, NULL) == WPK_OK) {
        give(gpu, call->memory, WPK_LAUNCH_ARGUMENTS_MAX);
        give(gpu, call->sets.memory, WPK_LAUNCH_ARGUMENTS_MAX);
        give(gpu, call->scratch, WPK_LAUNCH_SCRATCH_MAX);
        if (call->start != NULL) {
            (void)gpu->driver->cuEventDestroy_v2(call->start);
        }
        if (call->end != NULL) {
            (void)gpu->driver->cuEventDestroy_v2(call->end);
        }
        if (call->stream != NULL) {
            (void)gpu->driver->cuStreamDestroy_v2(call->stream);
        }
        leave(gpu);
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
            err = check(gpu, gpu->driver->cuMemAlloc_v2(&call->memory[i], argument->size),
                        "allocating a tensor", &call->trouble);
        }
        if (err == WPK_OK) {
            call->pointer[i] = call->memory[i] + argument->offset;
            err = check(gpu,
                        gpu->driver->cuMemcpyHtoDAsync_v2(call->memory[i], data[i], argument->size,
                                                          call->stream),
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
            err = check(gpu,
                        gpu->driver->cuMemcpyDtoHAsync_v2(data[i], call->memory[i],
                                                          gpu->argument[i].size, call->stream),
                        "copying from the GPU", &call->trouble);
        }
    }
    return err;
}

wpk_err wpk_gpu_call_run(struct wpk_gpu_call *call, void *const *data)
{
    struct wpk_gpu *gpu = call->gpu;
    call->trouble = (struct wpk_diag){0};
    wpk_err err = enter(gpu, &call->trouble);
    if (err != WPK_OK) {
        return err;
    }
    err = copy_in(call, data);
    if (err == WPK_OK) {
        err = launch_all(gpu, &gpu->main, call->stream, call->pointer, &call->trouble);
    }
    if (err == WPK_OK) {
        err = copy_out(call, data);
    }
    if (err == WPK_OK) {
        err = check(gpu, gpu->driver->cuStreamSynchronize(call->stream), "running the kernel",
                    &call->trouble);
    }
    leave(gpu);
    return err;
}

wpk_err wpk_gpu_call_launch(struct wpk_gpu_call *call, void *stream, const uint64_t *data)
{
    struct wpk_gpu *gpu = call->gpu;
    uint64_t pointers[ARGUMENTS_MAX];
    memcpy(pointers, call->pointer, sizeof(pointers));
    for (int i = 0; i < gpu->main.plan.argument_count; i++) {
        if (gpu->argument[i].address == 0) {
            pointers[i] = data[i] + gpu->argument[i].offset;
        }
    }
    return launch_all(gpu, &gpu->main, stream, pointers, &call->trouble);
}

/* ---- calls that find nothing in the caches */

#define SETS_ALIGNMENT ((size_t)256)

/* The bytes of an argument that each copy has; 0: it does not rotate. */
static size_t find_stride(const struct wpk_gpu_argument *argument, bool constants_only)
{
    bool rotates = argument->address != 0 || !constants_only;
    return rotates ? (argument->size + SETS_ALIGNMENT - 1) / SETS_ALIGNMENT * SETS_ALIGNMENT : 0;
}

/* Fill the memory with copies of what begins at `from`: the first one, then twice as many each
 * time. */
static wpk_err fill(struct wpk_gpu_call *call, int i, uint64_t from)
{
    const struct wpk_gpu *gpu = call->gpu;
    uint64_t memory = call->sets.memory[i];
    size_t stride = call->sets.stride[i], all = stride * call->sets.count;
    wpk_err err = check(
        gpu, gpu->driver->cuMemcpyDtoDAsync_v2(memory, from, gpu->argument[i].size, call->stream),
        "copying an argument", &call->trouble);
    for (size_t done = stride; done < all && err == WPK_OK; done *= 2) {
        size_t size = done < all - done ? done : all - done;
        err =
            check(gpu, gpu->driver->cuMemcpyDtoDAsync_v2(memory + done, memory, size, call->stream),
                  "copying an argument", &call->trouble);
    }
    return err;
}

static wpk_err make_sets(struct wpk_gpu_call *call, bool constants_only)
{
    const struct wpk_gpu *gpu = call->gpu;
    struct wpk_diag *diag = &call->trouble;
    size_t set = 0;
    int l2 = 0, count = gpu->main.plan.argument_count;
    wpk_err err =
        check(gpu, gpu->driver->cuDeviceGetAttribute(&l2, WPK_CUDA_DEVICE_L2_BYTES, gpu->handle),
              "asking for the size of the cache", diag);
    for (int i = 0; i < count; i++) {
        call->sets.stride[i] = find_stride(&gpu->argument[i], constants_only);
        set += call->sets.stride[i];
    }
    if (err != WPK_OK || set == 0) {
        return err;
    }
    call->sets.count = 2 * (size_t)l2 / set + 2;
    for (int i = 0; i < count && err == WPK_OK; i++) {
        if (call->sets.stride[i] > 0) {
            err = check(gpu,
                        gpu->driver->cuMemAlloc_v2(&call->sets.memory[i],
                                                   call->sets.stride[i] * call->sets.count),
                        "allocating copies of an argument", diag);
            err = err == WPK_OK ? fill(call, i, call->pointer[i] - gpu->argument[i].offset) : err;
        }
    }
    return err == WPK_OK ? check(gpu, gpu->driver->cuStreamSynchronize(call->stream),
                                 "copying arguments", diag)
                         : err;
}

wpk_err wpk_gpu_call_rotate(struct wpk_gpu_call *call, bool constants_only)
{
    struct wpk_gpu *gpu = call->gpu;
    if (call->sets.count > 0) {
        return WPK_OK;
    }
    wpk_err err = enter(gpu, &call->trouble);
    if (err == WPK_OK) {
        err = make_sets(call, constants_only);
        call->sets.count = err == WPK_OK ? call->sets.count : 0;
        leave(gpu);
    }
    return err;
}

/* The copy of its arguments that the next measured call takes. */
static void turn(struct wpk_gpu_call *call, uint64_t *pointers)
{
    const struct wpk_gpu *gpu = call->gpu;
    for (int i = 0; i < gpu->main.plan.argument_count && call->sets.count > 0; i++) {
        if (call->sets.stride[i] > 0) {
            pointers[i] = call->sets.memory[i] + call->sets.next * call->sets.stride[i] +
                          gpu->argument[i].offset;
        }
    }
    call->sets.next = call->sets.count > 0 ? (call->sets.next + 1) % call->sets.count : 0;
}

static wpk_err time_calls(struct wpk_gpu_call *call, int repeats, float *ms)
{
    const struct wpk_cuda_driver *driver = call->gpu->driver;
    struct wpk_diag *diag = &call->trouble;
    wpk_err err =
        check(call->gpu, driver->cuEventRecord(call->start, call->stream), "timing", diag);
    uint64_t pointers[ARGUMENTS_MAX];
    memcpy(pointers, call->pointer, sizeof(pointers));
    for (int i = 0; i < repeats && err == WPK_OK; i++) {
        turn(call, pointers);
        err = launch_all(call->gpu, &call->gpu->main, call->stream, pointers, diag);
    }
    if (err == WPK_OK) {
        err = check(call->gpu, driver->cuEventRecord(call->end, call->stream), "timing", diag);
    }
    if (err == WPK_OK) {
        err = check(call->gpu, driver->cuEventSynchronize(call->end), "timing", diag);
    }
    return err == WPK_OK ? check(call->gpu, driver->cuEventElapsedTime(ms, call->start, call->end),
                                 "timing", diag)
                         : err;
}

wpk_err wpk_gpu_call_time(struct wpk_gpu_call *call, int repeats, double *ns)
{
    struct wpk_gpu *gpu = call->gpu;
    float ms = 0;
    wpk_err err = enter(gpu, &call->trouble);
    if (err != WPK_OK) {
        return err;
    }
    err = time_calls(call, repeats, &ms);
    leave(gpu);
    if (err == WPK_OK) {
        *ns = (double)ms * NS_PER_MS;
    }
    return err;
}
