/* SPDX-License-Identifier: Apache-2.0 */
/* How long a search goes on: which candidate leads it, whether that is good enough, and how many
 * candidates an operator of a job with a total budget has.
 *
 * Heats: while a search goes on, its leaders are timed once more, in turns on one worker, as in a
 * final but in fewer rounds and without vendors. The fastest of many single times is likely to be a
 * lucky one. Progress shows the leader by the times of the last heat, and what ends a search early
 * or shares out a budget asks for it. A heat is held when the number of results has doubled.
 *
 * The strategy and the final are told nothing of it, and it is not stored: asks and contenders are
 * the same whenever a heat was held, and after a restart.
 *
 *   source  Karnin, Koren & Somekh, Almost optimal exploration in multi-armed bandits (successive
 *           halving), ICML 2013: 8 candidates in 7 rounds, then 4 in 15, those of the final */
#ifndef WPK_COORDINATOR_STATE_BUDGET_H
#define WPK_COORDINATOR_STATE_BUDGET_H

#include "coordinator/state/model.h"

#include <stdbool.h>
#include <stdint.h>

/* Open a heat if one is due; end one that was held, or whose contender is lost. */
void wpk_heat_update(struct wpk_coordinator *c, struct wpk_search *search);
/* True if a heat waits for a worker. */
bool wpk_heat_is_open(const struct wpk_search *search);
/* The best candidate, by heats where it took part in one; NULL: there is none.
 *   shape   ns: median, minimum, median absolute deviation */
const struct wpk_best *wpk_heat_leader(const struct wpk_search *search, uint64_t ns[3]);

/* When a search is good enough before its budget is spent. */

/* True if the condition of a job, as schema/job.h writes it, holds for what the search has found:
 *     speedup=S   its best candidate is S times as fast as the fastest vendor
 *     of_peak=P   it does the operator's operations at the share P of the device's peak
 *     converged   the later half of at least 48 trials brought no better one
 * "" never holds. */
bool wpk_until_holds(const struct wpk_search *search, const char *until);

/* How a job's total budget (budget.total) is shared out among its operators: a few candidates to
 * each at first, then some at a time to the operator whose next candidates are expected to save the
 * most. Allotments are not stored: after a start each is at least what the search has asked for.
 * Up to 64 operators of such a job are worked on at once. */

/* Allot the first candidates to each operator of a job. */
void wpk_share_begin(struct wpk_job_entry *job);
/* The candidates that the operator has to be tried with, as far as is known now. */
uint32_t wpk_share_budget(const struct wpk_job_op_state *op);
/* True if no more is going to be allotted to the operator. */
bool wpk_share_is_whole(const struct wpk_job_op_state *op);
/* Allot what is to be allotted now, and mark the searches that it is for. */
void wpk_share_out(struct wpk_coordinator *c, struct wpk_job_entry *job);

#endif
