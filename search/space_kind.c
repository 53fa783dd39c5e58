/* SPDX-License-Identifier: Apache-2.0 */
#include "search/space_kind.h"

#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 64
#define LOOKED_AT_MAX 20000 /* candidates, of each variant, before the best are taken */

const struct wpk_space_kind *wpk_space_kind_of(const struct wpk_space *space)
{
    return space->options.target.rules->space;
}

const char *wpk_space_version(const struct wpk_space *space)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    return kind == NULL ? WPK_SPACE_VERSION : kind->version;
}

wpk_err wpk_space_kind_repair(const struct wpk_space *space, struct wpk_rng *rng,
                              struct wpk_candidate *candidate)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    for (int i = 0; i < TRIES_MAX && !kind->legal(space, candidate, NULL); i++) {
        int gene = (int)wpk_rng_below(rng, (uint64_t)variant->gene_count);
        candidate->gene[gene] =
            (uint8_t)wpk_rng_below(rng, (uint64_t)variant->genes[gene].choice_count);
    }
    if (!kind->legal(space, candidate, NULL)) {
        memset(candidate->gene, 0, (size_t)variant->gene_count);
    }
    return kind->legal(space, candidate, NULL) ? WPK_OK : WPK_EEXHAUSTED;
}

/* ---- construction */

struct ranked {
    double seconds;
    struct wpk_candidate candidate;
};

/* Keep the list sorted, the least first; equal ones in the order in which they came. */
static void insert(struct ranked *list, int max, int *count, const struct ranked *one)
{
    int at = *count;
    while (at > 0 && list[at - 1].seconds > one->seconds) {
        at--;
    }
    if (at >= max) {
        return;
    }
    *count += *count < max;
    for (int i = *count - 1; i > at; i--) {
        list[i] = list[i - 1];
    }
    list[at] = *one;
}

/* The next candidate in the order of numbers; false after the last one. */
static bool advance(const struct wpk_variant *variant, struct wpk_candidate *candidate)
{
    for (int i = 0; i < variant->gene_count; i++) {
        if (++candidate->gene[i] < variant->genes[i].choice_count) {
            return true;
        }
        candidate->gene[i] = 0;
    }
    return false;
}

static void rank_variant(const struct wpk_space *space, int v, struct ranked *list, int max,
                         int *count)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    const struct wpk_variant *variant = &space->variants[v];
    struct ranked one = {.candidate.variant = v};
    one.candidate.gene_count = variant->gene_count;
    int looked_at = 0;
    do {
        if (kind->legal(space, &one.candidate, NULL)) {
            one.seconds = kind->bound(space, &one.candidate);
            insert(list, max, count, &one);
        }
    } while (++looked_at < LOOKED_AT_MAX && advance(variant, &one.candidate));
}

wpk_err wpk_space_kind_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                                 int *filled)
{
    struct ranked *list = calloc((size_t)max + 1, sizeof(*list));
    int count = 0;
    if (list == NULL) {
        return WPK_ENOMEM;
    }
    for (int v = 0; v < space->variant_count; v++) {
        rank_variant(space, v, list, max, &count);
    }
    for (int i = 0; i < count; i++) {
        out[i] = list[i].candidate;
    }
    free(list);
    *filled = count;
    return WPK_OK;
}
