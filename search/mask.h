/* SPDX-License-Identifier: Apache-2.0 */
/* Building a candidate gene by gene without ever having to go back.
 *
 * Genes are decided in a fixed order: consumers before what they read; of a group its lanes first,
 * then its tile, its loops, and where it is computed. A group has a neutral rest: the smallest
 * tile, no blocks, nothing unrolled, computed at the root. A value is allowed if the candidate with
 * it, and with the neutral rest, is legal. A candidate whose values were all allowed is legal.
 *
 * The rules of legal.c are monotone but for one: a larger tile can need fewer registers, where a
 * stage without a vector axis gets lanes by it. So the smallest tiles that give such a stage lanes
 * are tried, too (target/cpu/rules.h). Every legal candidate is reached. */
#ifndef WPK_SEARCH_MASK_H
#define WPK_SEARCH_MASK_H

#include "common/buf.h"
#include "ir/canonical/canonical.h"
#include "search/space.h"

/* Fill `out` with the neutral candidate of a variant.
 *   errors  WPK_EEXHAUSTED it is illegal: the variant has no legal candidate, cannot be derived, or
 *           a gene is pinned to a place that does not exist without blocks; WPK_ENOMEM */
wpk_err wpk_mask_begin(const struct wpk_space *space, int variant, struct wpk_candidate *out);

/* The gene that is decided at `step` of a variant; steps are in [0, gene_count). */
int wpk_mask_gene(const struct wpk_space *space, const struct wpk_variant *variant, int step);

/* Fill `allowed` for the gene of `step`. The genes of earlier steps are decided, the others are
 * neutral. Returns how many values are allowed, at least one if the earlier values were.
 *   shape   allowed [choice_count of the gene] */
int wpk_mask_values(const struct wpk_space *space, const struct wpk_candidate *candidate, int step,
                    bool *allowed);

/* Set the gene of `step` to an allowed choice, and the genes of later steps to the neutral rest. */
void wpk_mask_decide(const struct wpk_space *space, struct wpk_candidate *candidate, int step,
                     int choice);

/* Translating pins from the names of a job's program to the names of its canonical form.
 *
 * Spaces are derived from canonical programs (ir/canonical/canonical.h), so their genes name
 * tensors t0, t1, ... and axes a0, a1, ...; a job says Y.tile.k. */

/* Append to `name` and `value` the pin `gene`=`choice` in the names of the canonical program: where
 * Y_acc has become t2, Y_acc_m.block.ty=4 becomes t2_acc_m.block.ta2=4. The names of `asked`, its
 * tensors and the axes of the tensor's stage and of earlier ones, are translated; other names stay:
 * they are canonical already, or a derivation added them. wpk_space_pin says if the gene exists.
 *
 *   shape   asked: the program that `map` was made from
 *   errors  WPK_ENOMEM
 */
wpk_err wpk_pin_canonical(const struct wpk_program *asked, const struct wpk_canonical_map *map,
                          const char *gene, const char *choice, struct wpk_buf *name,
                          struct wpk_buf *value);

/* Append to `out` the text of a candidate of the operator `from` with the names that the same
 * tensors and axes have in `to`: canonical operators of one family, in whole form.
 *   errors  WPK_EPARSE of an operator; WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_candidate_rename(const char *from, const char *to, const char *text,
                             struct wpk_buf *out);

#endif
