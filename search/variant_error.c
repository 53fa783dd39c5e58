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

static double product(const struct wpk_stage *stage, int first)
{
    double all = 1;
    for (int a = first; a < stage->axis_count; a++) {
        all *= (double)stage->axes[a].extent;
    }
    return all;
}

static double share_of(const struct wpk_variant *variant, const struct wpk_group *group,
                       int64_t block)
{
    const struct wpk_stage *stage = wpk_contraction_of(variant, group);
    if (stage == NULL || block == WPK_GENE_ALL) {
        return 1;
    }
    int axis = wpk_largest_reduction(stage, group->member[group->contraction].literal);
    double blocks = (double)stage->axes[axis].extent / (double)block;
    return 1 / blocks + blocks / product(stage, stage->rank);
}

double wpk_variant_error(const struct wpk_variant *variant, int g, int64_t block)
{
    const struct wpk_structure *s = variant->plan;
    int site = s->site_of[g];
    double sums = site < 0 ? 1 : variant->error_sums[site];
    double rest = site < 0 ? 0 : variant->error_rest[site];
    return sqrt(sums * sums * share_of(variant, &s->plan.group[g], block) + rest * rest);
}

static struct wpk_gene *sum_gene(const struct wpk_variant *variant, int g)
{
    const struct wpk_structure *s = variant->plan;
    return s->slots[g].sum < 0 ? NULL : &variant->genes[s->slots[g].sum];
}

double wpk_variant_error_least(const struct wpk_variant *variant)
{
    const struct wpk_structure *s = variant->plan;
    bool grouped[WPK_SITES_MAX] = {false};
    double worst = 0;
    for (int g = 0; g < s->plan.group_count; g++) {
        if (s->plan.group[g].contraction < 0) {
            continue; /* it adds nothing up */
        }
        const struct wpk_gene *gene = sum_gene(variant, g);
        double least = wpk_variant_error(variant, g, WPK_GENE_ALL);
        for (int i = 0; gene != NULL && i < gene->choice_count; i++) {
            double error = wpk_variant_error(variant, g, gene->choice[i].value);
            least = i == 0 || error < least ? error : least;
        }
        worst = least > worst ? least : worst;
        if (s->site_of[g] >= 0) {
            grouped[s->site_of[g]] = true;
        }
    }
    for (int i = 0; i < WPK_SITES_MAX; i++) { /* its sums are not those that a gene decides */
        double error = grouped[i] ? 0 : hypot(variant->error_sums[i], variant->error_rest[i]);
        worst = error > worst ? error : worst;
    }
    return worst > 0 ? worst : 1;
}

/* `least`: the error of the most accurate. */
static bool stays(struct wpk_accuracy accuracy, double least, double error)
{
    return error <= least || wpk_accuracy_admits(accuracy, error);
}

/* Keep the choices that are accurate enough, and no panels: `sum` decides then. */
static void prune_gene(struct wpk_variant *variant, int g, int slot, struct wpk_accuracy accuracy,
                       double least)
{
    struct wpk_gene *gene = slot < 0 ? NULL : &variant->genes[slot];
    for (int i = gene == NULL ? -1 : gene->choice_count - 1; i >= 0; i--) {
        int64_t value = gene->choice[i].value;
        if ((!gene->optional || value != WPK_GENE_ALL) &&
            !stays(accuracy, least, wpk_variant_error(variant, g, value))) {
            wpk_gene_remove(gene, i);
        }
    }
    WPK_ASSERT(gene == NULL || gene->choice_count > 0);
}

bool wpk_variant_prune(struct wpk_variant *variant, struct wpk_accuracy accuracy, double least)
{
    const struct wpk_structure *s = variant->plan;
    if (!stays(accuracy, least, wpk_variant_error_least(variant))) {
        return false;
    }
    for (int g = 0; g < s->plan.group_count; g++) {
        prune_gene(variant, g, s->slots[g].sum, accuracy, least);
        prune_gene(variant, g, s->slots[g].panel, accuracy, least);
    }
    return true;
}
