/* SPDX-License-Identifier: Apache-2.0 */
/* Removing candidates that cannot be in an accuracy class, before any of them is built. */
#ifndef WPK_SEARCH_PRUNE_H
#define WPK_SEARCH_PRUNE_H

#include "schema/accuracy.h"
#include "search/space.h"

/* Remove the variants, and the block sizes of sums, whose expected error the class does not admit;
 * variants that wait to be derived are looked at then. Expected errors are off by up to a tenth, so
 * that a candidate close to the limit may be kept or removed wrongly. The most accurate variant and
 * block size always stay. Call it before the first candidate is drawn. */
void wpk_space_prune(struct wpk_space *space, struct wpk_accuracy accuracy);

/* The expected error of a variant, before any of its candidates is built. Expected errors are off
 * by up to a tenth. */

/* The expected error that the output has from one group, whose contraction adds up blocks of
 * `block` terms of its longest axis; all other groups as direct evaluation computes them.
 * WPK_GENE_ALL: it adds all terms one after the other.
 *   shape  variant: derived
 *   unit   1: the error of direct evaluation */
double wpk_variant_error(const struct wpk_variant *variant, int group, int64_t block);

/* A bound of the whole variant's error with the most accurate block sizes: errors of groups are
 * independent of each other, so that together they are at most as many times direct evaluation's
 * as the worst of them alone. */
double wpk_variant_error_least(const struct wpk_variant *variant);

/* Remove the block sizes that the class does not admit; false, and nothing is removed, where some
 * group would have none left. An error of at most `least` is always admitted. */
bool wpk_variant_prune(struct wpk_variant *variant, struct wpk_accuracy accuracy, double least);

#endif
