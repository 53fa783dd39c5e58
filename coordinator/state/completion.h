/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of work items: the result counts, is stored and is told to the strategy. The search's
 * phase is settled at the end of the step. */
#ifndef WPK_COORDINATOR_STATE_COMPLETION_H
#define WPK_COORDINATOR_STATE_COMPLETION_H

#include "schema/message.h"

struct wpk_coordinator;
struct wpk_search;
struct wpk_worker;

#define WPK_COMPLETION_REASON_MAX 300 /* bytes of a worker's reason that are kept */

/* End an open work item, not a final, with this record. `worker`: NULL if it was abandoned. */
void wpk_completion_take(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                         const struct wpk_record *record, const struct wpk_worker *worker);
/* End a work item that has had all its attempts. `why`: why the last one had no result; NULL: its
 * worker was lost. */
void wpk_completion_abandon(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                            const char *why);

#endif
