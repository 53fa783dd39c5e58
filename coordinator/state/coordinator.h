/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator: a state machine that decides, and does nothing itself.
 *
 *      event ──▶ step(state, event) ──▶ effects ──▶ performed by the executor, or by a test
 *        ▲                                 │
 *        └──── what an effect found out ◀──┘     (opened, asked, kernel_put)
 *
 * The coordinator reads no clock and draws no random number: both come with the event. The event
 * that answers an effect may come many steps later; if its search is gone then, the event is freed
 * and changes nothing. */
#ifndef WPK_COORDINATOR_STATE_COORDINATOR_H
#define WPK_COORDINATOR_STATE_COORDINATOR_H

#include "coordinator/state/claim.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/job.h"
#include "coordinator/state/search.h"
#include "coordinator/state/worker.h"

/* Make an empty state. `job_number_next`: number of the next job, as the store has it.
 *   owns    caller frees */
struct wpk_coordinator *wpk_coordinator_new(uint64_t job_number_next);
void wpk_coordinator_free(struct wpk_coordinator *coordinator);

/* Step the event: clear `out` and fill it with effects. Cannot fail: what is wrong with an event is
 * answered by an effect. */
void wpk_coordinator_step(struct wpk_coordinator *coordinator, const struct wpk_event *event,
                          struct wpk_effects *out);

/* ---- reading the state; what is returned is good until the next step, NULL: there is none */

/* A job that has not ended, or whose end is not durable. */
const struct wpk_job_entry *wpk_coordinator_job(const struct wpk_coordinator *coordinator,
                                                const char *id);
const struct wpk_worker *wpk_coordinator_find_session(const struct wpk_coordinator *coordinator,
                                                      uint64_t session);
/* Counts for gauges, of all jobs and workers. A worker has one of the first four states. */
struct wpk_coordinator_counts {
    uint32_t jobs[WPK_JOB_STATE_COUNT];
    uint32_t workers_idle;
    uint32_t workers_busy;
    uint32_t workers_draining;
    uint32_t workers_quarantined;
    uint32_t workers_outliers;  /* in any of these states */
    uint32_t workers_throttled; /* in any of these states */
    uint32_t workers_disturbed; /* in any of these states */
    uint32_t leases;
    uint32_t searches;
};
/* Look at every job and every worker. */
void wpk_coordinator_count(const struct wpk_coordinator *coordinator,
                           struct wpk_coordinator_counts *out);

#endif
