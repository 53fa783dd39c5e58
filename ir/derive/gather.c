/* SPDX-License-Identifier: Apache-2.0 */
/* An operand of a reduction as a tensor of its own, over the axes of the stage that its load
 * depends on. A nest can compute a tile of it where the reduction needs it, in memory that several
 * threads share. */
#include "ir/derive/derive.h"
#include "ir/derive/rewrite.h"

#include <stdio.h>
#include <string.h>

struct gather {
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
    bool same = load->outside == g->outside &&
                memcmp(load->index, g->load_index, sizeof(int) * (size_t)g->rank) == 0;
    return same ? wpk_node_load(program, g->gathered, g->index, -1)
                : wpk_rewrite_keep(program, load, index);
}

/* Let the stage read `tensor` at gather->index for the load. */
static int replace_load(struct wpk_program *program, int id, const struct wpk_node *load,
                        const int *index, int tensor)
{
    struct gather gather = {.outside = load->outside,
                            .rank = program->tensors[load->tensor].rank,
                            .index = index,
                            .gathered = tensor};
    memcpy(gather.load_index, load->index, sizeof(gather.load_index));
    return wpk_rewrite_expr(program, program->stages[id].expr, NULL, load->tensor, load_gathered,
                            &gather);
}

/* The axes that the load depends on: in the order of the tensor's dimensions if each is at an axis
 * of its own, else those of the reduction first and `last` at the end: threads along output axes
 * then read neighbours. A constant, which is prepared, has `last` at the end in any case.
 *   shape   order [WPK_AXES_MAX]; returns their number */
static int order_axes(const struct wpk_program *program, const struct wpk_stage *stage,
                      const struct wpk_node *load, int last, int *order)
{
    bool used[WPK_AXES_MAX] = {false}, plain = true;
    int rank = program->tensors[load->tensor].rank, count = 0;
    for (int d = 0; d < rank; d++) {
        int axis = wpk_index_axis(program, load->index[d]);
        plain = plain && axis >= 0 && !used[axis];
        wpk_node_walk(program, load->index[d], true, wpk_node_mark_axis, used);
        bool moves = d == rank - 1 && last >= 0 && axis != last;
        plain = plain && !(moves && program->tensors[load->tensor].role == WPK_ROLE_CONSTANT);
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
    const struct wpk_tensor *source = &program->tensors[load.tensor];
    int stage =
        wpk_rewrite_add_stage(program, source->name, "t", source->dtype, rank, extent, axes);
    if (stage < 0) {
        return WPK_ENOSPC;
    }
    program->stages[stage].expr = wpk_rewrite_expr(program, node, map, -1, NULL, NULL);
    program->stages[id].expr =
        replace_load(program, id, &load, index, program->stages[stage].output);
    if (program->stages[id].expr < 0 || program->stages[stage].expr < 0) {
        return WPK_ENOSPC;
    }
    return wpk_program_tidy(program);
}

/* Find the box that the load reads; false: there are no windows, none overlap, or the tensor is
 * such a copy.
 *   shape   low, extent [rank] */
static bool find_box(const struct wpk_program *program, const struct wpk_stage *stage,
                     const struct wpk_node *load, int64_t multiple, int64_t *low, int64_t *extent)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    int writer = wpk_program_writer(program, load->tensor);
    double box = 1, read = 1;
    bool used[WPK_AXES_MAX] = {false}, known = true;
    bool copied = writer >= 0 && load->outside < 0 &&
                  program->stages[writer].reduction == WPK_REDUCE_NONE &&
                  program->nodes[program->stages[writer].expr].kind == WPK_NODE_LOAD;
    for (int d = 0; d < tensor->rank && known; d++) {
        struct wpk_affine affine;
        int64_t high = 0;
        known = wpk_index_affine(program, load->index[d], &affine);
        wpk_index_range(program, stage, load->index[d], &low[d], &high);
        if (d == tensor->rank - 1 && tensor->extent[d] % multiple == 0) {
            low[d] -= (low[d] % multiple + multiple) % multiple;
            high += multiple - 1 - (high % multiple + multiple) % multiple;
        }
        extent[d] = high - low[d] + 1;
        box *= (double)extent[d];
        copied = copied && low[d] == 0 && extent[d] == tensor->extent[d];
        wpk_node_walk(program, load->index[d], true, wpk_node_mark_axis, used);
    }
    for (int a = 0; a < stage->axis_count; a++) {
        read *= used[a] ? (double)stage->axes[a].extent : 1;
    }
    bool number = load->outside < 0 || program->nodes[load->outside].kind == WPK_NODE_LITERAL;
    return known && number && !copied && box < read;
}

wpk_err wpk_derive_box(struct wpk_program *program, int id, int node, int64_t multiple)
{
    const struct wpk_stage old = program->stages[id];
    const struct wpk_node load = program->nodes[node];
    int rank = program->tensors[load.tensor].rank, index[WPK_RANK_MAX], from[WPK_RANK_MAX];
    char names[WPK_RANK_MAX][WPK_NAME_MAX];
    const char *axes[WPK_RANK_MAX];
    int64_t low[WPK_RANK_MAX], extent[WPK_RANK_MAX];
    if (!find_box(program, &old, &load, multiple, low, extent)) {
        return WPK_EUNSUPPORTED;
    }
    for (int d = 0; d < rank; d++) {
        snprintf(names[d], sizeof(names[d]), "i%d", d);
        axes[d] = names[d];
        index[d] = wpk_index_add_constant(program, load.index[d], -low[d]);
        from[d] = wpk_index_add_constant(program, wpk_node_axis(program, d), low[d]);
    }
    const struct wpk_tensor *source = &program->tensors[load.tensor];
    int stage =
        wpk_rewrite_add_stage(program, source->name, "b", source->dtype, rank, extent, axes);
    if (stage < 0) {
        return WPK_ENOSPC;
    }
    program->stages[stage].expr = wpk_node_load(program, load.tensor, from, load.outside);
    program->stages[id].expr =
        replace_load(program, id, &load, index, program->stages[stage].output);
    if (program->stages[id].expr < 0 || program->stages[stage].expr < 0) {
        return WPK_ENOSPC;
    }
    return wpk_program_tidy(program);
}
