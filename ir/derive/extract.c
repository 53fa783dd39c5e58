/* SPDX-License-Identifier: Apache-2.0 */
/* Extraction rebuilds rather than prunes: ids are dense again and no dead node is left behind,
 * so that the text and the hash of a part do not depend on what it was cut from. */
#include "ir/derive/extract.h"

#include <string.h>

static void mark_touched(const struct wpk_program *program, const bool *keep, bool *touched)
{
    for (int s = 0; s < program->stage_count; s++) {
        if (!keep[s]) {
            continue;
        }
        const struct wpk_stage *stage = &program->stages[s];
        touched[stage->output] = true;
        for (struct wpk_loads load = wpk_loads_of(program, stage); wpk_loads_next(&load);) {
            touched[load.node->tensor] = true;
        }
    }
}

static int copy_tensor(const struct wpk_program *program, int id, enum wpk_role role,
                       struct wpk_program *out)
{
    const struct wpk_tensor *tensor = &program->tensors[id];
    int copy = role == WPK_ROLE_LITERAL
                   ? wpk_program_add_literal(out, tensor->name, tensor->dtype, tensor->rank,
                                             tensor->extent, tensor->values)
                   : wpk_program_add_tensor(out, tensor->name, role, tensor->dtype, tensor->rank,
                                            tensor->extent);
    if (copy >= 0) {
        memcpy(out->tensors[copy].pad_before, tensor->pad_before, sizeof(tensor->pad_before));
        memcpy(out->tensors[copy].pad_after, tensor->pad_after, sizeof(tensor->pad_after));
    }
    return copy;
}

static enum wpk_role role_in_part(const struct wpk_program *program, const bool *keep,
                                  const bool *output, int tensor)
{
    int writer = wpk_program_writer(program, tensor);
    if (writer < 0) {
        return program->tensors[tensor].role;
    }
    if (!keep[writer]) {
        return WPK_ROLE_CONSTANT;
    }
    return output[tensor] ? WPK_ROLE_OUTPUT : WPK_ROLE_INTERMEDIATE;
}

wpk_err wpk_program_copy_stage(const struct wpk_program *program, const struct wpk_stage *stage,
                               const int *tensor_map, struct wpk_program *out)
{
    const char *names[WPK_AXES_MAX] = {0};
    for (int i = 0; i < stage->rank; i++) {
        names[i] = stage->axes[i].name;
    }
    int id = wpk_program_add_stage(out, tensor_map[stage->output], names);
    if (id < 0) {
        return WPK_ENOSPC;
    }
    struct wpk_stage *copy = &out->stages[id];
    for (int i = stage->rank; i < stage->axis_count; i++) {
        if (wpk_stage_add_reduction_axis(copy, stage->axes[i].name, stage->axes[i].extent) < 0) {
            return WPK_ENOSPC;
        }
    }
    copy->reduction = stage->reduction;
    copy->accumulator = stage->accumulator;
    copy->expr = wpk_node_copy(out, program, stage->expr, tensor_map, NULL);
    return copy->expr >= 0 ? WPK_OK : WPK_ENOSPC;
}

wpk_err wpk_program_extract(const struct wpk_program *program, const bool *keep, const bool *output,
                            struct wpk_program *out)
{
    bool touched[WPK_TENSORS_MAX] = {false};
    int tensor_map[WPK_TENSORS_MAX];
    wpk_err err = WPK_OK;
    memset(out, 0, sizeof(*out));
    if (!wpk_program_loads_fit(program)) {
        return WPK_ENOSPC;
    }
    mark_touched(program, keep, touched);
    for (int t = 0; t < program->tensor_count; t++) {
        tensor_map[t] = -1;
        if (!touched[t]) {
            continue;
        }
        tensor_map[t] = copy_tensor(program, t, role_in_part(program, keep, output, t), out);
        if (tensor_map[t] < 0) {
            err = WPK_ENOSPC;
            goto done;
        }
    }
    for (int s = 0; s < program->stage_count && err == WPK_OK; s++) {
        if (keep[s]) {
            err = wpk_program_copy_stage(program, &program->stages[s], tensor_map, out);
        }
    }
done:
    if (err != WPK_OK) {
        err = out->full ? wpk_program_full_error(out) : err;
        wpk_program_fini(out);
    }
    return err;
}

/* The stage copies a tensor as it is. */
static bool is_plain_copy(const struct wpk_program *program, const struct wpk_stage *stage)
{
    const struct wpk_node *load = &program->nodes[stage->expr];
    bool plain = stage->reduction == WPK_REDUCE_NONE && load->kind == WPK_NODE_LOAD &&
                 program->tensors[load->tensor].rank == stage->rank;
    for (int d = 0; d < stage->rank && plain; d++) {
        plain = wpk_index_axis(program, load->index[d]) == d;
    }
    return plain;
}

void wpk_program_mark_prepare(const struct wpk_program *program, bool *out)
{
    bool constant[WPK_TENSORS_MAX] = {false};
    for (int t = 0; t < program->tensor_count; t++) {
        enum wpk_role role = program->tensors[t].role;
        constant[t] = role == WPK_ROLE_CONSTANT || role == WPK_ROLE_LITERAL;
    }
    for (int s = 0; s < program->stage_count; s++) {
        const struct wpk_stage *stage = &program->stages[s];
        int loads[WPK_LOADS_MAX];
        int count = wpk_stage_loads(program, stage, loads, WPK_LOADS_MAX);
        bool all = count > 0 && program->tensors[stage->output].role != WPK_ROLE_OUTPUT &&
                   !is_plain_copy(program, stage);
        for (int i = 0; i < count; i++) {
            all = all && constant[program->nodes[loads[i]].tensor];
        }
        out[s] = all;
        constant[stage->output] = all;
    }
}

wpk_err wpk_program_split_prepare(const struct wpk_program *program, struct wpk_program *main_part,
                                  struct wpk_program *prepare)
{
    bool early[WPK_STAGES_MAX] = {false}, late[WPK_STAGES_MAX] = {false};
    bool used_late[WPK_TENSORS_MAX] = {false}, is_output[WPK_TENSORS_MAX] = {false};
    bool any = false;
    wpk_program_mark_prepare(program, early);
    for (int s = 0; s < program->stage_count; s++) {
        late[s] = !early[s];
        any = any || early[s];
    }
    for (int t = 0; t < program->tensor_count; t++) {
        is_output[t] = program->tensors[t].role == WPK_ROLE_OUTPUT;
    }
    memset(prepare, 0, sizeof(*prepare));
    wpk_err err = wpk_program_extract(program, late, is_output, main_part);
    if (err == WPK_OK && any) {
        mark_touched(program, late, used_late);
        err = wpk_program_extract(program, early, used_late, prepare);
        if (err != WPK_OK) {
            wpk_program_fini(main_part);
        }
    }
    return err;
}
