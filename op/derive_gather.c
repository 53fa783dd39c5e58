/* SPDX-License-Identifier: Apache-2.0 */
/* An operand of a reduction as a tensor of its own, over the axes of the stage that its load
 * depends on. A nest can compute a tile of it where the reduction needs it, in memory that several
 * threads share. */
#include "op/derive.h"
#include "op/node.h"
#include "op/rewrite.h"

#include <stdio.h>
#include <string.h>

struct gather {
    int load_tensor;
    int load_index[WPK_RANK_MAX];
    int outside;
    int rank;         /* of the loaded tensor */
    const int *index; /* of the gathered tensor */
    int gathered;
};

static int load_gathered(struct wpk_program *program, const struct wpk_node *load, const int *index,
                         void *user)
{
    struct gather *g = user;
    bool same = load->tensor == g->load_tensor && load->outside == g->outside &&
                memcmp(load->index, g->load_index, sizeof(int) * (size_t)g->rank) == 0;
    return same ? wpk_node_load(program, g->gathered, g->index, -1)
                : wpk_rewrite_keep(program, load, index);
}

static void mark_axis(const struct wpk_program *program, int node, void *user)
{
    bool *used = user;
    if (program->nodes[node].kind == WPK_NODE_AXIS) {
        used[program->nodes[node].axis] = true;
    }
}

/* The axes that the load depends on: in the order of the tensor's dimensions if each is at an axis
 * of its own, else those of the reduction first and `last` at the end: threads along output axes
 * then read neighbours.
 *   shape   order [WPK_AXES_MAX]; returns their number */
static int order_axes(const struct wpk_program *program, const struct wpk_stage *stage,
                      const struct wpk_node *load, int last, int *order)
{
    bool used[WPK_AXES_MAX] = {false}, plain = true;
    int rank = program->tensors[load->tensor].rank, count = 0;
    for (int d = 0; d < rank; d++) {
        int axis = wpk_index_axis(program, load->index[d]);
        plain = plain && axis >= 0 && !used[axis];
        wpk_node_walk(program, load->index[d], false, mark_axis, used);
    }
    for (int d = 0; d < rank && plain; d++) {
        order[count++] = wpk_index_axis(program, load->index[d]);
    }
    for (int i = 0; i < stage->axis_count && !plain; i++) {
        int reductions = stage->axis_count - stage->rank;
        int axis = i < reductions ? stage->rank + i : i - reductions;
        if (used[axis] && axis != last) {
            order[count++] = axis;
        }
    }
    if (!plain && last >= 0 && used[last]) {
        order[count++] = last;
    }
    return count;
}

wpk_err wpk_derive_gather(struct wpk_program *program, int id, int node, int last)
{
    const struct wpk_stage old = program->stages[id];
    const struct wpk_node load = program->nodes[node];
    int order[WPK_AXES_MAX], map[WPK_AXES_MAX], index[WPK_RANK_MAX];
    const char *axes[WPK_AXES_MAX] = {0};
    int64_t extent[WPK_RANK_MAX];
    char name[WPK_NAME_MAX], stem[WPK_NAME_MAX];
    int rank = order_axes(program, &old, &load, last, order);
    if (rank > WPK_RANK_MAX || rank == 0) {
        return WPK_EUNSUPPORTED;
    }
    for (int a = 0; a < old.axis_count; a++) {
        map[a] = wpk_node_axis(program, a);
    }
    for (int d = 0; d < rank; d++) {
        axes[d] = old.axes[order[d]].name;
        extent[d] = old.axes[order[d]].extent;
        index[d] = map[order[d]];
        map[order[d]] = wpk_node_axis(program, d);
    }
    snprintf(stem, sizeof(stem), "%.36s_t", program->tensors[load.tensor].name);
    wpk_program_free_name(program, stem, name);
    int tensor = wpk_program_add_tensor(program, name, WPK_ROLE_INTERMEDIATE,
                                        program->tensors[load.tensor].dtype, rank, extent);
    int stage = tensor < 0 ? -1 : wpk_program_add_stage(program, tensor, axes);
    if (stage < 0) {
        return WPK_ENOSPC;
    }
    program->stages[stage].expr = wpk_rewrite_expr(program, node, map, NULL, NULL);
    struct gather gather = {.load_tensor = load.tensor,
                            .outside = load.outside,
                            .rank = program->tensors[load.tensor].rank,
                            .index = index,
                            .gathered = tensor};
    memcpy(gather.load_index, load.index, sizeof(gather.load_index));
    program->stages[id].expr = wpk_rewrite_expr(program, old.expr, NULL, load_gathered, &gather);
    if (program->stages[id].expr < 0 || program->stages[stage].expr < 0) {
        return WPK_ENOSPC;
    }
    return wpk_program_tidy(program);
}
