/* SPDX-License-Identifier: Apache-2.0 */
/* Each addition rounds the sum so far. The mean square of the error of a sum of n random terms is
 * that of all partial sums together: 1 + 2 + .. + n = n^2 / 2 times that of a term. Of a sum in
 * blocks of b, n/b blocks have b^2 / 2 each and their total has b (n/b)^2 / 2: b/n + 1/b of the
 * whole, which is least where b is the root of n.
 *
 *   source  Higham, Accuracy and Stability of Numerical Algorithms, 4.2, for random terms */
#include "search/variant_error.h"

#include "search/gene_list.h"
#include "search/genes.h"

#include <math.h>
#include <stdlib.h>

static double product(const struct wpk_stage *stage, int first)
{
    double all = 1;
    for (int a = first; a < stage->axis_count; a++) {
        all *= (double)stage->axes[a].extent;
    }
    return all;
}

/* The group with the largest sum, or -1. */
static int find_largest(const struct wpk_variant *variant)
{
    const struct wpk_structure *s = variant->plan;
    double largest = 0;
    int found = -1;
    for (int g = 0; g < s->plan.group_count; g++) {
        const struct wpk_stage *stage = wpk_contraction_of(variant, &s->plan.group[g]);
        double size = stage == NULL ? 0 : product(stage, 0);
        if (size > largest) {
            largest = size;
            found = g;
        }
    }
    return found;
}

double wpk_variant_error(const struct wpk_variant *variant, int64_t block)
{
    const struct wpk_structure *s = variant->plan;
    int g = find_largest(variant);
    double share = 1;
    if (g >= 0 && block != WPK_GENE_ALL) {
        const struct wpk_group *group = &s->plan.group[g];
        const struct wpk_stage *stage = wpk_contraction_of(variant, group);
        int axis = wpk_largest_reduction(stage, group->member[group->contraction].literal);
        double blocks = (double)stage->axes[axis].extent / (double)block;
        share = 1 / blocks + blocks / product(stage, stage->rank);
    }
    return sqrt(variant->error_sums * variant->error_sums * share +
                variant->error_rest * variant->error_rest);
}

static struct wpk_gene *sum_gene(const struct wpk_variant *variant)
{
    const struct wpk_structure *s = variant->plan;
    int g = find_largest(variant);
    return g < 0 || s->slots[g].sum < 0 ? NULL : &variant->genes[s->slots[g].sum];
}

double wpk_variant_error_least(const struct wpk_variant *variant)
{
    const struct wpk_gene *gene = sum_gene(variant);
    double least = wpk_variant_error(variant, WPK_GENE_ALL);
    for (int i = 0; gene != NULL && i < gene->choice_count; i++) {
        double error = wpk_variant_error(variant, gene->choice[i].value);
        least = i == 0 || error < least ? error : least;
    }
    return least;
}

/* `least`: the error of the most accurate. */
static bool stays(struct wpk_accuracy accuracy, double least, double error)
{
    return error <= least || wpk_accuracy_admits(accuracy, error);
}

/* Keep the choices that are accurate enough, and no panels: `sum` decides then. */
static void prune_gene(const struct wpk_variant *variant, struct wpk_accuracy accuracy,
                       double least, struct wpk_gene *gene)
{
    int kept = 0;
    for (int i = 0; i < gene->choice_count; i++) {
        int64_t value = gene->choice[i].value;
        if ((gene->optional && value == WPK_GENE_ALL) ||
            stays(accuracy, least, wpk_variant_error(variant, value))) {
            gene->choice[kept++] = gene->choice[i];
        } else {
            free(gene->choice[i].text);
        }
    }
    WPK_ASSERT(kept > 0);
    gene->choice_count = kept;
}

bool wpk_variant_prune(struct wpk_variant *variant, struct wpk_accuracy accuracy, double least)
{
    const struct wpk_structure *s = variant->plan;
    int g = find_largest(variant);
    if (!stays(accuracy, least, wpk_variant_error_least(variant))) {
        return false;
    }
    if (g >= 0 && s->slots[g].sum >= 0) {
        prune_gene(variant, accuracy, least, &variant->genes[s->slots[g].sum]);
    }
    if (g >= 0 && s->slots[g].panel >= 0) {
        prune_gene(variant, accuracy, least, &variant->genes[s->slots[g].panel]);
    }
    return true;
}
