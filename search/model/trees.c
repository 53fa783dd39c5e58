/* SPDX-License-Identifier: Apache-2.0 */
#include "search/model/prior.h"

#include <stdlib.h>
#include <string.h>

#define SHRINKAGE 0.15
#define RIDGE 0.5      /* added to the weight of a leaf */
#define LEAF_LEAST 1.5 /* weight on each side of a split */

struct split {
    int feature;
    double threshold, gain;
};

wpk_err wpk_tree_rows_init(struct wpk_tree_rows *rows, int most)
{
    size_t n = (size_t)most;
    *rows = (struct wpk_tree_rows){.most = most};
    rows->x = calloc(n, sizeof(*rows->x));
    rows->rest = calloc(n, sizeof(*rows->rest));
    rows->weight = calloc(n, sizeof(*rows->weight));
    rows->node = calloc(n, sizeof(*rows->node));
    rows->order = calloc(n, WPK_FEATURES * sizeof(*rows->order));
    rows->spare = calloc(n, sizeof(*rows->spare));
    bool all = rows->x != NULL && rows->rest != NULL && rows->weight != NULL &&
               rows->node != NULL && rows->order != NULL && rows->spare != NULL;
    if (!all) {
        wpk_tree_rows_fini(rows);
    }
    return all ? WPK_OK : WPK_ENOMEM;
}

void wpk_tree_rows_fini(struct wpk_tree_rows *rows)
{
    free(rows->x);
    free(rows->rest);
    free(rows->weight);
    free(rows->node);
    free(rows->order);
    free(rows->spare);
    *rows = (struct wpk_tree_rows){0};
}

static int leaf_of(const struct wpk_tree *tree, const double *x)
{
    int node = 0;
    while (node < WPK_TREE_NODES) {
        int f = tree->feature[node];
        node = 2 * node + 1 + (f >= 0 && x[f] > tree->threshold[node]);
    }
    return node - WPK_TREE_NODES;
}

double wpk_trees_add(const struct wpk_trees *trees, const double *x, double sum)
{
    for (int t = 0; t < trees->count; t++) {
        sum += trees->tree[t].leaf[leaf_of(&trees->tree[t], x)];
    }
    return sum;
}

/* Order rows by a feature: a stable merge of runs, so that equal values keep their order. */
static void sort_rows(struct wpk_tree_rows *rows, int f)
{
    int *order = &rows->order[f * rows->most];
    for (int i = 0; i < rows->count; i++) {
        order[i] = i;
    }
    for (int width = 1; width < rows->count; width *= 2) {
        for (int begin = 0; begin < rows->count; begin += 2 * width) {
            int middle = begin + width < rows->count ? begin + width : rows->count;
            int end = begin + 2 * width < rows->count ? begin + 2 * width : rows->count;
            for (int i = begin, a = begin, b = middle; i < end; i++) {
                bool left =
                    b == end || (a < middle && rows->x[order[a]][f] <= rows->x[order[b]][f]);
                rows->spare[i] = order[left ? a++ : b++];
            }
        }
        memcpy(order, rows->spare, (size_t)rows->count * sizeof(*order));
    }
}

/* The gain of a leaf: its squared sum by its weight. */
static double gain_of(double sum, double weight)
{
    return sum * sum / (weight + RIDGE);
}

/* Find the best split of each node of a level by one feature. */
static void split_by(const struct wpk_tree_rows *rows, int f, int first, const double *sums,
                     const double *weights, struct split *best)
{
    double left[WPK_TREE_LEAVES] = {0}, left_weight[WPK_TREE_LEAVES] = {0};
    double last[WPK_TREE_LEAVES];
    bool any[WPK_TREE_LEAVES] = {false};
    for (int i = 0; i < rows->count; i++) {
        int row = rows->order[f * rows->most + i], n = rows->node[row] - first;
        double value = rows->x[row][f];
        double right_weight = weights[n] - left_weight[n];
        if (any[n] && value > last[n] && left_weight[n] >= LEAF_LEAST &&
            right_weight >= LEAF_LEAST) {
            double gain = gain_of(left[n], left_weight[n]) +
                          gain_of(sums[n] - left[n], right_weight) - gain_of(sums[n], weights[n]);
            if (gain > best[n].gain) {
                best[n] = (struct split){f, 0.5 * (value + last[n]), gain};
            }
        }
        left[n] += rows->weight[row] * rows->rest[row];
        left_weight[n] += rows->weight[row];
        last[n] = value;
        any[n] = true;
    }
}

/* Add up the rows of each node of a level.   shape  sums, weights [WPK_TREE_LEAVES] */
static void sum_level(const struct wpk_tree_rows *rows, int first, double *sums, double *weights)
{
    memset(sums, 0, WPK_TREE_LEAVES * sizeof(*sums));
    memset(weights, 0, WPK_TREE_LEAVES * sizeof(*weights));
    for (int i = 0; i < rows->count; i++) {
        sums[rows->node[i] - first] += rows->weight[i] * rows->rest[i];
        weights[rows->node[i] - first] += rows->weight[i];
    }
}

static void grow(struct wpk_tree_rows *rows, struct wpk_tree *tree)
{
    double sums[WPK_TREE_LEAVES], weights[WPK_TREE_LEAVES];
    memset(rows->node, 0, (size_t)rows->count * sizeof(*rows->node));
    for (int level = 0; level < WPK_TREE_DEPTH; level++) {
        int first = (1 << level) - 1;
        struct split best[WPK_TREE_LEAVES];
        sum_level(rows, first, sums, weights);
        for (int n = 0; n <= first; n++) {
            best[n] = (struct split){.feature = -1, .gain = 1e-9};
        }
        for (int f = 0; f < WPK_FEATURES; f++) {
            split_by(rows, f, first, sums, weights, best);
        }
        for (int n = 0; n <= first; n++) {
            tree->feature[first + n] = best[n].feature;
            tree->threshold[first + n] = best[n].feature < 0 ? 0 : best[n].threshold;
        }
        for (int i = 0; i < rows->count; i++) {
            const struct split *s = &best[rows->node[i] - first];
            bool right = s->feature >= 0 && rows->x[i][s->feature] > s->threshold;
            rows->node[i] = 2 * rows->node[i] + 1 + right;
        }
    }
    sum_level(rows, WPK_TREE_NODES, sums, weights);
    for (int n = 0; n < WPK_TREE_LEAVES; n++) {
        tree->leaf[n] = SHRINKAGE * sums[n] / (weights[n] + RIDGE);
    }
}

void wpk_trees_fit(struct wpk_trees *trees, struct wpk_tree_rows *rows)
{
    for (int f = 0; f < WPK_FEATURES; f++) {
        sort_rows(rows, f);
    }
    for (trees->count = 0; trees->count < WPK_TREES_MAX; trees->count++) {
        struct wpk_tree *tree = &trees->tree[trees->count];
        grow(rows, tree);
        for (int i = 0; i < rows->count; i++) {
            rows->rest[i] -= tree->leaf[rows->node[i] - WPK_TREE_NODES];
        }
    }
}
