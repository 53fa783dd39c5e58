/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates made from others. The new candidates may be illegal. */
#ifndef WPK_SEARCH_STRATEGY_MOVE_H
#define WPK_SEARCH_STRATEGY_MOVE_H

#include "search/strategy/seen.h"

/* Set one gene that has several choices to another one: of ordered genes mostly a neighbour. False:
 * there is none. */
bool wpk_move_one(const struct wpk_space *space, struct wpk_rng *rng,
                  struct wpk_candidate *candidate);
/* Move one gene, and each further one with probability 1/2. */
void wpk_move_some(const struct wpk_space *space, struct wpk_rng *rng,
                   struct wpk_candidate *candidate);
/* Uniform crossover: the child is of the first parent's variant, and takes each gene from the
 * second with probability 1/2, where that one has a gene of this name with a value that exists. */
void wpk_move_cross(const struct wpk_space *space, struct wpk_rng *rng,
                    const struct wpk_candidate *first, const struct wpk_candidate *second,
                    struct wpk_candidate *child);

/* A legal candidate that is not seen and differs from `from` in one gene, or in few where no such
 * one is found: mostly of the same variant.
 *   errors  WPK_EEXHAUSTED */
WPK_MUST_CHECK wpk_err wpk_move_neighbour(const struct wpk_space *space,
                                          const struct wpk_seen *seen, struct wpk_rng *rng,
                                          const struct wpk_candidate *from,
                                          struct wpk_candidate *out);

#endif
