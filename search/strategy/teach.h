/* SPDX-License-Identifier: Apache-2.0 */
/* Making a prior from the trials of several operators, and judging it by those of others. */
#ifndef WPK_SEARCH_STRATEGY_TEACH_H
#define WPK_SEARCH_STRATEGY_TEACH_H

#include "search/model/prior.h"
#include "search/strategy/model.h"

#define WPK_LESSON_TRIALS_MAX 1024 /* of an operator */

/* Make a prior: fit its trees, and let rl's policy learn from one operator after the other.
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_prior_teach(const struct wpk_lesson *lessons, int count,
                                       struct wpk_prior *out);

/* How many pairs of a lesson's trials that are more than 2 % apart the bound and the trees, if any,
 * put in the right order.
 *   shape   trees NULL: the bound alone; *pairs, *right are added to */
void wpk_prior_judge(const struct wpk_trees *trees, const struct wpk_lesson *lesson, double *pairs,
                     double *right);

#endif
