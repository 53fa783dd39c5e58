/* SPDX-License-Identifier: Apache-2.0 */
/* Device time, shared fairly between owners (start-time fair queueing), class by class: where times
 * are comparable. The class is that of the device whose time it is: what a builder of another class
 * takes is shared among those whom it builds for.
 *
 * An owner's virtual time in a timing class grows by the device time of his work, divided by his
 * weight; of those there is work for, the one with the smallest virtual time is next. What a lease
 * will take is not known when it is given: an estimate is charged, and corrected when its result is
 * there. Who comes with work after he had none starts from where those are whom he will compete
 * with: nobody saves up, and nobody pays for what others took of devices that he could not use.
 *
 * So, while two owners have work for the same devices: whoever is served is not ahead of the other.
 * Between any two moments one is charged more than the other by no more than a lease of each, and
 * what the leases out at those moments took beyond their estimates. */
#ifndef WPK_COORDINATOR_STATE_FAIR_H
#define WPK_COORDINATOR_STATE_FAIR_H

#include "coordinator/state/flow.h"

struct wpk_coordinator;
struct wpk_worker_class;
struct wpk_lease;
struct wpk_work_queue;
struct wpk_search;

#define WPK_ESTIMATE_NS UINT64_C(500000000) /* of work that nothing is known of */

/* A new one, with its links: it is where those are whom it will serve, or who will serve it. */
void wpk_fair_begin_class(struct wpk_worker_class *worker_class);
void wpk_fair_begin_queue(struct wpk_work_queue *queue);
/* Whose virtual time grows when the worker class works for the flow's owner: the flow itself, but
 * for a builder of another class. */
struct wpk_flow *wpk_fair_payer(const struct wpk_worker_class *worker_class, struct wpk_flow *flow);
/* A claim of the owner's in this search became ready, or one is not any more. */
void wpk_fair_ready(struct wpk_flow *flow, const struct wpk_search *search);
void wpk_fair_unready(struct wpk_flow *flow);
/* Charge a new lease's estimate to whom it is given for: `flow` of the lease is from now on the
 * one that pays. */
void wpk_fair_charge(struct wpk_coordinator *c, struct wpk_lease *lease);
/* The lease is over: the estimate is taken back, and `device_ns` charged in equal parts to the
 * owners for whom its search is worked on. */
void wpk_fair_settle(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns);

#endif
