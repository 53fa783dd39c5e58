/* SPDX-License-Identifier: Apache-2.0 */
/* Expanding a program into primitive operations: a back end prints those, and decides nothing.
 *
 * Gone are rsqrt, tanh, erf, sigmoid, isnan, isinf and casts that round to integers or make bools.
 * The expanded program keeps the rules of ir/program.h and these:
 *   - a binary node or negation that is `strict` is computed as IEEE 754 says, of infinities and
 *     NaN, too (ir/infinite.h); others may be contracted and reordered, and compilers may take
 *     their values for finite
 *   - strict max(a, b) is a > b ? a : b, strict min(a, b) is a < b ? a : b: a NaN in `a` gives `b`,
 *     and one in `b` is kept. Where an operand is a literal it is `a`; a strict inf - inf makes a
 *     NaN, in a narrow type, too
 *   - functions are as C's of any value, infinities, NaN, zeros of both signs and subnormal numbers
 *     included; of f32, exp is 0 where its value would be below 2^-125.5, of f64 below 2^-1021.5
 *   - a cast from a floating type to an integer is from f32 or f64, and has an operand that round,
 *     trunc, floor or ceil made whole; it saturates, and makes anything of NaN. A cast between
 *     floating types has a finite operand.
 *   - both arms of a select may be evaluated, and the arm that is not taken may be anything
 *   - a load has a value for outside exactly where one of its indices may leave the tensor
 *   - a reduction, its terms and its output have one type; it starts from `identity`, and its terms
 *     may join in any order. If it is strict, they join as strict nodes do.
 *   - inputs, constants and outputs are u8 where they were bool
 *   - nodes are shared: their number is bounded, but the size of the expressions as trees is not */
#ifndef WPK_NEST_EXPAND_H
#define WPK_NEST_EXPAND_H

#include "ir/program.h"

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
