/* SPDX-License-Identifier: Apache-2.0 */
/* Operators by name: {"type": "conv2d", …} becomes equations, and those become a program.
 *
 * Nothing downstream knows the names. The fields of each type are in docs/job-file.md and in
 * job.schema.json; unknown and missing ones are failures that name the field. */
#ifndef WPK_OP_SHORTHAND_H
#define WPK_OP_SHORTHAND_H

#include "op/program.h"

/* Expand a JSON object.
 *
 *   owns    caller calls wpk_program_fini; `out` is empty after a failure
 *   errors  WPK_EPARSE, WPK_EINVAL, WPK_ERANGE with field, and line and column in `json`;
 *           WPK_ENOMEM, WPK_ENOSPC
 */
WPK_MUST_CHECK wpk_err wpk_shorthand_expand(const char *json, struct wpk_program *out,
                                            struct wpk_diag *diag);

#endif
