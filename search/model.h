/* SPDX-License-Identifier: Apache-2.0 */
/* The cost model: gradient-boosted regression trees that predict the logarithm of a candidate's
 * time from its features, as what they add to the bound that the target's rules give. Sums are
 * taken in a fixed order: the same trials give the same model on every machine.
 *
 *   source  Friedman, Greedy function approximation: a gradient boosting machine, 2001; Chen et
 *           al., Learning to optimize tensor programs, NeurIPS 2018, for tensor programs */
#ifndef WPK_SEARCH_MODEL_H
#define WPK_SEARCH_MODEL_H

#include "search/strategies.h"

#define WPK_MODEL_DEPTH 4
#define WPK_MODEL_TREES 64

struct wpk_cost_model;

/*   owns    caller calls wpk_cost_model_free
 *   errors  NULL: no memory */
struct wpk_cost_model *wpk_cost_model_new(void);
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

#endif
