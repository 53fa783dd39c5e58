/* SPDX-License-Identifier: Apache-2.0 */
/* The normal form of index arithmetic, before anything is sorted.
 *
 * A sum of type i64 is multiplied out: sum(coefficient * term) + constant, where a term is an axis
 * or what is neither sum, product with a literal nor literal; each axis is in it once. A product of
 * several terms has their common literal in front. All else is built again as it stands. */
#ifndef WPK_OP_CANONICAL_NORMAL_H
#define WPK_OP_CANONICAL_NORMAL_H

#include "op/program.h"

/* Fill `out` with the normal form of a valid program; tensors, stages and axes keep their ids. A
 * load that cannot leave its tensor loses the value outside. Stages share no nodes.
 *
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOMEM; WPK_ENOSPC a limit
 */
wpk_err wpk_program_normal(const struct wpk_program *program, struct wpk_program *out);

#endif
