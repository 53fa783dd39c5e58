/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NVIDIA_LIBRARY "libcuda.so.1"
#define UUID_PREFIX 4
#define UUID_DIGITS 32

struct opened {
    struct wpk_cuda_driver driver;
    bool tried;
    wpk_err err;
    struct wpk_diag diag;
};

/* The lock guards both. A failure is kept, too: it would be the same the next time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened nvidia, emulated_one;

struct symbol {
    const char *name;
    void (**slot)(void);
};

static wpk_err find_calls(void *library, struct wpk_cuda_driver *driver, struct wpk_diag *diag)
{
#define WPK_CUDA_CALL_SYMBOL(name, parameters) {#name, (void (**)(void))(void *)&driver->name},
    const struct symbol symbols[] = {WPK_CUDA_CALL_LIST(WPK_CUDA_CALL_SYMBOL)};
#undef WPK_CUDA_CALL_SYMBOL
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *found = dlsym(library, symbols[i].name);
        if (found == NULL) {
            return wpk_fail(diag, WPK_EUNSUPPORTED,
                            "the GPU's driver is too old: it has no function %s", symbols[i].name);
        }
        memcpy(symbols[i].slot, &found, sizeof(found));
    }
    return WPK_OK;
}

static wpk_err start(struct wpk_cuda_driver *driver, bool emulated, struct wpk_diag *diag)
{
    const char *name = emulated ? WPK_CUDA_EMULATED_LIBRARY : NVIDIA_LIBRARY;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return wpk_fail(diag, WPK_ENOENT,
                        emulated ? "the emulated GPU is not installed: no %s"
                                 : "this machine has no NVIDIA driver: no %s",
                        name);
    }
    wpk_err err = find_calls(library, driver, diag);
    int result = err == WPK_OK ? driver->cuInit(0) : WPK_CUDA_SUCCESS;
    if (result == WPK_CUDA_NO_DEVICE) {
        return wpk_fail(diag, WPK_ENOENT, "this machine has an NVIDIA driver and no GPU");
    }
    if (err == WPK_OK && result == WPK_CUDA_SUCCESS) {
        result = driver->cuDriverGetVersion(&driver->version);
    }
    return err == WPK_OK && result != WPK_CUDA_SUCCESS
               ? wpk_cuda_driver_fail(driver, result, "starting the GPU's driver", diag)
               : err;
}

wpk_err wpk_cuda_driver_open(bool emulated, const struct wpk_cuda_driver **out,
                             struct wpk_diag *diag)
{
    struct opened *opened = emulated ? &emulated_one : &nvidia;
    pthread_mutex_lock(&lock);
    if (!opened->tried) {
        opened->err = start(&opened->driver, emulated, &opened->diag);
        opened->tried = true;
    }
    pthread_mutex_unlock(&lock);
    if (opened->err != WPK_OK) {
        wpk_diag_set(diag, "%s", opened->diag.text);
        return opened->err;
    }
    *out = &opened->driver;
    return WPK_OK;
}

wpk_err wpk_cuda_driver_fail(const struct wpk_cuda_driver *driver, int result, const char *doing,
                             struct wpk_diag *diag)
{
    const char *text = NULL;
    WPK_ASSERT(result != WPK_CUDA_SUCCESS);
    if (driver->cuGetErrorString(result, &text) != WPK_CUDA_SUCCESS || text == NULL) {
        text = "an error without a text";
    }
    wpk_diag_set(diag, "%s: %s (CUDA error %d)%s", doing, text, result,
                 result == WPK_CUDA_DEVICE_UNAVAILABLE
                     ? ": another process has the GPU for itself; see nvidia-smi -q -d COMPUTE"
                     : "");
    switch (result) {
    case WPK_CUDA_OUT_OF_MEMORY:
        return WPK_ENOMEM;
    case WPK_CUDA_NO_BINARY_FOR_GPU:
    case WPK_CUDA_INVALID_IMAGE:
    case WPK_CUDA_INVALID_PTX:
    case WPK_CUDA_UNSUPPORTED_PTX_VERSION:
    case WPK_CUDA_LAUNCH_OUT_OF_RESOURCES:
        return WPK_EUNSUPPORTED;
    default:
        return WPK_ESYSTEM;
    }
}

void wpk_cuda_driver_name_uuid(const char *name, char out[WPK_CUDA_UUID_TEXT_MAX])
{
    static const char digits[] = "0123456789abcdefABCDEF";
    bool has_uuid = wpk_begins(name, "GPU-") || wpk_begins(name, "MIG-");
    snprintf(out, WPK_CUDA_UUID_TEXT_MAX, "%s", name);
    if (has_uuid && strspn(name + UUID_PREFIX, digits) == UUID_DIGITS &&
        name[UUID_PREFIX + UUID_DIGITS] == '\0') {
        const char *at = name + UUID_PREFIX;
        snprintf(out, WPK_CUDA_UUID_TEXT_MAX, "%.4s%.8s-%.4s-%.4s-%.4s-%.12s", name, at, at + 8,
                 at + 12, at + 16, at + 20);
    }
}

wpk_err wpk_cuda_driver_device(const struct wpk_cuda_driver *driver, int ordinal,
                               struct wpk_device *out, struct wpk_diag *diag)
{
    struct wpk_device found = {.kind = "cuda", .core_count = 1};
    int count = 0, device = 0, major = 0, minor = 0;
    int result = driver->cuDeviceGetCount(&count);
    if (result == WPK_CUDA_SUCCESS && (ordinal < 0 || ordinal >= count)) {
        return wpk_fail(diag, WPK_ENOENT, "there is no GPU %d: this machine has %d", ordinal,
                        count);
    }
    result = result == 0 ? driver->cuDeviceGet(&device, ordinal) : result;
    result =
        result == 0 ? driver->cuDeviceGetName(found.model, sizeof(found.model), device) : result;
    result = result == 0
                 ? driver->cuDeviceGetAttribute(&major, WPK_CUDA_DEVICE_CAPABILITY_MAJOR, device)
                 : result;
    result = result == 0
                 ? driver->cuDeviceGetAttribute(&minor, WPK_CUDA_DEVICE_CAPABILITY_MINOR, device)
                 : result;
    result = result == 0 ? driver->cuDeviceGetAttribute(&found.cuda.sm_count,
                                                        WPK_CUDA_DEVICE_SM_COUNT, device)
                         : result;
    if (result != WPK_CUDA_SUCCESS) {
        return wpk_cuda_driver_fail(driver, result, "describing the GPU", diag);
    }
    size_t bytes = 0;
    found.cuda.capability = 10 * major + minor;
    found.cuda.driver = driver->version;
    if (driver->cuDeviceTotalMem_v2(&bytes, device) == WPK_CUDA_SUCCESS) {
        found.cuda.memory_bytes = (int64_t)bytes;
    }
    /* The driver has the UUID of an instance of a GPU in place of the GPU's, and "MIG" in its
     * name. */
    char host[64] = "", slot[WPK_CUDA_UUID_TEXT_MAX] = WPK_DEVICE_EMULATED;
    char name[WPK_CUDA_UUID_TEXT_MAX];
    unsigned char uuid[16] = {0};
    (void)!gethostname(host, sizeof(host) - 1);
    if (!wpk_device_is_emulated(&found) && driver->cuDeviceGetUuid_v2(uuid, device) == 0) {
        bool instance = strstr(found.model, " MIG ") != NULL;
        int at = snprintf(name, sizeof(name), instance ? "MIG-" : "GPU-");
        for (size_t i = 0; i < sizeof(uuid); i++) {
            at += snprintf(name + at, sizeof(name) - (size_t)at, "%02x", uuid[i]);
        }
        wpk_cuda_driver_name_uuid(name, slot);
    }
    snprintf(found.instance, sizeof(found.instance), "%s/%s", host, slot);
    *out = found;
    return WPK_OK;
}
