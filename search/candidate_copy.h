/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that are copied into the order in which a group's loops read them. */
#ifndef WPK_SEARCH_CANDIDATE_COPY_H
#define WPK_SEARCH_CANDIDATE_COPY_H

#include "nest/nest.h"
#include "search/genes.h"

/* True if the copy of the operand of a pack gene, number `slot` of the group, differs from its
 * tensor and can be made: then *out says how its dimensions lie. */
bool wpk_candidate_copy(const struct wpk_variant *variant, int group, const struct wpk_decisions *d,
                        int slot, struct wpk_packing *out);

/* True if the group makes a copy that is cut into blocks along this root axis with a remainder: a
 * tile that moves inwards would begin inside a block, and each of its vectors would be put together
 * element by element. */
bool wpk_candidate_copy_is_cut(const struct wpk_variant *variant, int group,
                               const struct wpk_decisions *d, int root_axis);

/* Fill `extent` with the elements of a copy's dimensions: of all that it has, or of what a panel
 * needs of it where the copy is staged.
 *   shape   extent [packing->dim_count] */
void wpk_candidate_copy_extents(const struct wpk_variant *variant, int group,
                                const struct wpk_decisions *d, int slot,
                                const struct wpk_packing *packing, int64_t *extent);

/* Add the loops of a copy that the main program makes. The lanes run along the tensor's contiguous
 * dimension; if that is not the copy's last one, the copy transposes, and a few rows of it are
 * written out, of which LLVM makes shuffles. */
void wpk_candidate_copy_loops(const struct wpk_space_options *options, struct wpk_nest *nest,
                              struct wpk_nest_entry *copy);

#endif
