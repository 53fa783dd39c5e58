/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/vendor/onednn_library.h"

#include "common/buf.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY_NAME "libdnnl.so.3"

int wpk_onednn_library_limit(const struct wpk_onednn_library *library, int threads)
{
    if (library->set_threads == NULL) {
        return threads;
    }
    int before = library->get_threads();
    if (before != threads) {
        library->set_threads(threads);
    }
    return before;
}

wpk_err wpk_onednn_translate(dnnl_status_t status)
{
    switch (status) {
    case dnnl_success:
        return WPK_OK;
    case dnnl_out_of_memory:
        return WPK_ENOMEM;
    default:
        return WPK_EUNSUPPORTED;
    }
}

static wpk_err load(struct wpk_onednn_library *library, const char *directory,
                    struct wpk_diag *diag)
{
    struct wpk_buf path = {0};

    wpk_buf_printf(&path, "%s%s%s", directory != NULL ? directory : "",
                   directory != NULL ? "/" : "", LIBRARY_NAME);
    wpk_err err = wpk_buf_status(&path);
    if (err == WPK_OK) {
        library->handle = dlopen(path.data, RTLD_NOW | RTLD_LOCAL);
        if (library->handle == NULL) {
            err = wpk_fail(diag, WPK_ENOENT, "cannot load oneDNN: %s", dlerror());
        }
    }
    wpk_buf_fini(&path);
    return err;
}

wpk_err wpk_onednn_library_open(struct wpk_onednn_library *library, const char *directory,
                                struct wpk_diag *diag)
{
    wpk_err err = load(library, directory, diag);
    if (err != WPK_OK) {
        return err;
    }
#define LIBRARY_LOOK_UP(name)                                                                      \
    {                                                                                              \
        void *symbol = dlsym(library->handle, "dnnl_" #name);                                      \
        if (symbol == NULL) {                                                                      \
            wpk_diag_set(diag, "%s has no dnnl_%s: oneDNN 3 is wanted", LIBRARY_NAME, #name);      \
            return WPK_EMISMATCH;                                                                  \
        }                                                                                          \
        memcpy(&library->name, &symbol, sizeof(symbol));                                           \
    }
    WPK_ONEDNN_LIBRARY_LIST(LIBRARY_LOOK_UP)
#undef LIBRARY_LOOK_UP
    if (library->version()->major != DNNL_VERSION_MAJOR) {
        return wpk_fail(diag, WPK_EMISMATCH, "oneDNN %d is not oneDNN %d",
                        library->version()->major, DNNL_VERSION_MAJOR);
    }
    void *set = dlsym(library->handle, "omp_set_num_threads");
    void *get = dlsym(library->handle, "omp_get_max_threads");
    if (set != NULL && get != NULL) {
        memcpy(&library->set_threads, &set, sizeof(set));
        memcpy(&library->get_threads, &get, sizeof(get));
    }
    return WPK_OK;
}
