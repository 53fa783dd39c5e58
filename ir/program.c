/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors and stages of a program. Nodes are in node.c, indices in index.c, the invariants in
 * validate.c. */
#include "ir/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    free(program->tensors);
    free(program->stages);
    free(program->nodes);
    *program = (struct wpk_program){0};
}

/* Copy `count` objects into a list with room for `capacity`; the rest is not touched.
 *   owns  caller frees; NULL without memory, or if the capacity is 0 */
static void *copy_list(const void *list, int count, int capacity, size_t size)
{
    void *copy = capacity > 0 ? malloc((size_t)capacity * size) : NULL;
    if (copy != NULL && count > 0) {
        memcpy(copy, list, (size_t)count * size);
    }
    return copy;
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
    *out = *program;
    out->tensor_capacity = program->tensor_count > 0 ? WPK_TENSORS_MAX : 0;
    out->stage_capacity = program->stage_count > 0 ? WPK_STAGES_MAX : 0;
    out->node_capacity = program->node_count;
    out->tensors =
        copy_list(program->tensors, out->tensor_count, out->tensor_capacity, sizeof *out->tensors);
    out->stages =
        copy_list(program->stages, out->stage_count, out->stage_capacity, sizeof *out->stages);
    out->nodes = copy_list(program->nodes, out->node_count, out->node_capacity, sizeof *out->nodes);
    bool whole = (out->tensors != NULL || out->tensor_capacity == 0) &&
                 (out->stages != NULL || out->stage_capacity == 0) &&
                 (out->nodes != NULL || out->node_capacity == 0);
    out->tensor_count = out->tensors != NULL ? out->tensor_count : 0;
    for (int t = 0; t < out->tensor_count; t++) {
        out->tensors[t].values = NULL;
    }
    for (int t = 0; t < out->tensor_count && whole; t++) {
        const struct wpk_tensor *from = &program->tensors[t];
        if (from->values != NULL) {
            out->tensors[t].values = copy_values(from->values, wpk_tensor_elements(from));
            whole = out->tensors[t].values != NULL;
        }
    }
    if (!whole) {
        wpk_program_fini(out);
    }
    return whole ? WPK_OK : WPK_ENOMEM;
}

void wpk_program_move(struct wpk_program *program, struct wpk_program *out)
{
    WPK_ASSERT(program != out);
    *out = *program;
    *program = (struct wpk_program){0};
}

/* Make the capacity of a list `capacity`. False: there is no memory, and the list is as before. */
static bool resize(void **list, int *capacity, int wanted, size_t size)
{
    void *resized = realloc(*list, (size_t)(wanted > 0 ? wanted : 1) * size);
    if (resized == NULL) {
        return false;
    }
    *list = resized;
    *capacity = wanted;
    return true;
}

void wpk_program_trim(struct wpk_program *program)
{
    /* A failure to become smaller leaves all as it is. */
    resize((void **)&program->tensors, &program->tensor_capacity, program->tensor_count,
           sizeof *program->tensors);
    resize((void **)&program->stages, &program->stage_capacity, program->stage_count,
           sizeof *program->stages);
    resize((void **)&program->nodes, &program->node_capacity, program->node_count,
           sizeof *program->nodes);
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
    if (program->tensor_count == program->tensor_capacity &&
        !resize((void **)&program->tensors, &program->tensor_capacity, WPK_TENSORS_MAX,
                sizeof *program->tensors)) {
        program->starved = true;
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
    if (program->stage_count == program->stage_capacity &&
        !resize((void **)&program->stages, &program->stage_capacity, WPK_STAGES_MAX,
                sizeof *program->stages)) {
        program->starved = true;
        return fail_full(program);
    }
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
    return WPK_FIND(struct wpk_tensor, name, program->tensors, program->tensor_count, name);
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

int wpk_program_find_stage(const struct wpk_program *program, const char *name)
{
    int tensor = wpk_program_find_tensor(program, name);
    return tensor < 0 ? -1 : wpk_program_writer(program, tensor);
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

bool wpk_tensor_is_given(const struct wpk_tensor *tensor)
{
    return tensor->role == WPK_ROLE_INPUT || tensor->role == WPK_ROLE_CONSTANT;
}

int64_t wpk_tensor_elements(const struct wpk_tensor *tensor)
{
    return wpk_extents_product(tensor->extent, tensor->rank);
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
