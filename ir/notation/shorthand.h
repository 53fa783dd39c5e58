/* SPDX-License-Identifier: Apache-2.0 */
/* Operators by name: {"type": "conv2d", …} becomes equations, and these become a program.
 *
 * No later step knows the names. The fields of each type are in docs/job-file.md and in
 * job.schema.json; an unknown or missing field is a failure that names the field. */
#ifndef WPK_IR_NOTATION_SHORTHAND_H
#define WPK_IR_NOTATION_SHORTHAND_H

#include "ir/program.h"

/* Make the program of a JSON object.
 *
 *   owns    caller calls wpk_program_fini; `out` is empty after a failure
 *   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE with field, and line and column in `json`;
 *           WPK_ENOMEM, WPK_ENOSPC
 */
WPK_MUST_CHECK wpk_err wpk_shorthand_expand(const char *json, struct wpk_program *out,
                                            struct wpk_diag *diag);

#endif
