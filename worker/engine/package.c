/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/engine/planner.h"

#include "ir/data_index.h"
#include "nest/reach.h"
#include "runtime/kernel/manifest.h"
#include "target/codegen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wpk_err add_tensor(struct wpk_named_tensor *list, int *count, const char *name,
                          const struct wpk_tensor_type *type)
{
    if (*count == WPK_ABI_ARGUMENTS_MAX) {
        return WPK_ENOSPC;
    }
    struct wpk_named_tensor *out = &list[(*count)++];
    snprintf(out->name, sizeof(out->name), "%s", name);
    out->type = *type;
    return WPK_OK;
}

/* The tensor as the program declares it: dense in its axes, with its padding. */
static struct wpk_tensor_type type_of(const struct wpk_tensor *tensor)
{
    struct wpk_tensor_type type = {
        .dtype = tensor->dtype, .rank = tensor->rank, .layout = wpk_layout_row_major(tensor->rank)};
    for (int d = 0; d < tensor->rank; d++) {
        type.extent[d] = tensor->extent[d];
        type.layout.pad_before[d] = tensor->pad_before[d];
        type.layout.pad_after[d] = tensor->pad_after[d];
    }
    return type;
}

/* A boundary tensor goes to the list of its role in the whole program. */
static wpk_err list_boundary(const struct wpk_schedule *schedule, struct wpk_manifest *out)
{
    wpk_err err = WPK_OK;
    for (int i = 0; i < schedule->boundary_count && err == WPK_OK; i++) {
        const struct wpk_boundary *boundary = &schedule->boundary[i];
        int tensor = wpk_program_find_tensor(&schedule->program, boundary->name);
        if (tensor < 0) {
            return WPK_EINVAL;
        }
        switch (schedule->program.tensors[tensor].role) {
        case WPK_ROLE_INPUT:
            err = add_tensor(out->inputs, &out->input_count, boundary->name, &boundary->type);
            break;
        case WPK_ROLE_CONSTANT:
            err = add_tensor(out->constants, &out->constant_count, boundary->name, &boundary->type);
            break;
        default:
            err = add_tensor(out->outputs, &out->output_count, boundary->name, &boundary->type);
        }
    }
    return err;
}

/* Arguments in the order of target/halide/halide.h: what is read, then what is written. */
static wpk_err list_arguments(const struct wpk_program *program, char (*names)[WPK_NAME_MAX],
                              int *count)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < program->tensor_count; i++) {
            const struct wpk_tensor *tensor = &program->tensors[i];
            bool wanted = pass == 0 ? wpk_tensor_is_given(tensor) : tensor->role == WPK_ROLE_OUTPUT;
            if (wanted && *count == WPK_ABI_ARGUMENTS_MAX) {
                return WPK_ENOSPC;
            }
            if (wanted) {
                memcpy(names[(*count)++], tensor->name, WPK_NAME_MAX);
            }
        }
    }
    return WPK_OK;
}

static const struct wpk_tensor_type *boundary_type(const struct wpk_schedule *schedule,
                                                   const char *name)
{
    int found =
        WPK_FIND(struct wpk_boundary, name, schedule->boundary, schedule->boundary_count, name);
    return found >= 0 ? &schedule->boundary[found].type : NULL;
}

/* Indices are given, and their bounds are those of the whole program. */
static void fill_indices(const struct wpk_program *program, struct wpk_manifest *out)
{
    struct wpk_index_bound bounds[WPK_INDEX_BOUNDS_MAX];
    for (int t = 0; t < program->tensor_count; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        bool is_given = wpk_tensor_is_given(tensor);
        int count = is_given ? wpk_index_bounds(program, t, bounds) : 0;
        for (int i = 0; i < count && out->index_count < WPK_MANIFEST_INDICES_MAX; i++) {
            struct wpk_manifest_index *index = &out->indices[out->index_count++];
            memcpy(index->tensor, tensor->name, sizeof(index->tensor));
            index->bound = bounds[i];
        }
    }
}

static wpk_err fill(const struct wpk_package *package, struct wpk_manifest *out)
{
    const struct wpk_schedule *schedule = package->schedule;
    out->op = WPK_DEMAND(strdup(package->op));
    out->algorithm = WPK_DEMAND(strdup(package->algorithm));
    out->candidate = WPK_DEMAND(strdup(package->candidate));
    out->schedule = WPK_DEMAND(strdup(package->schedule_text));
    snprintf(out->fingerprint, sizeof(out->fingerprint), "%s", package->fingerprint);
    snprintf(out->version_wpk, sizeof(out->version_wpk), "%s", WPK_VERSION);
    snprintf(out->version_codegen, sizeof(out->version_codegen), "%s", package->version_codegen);
    struct wpk_device needed = {0};
    wpk_codegen_needs(package->schedule, &needed);
    out->needs = (struct wpk_manifest_needs){.cuda = wpk_device_is_cuda(&needed),
                                             .flags = needed.cpu.flags,
                                             .capability = needed.cuda.capability,
                                             .emulated = package->emulated};
    out->threads = schedule->threads;
    wpk_err err = list_boundary(schedule, out);
    if (err == WPK_OK) {
        /* In C the two pointers are not `restrict` then (target/c/storage.c). Halide tells LLVM
         * that buffers are apart, but marks no load as invariant: a load of an element is not
         * repeated after the store that depends on it. */
        int tensor = out->needs.cuda ? -1 : wpk_nest_in_place(schedule->nest);
        const char *name = tensor >= 0 ? schedule->main.tensors[tensor].name : "";
        const struct wpk_tensor_type *input = boundary_type(schedule, name);
        if (input != NULL && out->output_count == 1 &&
            wpk_tensor_type_equal(input, &out->outputs[0].type)) {
            memcpy(out->in_place, name, strlen(name) + 1);
        }
        fill_indices(&schedule->program, out);
        const struct wpk_program *prepare = &schedule->prepare;
        for (int i = 0; i < prepare->tensor_count && err == WPK_OK; i++) {
            if (prepare->tensors[i].role == WPK_ROLE_OUTPUT) {
                struct wpk_tensor_type type = type_of(&prepare->tensors[i]);
                err = add_tensor(out->prepared, &out->prepared_count, prepare->tensors[i].name,
                                 &type);
            }
        }
    }
    err = err == WPK_OK ? list_arguments(&schedule->main, out->main, &out->main_count) : err;
    if (err == WPK_OK && schedule->prepare.stage_count > 0) {
        err = list_arguments(&schedule->prepare, out->prepare, &out->prepare_count);
    }
    return err;
}

wpk_err wpk_package_manifest(const struct wpk_package *package, char **text)
{
    struct wpk_manifest *manifest = WPK_DEMAND(calloc(1, sizeof(*manifest)));
    wpk_err err = fill(package, manifest);
    err = err == WPK_OK ? wpk_manifest_encode(manifest, text) : err;
    wpk_manifest_fini(manifest);
    free(manifest);
    return err;
}
