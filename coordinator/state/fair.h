/* SPDX-License-Identifier: Apache-2.0 */
/* Fair sharing of device time between owners (start-time fair queueing), in each timing class
 * separately. The time of a builder is shared in the builder's own timing class, among the owners
 * that it builds for.
 *
 * An owner's virtual time in a timing class grows by the device time of its work, divided by its
 * weight. Of the owners with work for a worker, the one with the smallest virtual time is served
 * next. The device time of a lease is not known when it is given out: an estimate is charged, which
 * its result corrects. An owner that becomes active starts at its queue's current virtual time, if
 * its own is smaller: an idle owner saves nothing up, and is not charged for what others used of
 * devices that it could not use.
 *
 * Promise: of two owners with work for the same worker, the one that is served is not ahead of the
 * other. Between two moments, while both have work, their charges by weight differ by at most one
 * lease of each, plus the errors in the estimates of the leases out at these two moments. */
#ifndef WPK_COORDINATOR_STATE_FAIR_H
#define WPK_COORDINATOR_STATE_FAIR_H

#include "coordinator/state/flow.h"

struct wpk_coordinator;
struct wpk_worker_class;
struct wpk_lease;
struct wpk_work_queue;
struct wpk_search;

#define WPK_ESTIMATE_NS UINT64_C(500000000) /* of a lease whose search has no results */

/* Set the virtual time of a new worker class that has its links: the timing class's, or the
 * smallest of its work queues' there if that is less. */
void wpk_fair_begin_class(struct wpk_worker_class *worker_class);
/* Set the virtual time of a new work queue that has its links: the largest of its worker classes'
 * in its timing class. */
void wpk_fair_begin_queue(struct wpk_work_queue *queue);
/* The flow that is charged when the worker class works for the owner of `flow`: `flow` itself, or,
 * for a builder of another timing class, the owner's flow there, made if need be. An inactive flow
 * is moved up to the worker class's virtual time. */
struct wpk_flow *wpk_fair_payer(const struct wpk_worker_class *worker_class, struct wpk_flow *flow);
/* Count one more backlogged claim of the flow, in this search. The first one makes the flow active:
 * it is moved up to its work queues' virtual time. */
void wpk_fair_ready(struct wpk_flow *flow, const struct wpk_search *search);
/* Count one backlogged claim less. */
void wpk_fair_unready(struct wpk_flow *flow);
/* Charge a new lease's estimate to wpk_fair_payer() of `lease->flow`, which takes its place; where
 * that is NULL, nobody is charged. */
void wpk_fair_charge(struct wpk_coordinator *c, struct wpk_lease *lease);
/* The lease is over: take the estimate back, and charge `device_ns` in equal parts to the owners
 * with a claim in its search. Where there is none, the lease's own flow is charged. */
void wpk_fair_settle(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns);

#endif
