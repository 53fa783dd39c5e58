/* SPDX-License-Identifier: Apache-2.0 */
/* When a search is good enough before its budget is spent. */
#ifndef WPK_COORDINATOR_STATE_UNTIL_H
#define WPK_COORDINATOR_STATE_UNTIL_H

#include <stdbool.h>

struct wpk_search;

/* True if the condition of a job, as schema/job.h writes it, holds for what the search has found:
 *     speedup=S   its best candidate is S times as fast as the fastest vendor
 *     of_peak=P   it does the operator's operations at the share P of the device's peak
 *     converged   the later half of at least 48 trials brought no better one
 * "" never holds. */
bool wpk_until_holds(const struct wpk_search *search, const char *until);

#endif
