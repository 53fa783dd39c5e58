/* SPDX-License-Identifier: Apache-2.0 */
/* Submission: a job file becomes a job entry, whose operators have programs and fingerprints. */
#ifndef WPK_COORDINATOR_STATE_SUBMISSION_H
#define WPK_COORDINATOR_STATE_SUBMISSION_H

#include "coordinator/state/state.h"
#include "ir/canonical/fingerprint.h"

struct wpk_job;

/* Decode a job file.
 *   owns    caller calls wpk_job_entry_free, or hands the entry to an event
 *   errors  what wpk_job_decode and wpk_job_op_program say, with field, line and column;
 *           WPK_ENOENT no such strategy
 */
WPK_MUST_CHECK wpk_err wpk_submission_decode(const char *text, size_t size,
                                             struct wpk_job_entry **out, struct wpk_diag *diag);

/* Make the entry of a job that is decoded.
 *   owns    as above
 *   errors  as above, but for those of wpk_job_decode */
WPK_MUST_CHECK wpk_err wpk_submission_make(const struct wpk_job *job, struct wpk_job_entry **out,
                                           struct wpk_diag *diag);

/* The extents of an operator in whole form, as in struct wpk_fingerprint; "" where the operator is
 * not understood. */
void wpk_submission_extents(const char *op, char out[WPK_EXTENTS_SIZE]);

#endif
