/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator: a state machine that decides, and does nothing itself.
 *
 *      event ──▶ step(state, event) ──▶ effects ──▶ performed by service.c, or by a simulator
 *        ▲                                 │
 *        └──── what an effect found out ◀──┘     (opened, asked, kernel_put)
 *
 * It reads no clock and draws no random number: both come with the event. Effects are performed in
 * their order; what leaves the process (reply, respond) is held back until the batch's other
 * effects are durable. What answers an effect may come many steps later, when its search is gone:
 * then it is freed and nothing else. Pointers in an effect reach into the state and into the event,
 * and are good until the next step; what its records, work items and texts point to lies in the
 * effects' arena, or came with the event. */
#ifndef WPK_COORDINATOR_STATE_COORDINATOR_H
#define WPK_COORDINATOR_STATE_COORDINATOR_H

#include "coordinator/state/bind.h"
#include "coordinator/state/effect.h"
#include "coordinator/state/event.h"
#include "coordinator/state/job.h"
#include "coordinator/state/opened.h"
#include "coordinator/state/ready.h"
#include "coordinator/state/search.h"
#include "coordinator/state/worker.h"

struct wpk_coordinator;

/* `job_number_next`: of the next job; the store knows. */
wpk_err wpk_coordinator_new(uint64_t job_number_next, struct wpk_coordinator **out);
void wpk_coordinator_free(struct wpk_coordinator *coordinator);

/* Decide. Clears `out` and fills it. Cannot fail: what is wrong with an event becomes an answer. */
void wpk_coordinator_step(struct wpk_coordinator *coordinator, const struct wpk_event *event,
                          struct wpk_effects *out);
/* Its store cannot be written: it knows no worker, and is there to be looked at until another one
 * is made. */
void wpk_coordinator_halt(struct wpk_coordinator *coordinator);

/* ---- looking; what is returned is good until the next step */

const struct wpk_job_entry *wpk_coordinator_job(const struct wpk_coordinator *coordinator,
                                                const char *id);
uint32_t wpk_coordinator_job_count(const struct wpk_coordinator *coordinator);
uint32_t wpk_coordinator_worker_count(const struct wpk_coordinator *coordinator);
const struct wpk_worker *wpk_coordinator_worker(const struct wpk_coordinator *coordinator,
                                                uint32_t index);
const struct wpk_worker *wpk_coordinator_find_worker(const struct wpk_coordinator *coordinator,
                                                     const char *name);
/* NULL when there is no such session. */
const struct wpk_worker *wpk_coordinator_find_session(const struct wpk_coordinator *coordinator,
                                                      uint64_t session);
/* For gauges: it looks at every job and every worker. */
struct wpk_coordinator_counts {
    uint32_t jobs[WPK_JOB_STATE_COUNT];
    uint32_t workers_idle;
    uint32_t workers_busy;
    uint32_t workers_draining;
    uint32_t workers_quarantined;
    uint32_t workers_outliers; /* of all these */
    uint32_t leases;
    uint32_t searches;
};
void wpk_coordinator_count(const struct wpk_coordinator *coordinator,
                           struct wpk_coordinator_counts *out);
uint32_t wpk_coordinator_search_count(const struct wpk_coordinator *coordinator);
const struct wpk_search *wpk_coordinator_search(const struct wpk_coordinator *coordinator,
                                                uint32_t index);

#endif
