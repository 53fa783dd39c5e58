/* SPDX-License-Identifier: Apache-2.0 */
/* The normal form of index arithmetic, which is made before operands are ordered.
 *
 * A sum of type i64 is multiplied out: sum(coefficient * term) + constant. A term is an axis, or a
 * node that is neither a sum, a product with a literal, nor a literal; each axis occurs once. A
 * product of several terms begins with their common literal. All other nodes are copied. */
#ifndef WPK_IR_CANONICAL_NORMAL_H
#define WPK_IR_CANONICAL_NORMAL_H

#include "ir/program.h"

/* Fill `out` with the normal form of a valid program; tensors, stages and axes keep their ids. A
 * load that cannot leave its tensor loses the value outside. Stages share no nodes.
 *
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOMEM; WPK_ENOSPC a limit is reached
 */
wpk_err wpk_program_normal(const struct wpk_program *program, struct wpk_program *out);

#endif
