/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: which worker has which work item. Leases are in memory only. They keep two workers from
 * doing the same work, and decide nothing: the first result for a work item wins, whichever worker
 * sends it. A lease ends with its result; or when its worker gives it back, does not name it in a
 * poll, has named it as running for too long, is lost, or is put in quarantine. */
#ifndef WPK_COORDINATOR_STATE_LEASE_H
#define WPK_COORDINATOR_STATE_LEASE_H

#include "schema/message.h"

struct wpk_flow;
struct wpk_coordinator;
struct wpk_search;
struct wpk_worker;

#define WPK_LEASES_MAX 64 /* of one worker */
/* A lease that its worker has named as running for so long has expired. A worker ends a run after
 * 30 s; the reference may take many times that. */
#define WPK_RUN_LIMIT_MS 1200000
#define WPK_FINAL_TURN_MS 30000 /* a final has so much longer for each turn of a contender */

struct wpk_lease {
    uint64_t number;
    struct wpk_worker *worker;
    struct wpk_search *search; /* it stays in the state while it has leases */
    wpk_work_id work;
    enum wpk_work_stage stage;
    uint64_t estimate_ns;   /* of its device time */
    uint64_t charged_ns;    /* that by the owner's weight: in the flow's virtual time */
    struct wpk_flow *flow;  /* that pays; NULL: the search had no claim */
    uint64_t named;         /* the step in which its worker named it last */
    uint64_t artifact;      /* wpk_table_hash() of what its worker uploads for it; 0: nothing yet */
    struct wpk_lease *next; /* of the worker's leases, by number */
    struct wpk_lease *prev;
};

/* Lease an open work item to the worker, and charge `flow`; NULL: charge none. The coordinator owns
 * the lease. */
struct wpk_lease *wpk_lease_take(struct wpk_coordinator *c, struct wpk_search *search,
                                 wpk_work_id work, struct wpk_worker *worker,
                                 struct wpk_flow *flow);
/* End the lease, which took so much device time. The work item is open again. */
void wpk_lease_end(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns);
/* End the lease without blame: its attempt does not count, and no device time is charged. */
void wpk_lease_return(struct wpk_coordinator *c, struct wpk_lease *lease);

#endif
