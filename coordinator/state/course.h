/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a search: how long it goes on, and what phase it is in. */
#ifndef WPK_COORDINATOR_STATE_COURSE_H
#define WPK_COORDINATOR_STATE_COURSE_H

#include "coordinator/state/phase.h"
#include "coordinator/state/text.h"

struct wpk_coordinator;
struct wpk_job_entry;
struct wpk_search;

/* Go on to the next phase, if this one is over, and note what there is to do. */
void wpk_search_advance(struct wpk_coordinator *c, struct wpk_search *search);
/* Answer those who wait with the last result, and its plain kernel if there is one now. */
void wpk_search_answer_again(struct wpk_coordinator *c, struct wpk_search *search);
/* The budget is the largest of the jobs that wait for it. */
void wpk_search_update_budget(struct wpk_search *search);
/* What a finished search holds is enough for the job. */
bool wpk_search_covers(const struct wpk_search *search, const struct wpk_job_entry *job);
/* Every operator that waits for this search. */
void wpk_search_set_phase(struct wpk_coordinator *c, struct wpk_search *search,
                          enum wpk_phase phase, const char *reason);
/* The search has its result, DONE or FAILED: for those whose budget it is of. For others it goes
 * on. */
void wpk_search_conclude(struct wpk_coordinator *c, struct wpk_search *search, enum wpk_phase phase,
                         const char *reason);

#endif
