/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: an owner's interest in a search, with a rank. An owner queue holds the claims of one
 * owner in one work queue; those that there is work for are sorted by rank (claim.c). */
#ifndef WPK_COORDINATOR_STATE_CLAIM_H
#define WPK_COORDINATOR_STATE_CLAIM_H

#include "coordinator/state/fair.h"
#include "coordinator/state/model.h"

#include <stdbool.h>
#include <stdint.h>

/* Give the operator its claims, one in the work queue of each stage: it is worked on now. */
void wpk_claim_add(struct wpk_coordinator *c, struct wpk_job_op_state *op);
/* Take the operator's claims, if it has any: it is not worked on any more. */
void wpk_claim_drop(struct wpk_coordinator *c, struct wpk_job_op_state *op);
/* Update the claims of work queues that got their first available worker in this step, or lost the
 * last one. */
void wpk_claim_served(struct wpk_coordinator *c);
/* True if `a` ranks before `b`: by priority, age of the job, position and search. */
bool wpk_claim_before(const struct wpk_claim *a, const struct wpk_claim *b);

/* Readiness of a search: the stages of its work that a worker can be given now. */

/* Find the stages that the search has work for now, and set them in its claims. */
void wpk_ready_update(struct wpk_coordinator *c, struct wpk_search *search);
/* True if the search goes on, and a connected worker may be given what it has to run: now or, while
 * it waits for its anchor, later. */
bool wpk_ready_will_run(const struct wpk_search *search);
/* True if the same holds for its asks, which are not run once its time is over. */
bool wpk_ready_will_run_asks(const struct wpk_search *search, uint64_t now_ns);
/* Number of the search's work items that wait for a worker. */
uint32_t wpk_ready_depth(const struct wpk_search *search);

/* Dispatch: polls that wait are given work (dispatch.c). */

/* Give work to waiting polls of the marked work queues. Answer the poll of this step if it does not
 * want to wait any longer. */
void wpk_dispatch(struct wpk_coordinator *c);

/* A worker's poll: its answer, and the worker's timer. */

/* The time at which the worker is lost if it stays silent. */
uint64_t wpk_poll_lost_ns(const struct wpk_worker *worker);
/* Set the worker's timer, unless it is due earlier, to its poll's deadline or its loss. */
void wpk_poll_set_timer(struct wpk_coordinator *c, struct wpk_worker *worker);
/* Answer the worker's poll, which ends with it; wpk_poll_answer_empty(): without work. */
void wpk_poll_answer(struct wpk_coordinator *c, struct wpk_worker *worker,
                     const struct wpk_message *message);
void wpk_poll_answer_empty(struct wpk_coordinator *c, struct wpk_worker *worker);

/* Binding of operators to searches (bind.c). */

#define WPK_RETURN_MS 30000 /* after a start, an operator waits for the device that it had */

/* Bind the job's next operators to searches, as far as there are devices for them. The first few of
 * these are worked on: they have claims. */
void wpk_bind_job(struct wpk_coordinator *c, struct wpk_job_entry *job);
/* How many of the job's operators that have not ended are worked on at a time. */
uint32_t wpk_bind_worked_max(const struct wpk_coordinator *c, const struct wpk_job_entry *job);
/* True if this operator has to wait, and `out` says why, as in "no worker with kind cpu and 8
 * cores": no worker can do its work, or none is given it. Else `out` is "". */
bool wpk_bind_blocked(const struct wpk_coordinator *coordinator, const struct wpk_job_entry *job,
                      uint32_t op, char out[WPK_REASON_MAX]);

/* The back ends of an operator's search: the first, or those that are pinned as the gene `by`, as
 * far as a worker that may be given the job's work builds by them; of "any", as far as all these
 * workers do. A search keeps those that it began with, with the versions of their compilers: they
 * are part of its key. */

/* True if a worker that may be given the job's work builds by all back ends of the text. */
bool wpk_offer_stands(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                      const char *class_text);

#endif
