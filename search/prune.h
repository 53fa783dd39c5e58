/* SPDX-License-Identifier: Apache-2.0 */
/* Which candidates can be in a class of accuracy, before any of them is built. */
#ifndef WPK_SEARCH_PRUNE_H
#define WPK_SEARCH_PRUNE_H

#include "schema/accuracy.h"
#include "search/space.h"

/* Remove the variants, and the sizes of blocks of sums, whose expected error the class does not
 * admit. Expectations are off by up to a tenth: what is close to the gate may be kept in vain, or
 * be missed. Where nothing would be left, the most accurate stays. */
void wpk_space_prune(struct wpk_space *space, struct wpk_accuracy accuracy);

/* The expected error of a variant whose largest sum adds up blocks of `block` terms of its longest
 * axis, or all terms one after the other where it is WPK_GENE_ALL.
 *   unit  1: the error of direct evaluation */
double wpk_variant_error(const struct wpk_variant *variant, int64_t block);

#endif
