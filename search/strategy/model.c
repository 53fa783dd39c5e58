/* SPDX-License-Identifier: Apache-2.0 */
#include "search/strategy/model.h"

#include <math.h>
#include <stdlib.h>

#define FAILED_BEHIND 1      /* log time of failed trials behind the slowest */
#define FOCUS 0.7            /* log time behind the best at which a trial's weight is half */
#define TRUST 0.9            /* of the variance that the bound leaves */
#define LESSON_ROWS_MAX 8192 /* of all lessons */

struct wpk_cost_model {
    const struct wpk_trees *prior; /* NULL: none */
    bool trusted;                  /* the prior: it adds to the bound */
    int fitted;
    double base;
    struct wpk_trees trees;
    int known; /* trials of the course whose features are in the rows */
    struct wpk_tree_rows rows;
};

struct wpk_cost_model *wpk_cost_model_new(const struct wpk_trees *prior)
{
    struct wpk_cost_model *model = calloc(1, sizeof *model);
    if (model != NULL && wpk_tree_rows_init(&model->rows, WPK_TRIALS_MAX) != WPK_OK) {
        wpk_cost_model_free(model);
        return NULL;
    }
    if (model != NULL) {
        model->prior = prior;
    }
    return model;
}

void wpk_cost_model_free(struct wpk_cost_model *model)
{
    if (model != NULL) {
        wpk_tree_rows_fini(&model->rows);
        free(model);
    }
}

int wpk_cost_model_fitted(const struct wpk_cost_model *model)
{
    return model->fitted;
}

/* The log of the bound, which is the first feature, with what the prior adds to it. */
static double expected(const struct wpk_cost_model *model, const double *x)
{
    return model->trusted ? wpk_trees_add(model->prior, x, x[0]) : x[0];
}

double wpk_cost_model_predict(const struct wpk_cost_model *model, const double *x)
{
    return wpk_trees_add(&model->trees, x, expected(model, x) + model->base);
}

/* ---- targets */

/* Set how slow each row is over `expected`, less their mean, and how much it counts; rows from
 * `first` on.
 *   shape   returns the mean */
static double set_targets(struct wpk_tree_rows *rows, int first,
                          const struct wpk_course_trial *trials, const struct wpk_cost_model *model)
{
    double best = HUGE_VAL, worst = -HUGE_VAL, sum = 0, weight = 0;
    for (int i = first; i < rows->count; i++) {
        if (trials[i - first].tell.ok) {
            best = fmin(best, trials[i - first].time);
            worst = fmax(worst, trials[i - first].time);
        }
    }
    for (int i = first; i < rows->count; i++) {
        const struct wpk_course_trial *trial = &trials[i - first];
        double time = trial->tell.ok ? trial->time : worst + FAILED_BEHIND;
        rows->weight[i] = 1 / (1 + (time - best) / FOCUS);
        rows->rest[i] = time - expected(model, rows->x[i]);
        sum += rows->weight[i] * rows->rest[i];
        weight += rows->weight[i];
    }
    for (int i = first; i < rows->count; i++) {
        rows->rest[i] -= sum / weight;
    }
    return sum / weight;
}

/* The weighted variance of what `expected` leaves unexplained. */
static double unexplained(struct wpk_cost_model *model, const struct wpk_course_trial *trials,
                          bool trusted)
{
    double sum = 0;
    model->trusted = trusted;
    (void)set_targets(&model->rows, 0, trials, model);
    for (int i = 0; i < model->rows.count; i++) {
        sum += model->rows.weight[i] * model->rows.rest[i] * model->rows.rest[i];
    }
    return sum;
}

static bool has_time(const struct wpk_course_trial *trials, int count)
{
    bool any = false;
    for (int i = 0; i < count; i++) {
        any = any || trials[i].tell.ok;
    }
    return any;
}

/* ---- fitting */

static void fit(struct wpk_cost_model *model, const struct wpk_course_trial *trials, int count)
{
    model->fitted = count;
    model->trees.count = 0;
    model->base = 0;
    model->rows.count = count;
    if (!has_time(trials, count)) {
        return;
    }
    if (model->prior != NULL) {
        model->trusted =
            unexplained(model, trials, true) < TRUST * unexplained(model, trials, false);
    }
    model->base = set_targets(&model->rows, 0, trials, model);
    wpk_trees_fit(&model->trees, &model->rows);
}

void wpk_cost_model_restore(struct wpk_cost_model *model, const struct wpk_course *course,
                            int count)
{
    model->known = model->known >= count ? 0 : model->known; /* trials were thinned out */
    for (; model->known < count; model->known++) {
        wpk_err err = wpk_space_features(course->space, &course->trial[model->known].candidate,
                                         model->rows.x[model->known]);
        (void)err; /* all are 0 then */
    }
    fit(model, course->trial, count);
}

void wpk_cost_model_fit(struct wpk_cost_model *model, const struct wpk_course *course)
{
    wpk_cost_model_restore(model, course, course->trial_count);
}

double wpk_cost_model_time(const struct wpk_cost_model *model, const struct wpk_space *space,
                           const struct wpk_candidate *candidate)
{
    double x[WPK_FEATURES];
    return wpk_space_features(space, candidate, x) == WPK_OK ? wpk_cost_model_predict(model, x)
                                                             : HUGE_VAL;
}

/* ---- priors */

wpk_err wpk_cost_model_teach(const struct wpk_lesson *lessons, int count, struct wpk_trees *out)
{
    static const struct wpk_cost_model none; /* the bound alone */
    struct wpk_tree_rows rows;
    int each = count > 0 ? LESSON_ROWS_MAX / count : 0;
    wpk_err err = wpk_tree_rows_init(&rows, LESSON_ROWS_MAX);
    for (int n = 0; n < count && err == WPK_OK; n++) {
        const struct wpk_lesson *lesson = &lessons[n];
        int first = rows.count, taken = lesson->count < each ? lesson->count : each;
        if (!has_time(lesson->trial, taken)) {
            continue;
        }
        for (; rows.count < first + taken; rows.count++) {
            (void)!wpk_space_features(lesson->space, &lesson->trial[rows.count - first].candidate,
                                      rows.x[rows.count]); /* all are 0 then */
        }
        (void)set_targets(&rows, first, lesson->trial, &none);
    }
    if (err == WPK_OK) {
        wpk_trees_fit(out, &rows);
        wpk_tree_rows_fini(&rows);
    }
    return err;
}
