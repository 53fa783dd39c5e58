/* SPDX-License-Identifier: Apache-2.0 */
/* The genes of a variant are in groups, whose rules and ranks do not depend on one another. A group
 * has few genes: its candidates are repaired and constructed by asking which of them are legal. The
 * first choice of every gene together is a legal candidate. The gene of the back end is in no
 * group: rules may ask for it, ranks do not. */
#include "target/gpu/space/space.h"

#include "search/genes.h"
#include "target/gpu/space/template.h"

#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 64
#define SPLITS_MAX 8         /* of a group */
#define KEPT_MAX 128         /* algorithms, layouts and splits, of constructed candidates */
#define LOOKED_AT_MAX 600000 /* candidates, of each variant, before the best are taken */
#define BACK_END_AT 7        /* constructed candidates before one of another back end */

static int group_count(const struct wpk_space *space, int variant)
{
    return wpk_cuda_kept_of(&space->variants[variant])->groups.count;
}

bool wpk_cuda_are_legal(const struct wpk_space *space, const struct wpk_candidate *candidate,
                        const char **why)
{
    bool legal = true;
    for (int g = 0; g < group_count(space, candidate->variant) && legal; g++) {
        legal = wpk_cuda_is_legal(space, candidate, g, why);
    }
    return legal;
}

wpk_err wpk_cuda_bound_all(const struct wpk_space *space, const struct wpk_candidate *candidate,
                           double *seconds)
{
    *seconds = 0;
    for (int g = 0; g < group_count(space, candidate->variant); g++) {
        *seconds += wpk_cuda_bound(space, candidate, g);
    }
    return WPK_OK;
}

int wpk_cuda_guess_genes(const struct wpk_space *space, int number, struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    const struct wpk_cuda_group *group = &kept->groups.group[number];
    const struct wpk_cuda_guessed_genes *genes = &kept->guessed[number];
    struct wpk_cuda_tiles t = {0};
    if (genes->count == 0) {
        return 0;
    }
    wpk_cuda_tiles_read(variant, candidate, number, &t);
    wpk_cuda_guess(&variant->program.stages[group->root], group, &t);
    for (int i = 0; i < 2; i++) {
        wpk_genes_set(variant, genes->padding[i], t.padding[i], candidate);
        wpk_genes_set(variant, genes->virtual_threads[i], t.virtual_threads[i], candidate);
    }
    wpk_genes_set(variant, genes->unroll, t.unrolled, candidate);
    wpk_genes_set(variant, genes->copies, t.async, candidate);
    return genes->count;
}

/* True if the group is legal as it is, or else with its last genes guessed; the guess is then
 * kept. */
static bool is_legal_guessed(const struct wpk_space *space, int g, struct wpk_candidate *candidate)
{
    if (wpk_cuda_is_legal(space, candidate, g, NULL)) {
        return true;
    }
    struct wpk_candidate attempt = *candidate;
    bool legal =
        wpk_cuda_guess_genes(space, g, &attempt) > 0 && wpk_cuda_is_legal(space, &attempt, g, NULL);
    *candidate = legal ? attempt : *candidate;
    return legal;
}

static bool repair_group(const struct wpk_space *space, struct wpk_rng *rng, int g,
                         struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    int first = kept->first[g], count = kept->first[g + 1] - first;
    int drawn = count - kept->guessed[g].count;
    bool legal = is_legal_guessed(space, g, candidate);
    for (int i = 0; i < TRIES_MAX && !legal; i++) {
        int gene = first + (int)wpk_rng_below(rng, (uint64_t)drawn);
        candidate->gene[gene] =
            (uint8_t)wpk_rng_below(rng, (uint64_t)variant->genes[gene].choice_count);
        legal = is_legal_guessed(space, g, candidate);
    }
    if (!legal) {
        memset(&candidate->gene[first], 0, (size_t)count);
    }
    return wpk_cuda_is_legal(space, candidate, g, NULL);
}

static bool repair_groups(const struct wpk_space *space, struct wpk_rng *rng,
                          struct wpk_candidate *candidate)
{
    bool legal = true;
    for (int g = 0; g < group_count(space, candidate->variant); g++) {
        legal = repair_group(space, rng, g, candidate) && legal;
    }
    return legal;
}

wpk_err wpk_cuda_repair(const struct wpk_space *space, struct wpk_rng *rng,
                        struct wpk_candidate *candidate)
{
    const struct wpk_structure *structure = space->variants[candidate->variant].plan;
    struct wpk_candidate given = *candidate;
    bool legal = repair_groups(space, rng, candidate);
    if (!legal && structure->by >= 0 && given.gene[structure->by] > 0) {
        *candidate = given;
        candidate->gene[structure->by] = 0;
        legal = repair_groups(space, rng, candidate);
    }
    return legal ? WPK_OK : WPK_EEXHAUSTED;
}

/* ---- construction
 *
 * Each group's decisions are ranked alone. The first candidate has the best of each group; each
 * further one has the next best of one group. The best candidates of each algorithm and of each
 * split have places whatever their ranks: ranks compare the sizes of one algorithm better than
 * algorithms, and know little of what blocks wait for one another. */

struct ranked {
    double seconds;
    int64_t split;
    struct wpk_candidate candidate, settled;
};

/* The best, the least seconds first; the best of each split, in the order in which they came. */
struct ranking {
    const struct wpk_space *space;
    struct ranked *list;
    int max, count;
    struct ranked split[SPLITS_MAX];
    int split_count;
};

/* Leave out the one of the list that is the same kernel; false: it is before number `at`. */
static bool drop_same(struct ranking *r, int at, const struct ranked *one)
{
    int same = 0;
    while (same < r->count && !wpk_candidate_equal(&r->list[same].settled, &one->settled)) {
        same++;
    }
    if (same < r->count && same >= at) {
        r->count--;
        memmove(&r->list[same], &r->list[same + 1], (size_t)(r->count - same) * sizeof(*r->list));
    }
    return same >= at;
}

/* Keep the list sorted, the least first; equal ones in the order in which they came. Of a kernel it
 * has the first candidate of the least seconds. */
static void insert(struct ranking *r, struct ranked *one)
{
    int at = r->count;
    while (at > 0 && r->list[at - 1].seconds > one->seconds) {
        at--;
    }
    if (at >= r->max) {
        return;
    }
    one->settled = one->candidate;
    wpk_cuda_settle(r->space, &one->settled);
    if (!drop_same(r, at, one)) {
        return;
    }
    r->count += r->count < r->max;
    for (int i = r->count - 1; i > at; i--) {
        r->list[i] = r->list[i - 1];
    }
    r->list[at] = *one;
}

/* The blocks that share the terms of the group's reduction. 1: none do */
static int64_t split_of(const struct wpk_space *space, const struct wpk_candidate *candidate, int g)
{
    struct wpk_cuda_tiles t;
    wpk_cuda_tiles_read(&space->variants[candidate->variant], candidate, g, &t);
    return t.parts;
}

static void rank(struct ranking *r, int g, struct ranked *one)
{
    if (wpk_cuda_is_legal(r->space, &one->candidate, g, NULL)) {
        one->seconds = wpk_cuda_bound(r->space, &one->candidate, g);
        one->split = split_of(r->space, &one->candidate, g);
        insert(r, one);
        int i = 0;
        while (i < r->split_count && r->split[i].split != one->split) {
            i++;
        }
        if (i < SPLITS_MAX && (i == r->split_count || one->seconds < r->split[i].seconds)) {
            r->split_count += i == r->split_count;
            r->split[i] = *one;
        }
    }
}

/* Beside each of the list: every value of each of the group's last genes, which were guessed.
 *   shape  scratch [max] */
static void rank_guessed(struct ranking *r, int g, int first, int genes, struct ranked *scratch)
{
    int found = r->count;
    memcpy(scratch, r->list, (size_t)found * sizeof(*scratch));
    for (int i = 0; i < found * genes; i++) {
        const struct ranked *base = &scratch[i / genes];
        int gene = first + i % genes;
        int choices = r->space->variants[base->candidate.variant].genes[gene].choice_count;
        for (int choice = 0; choice < choices; choice++) {
            struct ranked one = *base;
            one.candidate.gene[gene] = (uint8_t)choice;
            rank(r, g, &one);
        }
    }
}

/* The group's best decisions, in candidates whose other genes are those of `base`.
 *   shape  scratch [r->max] */
static void rank_group(struct ranking *r, int g, const struct wpk_candidate *base,
                       struct ranked *scratch)
{
    const struct wpk_variant *variant = &r->space->variants[base->variant];
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    struct ranked one = {.candidate = *base};
    int first = kept->first[g], looked_at = 0,
        guessed = wpk_cuda_guess_genes(r->space, g, &one.candidate);
    int ranked = kept->first[g + 1] - first - guessed, skipped = 0;
    r->count = r->split_count = 0;
    do {
        skipped = wpk_cuda_skip(r->space, &one.candidate, g);
        if (skipped == 0) {
            (void)wpk_cuda_guess_genes(r->space, g, &one.candidate);
            rank(r, g, &one);
            looked_at++;
        }
    } while (looked_at < LOOKED_AT_MAX &&
             wpk_cuda_advance(variant, first + skipped, ranked - skipped, &one.candidate));
    rank_guessed(r, g, first + ranked, guessed, scratch);
}

/* The best decisions of all groups, beside the genes of `best`; false: some group has none.
 *   shape  scratch [2] */
static bool find_best(const struct wpk_space *space, struct ranked *scratch, struct ranked *best)
{
    struct ranking r = {.space = space, .list = scratch, .max = 1};
    bool found = true;
    for (int g = 0; g < group_count(space, best->candidate.variant) && found; g++) {
        rank_group(&r, g, &best->candidate, scratch + 1);
        found = r.count > 0;
        best->candidate = found ? scratch[0].candidate : best->candidate;
    }
    return found;
}

/* Variants of one layout with the same rewriting at each site differ in its sizes. */
static bool are_of_one_algorithm(const struct wpk_space *space, const struct ranked *a,
                                 const struct ranked *b)
{
    const struct wpk_variant *first = &space->variants[a->candidate.variant];
    const struct wpk_variant *second = &space->variants[b->candidate.variant];
    bool same = strcmp(first->layout, second->layout) == 0;
    for (int i = 0; i < space->sites->count; i++) {
        const struct wpk_site_choice *choice = space->sites->site[i].choice;
        same = same && choice[first->choice[i]].rewriting == choice[second->choice[i]].rewriting;
    }
    return same;
}

/* The number of the list's first candidate of this algorithm, and if `split` of this split; the
 * list's count if there is none. */
static int find_like(const struct wpk_space *space, const struct ranked *list, int count,
                     const struct ranked *one, bool split)
{
    int i = 0;
    while (i < count && !(are_of_one_algorithm(space, &list[i], one) &&
                          (!split || list[i].split == one->split))) {
        i++;
    }
    return i;
}

/* The best of each algorithm and split, in the order of their algorithms. */
struct kept {
    struct ranked best[KEPT_MAX];
    int count;
};

/* Set the seconds and the split of the whole candidate: the most blocks of its groups that share
 * terms. */
static void measure(const struct wpk_space *space, struct ranked *one)
{
    (void)wpk_cuda_bound_all(space, &one->candidate, &one->seconds);
    one->settled = one->candidate;
    wpk_cuda_settle(space, &one->settled);
    one->split = 1;
    for (int g = 0; g < group_count(space, one->candidate.variant); g++) {
        int64_t split = split_of(space, &one->settled, g);
        one->split = split > one->split ? split : one->split;
    }
}

/* Insert the variant's candidates, and keep the best of its splits.
 *   shape  scratch [2 * r->max] */
static void rank_variant(struct ranking *r, int v, struct ranked *scratch, struct kept *kept)
{
    const struct wpk_space *space = r->space;
    const struct wpk_variant *variant = &space->variants[v];
    struct ranked best = {.candidate = {.variant = v, .gene_count = variant->gene_count}};
    struct ranking group = {.space = space, .list = scratch, .max = r->max};
    (void)find_best(space, scratch, &best);
    for (int g = 0; g < group_count(space, v); g++) {
        rank_group(&group, g, &best.candidate, scratch + r->max);
        for (int i = 0; i < group.count + group.split_count; i++) {
            struct ranked *one = i < group.count ? &scratch[i] : &group.split[i - group.count];
            measure(space, one);
            if (i < group.count && (i > 0 || g == 0)) {
                insert(r, one);
            }
            int same = find_like(space, kept->best, kept->count, one, true);
            if (same < kept->count && one->seconds < kept->best[same].seconds) {
                kept->best[same] = *one;
            } else if (same == kept->count && same < KEPT_MAX) {
                kept->best[kept->count++] = *one;
            }
        }
    }
}

/* The best of those kept that the list lacks takes the last free place; false: there is none. */
static bool place_best(const struct wpk_space *space, const struct kept *kept, bool split,
                       struct ranking *r, int *placed)
{
    int best = -1;
    for (int i = 0; i < kept->count; i++) {
        bool lacks = find_like(space, r->list, r->count, &kept->best[i], split) == r->count;
        if (lacks && (best < 0 || kept->best[i].seconds < kept->best[best].seconds)) {
            best = i;
        }
    }
    if (best >= 0) {
        int at = r->count < r->max ? r->count++ : r->max - 1 - (*placed)++;
        r->list[at] = kept->best[best];
    }
    return best >= 0;
}

/* Each other back end's best candidate of the first one's variant, behind the first few.
 *   shape  scratch [2], r->list [r->count + others] */
static void place_back_ends(struct ranking *r, int others, struct ranked *scratch)
{
    const struct wpk_space *space = r->space;
    const struct wpk_variant *variant = &space->variants[r->list[0].candidate.variant];
    const struct wpk_structure *structure = variant->plan;
    for (int i = 1; i <= others; i++) {
        int at = r->count < BACK_END_AT ? r->count : BACK_END_AT;
        struct ranked best = {.candidate = {.variant = r->list[0].candidate.variant,
                                            .gene_count = variant->gene_count}};
        best.candidate.gene[structure->by] = (uint8_t)i;
        if (find_best(space, scratch, &best)) {
            memmove(&r->list[at + 1], &r->list[at], (size_t)(r->count++ - at) * sizeof(*r->list));
            r->list[at] = best;
        }
    }
}

wpk_err wpk_cuda_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                           int *filled)
{
    struct ranked *list = calloc(3 * (size_t)max + 3, sizeof(*list)), *scratch = list + max + 1;
    struct kept *kept = calloc(1, sizeof(*kept));
    struct ranking r = {.space = space, .list = list, .max = max};
    int others = 0;
    if (list == NULL || kept == NULL) {
        free(list);
        free(kept);
        return WPK_ENOMEM;
    }
    for (int v = 0; v < space->variant_count; v++) {
        if (wpk_space_variant(space, v) != NULL) {
            rank_variant(&r, v, scratch, kept);
        }
    }
    if (r.count > 0) {
        /* The other back ends of the space. */
        const struct wpk_variant *variant = &space->variants[list[0].candidate.variant];
        const struct wpk_structure *structure = variant->plan;
        others = structure->by < 0 ? 0 : variant->genes[structure->by].choice_count - 1;
        others = others < max ? others : max - 1;
        r.max = max - others;
        r.count = r.count < r.max ? r.count : r.max;
    }
    /* Algorithms that the list lacks take the last places, the best ones the last; then splits. */
    int placed = 0;
    while (placed < r.max - 1 && place_best(space, kept, false, &r, &placed)) {
    }
    while (placed < r.max / 2 && place_best(space, kept, true, &r, &placed)) {
    }
    if (others > 0) {
        place_back_ends(&r, others, scratch);
    }
    for (int i = 0; i < r.count; i++) {
        out[i] = list[i].candidate;
    }
    *filled = r.count;
    free(list);
    free(kept);
    return WPK_OK;
}
