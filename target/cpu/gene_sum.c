/* SPDX-License-Identifier: Apache-2.0 */
#include "target/cpu/gene_sum.h"

#define PANEL_SIZES 3

int wpk_gene_sum_add_blocks(struct wpk_gene_list *list, const struct wpk_group *group,
                            const struct wpk_stage *stage, int axis)
{
    static const int64_t sizes[] = {4, 8, 16, 32, 64, 128};
    int64_t extent = axis < 0 ? 1 : stage->axes[axis].extent;
    bool rounds = stage->reduction == WPK_REDUCE_SUM && wpk_dtype_is_float(stage->accumulator) &&
                  stage->rank < WPK_RANK_MAX && stage->axis_count < WPK_AXES_MAX;
    int gene = -1;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && rounds; i++) {
        if (sizes[i] < extent && extent % sizes[i] == 0) {
            gene = gene < 0 ? wpk_gene_list_add(list, true, "%s.sum", group->name) : gene;
            wpk_gene_list_number(list, gene, sizes[i]);
        }
    }
    wpk_gene_list_number(list, gene, WPK_GENE_ALL);
    return gene;
}

/* True if the contraction's axes are those of the root, one to one, and all members that it reads,
 * or that read it, are inlined. All tiles of a block may then be computed before the root's, one
 * k-block after the other. */
static bool may_have_panels(const struct wpk_program *program, const struct wpk_group *group)
{
    const struct wpk_stage *root = &program->stages[group->root];
    const struct wpk_member *sum = &group->member[group->contraction];
    const struct wpk_stage *stage = &program->stages[sum->stage];
    uint32_t covered = 0;
    for (int m = 0; m < group->member_count; m++) {
        if (group->member[m].consumer == group->contraction && !group->member[m].inlined) {
            return false;
        }
    }
    for (int m = sum->consumer; m >= 0; m = group->member[m].consumer) {
        if (!group->member[m].inlined) {
            return false;
        }
    }
    for (int d = 0; d < stage->rank; d++) {
        int axis = sum->root_axis[d];
        if (stage->axes[d].extent == 1) {
            continue;
        }
        if (axis < 0 || group->whole[axis] || (covered >> axis & 1) != 0 ||
            root->axes[axis].extent != stage->axes[d].extent) {
            return false;
        }
        covered |= UINT32_C(1) << axis;
    }
    for (int a = 0; a < root->rank; a++) {
        if (root->axes[a].extent > 1 && (covered >> a & 1) == 0) {
            return false;
        }
    }
    return true;
}

/* The largest divisor of `extent` in (most / 2, most], or 0. */
static int64_t divisor_below(int64_t extent, int64_t most)
{
    int64_t size = most < extent ? most : extent;
    while (size > most / 2 && extent % size != 0) {
        size--;
    }
    return size > most / 2 ? size : 0;
}

int wpk_gene_sum_add_panels(struct wpk_gene_list *list, const struct wpk_group *group,
                            const struct wpk_stage *stage, int axis,
                            const struct wpk_machine *machine)
{
    int64_t extent = axis < 0 ? 1 : stage->axes[axis].extent;
    int64_t term = (int64_t)machine->strip_vectors * machine->lanes_max * 4;
    int gene = -1;
    if (!group->reuse || extent * term < machine->strip_bytes_max || stage->rank == WPK_RANK_MAX ||
        stage->axis_count == WPK_AXES_MAX || !may_have_panels(&list->variant->program, group)) {
        return -1;
    }
    for (int64_t most = machine->cache_bytes[0] / term, i = 0; i < PANEL_SIZES; i++, most *= 2) {
        int64_t size = divisor_below(extent, most);
        if (size > 0 && size < extent) {
            gene = gene < 0 ? wpk_gene_list_add(list, true, "%s.panel", group->name) : gene;
            wpk_gene_list_number(list, gene, size);
        }
    }
    wpk_gene_list_number(list, gene, WPK_GENE_ALL);
    if (gene >= 0) {
        list->variant->genes[gene].optional = true;
    }
    return gene;
}
