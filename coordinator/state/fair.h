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

#include "coordinator/state/model.h"

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
/* Charge a new lease's estimate to wpk_fair_payer() of `lease->flow`, which takes its place; where
 * that is NULL, nobody is charged. */
void wpk_fair_charge(struct wpk_coordinator *c, struct wpk_lease *lease);
/* The lease is over: take the estimate back, and charge `device_ns` in equal parts to the owners
 * with a claim in its search. Where there is none, the lease's own flow is charged. */
void wpk_fair_settle(struct wpk_coordinator *c, struct wpk_lease *lease, uint64_t device_ns);

/* Owners of jobs: the weight and quota of each, and what each was charged. */

/* The owner, made if need be; NULL when there are too many. */
struct wpk_owner *wpk_owner_get(struct wpk_coordinator *c, const char *name);
/* Set the weight and quota of an owner; of name "": of all owners that are not named. */
void wpk_owner_set(struct wpk_coordinator *c);
/* Set what the owner was charged before this start. */
void wpk_owner_restore(struct wpk_coordinator *c);
/* Add device time to what the owner was charged, and mark the owner to be stored. */
void wpk_owner_charge(struct wpk_coordinator *c, struct wpk_owner *owner, uint64_t device_ns);
/* Store the owners that are marked. */
void wpk_owner_store(struct wpk_coordinator *c);

/* Flows: what an owner of jobs was charged in a timing class. */

/* The owner's flow in the timing class, made if need be. It lives as long as the timing class. */
struct wpk_flow *wpk_flow_get(struct wpk_timing_class *timing, struct wpk_owner *owner);
/* Free all flows of the timing class. */
void wpk_flow_forget(struct wpk_timing_class *timing);

/* Timing classes: within one, times are comparable and device time is shared (fair.h). */

/* Print a timing class's text. */
void wpk_timing_class_text(const char *device_class, const struct wpk_hello *hello,
                           char out[WPK_TIMING_CLASS_TEXT_MAX]);
/* A search may use more back ends than the first one. They are added to the text of its timing
 * class, behind the first provider, as a list of search/back_end.h:
 * "halide-cpu+c/gcc-12.2.0;onednn". Print the text with `back_ends` added ("+c/gcc-12.2.0"; "":
 * none), or without those that it has. */
void wpk_timing_class_add(const char *text, const char *back_ends,
                          char out[WPK_TIMING_CLASS_TEXT_MAX]);
void wpk_timing_class_strip(const char *text, char out[WPK_TIMING_CLASS_TEXT_MAX]);
/* The text's last line, which begins with the list of back ends. */
const char *wpk_timing_class_back_ends(const char *text);

/* The timing class with this text, made if need be. The use count grows by one. */
struct wpk_timing_class *wpk_timing_class_use(struct wpk_coordinator *c, const char *text);
/* End one use. The timing class is freed with its last one. */
void wpk_timing_class_release(struct wpk_coordinator *c, struct wpk_timing_class *timing);
void wpk_timing_class_free(struct wpk_timing_class *timing);

#endif
