/* SPDX-License-Identifier: Apache-2.0 */
/* Knowledge from trials of some operators, for searches of others: trees for the cost model, and
 * the policy of the strategy rl. teach.c makes one. The text of a prior is words, as in snapshot.h:
 * first versions of the format and of the features, last a line end. */
#ifndef WPK_SEARCH_MODEL_PRIOR_H
#define WPK_SEARCH_MODEL_PRIOR_H

#include "common/err.h"
#include "search/snapshot.h"
#include "search/space.h"

/* Gradient-boosted regression trees over the features of candidates. Sums are taken in a fixed
 * order: the same rows give the same trees on every machine.
 *
 *   source  Friedman, Greedy function approximation: a gradient boosting machine, 2001 */

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
wpk_err wpk_tree_rows_init(struct wpk_tree_rows *rows, int most);
void wpk_tree_rows_fini(struct wpk_tree_rows *rows);

/* Fit WPK_TREES_MAX trees to the first `count` rows. */
void wpk_trees_fit(struct wpk_trees *trees, struct wpk_tree_rows *rows);
/* `sum` and what each tree adds to it, in their order.   shape  x [WPK_FEATURES] */
double wpk_trees_add(const struct wpk_trees *trees, const double *x, double sum);

/* Small networks with one hidden layer: y = b + v . tanh(W x + c). Weights are kept in single
 * precision and computed with in double, in a fixed order: updates are the same on every machine.
 *
 *   source  Rumelhart, Hinton & Williams, Learning representations by back-propagating errors,
 *           Nature, 1986 */

#define WPK_NETWORK_INPUTS_MAX 40
#define WPK_NETWORK_HIDDEN_MAX 48
#define WPK_NETWORK_WEIGHTS_MAX (WPK_NETWORK_HIDDEN_MAX * (WPK_NETWORK_INPUTS_MAX + 2) + 1)

struct wpk_network {
    int inputs, hidden;
    float weight[WPK_NETWORK_WEIGHTS_MAX]; /* for each hidden unit W, c and v; then b */
    float speed[WPK_NETWORK_WEIGHTS_MAX];  /* the momentum of each */
};

/* The gradient of a network, and the activations that a forward pass keeps for the backward
 * pass. */
struct wpk_network_pass {
    double hidden[WPK_NETWORK_HIDDEN_MAX];
    double gradient[WPK_NETWORK_WEIGHTS_MAX];
};

int wpk_network_weights(const struct wpk_network *network);
/* Small random weights; the result is 0 at first, whatever the input. */
void wpk_network_init(struct wpk_network *network, int inputs, int hidden, struct wpk_rng *rng);
/*   shape   x [inputs] */
double wpk_network_forward(const struct wpk_network *network, const float *x,
                           struct wpk_network_pass *pass);
/* Add `slope` times the gradient of the result of the last forward pass, of the same `x`. */
void wpk_network_backward(const struct wpk_network *network, const float *x, double slope,
                          struct wpk_network_pass *pass);
/* Step against the gradient, which is cleared: by at most `rate` times its length if that exceeds
 * 1. */
void wpk_network_step(struct wpk_network *network, double rate, double momentum,
                      struct wpk_network_pass *pass);

/* Multiply the result by a factor, whatever the input; forget the momentum. */
void wpk_network_scale(struct wpk_network *network, float factor);

void wpk_network_save(const struct wpk_network *network, struct wpk_buf *out);
/*   shape   network: made by wpk_network_init() with the same sizes */
void wpk_network_load(struct wpk_network *network, struct wpk_snapshot_reader *reader);

#define WPK_PRIOR_VERSION "wpk-prior-1"
#define WPK_PRIOR_SIZE_MAX ((size_t)256 << 10) /* bytes of the text */

struct wpk_prior {
    struct wpk_trees trees;
    struct wpk_network policy; /* its speeds are 0 */
};

/* Append the text.
 *   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_prior_encode(const struct wpk_prior *prior, struct wpk_buf *out);
/*   owns    caller calls free
 *   errors  WPK_EMISMATCH of another version; WPK_EPARSE no prior, or a damaged one; WPK_ENOMEM */
wpk_err wpk_prior_decode(const char *text, struct wpk_prior **out, struct wpk_diag *diag);

#endif
