/* SPDX-License-Identifier: Apache-2.0 */
/* Indices that are data: X[I[i] % n, j] reads the row of X that the element I[i] names.
 *
 * The remainder by the axis's extent n makes a negative index count from the end, and keeps the
 * load inside its tensor whatever the data is. A value of I outside of -n ... n-1 is an error,
 * which the interpreter and libwpk find before they compute. A load with a value for outside has
 * no remainder, and no error. */
#ifndef WPK_IR_DATA_INDEX_H
#define WPK_IR_DATA_INDEX_H

#include "ir/program.h"
#include "schema/draw.h"
#include "schema/index_check.h"

/* True if the index contains a load. */
bool wpk_index_is_data(const struct wpk_program *program, int index);
/* True if an index of the load is data. */
bool wpk_load_gathers(const struct wpk_program *program, const struct wpk_node *load);
/* True if a load of the stage, or of the program, gathers. */
bool wpk_stage_gathers(const struct wpk_program *program, const struct wpk_stage *stage);
bool wpk_program_gathers(const struct wpk_program *program);
/* True if the tensor is read at an index that is data, or has such indices. */
bool wpk_tensor_gathers(const struct wpk_program *program, int tensor);

#define WPK_INDEX_BOUNDS_MAX 16 /* of one tensor: more are not checked */

/* Find the bounds of a tensor's elements that are indices, and return how many.
 *   shape   out [WPK_INDEX_BOUNDS_MAX] */
int wpk_index_bounds(const struct wpk_program *program, int tensor, struct wpk_index_bound *out);
/* Find the values that are within all of them. False: there are none. */
bool wpk_index_bound(const struct wpk_program *program, int tensor, int64_t *low, int64_t *high);

/* The values of inputs for which a program is of use: what test inputs are drawn from.
 *
 * A mask is 0 or 1, an index lies inside its axis, the operand of a logarithm is positive. The
 * domains are not proven: if two uses of a value contradict each other, the first one counts. */

/* True if one end is limited. */
bool wpk_domain_is_limited(const struct wpk_domain *domain);
/* Narrow `domain` to its values that `other` has, too, if there are any. */
void wpk_domain_narrow(struct wpk_domain *domain, struct wpk_domain other);

/* Narrow the domains of a program's tensors to those for which its expressions are of use.
 *
 *   shape   tensors [tensor_count]: of inputs those known from elsewhere; of outputs those that
 *           their readers need; of constants with known elements the least and the largest one
 */
void wpk_domain_find(const struct wpk_program *program, struct wpk_domain *tensors);

#endif
