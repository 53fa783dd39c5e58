/* SPDX-License-Identifier: Apache-2.0 */
/* The cost model: boosted trees that predict the logarithm of a candidate's time from its features,
 * as what they add to the bound that the target's rules give, and to what a prior adds to it.
 *
 * A prior counts for as long as it is right: each fit takes it if, with it, the bound explains the
 * trials that there are better than alone, and drops it otherwise. Before the first fit it does not
 * count: then a search with a prior that misleads is the same as one without.
 *
 *   source  Chen et al., Learning to optimize tensor programs, NeurIPS 2018 */
#ifndef WPK_SEARCH_STRATEGY_MODEL_H
#define WPK_SEARCH_STRATEGY_MODEL_H

#include "search/model/prior.h"
#include "search/strategy/strategies.h"

struct wpk_cost_model;

/* The trials of one operator, from which a prior is learnt. */
struct wpk_lesson {
    const struct wpk_space *space;
    const struct wpk_course_trial *trial; /* [count] */
    int count;
};

/*   owns    caller calls wpk_cost_model_free; `prior` is borrowed until then; NULL: none
 *   errors  NULL: no memory */
struct wpk_cost_model *wpk_cost_model_new(const struct wpk_trees *prior);
void wpk_cost_model_free(struct wpk_cost_model *model); /* accepts NULL */

/* Fit the model to the trials of a course. Failed ones count as slower than all others. */
void wpk_cost_model_fit(struct wpk_cost_model *model, const struct wpk_course *course);
/* Fit it to the first `count` of them, as a model had been that was saved:
 * wpk_cost_model_fitted(). */
void wpk_cost_model_restore(struct wpk_cost_model *model, const struct wpk_course *course,
                            int count);
/* The predicted log of the time relative to the anchor, but for a constant where nothing was
 * fitted: then it is the bound's.
 *   shape   features [WPK_FEATURES] */
double wpk_cost_model_predict(const struct wpk_cost_model *model, const double *features);
/* The predicted log of a candidate's time; +inf where it has no features. */
double wpk_cost_model_time(const struct wpk_cost_model *model, const struct wpk_space *space,
                           const struct wpk_candidate *candidate);
/* The number of trials that it was fitted to; 0: none. */
int wpk_cost_model_fitted(const struct wpk_cost_model *model);

/* Fit the trees of a prior to the trials of several operators: to what each is slower than its
 * bound, over the mean of its operator.
 *   errors  WPK_ENOMEM */
wpk_err wpk_cost_model_teach(const struct wpk_lesson *lessons, int count, struct wpk_trees *out);

/* Making a prior from the trials of several operators, and judging it by those of others. */

#define WPK_LESSON_TRIALS_MAX 1024 /* of an operator */

/* Make a prior: fit its trees, and let rl's policy learn from one operator after the other.
 *   errors  WPK_ENOMEM */
wpk_err wpk_prior_teach(const struct wpk_lesson *lessons, int count, struct wpk_prior *out);

/* How many pairs of a lesson's trials that are more than 2 % apart the bound and the trees, if any,
 * put in the right order.
 *   shape   trees NULL: the bound alone; *pairs, *right are added to */
void wpk_prior_judge(const struct wpk_trees *trees, const struct wpk_lesson *lesson, double *pairs,
                     double *right);

#endif
