/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a group's loops over tiles. */
#ifndef WPK_TARGET_CPU_TILE_ORDER_H
#define WPK_TARGET_CPU_TILE_ORDER_H

#include "search/gene_list.h"
#include "search/genes.h"

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

#endif
