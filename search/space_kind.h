/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a kind of space that is not made of groups and their genes (genes.h): one table
 * a kind of device. Candidates, their texts, strategies and moves are common.
 *
 * The genes of a variant are in parts, whose rules and ranks do not depend on one another. A part
 * has few genes: its candidates are masked, repaired and constructed by asking which of them are
 * legal. The first choice of every gene together has to be a legal candidate, which is the neutral
 * one. The gene of the back end is in no part: rules may ask for it, ranks do not. */
#ifndef WPK_SEARCH_SPACE_KIND_H
#define WPK_SEARCH_SPACE_KIND_H

#include "nest/nest.h"
#include "search/rules.h"
#include "search/space.h"

/* Every slot is required. */
struct wpk_space_kind {
    const char *version; /* of its candidates' texts */
    /* Rewrite the variant's program, and add its genes; the plan is there.
     *   errors  WPK_EUNSUPPORTED the kind has no candidates for such a program; WPK_ENOMEM */
    wpk_err (*derive)(const struct wpk_space *space, struct wpk_variant *variant);
    int (*part_count)(const struct wpk_variant *variant);
    /* The genes of a part. */
    void (*part)(const struct wpk_variant *variant, int number, int *first, int *count);
    /* Set the part's last genes to what fits its others best, where that is simple to say: they are
     * not ranked beside all values of the others. Returns how many there are. */
    int (*guess)(const struct wpk_space *space, int part, struct wpk_candidate *candidate);
    /* True if the part keeps the device's limits; else *why, unless NULL, is the broken rule. */
    bool (*legal)(const struct wpk_space *space, const struct wpk_candidate *candidate, int part,
                  const char **why);
    /* The number of the part's first genes whose values need no looking at beside those of the
     * others: with these the candidate is illegal, or another one's kernel, whatever the first are.
     * 0: it is to be looked at. */
    int (*skip)(const struct wpk_space *space, const struct wpk_candidate *candidate, int part);
    /* Seconds of the part in one call: a rank of what was not built, no lower bound. */
    double (*bound)(const struct wpk_space *space, const struct wpk_candidate *candidate, int part);
    /* Blocks that share the terms of the part's reduction. 1: none do */
    int64_t (*split)(const struct wpk_space *space, const struct wpk_candidate *candidate,
                     int part);
    /* Give genes that decide nothing beside the others their first choice: candidates that are
     * equal then are one kernel. */
    void (*settle)(const struct wpk_space *space, struct wpk_candidate *candidate);
    /* Fill `out` with the nest of a legal candidate.   errors  WPK_ENOSPC a limit of nest/nest.h */
    wpk_err (*nest)(const struct wpk_space *space, const struct wpk_candidate *candidate,
                    struct wpk_nest *out);
};

/* Of the space's device, NULL: groups and their genes. */
static inline const struct wpk_space_kind *wpk_space_kind_of(const struct wpk_space *space)
{
    return space->options.target.rules->space;
}

/* The version of the texts of candidates for a kind of device, "cpu" or "cuda". */
const char *wpk_space_version_of(const char *device_kind);
/* The version of the space's candidates' texts. */
const char *wpk_space_version(const struct wpk_space *space);

/* True if all parts of the candidate are legal; else *why, unless NULL, is the broken rule. */
bool wpk_space_kind_is_legal(const struct wpk_space *space, const struct wpk_candidate *candidate,
                             const char **why);
/* Seconds of one call: those of all parts. */
double wpk_space_kind_bound(const struct wpk_space *space, const struct wpk_candidate *candidate);
/* Redraw genes until the candidate is legal, as it is or with its last genes guessed; at last it
 * becomes the neutral one, by the first back end where none is legal by its own. */
wpk_err wpk_space_kind_repair(const struct wpk_space *space, struct wpk_rng *rng,
                              struct wpk_candidate *candidate);
/* As wpk_space_construct(): the candidates of the least bounds, of all if they are few. The best of
 * each algorithm and layout are among them, and as far as half of the places reach the best of each
 * split. They are of the first back end that the space has; each other one has a candidate behind
 * the first few. */
wpk_err wpk_space_kind_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                                 int *filled);

#endif
