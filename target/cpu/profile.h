/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of constructed candidates: what candidate number n of generation 0 tries.
 *
 * Each decision takes turns through the rows of a table in profile.c, and a row has its reason.
 * The tables have different lengths, so that consecutive candidates differ in several decisions and
 * rows meet in new combinations. */
#ifndef WPK_TARGET_CPU_PROFILE_H
#define WPK_TARGET_CPU_PROFILE_H

#include "search/gene_list.h"
#include "search/genes.h"

/* The order of a group's loops over tiles. */

enum wpk_tile_order {
    WPK_TILE_ORDER_TRAFFIC, /* a contraction reads its operands again as seldom as possible */
    WPK_TILE_ORDER_VECTOR,  /* the vector axis outermost, everything else as written */
};

/* Choose the order gene of `group` in `out`; a group without one keeps its order. Traffic is that
 * from beyond half of the first cache, by the sizes of the tiles that `out` has. Among orders of
 * equal traffic, and for a group that is no contraction, the vector axis is innermost.
 *   source  Wolf & Lam, A data locality optimizing algorithm, 1991 */
void wpk_tile_order_set(const struct wpk_variant *variant, const struct wpk_machine *machine,
                        int group, enum wpk_tile_order wanted, struct wpk_candidate *out);

/* How the loops over tiles are blocked for the caches. */
struct wpk_blocking {
    const char *name;
    bool small;      /* blocks of a few tiles in every group, not in the last one alone */
    bool last_cache; /* blocks for the last cache where the operands exceed it */
    bool panels;     /* panels of the reduction, which replace the other decisions of the group */
};

/* How a contraction's reduction loops lie. */
struct wpk_reducing {
    const char *name;
    int64_t split;  /* iterations of the inner part; WPK_GENE_ALL: one loop */
    bool innermost; /* the largest reduction axis is the innermost loop; else as written */
};

/* How panels are read. */
struct wpk_paneling {
    const char *name;
    bool copied;  /* operands are packed by panels */
    bool results; /* a block's results take half of the cache, too */
};

struct wpk_profile {
    const struct wpk_blocking *blocking;
    const struct wpk_reducing *reducing;
    const struct wpk_paneling *paneling;
    int tile;                       /* rank of a contraction's register tile */
    int tile_plain;                 /* and of other groups' */
    enum wpk_tile_order tile_order; /* of every group */
    int64_t block_last;             /* tiles in a block of the last of several groups */
    int64_t block;                  /* and of another group's; 0: no blocks */
    unsigned copies;                /* bit i: the turn of operand i that may be copied */
    bool halves;                    /* constants are packed in halves where these are offered */
    bool fused;                     /* producers are computed in the last group's blocks */
    int parallel;                   /* loops that run in parallel */
    int panel_tile;                 /* of the tiles that divide the axes, the one of panels */
    int panel_size;                 /* steps from the middle size of panels */
};

/* Fill the profile of candidate number n, from 0. */
void wpk_profile_get(int n, struct wpk_profile *out);

#endif
