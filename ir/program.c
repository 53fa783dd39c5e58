/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors and stages of a program. Nodes are in node.c, indices in index.c, the invariants in
 * validate.c. */
#include "ir/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void clear(struct wpk_program *program)
{
    memset(program->tensors, 0, (size_t)program->tensor_count * sizeof *program->tensors);
    memset(program->stages, 0, (size_t)program->stage_count * sizeof *program->stages);
    program->tensor_count = program->stage_count = 0;
    program->nodes = NULL;
    program->node_count = program->node_capacity = 0;
    program->full = program->starved = program->expanded = false;
}

wpk_err wpk_program_full_error(const struct wpk_program *program)
{
    return program->starved ? WPK_ENOMEM : WPK_ENOSPC;
}

void wpk_program_fini(struct wpk_program *program)
{
    if (program == NULL) {
        return;
    }
    for (int t = 0; t < program->tensor_count; t++) {
        free(program->tensors[t].values);
    }
    free(program->nodes);
    clear(program);
}

/* Copy only up to the counts: pages beyond them that were never written need no memory. */
static void copy_used(const struct wpk_program *from, struct wpk_program *to)
{
    memcpy(to->tensors, from->tensors, (size_t)from->tensor_count * sizeof *to->tensors);
    memcpy(to->stages, from->stages, (size_t)from->stage_count * sizeof *to->stages);
    to->tensor_count = from->tensor_count;
    to->stage_count = from->stage_count;
    to->nodes = NULL;
    to->node_count = from->node_count;
    to->node_capacity = 0;
    to->full = from->full;
    to->starved = from->starved;
    to->expanded = from->expanded;
}

static double *copy_values(const double *values, int64_t count)
{
    double *copy = malloc((size_t)count * sizeof *copy);
    if (copy != NULL) {
        memcpy(copy, values, (size_t)count * sizeof *copy);
    }
    return copy;
}

wpk_err wpk_program_copy(const struct wpk_program *program, struct wpk_program *out)
{
    WPK_ASSERT(program != out);
    copy_used(program, out);
    for (int t = 0; t < out->tensor_count; t++) {
        out->tensors[t].values = NULL;
    }
    for (int t = 0; t < out->tensor_count; t++) {
        const struct wpk_tensor *from = &program->tensors[t];
        if (from->values == NULL) {
            continue;
        }
        out->tensors[t].values = copy_values(from->values, wpk_tensor_elements(from));
        if (out->tensors[t].values == NULL) {
            wpk_program_fini(out);
            return WPK_ENOMEM;
        }
    }
    if (program->node_count > 0) {
        size_t size = (size_t)program->node_count * sizeof *out->nodes;
        out->nodes = malloc(size);
        if (out->nodes == NULL) {
            wpk_program_fini(out);
            return WPK_ENOMEM;
        }
        memcpy(out->nodes, program->nodes, size);
        out->node_capacity = program->node_count;
    }
    return WPK_OK;
}

void wpk_program_move(struct wpk_program *program, struct wpk_program *out)
{
    WPK_ASSERT(program != out);
    copy_used(program, out);
    out->nodes = program->nodes;
    out->node_capacity = program->node_capacity;
    clear(program);
}

static bool set_name(char *out, const char *name)
{
    size_t size = strlen(name);
    if (size >= WPK_NAME_MAX) {
        return false;
    }
    memcpy(out, name, size + 1);
    return true;
}

static int fail_full(struct wpk_program *program)
{
    program->full = true;
    return -1;
}

int wpk_program_add_tensor(struct wpk_program *program, const char *name, enum wpk_role role,
                           enum wpk_dtype dtype, int rank, const int64_t *extent)
{
    if (program->tensor_count == WPK_TENSORS_MAX || rank < 0 || rank > WPK_RANK_MAX) {
        return fail_full(program);
    }
    struct wpk_tensor *tensor = &program->tensors[program->tensor_count];
    memset(tensor, 0, sizeof *tensor);
    if (!set_name(tensor->name, name)) {
        return fail_full(program);
    }
    tensor->role = role;
    tensor->dtype = dtype;
    tensor->rank = rank;
    for (int d = 0; d < rank; d++) {
        tensor->extent[d] = extent[d];
    }
    return program->tensor_count++;
}

int wpk_program_add_literal(struct wpk_program *program, const char *name, enum wpk_dtype dtype,
                            int rank, const int64_t *extent, const double *values)
{
    int64_t count = 1;
    for (int d = 0; d < rank; d++) {
        WPK_ASSERT(extent[d] >= 1);
        if (extent[d] > WPK_LITERAL_ELEMENTS_MAX / count) {
            return fail_full(program);
        }
        count *= extent[d];
    }
    double *copy = copy_values(values, count);
    if (copy == NULL) {
        program->starved = true;
        return fail_full(program);
    }
    int id = wpk_program_add_tensor(program, name, WPK_ROLE_LITERAL, dtype, rank, extent);
    if (id < 0) {
        free(copy);
        return -1;
    }
    program->tensors[id].values = copy;
    return id;
}

int wpk_program_add_stage(struct wpk_program *program, int output, const char *const *axis_names)
{
    if (output < 0 || program->stage_count == WPK_STAGES_MAX) {
        return fail_full(program);
    }
    WPK_ASSERT(output < program->tensor_count);
    const struct wpk_tensor *tensor = &program->tensors[output];
    struct wpk_stage *stage = &program->stages[program->stage_count];
    memset(stage, 0, sizeof *stage);
    stage->output = output;
    stage->rank = tensor->rank;
    stage->axis_count = tensor->rank;
    stage->accumulator = tensor->dtype;
    stage->expr = -1;
    stage->identity = -1;
    for (int d = 0; d < tensor->rank; d++) {
        struct wpk_axis *axis = &stage->axes[d];
        axis->extent = tensor->extent[d];
        if (axis_names == NULL) {
            snprintf(axis->name, sizeof axis->name, "i%d", d);
        } else if (!set_name(axis->name, axis_names[d])) {
            return fail_full(program);
        }
    }
    return program->stage_count++;
}

int wpk_stage_add_reduction_axis(struct wpk_stage *stage, const char *name, int64_t extent)
{
    if (stage->axis_count == WPK_AXES_MAX || !set_name(stage->axes[stage->axis_count].name, name)) {
        return -1;
    }
    stage->axes[stage->axis_count].extent = extent;
    return stage->axis_count++;
}

int wpk_program_find_tensor(const struct wpk_program *program, const char *name)
{
    for (int t = 0; t < program->tensor_count; t++) {
        if (strcmp(program->tensors[t].name, name) == 0) {
            return t;
        }
    }
    return -1;
}

int wpk_program_writer(const struct wpk_program *program, int tensor)
{
    for (int s = 0; s < program->stage_count; s++) {
        if (program->stages[s].output == tensor) {
            return s;
        }
    }
    return -1;
}

int wpk_program_output(const struct wpk_program *program)
{
    int t = 0;
    while (program->tensors[t].role != WPK_ROLE_OUTPUT) {
        t++;
        WPK_ASSERT(t < program->tensor_count);
    }
    return t;
}

int64_t wpk_tensor_elements(const struct wpk_tensor *tensor)
{
    int64_t count = 1;
    for (int d = 0; d < tensor->rank; d++) {
        count *= tensor->extent[d];
    }
    return count;
}

wpk_err wpk_program_view(const struct wpk_program *program, int output, struct wpk_program *out)
{
    wpk_err err = wpk_program_copy(program, out);
    for (int t = 0; t < program->tensor_count && err == WPK_OK; t++) {
        struct wpk_tensor *tensor = &out->tensors[t];
        tensor->role =
            tensor->role == WPK_ROLE_OUTPUT && t != output ? WPK_ROLE_INTERMEDIATE : tensor->role;
    }
    return err;
}
