/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient-boosted regression trees over the features of candidates. Sums are taken in a fixed
 * order: the same rows give the same trees on every machine.
 *
 *   source  Friedman, Greedy function approximation: a gradient boosting machine, 2001 */
#ifndef WPK_SEARCH_MODEL_TREES_H
#define WPK_SEARCH_MODEL_TREES_H

#include "search/space.h"

#define WPK_TREE_DEPTH 4
#define WPK_TREE_NODES ((1 << WPK_TREE_DEPTH) - 1) /* inner ones */
#define WPK_TREE_LEAVES (1 << WPK_TREE_DEPTH)
#define WPK_TREES_MAX 64

struct wpk_tree {
    int feature[WPK_TREE_NODES]; /* children of i are 2 i + 1 and 2 i + 2; -1: all go left */
    double threshold[WPK_TREE_NODES];
    double leaf[WPK_TREE_LEAVES];
};

struct wpk_trees {
    struct wpk_tree tree[WPK_TREES_MAX];
    int count;
};

/* The rows that trees are fitted to, and the scratch memory of the fit. */
struct wpk_tree_rows {
    int most, count;
    double (*x)[WPK_FEATURES]; /* owned; [most], as are the others */
    double *rest;              /* what the trees are to add up to; the fit leaves what is left */
    double *weight;            /* how much each row counts */
    int *node;
    int *order; /* [WPK_FEATURES][most]: rows by each feature, ascending */
    int *spare;
};

/*   owns    caller calls wpk_tree_rows_fini
 *   errors  WPK_ENOMEM */
WPK_MUST_CHECK wpk_err wpk_tree_rows_init(struct wpk_tree_rows *rows, int most);
void wpk_tree_rows_fini(struct wpk_tree_rows *rows);

/* Fit WPK_TREES_MAX trees to the first `count` rows. */
void wpk_trees_fit(struct wpk_trees *trees, struct wpk_tree_rows *rows);
/* `sum` and what each tree adds to it, in their order.   shape  x [WPK_FEATURES] */
double wpk_trees_add(const struct wpk_trees *trees, const double *x, double sum);

#endif
