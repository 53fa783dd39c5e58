/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/emit.h"

#include "codegen/c_build.h"
#include "codegen/cuda_build.h"
#include "codegen/halide.h"
#include "codegen/halide_cuda.h"
#include "search/back_end.h"

#include <string.h>

struct emitter {
    const char *name; /* of the back end */
    wpk_err (*emit)(const struct wpk_schedule *schedule, const char *symbol,
                    const char *object_path, struct wpk_diag *diag);
};

static wpk_err emit_c(const struct wpk_schedule *schedule, const char *symbol,
                      const char *object_path, struct wpk_diag *diag)
{
    return wpk_c_build(schedule, symbol, object_path, diag);
}

static wpk_err emit_halide(const struct wpk_schedule *schedule, const char *symbol,
                           const char *object_path, struct wpk_diag *diag)
{
    return wpk_halide_build(schedule, symbol, object_path, NULL, diag);
}

static wpk_err emit_halide_cuda(const struct wpk_schedule *schedule, const char *symbol,
                                const char *path, struct wpk_diag *diag)
{
    return wpk_halide_cuda_build(schedule, symbol, path, diag);
}

static wpk_err emit_cuda(const struct wpk_schedule *schedule, const char *symbol, const char *path,
                         struct wpk_diag *diag)
{
    return wpk_cuda_build(schedule, symbol, path, diag);
}

#define EMITTER(symbol, name, kind, has_scope_output, takes_all) {name, emit_##symbol},

static const struct emitter all[] = {WPK_BACK_END_LIST(EMITTER)};

wpk_err wpk_emit(const struct wpk_schedule *schedule, const char *symbol, const char *object_path,
                 struct wpk_diag *diag)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].name, schedule->by) == 0) {
            return all[i].emit(schedule, symbol, object_path, diag);
        }
    }
    wpk_diag_set(diag, "this builder has no back end %s", schedule->by);
    return WPK_EUNSUPPORTED;
}
