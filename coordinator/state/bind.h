/* SPDX-License-Identifier: Apache-2.0 */
/* Which search an operator has (bind.c). */
#ifndef WPK_COORDINATOR_STATE_BIND_H
#define WPK_COORDINATOR_STATE_BIND_H

#include "coordinator/state/text.h"

struct wpk_coordinator;
struct wpk_worker_class;
struct wpk_job_entry;
struct wpk_job_op_state;

#define WPK_RETURN_MS 30000 /* after a start: an operator waits for the device it had */

/* Bind the job's next operators, as far as there are devices for them, and work on the first. */
void wpk_bind_job(struct wpk_coordinator *c, struct wpk_job_entry *job);
/* Why no worker is there for this operator, in words: "no worker with kind cpu and 8 cores". False
 * when there is one, or the operator has ended; then `out` is "". */
bool wpk_bind_blocked(const struct wpk_coordinator *coordinator, const struct wpk_job_entry *job,
                      uint32_t op, char out[WPK_REASON_MAX]);

#endif
