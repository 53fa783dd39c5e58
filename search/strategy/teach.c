/* SPDX-License-Identifier: Apache-2.0 */
#include "search/strategy/model.h"

#include <math.h>
#include <string.h>

#define APART 0.02      /* of two times that are told from one another */
#define SEED 1          /* of the policy */
#define TRIALS_EACH 256 /* of an operator that the policy learns from */
/* A policy as sharp as that of a search's end explores too little of another operator: with the
 * whole of it rl needs 36 and 20 trials to 97 % on conv-28 and product-35, each taught by the other
 * tables; with a fifth 26 and 17, with a twentieth 18 and 19, without a prior 20 and 26. */
#define SOFT 0.05F

/* Let the policy learn from the trials of one operator, in their order. */
static wpk_err teach_policy(const struct wpk_lesson *lesson, struct wpk_prior *prior)
{
    const struct wpk_strategy_setup setup = {.seed = SEED,
                                             .prior = prior->policy.inputs > 0 ? prior : NULL};
    struct wpk_strategy *strategy = NULL;
    wpk_err err = wpk_strategy_make(&wpk_strategy_rl, lesson->space, &setup, &strategy);
    if (err != WPK_OK) {
        return err;
    }
    for (int i = 0; i < lesson->count && i < TRIALS_EACH; i++) {
        wpk_strategy_learn(strategy, &lesson->trial[i].candidate, &lesson->trial[i].tell);
    }
    prior->policy = *wpk_strategy_policy(strategy);
    wpk_strategy_free(strategy);
    return WPK_OK;
}

wpk_err wpk_prior_teach(const struct wpk_lesson *lessons, int count, struct wpk_prior *out)
{
    memset(out, 0, sizeof(*out));
    wpk_err err = wpk_cost_model_teach(lessons, count, &out->trees);
    for (int n = 0; n < count && err == WPK_OK; n++) {
        err = teach_policy(&lessons[n], out);
    }
    wpk_network_scale(&out->policy, SOFT);
    return err;
}

void wpk_prior_judge(const struct wpk_trees *trees, const struct wpk_lesson *lesson, double *pairs,
                     double *right)
{
    double predicted[WPK_LESSON_TRIALS_MAX];
    for (int i = 0; i < lesson->count && i < WPK_LESSON_TRIALS_MAX; i++) {
        const struct wpk_course_trial *one = &lesson->trial[i];
        double x[WPK_FEATURES];
        predicted[i] = HUGE_VAL;
        if (wpk_space_features(lesson->space, &one->candidate, x) == WPK_OK) {
            predicted[i] = trees == NULL ? x[0] : wpk_trees_add(trees, x, x[0]);
        }
        for (int k = 0; k < i; k++) {
            const struct wpk_course_trial *other = &lesson->trial[k];
            if (one->tell.ok && other->tell.ok && fabs(one->time - other->time) > APART) {
                (*pairs)++;
                *right += (one->time < other->time) == (predicted[i] < predicted[k]);
            }
        }
    }
}
