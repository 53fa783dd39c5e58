/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NVIDIA's management library that wpk calls: worker/provider/nvml.c finds them in
 * libnvidia-ml.so.1, and tests/gpu/nvml.c defines them. Signatures are those of nvml.h, with
 * handles as pointers without a type; each function returns an nvmlReturn_t, of which 0 is success.
 * All of them read: clocks and limits are never changed.
 *
 *   source  NVIDIA, NVML API reference 12.9 */
#ifndef WPK_COMMON_NVML_CALLS_H
#define WPK_COMMON_NVML_CALLS_H

/* X(name, parameters) */
#define WPK_NVML_CALL_LIST(X)                                                                      \
    X(nvmlInit_v2, (void))                                                                         \
    X(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, void **device))                          \
    X(nvmlDeviceGetCurrentClocksEventReasons, (void *device, unsigned long long *reasons))         \
    X(nvmlDeviceGetTemperature, (void *device, int sensor, unsigned *celsius))                     \
    X(nvmlDeviceGetEnforcedPowerLimit, (void *device, unsigned *milliwatts))

/* The name of nvmlDeviceGetCurrentClocksEventReasons in drivers before 535. */
#define WPK_NVML_REASONS_OLD "nvmlDeviceGetCurrentClocksThrottleReasons"

enum {
    WPK_NVML_SUCCESS = 0,
    WPK_NVML_NOT_SUPPORTED = 3,
    WPK_NVML_SENSOR_GPU = 0,
};

/* name, bit: why clocks are lower than the load and the settings let them be. */
#define WPK_NVML_REASON_LIST(X)                                                                    \
    X(HwSlowdown, 0x8)                                                                             \
    X(SwThermalSlowdown, 0x20)                                                                     \
    X(HwThermalSlowdown, 0x40)                                                                     \
    X(HwPowerBrakeSlowdown, 0x80)

#endif
