/* SPDX-License-Identifier: Apache-2.0 */
#include "target/codegen.h"

#include "search/back_end.h"
#include "target/c/compiler.h"
#include "target/gpu/build.h"
#include "target/halide/halide.h"

#define EMIT(symbol, name, kind, traits) wpk_##symbol##_build,

static wpk_err (*const emit[])(const struct wpk_schedule *schedule, const char *symbol,
                               const char *object_path,
                               struct wpk_diag *diag) = {WPK_BACK_END_LIST(EMIT)};

wpk_err wpk_emit(const struct wpk_schedule *schedule, const char *symbol, const char *object_path,
                 struct wpk_diag *diag)
{
    int number = wpk_back_end_number(schedule->by);
    WPK_ASSERT(number >= 0);
    return emit[number](schedule, symbol, object_path, diag);
}
