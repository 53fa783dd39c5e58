/* SPDX-License-Identifier: Apache-2.0 */
/* The genes of one variant: the decisions that its groups (plan.h) leave open, and those decisions
 * as a candidate makes them.
 *
 * To add a gene: a member of wpk_slots and of wpk_decisions here, its choices in genes.c, its value
 * in genes_read.c, its loops in candidate_nest.c, its rules in legal.c, its place in the order of
 * mask.c, first guesses in construct.c, all in target/cpu/ where they are not here, and its row in
 * docs/schedule.md. docs/hacking.md walks through one. */
#ifndef WPK_SEARCH_GENES_H
#define WPK_SEARCH_GENES_H

#include "search/access.h"
#include "search/plan.h"
#include "search/space.h"

#define WPK_PACKS_MAX 4

#define WPK_PACK_PANEL 2
#define WPK_PACK_HALVES 3

/* Kinds of copies of an operand that are legal. */
enum wpk_pack_may {
    WPK_PACK_ANY,
    WPK_PACK_EXACT, /* only in blocks that divide: some load reads another value than 0 outside */
    WPK_PACK_NEVER, /* some load reads the tensor's padding, which a copy does not have */
};

/* The gene of each decision of a group, as a number in variant->genes; -1: nothing to decide. */
struct wpk_slots {
    int vec;                 /* root axis that becomes vector lanes */
    int lanes;               /* how many */
    int tail;                /* the last tile along the vector axis: "whole" like all others, or
                                   with a body of its "own", without the vectors past the end */
    int tile[WPK_RANK_MAX];  /* register tile, elements */
    int block[WPK_RANK_MAX]; /* cache block, tiles; "all": no loop */
    int outer;               /* order of the block loops, outermost first */
    int inner;               /* order of the tile loops */
    int red;                 /* order of the contraction's reduction loops */
    int split;               /* inner extent of its largest reduction axis; "all": not split */
    int sum;                 /* terms of that axis in a partial sum, which is then added to the
                                   total; "all": the terms are added one after the other */
    int panel;               /* k-block (kc in a GEBP loop nest), terms of that axis: partial sums
                                   of a block are kept across k-blocks; "all": no k-blocks */
    int dot;                 /* reduction axis of which an instruction adds several terms at a time;
                                   "none" */
    int instruction;         /* of `dot`, as a number; -1: the device has none that fits */
    int unroll;              /* factor of the innermost reduction loop */
    int at;                  /* where the group is computed */
    int roll;                /* loops over transformed axes stay loops where that is possible */
    int par;                 /* how many outermost loops run in parallel, fused */
    int pack[WPK_PACKS_MAX]; /* the operand is first copied into the order of use: "no", "yes",
                                   "panel" for a k-block's part, inside its loop, or "halves", where
                                   the two halves of a tile's lanes lie apart: a large operand is
                                   then read in two streams, which prefetchers run further ahead */
    int pack_load[WPK_PACKS_MAX]; /* the contraction's load of that operand */
    enum wpk_pack_may pack_may[WPK_PACKS_MAX];
    int pack_count;
};

/* wpk_variant.plan points to this. */
struct wpk_structure {
    struct wpk_plan plan;
    uint32_t strided[WPK_STAGES_MAX]; /* bit a: wpk_stage_is_strided of axis a */
    struct wpk_accesses accesses;
    int writer[WPK_TENSORS_MAX]; /* stage, or -1 */
    struct wpk_slots slots[WPK_GROUPS_MAX];
    /* The group keeps no limit even with its smallest tiles: these alone are legal, without. */
    bool tight[WPK_GROUPS_MAX];
    int site_of[WPK_GROUPS_MAX]; /* the site that the group's contraction is of, or -1 */
    void *kind;                  /* what a kind of device keeps beside it; owned, freed by free() */
    int by;                      /* the gene of the back end, the last one; -1: there is none */
    int back_end; /* number of the first one, of candidates without that gene (back_end.h) */
};

enum wpk_level {
    WPK_LEVEL_ROOT,  /* before everything */
    WPK_LEVEL_BLOCK, /* inside the block loops of a group */
    WPK_LEVEL_TILE,  /* inside its tile loops */
    WPK_LEVEL_COUNT,
};

/* Values of choices: a size is itself, an axis its index in the group's root (-1: none), yes is 1
 * and no is 0, a panel's copy is WPK_PACK_PANEL, one in halves WPK_PACK_HALVES. Places and orders
 * are encoded by these functions. */

/* The place inside the loops of `group` at `level`; `group` is ignored for the root level. */
int64_t wpk_place(int group, enum wpk_level level);
/* `order` with `axis` at `place`, which is still empty; outermost first, 4 bits an axis. 0 is the
 * empty order. */
int64_t wpk_order_with(int64_t order, int place, int axis);
int wpk_order_axis(int64_t order, int place);

/* A candidate's decisions for one group, as numbers. */
struct wpk_decisions {
    int vec; /* root axis, -1: scalar */
    int lanes;
    bool own_tail; /* the last tile along `vec` has a body without the vectors past the end */
    int64_t tile[WPK_AXES_MAX];                   /* [root rank], >= 1 */
    int64_t block[WPK_RANK_MAX];                  /* tiles in a block; 0: all */
    int outer[WPK_RANK_MAX], inner[WPK_RANK_MAX]; /* root axes, outermost first */
    int order_count;       /* axes that have loops: extent > 1 and not whole */
    int red[WPK_AXES_MAX]; /* reduction axes of the contraction, outermost first */
    int red_count;
    int split_axis;  /* the contraction's largest reduction axis, or -1 */
    int64_t split;   /* 0: not split */
    bool blocked;    /* each part is summed by itself, then added to the total */
    bool panel;      /* the totals of a whole block of the root are kept, and each part is added to
                         all of them before the next one: `blocked`, too */
    int dot;         /* reduction axis of which `instruction` adds several terms, -1: none */
    int instruction; /* as a number */
    int terms;       /* of the instruction; 1: none */
    int64_t unroll;  /* 1: not unrolled */
    bool roll;
    enum wpk_level level;
    int at_group; /* the group of `level`, unless that is root */
    int par;
    bool pack[WPK_PACKS_MAX];
    bool staged[WPK_PACKS_MAX]; /* the copy is made in the loop over the panels */
    bool halves[WPK_PACKS_MAX]; /* the copy has the two halves of a tile's lanes apart */
};

/* Fill structure->strided, so that the legality of a candidate is cheap to test.
 *   shape   variant: with its program and plan */
void wpk_strides_derive(struct wpk_variant *variant);

/* Fill variant->genes and the slots of `structure`.   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_genes_derive(struct wpk_variant *variant, struct wpk_structure *structure,
                         const struct wpk_space_options *options);

/* Add the gene of the back end behind all others, in a space of every kind that has several.
 *   shape   variant: with its genes
 *   errors  WPK_ENOMEM; WPK_ENOSPC it has no room for one, whether or not the space has several:
 *           spaces of one program with other back ends have the same variants */
wpk_err wpk_genes_derive_back_end(struct wpk_variant *variant,
                                  const struct wpk_space_options *options);

/* Fill structure->tight, so that every group has a legal decision.
 *   shape   variant: with its genes */
void wpk_limits_derive(struct wpk_variant *variant, const struct wpk_space_options *options);

/* Fill `out` with a candidate's decisions for one group; absent genes get their neutral value. */
void wpk_genes_read(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                    int group, struct wpk_decisions *out);

/* The number of the candidate's back end (back_end.h). */
int wpk_genes_back_end(const struct wpk_variant *variant, const struct wpk_candidate *candidate);
/* True if candidates may be of the back end; and let one be, which may. */
bool wpk_genes_has_back_end(const struct wpk_variant *variant, int back_end);
/* Give the gene the choice with this value; nothing if it has none, or if `gene` is -1. */
void wpk_genes_set(const struct wpk_variant *variant, int gene, int64_t value,
                   struct wpk_candidate *out);
void wpk_genes_set_back_end(const struct wpk_variant *variant, int back_end,
                            struct wpk_candidate *candidate);

/* The stage whose output a group computes. */
const struct wpk_stage *wpk_root_of(const struct wpk_variant *variant, int group);
/* The stage of the group's contraction (wpk_group.contraction), or NULL. */
const struct wpk_stage *wpk_contraction_of(const struct wpk_variant *variant,
                                           const struct wpk_group *group);
/* The longest reduction axis of the stage that indexes no literal, or -1.
 *   shape  literal [axis_count] */
int wpk_largest_reduction(const struct wpk_stage *stage, const bool *literal);

/* True if the group's nest has a loop over the axis. */
bool wpk_has_loop(const struct wpk_group *group, const struct wpk_stage *root, int axis);
/* The number of tiles along a root axis, and of tiles in one block of it. */
int64_t wpk_tile_count(const struct wpk_stage *root, const struct wpk_decisions *d, int axis);
int64_t wpk_block_tiles(const struct wpk_stage *root, const struct wpk_decisions *d, int axis);
/* True if the last tile of `extent` elements along the vector axis ends with whole vectors past the
 * end. */
bool wpk_has_dead_vectors(int64_t extent, int64_t tile, int lanes);
/* True if the axis has a block loop of more than one iteration. */
bool wpk_has_block_loop(const struct wpk_stage *root, const struct wpk_decisions *d, int axis);

/* True if the stage reads with a stride along this output axis. A vector along the axis then takes
 * one scalar load for each lane. Loads of constants do not count: constants are packed. */
bool wpk_stage_is_strided(const struct wpk_variant *variant, const struct wpk_stage *stage,
                          int axis);

/* True if the rules for one group, or those between groups, are kept; else *why is set to the
 * broken rule, a static text. `why` may be NULL. */
bool wpk_group_is_legal(const struct wpk_variant *variant, const struct wpk_space_options *options,
                        int group, const struct wpk_decisions *decisions, const char **why);
bool wpk_placement_is_legal(const struct wpk_variant *variant,
                            const struct wpk_space_options *options,
                            const struct wpk_candidate *candidate, const char **why);
/* True if the candidate's back end compiles what its genes ask for; else as above. */
bool wpk_back_end_is_legal(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                           const char **why);

#endif
