/* SPDX-License-Identifier: Apache-2.0 */
/* The completion of a work item: its result counts, is stored and is told to the strategy. What
 * follows for the search's phase is settled at the end of the step. */
#ifndef WPK_COORDINATOR_STATE_COMPLETION_H
#define WPK_COORDINATOR_STATE_COMPLETION_H

#include "schema/message.h"

struct wpk_coordinator;
struct wpk_search;
struct wpk_worker;

#define WPK_COMPLETION_REASON_MAX 300 /* bytes of a worker's that are told on */

/* An open work item has ended with this record. */
void wpk_completion_take(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                         const struct wpk_record *record, const struct wpk_worker *worker);
/* It has had its attempts. `why`: the last one came to nothing; NULL: its worker was lost. */
void wpk_completion_abandon(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                            const char *why);

#endif
