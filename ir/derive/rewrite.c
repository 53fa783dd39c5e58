/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/derive/rewrite.h"

#include "ir/derive/extract.h"
#include "ir/node.h"

#include <stdio.h>
#include <string.h>

int wpk_rewrite_keep(struct wpk_program *program, const struct wpk_node *load, const int *index)
{
    return wpk_node_load(program, load->tensor, index, load->outside);
}

static int rewrite_load(struct wpk_program *program, const struct wpk_node *load,
                        const int *axis_map, int tensor, wpk_load_rewrite rewrite, void *user)
{
    int index[WPK_RANK_MAX] = {0};
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        index[d] = wpk_rewrite_expr(program, load->index[d], axis_map, tensor, rewrite, user);
        if (index[d] < 0) {
            return -1;
        }
    }
    return rewrite == NULL || (tensor >= 0 && load->tensor != tensor)
               ? wpk_rewrite_keep(program, load, index)
               : rewrite(program, load, index, user);
}

int wpk_rewrite_expr(struct wpk_program *program, int node, const int *axis_map, int tensor,
                     wpk_load_rewrite rewrite, void *user)
{
    if (node < 0) {
        return -1;
    }
    struct wpk_node old = program->nodes[node]; /* the array may move while we build */
    int arg[3] = {-1, -1, -1};
    if (old.kind == WPK_NODE_AXIS) {
        return axis_map == NULL ? node : axis_map[old.axis];
    }
    if (old.kind == WPK_NODE_LITERAL) {
        return node;
    }
    if (old.kind == WPK_NODE_LOAD) {
        return rewrite_load(program, &old, axis_map, tensor, rewrite, user);
    }
    for (int i = 0; i < 3 && old.arg[i] >= 0; i++) {
        arg[i] = wpk_rewrite_expr(program, old.arg[i], axis_map, tensor, rewrite, user);
        if (arg[i] < 0) {
            return -1;
        }
    }
    return wpk_node_remake(program, &old, arg);
}

wpk_err wpk_rewrite_all(struct wpk_program *program, int except, int tensor,
                        wpk_load_rewrite rewrite, void *user)
{
    for (int s = 0; s < program->stage_count; s++) {
        if (s == except) {
            continue;
        }
        int expr = wpk_rewrite_expr(program, program->stages[s].expr, NULL, tensor, rewrite, user);
        if (expr < 0) {
            return WPK_ENOSPC;
        }
        program->stages[s].expr = expr;
    }
    return WPK_OK;
}

static bool is_ready(const struct wpk_program *program, const struct wpk_stage *stage,
                     const bool *written)
{
    for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
        int tensor = load.node->tensor;
        if (wpk_program_writer(program, tensor) >= 0 && !written[tensor]) {
            return false;
        }
    }
    return true;
}

/* Always takes the first stage that is ready, so an order that was right stays as it is. */
static wpk_err sort_stages(struct wpk_program *program, int *order)
{
    bool written[WPK_TENSORS_MAX] = {false}, taken[WPK_STAGES_MAX] = {false};
    for (int n = 0; n < program->stage_count; n++) {
        int found = -1;
        for (int s = 0; s < program->stage_count && found < 0; s++) {
            if (!taken[s] && is_ready(program, &program->stages[s], written)) {
                found = s;
            }
        }
        if (found < 0) {
            return WPK_EINVAL; /* a cycle */
        }
        taken[found] = true;
        written[program->stages[found].output] = true;
        order[n] = found;
    }
    return WPK_OK;
}

/* Derivations name the axes that they add ("q", "lane", ...); so may the user have named his. */
static void part_names(struct wpk_stage *stage)
{
    for (int a = 0; a < stage->axis_count; a++) {
        char name[WPK_NAME_MAX];
        snprintf(name, sizeof(name), "%s", stage->axes[a].name);
        for (int i = 2; WPK_FIND(struct wpk_axis, name, stage->axes, a, name) >= 0; i++) {
            snprintf(name, sizeof(name), "%.*s%d", WPK_NAME_MAX - 8, stage->axes[a].name, i);
        }
        snprintf(stage->axes[a].name, sizeof(name), "%s", name);
    }
}

wpk_err wpk_program_tidy(struct wpk_program *program)
{
    int order[WPK_STAGES_MAX];
    bool keep[WPK_STAGES_MAX] = {false}, output[WPK_TENSORS_MAX] = {false};
    struct wpk_stage sorted[WPK_STAGES_MAX];
    wpk_err err = sort_stages(program, order);
    if (err != WPK_OK) {
        return err;
    }
    for (int s = 0; s < program->stage_count; s++) {
        sorted[s] = program->stages[order[s]];
    }
    memcpy(program->stages, sorted, (size_t)program->stage_count * sizeof(sorted[0]));
    bool needed[WPK_TENSORS_MAX];
    for (int t = 0; t < program->tensor_count; t++) {
        needed[t] = output[t] = program->tensors[t].role == WPK_ROLE_OUTPUT;
    }
    for (int s = program->stage_count - 1; s >= 0; s--) {
        const struct wpk_stage *stage = &program->stages[s];
        struct wpk_loads load = wpk_loads_of(program, stage);
        keep[s] = needed[stage->output];
        while (keep[s] && wpk_loads_next(&load)) {
            needed[load.node->tensor] = true;
        }
    }
    struct wpk_program fresh;
    err = wpk_program_extract(program, keep, output, &fresh);
    if (err == WPK_OK) {
        wpk_program_fini(program);
        wpk_program_move(&fresh, program);
        /* A load that cannot leave its tensor has no value outside: the text form does not show
         * it, and must give the same program back. Loads are never shared between stages. */
        for (struct wpk_loads it = wpk_loads_in(program); wpk_loads_next(&it);) {
            if (!wpk_load_may_leave(program, it.stage, it.id)) {
                program->nodes[it.id].outside = -1;
            }
        }
        for (int s = 0; s < program->stage_count; s++) {
            part_names(&program->stages[s]);
        }
    }
    return err;
}

void wpk_program_free_name(const struct wpk_program *program, const char *stem, char *out)
{
    snprintf(out, WPK_NAME_MAX, "%.*s", WPK_NAME_MAX - 8, stem);
    for (int i = 2; wpk_program_find_tensor(program, out) >= 0; i++) {
        snprintf(out, WPK_NAME_MAX, "%.*s%d", WPK_NAME_MAX - 8, stem, i);
    }
}

int wpk_rewrite_add_tensor(struct wpk_program *program, const char *stem, const char *suffix,
                           enum wpk_dtype dtype, int rank, const int64_t *extent)
{
    char name[WPK_NAME_MAX], whole[WPK_NAME_MAX];
    snprintf(whole, sizeof(whole), "%.40s_%s", stem, suffix);
    wpk_program_free_name(program, whole, name);
    return wpk_program_add_tensor(program, name, WPK_ROLE_INTERMEDIATE, dtype, rank, extent);
}

int wpk_rewrite_add_stage(struct wpk_program *program, const char *stem, const char *suffix,
                          enum wpk_dtype dtype, int rank, const int64_t *extent,
                          const char *const *axes)
{
    int tensor = wpk_rewrite_add_tensor(program, stem, suffix, dtype, rank, extent);
    return tensor < 0 ? -1 : wpk_program_add_stage(program, tensor, axes);
}

int wpk_index_add(struct wpk_program *program, int a, int b)
{
    return a < 0 || b < 0 ? -1 : wpk_node_binary(program, WPK_BINARY_ADD, a, b);
}

int wpk_index_add_constant(struct wpk_program *program, int a, int64_t constant)
{
    return constant == 0 ? a : wpk_index_add(program, a, wpk_node_int(program, constant));
}

int wpk_index_scale(struct wpk_program *program, int a, int64_t factor)
{
    return a < 0 || factor == 1
               ? a
               : wpk_node_binary(program, WPK_BINARY_MUL, a, wpk_node_int(program, factor));
}

int wpk_index_div(struct wpk_program *program, int a, int64_t divisor)
{
    WPK_ASSERT(divisor > 0);
    return a < 0 || divisor == 1
               ? a
               : wpk_node_binary(program, WPK_BINARY_DIV, a, wpk_node_int(program, divisor));
}

int wpk_index_mod(struct wpk_program *program, int a, int64_t divisor)
{
    WPK_ASSERT(divisor > 0);
    if (a < 0 || divisor == 1) {
        return a < 0 ? -1 : wpk_node_int(program, 0);
    }
    return wpk_node_binary(program, WPK_BINARY_MOD, a, wpk_node_int(program, divisor));
}

bool wpk_tensor_has_border(const struct wpk_tensor *tensor)
{
    for (int d = 0; d < tensor->rank; d++) {
        if (tensor->pad_before[d] > 0 || tensor->pad_after[d] > 0) {
            return true;
        }
    }
    return false;
}

bool wpk_rewrite_order(const struct wpk_program *program, const struct wpk_stage *stage,
                       const struct wpk_node *load, int *place)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    bool used[WPK_AXES_MAX] = {false};

    if (tensor->rank != stage->rank) {
        return false;
    }
    for (int d = 0; d < stage->rank; d++) {
        place[d] = wpk_index_axis(program, load->index[d]);
        if (place[d] < 0 || place[d] >= stage->rank || used[place[d]] ||
            stage->axes[place[d]].extent != tensor->extent[d]) {
            return false;
        }
        used[place[d]] = true;
    }
    return true;
}
