/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/fake_vendor/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER "libwpk-cuda-emulated.so"

/* The libraries are for the emulated GPU (runtime/vendor/gpu_vendor.h). */
__attribute__((visibility("default"))) extern const int wpk_vendor_emulated;
const int wpk_vendor_emulated = 1;

bool fake_driver_open(struct fake_driver *driver, const char *ptx)
{
#define SYMBOL(name, parameters) {#name, (void (**)(void))(void *)&driver->name},
    const struct {
        const char *name;
        void (**slot)(void);
    } symbols[] = {WPK_CUDA_CALL_LIST(SYMBOL)};
#undef SYMBOL
    void *library = dlopen(DRIVER, RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; library != NULL && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *found = dlsym(library, symbols[i].name);
        memcpy(symbols[i].slot, &found, sizeof(found));
    }
    return library != NULL && driver->cuModuleLoadData(&driver->module, ptx) == WPK_CUDA_SUCCESS;
}

bool fake_driver_find(const struct fake_driver *driver, const char *name, void **function)
{
    return driver->cuModuleGetFunction(function, driver->module, name) == WPK_CUDA_SUCCESS;
}

bool fake_is_mode(const char *variable, const char *mode)
{
    const char *text = getenv(variable);
    return text != NULL && strcmp(text, mode) == 0;
}
