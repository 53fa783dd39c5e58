/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/vendor/gpu_vendor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define PATH_MAX_BYTES 4096
#define TOOLKIT "/usr/local/cuda/lib64"

static void *load_from(const char *const *files, const char *directory)
{
    char path[PATH_MAX_BYTES];
    void *found = NULL;
    for (int i = 0; files[i] != NULL && found == NULL; i++) {
        snprintf(path, sizeof(path), "%s%s%s", directory != NULL ? directory : "",
                 directory != NULL ? "/" : "", files[i]);
        found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return found;
}

wpk_err wpk_gpu_vendor_load(const char *const *files, const char *directory,
                            const struct wpk_gpu_vendor_symbol *symbols, size_t count,
                            struct wpk_gpu_vendor *vendor, struct wpk_diag *diag)
{
    void *library = load_from(files, directory);
    library = library != NULL ? library : load_from(files, TOOLKIT);
    if (library == NULL) {
        return wpk_fail(diag, WPK_ENOENT, "this machine has no %s", files[0]);
    }
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (symbol == NULL) {
            return wpk_fail(diag, WPK_EUNSUPPORTED, "%s has no function %s", files[0],
                            symbols[i].name);
        }
        memcpy(symbols[i].slot, &symbol, sizeof(symbol));
    }
    vendor->emulated = dlsym(library, WPK_GPU_VENDOR_EMULATED) != NULL;
    return WPK_OK;
}
