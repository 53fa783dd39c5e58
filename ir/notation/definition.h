/* SPDX-License-Identifier: Apache-2.0 */
/* From an operator in a job to its program. Only this file combines notation, tensor types and
 * shorthands. */
#ifndef WPK_IR_NOTATION_DEFINITION_H
#define WPK_IR_NOTATION_DEFINITION_H

#include "ir/program.h"
#include "schema/job.h"

/* Make the program of operator number `op` of the job.
 *
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE, WPK_EUNSUPPORTED with field, line and column in
 *           the job's text; WPK_ENOMEM
 */
wpk_err wpk_job_op_program(const struct wpk_job *job, int op, struct wpk_program *out,
                           struct wpk_diag *diag);

/* Check that every operator of the job has a program.
 *   errors  as above */
wpk_err wpk_job_check(const struct wpk_job *job, struct wpk_diag *diag);

/* Operators by name: {"type": "conv2d", …} becomes equations, and these become a program.
 *
 * No later step knows the names. The fields of each type are in docs/job-file.md and in
 * job.schema.json; an unknown or missing field is a failure that names the field. */

/* Make the program of a JSON object.
 *
 *   owns    caller calls wpk_program_fini; `out` is empty after a failure
 *   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE with field, and line and column in `json`;
 *           WPK_ENOMEM, WPK_ENOSPC
 */
wpk_err wpk_shorthand_expand(const char *json, struct wpk_program *out, struct wpk_diag *diag);

#endif
