/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of a group: which vector axis, how many lanes, and how much of each axis is
 * computed at once, ranked by the target's rules without building anything. */
#ifndef WPK_TARGET_CPU_REGISTER_TILE_H
#define WPK_TARGET_CPU_REGISTER_TILE_H

#include "search/gene_list.h"
#include "search/plan.h"

#define WPK_REGISTER_TILES_MAX 512

struct wpk_register_tile {
    int vec; /* axis of the group's root; -1: none */
    int lanes;
    int64_t size[WPK_RANK_MAX]; /* elements along each axis of the root */
    double score;               /* of the target's rules; more is better */
};

struct wpk_register_tiles {
    struct wpk_register_tile tile[WPK_REGISTER_TILES_MAX];
    int count;
};

/* A window along which neighbours in a register tile read the same vectors: those of results `y`
 * and `y + 1` have all but one term in common. */
struct wpk_register_window {
    int reduction;   /* axis of the contraction */
    int64_t terms;   /* its extent */
    int64_t results; /* of the tile along the window */
};

/* Find the window of a group's contraction in which a tile has the most results, of the first load
 * that has any. False if there is none, or if that load is read again along some other axis of the
 * tile, as the data of a convolution is for each channel.
 *   shape  tile [WPK_AXES_MAX] of the group's root, `vec` its vector axis or -1 */
bool wpk_register_window_find(const struct wpk_variant *variant, int group, int vec,
                              const int64_t *tile, struct wpk_register_window *out);

/* Fill `out` with the legal tiles of a group, best first; of more than fit, the worse are left
 * out. */
void wpk_register_tiles_rank(const struct wpk_variant *variant,
                             const struct wpk_space_options *options, int group,
                             struct wpk_register_tiles *out);

/* True if the tile's last copy along the vector axis should have a body of its own, without the
 * vectors past the end. The accumulators of Winograd's products do not stay in registers in such a
 * body: 127 us for 104 with 208 channels. */
bool wpk_register_tile_leaves_out(const struct wpk_variant *variant, int group,
                                  const struct wpk_register_tile *tile);

/* The genes of long sums: whether the terms of an axis are summed in blocks, or in panels
 * (wpk_slots.sum and .panel).
 *
 * Each adds its gene to the list and returns the gene's number, or -1 where there is nothing to
 * decide or the list has failed.
 *   shape   stage: the group's contraction; axis: its largest reduction axis, or -1 */

/* Only sums that round care about their order; every operation that could be reduced in blocks
 * without that has `split`. */
int wpk_gene_sum_add_blocks(struct wpk_gene_list *list, const struct wpk_group *group,
                            const struct wpk_stage *stage, int axis);

/* A panel's strip fits the first cache, or up to four times as much. */
int wpk_gene_sum_add_panels(struct wpk_gene_list *list, const struct wpk_group *group,
                            const struct wpk_stage *stage, int axis,
                            const struct wpk_machine *machine);

#endif
