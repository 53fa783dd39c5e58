/* SPDX-License-Identifier: Apache-2.0 */
#include "search/cuda_tiles.h"

#include "search/genes.h"

const struct wpk_cuda_kept *wpk_cuda_kept_of(const struct wpk_variant *variant)
{
    const struct wpk_structure *structure = variant->plan;
    return structure->kind;
}

int64_t wpk_cuda_tiles_beside(const struct wpk_stage *root, const struct wpk_cuda_group *group)
{
    int64_t threads = 1;
    for (int a = 0; a < root->rank; a++) {
        bool beside = a != group->i && a != group->j;
        threads *= beside && root->axes[a].extent % group->tile[a] != 0
                       ? wpk_cuda_tiles_along(root, group, a)
                       : 1;
    }
    return threads;
}

void wpk_cuda_tiles_read(const struct wpk_variant *variant, const struct wpk_candidate *candidate,
                         int number, struct wpk_cuda_tiles *out)
{
    const struct wpk_cuda_kept *kept = wpk_cuda_kept_of(variant);
    const struct wpk_cuda_group *group = &kept->groups.group[number];
    int64_t value[WPK_CUDA_STAGED + WPK_CUDA_OPERANDS_MAX] = {0};
    int first = kept->first[number], count = kept->first[number + 1] - first;
    bool reduces = group->sum >= 0;
    WPK_ASSERT(count <= WPK_CUDA_STAGED + WPK_CUDA_OPERANDS_MAX);
    for (int i = 0; i < count; i++) {
        value[i] = variant->genes[first + i].choice[candidate->gene[first + i]].value;
    }
    *out = (struct wpk_cuda_tiles){.block = {value[WPK_CUDA_BLOCK_I], value[WPK_CUDA_BLOCK_J]},
                                   .thread = {value[WPK_CUDA_THREAD_I], value[WPK_CUDA_THREAD_J]},
                                   .step = reduces ? value[WPK_CUDA_STEP] : 0,
                                   .rows = reduces ? 0 : value[WPK_CUDA_ROWS]};
    for (int c = 0; c < group->copy_count; c++) {
        out->staged[c] = value[WPK_CUDA_STAGED + c] != 0;
    }
    if (group->transforms) {
        out->rows = 0;
        out->thread[0] = group->i < 0 ? 1 : group->tile[group->i];
        out->thread[1] = group->j < 0 ? 1 : group->tile[group->j];
    }
    out->threads = out->rows > 0
                       ? WPK_CUDA_ROW_THREADS
                       : out->block[0] / out->thread[0] * (out->block[1] / out->thread[1]);
    if (group->transforms) {
        out->threads *= wpk_cuda_tiles_beside(&variant->program.stages[group->root], group);
    }
}
