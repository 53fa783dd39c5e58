/* SPDX-License-Identifier: Apache-2.0 */
/* How a job's total budget (budget.total) is shared out among its operators: a few candidates to
 * each at first, then some at a time to the operator whose next candidates are expected to save the
 * most. Allotments are not stored: after a start each is at least what the search has asked
 * for. Up to 64 operators of such a job are
 * worked on at once. */
#ifndef WPK_COORDINATOR_STATE_SHARE_H
#define WPK_COORDINATOR_STATE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct wpk_coordinator;
struct wpk_job_entry;
struct wpk_job_op_state;

/* Allot the first candidates to each operator of a job. */
void wpk_share_begin(struct wpk_job_entry *job);
/* The candidates that the operator has to be tried with, as far as is known now. */
uint32_t wpk_share_budget(const struct wpk_job_op_state *op);
/* True if no more is going to be allotted to the operator. */
bool wpk_share_is_whole(const struct wpk_job_op_state *op);
/* Allot what is to be allotted now, and mark the searches that it is for. */
void wpk_share_out(struct wpk_coordinator *c, struct wpk_job_entry *job);

#endif
