/* SPDX-License-Identifier: Apache-2.0 */
#include "search/mask.h"

int wpk_mask_gene(const struct wpk_space *space, const struct wpk_variant *variant, int step)
{
    return space->options.target.rules->gene_at(variant, step);
}

wpk_err wpk_mask_begin(const struct wpk_space *space, int variant, struct wpk_candidate *out)
{
    const struct wpk_variant *v = wpk_space_variant(space, variant);
    if (v == NULL) {
        bool memory = wpk_space_variant_error(space, variant) == WPK_ENOMEM;
        return memory ? WPK_ENOMEM : WPK_EEXHAUSTED;
    }
    struct wpk_candidate made = {.variant = variant, .gene_count = v->gene_count};
    if (!space->options.target.rules->complete(space, -1, &made)) {
        return WPK_EEXHAUSTED;
    }
    *out = made;
    return WPK_OK;
}

int wpk_mask_values(const struct wpk_space *space, const struct wpk_candidate *candidate, int step,
                    bool *allowed)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    int gene = wpk_mask_gene(space, variant, step), count = 0;
    for (int i = 0; i < variant->genes[gene].choice_count; i++) {
        struct wpk_candidate attempt = *candidate;
        attempt.gene[gene] = (uint8_t)i;
        allowed[i] = space->options.target.rules->complete(space, step, &attempt);
        count += allowed[i];
    }
    return count;
}

void wpk_mask_decide(const struct wpk_space *space, struct wpk_candidate *candidate, int step,
                     int choice)
{
    int gene = wpk_mask_gene(space, &space->variants[candidate->variant], step);
    candidate->gene[gene] = (uint8_t)choice;
    bool legal = space->options.target.rules->complete(space, step, candidate);
    WPK_ASSERT(legal);
}
