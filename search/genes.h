/* SPDX-License-Identifier: Apache-2.0 */
/* The genes of one variant: which decisions its groups leave open, and what a candidate says. */
#ifndef WPK_SEARCH_GENES_H
#define WPK_SEARCH_GENES_H

#include "search/plan.h"
#include "search/space.h"

#define WPK_PACKS_MAX 4

/* Gene numbers of a group, -1 where there is nothing to decide. */
struct wpk_slots {
    int vec;                    /* root axis that becomes vector lanes */
    int lanes;
    int tile[WPK_RANK_MAX];     /* register tile, elements */
    int block[WPK_RANK_MAX];    /* cache block, tiles; "all": no loop */
    int outer;                  /* order of the block loops, outermost first */
    int inner;                  /* order of the tile loops */
    int red;                    /* order of the contraction's reduction loops */
    int split;                  /* inner extent of its largest reduction axis; "all": not split */
    int sum;                    /* the same, and each part is summed by itself; "all": the terms
                                   are added one after the other */
    int unroll;                 /* of the innermost reduction loop */
    int at;                     /* where the group is computed */
    int roll;                   /* loops over transformed axes stay loops where that is possible */
    int par;                    /* how many outermost loops run in parallel, fused */
    int pack[WPK_PACKS_MAX];    /* copy the operand into the order of use? */
    int pack_load[WPK_PACKS_MAX]; /* the contraction's load it is about */
    int pack_count;
};

/* What hangs off wpk_variant.plan. */
struct wpk_structure {
    struct wpk_plan plan;
    uint32_t strided[WPK_STAGES_MAX]; /* see wpk_stage_is_strided; a bit for each axis */
    struct wpk_slots slots[WPK_GROUPS_MAX];
};

enum wpk_level {
    WPK_LEVEL_ROOT,  /* before everything */
    WPK_LEVEL_BLOCK, /* inside the block loops of a group */
    WPK_LEVEL_TILE,  /* inside its tile loops */
    WPK_LEVEL_COUNT,
};

/* The values of choices. Sizes are themselves, axes their index in the group's root, -1: none;
 * decisions yes or no 1 and 0. Of the others: */

/* Where a group is computed; `group` counts for levels other than root. */
int64_t wpk_place(int group, enum wpk_level level);
/* An order of at most WPK_AXES_MAX axes, outermost first, 4 bits each; 0 is the empty one. */
int64_t wpk_order_with(int64_t order, int place, int axis);
int wpk_order_axis(int64_t order, int place);

/* A candidate's decisions for one group, as numbers. */
struct wpk_decisions {
    int vec;                       /* root axis, -1: scalar */
    int lanes;
    int64_t tile[WPK_AXES_MAX];    /* [root rank], >= 1 */
    int64_t block[WPK_RANK_MAX];   /* tiles in a block; 0: all */
    int outer[WPK_RANK_MAX], inner[WPK_RANK_MAX]; /* root axes, outermost first */
    int order_count;               /* axes that have loops: extent > 1 and not whole */
    int red[WPK_AXES_MAX];         /* reduction axes of the contraction, outermost first */
    int red_count;
    int split_axis;                /* the contraction's largest reduction axis, or -1 */
    int64_t split;                 /* 0: not split */
    bool blocked;                  /* each part is summed by itself, then added to the total */
    int64_t unroll;                /* 1: not unrolled */
    bool roll;
    enum wpk_level level;
    int at_group;                  /* for levels other than root */
    int par;
    bool pack[WPK_PACKS_MAX];
};

/* Fill structure->strided: candidates are judged by it, thousands a second.
 *   shape   variant: with its program and plan */
void wpk_strides_derive(struct wpk_variant *variant);

/* Fill variant->genes and the slots of `structure`.   errors  WPK_ENOMEM, WPK_ENOSPC */
wpk_err wpk_genes_derive(struct wpk_variant *variant, struct wpk_structure *structure,
                         const struct wpk_space_options *options);

void wpk_genes_read(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                    int group, struct wpk_decisions *out);

/* The stage that reduces most, or NULL; its longest reduction axis that indexes no literal, or -1.
 *   shape  literal [axis_count] */
const struct wpk_stage *wpk_contraction_of(const struct wpk_variant *variant,
                                           const struct wpk_group *group);
int wpk_largest_reduction(const struct wpk_stage *stage, const bool *literal);

/* Does the group's nest have a loop over the axis? */
bool wpk_has_loop(const struct wpk_group *group, const struct wpk_stage *root, int axis);
/* Tiles along a root axis, and tiles in a block (all of them when the block says so). */
int64_t wpk_tile_count(const struct wpk_stage *root, const struct wpk_decisions *d, int axis);
int64_t wpk_block_tiles(const struct wpk_stage *root, const struct wpk_decisions *d, int axis);
/* Does the axis have a block loop of more than one iteration? */
bool wpk_has_block_loop(const struct wpk_stage *root, const struct wpk_decisions *d, int axis);

/* The part of a group's root that one iteration of where it is computed needs, and what it needs
 * at least, at the tails of loops that do not divide; the whole of it at root.
 *   shape  d [group_count]; extent, least [root rank]; least may be NULL */
void wpk_group_region(const struct wpk_variant *variant, const struct wpk_decisions *d, int group,
                      int64_t *extent, int64_t *least);

/* The member's output axis that becomes lanes, and how many; -1 when it stays scalar: the root's
 * vector axis where the tile needs whole vectors of it, else the last axis.
 *   shape   region [member's axis_count] */
int wpk_member_vector(const struct wpk_variant *variant, const struct wpk_space_options *options,
                      const struct wpk_decisions *d, const struct wpk_member *member,
                      const int64_t *region, int *lanes);

/* Does the stage read along its output axis with a stride? A vector is then put together from as
 * many scalar loads as it has lanes. Constants are packed along it. */
bool wpk_stage_is_strided(const struct wpk_variant *variant, const struct wpk_stage *stage,
                          int axis);

/* Rules for one group, and between groups; `why` may be NULL. */
bool wpk_group_is_legal(const struct wpk_variant *variant, const struct wpk_space_options *options,
                        int group, const struct wpk_decisions *decisions, const char **why);
bool wpk_placement_is_legal(const struct wpk_variant *variant,
                            const struct wpk_candidate *candidate, const char **why);

#endif
