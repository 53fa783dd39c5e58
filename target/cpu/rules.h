/* SPDX-License-Identifier: Apache-2.0 */
/* The space of CPUs, of groups of stages (search/plan.h) and their genes (search/genes.h): the
 * numbers of CPUs, the rules by them, and other functions of the table. */
#ifndef WPK_TARGET_CPU_RULES_H
#define WPK_TARGET_CPU_RULES_H

#include "search/feature.h"
#include "search/genes.h"

/* A register tile of a group, counted. */
struct wpk_tile {
    bool reuses; /* a contraction whose operands are used again: register tiles pay */
    bool copies; /* nothing is used again: unrolling hides latencies only */
    int lanes;
    double covered;       /* share of the work that is no filling of tiles, in (0, 1] */
    int64_t statements;   /* vectors of the tile, unrolled */
    int64_t least;        /* statements of the smallest tile, which always has to be legal */
    int64_t accumulators; /* vectors of the contraction */
    int64_t vectors;      /* of its vector axis */
    int64_t points;       /* of the other axes */
    int64_t loads;        /* of one step of its reduction */
    int64_t unaligned;    /* of these, vectors that begin anywhere in a cache line */
    int64_t live;         /* vectors that one step loads along the vector axis */
    int64_t held;         /* vectors that several of its results read, and registers hold */
    int64_t unrolled;     /* multiply-adds in the body of the innermost reduction loop */
    double arithmetic;    /* instructions that compute */
    double moves;         /* loads and stores of vectors */
    double gathered;      /* elements of vectors that are loaded one by one */
    double scattered;     /* that are stored one by one */
    int definitions;      /* of its stages */
};

/* Count the register tile of a group. */
void wpk_decisions_tile(const struct wpk_variant *variant, const struct wpk_space_options *options,
                        int group, const struct wpk_decisions *d, struct wpk_tile *out);

void wpk_cpu_describe(const struct wpk_device *device, struct wpk_machine *out);
/* True if a tile may be built. Else *why, unless it is NULL, is set to the broken rule, a static
 * text. Monotone: a tile that is larger in no respect than a legal one is legal. */
bool wpk_tile_is_legal(const struct wpk_machine *machine, const struct wpk_tile *tile,
                       const char **why);
/* How good a register tile looks; larger is better. */
double wpk_tile_score(const struct wpk_machine *machine, const struct wpk_tile *tile);
/* Seconds of one call with warm caches. */
double wpk_features_seconds(const struct wpk_machine *machine, const struct wpk_features *features,
                            int threads);
/* The neutral rests of a mask (search/mask.h), best first: tiles are as small as they can be, but
 * multiples of this many elements along the axes in which stages without the vector axis get lanes.
 * Such a tile is larger and may need fewer registers. Returns the multiple that is tried after
 * `multiple`, which is 0 before the first; 0: there are no more. */
int wpk_mask_width(const struct wpk_machine *machine, int multiple);

/* These fill slots of the table of CPUs (search/rules.h). */

wpk_err wpk_cpu_derive(const struct wpk_space *space, struct wpk_variant *variant);
wpk_err wpk_cpu_repair(const struct wpk_space *space, struct wpk_rng *rng,
                       struct wpk_candidate *candidate);
wpk_err wpk_cpu_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                          int *filled);
int wpk_cpu_gene_at(const struct wpk_variant *variant, int step);
bool wpk_cpu_complete(const struct wpk_space *space, int step, struct wpk_candidate *candidate);

/* True if the candidate keeps the rules for this group; else *why, unless NULL, is the one that
 * it breaks. */
bool wpk_cpu_is_legal_group(const struct wpk_space *space, int group,
                            const struct wpk_candidate *candidate, const char **why);

#endif
