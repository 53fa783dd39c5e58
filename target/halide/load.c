/* SPDX-License-Identifier: Apache-2.0 */
/* Halide as wpk-builder calls it: the first call loads the library. With Halide it has 165 MB, of
 * which a builder of CUDA C needs nothing. */
#include "target/halide/halide.h"

#include <dlfcn.h>

/* NULL: there is no library, or it does not load, with the reason. */
static const struct wpk_halide_functions *load(struct wpk_diag *diag)
{
    static const struct wpk_halide_functions *functions;
    char path[WPK_HALIDE_PATH_MAX];

    if (functions == NULL && wpk_halide_find(path, diag) == WPK_OK) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        functions = library != NULL ? dlsym(library, "wpk_halide_functions") : NULL;
        if (functions == NULL) {
            wpk_diag_set(diag, "%s", dlerror());
        }
    }
    return functions;
}

wpk_err wpk_halide_warm(const char *target, struct wpk_diag *diag)
{
    const struct wpk_halide_functions *functions = load(diag);

    return functions != NULL ? functions->warm(target, diag) : WPK_EUNSUPPORTED;
}

wpk_err wpk_halide_build(const struct wpk_schedule *schedule, const char *symbol,
                         const char *object_path, struct wpk_diag *diag)
{
    const struct wpk_halide_functions *functions = load(diag);

    return functions != NULL ? functions->build(schedule, symbol, object_path, diag)
                             : WPK_EUNSUPPORTED;
}

wpk_err wpk_halide_launches(const struct wpk_schedule *schedule, const char *symbol,
                            struct wpk_launch_plan *plan, struct wpk_buf *ptx,
                            struct wpk_diag *diag)
{
    const struct wpk_halide_functions *functions = load(diag);

    return functions != NULL ? functions->launches(schedule, symbol, plan, ptx, diag)
                             : WPK_EUNSUPPORTED;
}
