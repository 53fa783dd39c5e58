/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/provider/provider.h"

#include "common/nvml_calls.h"
#include "runtime/gpu/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define NVIDIA_LIBRARY "libnvidia-ml.so.1"
#define BUS_MAX 32
#define MILLI 1000

#define FIELD(name, parameters) int(*name) parameters;

/* Of this process, whose main thread alone asks. */
static struct {
    bool tried, known;
    WPK_NVML_CALL_LIST(FIELD)
    void *device;
    struct wpk_diag why; /* it is not known */
} nvml;

static bool find_calls(void *library)
{
#define SYMBOL(name, parameters) {#name, (void (**)(void))(void *)&nvml.name},
    const struct {
        const char *name;
        void (**slot)(void);
    } symbols[] = {WPK_NVML_CALL_LIST(SYMBOL)};
#undef SYMBOL
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *found = dlsym(library, symbols[i].name);
        if (found == NULL && strstr(symbols[i].name, "EventReasons") != NULL) {
            found = dlsym(library, WPK_NVML_REASONS_OLD);
        }
        if (found == NULL) {
            wpk_diag_set(&nvml.why, "%s has no function %s", NVIDIA_LIBRARY, symbols[i].name);
            return false;
        }
        memcpy(symbols[i].slot, &found, sizeof(found));
    }
    return true;
}

/* The whole GPU at the place in the machine where the driver has number 0; of an instance (MIG),
 * the GPU that it is part of. */
static bool find_device(bool emulated)
{
    const struct wpk_cuda_driver *driver = NULL;
    char bus[BUS_MAX] = "";
    int device = 0;
    if (wpk_cuda_driver_open(emulated, &driver, &nvml.why) != WPK_OK) {
        return false;
    }
    int result = driver->cuDeviceGet(&device, 0);
    result = result == 0 ? driver->cuDeviceGetPCIBusId(bus, sizeof(bus), device) : result;
    if (result != WPK_CUDA_SUCCESS) {
        (void)wpk_cuda_driver_fail(driver, result, "finding the GPU's place", &nvml.why);
        return false;
    }
    result = nvml.nvmlInit_v2();
    result = result == 0 ? nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, &nvml.device) : result;
    if (result != WPK_NVML_SUCCESS) {
        wpk_diag_set(&nvml.why, "%s refuses %s (NVML error %d)", NVIDIA_LIBRARY, bus, result);
        return false;
    }
    return true;
}

static bool is_known(bool emulated)
{
    if (!nvml.tried) {
        const char *name = emulated ? WPK_CUDA_EMULATED_LIBRARY : NVIDIA_LIBRARY;
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        nvml.tried = true;
        if (library == NULL) {
            wpk_diag_set(&nvml.why, "this machine has no %s", name);
        }
        nvml.known = library != NULL && find_calls(library) && find_device(emulated);
    }
    return nvml.known;
}

/* Bits of WPK_NVML_REASON_LIST; 0: clocks are not lowered, or nothing can be asked. */
static unsigned long long find_reasons(void)
{
#define BIT(name, bit) | (bit)
    const unsigned long long all = 0ULL WPK_NVML_REASON_LIST(BIT);
#undef BIT
    unsigned long long reasons = 0;
    int result = nvml.nvmlDeviceGetCurrentClocksEventReasons(nvml.device, &reasons);
    return result == WPK_NVML_SUCCESS ? reasons & all : 0;
}

bool wpk_nvml_is_throttled(bool emulated)
{
    return is_known(emulated) && find_reasons() != 0;
}

void wpk_nvml_describe(bool emulated, char *out, size_t size)
{
    static const struct {
        unsigned long long bit;
        const char *name;
    } names[] = {
#define NAME(name, bit) {bit, #name},
        WPK_NVML_REASON_LIST(NAME)
#undef NAME
    };
    unsigned celsius = 0, milliwatts = 0;
    if (!is_known(emulated)) {
        snprintf(out, size, "not known, so samples of a throttled GPU count: %s", nvml.why.text);
        return;
    }
    unsigned long long reasons = find_reasons();
    snprintf(out, size, "%s", reasons != 0 ? "throttled:" : "not throttled");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t used = strlen(out);
        if ((reasons & names[i].bit) != 0) {
            snprintf(out + used, size - used, " %s", names[i].name);
        }
    }
    size_t used = strlen(out);
    if (nvml.nvmlDeviceGetTemperature(nvml.device, WPK_NVML_SENSOR_GPU, &celsius) == 0) {
        used += (size_t)snprintf(out + used, size - used, ", %u C", celsius);
    }
    if (used < size &&
        nvml.nvmlDeviceGetEnforcedPowerLimit(nvml.device, &milliwatts) == WPK_NVML_SUCCESS) {
        snprintf(out + used, size - used, ", power limit %u W", milliwatts / MILLI);
    }
}
