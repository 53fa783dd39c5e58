/* SPDX-License-Identifier: Apache-2.0 */
/* The genes of long sums: whether the terms of an axis are summed in blocks, or in panels
 * (wpk_slots.sum and .panel).
 *
 * Each adds its gene to the list and returns the gene's number, or -1 where there is nothing to
 * decide or the list has failed.
 *   shape   stage: the group's contraction; axis: its largest reduction axis, or -1 */
#ifndef WPK_TARGET_CPU_GENE_SUM_H
#define WPK_TARGET_CPU_GENE_SUM_H

#include "search/gene_list.h"
#include "search/plan.h"

/* Only sums that round care about their order; every operation that could be reduced in blocks
 * without that has `split`. */
int wpk_gene_sum_add_blocks(struct wpk_gene_list *list, const struct wpk_group *group,
                            const struct wpk_stage *stage, int axis);

/* A panel's strip fits the first cache, or up to four times as much. */
int wpk_gene_sum_add_panels(struct wpk_gene_list *list, const struct wpk_group *group,
                            const struct wpk_stage *stage, int axis,
                            const struct wpk_machine *machine);

#endif
