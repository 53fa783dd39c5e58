/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of one call, where the kernel (perf_event) and the machine offer them. */
#ifndef WPK_WORKER_COUNTERS_H
#define WPK_WORKER_COUNTERS_H

#include "schema/record.h"

/* Count over `repeat` calls and give the mean of one; threads started before are not counted.
 * `out->present` is false where there are no counters.
 *   errors  what run returned */
wpk_err wpk_counters_read(wpk_err (*run)(void *user), void *user, int repeat,
                          struct wpk_counters *out);

#endif
