/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/state/until.h"

#include "coordinator/state/heat.h"
#include "coordinator/state/search.h"
#include "coordinator/state/work_item.h"

#include <stdlib.h>
#include <string.h>

#define CONVERGED_LEAST 48 /* trials before it is said that a search has converged */

/* Of the fastest vendor; 0: none was timed. */
static double vendor_ns(const struct wpk_search *search)
{
    double least = 0;
    for (uint32_t i = 0; i < search->vendor_count; i++) {
        const struct wpk_trial_summary *trial = &search->vendors[i].trial;
        double ns = trial->outcome == WPK_OUTCOME_OK ? (double)trial->median_ns : 0;
        least = ns > 0 && (least == 0 || ns < least) ? ns : least;
    }
    return least;
}

bool wpk_until_holds(const struct wpk_search *search, const char *until)
{
    uint32_t ended = search->ok_count + search->failed_count;
    const char *number = strchr(until, '=');
    double wanted = number == NULL ? 0 : strtod(number + 1, NULL);
    uint64_t leader_ns[3];
    const struct wpk_best *leader = wpk_heat_leader(search, leader_ns);
    if (until[0] == '\0' || leader == NULL || leader_ns[0] == 0) {
        return false;
    }
    double ns = (double)leader_ns[0];
    if (strncmp(until, "speedup=", 8) == 0) {
        return vendor_ns(search) >= wanted * ns;
    }
    if (strncmp(until, "of_peak=", 8) == 0) {
        double peak = search->device.peak_flops_per_s * search->key.threads;
        return peak > 0 && search->flops / (ns * 1e-9) >= wanted * peak;
    }
    return ended >= CONVERGED_LEAST && leader->number < ended / 2;
}
