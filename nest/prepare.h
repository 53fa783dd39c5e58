/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a kernel's prepare program, which packs and transforms its constants once. */
#ifndef WPK_NEST_PREPARE_H
#define WPK_NEST_PREPARE_H

#include "nest/schedule.h"

/* Schedule the prepare program of `schedule`, which must have stages, as the main program of `out`.
 * Each stage has one axis in lanes, and is computed as far inside its readers' loops as is possible
 * without computing a value twice.
 *   owns    caller calls wpk_schedule_fini
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_prepare_schedule(const struct wpk_schedule *schedule, struct wpk_schedule *out);

#endif
