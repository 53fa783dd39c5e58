/* SPDX-License-Identifier: Apache-2.0 */
/* What workers bring (result.c). */
#ifndef WPK_COORDINATOR_STATE_RESULT_H
#define WPK_COORDINATOR_STATE_RESULT_H

#include "schema/message.h"

struct wpk_coordinator;
struct wpk_search;
struct wpk_worker;

void wpk_result_message(struct wpk_coordinator *c, struct wpk_worker *worker);
/* May the worker bring the artifact of this message: for a lease to build that it has, and one for
 * each lease? If not, it is told why. */
bool wpk_result_takes_artifact(struct wpk_coordinator *c, struct wpk_worker *worker);

#endif
