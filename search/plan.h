/* SPDX-License-Identifier: Apache-2.0 */
/* The structure of a program for scheduling: its groups of stages, derived once a variant.
 *
 * Stages fall into groups. A group has one root, a pointwise stage that owns a loop nest; its
 * other members are computed at the root's register tile (accumulators, small transforms) or
 * inlined. A stage joins its only consumer when nothing of it would be computed twice; a reduction
 * whose operands are reused (a contraction) joins only a pointwise stage that reads it one to one,
 * because that stage's tile is then its register tile. Every other stage is the root of a group.
 *
 *     Winograd:   { v_copy <- v <- v1 }   { m_copy <- m }   { Y <- s <- s1 }
 *     softmax:    { M <- M_r <- M_p }     { E }   { D <- D_r <- D_p }   { S }
 *
 * Axes that index a literal tensor are always covered whole and unrolled, so that literals fold. */
#ifndef WPK_SEARCH_PLAN_H
#define WPK_SEARCH_PLAN_H

#include "ir/program.h"
#include "search/rules.h"

#define WPK_GROUPS_MAX 48
#define WPK_MEMBERS_MAX 32

struct wpk_member {
    int stage;
    int consumer;                /* member index whose load reads it, -1: the root */
    int load;                    /* that load's node */
    bool inlined;                /* pointwise and read once: no loops of its own */
    bool in_sum;                 /* a contraction inside the loops of its consumer's sum */
    int root_axis[WPK_AXES_MAX]; /* [rank] the root axis an output axis follows, or -1 */
    bool literal[WPK_AXES_MAX];  /* [axis_count] the axis indexes a literal */
};

struct wpk_group {
    char name[WPK_NAME_MAX];                   /* of the root's tensor */
    int root;                                  /* stage */
    struct wpk_member member[WPK_MEMBERS_MAX]; /* consumers before what they read */
    int member_count;
    int contraction;             /* member with the largest reduction over no literal, or -1 */
    bool reuse;                  /* the contraction's operands are reused: register tiles pay */
    bool rows;                   /* members are vectorized over an axis that the root lacks */
    int64_t align[WPK_RANK_MAX]; /* [root rank] a split must be a multiple of this; at most the
                                      extent */
    bool whole[WPK_RANK_MAX];    /* [root rank] the tile always covers the whole axis */
};

struct wpk_plan {
    struct wpk_group *group;      /* owned; [group_count] */
    int group_count;              /* topological order; the last is the output's */
    int group_of[WPK_STAGES_MAX]; /* -1: a prepare stage */
    bool prepare[WPK_STAGES_MAX];
    bool feeds[WPK_GROUPS_MAX][WPK_GROUPS_MAX]; /* [g][h]: h reads g */
};

/* Bring the program into the form that groups need: cut reductions over contiguous rows into lanes,
 * and follow each root that reduces by a pointwise copy.
 *   errors  WPK_ENOSPC, WPK_ENOMEM */
wpk_err wpk_plan_normalize(struct wpk_program *program, const struct wpk_machine *machine);

/* Derive the groups of a normalized program.
 *   owns    caller calls wpk_plan_fini, after a failure, too
 *   errors  WPK_EUNSUPPORTED, WPK_ENOSPC, WPK_ENOMEM */
wpk_err wpk_plan_derive(const struct wpk_program *program, struct wpk_plan *out);
void wpk_plan_fini(struct wpk_plan *plan);

/* Fill `region` with the extents that one tile of the root needs of each member: those that
 * wpk_nest_find_region() finds for them, without a nest, which takes longer to make than a group to
 * judge.
 *   shape   tile [root rank]; region [member_count][WPK_AXES_MAX], output axes then reductions */
void wpk_plan_regions(const struct wpk_program *program, const struct wpk_group *group,
                      const int64_t *tile, int64_t region[][WPK_AXES_MAX]);

#endif
