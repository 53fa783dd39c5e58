/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: who has which work item. They live in memory only. They save work, and decide
 * nothing: the first result for a work item wins, whoever brings it. A lease ends with its
 * result, when its worker does not name it any more or names it for too long as the one that it
 * runs, or when its worker is lost. */
#ifndef WPK_COORDINATOR_STATE_LEASE_H
#define WPK_COORDINATOR_STATE_LEASE_H

#include "schema/message.h"

struct wpk_flow;
struct wpk_coordinator;
struct wpk_search;
struct wpk_worker;

#define WPK_LEASES_MAX 64 /* of one worker */
/* A lease that its worker names as the one that runs, for so long, has expired: a run has 30 s in
 * its worker, and the reference may take many times that. A final has longer, for each turn. */
#define WPK_RUN_LIMIT_MS 1200000
#define WPK_FINAL_TURN_MS 30000

struct wpk_lease {
    uint64_t number;
    struct wpk_worker *worker;
    struct wpk_search *search; /* stays while it is leased from */
    wpk_work_id work;
    enum wpk_work_stage stage;
    uint64_t estimate_ns;        /* of its device time; by weight, as it was then, it is: */
    uint64_t charged_ns;         /* the part of the virtual time of: */
    struct wpk_flow *flow;       /* for whom it was given; NULL: nobody any more */
    uint64_t named;              /* the step in which its worker named it last */
    uint64_t artifact;      /* wpk_table_hash() of what its worker uploads for it; 0: nothing yet */
    struct wpk_lease *next; /* of the worker's, by number */
    struct wpk_lease *prev;
};

/* Lease an open work item for `flow`, which may be NULL. */
struct wpk_lease *wpk_lease_take(struct wpk_coordinator *c, struct wpk_search *search,
                                 wpk_work_id work, struct wpk_worker *worker,
                                 struct wpk_flow *flow);
/* The lease is over after so much device time; the work item is open again. */
void wpk_lease_end(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns);
/* Nobody is to blame: the attempt does not count. */
void wpk_lease_return(struct wpk_coordinator *c, struct wpk_lease *lease);

#endif
