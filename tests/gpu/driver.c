/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated GPU as a driver library, shaped like libcuda.so.1: one device, whose modules are PTX
 * that the emulator runs. It refuses what a real driver refuses, and finds what a real GPU would
 * not: an access outside of all allocations, a race, a barrier that threads miss. Such a fault is
 * an error that sticks, as on a GPU, and cuGetErrorString() tells it whole.
 *
 * Calls do their work at once; streams are one order. Events read a clock that only launches
 * advance, by the time of the model. One thread at a time may call. */
#include "tests/gpu/driver.h"

#include "common/cuda_machine.h"
#include "tests/gpu/driver_module.h"
#include "tests/gpu/launch.h"
#include "tests/gpu/model.h"
#include "tests/gpu/orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef DEVICE_NAME
#define DEVICE_NAME "emulated" /* tests/named_driver has another one */
#endif
#define SM_COUNT 132
#define MEMORY_BYTES ((uint64_t)8 << 30)
#define L2_BYTES (50 << 20)
#define VERSION 13000
#define SHARED_MAX ((uint32_t)48 << 10) /* bytes of a block */
#define MS_PER_S 1e3
#define FAULT_TEXT_MAX 256
#define ORDERS_VARIABLE "WPK_EMULATED_ORDERS"      /* see tests/gpu/orders.h */
#define MODE_VARIABLE "WPK_EMULATED_COMPUTE_MODE"  /* CUcomputemode; default 0 */
#define COUNT_VARIABLE "WPK_EMULATED_ORDERS_COUNT" /* a path: processes count calls together */

struct function {
    const struct wpk_driver_module *module;
    const struct wpk_ptx_entry *entry;
    int registers; /* of a thread; 0: not known */
    struct function *next;
};

struct event {
    double ms;
};

/* The device and its one context. */
static struct {
    bool started;
    struct wpk_device_memory memory;
    struct function *functions; /* owned, until the process ends */
    double now_ms;
    enum wpk_cuda_result stuck; /* of a fault */
    char fault[FAULT_TEXT_MAX];
    struct wpk_orders orders; /* failures that a test has ordered */
    int context;              /* its address is the context's handle */
    int stream;
} gpu;

int wpk_driver_ordered(const char *name)
{
    int result = wpk_orders_call(&gpu.orders, name);
    if (result >= WPK_CUDA_ILLEGAL_ADDRESS && result <= WPK_CUDA_LAUNCH_FAILED &&
        result != WPK_CUDA_LAUNCH_OUT_OF_RESOURCES) {
        gpu.stuck = (enum wpk_cuda_result)result;
    }
    return result;
}

static int ready(void)
{
    return !gpu.started ? WPK_CUDA_NOT_INITIALIZED : (int)gpu.stuck;
}

/* ---- the device */

int cuInit(unsigned flags)
{
    if (flags != 0) {
        return WPK_CUDA_INVALID_VALUE;
    }
    if (!gpu.started &&
        wpk_orders_parse(getenv(ORDERS_VARIABLE), getenv(COUNT_VARIABLE), &gpu.orders) != WPK_OK) {
        fprintf(stderr, "%s cannot be read\n", ORDERS_VARIABLE);
        return WPK_CUDA_INVALID_VALUE;
    }
    if (wpk_orders_is_gone(&gpu.orders)) {
        return WPK_CUDA_NO_DEVICE;
    }
    WPK_OBEY_ORDERS();
    if (!gpu.started && wpk_device_memory_init(&gpu.memory, MEMORY_BYTES) != WPK_OK) {
        return WPK_CUDA_OUT_OF_MEMORY;
    }
    gpu.started = true;
    return WPK_CUDA_SUCCESS;
}

int cuDriverGetVersion(int *version)
{
    WPK_OBEY_ORDERS();
    *version = VERSION;
    return WPK_CUDA_SUCCESS;
}

int cuGetErrorString(int result, const char **text)
{
    static const struct {
        int result;
        const char *text;
    } texts[] = {
#define RESULT_TEXT(name, number) {number, #name},
        WPK_CUDA_RESULT_LIST(RESULT_TEXT)
#undef RESULT_TEXT
    };
    if (result != WPK_CUDA_SUCCESS && gpu.fault[0] != '\0') {
        *text = gpu.fault;
        return WPK_CUDA_SUCCESS;
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].result == result) {
            *text = texts[i].text;
            return WPK_CUDA_SUCCESS;
        }
    }
    *text = NULL;
    return WPK_CUDA_INVALID_VALUE;
}

int cuDeviceGetCount(int *count)
{
    WPK_OBEY_ORDERS();
    *count = 1;
    return gpu.started ? WPK_CUDA_SUCCESS : WPK_CUDA_NOT_INITIALIZED;
}

int cuDeviceGet(int *device, int ordinal)
{
    WPK_OBEY_ORDERS();
    *device = 0;
    return ordinal == 0 ? WPK_CUDA_SUCCESS : WPK_CUDA_INVALID_DEVICE;
}

int cuDeviceGetName(char *name, int size, int device)
{
    WPK_OBEY_ORDERS();
    snprintf(name, (size_t)size, "%s", DEVICE_NAME);
    return device == 0 ? WPK_CUDA_SUCCESS : WPK_CUDA_INVALID_DEVICE;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    WPK_OBEY_ORDERS();
    if (device != 0) {
        return WPK_CUDA_INVALID_DEVICE;
    }
    switch (attribute) {
    case WPK_CUDA_DEVICE_SM_COUNT:
        *value = SM_COUNT;
        return WPK_CUDA_SUCCESS;
    case WPK_CUDA_DEVICE_COMPUTE_MODE:
        *value = getenv(MODE_VARIABLE) != NULL ? (int)strtol(getenv(MODE_VARIABLE), NULL, 10) : 0;
        return WPK_CUDA_SUCCESS;
    case WPK_CUDA_DEVICE_L2_BYTES:
        *value = L2_BYTES;
        return WPK_CUDA_SUCCESS;
    case WPK_CUDA_DEVICE_CAPABILITY_MAJOR:
        *value = WPK_DRIVER_CAPABILITY / 10;
        return WPK_CUDA_SUCCESS;
    case WPK_CUDA_DEVICE_CAPABILITY_MINOR:
        *value = WPK_DRIVER_CAPABILITY % 10;
        return WPK_CUDA_SUCCESS;
    default:
        return WPK_CUDA_INVALID_VALUE;
    }
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    WPK_OBEY_ORDERS();
    memset(uuid, 0, 16);
    return device == 0 ? WPK_CUDA_SUCCESS : WPK_CUDA_INVALID_DEVICE;
}

int cuDeviceGetPCIBusId(char *bus, int size, int device)
{
    WPK_OBEY_ORDERS();
    snprintf(bus, (size_t)size, "%s", WPK_DRIVER_BUS);
    return device == 0 ? WPK_CUDA_SUCCESS : WPK_CUDA_INVALID_DEVICE;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    WPK_OBEY_ORDERS();
    *bytes = MEMORY_BYTES;
    return device == 0 ? WPK_CUDA_SUCCESS : WPK_CUDA_INVALID_DEVICE;
}

/* ---- the context */

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    WPK_OBEY_ORDERS();
    *context = &gpu.context;
    return device == 0 ? ready() : WPK_CUDA_INVALID_DEVICE;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    WPK_OBEY_ORDERS();
    return device == 0 ? WPK_CUDA_SUCCESS : WPK_CUDA_INVALID_DEVICE;
}

/* Depth of the calling thread's stack of contexts. */
static _Thread_local int current;

int cuCtxPushCurrent_v2(void *context)
{
    WPK_OBEY_ORDERS();
    current += context == &gpu.context;
    return context == &gpu.context ? WPK_CUDA_SUCCESS : WPK_CUDA_INVALID_CONTEXT;
}

int cuCtxPopCurrent_v2(void **context)
{
    WPK_OBEY_ORDERS();
    if (current == 0) {
        return WPK_CUDA_INVALID_CONTEXT;
    }
    current--;
    *context = &gpu.context;
    return WPK_CUDA_SUCCESS;
}

int wpk_driver_entered(void)
{
    int result = ready();
    return result == WPK_CUDA_SUCCESS && current == 0 ? WPK_CUDA_INVALID_CONTEXT : result;
}

int cuCtxGetDevice(int *device)
{
    WPK_OBEY_ORDERS();
    *device = 0;
    return wpk_driver_entered();
}

static const void *recording; /* the stream that records launches for a graph; NULL: none */

void wpk_driver_set_capturing(const void *stream)
{
    recording = stream;
}

bool wpk_driver_is_capturing(const void *stream)
{
    return stream != NULL && stream == recording;
}

int wpk_driver_uncaptured(const void *stream)
{
    return wpk_driver_is_capturing(stream) ? WPK_CUDA_STREAM_CAPTURE_UNSUPPORTED : WPK_CUDA_SUCCESS;
}

/* ---- modules */

int cuModuleLoadData(void **module, const void *image)
{
    WPK_OBEY_ORDERS();
    int result = wpk_driver_entered();
    if (result != WPK_CUDA_SUCCESS) {
        return result;
    }
    struct wpk_driver_module *made = NULL;
    result = wpk_driver_module_load(image, &made, gpu.fault, sizeof(gpu.fault));
    *module = made;
    return result;
}

int cuModuleUnload(void *module)
{
    WPK_OBEY_ORDERS();
    struct wpk_driver_module *made = module;
    struct function **at = &gpu.functions;
    while (*at != NULL) {
        struct function *function = *at;
        if (function->module == made) {
            *at = function->next;
            free(function);
        } else {
            at = &function->next;
        }
    }
    wpk_driver_module_free(made);
    return WPK_CUDA_SUCCESS;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    WPK_OBEY_ORDERS();
    const struct wpk_driver_module *made = module;
    int registers = 0;
    const struct wpk_ptx_entry *entry = wpk_driver_module_find(made, name, &registers);
    if (entry == NULL) {
        return WPK_CUDA_NOT_FOUND;
    }
    struct function *found = calloc(1, sizeof(*found));
    if (found == NULL) {
        return WPK_CUDA_OUT_OF_MEMORY;
    }
    *found = (struct function){
        .module = made, .entry = entry, .registers = registers, .next = gpu.functions};
    gpu.functions = found;
    *function = found;
    return WPK_CUDA_SUCCESS;
}

/* ---- memory */

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    WPK_OBEY_ORDERS();
    int result = wpk_driver_entered();
    if (result != WPK_CUDA_SUCCESS) {
        return result;
    }
    wpk_err err = wpk_device_memory_new(&gpu.memory, size, address);
    return err == WPK_OK       ? WPK_CUDA_SUCCESS
           : err == WPK_EINVAL ? WPK_CUDA_INVALID_VALUE
                               : WPK_CUDA_OUT_OF_MEMORY;
}

int cuMemFree_v2(uint64_t address)
{
    WPK_OBEY_ORDERS();
    return wpk_device_memory_free(&gpu.memory, address) == WPK_OK ? WPK_CUDA_SUCCESS
                                                                  : WPK_CUDA_INVALID_VALUE;
}

static bool is_inside(uint64_t address, size_t size)
{
    const struct wpk_device_range *range = wpk_device_memory_find(&gpu.memory, address);
    return range != NULL && !range->freed && size <= range->to - address;
}

/* The result of a copy or a filling in the stream, if memory allows it. */
static int check_range(uint64_t address, size_t size, const void *stream)
{
    int result = wpk_driver_entered();
    result = result == WPK_CUDA_SUCCESS ? wpk_driver_uncaptured(stream) : result;
    return result == WPK_CUDA_SUCCESS && !is_inside(address, size) ? WPK_CUDA_INVALID_VALUE
                                                                   : result;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream)
{
    WPK_OBEY_ORDERS();
    int result = check_range(to, size, stream);
    if (result == WPK_CUDA_SUCCESS) {
        memcpy((void *)(uintptr_t)to, from, size); // NOLINT: a device address is a host's
        wpk_device_memory_store(&gpu.memory, to, size);
    }
    return result;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream)
{
    WPK_OBEY_ORDERS();
    int result = check_range(from, size, stream);
    if (result == WPK_CUDA_SUCCESS) {
        memcpy(to, (const void *)(uintptr_t)from, size); // NOLINT: a device address is a host's
    }
    return result;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream)
{
    WPK_OBEY_ORDERS();
    int result = check_range(from, size, stream);
    result = result == WPK_CUDA_SUCCESS ? check_range(to, size, stream) : result;
    if (result == WPK_CUDA_SUCCESS) { // NOLINTNEXTLINE: a device address is a host's
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
        wpk_device_memory_store(&gpu.memory, to, size);
    }
    return result;
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t size, void *stream)
{
    WPK_OBEY_ORDERS();
    int result = check_range(to, size, stream);
    if (result == WPK_CUDA_SUCCESS) {
        memset((void *)(uintptr_t)to, value, size); // NOLINT: a device address is a host's
        wpk_device_memory_store(&gpu.memory, to, size);
    }
    return result;
}

/* ---- launches */

static int result_of(enum wpk_kernel_fault fault)
{
    switch (fault) {
    case WPK_KERNEL_FAULT_BOUNDS:
        return WPK_CUDA_ILLEGAL_ADDRESS;
    case WPK_KERNEL_FAULT_ALIGNMENT:
        return WPK_CUDA_MISALIGNED_ADDRESS;
    case WPK_KERNEL_FAULT_HANG:
        return WPK_CUDA_LAUNCH_TIMEOUT;
    default:
        return WPK_CUDA_LAUNCH_FAILED;
    }
}

static int stick(const struct wpk_ptx_entry *entry, const struct wpk_kernel_fault_report *report)
{
    gpu.stuck = (enum wpk_cuda_result)result_of(report->fault);
    snprintf(gpu.fault, sizeof(gpu.fault), "%.64s, block %u, thread %d, line %d of the PTX: %s",
             entry->name, report->block[0], report->thread, report->line,
             wpk_kernel_fault_text(report->fault));
    return (int)gpu.stuck;
}

static void advance(const struct wpk_launch *launch, const struct wpk_launch_counts *counts,
                    int registers)
{
    struct wpk_cuda_machine machine;
    int64_t blocks = (int64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    int64_t threads = (int64_t)launch->block[0] * launch->block[1] * launch->block[2];
    wpk_cuda_machine(WPK_DRIVER_CAPABILITY, SM_COUNT, &machine);
    gpu.now_ms += wpk_launch_model(&machine, counts, blocks, threads,
                                   launch->entry->shared_size + launch->shared_size, registers) *
                  MS_PER_S;
}

static const struct function *find_function(const void *handle)
{
    const struct function *at = gpu.functions;
    while (at != NULL && at != handle) {
        at = at->next;
    }
    return at;
}

int wpk_driver_take(const struct wpk_cuda_kernel_node *launch, uint8_t *values, size_t *size)
{
    const struct function *found = find_function(launch->function);
    if (found == NULL) {
        return WPK_CUDA_INVALID_HANDLE;
    }
    const struct wpk_ptx_entry *entry = found->entry;
    if (launch->extra != NULL || entry->parameter_size > WPK_DRIVER_PARAMETERS_MAX ||
        launch->parameters == NULL) {
        return WPK_CUDA_INVALID_VALUE;
    }
    if ((uint64_t)launch->shared_bytes + entry->shared_size > SHARED_MAX) {
        return WPK_CUDA_INVALID_VALUE; /* more needs an attribute, which nobody sets so far */
    }
    for (int i = 0; i < entry->parameter_count; i++) {
        memcpy(values + entry->parameter[i].offset, launch->parameters[i],
               entry->parameter[i].size);
    }
    *size = entry->parameter_size;
    return WPK_CUDA_SUCCESS;
}

static bool is_too_large(const struct wpk_cuda_kernel_node *node, int registers)
{
    struct wpk_cuda_machine machine;
    wpk_cuda_machine(WPK_DRIVER_CAPABILITY, SM_COUNT, &machine);
    return wpk_cuda_blocks_by_registers(
               &machine, (int64_t)node->block_x * node->block_y * node->block_z, registers) == 0;
}

int wpk_driver_launch(const struct wpk_cuda_kernel_node *node, const uint8_t *values)
{
    struct wpk_launch_counts counts = {0};
    struct wpk_kernel_fault_report report = {0};
    const struct function *found = find_function(node->function);
    if (found == NULL) {
        return WPK_CUDA_INVALID_HANDLE;
    }
    if (is_too_large(node, found->registers)) {
        return WPK_CUDA_LAUNCH_OUT_OF_RESOURCES;
    }
    const struct wpk_launch launch = {.ptx = &found->module->ptx,
                                      .entry = found->entry,
                                      .grid = {node->grid_x, node->grid_y, node->grid_z},
                                      .block = {node->block_x, node->block_y, node->block_z},
                                      .shared_size = node->shared_bytes,
                                      .parameters = values,
                                      .memory = &gpu.memory};
    wpk_err err = wpk_launch_run(&launch, &counts, &report);
    if (err != WPK_OK) {
        return err == WPK_ENOMEM ? WPK_CUDA_OUT_OF_MEMORY : WPK_CUDA_LAUNCH_OUT_OF_RESOURCES;
    }
    if (report.fault != WPK_KERNEL_FAULT_NONE) {
        return stick(found->entry, &report);
    }
    advance(&launch, &counts, found->registers);
    return WPK_CUDA_SUCCESS;
}

/* ---- streams and events */

int cuStreamCreate(void **stream, unsigned flags)
{
    WPK_OBEY_ORDERS();
    (void)flags;
    *stream = &gpu.stream;
    return wpk_driver_entered();
}

int cuStreamDestroy_v2(void *stream)
{
    WPK_OBEY_ORDERS();
    return stream == &gpu.stream ? WPK_CUDA_SUCCESS : WPK_CUDA_INVALID_VALUE;
}

int cuStreamSynchronize(void *stream)
{
    WPK_OBEY_ORDERS();
    int result = wpk_driver_entered();
    return result == WPK_CUDA_SUCCESS ? wpk_driver_uncaptured(stream) : result;
}

int cuEventCreate(void **event, unsigned flags)
{
    WPK_OBEY_ORDERS();
    (void)flags;
    struct event *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return WPK_CUDA_OUT_OF_MEMORY;
    }
    *event = made;
    return wpk_driver_entered();
}

int cuEventDestroy_v2(void *event)
{
    WPK_OBEY_ORDERS();
    free(event);
    return WPK_CUDA_SUCCESS;
}

int cuEventRecord(void *event, void *stream)
{
    WPK_OBEY_ORDERS();
    struct event *made = event;
    int result = wpk_driver_entered();
    made->ms = gpu.now_ms;
    return result == WPK_CUDA_SUCCESS ? wpk_driver_uncaptured(stream) : result;
}

int cuEventSynchronize(void *event)
{
    WPK_OBEY_ORDERS();
    (void)event;
    return wpk_driver_entered();
}

int cuEventElapsedTime(float *ms, void *start, void *end)
{
    WPK_OBEY_ORDERS();
    const struct event *from = start, *to = end;
    *ms = (float)(to->ms - from->ms);
    return wpk_driver_entered();
}
