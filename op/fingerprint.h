/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of a program: SHA-256 over its versioned canonical form. */
#ifndef WPK_OP_FINGERPRINT_H
#define WPK_OP_FINGERPRINT_H

#include "op/program.h"

#define WPK_FINGERPRINT_SIZE 65 /* 64 hexadecimal digits and a NUL */

struct wpk_fingerprint {
    char exact[WPK_FINGERPRINT_SIZE];
    char family[WPK_FINGERPRINT_SIZE]; /* extents erased, strides and dilations kept */
};

/* Canonical form: stages that no output needs are dropped; operands of commutative nodes and
 * reduction axes sorted by a key that does not depend on names; then tensors and axes renamed in
 * the order of first use. Two programs that differ only in names, in the order of `*` and `+`
 * operands or of reduction axes get the same fingerprint; layouts (padding, order) count.
 *
 *   shape   binding [program->tensor_count]: canonical number of each tensor, -1 if unused; may be
 *           NULL. It leads from a stored kernel's arguments back to the user's names.
 *   errors  WPK_ENOMEM
 */
wpk_err wpk_fingerprint(const struct wpk_program *program, struct wpk_fingerprint *out,
                        int *binding);

#endif
