/* SPDX-License-Identifier: Apache-2.0 */
/* Constants: packed into the kernel's own memory, and transformed by its prepare program.
 *
 *      the user's ──pack──▶ constants ──prepare──▶ prepared tensors
 *                               └──────────┬──────────┘
 *                                      fixed slots of main
 *
 * Constants and prepared tensors lie in one block, so that the largest of them get huge pages. The
 * block also holds constants that only the prepare program reads: they are smaller than the tensors
 * that are made from them. */
#include "runtime/context.h"
#include "runtime/kernel.h"
#include "runtime/memory.h"

#include <stdlib.h>
#include <string.h>

/* Where each tensor lies in the block; indices of the manifest. */
struct places {
    size_t constant[WPK_ABI_ARGUMENTS_MAX];
    size_t prepared[WPK_ABI_ARGUMENTS_MAX];
    size_t size;
};

/* Each is followed by room that a vector load may touch, see WPK_MEMORY_SLACK. */
static wpk_err place(const struct wpk_named_tensor *tensors, int count, size_t *offset, size_t *end)
{
    for (int i = 0; i < count; i++) {
        size_t size = wpk_memory_round(wpk_tensor_type_bytes(&tensors[i].type));
        offset[i] = *end;
        if (size > SIZE_MAX / 4 || *end > SIZE_MAX / 4) {
            return WPK_ENOMEM;
        }
        *end += size + WPK_MEMORY_SLACK;
    }
    return WPK_OK;
}

static const size_t *find_place(const struct wpk_manifest *manifest, const struct places *places,
                                const struct wpk_named_tensor *tensor)
{
    if (tensor >= manifest->constants && tensor < manifest->constants + manifest->constant_count) {
        return &places->constant[tensor - manifest->constants];
    }
    if (tensor >= manifest->prepared && tensor < manifest->prepared + manifest->prepared_count) {
        return &places->prepared[tensor - manifest->prepared];
    }
    return NULL;
}

static wpk_err run_prepare(const struct wpk_kernel *kernel, const struct places *places,
                           uint8_t *block, struct wpk_diag *diag)
{
    const struct wpk_manifest *manifest = &kernel->manifest;
    struct wpk_abi_dim dims[WPK_ABI_ARGUMENTS_MAX][WPK_RANK_MAX];
    struct wpk_abi_buffer buffers[WPK_ABI_ARGUMENTS_MAX];
    struct wpk_abi_buffer *arguments[WPK_ABI_ARGUMENTS_MAX];
    struct wpk_context *context = NULL;

    for (int i = 0; i < manifest->prepare_count; i++) {
        const struct wpk_named_tensor *tensor = wpk_manifest_find(manifest, manifest->prepare[i]);
        wpk_err err = wpk_buffer_describe(&tensor->type, dims[i], &buffers[i]);
        if (err != WPK_OK) {
            wpk_diag_set(diag, "constant '%s' is too large", tensor->name);
            return err;
        }
        buffers[i].host = block + *find_place(manifest, places, tensor);
        arguments[i] = &buffers[i];
    }
    wpk_err err = wpk_context_new(&(struct wpk_context_options){.threads = 1}, &context);
    if (err == WPK_OK) {
        err = wpk_context_call(context, 1, kernel->descriptor->prepare, arguments,
                               (size_t)manifest->prepare_count);
    }
    wpk_context_free(context);
    return err;
}

/* Point main's fixed arguments into the block. */
static void fix_slots(struct wpk_kernel *kernel, const struct places *places)
{
    const struct wpk_manifest *manifest = &kernel->manifest;

    for (int i = 0; i < manifest->main_count; i++) {
        if (kernel->main[i].kind == WPK_SLOT_FIXED) {
            const struct wpk_named_tensor *tensor = wpk_manifest_find(manifest, manifest->main[i]);
            kernel->main[i].buffer.host =
                (uint8_t *)kernel->fixed + *find_place(manifest, places, tensor);
        }
    }
}

/* The library packs them, in memory of its own. */
static wpk_err prepare_vendor(struct wpk_kernel *kernel, void *const *found)
{
    const void *dense[WPK_RECIPE_TENSORS_MAX] = {NULL};

    for (size_t i = 0; i < kernel->constants.count; i++) {
        dense[kernel->constants.source[i]] = found[i];
    }
    wpk_err err = kernel->prepared ? WPK_OK : wpk_vendor_prepare(kernel->vendor, dense);
    kernel->prepared = err == WPK_OK;
    return err;
}

size_t wpk_kernel_constants(const struct wpk_kernel *kernel, struct wpk_span *out)
{
    const struct wpk_manifest *manifest = &kernel->manifest;
    size_t count = 0;

    WPK_ASSERT(kernel->prepared);
    if (kernel->vendor != NULL) {
        return wpk_vendor_constants(kernel->vendor, out);
    }
    for (int i = 0; i < manifest->main_count; i++) {
        if (kernel->main[i].kind == WPK_SLOT_FIXED) {
            const struct wpk_named_tensor *tensor = wpk_manifest_find(manifest, manifest->main[i]);
            out[count++] = (struct wpk_span){kernel->main[i].buffer.host,
                                             wpk_tensor_type_bytes(&tensor->type)};
        }
    }
    return count;
}

void wpk_kernel_move_constants(struct wpk_kernel *kernel, void *const *copies)
{
    WPK_ASSERT(kernel->prepared && kernel->vendor == NULL);
    for (int i = 0; i < kernel->manifest.main_count; i++) {
        if (kernel->main[i].kind == WPK_SLOT_FIXED) {
            kernel->main[i].buffer.host = *copies++;
        }
    }
}

wpk_err wpk_kernel_prepare(struct wpk_kernel *kernel, const struct wpk_tensor_data *constants,
                           size_t count, struct wpk_diag *diag)
{
    const struct wpk_manifest *manifest = &kernel->manifest;
    void *found[WPK_ABI_ARGUMENTS_MAX];
    struct places places = {0};

    if (kernel->prepared && (kernel->fixed != NULL || kernel->constants.count > 0)) {
        wpk_diag_set(diag, "the kernel is prepared already");
        return WPK_EINVAL;
    }
    wpk_err err = wpk_arguments_match(&kernel->constants, kernel->constants.logical_size, constants,
                                      count, found, diag);
    if (err == WPK_OK && kernel->vendor != NULL) {
        return prepare_vendor(kernel, found);
    }
    if (err == WPK_OK) {
        err = place(manifest->constants, manifest->constant_count, places.constant, &places.size);
    }
    if (err == WPK_OK) {
        err = place(manifest->prepared, manifest->prepared_count, places.prepared, &places.size);
    }
    if (err != WPK_OK || places.size == 0) {
        return err;
    }
    uint8_t *block = wpk_memory_take(places.size);
    if (block == NULL) {
        return WPK_ENOMEM;
    }
    for (int i = 0; i < manifest->constant_count; i++) {
        int source = kernel->constants.source[i];
        wpk_tensor_pack(&manifest->constants[source].type, found[i],
                        block + places.constant[source]);
    }
    if (kernel->gpu != NULL) {
        err = wpk_kernel_gpu_prepare(kernel, block, places.constant, places.prepared, diag);
        wpk_memory_give(block);
        kernel->prepared = err == WPK_OK;
        return err;
    }
    if (manifest->prepare_count > 0) {
        err = run_prepare(kernel, &places, block, diag);
    }
    if (err != WPK_OK) {
        wpk_memory_give(block);
        return err;
    }
    kernel->fixed = block;
    fix_slots(kernel, &places);
    kernel->prepared = true;
    return WPK_OK;
}
