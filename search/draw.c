/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates of a space: their version, and those that are legal, constructed, drawn, repaired. */
#include "search/space.h"

const char *wpk_space_version(const struct wpk_space *space)
{
    return space->options.target.rules->version;
}

bool wpk_space_is_legal(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    return space->options.target.rules->legal(space, candidate, NULL);
}

wpk_err wpk_space_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                            int *filled)
{
    return space->options.target.rules->construct(space, out, max, filled);
}

wpk_err wpk_space_repair(const struct wpk_space *space, struct wpk_rng *rng,
                         struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    for (int i = 0; i < variant->gene_count; i++) {
        if (candidate->gene[i] >= variant->genes[i].choice_count) {
            candidate->gene[i] = 0;
        }
    }
    return space->options.target.rules->repair(space, rng, candidate);
}

wpk_err wpk_space_draw_of(const struct wpk_space *space, struct wpk_rng *rng, int v,
                          struct wpk_candidate *out)
{
    const struct wpk_variant *variant = &space->variants[v];
    struct wpk_candidate drawn = {.variant = v, .gene_count = variant->gene_count};
    for (int i = 0; i < variant->gene_count; i++) {
        drawn.gene[i] = (uint8_t)wpk_rng_below(rng, (uint64_t)variant->genes[i].choice_count);
    }
    wpk_err err = wpk_space_repair(space, rng, &drawn);
    if (err == WPK_OK) {
        *out = drawn;
    }
    return err;
}

wpk_err wpk_space_draw(const struct wpk_space *space, struct wpk_rng *rng,
                       struct wpk_candidate *out)
{
    for (int tries = 0; tries < WPK_REPAIR_TRIES_MAX; tries++) {
        int v = (int)wpk_rng_below(rng, (uint64_t)space->variant_count);
        for (int i = 0; i < space->variant_count && wpk_space_variant(space, v) == NULL; i++) {
            if (wpk_space_variant_error(space, v) == WPK_ENOMEM) {
                return WPK_ENOMEM;
            }
            v = (v + 1) % space->variant_count;
        }
        if (wpk_space_draw_of(space, rng, v, out) == WPK_OK) {
            return WPK_OK;
        }
    }
    return WPK_EEXHAUSTED;
}
