/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cublaslt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define PATH_MAX_BYTES 4096
#define TOOLKIT "/usr/local/cuda/lib64"
#define PER_MAJOR 10000
#define PER_MINOR 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static struct {
    struct wpk_cublaslt_library library;
    bool tried;
    wpk_err err;
    struct wpk_diag diag;
} opened;

static void *load(const char *directory)
{
    static const char *const names[] = {"libcublasLt.so.12", "libcublasLt.so.13"};
    const char *const directories[] = {directory, TOOLKIT};
    char path[PATH_MAX_BYTES];
    void *found = NULL;
    for (int i = 0; i < 4 && found == NULL; i++) {
        const char *in = directories[i / 2];
        snprintf(path, sizeof(path), "%s%s%s", in != NULL ? in : "", in != NULL ? "/" : "",
                 names[i % 2]);
        found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return found;
}

static wpk_err start(struct wpk_cublaslt_library *library, const char *directory,
                     struct wpk_diag *diag)
{
#define SYMBOL(name, result, parameters) {#name, (void (**)(void))(void *)&library->name},
    const struct {
        const char *name;
        void (**slot)(void);
    } symbols[] = {WPK_CUBLASLT_CALL_LIST(SYMBOL)};
#undef SYMBOL
    void *found = load(directory);
    if (found == NULL) {
        wpk_diag_set(diag, "this machine has no libcublasLt.so.12 and no libcublasLt.so.13");
        return WPK_ENOENT;
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = dlsym(found, symbols[i].name);
        if (symbol == NULL) {
            wpk_diag_set(diag, "this cuBLASLt has no function %s", symbols[i].name);
            return WPK_EUNSUPPORTED;
        }
        memcpy(symbols[i].slot, &symbol, sizeof(symbol));
    }
    size_t version = library->cublasLtGetVersion();
    library->emulated = dlsym(found, WPK_CUBLASLT_EMULATED_MARK) != NULL;
    snprintf(library->version, sizeof(library->version), "%zu.%zu.%zu", version / PER_MAJOR,
             version / PER_MINOR % PER_MINOR, version % PER_MINOR);
    return WPK_OK;
}

wpk_err wpk_cublaslt_library_open(const char *directory, const struct wpk_cublaslt_library **out,
                                  struct wpk_diag *diag)
{
    pthread_mutex_lock(&lock);
    if (!opened.tried) {
        opened.err = start(&opened.library, directory, &opened.diag);
        opened.tried = true;
    }
    pthread_mutex_unlock(&lock);
    if (opened.err != WPK_OK) {
        wpk_diag_set(diag, "%s", opened.diag.text);
        return opened.err;
    }
    *out = &opened.library;
    return WPK_OK;
}
