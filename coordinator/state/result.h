/* SPDX-License-Identifier: Apache-2.0 */
/* What workers bring (result.c). */
#ifndef WPK_COORDINATOR_STATE_RESULT_H
#define WPK_COORDINATOR_STATE_RESULT_H

#include "schema/message.h"

struct wpk_coordinator;
struct wpk_search;
struct wpk_worker;

void wpk_result_message(struct wpk_coordinator *c, struct wpk_worker *worker);
/* It has had its attempts. `why`: the last one came to nothing; NULL: its worker was lost. */
void wpk_result_abandon(struct wpk_coordinator *c, struct wpk_search *search, wpk_work_id work,
                        const char *why);

#endif
