/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and their operators. */
#ifndef WPK_COORDINATOR_STATE_JOB_H
#define WPK_COORDINATOR_STATE_JOB_H

#include "coordinator/state/model.h"

/* Handlers of events. */
void wpk_job_submit(struct wpk_coordinator *c);
void wpk_job_restore(struct wpk_coordinator *c);
void wpk_job_cancel(struct wpk_coordinator *c);
void wpk_job_pause(struct wpk_coordinator *c);
void wpk_job_resume(struct wpk_coordinator *c);

/* Bind the operator to the search, which it joins when the search is settled; unbind it. */
void wpk_job_op_enter(struct wpk_coordinator *c, struct wpk_job_op_state *op,
                      struct wpk_search *search);
void wpk_job_op_leave(struct wpk_coordinator *c, struct wpk_job_op_state *op);
/* Set the operator's phase and reason, and store them. A phase that ends it drops its claims. */
void wpk_job_op_set(struct wpk_coordinator *c, struct wpk_job_op_state *op, enum wpk_phase phase,
                    const char *reason);
/* The job got its first lease: it is running. */
void wpk_job_started(struct wpk_coordinator *c, struct wpk_job_entry *job);
/* Mark the jobs with an operator that waits for a device of this worker class; NULL: of any one. */
void wpk_job_mark_unbound(struct wpk_coordinator *c, const struct wpk_worker_class *worker_class);
/* End the job if all its operators have ended. */
void wpk_job_end_if_over(struct wpk_coordinator *c, struct wpk_job_entry *job);
/* Free the jobs whose end is durable. */
void wpk_job_release(struct wpk_coordinator *c);
/* The job's last state is durable: if the job has ended, the next step frees it. */
void wpk_job_stored(struct wpk_coordinator *coordinator, uint64_t number);
/* True if the job is paused, and its owner, who may resume it, is not the owner of `wanted`. */
bool wpk_job_waits_for_another(const struct wpk_job_entry *job, const struct wpk_job_entry *wanted);
/* A job that has not ended, does not wait for another owner, and searches the same as this one: the
 * same operators for the same device, with the same name, pins, strategy and budget; NULL: none.
 * Owners and seeds may differ; jobs with labels are never the same. */
const struct wpk_job_entry *wpk_job_find_same(const struct wpk_coordinator *coordinator,
                                              const struct wpk_job_entry *job);
/* Free what a job entry owns, and the entry. */
void wpk_job_entry_free(struct wpk_job_entry *job);

#endif
