/* SPDX-License-Identifier: Apache-2.0 */
#include "search/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHRINKAGE 0.15
#define RIDGE 0.5       /* added to the weight of a leaf */
#define LEAF_LEAST 1.5  /* weight on each side of a split */
#define FAILED_BEHIND 1 /* log time of failed trials behind the slowest */
#define FOCUS 0.7       /* log time behind the best at which a trial's weight is half */

enum {
    NODES = (1 << WPK_MODEL_DEPTH) - 1, /* inner ones of a tree */
    LEAVES = 1 << WPK_MODEL_DEPTH,
    ROWS = WPK_TRIALS_MAX,
};

struct tree {
    int feature[NODES]; /* children of i are 2 i + 1 and 2 i + 2; -1: all go left */
    double threshold[NODES];
    double leaf[LEAVES];
};

struct wpk_cost_model {
    int fitted;
    double base;
    int tree_count;
    struct tree tree[WPK_MODEL_TREES];
    int known; /* trials of the course whose features are in the next */
    double x[ROWS][WPK_FEATURES];
    /* of the fit: */
    double rest[ROWS], weight[ROWS];
    int node[ROWS];
    int16_t order[WPK_FEATURES][ROWS]; /* rows by each feature, ascending */
};

struct split {
    int feature;
    double threshold, gain;
};

struct wpk_cost_model *wpk_cost_model_new(void)
{
    return calloc(1, sizeof(struct wpk_cost_model));
}

void wpk_cost_model_free(struct wpk_cost_model *model)
{
    free(model);
}

int wpk_cost_model_fitted(const struct wpk_cost_model *model)
{
    return model->fitted;
}

static int leaf_of(const struct tree *tree, const double *x)
{
    int node = 0;
    while (node < NODES) {
        int f = tree->feature[node];
        node = 2 * node + 1 + (f >= 0 && x[f] > tree->threshold[node]);
    }
    return node - NODES;
}

double wpk_cost_model_predict(const struct wpk_cost_model *model, const double *x)
{
    double sum = x[0] + model->base; /* the first feature is the log of the bound */
    for (int t = 0; t < model->tree_count; t++) {
        sum += model->tree[t].leaf[leaf_of(&model->tree[t], x)];
    }
    return sum;
}

/* Rows by a feature: a stable merge of runs, so that equal values keep their order. */
static void sort_rows(double (*x)[WPK_FEATURES], int f, int count, int16_t *order)
{
    int16_t other[ROWS];
    for (int i = 0; i < count; i++) {
        order[i] = (int16_t)i;
    }
    for (int width = 1; width < count; width *= 2) {
        for (int begin = 0; begin < count; begin += 2 * width) {
            int middle = begin + width < count ? begin + width : count;
            int end = begin + 2 * width < count ? begin + 2 * width : count;
            for (int i = begin, a = begin, b = middle; i < end; i++) {
                bool left = b == end || (a < middle && x[order[a]][f] <= x[order[b]][f]);
                other[i] = order[left ? a++ : b++];
            }
        }
        memcpy(order, other, (size_t)count * sizeof(*order));
    }
}

/* The gain of a leaf: its squared sum by its weight. */
static double gain_of(double sum, double weight)
{
    return sum * sum / (weight + RIDGE);
}

/* Find the best split of each node of a level by one feature. */
static void split_by(const struct wpk_cost_model *model, double (*x)[WPK_FEATURES], int count,
                     int f, int first, const double *sums, const double *weights,
                     struct split *best)
{
    double left[LEAVES] = {0}, left_weight[LEAVES] = {0}, last[LEAVES];
    bool any[LEAVES] = {false};
    for (int i = 0; i < count; i++) {
        int row = model->order[f][i], n = model->node[row] - first;
        double value = x[row][f];
        double right_weight = weights[n] - left_weight[n];
        if (any[n] && value > last[n] && left_weight[n] >= LEAF_LEAST &&
            right_weight >= LEAF_LEAST) {
            double gain = gain_of(left[n], left_weight[n]) +
                          gain_of(sums[n] - left[n], right_weight) - gain_of(sums[n], weights[n]);
            if (gain > best[n].gain) {
                best[n] = (struct split){f, 0.5 * (value + last[n]), gain};
            }
        }
        left[n] += model->weight[row] * model->rest[row];
        left_weight[n] += model->weight[row];
        last[n] = value;
        any[n] = true;
    }
}

static void grow(struct wpk_cost_model *model, double (*x)[WPK_FEATURES], int count,
                 struct tree *tree)
{
    double sums[LEAVES], weights[LEAVES];
    memset(model->node, 0, sizeof(model->node));
    for (int level = 0; level <= WPK_MODEL_DEPTH; level++) {
        int first = (1 << level) - 1;
        memset(sums, 0, sizeof(sums));
        memset(weights, 0, sizeof(weights));
        for (int i = 0; i < count; i++) {
            sums[model->node[i] - first] += model->weight[i] * model->rest[i];
            weights[model->node[i] - first] += model->weight[i];
        }
        if (level == WPK_MODEL_DEPTH) {
            break;
        }
        struct split best[LEAVES];
        for (int n = 0; n <= first; n++) {
            best[n] = (struct split){.feature = -1, .gain = 1e-9};
        }
        for (int f = 0; f < WPK_FEATURES; f++) {
            split_by(model, x, count, f, first, sums, weights, best);
        }
        for (int n = 0; n <= first; n++) {
            tree->feature[first + n] = best[n].feature;
            tree->threshold[first + n] = best[n].threshold;
        }
        for (int i = 0; i < count; i++) {
            const struct split *s = &best[model->node[i] - first];
            bool right = s->feature >= 0 && x[i][s->feature] > s->threshold;
            model->node[i] = 2 * model->node[i] + 1 + right;
        }
    }
    for (int n = 0; n < LEAVES; n++) {
        tree->leaf[n] = SHRINKAGE * sums[n] / (weights[n] + RIDGE);
    }
}

/* What the trees are to add to the bound, and how much each row counts. */
static void set_targets(struct wpk_cost_model *model, const struct wpk_course_trial *trials,
                        double (*x)[WPK_FEATURES], int count)
{
    double best = HUGE_VAL, worst = -HUGE_VAL, sum = 0, weight = 0;
    for (int i = 0; i < count; i++) {
        if (trials[i].tell.ok) {
            best = fmin(best, trials[i].time);
            worst = fmax(worst, trials[i].time);
        }
    }
    for (int i = 0; i < count; i++) {
        double time = trials[i].tell.ok ? trials[i].time : worst + FAILED_BEHIND;
        model->weight[i] = 1 / (1 + (time - best) / FOCUS);
        model->rest[i] = time - x[i][0];
        sum += model->weight[i] * model->rest[i];
        weight += model->weight[i];
    }
    model->base = sum / weight;
    for (int i = 0; i < count; i++) {
        model->rest[i] -= model->base;
    }
}

static void fit(struct wpk_cost_model *model, const struct wpk_course_trial *trials, int count)
{
    bool any = false;
    for (int i = 0; i < count; i++) {
        any = any || trials[i].tell.ok;
    }
    model->fitted = count;
    model->tree_count = 0;
    model->base = 0;
    if (!any) {
        return;
    }
    set_targets(model, trials, model->x, count);
    for (int f = 0; f < WPK_FEATURES; f++) {
        sort_rows(model->x, f, count, model->order[f]);
    }
    for (int t = 0; t < WPK_MODEL_TREES; t++) {
        struct tree *tree = &model->tree[model->tree_count++];
        grow(model, model->x, count, tree);
        for (int i = 0; i < count; i++) {
            model->rest[i] -= tree->leaf[model->node[i] - NODES];
        }
    }
}

void wpk_cost_model_restore(struct wpk_cost_model *model, const struct wpk_course *course,
                            int count)
{
    model->known = model->known >= count ? 0 : model->known; /* trials were thinned out */
    for (; model->known < count; model->known++) {
        wpk_err err = wpk_space_features(course->space, &course->trial[model->known].candidate,
                                         model->x[model->known]);
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
