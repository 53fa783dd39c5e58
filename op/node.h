/* SPDX-License-Identifier: Apache-2.0 */
/* How nodes are typed: the rule by which operands of different types meet.
 *
 *   - an integer literal takes the other operand's type, a real one too if that is floating; a real
 *     one beside an integer makes both f32
 *   - two literals: i64 for two integers, else f32
 *   - a floating and an integer type: the floating one; two integer or two floating types: the
 *     wider; bool is the narrowest of all; f16 with bf16 is f32, i8 with u8 is i32
 *   - + - * / % pow are never computed in a narrow type: i8, u8 and bool become i32, f16 and bf16
 *     f32; min, max and comparisons keep the type both have
 *   - functions such as exp need a floating type: integers become f32, f16 and bf16 too */
#ifndef WPK_OP_NODE_H
#define WPK_OP_NODE_H

#include "op/program.h"

/* The type in which values of `dtype` are computed with: itself, or i32 or f32 when narrow. */
enum wpk_dtype wpk_dtype_wide(enum wpk_dtype dtype);

/* The type in which `a` and `b` meet; both are ids. */
enum wpk_dtype wpk_node_common_dtype(const struct wpk_program *program, enum wpk_binary op, int a,
                                     int b);

/* The type a reduction over `dtype` accumulates in unless told otherwise. */
enum wpk_dtype wpk_dtype_accumulator(enum wpk_dtype dtype);

/* The value of `dtype` nearest to `value`, ties to even; integers saturate. */
double wpk_dtype_round(enum wpk_dtype dtype, double value);

/* Smallest and largest value of an integer type or bool. */
void wpk_dtype_integer_range(enum wpk_dtype dtype, int64_t *low, int64_t *high);

bool wpk_node_is_literal(const struct wpk_program *program, int node);

/* Append a node as it stands, without folding.   errors  -1, sticky */
int wpk_node_append(struct wpk_program *program, const struct wpk_node *node);

#endif
