/* SPDX-License-Identifier: Apache-2.0 */
/* Derivations that give a program the form that scheduling needs: copies after reductions,
 * reductions cut in two, gathered and packed operands. */
#include "ir/derive/derive.h"

#include "ir/derive/extract.h"
#include "ir/derive/rewrite.h"

#include <stdio.h>

/* ---- a copy behind a reduction */

wpk_err wpk_derive_copy_after(struct wpk_program *program, int stage, char *name_out)
{
    const char *axes[WPK_AXES_MAX];
    int index[WPK_RANK_MAX] = {0};
    struct wpk_stage reduction = program->stages[stage];
    struct wpk_tensor old = program->tensors[reduction.output];
    /* the copy takes over name and role: users of the tensor need not be rewritten */
    enum wpk_dtype inner_dtype =
        reduction.reduction == WPK_REDUCE_NONE ? old.dtype : reduction.accumulator;
    int inner = wpk_rewrite_add_tensor(program, old.name, "r", inner_dtype, old.rank, old.extent);
    if (inner < 0) {
        return WPK_ENOSPC;
    }
    program->stages[stage].output = inner;
    for (int a = 0; a < reduction.rank; a++) {
        axes[a] = reduction.axes[a].name;
        index[a] = wpk_node_axis(program, a);
    }
    int copy = wpk_program_add_stage(program, reduction.output, axes);
    if (copy < 0) {
        return WPK_ENOSPC;
    }
    int load = wpk_node_load(program, inner, index, -1);
    program->stages[copy].expr =
        load < 0 || inner_dtype == old.dtype ? load : wpk_node_cast(program, old.dtype, load);
    if (name_out != NULL) {
        snprintf(name_out, WPK_NAME_MAX, "%s", program->tensors[inner].name);
    }
    return program->stages[copy].expr < 0 ? WPK_ENOSPC : wpk_program_tidy(program);
}

/* ---- a reduction cut in two */

/* The terms of a reduction's axis, dealt out to partial results. */
struct deal {
    int64_t parts;
    const char *axis, *suffix; /* what counts the parts, and what names their tensor */
    bool blocks;               /* each has consecutive terms and they are counted by the first axis;
                                  else every parts-th term, and by the last one */
};

/* The stage of partial results, of rank old->rank + 1 with the parts' axis at `place`; returns its
 * tensor, or -1.
 *   shape  map [old->rank] the nodes of the old output axes */
static int add_partial(struct wpk_program *program, const struct wpk_stage *old, int reduced,
                       const struct deal *deal, int place, char *name)
{
    const struct wpk_tensor target = program->tensors[old->output];
    const char *axes[WPK_AXES_MAX] = {0};
    int64_t extent[WPK_RANK_MAX] = {0};
    int map[WPK_AXES_MAX];
    for (int a = 0; a < old->rank; a++) {
        int moved = a + (a >= place);
        axes[moved] = old->axes[a].name;
        extent[moved] = target.extent[a];
        map[a] = wpk_node_axis(program, moved);
    }
    axes[place] = deal->axis;
    extent[place] = deal->parts;
    int id = wpk_rewrite_add_stage(program, target.name, deal->suffix, old->accumulator,
                                   old->rank + 1, extent, axes);
    if (id < 0) {
        return -1;
    }
    struct wpk_stage *cut = &program->stages[id];
    snprintf(name, WPK_NAME_MAX, "%s", program->tensors[cut->output].name);
    int64_t terms = old->axes[reduced].extent / deal->parts;
    for (int a = old->rank; a < old->axis_count; a++) {
        int64_t size = a == reduced ? terms : old->axes[a].extent;
        int added = wpk_stage_add_reduction_axis(cut, old->axes[a].name, size);
        map[a] = wpk_node_axis(program, added);
    }
    int part = wpk_node_axis(program, place);
    map[reduced] =
        deal->blocks
            ? wpk_index_add(program, wpk_index_scale(program, part, terms), map[reduced])
            : wpk_index_add(program, wpk_index_scale(program, map[reduced], deal->parts), part);
    cut->reduction = old->reduction;
    cut->accumulator = old->accumulator;
    cut->expr = wpk_rewrite_expr(program, old->expr, map, -1, NULL, NULL);
    return cut->expr < 0 ? -1 : cut->output;
}

static wpk_err cut_reduction(struct wpk_program *program, int stage, int axis,
                             const struct deal *deal, char *name)
{
    struct wpk_stage old = program->stages[stage];
    int index[WPK_RANK_MAX] = {0}, place = deal->blocks ? 0 : old.rank;
    if (axis < old.rank || axis >= old.axis_count || deal->parts < 2 ||
        old.axes[axis].extent % deal->parts != 0 || old.rank + 1 > WPK_RANK_MAX ||
        old.axis_count + 1 > WPK_AXES_MAX) {
        return WPK_EUNSUPPORTED;
    }
    int partial = add_partial(program, &old, axis, deal, place, name);
    if (partial < 0) {
        return WPK_ENOSPC;
    }
    struct wpk_stage *rest = &program->stages[stage];
    rest->axis_count = rest->rank;
    int part = wpk_stage_add_reduction_axis(rest, deal->axis, deal->parts);
    for (int a = 0; a < old.rank; a++) {
        index[a + (a >= place)] = wpk_node_axis(program, a);
    }
    index[place] = wpk_node_axis(program, part);
    rest->expr = wpk_node_load(program, partial, index, -1);
    return rest->expr < 0 ? WPK_ENOSPC : wpk_program_tidy(program);
}

/* Keep the first `count` terms of the axis in `stage`, and reduce the others, fewer, by a stage of
 * their own. The stage combines both results into its
 * output. */
static wpk_err cut_rest(struct wpk_program *program, int stage, int axis, int64_t count)
{
    const struct wpk_stage old = program->stages[stage];
    const struct wpk_tensor target = program->tensors[old.output];
    static const enum wpk_binary combine[] = {
        [WPK_REDUCE_SUM] = WPK_BINARY_ADD,
        [WPK_REDUCE_PROD] = WPK_BINARY_MUL,
        [WPK_REDUCE_MAX] = WPK_BINARY_MAX,
        [WPK_REDUCE_MIN] = WPK_BINARY_MIN,
    };
    const char *axes[WPK_AXES_MAX] = {0};
    int own[WPK_RANK_MAX] = {0};
    int part[2];

    for (int a = 0; a < old.rank; a++) {
        axes[a] = old.axes[a].name;
        own[a] = wpk_node_axis(program, a);
    }
    for (int p = 0; p < 2; p++) {
        int map[WPK_AXES_MAX];
        int id = wpk_rewrite_add_stage(program, target.name, p == 0 ? "w" : "q", old.accumulator,
                                       target.rank, target.extent, axes);
        if (id < 0) {
            return WPK_ENOSPC;
        }
        struct wpk_stage *made = &program->stages[id];
        part[p] = made->output;
        for (int a = 0; a < old.axis_count; a++) {
            int64_t terms = p == 0 ? count : old.axes[axis].extent - count;
            map[a] = a < old.rank
                         ? own[a]
                         : wpk_node_axis(program, wpk_stage_add_reduction_axis(
                                                      made, old.axes[a].name,
                                                      a == axis ? terms : old.axes[a].extent));
        }
        map[axis] = p == 0 ? map[axis] : wpk_index_add_constant(program, map[axis], count);
        made->reduction = old.reduction;
        made->accumulator = old.accumulator;
        made->expr = wpk_rewrite_expr(program, old.expr, map, -1, NULL, NULL);
        if (made->expr < 0) {
            return WPK_ENOSPC;
        }
    }
    int whole = wpk_node_load(program, part[0], own, -1);
    int rest = wpk_node_load(program, part[1], own, -1);
    int both =
        whole < 0 || rest < 0 ? -1 : wpk_node_binary(program, combine[old.reduction], whole, rest);
    struct wpk_stage *joint = &program->stages[stage];
    joint->axis_count = joint->rank;
    joint->reduction = WPK_REDUCE_NONE;
    joint->expr = both < 0 || program->nodes[both].dtype == target.dtype
                      ? both
                      : wpk_node_cast(program, target.dtype, both);
    return joint->expr < 0 ? WPK_ENOSPC : WPK_OK;
}

wpk_err wpk_derive_split_reduction(struct wpk_program *program, int stage, int axis, int64_t lanes)
{
    char name[WPK_NAME_MAX];
    const struct deal deal = {.parts = lanes, .axis = "lane", .suffix = "p"};
    int64_t extent = program->stages[stage].axes[axis].extent;

    if (program->stages[stage].rank + 1 > WPK_RANK_MAX || axis < program->stages[stage].rank) {
        return WPK_EUNSUPPORTED;
    }
    if (lanes >= 2 && extent > lanes && extent % lanes != 0) {
        int whole = program->stage_count;
        wpk_err err = cut_rest(program, stage, axis, extent - extent % lanes);
        return err == WPK_OK ? cut_reduction(program, whole, axis, &deal, name) : err;
    }
    return cut_reduction(program, stage, axis, &deal, name);
}

wpk_err wpk_derive_block_reduction(struct wpk_program *program, int stage, int axis, int64_t block,
                                   char *name)
{
    int64_t extent = program->stages[stage].axes[axis].extent;
    const struct deal deal = {
        .parts = extent / block, .axis = "block", .suffix = "b", .blocks = true};
    return extent % block != 0 ? WPK_EUNSUPPORTED
                               : cut_reduction(program, stage, axis, &deal, name);
}

/* ---- im2col */

static bool window_operand(const struct wpk_program *program, const struct wpk_stage *stage,
                           const struct wpk_node *load)
{
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        struct wpk_affine affine;
        int used = 0;
        if (!wpk_index_affine(program, load->index[d], &affine)) {
            return true;
        }
        for (int a = 0; a < stage->axis_count; a++) {
            used += affine.coefficient[a] != 0;
        }
        if (used > 1) {
            return true;
        }
    }
    return false;
}

struct gather {
    const int *index; /* indices of the gathered matrix */
    int matrix;
    bool done;
};

static int load_gathered(struct wpk_program *program, const struct wpk_node *load WPK_UNUSED,
                         const int *index WPK_UNUSED, void *user)
{
    struct gather *gather = user;
    gather->done = true;
    return wpk_node_load(program, gather->matrix, gather->index, -1);
}

/* Marks the axes that occur in the load's indices; returns how many. */
static int axes_of_load(const struct wpk_program *program, const struct wpk_node *load, bool *used)
{
    int count = 0;
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        wpk_node_walk(program, load->index[d], true, wpk_node_mark_axis, used);
    }
    for (int a = 0; a < WPK_AXES_MAX; a++) {
        count += used[a];
    }
    return count;
}

/* The one load of the stage that is read through a window, if there is exactly one and no other
 * load reads its tensor; else -1. */
static int find_window(const struct wpk_program *program, const struct wpk_stage *stage)
{
    int loads[WPK_LOADS_MAX], found = -1;
    int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
    for (int i = 0; i < count; i++) {
        const struct wpk_node *load = &program->nodes[loads[i]];
        if (window_operand(program, stage, load)) {
            if (found >= 0) {
                return -1;
            }
            found = loads[i];
        }
    }
    for (int i = 0; i < count && found >= 0; i++) {
        bool same = program->nodes[loads[i]].tensor == program->nodes[found].tensor;
        found = same && loads[i] != found ? -1 : found;
    }
    return found;
}

wpk_err wpk_derive_im2col(struct wpk_program *program, int id)
{
    int window = wpk_contraction_is(program, id) ? find_window(program, &program->stages[id]) : -1;
    if (window < 0) {
        return WPK_EUNSUPPORTED;
    }
    struct wpk_stage old = program->stages[id];
    struct wpk_node load = program->nodes[window];
    bool used[WPK_AXES_MAX] = {false};
    const char *axes[WPK_AXES_MAX] = {0};
    int64_t extent[WPK_RANK_MAX], fused = 1;
    int rank = 0, gather_map[WPK_AXES_MAX], fused_map[WPK_AXES_MAX], index[WPK_RANK_MAX] = {0};
    if (axes_of_load(program, &load, used) > WPK_RANK_MAX) {
        return WPK_EUNSUPPORTED;
    }
    for (int a = 0; a < old.rank; a++) {
        fused_map[a] = wpk_node_axis(program, a);
        if (used[a]) {
            axes[rank] = old.axes[a].name;
            extent[rank] = old.axes[a].extent;
            gather_map[a] = wpk_node_axis(program, rank);
            index[rank++] = fused_map[a];
        }
    }
    for (int a = old.rank; a < old.axis_count; a++) {
        if (!used[a]) {
            return WPK_EUNSUPPORTED;
        }
        fused *= old.axes[a].extent;
    }
    /* the column q counts through the reduction axes; the one that is contiguous in the source is
     * fastest, so that columns are copied in vectors */
    int fastest = wpk_index_axis(program, load.index[program->tensors[load.tensor].rank - 1]);
    fastest = fastest >= old.rank ? fastest : old.axis_count - 1;
    int column = wpk_node_axis(program, rank), step = wpk_node_axis(program, old.rank);
    int64_t inner = 1;
    for (int i = 0; i < old.axis_count - old.rank; i++) {
        int a = old.axis_count - i;
        a = i == 0 ? fastest : a > fastest ? a : a - 1;
        int64_t size = old.axes[a].extent;
        bool outermost = inner * size == fused;
        int q = wpk_index_div(program, column, inner), s = wpk_index_div(program, step, inner);
        gather_map[a] = outermost ? q : wpk_index_mod(program, q, size);
        fused_map[a] = outermost ? s : wpk_index_mod(program, s, size);
        inner *= size;
    }
    axes[rank] = "q";
    extent[rank] = fused;
    index[rank++] = step;
    const struct wpk_tensor *source = &program->tensors[load.tensor];
    int gather_stage =
        wpk_rewrite_add_stage(program, source->name, "col", source->dtype, rank, extent, axes);
    if (gather_stage < 0) {
        return WPK_ENOSPC;
    }
    program->stages[gather_stage].expr =
        wpk_rewrite_expr(program, window, gather_map, -1, NULL, NULL);

    struct gather gather = {.index = index, .matrix = program->stages[gather_stage].output};
    struct wpk_stage *stage = &program->stages[id];
    stage->axis_count = stage->rank;
    (void)wpk_stage_add_reduction_axis(stage, "q", fused);
    stage->expr =
        wpk_rewrite_expr(program, old.expr, fused_map, load.tensor, load_gathered, &gather);
    if (stage->expr < 0 || program->stages[gather_stage].expr < 0 || !gather.done) {
        return WPK_ENOSPC;
    }
    return wpk_program_tidy(program);
}

/* ---- packing */

struct repack {
    const struct wpk_packing *packing;
    int packed;
};

static int load_packed(struct wpk_program *program, const struct wpk_node *load, const int *index,
                       void *user)
{
    const struct repack *repack = user;
    int moved[WPK_RANK_MAX] = {0};
    for (int d = 0; d < repack->packing->dim_count; d++) {
        int64_t block = repack->packing->block[d];
        int from = index[repack->packing->dim[d]];
        moved[d] = block > 0   ? wpk_index_mod(program, from, block)
                   : block < 0 ? wpk_index_div(program, from, -block)
                               : from;
    }
    return wpk_node_load(program, repack->packed, moved, load->outside);
}

bool wpk_pack_reads_border(const struct wpk_program *program, int tensor)
{
    const struct wpk_tensor *source = &program->tensors[tensor];
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        for (int d = 0; d < source->rank && load.node->tensor == tensor; d++) {
            int64_t low = 0, high = 0;
            wpk_index_range(program, load.stage, load.node->index[d], &low, &high);
            if ((source->pad_before[d] > 0 && low < 0) ||
                (source->pad_after[d] > 0 && high >= source->extent[d])) {
                return true;
            }
        }
    }
    return false;
}

bool wpk_pack_reads_outside(const struct wpk_program *program, int tensor)
{
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        const struct wpk_node *outside =
            load.node->outside < 0 ? NULL : &program->nodes[load.node->outside];
        if (load.node->tensor == tensor && outside != NULL &&
            (outside->value != 0 || outside->integer != 0) &&
            wpk_load_may_leave(program, load.stage, load.id)) {
            return true;
        }
    }
    return false;
}

wpk_err wpk_derive_pack(struct wpk_program *program, const struct wpk_packing *packing,
                        char *name_out)
{
    struct wpk_tensor old = program->tensors[packing->tensor];
    int64_t extent[WPK_RANK_MAX];
    int index[WPK_RANK_MAX];
    bool partial = false;
    for (int d = 0; d < packing->dim_count; d++) {
        int64_t size = old.extent[packing->dim[d]], block = packing->block[d];
        extent[d] = block > 0 ? block : block < 0 ? (size - block - 1) / -block : size;
        partial = partial || (block < 0 && size % -block != 0);
    }
    if (wpk_pack_reads_border(program, packing->tensor) ||
        (partial && wpk_pack_reads_outside(program, packing->tensor))) {
        return WPK_EUNSUPPORTED;
    }
    int packed =
        wpk_rewrite_add_tensor(program, old.name, "k", old.dtype, packing->dim_count, extent);
    if (packed < 0) {
        return WPK_ENOSPC;
    }
    struct repack repack = {.packing = packing, .packed = packed};
    wpk_err err = wpk_rewrite_all(program, -1, packing->tensor, load_packed, &repack);
    int stage = err == WPK_OK ? wpk_program_add_stage(program, packed, NULL) : -1;
    if (stage < 0) {
        return WPK_ENOSPC;
    }
    for (int d = 0; d < old.rank; d++) {
        index[d] = wpk_node_int(program, 0);
    }
    for (int d = 0; d < packing->dim_count; d++) {
        int64_t block = packing->block[d];
        int axis = wpk_node_axis(program, d);
        int *to = &index[packing->dim[d]];
        *to =
            wpk_index_add(program, *to, block < 0 ? wpk_index_scale(program, axis, -block) : axis);
    }
    int outside = partial ? wpk_node_real(program, old.dtype, 0) : -1;
    program->stages[stage].expr = wpk_node_load(program, packing->tensor, index, outside);
    if (name_out != NULL) {
        snprintf(name_out, WPK_NAME_MAX, "%s", program->tensors[packed].name);
    }
    return program->stages[stage].expr < 0 ? WPK_ENOSPC : wpk_program_tidy(program);
}
