/* SPDX-License-Identifier: Apache-2.0 */
#include "search/space_kind.h"

#include "search/genes.h"
#include "search/variant.h"

#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 64
#define ALGORITHMS_MAX 32    /* that have a place among constructed candidates */
#define LOOKED_AT_MAX 600000 /* candidates, of each variant, before the best are taken */
#define BACK_END_AT 7        /* constructed candidates before one of another back end */

const struct wpk_space_kind *wpk_space_kind_of(const struct wpk_space *space)
{
    return space->options.target.rules->space;
}

bool wpk_space_kind_is_legal(const struct wpk_space *space, const struct wpk_candidate *candidate,
                             const char **why)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    int parts = kind->part_count(&space->variants[candidate->variant]);
    bool legal = true;
    for (int p = 0; p < parts && legal; p++) {
        legal = kind->legal(space, candidate, p, why);
    }
    return legal;
}

double wpk_space_kind_bound(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    int parts = kind->part_count(&space->variants[candidate->variant]);
    double seconds = 0;
    for (int p = 0; p < parts; p++) {
        seconds += kind->bound(space, candidate, p);
    }
    return seconds;
}

/* Is the part legal as it is, or else with its last genes guessed? These are kept then. */
static bool is_legal_guessed(const struct wpk_space *space, int part,
                             struct wpk_candidate *candidate)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    if (kind->legal(space, candidate, part, NULL)) {
        return true;
    }
    struct wpk_candidate attempt = *candidate;
    bool legal = kind->guess(space, part, &attempt) > 0 && kind->legal(space, &attempt, part, NULL);
    *candidate = legal ? attempt : *candidate;
    return legal;
}

static bool repair_part(const struct wpk_space *space, struct wpk_rng *rng, int part,
                        struct wpk_candidate *candidate)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    struct wpk_candidate unused = *candidate;
    int first, count, guessed = kind->guess(space, part, &unused);
    kind->part(variant, part, &first, &count);
    bool legal = is_legal_guessed(space, part, candidate);
    for (int i = 0; i < TRIES_MAX && !legal; i++) {
        int gene = first + (int)wpk_rng_below(rng, (uint64_t)(count - guessed));
        candidate->gene[gene] =
            (uint8_t)wpk_rng_below(rng, (uint64_t)variant->genes[gene].choice_count);
        legal = is_legal_guessed(space, part, candidate);
    }
    if (!legal) {
        memset(&candidate->gene[first], 0, (size_t)count);
    }
    return kind->legal(space, candidate, part, NULL);
}

static bool repair_parts(const struct wpk_space *space, struct wpk_rng *rng,
                         struct wpk_candidate *candidate)
{
    int parts = wpk_space_kind_of(space)->part_count(&space->variants[candidate->variant]);
    bool legal = true;
    for (int p = 0; p < parts; p++) {
        legal = repair_part(space, rng, p, candidate) && legal;
    }
    return legal;
}

wpk_err wpk_space_kind_repair(const struct wpk_space *space, struct wpk_rng *rng,
                              struct wpk_candidate *candidate)
{
    const struct wpk_structure *structure = space->variants[candidate->variant].plan;
    struct wpk_candidate given = *candidate;
    bool legal = repair_parts(space, rng, candidate);
    if (!legal && structure->by >= 0 && given.gene[structure->by] > 0) {
        *candidate = given;
        candidate->gene[structure->by] = 0;
        legal = repair_parts(space, rng, candidate);
    }
    return legal ? WPK_OK : WPK_EEXHAUSTED;
}

/* ---- construction
 *
 * Each part's decisions are ranked alone. The first candidate has the best of each part; each
 * further one has the next best of one part. The best candidate of each algorithm has a place
 * whatever its rank: ranks compare the sizes of one algorithm better than algorithms. */

struct ranked {
    double seconds;
    struct wpk_candidate candidate, settled;
};

/* Leave out the one of the list that is the same kernel; false: it is before number `at`. */
static bool drop_same(struct ranked *list, int at, int *count, const struct ranked *one)
{
    int same = 0;
    while (same < *count && !wpk_candidate_equal(&list[same].settled, &one->settled)) {
        same++;
    }
    if (same < *count && same >= at) {
        memmove(&list[same], &list[same + 1], (size_t)(--*count - same) * sizeof(*list));
    }
    return same >= at;
}

/* Keep the list sorted, the least first; equal ones in the order in which they came. Of a kernel it
 * has the first candidate of the least seconds. */
static void insert(const struct wpk_space *space, struct ranked *list, int max, int *count,
                   struct ranked *one)
{
    int at = *count;
    while (at > 0 && list[at - 1].seconds > one->seconds) {
        at--;
    }
    if (at >= max) {
        return;
    }
    one->settled = one->candidate;
    wpk_space_kind_of(space)->settle(space, &one->settled);
    if (!drop_same(list, at, count, one)) {
        return;
    }
    *count += *count < max;
    for (int i = *count - 1; i > at; i--) {
        list[i] = list[i - 1];
    }
    list[at] = *one;
}

/* The next decisions of a part in the order of numbers; false after the last ones. */
static bool advance(const struct wpk_variant *variant, int first, int count,
                    struct wpk_candidate *candidate)
{
    for (int i = first; i < first + count; i++) {
        if (++candidate->gene[i] < variant->genes[i].choice_count) {
            return true;
        }
        candidate->gene[i] = 0;
    }
    return false;
}

static void rank(const struct wpk_space *space, int part, struct ranked *one, struct ranked *list,
                 int max, int *count)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    if (kind->legal(space, &one->candidate, part, NULL)) {
        one->seconds = kind->bound(space, &one->candidate, part);
        insert(space, list, max, count, one);
    }
}

/* Beside each of the list: all values of the part's last genes, which were guessed.
 *   shape  scratch [max] */
static void rank_guessed(const struct wpk_space *space, int part, int first, int genes,
                         struct ranked *scratch, struct ranked *list, int max, int *count)
{
    int found = *count;
    memcpy(scratch, list, (size_t)found * sizeof(*list));
    for (int i = 0; i < found; i++) {
        struct ranked one = scratch[i];
        memset(&one.candidate.gene[first], 0, (size_t)genes);
        do {
            rank(space, part, &one, list, max, count);
        } while (advance(&space->variants[one.candidate.variant], first, genes, &one.candidate));
    }
}

/* The part's best decisions, in candidates whose other genes are those of `base`.
 *   shape  scratch, list [max] */
static void rank_part(const struct wpk_space *space, int part, const struct wpk_candidate *base,
                      struct ranked *scratch, struct ranked *list, int max, int *count)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    const struct wpk_variant *variant = &space->variants[base->variant];
    struct ranked one = {.candidate = *base};
    int first, genes, looked_at = 0, guessed = kind->guess(space, part, &one.candidate);
    kind->part(variant, part, &first, &genes);
    int skipped = 0;
    do {
        skipped = kind->skip(space, &one.candidate, part);
        if (skipped == 0) {
            (void)kind->guess(space, part, &one.candidate);
            rank(space, part, &one, list, max, count);
            looked_at++;
        }
    } while (looked_at < LOOKED_AT_MAX &&
             advance(variant, first + skipped, genes - guessed - skipped, &one.candidate));
    if (guessed > 0) {
        rank_guessed(space, part, first + genes - guessed, guessed, scratch, list, max, count);
    }
}

/* Insert the variant's candidates; the first of them is also *first.
 *   shape  scratch [2 * max] */
static void rank_variant(const struct wpk_space *space, int v, struct ranked *scratch,
                         struct ranked *list, int max, int *count, struct ranked *first)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    const struct wpk_variant *variant = &space->variants[v];
    int parts = kind->part_count(variant);
    struct ranked best = {.candidate = {.variant = v, .gene_count = variant->gene_count}};
    for (int p = 0; p < parts; p++) {
        int found = 0;
        rank_part(space, p, &best.candidate, scratch + max, scratch, 1, &found);
        best.candidate = found > 0 ? scratch[0].candidate : best.candidate;
    }
    best.seconds = wpk_space_kind_bound(space, &best.candidate);
    insert(space, list, max, count, &best);
    *first = best;
    for (int p = 0; p < parts; p++) {
        int found = 0;
        rank_part(space, p, &best.candidate, scratch + max, scratch, max, &found);
        for (int i = 1; i < found; i++) {
            scratch[i].seconds = wpk_space_kind_bound(space, &scratch[i].candidate);
            insert(space, list, max, count, &scratch[i]);
        }
    }
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

/* The number of the candidate's algorithm in the list, or `count`. */
static int find_algorithm(const struct wpk_space *space, const struct ranked *list, int count,
                          const struct ranked *one)
{
    int i = 0;
    while (i < count && !are_of_one_algorithm(space, &list[i], one)) {
        i++;
    }
    return i;
}

/* Algorithms that the list lacks take the last places. */
static void place_algorithms(const struct wpk_space *space, const struct ranked *best, int found,
                             struct ranked *list, int max, int *count)
{
    int placed = 0;
    for (int i = 0; i < found && placed < max - 1; i++) {
        if (find_algorithm(space, list, *count, &best[i]) == *count) {
            int at = *count < max ? (*count)++ : max - 1 - placed++;
            list[at] = best[i];
        }
    }
}

/* The other back ends of the space. */
static int count_others(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    return structure->by < 0 ? 0 : variant->genes[structure->by].choice_count - 1;
}

/* Each other back end's best candidate of the first one's variant, behind the first few.
 *   shape  scratch [2], list [*count + others] */
static void place_back_ends(const struct wpk_space *space, int others, struct ranked *scratch,
                            struct ranked *list, int *count)
{
    const struct wpk_space_kind *kind = wpk_space_kind_of(space);
    const struct wpk_variant *variant = &space->variants[list[0].candidate.variant];
    const struct wpk_structure *structure = variant->plan;
    for (int i = 1; i <= others; i++) {
        int parts = kind->part_count(variant), found = 1;
        int at = *count < BACK_END_AT ? *count : BACK_END_AT;
        struct ranked best = {
            .candidate = {.variant = list[0].candidate.variant, .gene_count = variant->gene_count}};
        best.candidate.gene[structure->by] = (uint8_t)i;
        for (int p = 0; p < parts && found > 0; p++) {
            found = 0;
            rank_part(space, p, &best.candidate, scratch + 1, scratch, 1, &found);
            best.candidate = found > 0 ? scratch[0].candidate : best.candidate;
        }
        if (found > 0) {
            memmove(&list[at + 1], &list[at], (size_t)((*count)++ - at) * sizeof(*list));
            list[at] = best;
        }
    }
}

wpk_err wpk_space_kind_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                                 int *filled)
{
    struct ranked *list = calloc(3 * (size_t)max + 3, sizeof(*list));
    struct ranked best[ALGORITHMS_MAX + 1]; /* of each algorithm */
    int count = 0, found = 0, others = 0;
    if (list == NULL) {
        return WPK_ENOMEM;
    }
    for (int v = 0; v < space->variant_count; v++) {
        if (wpk_space_variant(space, v) == NULL) {
            continue;
        }
        rank_variant(space, v, list + max + 1, list, max, &count, &best[found]);
        int same = find_algorithm(space, best, found, &best[found]);
        if (same < found && best[found].seconds < best[same].seconds) {
            best[same] = best[found];
        }
        found += same == found && found < ALGORITHMS_MAX;
    }
    if (count > 0) {
        others = count_others(space, &list[0].candidate);
        others = others < max ? others : max - 1;
        count = count < max - others ? count : max - others;
    }
    place_algorithms(space, best, found, list, max - others, &count);
    if (others > 0) {
        place_back_ends(space, others, list + max + 1, list, &count);
    }
    for (int i = 0; i < count; i++) {
        out[i] = list[i].candidate;
    }
    free(list);
    *filled = count;
    return WPK_OK;
}
