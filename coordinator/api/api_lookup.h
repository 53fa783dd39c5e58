/* SPDX-License-Identifier: Apache-2.0 */
/* A lookup's match as an answer. For the files api_*.c only. */
#ifndef WPK_COORDINATOR_API_API_LOOKUP_H
#define WPK_COORDINATOR_API_API_LOOKUP_H

#include "coordinator/api/api_call.h"
#include "coordinator/index/lookup.h"
#include "schema/job.h"

/* Find and append a Match of schema/openapi.yaml, with its kernel if `whole`. A device of ""
 * becomes the only known one; false after answering that several are known. */
WPK_MUST_CHECK bool wpk_lookup_answer(struct wpk_call *call,
                                      const struct wpk_index_version *version,
                                      struct wpk_lookup *lookup, bool whole, struct wpk_buf *out);

/* Writing a lookup's match as a Match of schema/openapi.yaml. For the files api_*.c only. */

/* Append the match; with its kernel if `whole`. A hit has its own expectation: `expected` is not
 * read. */
void wpk_match_append(const struct wpk_match *match, const struct wpk_estimate *expected,
                      bool whole, struct wpk_buf *out);

/* Jobs for lookups without a match. Lookups for one device class and number of threads go into one
 * job, up to its limits. The same lookups get the same job while it lives, and until the end of the
 * day if it is done; later they get another one. For api_lookup.c only. */

/* Jobs that are not submitted yet. A zeroed struct is empty. */
struct wpk_tuning {
    struct wpk_tuning_job *first; /* owned */
};

void wpk_tuning_fini(struct wpk_tuning *tuning);

/* Add an operator; its name is made if it has none. Operators of equal names go into different
 * jobs. Room for the job's id is appended to the call's answer.
 *   owns  takes the operator */
void wpk_tuning_take(struct wpk_tuning *tuning, struct wpk_call *call,
                     const struct wpk_lookup *lookup, struct wpk_job_op *op);

/* Make the jobs' entries, which takes long, on any thread. False after answering with a problem. */
WPK_MUST_CHECK bool wpk_tuning_prepare(struct wpk_tuning *tuning, struct wpk_call *call);

/* On the loop: submit the jobs, and write their ids into the answer. False after answering with a
 * problem. */
WPK_MUST_CHECK bool wpk_tuning_submit(struct wpk_tuning *tuning, struct wpk_call *call);

#endif
