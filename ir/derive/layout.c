/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts as derivations: afterwards tensors are dense in their dimensions, and no later step has
 * to know about layouts. */
#include "ir/derive/derive.h"

#include "ir/data_index.h"
#include "ir/derive/extract.h"
#include "ir/derive/rewrite.h"
#include "ir/node.h"

#include <stdio.h>
#include <string.h>

struct permutation {
    const int *order;
    int rank;
    const bool *affected; /* [tensor_count] */
};

static int permute_load(struct wpk_program *program, const struct wpk_node *load, const int *index,
                        void *user)
{
    const struct permutation *permutation = user;
    int moved[WPK_RANK_MAX] = {0};
    if (!permutation->affected[load->tensor]) {
        return wpk_rewrite_keep(program, load, index);
    }
    for (int d = 0; d < permutation->rank; d++) {
        moved[d] = index[permutation->order[d]];
    }
    return wpk_rewrite_keep(program, load, moved);
}

static void permute_tensor(struct wpk_tensor *tensor, const int *order)
{
    struct wpk_tensor old = *tensor;
    for (int d = 0; d < tensor->rank; d++) {
        tensor->extent[d] = old.extent[order[d]];
        tensor->pad_before[d] = old.pad_before[order[d]];
        tensor->pad_after[d] = old.pad_after[order[d]];
    }
}

static wpk_err permute_stage(struct wpk_program *program, int id, struct permutation *permutation)
{
    struct wpk_stage old = program->stages[id];
    int axis_map[WPK_AXES_MAX];
    for (int a = 0; a < old.axis_count; a++) {
        axis_map[a] = wpk_node_axis(program, a);
    }
    if (permutation->affected[old.output]) {
        for (int d = 0; d < old.rank; d++) {
            axis_map[permutation->order[d]] = wpk_node_axis(program, d);
        }
    }
    int expr = wpk_rewrite_expr(program, old.expr, axis_map, -1, permute_load, permutation);
    if (expr < 0) {
        return WPK_ENOSPC;
    }
    program->stages[id].expr = expr;
    for (int d = 0; d < old.rank && permutation->affected[old.output]; d++) {
        program->stages[id].axes[d] = old.axes[permutation->order[d]];
    }
    return WPK_OK;
}

wpk_err wpk_derive_permute(struct wpk_program *program, const int *order, int rank)
{
    bool affected[WPK_TENSORS_MAX] = {false};
    struct permutation permutation = {.order = order, .rank = rank, .affected = affected};
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        affected[t] = tensor->rank == rank && tensor->role != WPK_ROLE_CONSTANT &&
                      tensor->role != WPK_ROLE_LITERAL;
    }
    /* the loads are rewritten first: ranges of indices are looked up by tensor */
    for (int s = 0; s < program->stage_count; s++) {
        wpk_err err = permute_stage(program, s, &permutation);
        if (err != WPK_OK) {
            return err;
        }
    }
    for (int t = 0; t < program->tensor_count; t++) {
        if (affected[t]) {
            permute_tensor(&program->tensors[t], order);
        }
    }
    return wpk_program_tidy(program);
}

/* The order that all loads of an intermediate have in common, if it is not its own. */
static bool find_reading_order(const struct wpk_program *program, int tensor, int *order)
{
    bool found = false;

    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        int place[WPK_AXES_MAX];
        if (load.node->tensor != tensor) {
            continue;
        }
        if (load.stage->axis_count != load.stage->rank ||
            !wpk_rewrite_order(program, load.stage, load.node, place)) {
            return false;
        }
        for (int d = 0; d < load.stage->rank; d++) { /* dimension order[a] is output axis a */
            if (found && order[place[d]] != d) {
                return false;
            }
            order[place[d]] = d;
        }
        found = true;
    }
    for (int d = 0; found && d < program->tensors[tensor].rank; d++) {
        if (order[d] != d) {
            return true;
        }
    }
    return false;
}

static wpk_err permute_one(struct wpk_program *program, int tensor, const int *order)
{
    bool affected[WPK_TENSORS_MAX] = {false};
    struct permutation permutation = {
        .order = order, .rank = program->tensors[tensor].rank, .affected = affected};

    affected[tensor] = true;
    for (int s = 0; s < program->stage_count; s++) {
        wpk_err err = permute_stage(program, s, &permutation);
        if (err != WPK_OK) {
            return err;
        }
    }
    permute_tensor(&program->tensors[tensor], order);
    return WPK_OK;
}

wpk_err wpk_derive_reading_order(struct wpk_program *program)
{
    wpk_err err = WPK_OK;

    /* The last first: what it reads may then be in order, too. */
    for (int s = program->stage_count - 1; s >= 0 && err == WPK_OK; s--) {
        int tensor = program->stages[s].output;
        int order[WPK_RANK_MAX];
        if (program->tensors[tensor].role == WPK_ROLE_INTERMEDIATE &&
            find_reading_order(program, tensor, order)) {
            err = permute_one(program, tensor, order);
        }
    }
    return err;
}

/* The box of indices that the program reads of a tensor, its border included, and what it reads
 * outside of it. */
struct reach {
    int64_t low[WPK_RANK_MAX];
    int64_t high[WPK_RANK_MAX];
    double outside;
    bool leaves;  /* some load may leave the tensor */
    bool uniform; /* all that leave read the same value outside */
};

static void find_reach(const struct wpk_program *program, int tensor, int bare, struct reach *reach)
{
    const struct wpk_tensor *source = &program->tensors[tensor];
    memset(reach, 0, sizeof(*reach));
    bool gathers = wpk_tensor_gathers(program, tensor);
    reach->uniform = !gathers; /* no border holds all that an index that is data may reach */
    for (int d = 0; d < source->rank; d++) {
        reach->low[d] = -source->pad_before[d];
        reach->high[d] = source->extent[d] - 1 + source->pad_after[d];
    }
    for (int s = 0; s < program->stage_count && !gathers; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
            if (load.node->tensor != tensor || !wpk_load_may_leave(program, stage, load.id)) {
                continue;
            }
            double outside =
                load.node->outside >= 0 ? wpk_node_number(&program->nodes[load.node->outside]) : 0;
            reach->uniform = reach->uniform && (!reach->leaves || outside == reach->outside);
            reach->outside = outside;
            reach->leaves = true;
            for (int d = 0; d < source->rank; d++) {
                int64_t low = 0, high = 0;
                if (d == bare) {
                    continue;
                }
                wpk_index_range(program, stage, load.node->index[d], &low, &high);
                reach->low[d] = low < reach->low[d] ? low : reach->low[d];
                reach->high[d] = high > reach->high[d] ? high : reach->high[d];
            }
        }
    }
}

/* Loads of `from` become loads of `to`, shifted, that never leave it. */
struct redirect {
    int from;
    int to;
    int bare; /* a dimension that loads may still leave, or -1 */
    int64_t shift[WPK_RANK_MAX];
};

static int redirect_load(struct wpk_program *program, const struct wpk_node *load, const int *index,
                         void *user)
{
    const struct redirect *redirect = user;
    int shifted[WPK_RANK_MAX] = {0};
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        shifted[d] = wpk_index_add_constant(program, index[d], redirect->shift[d]);
        if (shifted[d] < 0) {
            return -1;
        }
    }
    return wpk_node_load(program, redirect->to, shifted, redirect->bare >= 0 ? load->outside : -1);
}

wpk_err wpk_derive_halo(struct wpk_program *program, const int *bare)
{
    for (int t = 0; t < program->tensor_count; t++) {
        struct reach reach;
        int without = bare == NULL ? -1 : bare[t];
        if (program->tensors[t].role != WPK_ROLE_INPUT) {
            continue;
        }
        find_reach(program, t, without, &reach);
        if (!reach.leaves || !reach.uniform || reach.outside != 0) {
            continue;
        }
        struct wpk_tensor *tensor = &program->tensors[t];
        for (int d = 0; d < tensor->rank; d++) {
            tensor->pad_before[d] = -reach.low[d];
            tensor->pad_after[d] = reach.high[d] - (tensor->extent[d] - 1);
        }
        struct redirect redirect = {.from = t, .to = t, .bare = without};
        wpk_err err = wpk_rewrite_all(program, -1, redirect.from, redirect_load, &redirect);
        if (err != WPK_OK) {
            return err;
        }
    }
    return wpk_program_tidy(program);
}

/* A stage that writes `to` by copying `from`: to[i] = from[i - shift] in the order given. */
static wpk_err add_copy(struct wpk_program *program, int to, int from, const int *order,
                        const int64_t *shift, int outside)
{
    /* a copy of something computed keeps the names of its axes */
    const char *names[WPK_RANK_MAX];
    int writer = wpk_program_writer(program, from), index[WPK_RANK_MAX] = {0};
    for (int d = 0; d < program->tensors[to].rank && writer >= 0; d++) {
        names[d] = program->stages[writer].axes[order == NULL ? d : order[d]].name;
    }
    int stage = wpk_program_add_stage(program, to, writer < 0 ? NULL : names);
    if (stage < 0) {
        return WPK_ENOSPC;
    }
    for (int d = 0; d < program->tensors[to].rank; d++) {
        int axis = wpk_node_axis(program, d);
        index[order == NULL ? d : order[d]] = wpk_index_add_constant(program, axis, -shift[d]);
    }
    int load = wpk_node_load(program, from, index, outside);
    if (load < 0) {
        return WPK_ENOSPC;
    }
    program->stages[stage].expr = load;
    return WPK_OK;
}

/* Copy the tensor, which lies in the order of the copy afterwards. */
static wpk_err copy_before_loads(struct wpk_program *program, int tensor, const int *order,
                                 int bare)
{
    struct reach reach;
    struct redirect redirect = {.from = tensor, .bare = bare};
    int64_t extent[WPK_RANK_MAX];
    find_reach(program, tensor, bare, &reach);
    if (!reach.uniform) {
        return WPK_EUNSUPPORTED;
    }
    struct wpk_tensor source = program->tensors[tensor];
    for (int d = 0; d < source.rank; d++) {
        extent[d] = reach.high[d] - reach.low[d] + 1;
        redirect.shift[d] = -reach.low[d];
    }
    int staged =
        wpk_rewrite_add_tensor(program, source.name, "t", source.dtype, source.rank, extent);
    redirect.to = staged;
    if (staged < 0) {
        return WPK_ENOSPC;
    }
    wpk_err err = wpk_rewrite_all(program, -1, redirect.from, redirect_load, &redirect);
    if (err != WPK_OK) {
        return err;
    }
    for (int d = 0; d < source.rank; d++) {
        int to = order == NULL ? d : order[d];
        program->tensors[tensor].extent[to] = source.extent[d];
        program->tensors[tensor].pad_before[to] = source.pad_before[d];
        program->tensors[tensor].pad_after[to] = source.pad_after[d];
    }
    int outside = reach.leaves ? wpk_node_real(program, source.dtype, reach.outside) : -1;
    err = add_copy(program, staged, tensor, order, redirect.shift, outside);
    return err == WPK_OK ? wpk_program_tidy(program) : err;
}

wpk_err wpk_derive_stage_input(struct wpk_program *program, int tensor, const int *order, int bare)
{
    return program->tensors[tensor].role == WPK_ROLE_INPUT
               ? copy_before_loads(program, tensor, order, bare)
               : WPK_EUNSUPPORTED;
}

/* Does a sum, maximum, ... read what is outside of the tensor? */
static bool window_leaves(const struct wpk_program *program, int tensor)
{
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        if (load.stage->reduction != WPK_REDUCE_NONE && load.node->tensor == tensor &&
            wpk_load_may_leave(program, load.stage, load.id)) {
            return true;
        }
    }
    return false;
}

wpk_err wpk_derive_borders(struct wpk_program *program)
{
    bool prepare[WPK_STAGES_MAX];
    wpk_program_mark_prepare(program, prepare);
    for (int t = 0; t < program->tensor_count; t++) {
        int writer = wpk_program_writer(program, t);
        if (writer < 0 || prepare[writer] || !window_leaves(program, t)) {
            continue;
        }
        wpk_err err = copy_before_loads(program, t, NULL, -1);
        if (err == WPK_OK) {
            return wpk_derive_borders(program); /* the copy is not left: ids have changed */
        }
        if (err != WPK_EUNSUPPORTED) {
            return err;
        }
    }
    return WPK_OK;
}

/* True if the stage is a copy that reads past the end of a tensor, maybe through other copies. */
static bool has_border(const struct wpk_program *program, int stage)
{
    if (stage < 0 || program->stages[stage].reduction != WPK_REDUCE_NONE) {
        return false;
    }
    const struct wpk_node *load = &program->nodes[program->stages[stage].expr];
    return load->kind == WPK_NODE_LOAD &&
           (load->outside >= 0 || has_border(program, wpk_program_writer(program, load->tensor)));
}

/* How far the tensor's rows are read, and whether an axis of some output runs along them. */
static bool reads_rows(const struct wpk_program *program, int tensor, int64_t *end)
{
    bool along = false;
    *end = 0;
    for (struct wpk_loads load = wpk_loads_in(program); wpk_loads_next(&load);) {
        struct wpk_affine affine;
        int64_t low = 0, high = 0;
        if (load.node->tensor != tensor) {
            continue;
        }
        int last = load.node->index[program->tensors[tensor].rank - 1];
        wpk_index_range(program, load.stage, last, &low, &high);
        *end = high + 1 > *end ? high + 1 : *end;
        bool known = wpk_index_affine(program, last, &affine);
        for (int a = 0; a < load.stage->rank; a++) {
            along = along || !known || affine.coefficient[a] != 0;
        }
    }
    return along;
}

wpk_err wpk_derive_whole_rows(struct wpk_program *program, int64_t multiple)
{
    bool prepare[WPK_STAGES_MAX];
    wpk_program_mark_prepare(program, prepare);
    for (int s = program->stage_count - 1; s >= 0; s--) { /* readers first */
        struct wpk_stage *stage = &program->stages[s];
        struct wpk_tensor *tensor = &program->tensors[stage->output];
        const struct wpk_node copy = program->nodes[stage->expr];
        int last = tensor->rank - 1;
        int64_t end = 0;
        if (tensor->role != WPK_ROLE_INTERMEDIATE || prepare[s] || !has_border(program, s) ||
            last < 0 || tensor->extent[last] <= multiple ||
            !reads_rows(program, stage->output, &end)) {
            continue;
        }
        int64_t old = tensor->extent[last], most = old > end ? old : end;
        int64_t extent = (most + multiple - 1) / multiple * multiple;
        if (extent == old || 4 * (extent - old) > old) {
            continue;
        }
        int outside = copy.outside;
        outside = outside < 0 ? wpk_node_real(program, copy.dtype, 0) : outside;
        int load = outside < 0 ? -1 : wpk_node_load(program, copy.tensor, copy.index, outside);
        if (load < 0) {
            return WPK_ENOSPC;
        }
        stage->expr = load;
        tensor->extent[last] = stage->axes[last].extent = extent;
    }
    return wpk_program_tidy(program);
}

wpk_err wpk_derive_stage_output(struct wpk_program *program, int tensor, const int *order)
{
    static const int64_t no_shift[WPK_RANK_MAX] = {0};
    char name[WPK_NAME_MAX], stem[WPK_NAME_MAX];
    int64_t extent[WPK_RANK_MAX];
    int inverse[WPK_RANK_MAX];
    struct wpk_tensor output = program->tensors[tensor];
    if (output.role != WPK_ROLE_OUTPUT) {
        return WPK_EUNSUPPORTED;
    }
    for (int d = 0; d < output.rank; d++) {
        int to = order == NULL ? d : order[d];
        extent[to] = output.extent[d];
        inverse[to] = d;
    }
    snprintf(stem, sizeof(stem), "%.40s_t", output.name);
    wpk_program_free_name(program, stem, name);
    snprintf(program->tensors[tensor].name, WPK_NAME_MAX, "%s", name);
    program->tensors[tensor].role = WPK_ROLE_INTERMEDIATE;
    int given = wpk_program_add_tensor(program, output.name, WPK_ROLE_OUTPUT, output.dtype,
                                       output.rank, extent);
    if (given < 0) {
        return WPK_ENOSPC;
    }
    for (int d = 0; d < output.rank; d++) { /* its border stays where it lies */
        int to = order == NULL ? d : order[d];
        program->tensors[given].pad_before[to] = output.pad_before[d];
        program->tensors[given].pad_after[to] = output.pad_after[d];
        program->tensors[tensor].pad_before[d] = 0;
        program->tensors[tensor].pad_after[d] = 0;
    }
    wpk_err err = add_copy(program, given, tensor, inverse, no_shift, -1);
    return err == WPK_OK ? wpk_program_tidy(program) : err;
}
