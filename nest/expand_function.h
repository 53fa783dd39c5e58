/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and casts in primitive operations. All return a node id, or -1 as in ir/program.h. */
#ifndef WPK_NEST_EXPAND_FUNCTION_H
#define WPK_NEST_EXPAND_FUNCTION_H

#include "ir/program.h"

/* A strict node: op(a, b) of two nodes of one type. */
int wpk_expand_strict(struct wpk_program *program, enum wpk_binary op, int a, int b);

/* The maximum or minimum of two floats, which is NaN if either is. */
int wpk_expand_choice(struct wpk_program *program, enum wpk_binary op, int a, int b);

/* A function of any value, as C's.   unit  strict: a negation is */
int wpk_expand_function(struct wpk_program *program, enum wpk_unary op, int a, bool strict);

/* A cast, which keeps infinities and NaN.   shape  may_be: of `a`, bits of enum wpk_may_be */
int wpk_expand_cast(struct wpk_program *program, enum wpk_dtype dtype, int a, int may_be);

#endif
