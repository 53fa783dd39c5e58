/* SPDX-License-Identifier: Apache-2.0 */
/* Halide behind a C interface: replays a schedule's directives and writes an object file.
 * Only wpk-builder links this. It holds no decision and lets no exception out. */
#ifndef WPK_CODEGEN_HALIDE_H
#define WPK_CODEGEN_HALIDE_H

#include "codegen/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compile something small once, so that children forked afterwards start warm.
 *   errors  WPK_EUNSUPPORTED with Halide's words */
wpk_err wpk_halide_warm(const char *target, struct wpk_diag *diag);

/* Generate `object_path` from the schedule's main program, which becomes the function `symbol`; and
 * LLVM's text of it unless `llvm_path` is NULL.
 *
 *   arguments of the generated function, in order: inputs, constants and prepared tensors, then
 *   outputs, each in the order of the schedule's main program's tensors
 *   errors  WPK_EUNSUPPORTED with Halide's words: a directive or expression it rejects
 */
wpk_err wpk_halide_build(const struct wpk_schedule *schedule, const char *symbol,
                         const char *object_path, const char *llvm_path, struct wpk_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
