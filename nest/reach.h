/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of a nest, which is computed in whole steps, outside of the tensors that it is given. */
#ifndef WPK_NEST_REACH_H
#define WPK_NEST_REACH_H

#include "nest/nest.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wpk_nest_reach {
    /* The dimensions, a bit each, in which a stage's loads of an input, a constant, a literal or an
     * output may leave it, padding included, for elements that nobody needs. */
    uint16_t limited[WPK_STAGES_MAX][WPK_TENSORS_MAX];
};

/* Find where a nest that wpk_nest_check() accepts reads too far on a back end that computes whole
 * steps wherever a tail is exact or round, whole tiles for `extent` and whole multiples for
 * `align`, also past the end of an axis. Loads that leave their tensor for an element of the stage
 * (wpk_load_may_leave()) are not counted: they are limited anyway, in the dimensions that they
 * leave. `expanded` is the nest's program as it is printed (nest/expand.h), with the sums that the
 * nest expands as expressions.
 *   errors  WPK_ENOMEM */
wpk_err wpk_nest_find_reach(const struct wpk_nest *nest, const struct wpk_program *expanded,
                            struct wpk_nest_reach *out);

/* Elements of an axis that the loops over it go through, with their tails. */

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

/* Terms of a sum of products that are 0 because an operand has a border of zeros there. A loop that
 * is `inside` (nest/nest.h) runs over the other terms only. */

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

/* An intermediate tensor in the memory of the output that is computed from it, element by element:
 * a softmax then touches two tensors instead of three. And an output in the memory of an input. */

/* Why an entry's values cannot be kept in the output that it is placed in, or NULL if they can: in
 * each iteration of the place they are the elements that the output gets there, each is read by the
 * output at its own point only, and all others read them before. The entry's `extent` is found. */
const char *wpk_nest_refuses_output(const struct wpk_nest *nest, int entry);

/* True if such a tensor is in the program: it has the output's shape and type, the output reads it
 * at its own points, and a reduction reads it before. Any nest may still refuse. */
bool wpk_program_may_use_output(const struct wpk_program *program);

/* The input whose memory the output may lie in, as another output of that value: both are alike,
 * in memory too, the output's stage alone reads the input, each element before it is written, and
 * writes each element once. -1: none. */
int wpk_nest_in_place(const struct wpk_nest *nest);

#ifdef __cplusplus
}
#endif

#endif
