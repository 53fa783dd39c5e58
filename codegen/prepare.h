/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of what is computed once for a kernel: its packed and transformed constants. */
#ifndef WPK_CODEGEN_PREPARE_H
#define WPK_CODEGEN_PREPARE_H

#include "codegen/schedule.h"

/* Schedule the prepare program of `schedule`, which must have stages, as the main program of `out`:
 * each stage with one axis in lanes, as far inside the loops of what reads it as computes nothing
 * twice.
 *   owns    caller calls wpk_schedule_fini
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_prepare_schedule(const struct wpk_schedule *schedule, struct wpk_schedule *out);

#endif
