/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of an operator: its canonical form, which is stored, searched and served, and the
 * binding of the canonical names to the job's names. */
#ifndef WPK_COORDINATOR_STATE_OP_IDENTITY_H
#define WPK_COORDINATOR_STATE_OP_IDENTITY_H

#include "common/buf.h"
#include "ir/canonical/canonical.h"
#include "ir/canonical/fingerprint.h"

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
WPK_MUST_CHECK wpk_err wpk_op_identity_of(const struct wpk_program *asked,
                                          struct wpk_op_identity *out, struct wpk_diag *diag);
void wpk_op_identity_fini(struct wpk_op_identity *identity);

#endif
