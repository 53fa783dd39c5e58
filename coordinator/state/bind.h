/* SPDX-License-Identifier: Apache-2.0 */
/* Binding of operators to searches (bind.c). */
#ifndef WPK_COORDINATOR_STATE_BIND_H
#define WPK_COORDINATOR_STATE_BIND_H

#include "coordinator/state/fair.h"
#include "coordinator/state/model.h"

#define WPK_RETURN_MS 30000 /* after a start, an operator waits for the device that it had */

/* Bind the job's next operators to searches, as far as there are devices for them. The first few of
 * these are worked on: they have claims. */
void wpk_bind_job(struct wpk_coordinator *c, struct wpk_job_entry *job);
/* True if this operator has to wait, and `out` says why, as in "no worker with kind cpu and 8
 * cores": no worker can do its work, or none is given it. Else `out` is "". */
bool wpk_bind_blocked(const struct wpk_coordinator *coordinator, const struct wpk_job_entry *job,
                      uint32_t op, char out[WPK_REASON_MAX]);

/* The back ends of an operator's search: the first, or those that are pinned as the gene `by`, as
 * far as a worker that may be given the job's work builds by them; of "any", as far as all these
 * workers do. A search keeps those that it began with, with the versions of their compilers: they
 * are part of its key. */

/* True if a worker that may be given the job's work builds by all back ends of the text. */
bool wpk_offer_stands(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                      const char *class_text);

#endif
