/* SPDX-License-Identifier: Apache-2.0 */
/* The management library of the emulated GPU, which lies in the driver's library. The GPU is
 * throttled on order: WPK_EMULATED_THROTTLED=3-8=64 gives the 3rd to 8th question for reasons of
 * this process the reasons 64 (common/nvml_calls.h). */
#include "common/nvml_calls.h"
#include "tests/gpu/driver.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "WPK_EMULATED_THROTTLED"
#define CELSIUS 40
#define MILLIWATTS 700000

#define DECLARE(name, parameters) __attribute__((visibility("default"))) int name parameters;
WPK_NVML_CALL_LIST(DECLARE)

static int device;

int nvmlInit_v2(void)
{
    WPK_OBEY_ORDERS();
    return WPK_NVML_SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **handle)
{
    WPK_OBEY_ORDERS();
    *handle = &device;
    return strcmp(bus, WPK_DRIVER_BUS) == 0 ? WPK_NVML_SUCCESS : WPK_NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *handle, unsigned long long *reasons)
{
    WPK_OBEY_ORDERS();
    static unsigned calls;
    const char *text = getenv(VARIABLE);
    unsigned from = 0, to = 0;
    unsigned long long ordered = 0;
    bool is_ordered = text != NULL && sscanf(text, "%u-%u=%llu", &from, &to, &ordered) == 3;
    calls++;
    *reasons = is_ordered && calls >= from && calls <= to ? ordered : 0;
    return handle == &device ? WPK_NVML_SUCCESS : WPK_NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *celsius)
{
    WPK_OBEY_ORDERS();
    *celsius = CELSIUS;
    return handle == &device && sensor == WPK_NVML_SENSOR_GPU ? WPK_NVML_SUCCESS
                                                              : WPK_NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *milliwatts)
{
    WPK_OBEY_ORDERS();
    *milliwatts = MILLIWATTS;
    return handle == &device ? WPK_NVML_SUCCESS : WPK_NVML_NOT_SUPPORTED;
}
