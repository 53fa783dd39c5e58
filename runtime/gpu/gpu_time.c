/* SPDX-License-Identifier: Apache-2.0 */
/* Measured calls. A sample is a graph of calls between two events, so that the host's time is not
 * in it. */
#include "runtime/gpu/gpu_state.h"

#include <string.h>

#define NS_PER_MS 1e6

/* ---- calls that find nothing in the caches */

#define SETS_ALIGNMENT ((size_t)256)

/* Fill the memory with copies of what begins at `from`: the first one, then twice as many each
 * time. */
static wpk_err fill(struct wpk_gpu_call *call, int i, uint64_t from)
{
    const struct wpk_gpu *gpu = call->gpu;
    uint64_t memory = call->sets.memory[i];
    size_t stride = call->sets.stride[i], all = stride * call->sets.count;
    wpk_err err = wpk_gpu_check(
        gpu, gpu->driver->cuMemcpyDtoDAsync_v2(memory, from, gpu->argument[i].size, call->stream),
        "copying an argument", &call->trouble);
    for (size_t done = stride; done < all && err == WPK_OK; done *= 2) {
        size_t size = done < all - done ? done : all - done;
        err = wpk_gpu_check(
            gpu, gpu->driver->cuMemcpyDtoDAsync_v2(memory + done, memory, size, call->stream),
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
    wpk_err err = wpk_gpu_check(
        gpu, gpu->driver->cuDeviceGetAttribute(&l2, WPK_CUDA_DEVICE_L2_BYTES, gpu->handle),
        "asking for the size of the cache", diag);
    for (int i = 0; i < count; i++) {
        /* The bytes of an argument that each copy has; 0: it does not rotate. */
        bool rotates = gpu->argument[i].address != 0 || !constants_only;
        call->sets.stride[i] =
            rotates ? (gpu->argument[i].size + SETS_ALIGNMENT - 1) / SETS_ALIGNMENT * SETS_ALIGNMENT
                    : 0;
        set += call->sets.stride[i];
    }
    if (err != WPK_OK || set == 0) {
        return err;
    }
    call->sets.count = 2 * (size_t)l2 / set + 2;
    for (int i = 0; i < count && err == WPK_OK; i++) {
        if (call->sets.stride[i] > 0) {
            err = wpk_gpu_check(gpu,
                                gpu->driver->cuMemAlloc_v2(&call->sets.memory[i],
                                                           call->sets.stride[i] * call->sets.count),
                                "allocating copies of an argument", diag);
            err = err == WPK_OK ? fill(call, i, call->pointer[i]) : err;
        }
    }
    return err == WPK_OK ? wpk_gpu_check(gpu, gpu->driver->cuStreamSynchronize(call->stream),
                                         "copying arguments", diag)
                         : err;
}

wpk_err wpk_gpu_call_rotate(struct wpk_gpu_call *call, bool constants_only)
{
    struct wpk_gpu *gpu = call->gpu;
    if (call->sets.count > 0) {
        return WPK_OK;
    }
    wpk_err err = wpk_gpu_enter(gpu, &call->trouble);
    if (err == WPK_OK) {
        err = make_sets(call, constants_only);
        call->sets.count = err == WPK_OK ? call->sets.count : 0;
        wpk_gpu_leave(gpu);
    }
    return err;
}

/* The copy of its arguments that the next measured call takes. */
static void turn(struct wpk_gpu_call *call, uint64_t *pointers)
{
    const struct wpk_gpu *gpu = call->gpu;
    for (int i = 0; i < gpu->main.plan.argument_count && call->sets.count > 0; i++) {
        if (call->sets.stride[i] > 0) {
            pointers[i] = call->sets.memory[i] + call->sets.next * call->sets.stride[i];
        }
    }
    call->sets.next = call->sets.count > 0 ? (call->sets.next + 1) % call->sets.count : 0;
}

/* Make the graph of a sample's calls. A single call keeps the graph that is there: it comes between
 * samples. */
static wpk_err make_measured(struct wpk_gpu_call *call, int repeats)
{
    int launches = call->gpu->main.plan.launch_count;
    int calls_max = WPK_GPU_GRAPH_LAUNCHES_MAX / launches;
    int calls = repeats < calls_max ? repeats : calls_max;
    if (wpk_gpu_graph_calls(call->measured) == calls || calls == 1 ||
        calls * launches < WPK_GPU_GRAPH_LAUNCHES_MIN) {
        return WPK_OK;
    }
    wpk_gpu_graph_free(call->measured);
    call->measured = NULL;
    return wpk_gpu_graph_new(&call->gpu->main, calls, call->pointer, &call->measured,
                             &call->trouble);
}

/* Give the calls of the graph the arguments that are next. */
static wpk_err turn_measured(struct wpk_gpu_call *call)
{
    uint64_t pointers[WPK_LAUNCH_TENSORS_MAX];
    wpk_err err = WPK_OK;
    memcpy(pointers, call->pointer, sizeof(pointers));
    for (int i = 0; i < wpk_gpu_graph_calls(call->measured) && err == WPK_OK; i++) {
        turn(call, pointers);
        err = wpk_gpu_graph_point(call->measured, i, pointers, &call->trouble);
    }
    return err;
}

/* Launch `repeats` calls: the graph as often as it fits, and the rest one by one. The graph has its
 * first arguments, and is given the next ones while it runs. */
static wpk_err launch_calls(struct wpk_gpu_call *call, int repeats, int graph_calls)
{
    struct wpk_diag *diag = &call->trouble;
    uint64_t pointers[WPK_LAUNCH_TENSORS_MAX];
    wpk_err err = WPK_OK;
    int done = 0;
    for (; graph_calls > 0 && done + graph_calls <= repeats && err == WPK_OK; done += graph_calls) {
        err = done > 0 ? turn_measured(call) : WPK_OK;
        err = err == WPK_OK ? wpk_gpu_graph_launch(call->measured, call->stream, diag) : err;
    }
    memcpy(pointers, call->pointer, sizeof(pointers));
    for (; done < repeats && err == WPK_OK; done++) {
        turn(call, pointers);
        err = wpk_gpu_program_launch(&call->gpu->main, call->stream, pointers, diag);
    }
    return err;
}

static wpk_err time_calls(struct wpk_gpu_call *call, int repeats, float *ms)
{
    const struct wpk_gpu *gpu = call->gpu;
    const struct wpk_cuda_driver *driver = gpu->driver;
    struct wpk_diag *diag = &call->trouble;
    wpk_err err = make_measured(call, repeats);
    int graph_calls = wpk_gpu_graph_calls(call->measured);
    graph_calls = graph_calls <= repeats ? graph_calls : 0;
    if (err == WPK_OK && graph_calls > 0) {
        err = turn_measured(call);
        err = err == WPK_OK ? wpk_gpu_graph_upload(call->measured, call->stream, diag) : err;
    }
    if (err == WPK_OK) {
        err = wpk_gpu_check(gpu, driver->cuEventRecord(call->start, call->stream), "timing", diag);
    }
    err = err == WPK_OK ? launch_calls(call, repeats, graph_calls) : err;
    if (err == WPK_OK) {
        err = wpk_gpu_check(gpu, driver->cuEventRecord(call->end, call->stream), "timing", diag);
    }
    err = err == WPK_OK ? wpk_gpu_check(gpu, driver->cuEventSynchronize(call->end), "timing", diag)
                        : err;
    return err == WPK_OK
               ? wpk_gpu_check(gpu, driver->cuEventElapsedTime(ms, call->start, call->end),
                               "timing", diag)
               : err;
}

wpk_err wpk_gpu_call_time(struct wpk_gpu_call *call, int repeats, double *ns)
{
    struct wpk_gpu *gpu = call->gpu;
    float ms = 0;
    wpk_err err = wpk_gpu_enter(gpu, &call->trouble);
    if (err != WPK_OK) {
        return err;
    }
    err = time_calls(call, repeats, &ms);
    wpk_gpu_leave(gpu);
    if (err == WPK_OK) {
        *ns = (double)ms * NS_PER_MS;
    }
    return err;
}
