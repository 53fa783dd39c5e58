/* SPDX-License-Identifier: Apache-2.0 */
/* The values of inputs for which a program is of use: what test inputs are drawn from.
 *
 * A mask is 0 or 1, an index lies inside its axis, the operand of a logarithm is positive. The
 * domains are not proven: if two uses of a value contradict each other, the first one counts. */
#ifndef WPK_IR_DOMAIN_H
#define WPK_IR_DOMAIN_H

#include "ir/program.h"
#include "schema/draw.h"

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
