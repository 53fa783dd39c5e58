/* SPDX-License-Identifier: Apache-2.0 */
/* Demand: how many workers would have something to do now. It counts the work of live jobs that can
 * be leased at once, leased work included, so that it is the size of a fleet and not what a fleet
 * lacks. Jobs that no worker has ever served count, too. The number falls as work ends: a search
 * counts no more candidates than are left of its budget, or than its strategy lets be in flight. */
#ifndef WPK_COORDINATOR_STATE_DEMAND_H
#define WPK_COORDINATOR_STATE_DEMAND_H

#include "coordinator/state/model.h"

/* Work items that occupy one worker: what a worker with two cores, or one that only runs, holds at
 * a time (capacity_for() in worker/session/session.c). */
#define WPK_DEMAND_HELD 8

/* The work of all jobs that name the same device and labels. */
struct wpk_demand {
    const struct wpk_job_entry *job; /* the first of these jobs; borrowed until the next step */
    uint32_t item_count;             /* work items that share a worker with others */
    uint32_t alone_count;            /* finals, heats, verifications: each occupies a worker */
};

/* List the demand of all live jobs.
 *   shape   out [WPK_JOBS_LIVE_MAX]; returns how many; the items of one may be 0 */
uint32_t wpk_demand_list(const struct wpk_coordinator *c, uint64_t now_ns, struct wpk_demand *out);
/* The number of workers that this work occupies. */
uint32_t wpk_demand_workers(const struct wpk_demand *demand);
/* The device as its jobs name it: a device class, or a kind. */
const char *wpk_demand_device(const struct wpk_demand *demand);

#endif
