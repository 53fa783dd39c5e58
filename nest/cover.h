/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of an axis that the loops over it go through, with their tails. */
#ifndef WPK_NEST_COVER_H
#define WPK_NEST_COVER_H

#include "nest/nest.h"

/* The first or the last iteration of the loops at and around the loop `inner` of a definition;
 * -1: all iterations. */
struct wpk_nest_iterations {
    int inner;
    bool last;
};

/* Find what the loops over an axis cover of [0, *end), as [*begin, *end): less than 0 or more than
 * the length where their tails reach past it. Without such loops nothing changes.
 *   shape   any: the length is no constant; each loop may reach past it, or before it, by less than
 *           a step */
void wpk_nest_cover(const struct wpk_nest *nest, const struct wpk_nest_loops *loops, int axis,
                    const struct wpk_nest_iterations *at, bool any, int64_t *begin, int64_t *end);

#endif
