/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: which worker has which work item. Leases are in memory only. They keep two workers from
 * doing the same work, and decide nothing: the first result for a work item wins, whichever worker
 * sends it. A lease ends with its result; or when its worker gives it back, does not name it in a
 * poll, has named it as running for too long, is lost, or is put in quarantine. */
#ifndef WPK_COORDINATOR_STATE_LEASE_H
#define WPK_COORDINATOR_STATE_LEASE_H

#include "coordinator/state/model.h"
#include "schema/message.h"

#include <stdbool.h>
#include <stdint.h>

/* Lease an open work item to the worker, and charge `flow`; NULL: charge none. The coordinator owns
 * the lease. */
struct wpk_lease *wpk_lease_take(struct wpk_coordinator *c, struct wpk_search *search,
                                 wpk_work_id work, struct wpk_worker *worker,
                                 struct wpk_flow *flow);
/* End the lease, which took so much device time. The work item is open again. */
void wpk_lease_end(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns);
/* End the lease without blame: its attempt does not count, and no device time is charged. */
void wpk_lease_return(struct wpk_coordinator *c, struct wpk_lease *lease);

/* Completion of work items: the result counts, is stored and is told to the strategy. The search's
 * phase is settled at the end of the step. */

#define WPK_COMPLETION_REASON_MAX 300 /* bytes of a worker's reason that are kept */

/* End an open work item, not a final, with this record. `worker`: NULL if it was abandoned. */
void wpk_completion_take(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                         const struct wpk_record *record, const struct wpk_worker *worker);
/* End a work item that has had all its attempts. `why`: why the last one had no result; NULL: its
 * worker was lost. */
void wpk_completion_abandon(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                            const char *why);

/* Leases that a worker loses because it is gone, stuck, or not trusted any more. */

/* The worker's poll names this lease as running; 0: none. If it has done so for too long, all its
 * leases are taken back. */
void wpk_loss_watch(struct wpk_coordinator *c, struct wpk_worker *worker, uint64_t running);
/* Take all leases back. If the worker died, the lease that it was running, or else its oldest one,
 * counts as an attempt; the others do not. */
void wpk_loss_return_all(struct wpk_coordinator *c, struct wpk_worker *worker, bool died);

/* Results and artifacts that workers send (result.c). */

/* Take the results of the event's message, and answer it. */
void wpk_result_message(struct wpk_coordinator *c, struct wpk_worker *worker);
/* True if the worker may upload the artifact of the event's message: it has a lease to build it,
 * and uploads one artifact for each lease. If not, the worker is told why. */
bool wpk_result_takes_artifact(struct wpk_coordinator *c, struct wpk_worker *worker);

#endif
