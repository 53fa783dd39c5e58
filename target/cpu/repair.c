/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a candidate until it keeps the rules of legal.c. */
#include "target/cpu/rules.h"

#define GROUP_TRIES_MAX 400

static void redraw(const struct wpk_variant *variant, struct wpk_rng *rng, int gene,
                   struct wpk_candidate *candidate)
{
    if (gene >= 0) {
        candidate->gene[gene] =
            (uint8_t)wpk_rng_below(rng, (uint64_t)variant->genes[gene].choice_count);
    }
}

/* Redraw one of the genes that the group's rules are about. */
static void redraw_one(const struct wpk_variant *variant, struct wpk_rng *rng, int g,
                       struct wpk_candidate *candidate)
{
    const struct wpk_structure *structure = variant->plan;
    const struct wpk_slots *slots = &structure->slots[g];
    int genes[WPK_RANK_MAX + 8], count = 0;
    const int single[] = {slots->lanes, slots->vec,   slots->unroll, slots->split,
                          slots->sum,   slots->panel, slots->tail,   slots->dot};
    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
        if (single[i] >= 0) {
            genes[count++] = single[i];
        }
    }
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        if (slots->tile[a] >= 0) {
            genes[count++] = slots->tile[a];
        }
    }
    redraw(variant, rng, genes[wpk_rng_below(rng, (uint64_t)count)], candidate);
}

/* Most draws break one rule: bring the vector axis's tile to the nearest whole vectors. */
static void align_tile(const struct wpk_variant *variant, int g, struct wpk_candidate *candidate)
{
    const struct wpk_structure *structure = variant->plan;
    struct wpk_decisions d;
    wpk_genes_read(variant, candidate, g, &d);
    int slot = d.vec < 0 ? -1 : structure->slots[g].tile[d.vec];
    if (slot < 0) {
        return;
    }
    const struct wpk_gene *gene = &variant->genes[slot];
    int at = candidate->gene[slot];
    for (int distance = 0; distance < gene->choice_count; distance++) {
        for (int side = -1; side <= 1; side += 2) {
            int choice = at + side * distance;
            if (choice >= 0 && choice < gene->choice_count &&
                gene->choice[choice].value % d.lanes == 0) {
                candidate->gene[slot] = (uint8_t)choice;
                return;
            }
        }
    }
}

/* The least that can be asked for: one vector, no other tile, nothing unrolled, no panels. */
static bool shrink_group(const struct wpk_space *space, int g, struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    const struct wpk_slots *slots = &structure->slots[g];
    struct wpk_candidate attempt = *candidate;
    for (int a = 0; a < WPK_RANK_MAX; a++) {
        if (slots->tile[a] >= 0) {
            attempt.gene[slots->tile[a]] = 0;
        }
    }
    if (slots->unroll >= 0) {
        attempt.gene[slots->unroll] = 0;
    }
    wpk_genes_set(variant, slots->dot, WPK_GENE_ALL, &attempt);
    wpk_genes_set(variant, slots->tail, WPK_GENE_ALL, &attempt);
    if (slots->panel >= 0) {
        attempt.gene[slots->panel] = (uint8_t)(variant->genes[slots->panel].choice_count - 1);
    }
    for (int v = 0; v < variant->genes[slots->vec].choice_count; v++) {
        for (int n = 0; n < variant->genes[slots->lanes].choice_count; n++) {
            struct wpk_candidate small = attempt;
            small.gene[slots->vec] = (uint8_t)v;
            small.gene[slots->lanes] = (uint8_t)n;
            align_tile(variant, g, &small);
            if (wpk_cpu_is_legal_group(space, g, &small, NULL)) {
                *candidate = small;
                return true;
            }
        }
    }
    return false;
}

static bool repair_group(const struct wpk_space *space, struct wpk_rng *rng, int g,
                         struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    if (wpk_cpu_is_legal_group(space, g, candidate, NULL)) {
        return true;
    }
    align_tile(variant, g, candidate);
    struct wpk_candidate attempt = *candidate;
    for (int tries = 0; tries < GROUP_TRIES_MAX; tries++) {
        if (wpk_cpu_is_legal_group(space, g, &attempt, NULL)) {
            *candidate = attempt;
            return true;
        }
        if (tries % 8 == 7) {
            attempt = *candidate; /* walked too far: start again near the parent */
        }
        redraw_one(variant, rng, g, &attempt);
        align_tile(variant, g, &attempt);
    }
    return shrink_group(space, g, candidate);
}

/* Where a group is computed is repaired by trying its other places, root being always right. */
static void repair_placement(const struct wpk_space *space, struct wpk_rng *rng,
                             struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    for (int tries = 0; tries < 2 * WPK_GROUPS_MAX; tries++) {
        if (wpk_placement_is_legal(variant, &space->options, candidate, NULL)) {
            return;
        }
        int g = (int)wpk_rng_below(rng, (uint64_t)structure->plan.group_count);
        redraw(variant, rng, structure->slots[g].at, candidate);
    }
    for (int g = 0; g < structure->plan.group_count; g++) {
        if (structure->slots[g].at >= 0) {
            candidate->gene[structure->slots[g].at] = 0;
        }
    }
}

wpk_err wpk_cpu_repair(const struct wpk_space *space, struct wpk_rng *rng,
                       struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    for (int g = 0; g < structure->plan.group_count; g++) {
        if (!repair_group(space, rng, g, candidate)) {
            return WPK_EEXHAUSTED;
        }
    }
    repair_placement(space, rng, candidate);
    if (!wpk_back_end_is_legal(variant, candidate, NULL)) {
        wpk_genes_set_back_end(variant, WPK_BACK_END_c, candidate);
    }
    /* A place that was redrawn may break a rule of its group. */
    return wpk_space_is_legal(space, candidate) ? WPK_OK : WPK_EEXHAUSTED;
}
