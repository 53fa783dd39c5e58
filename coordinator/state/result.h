/* SPDX-License-Identifier: Apache-2.0 */
/* Results and artifacts that workers send (result.c). */
#ifndef WPK_COORDINATOR_STATE_RESULT_H
#define WPK_COORDINATOR_STATE_RESULT_H

#include "schema/message.h"

struct wpk_coordinator;
struct wpk_search;
struct wpk_worker;

/* Take the results of the event's message, and answer it. */
void wpk_result_message(struct wpk_coordinator *c, struct wpk_worker *worker);
/* True if the worker may upload the artifact of the event's message: it has a lease to build it,
 * and uploads one artifact for each lease. If not, the worker is told why. */
bool wpk_result_takes_artifact(struct wpk_coordinator *c, struct wpk_worker *worker);

#endif
