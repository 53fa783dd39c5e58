/* SPDX-License-Identifier: Apache-2.0 */
/* Constants: packed into the kernel's own memory, and transformed by its prepare program.
 *
 *      the user's ──pack──▶ constants ──prepare──▶ prepared tensors
 *                               └──────────┬──────────┘
 *                                      fixed slots of main
 *
 * All constants that main reads lie in one block, so that the largest tensors get huge pages.
 * Constants that only the prepare program reads stay where the caller has them if they may be read
 * there; else they lie in a second block, which lasts as long as it runs. */
#include "runtime/kernel/context.h"
#include "runtime/kernel/kernel.h"
#include "runtime/scratch.h"

#include <string.h>

/* Where each tensor lies in its block; indices of the manifest. */
struct places {
    size_t constant[WPK_ABI_ARGUMENTS_MAX];
    size_t prepared[WPK_ABI_ARGUMENTS_MAX];
    bool is_passing[WPK_ABI_ARGUMENTS_MAX];   /* constants that lie in the second block */
    uint8_t *as_given[WPK_ABI_ARGUMENTS_MAX]; /* constants that stay where the caller has them */
    size_t size;
    size_t passing_size;
    uint8_t *block;
    uint8_t *passing;
};

/* Each is followed by room that a vector load may touch, see WPK_MEMORY_SLACK. */
static wpk_err place_tensor(const struct wpk_named_tensor *tensor, size_t *offset, size_t *end)
{
    size_t size = wpk_memory_round(wpk_tensor_type_bytes(&tensor->type));

    *offset = *end;
    if (size > SIZE_MAX / 4 || *end > SIZE_MAX / 4) {
        return WPK_ENOMEM;
    }
    *end += size + WPK_MEMORY_SLACK;
    return WPK_OK;
}

static bool main_reads(const struct wpk_manifest *manifest, const char *name)
{
    for (int i = 0; i < manifest->main_count; i++) {
        if (strcmp(manifest->main[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Of a GPU's kernel all lie in one block, which lasts until they are on the device. */
static wpk_err place(const struct wpk_kernel *kernel, struct places *out)
{
    const struct wpk_manifest *manifest = &kernel->manifest;
    wpk_err err = WPK_OK;

    *out = (struct places){.size = 0};
    for (int i = 0; i < manifest->constant_count && err == WPK_OK; i++) {
        const struct wpk_named_tensor *constant = &manifest->constants[i];
        out->is_passing[i] = kernel->gpu == NULL && !main_reads(manifest, constant->name);
        err = place_tensor(constant, &out->constant[i],
                           out->is_passing[i] ? &out->passing_size : &out->size);
    }
    for (int i = 0; i < manifest->prepared_count && err == WPK_OK; i++) {
        err = place_tensor(&manifest->prepared[i], &out->prepared[i], &out->size);
    }
    return err;
}

/* Leave constants where they are if only the prepare program reads them, and may do so there. */
static void leave_as_given(const struct wpk_kernel *kernel, void *const *found,
                           struct places *places)
{
    places->passing_size = 0;
    for (int i = 0; i < kernel->manifest.constant_count; i++) {
        int source = kernel->constants.source[i];
        const struct wpk_named_tensor *constant = &kernel->manifest.constants[source];
        if (places->is_passing[source] && wpk_layout_is_row_major(&constant->type.layout) &&
            (uintptr_t)found[i] % WPK_MEMORY_ALIGNMENT == 0) {
            places->as_given[source] = found[i];
        } else if (places->is_passing[source]) {
            places->constant[source] = places->passing_size;
            places->passing_size +=
                wpk_memory_round(wpk_tensor_type_bytes(&constant->type)) + WPK_MEMORY_SLACK;
        }
    }
}

static uint8_t *find_place(const struct wpk_manifest *manifest, const struct places *places,
                           const struct wpk_named_tensor *tensor)
{
    if (tensor >= manifest->constants && tensor < manifest->constants + manifest->constant_count) {
        size_t i = (size_t)(tensor - manifest->constants);
        if (places->as_given[i] != NULL) {
            return places->as_given[i];
        }
        return (places->is_passing[i] ? places->passing : places->block) + places->constant[i];
    }
    WPK_ASSERT(tensor >= manifest->prepared &&
               tensor < manifest->prepared + manifest->prepared_count);
    return places->block + places->prepared[tensor - manifest->prepared];
}

static wpk_err run_prepare(const struct wpk_kernel *kernel, const struct places *places,
                           struct wpk_diag *diag)
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
        buffers[i].host = find_place(manifest, places, tensor);
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

size_t wpk_kernel_fixed_size(const struct wpk_kernel *kernel)
{
    struct places places;

    return kernel->vendor == NULL && kernel->gpu == NULL && place(kernel, &places) == WPK_OK
               ? places.size
               : 0;
}

/* Fill both blocks. */
static wpk_err fill(struct wpk_kernel *kernel, struct places *places, void *const *found,
                    struct wpk_diag *diag)
{
    const struct wpk_manifest *manifest = &kernel->manifest;

    for (int i = 0; i < manifest->constant_count; i++) {
        const struct wpk_named_tensor *constant = &manifest->constants[kernel->constants.source[i]];
        uint8_t *to = find_place(manifest, places, constant);
        if (to != found[i]) {
            wpk_tensor_pack(&constant->type, found[i], to);
        }
    }
    if (kernel->gpu != NULL) {
        return wpk_kernel_gpu_prepare(kernel, places->block, places->constant, places->prepared,
                                      diag);
    }
    if (manifest->prepare_count > 0) {
        wpk_err err = run_prepare(kernel, places, diag);
        if (err != WPK_OK) {
            return err;
        }
    }
    /* Point main's fixed arguments into the block. */
    for (int i = 0; i < manifest->main_count; i++) {
        if (kernel->main[i].kind == WPK_SLOT_FIXED) {
            const struct wpk_named_tensor *tensor = wpk_manifest_find(manifest, manifest->main[i]);
            kernel->main[i].buffer.host = find_place(manifest, places, tensor);
        }
    }
    return WPK_OK;
}

wpk_err wpk_kernel_prepare_in(struct wpk_kernel *kernel, const struct wpk_tensor_data *constants,
                              size_t count, void *memory, struct wpk_diag *diag)
{
    void *found[WPK_ABI_ARGUMENTS_MAX];
    struct places places;

    if (kernel->prepared && kernel->constants.count > 0) {
        return wpk_fail(diag, WPK_EINVAL, "the kernel is prepared already");
    }
    wpk_err err = wpk_arguments_match(&kernel->constants, kernel->constants.logical_size, constants,
                                      count, found, diag);
    if (err == WPK_OK && kernel->vendor != NULL) {
        return prepare_vendor(kernel, found);
    }
    err = err == WPK_OK ? wpk_kernel_check_indices(kernel, &kernel->constants, found, NULL, diag)
                        : err;
    err = err == WPK_OK ? place(kernel, &places) : err;
    if (err != WPK_OK || kernel->prepared) {
        return err;
    }
    if (memory != NULL) {
        leave_as_given(kernel, found, &places);
    }
    places.block = memory != NULL ? memory : wpk_memory_take(places.size);
    places.passing = places.passing_size > 0 ? wpk_memory_take(places.passing_size) : NULL;
    err = places.block == NULL || (places.passing_size > 0 && places.passing == NULL)
              ? WPK_ENOMEM
              : fill(kernel, &places, found, diag);
    wpk_memory_give(places.passing);
    kernel->prepared = err == WPK_OK;
    if (memory == NULL && kernel->prepared && kernel->gpu == NULL) {
        kernel->fixed = places.block;
    } else if (memory == NULL) {
        wpk_memory_give(places.block);
    }
    return err;
}

wpk_err wpk_kernel_prepare(struct wpk_kernel *kernel, const struct wpk_tensor_data *constants,
                           size_t count, struct wpk_diag *diag)
{
    return wpk_kernel_prepare_in(kernel, constants, count, NULL, diag);
}
