/* SPDX-License-Identifier: Apache-2.0 */
/* The types of nodes: the rule that gives operands of different types a common type.
 *
 *   - an integer literal takes the other operand's type; so does a real literal if that type is
 *     floating; a real literal and an integer operand both become f32
 *   - two literals: i64 for two integers, else f32
 *   - a floating and an integer type: the floating type; two integer or two floating types: the
 *     wider; bool is the narrowest of all; f16 with bf16 is f32, i8 with u8 is i32
 *   - + - * / % pow are never computed in a narrow type: i8, u8 and bool become i32, f16 and bf16
 *     become f32; min, max and comparisons keep the common type
 *   - functions such as exp need a floating type: integers, f16 and bf16 become f32; isnan and
 *     isinf of it are bool */
#ifndef WPK_IR_NODE_H
#define WPK_IR_NODE_H

#include "ir/program.h"

/* The type in which values of `dtype` are computed, and in which a reduction over them accumulates
 * by default: itself, or i32 or f32 for a narrow type. */
enum wpk_dtype wpk_dtype_wide(enum wpk_dtype dtype);

/* The value of `dtype` nearest to `value`, ties to even; integers saturate. */
double wpk_dtype_round(enum wpk_dtype dtype, double value);

/* Smallest and largest value of an integer type or bool. */
void wpk_dtype_integer_range(enum wpk_dtype dtype, int64_t *low, int64_t *high);

/* The greatest common divisor, >= 0, and the least common multiple of sizes, at most
 * WPK_ELEMENTS_MAX. */
int64_t wpk_gcd(int64_t a, int64_t b);
int64_t wpk_lcm(int64_t a, int64_t b);

/* True of floor, ceil, round and trunc, which leave an integer type as it is. */
bool wpk_unary_makes_whole(int op);

/* True if the function of a number is a truth: isnan, isinf. */
bool wpk_unary_asks(enum wpk_unary op);

bool wpk_node_is_literal(const struct wpk_program *program, int node);

/* The number that a literal is. */
double wpk_node_number(const struct wpk_node *literal);

/* Make an operation or a cast again, of other operands; returns a node id, or -1 as in
 * ir/program.h. Operands that a node has not are -1.   shape  arg [3] */
int wpk_node_remake(struct wpk_program *program, const struct wpk_node *old, const int *arg);

/* Append a node without folding; returns its id, or -1 as in ir/program.h. */
int wpk_node_append(struct wpk_program *program, const struct wpk_node *node);

#endif
