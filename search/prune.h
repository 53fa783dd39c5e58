/* SPDX-License-Identifier: Apache-2.0 */
/* Removing candidates that cannot be in an accuracy class, before any of them is built. */
#ifndef WPK_SEARCH_PRUNE_H
#define WPK_SEARCH_PRUNE_H

#include "schema/accuracy.h"
#include "search/space.h"

/* Remove the variants, and the block sizes of sums, whose expected error the class does not admit.
 * Expected errors are off by up to a tenth, so that a candidate close to the limit may be kept or
 * removed wrongly. The most accurate variant and block size always stay. */
void wpk_space_prune(struct wpk_space *space, struct wpk_accuracy accuracy);

/* The expected error of a variant whose largest sum adds up blocks of `block` terms of its longest
 * axis. WPK_GENE_ALL: it adds all terms one after the other.
 *   unit  1: the error of direct evaluation */
double wpk_variant_error(const struct wpk_variant *variant, int64_t block);

#endif
