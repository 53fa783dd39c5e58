/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling a schedule by its back end. Only wpk-builder links it. */
#ifndef WPK_TARGET_EMIT_H
#define WPK_TARGET_EMIT_H

#include "nest/schedule.h"

/* Compile the main program of a schedule that wpk_codegen_check() accepts to the function `symbol`
 * in the object file `object_path`, with the arguments of target/halide/halide.h. A back end that
 * makes images writes one to that path.
 *   errors  WPK_EUNSUPPORTED with the back end's message */
wpk_err wpk_emit(const struct wpk_schedule *schedule, const char *symbol, const char *object_path,
                 struct wpk_diag *diag);

#endif
