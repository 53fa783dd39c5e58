/* SPDX-License-Identifier: Apache-2.0 */
/* Submission: a job file becomes a job entry, whose operators have programs and fingerprints. */
#ifndef WPK_COORDINATOR_STATE_SUBMISSION_H
#define WPK_COORDINATOR_STATE_SUBMISSION_H

#include "coordinator/state/model.h"
#include "ir/canonical/canonical.h"

/* Decode a job file.
 *   owns    caller calls wpk_job_entry_free, or hands the entry to an event
 *   errors  what wpk_job_decode and wpk_job_op_program say, with field, line and column;
 *           WPK_ENOENT no such strategy
 */
wpk_err wpk_submission_decode(const char *text, size_t size, struct wpk_job_entry **out,
                              struct wpk_diag *diag);

/* Make the entry of a job that is decoded.
 *   owns    as above
 *   errors  as above, but for those of wpk_job_decode */
wpk_err wpk_submission_make(const struct wpk_job *job, struct wpk_job_entry **out,
                            struct wpk_diag *diag);

/* The fingerprint of an operator in whole form; empty where the operator is not understood. */
void wpk_submission_fingerprint(const char *op, struct wpk_fingerprint *out);

/* The identity of an operator: its canonical form, which is stored, searched and served, and the
 * binding of the canonical names to the job's names. */

/* `= {0}` is valid to fini. */
struct wpk_op_identity {
    struct wpk_program program; /* canonical */
    char *op;                   /* owned; the program in whole form */
    char *binding;              /* owned; JSON, the Binding of openapi.yaml */
    struct wpk_fingerprint fingerprint;
    double flops; /* of one call */
    double bytes; /* of its inputs, constants and outputs */
};

/* Find the identity of a program.
 *   owns    caller calls wpk_op_identity_fini
 *   errors  WPK_ENOMEM; WPK_EINVAL, WPK_ERANGE the operator has no output, or is too large, with
 *           the reason in `diag` */
wpk_err wpk_op_identity_of(const struct wpk_program *asked, struct wpk_op_identity *out,
                           struct wpk_diag *diag);
void wpk_op_identity_fini(struct wpk_op_identity *identity);

#endif
