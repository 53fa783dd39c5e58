/* SPDX-License-Identifier: Apache-2.0 */
/* From a candidate's decisions to its nest. Everything is decided here: target/ prints the nest.
 *
 * Every group's root gets the same kind of nest:
 *
 *     block loops        one for each axis that is cut into blocks, in the order `outer`
 *       tile loops       one for each axis, in the order `inner`
 *         the tile       unrolled, its vector axis in lanes
 *
 * Members are computed inside the innermost tile loop, over just what the tile needs, all of it
 * unrolled but the reductions. */
#ifndef WPK_SEARCH_CANDIDATE_NEST_H
#define WPK_SEARCH_CANDIDATE_NEST_H

#include "nest/nest.h"
#include "search/genes.h"

/* The member's output axis that becomes lanes, with their number in *lanes; -1: it stays scalar.
 * It is the root's vector axis where the tile needs whole vectors of it, else the last axis.
 *   shape   region [member's axis_count] */
int wpk_member_vector(const struct wpk_variant *variant, const struct wpk_space_options *options,
                      const struct wpk_decisions *d, const struct wpk_member *member,
                      const int64_t *region, int *lanes);

/* Fill `out` with the nest of decisions that are legal for each group by itself.
 *   shape   d [group_count]
 *   owns    out->program is the variant's
 *   errors  WPK_ENOSPC a limit of nest/nest.h */
wpk_err wpk_decisions_nest(const struct wpk_variant *variant,
                           const struct wpk_space_options *options, const struct wpk_decisions *d,
                           struct wpk_nest *out);
/* The same of a legal candidate. */
wpk_err wpk_candidate_nest(const struct wpk_space *space, const struct wpk_candidate *candidate,
                           struct wpk_nest *out);

/* Operands that are copied into the order in which a group's loops read them. */

/* True if the group makes a copy that is cut into blocks along this root axis with a remainder: a
 * tile that moves inwards would begin inside a block, and each of its vectors would be put together
 * element by element. */
bool wpk_candidate_copy_is_cut(const struct wpk_variant *variant, int group,
                               const struct wpk_decisions *d, int root_axis);

/* Add the copies of the group whose root is the nest's entry `root`. An operand of the main program
 * is copied whole beforehand, or as much as a panel needs of it. The prepare program copies
 * constants, and schedules itself. */
void wpk_candidate_add_copies(const struct wpk_variant *variant,
                              const struct wpk_space_options *options, int group,
                              const struct wpk_decisions *d, int root, struct wpk_nest *nest);

#endif
