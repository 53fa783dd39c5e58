/* SPDX-License-Identifier: Apache-2.0 */
#include "search/transfer.h"

#include "search/genes.h"

/* The rule that it breaks; NULL when it breaks none. */
static const char *broken_rule(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    const char *why = NULL;
    for (int g = 0; g < structure->plan.group_count; g++) {
        struct wpk_decisions decisions;
        wpk_genes_read(variant, candidate, g, &decisions);
        if (!wpk_group_is_legal(variant, &space->options, g, &decisions, &why)) {
            return why;
        }
    }
    return wpk_placement_is_legal(variant, &space->options, candidate, &why) ? NULL : why;
}

wpk_err wpk_space_fits(const struct wpk_space *space, const char *candidate,
                       struct wpk_candidate *out, struct wpk_diag *diag)
{
    struct wpk_candidate read;
    if (wpk_candidate_decode(space, candidate, &read, diag) != WPK_OK) {
        return WPK_EMISMATCH;
    }
    const char *why = broken_rule(space, &read);
    if (why != NULL) {
        wpk_diag_set(diag, "%s", why);
        return WPK_EMISMATCH;
    }
    if (out != NULL) {
        *out = read;
    }
    return WPK_OK;
}
