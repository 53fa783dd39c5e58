/* SPDX-License-Identifier: Apache-2.0 */
/* The back ends of an operator's search: the first, or those that are pinned as the gene `by`, as
 * far as a worker that may be given the job's work builds by them; of "any", as far as all these
 * workers do. A search keeps those that it began with, with the versions of their compilers: they
 * are part of its key. */
#ifndef WPK_COORDINATOR_STATE_OFFER_H
#define WPK_COORDINATOR_STATE_OFFER_H

#include "coordinator/state/timing_class.h"

struct wpk_coordinator;
struct wpk_job_entry;
struct wpk_job_op_state;

/* Copy the list that the operator's job pins, "" where it pins none. */
void wpk_offer_pinned(const struct wpk_job_op_state *op, char out[WPK_KEY_TEXT_MAX]);

/* Print the text of a timing class with the back ends of the operator's search added. Of a back end
 * in several versions it is that of the most workers. False: the job pins others than the first,
 * and no worker offers one of them. */
bool wpk_offer_add(const struct wpk_coordinator *c, const struct wpk_job_op_state *op,
                   const char *class_text, char out[WPK_TIMING_CLASS_TEXT_MAX]);

/* True if a worker that may be given the job's work builds by all back ends of the text. */
bool wpk_offer_stands(const struct wpk_coordinator *c, const struct wpk_job_entry *job,
                      const char *class_text);

#endif
