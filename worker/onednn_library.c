/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/onednn_library.h"

#include <dlfcn.h>
#include <string.h>

/* The threads are OpenMP's: other builds take them from the process's CPUs. */
static void limit_threads(const struct wpk_onednn_library *library, int threads)
{
    void (*set_threads)(int) = NULL;
    void *symbol = dlsym(library->handle, "omp_set_num_threads");

    if (symbol != NULL) {
        memcpy(&set_threads, &symbol, sizeof(symbol));
        set_threads(threads);
    }
}

wpk_err wpk_onednn_library_open(struct wpk_onednn_library *library, const char *path, int threads,
                                struct wpk_diag *diag)
{
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library->handle == NULL) {
        wpk_diag_set(diag, "cannot load oneDNN: %s", dlerror());
        return WPK_ENOENT;
    }
#define LIBRARY_LOOK_UP(name)                                                                      \
    {                                                                                              \
        void *symbol = dlsym(library->handle, "dnnl_" #name);                                      \
        if (symbol == NULL) {                                                                      \
            wpk_diag_set(diag, "%s has no dnnl_%s: oneDNN 3 is wanted", path, #name);              \
            return WPK_EMISMATCH;                                                                  \
        }                                                                                          \
        memcpy(&library->name, &symbol, sizeof(symbol));                                           \
    }
    WPK_ONEDNN_LIBRARY_LIST(LIBRARY_LOOK_UP)
#undef LIBRARY_LOOK_UP
    if (library->version()->major != DNNL_VERSION_MAJOR) {
        wpk_diag_set(diag, "oneDNN %d is not oneDNN %d", library->version()->major,
                     DNNL_VERSION_MAJOR);
        return WPK_EMISMATCH;
    }
    limit_threads(library, threads);
    return WPK_OK;
}
