/* SPDX-License-Identifier: Apache-2.0 */
/* Terms of a sum of products that are 0 because an operand has a border of zeros there. A loop that
 * is `inside` (nest/nest.h) runs over the other terms only. */
#ifndef WPK_NEST_INSIDE_H
#define WPK_NEST_INSIDE_H

#include "nest/nest.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WPK_NEST_BORDERS_MAX 8

/* Terms are 0 where the index is outside of [low, high). */
struct wpk_nest_border {
    int index; /* node of the program */
    int64_t low, high;
};

/* List borders of the stage that the entry computes. Their indices depend on reduction axes, and on
 * output axes of which an iteration of the place covers one element. `inside`: on an axis whose
 * loop is inside, too.
 *   shape   out [WPK_NEST_BORDERS_MAX]; program: the nest's, or that one expanded */
int wpk_nest_borders(const struct wpk_program *program, const struct wpk_nest *nest, int entry,
                     bool inside, struct wpk_nest_border *out);

/* Make loops of the last entry's update inside where they skip a twentieth of the terms. */
void wpk_nest_mark_inside(struct wpk_nest *nest);

/* The share of the terms that loops leave which are inside; 1 where none is. */
double wpk_nest_inside_share(const struct wpk_nest *nest, int entry);

#ifdef __cplusplus
}
#endif

#endif
