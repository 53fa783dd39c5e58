/* SPDX-License-Identifier: Apache-2.0 */
/* Expanding a program into primitive operations: a back end prints those, and decides nothing.
 *
 * Gone are rsqrt, tanh, erf, sigmoid, casts that round to integers or make bools, and functions of
 * infinities.
 * What remains, besides what op/program.h says of it:
 *   - a node that is not `strict` has finite operands and a finite value; + and * may also pass a
 *     NaN on. A node that is strict is computed as IEEE 754 says, of infinities and NaN, too.
 *   - strict max(a, b) is a > b ? a : b, strict min(a, b) is a < b ? a : b, so that a NaN in `a`
 *     gives `b`; a strict inf - inf makes a NaN, in a narrow type, too
 *   - negation, abs, sqrt, floor, ceil, round and trunc pass infinities and NaN on
 *   - exp, log, sin, cos and pow have finite operands; a strict exp, which is of f32, is 0 of -inf
 *     and of NaN. exp is 0 where its value would not be a normal number, and the largest number,
 *     about, or infinite where its value would be larger.
 *   - a cast from a floating type to an integer is from f32 or f64, and has an operand that round,
 *     trunc, floor or ceil made whole; it saturates, and makes anything of NaN. A cast between
 *     floating types has a finite operand.
 *   - both arms of a select may be evaluated, and the arm that is not taken may be anything
 *   - a load has a value for outside exactly where one of its indices may leave the tensor
 *   - a reduction, its terms and its output have one type; it starts from `identity`, and its terms
 *     may join in any order. If it is strict, they join as strict nodes do.
 *   - inputs, constants and outputs are u8 where they were bool
 *   - nodes are shared: their number is bounded, but the size of the expressions as trees is not */
#ifndef WPK_OP_EXPAND_H
#define WPK_OP_EXPAND_H

#include "op/program.h"

/* A number whose exp is 0: for back ends whose exp takes finite operands alone. */
#define WPK_EXP_LEAST_F32 (-128.0)

#ifdef __cplusplus
extern "C" {
#endif

/* Fill `out` with the program in primitive operations. Ids, names and axes of tensors and stages
 * stay, but a sum marked in `sums` becomes an expression: its terms are added up in their order.
 *
 *   shape   sums [stage_count]
 *   owns    caller calls wpk_program_fini
 *   errors  WPK_ENOMEM; WPK_ENOSPC more than WPK_EXPANDED_NODES_MAX nodes
 */
wpk_err wpk_program_expand(const struct wpk_program *program, const bool *sums,
                           struct wpk_program *out);

/* True if some node or reduction of an expanded program is strict. */
bool wpk_program_is_strict(const struct wpk_program *program);

#ifdef __cplusplus
}
#endif

#endif
