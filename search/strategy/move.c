/* SPDX-License-Identifier: Apache-2.0 */
#include "search/strategy/move.h"

#include <string.h>

#define STEP_RATE 0.7 /* ordered genes: a step to a neighbour, else any value */
#define ONE_TRIES 24  /* changes of one gene */
#define SOME_TRIES 24 /* changes of several, repaired */

static void move_gene(struct wpk_rng *rng, const struct wpk_gene *gene, uint8_t *value)
{
    int count = gene->choice_count;
    if (gene->ordered && wpk_rng_chance(rng, STEP_RATE)) {
        bool up = *value == 0 || (*value + 1 < count && wpk_rng_chance(rng, 0.5));
        *value = (uint8_t)(up ? *value + 1 : *value - 1);
        return;
    }
    int drawn = (int)wpk_rng_below(rng, (uint64_t)count - 1); /* any but the present one */
    *value = (uint8_t)(drawn < *value ? drawn : drawn + 1);
}

bool wpk_move_one(const struct wpk_space *space, struct wpk_rng *rng,
                  struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    int open[WPK_GENES_MAX], count = 0;
    for (int g = 0; g < variant->gene_count; g++) {
        if (variant->genes[g].choice_count > 1) {
            open[count++] = g;
        }
    }
    if (count == 0) {
        return false;
    }
    int g = open[wpk_rng_below(rng, (uint64_t)count)];
    move_gene(rng, &variant->genes[g], &candidate->gene[g]);
    return true;
}

void wpk_move_some(const struct wpk_space *space, struct wpk_rng *rng,
                   struct wpk_candidate *candidate)
{
    while (wpk_move_one(space, rng, candidate) && wpk_rng_chance(rng, 0.5)) {
    }
}

static int find_gene(const struct wpk_variant *variant, const char *name)
{
    for (int g = 0; g < variant->gene_count; g++) {
        if (strcmp(variant->genes[g].name, name) == 0) {
            return g;
        }
    }
    return -1;
}

/* The choice of `gene` that reads as `text`; -1 when it has none. */
static int find_choice(const struct wpk_gene *gene, const char *text)
{
    for (int c = 0; c < gene->choice_count; c++) {
        if (strcmp(gene->choice[c].text, text) == 0) {
            return c;
        }
    }
    return -1;
}

void wpk_move_cross(const struct wpk_space *space, struct wpk_rng *rng,
                    const struct wpk_candidate *first, const struct wpk_candidate *second,
                    struct wpk_candidate *child)
{
    const struct wpk_variant *to = &space->variants[first->variant];
    const struct wpk_variant *from = &space->variants[second->variant];
    *child = *first;
    for (int g = 0; g < to->gene_count; g++) {
        if (!wpk_rng_chance(rng, 0.5)) {
            continue;
        }
        int source = to == from ? g : find_gene(from, to->genes[g].name);
        if (source < 0) {
            continue;
        }
        int choice =
            find_choice(&to->genes[g], from->genes[source].choice[second->gene[source]].text);
        if (choice >= 0) {
            child->gene[g] = (uint8_t)choice;
        }
    }
}

wpk_err wpk_move_neighbour(const struct wpk_space *space, const struct wpk_seen *seen,
                           struct wpk_rng *rng, const struct wpk_candidate *from,
                           struct wpk_candidate *out)
{
    for (int i = 0; i < ONE_TRIES + SOME_TRIES; i++) {
        struct wpk_candidate one = *from;
        wpk_err err = WPK_OK;
        if (i < ONE_TRIES) {
            err = wpk_move_one(space, rng, &one) && wpk_space_is_legal(space, &one)
                      ? WPK_OK
                      : WPK_EEXHAUSTED;
        } else {
            wpk_move_some(space, rng, &one);
            err = wpk_space_repair(space, rng, &one);
        }
        if (err == WPK_OK && !wpk_seen_has(seen, space, &one)) {
            *out = one;
            return WPK_OK;
        }
    }
    return WPK_EEXHAUSTED;
}
